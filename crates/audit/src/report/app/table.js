// Tables. Of a long one only the rows that are in view are drawn; all of them can be sorted, filtered and copied.

const ROW = 34; // the height of a row, as in the style
const MARGIN = 12; // rows drawn above and below those in view

// A cell that a spreadsheet would take for a formula begins with an apostrophe.
const csvCell = value => {
  let text = shown(value);
  if (/^[=+\-@\t\r\uFF1D\uFF0B\uFF0D\uFF20]/.test(text) && !/^-?\d+(\.\d+)?$/.test(text)) text = "'" + text;
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
};
const csv = (names, rows) => [names, ...rows].map(row => row.map(csvCell).join(",")).join("\r\n") + "\r\n";

const copier = text => {
  const button = make("button", { type: "button", class: "quiet", onclick: async () => {
    let done = true;
    try { await navigator.clipboard.writeText(text()); } catch {
      const area = make("textarea", { "aria-label": say("What is copied") }, text());
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
      button.focus();
    }
    button.textContent = done ? say("Copied") : say("The browser refused");
    setTimeout(() => { button.textContent = say("Copy as CSV"); }, 2000);
  } }, say("Copy as CSV"));
  return button;
};

const compare = (a, b) => a === b ? 0 : a < b ? -1 : 1;

// The numbers of rows, which come in their order, in the order of a column. What has no value comes last.
const ordered = (rows, numbers, value, down) => {
  const keys = new Array(rows.length);
  if (numbers.length * 8 < rows.length) {
    for (const at of numbers) keys[at] = value(rows.at(at), at);
  } else {
    let at = 0, next = 0;
    for (const row of rows) {
      if (at === numbers[next]) {
        keys[at] = value(row, at);
        next++;
      }
      at++;
    }
  }
  const sign = down ? -1 : 1;
  return numbers.sort((a, b) => {
    const x = keys[a], y = keys[b], noX = x === null || x === undefined || x === "", noY = y === null || y === undefined || y === "";
    if (noX || noY) return noX && noY ? a - b : noX ? 1 : -1;
    return sign * compare(x, y) || a - b;
  });
};

/* A table of many rows.
 * rows: an array, or what has its `length` and `at`
 * columns: [{ key, name, value(row, number), order?(row, number), cell?(row, number), numeric, width, search }]
 * choices: [{ key, name, options: [[value, name, test(row)]] }]
 * view: what the fragment says of it: { state, change(state) }
 * open: what is shown below for a row: { of(row, number) -> nodes, id(row) }
 */
const table = ({ label, columns, rows, choices = [], view, sort, open }) => {
  const given = view.state, searched = columns.filter(column => column.search);
  const head = make("tr"), body = make("tbody"), detail = make("div", { class: "detail" });
  const status = make("span", { class: "soft", role: "status" });
  const box = make("div", { class: "rows", tabindex: "0", role: "region", "aria-label": label, "aria-description": say("Arrow keys move from row to row") });
  let numbers = [], chosen = null, current = 0;

  const sorting = () => {
    const text = view.state.sort || sort || "";
    return { key: text.replace(/^-/, ""), down: text.startsWith("-") };
  };
  const draw = () => {
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - MARGIN);
    const last = Math.min(numbers.length, first + Math.ceil((box.clientHeight || 600) / ROW) + 2 * MARGIN);
    const space = height => { const row = make("tr", { "aria-hidden": "true", class: "space" }); row.style.height = `${height}px`; return row; };
    const drawn = [];
    if (first > 0) drawn.push(space(first * ROW));
    for (let at = first; at < last; at++) {
      const number = numbers[at], row = rows.at(number);
      drawn.push(make("tr", { "aria-rowindex": at + 2, class: number === chosen ? "chosen" : null }, columns.map(column => {
        const content = column.cell ? column.cell(row, number) : column.numeric ? count(column.value(row, number)) : shown(column.value(row, number));
        return make("td", { class: column.numeric ? "n" : null, title: typeof content === "string" && content.length > 24 ? content : null }, content);
      })));
    }
    if (last < numbers.length) drawn.push(space((numbers.length - last) * ROW));
    const focused = body.contains(document.activeElement) ? targetsOf(document.activeElement.closest("tr")).indexOf(document.activeElement) : -1;
    body.replaceChildren(...drawn);
    markStop();
    if (focused >= 0) focusOn(focused);
  };
  // Of all rows only one is a stop of the tab key; otherwise there would be no way past a long table.
  const markStop = () => { for (const row of body.rows) for (const target of targetsOf(row)) target.tabIndex = placeOf(row) === current ? 0 : -1; };
  const placeOf = row => Number(row.getAttribute("aria-rowindex")) - 2;
  const targetsOf = row => [...row.querySelectorAll("a, button")];
  const focusOn = target => {
    const row = [...body.rows].find(row => placeOf(row) === current), targets = row ? targetsOf(row) : [];
    (targets[Math.min(target, targets.length - 1)] || box).focus({ preventScroll: true });
  };
  const goTo = (place, target) => {
    current = Math.max(0, Math.min(numbers.length - 1, place));
    const top = current * ROW, room = box.clientHeight - 2 * ROW;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top > box.scrollTop + room) box.scrollTop = top - room;
    draw();
    focusOn(target);
  };
  box.addEventListener("keydown", event => {
    const row = event.target.closest("tbody tr"), at = row ? targetsOf(row).indexOf(event.target) : 0, page = Math.max(1, Math.floor(box.clientHeight / ROW) - 2);
    const steps = { ArrowDown: row ? 1 : 0, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -numbers.length, End: numbers.length };
    if (event.ctrlKey || event.altKey || event.metaKey || !(row || event.target === box) || !body.querySelector("a, button")) return;
    if (event.key in steps) goTo(current + steps[event.key], at);
    else if (row && (event.key === "ArrowLeft" || event.key === "ArrowRight")) focusOn(Math.max(0, at + (event.key === "ArrowLeft" ? -1 : 1)));
    else return;
    event.preventDefault();
  });
  body.addEventListener("focusin", event => {
    const place = placeOf(event.target.closest("tr"));
    if (place === current) return;
    current = place;
    markStop();
  });
  const apply = () => {
    const { state } = view, words = (state.q || "").toLowerCase().split(/\s+/).filter(Boolean);
    const tests = choices.flatMap(choice => choice.options.filter(([value]) => value === state[choice.key]).map(([, , test]) => test));
    numbers = [];
    if (!tests.length && !words.length) {
      for (let at = 0; at < rows.length; at++) numbers.push(at);
    } else {
      let at = 0;
      for (const row of rows) {
        if (tests.every(test => test(row))) {
          const text = words.length ? searched.map(column => column.value(row, at) || "").join("\n").toLowerCase() : "";
          if (words.every(word => text.includes(word))) numbers.push(at);
        }
        at++;
      }
    }
    const { key, down } = sorting(), column = columns.find(column => column.key === key);
    if (column) ordered(rows, numbers, column.order || column.value, down);
    [...head.children].forEach((cell, at) => cell.setAttribute("aria-sort", columns[at].key !== key ? "none" : down ? "descending" : "ascending"));
    status.textContent = numbers.length === rows.length ? counted(rows.length, "row") : say("{0} of {1}", count(numbers.length), counted(rows.length, "row"));
    table.setAttribute("aria-rowcount", numbers.length + 1);
    empty.hidden = numbers.length > 0;
    box.hidden = numbers.length === 0;
    box.scrollTop = 0;
    current = 0;
    draw();
  };
  const change = parameters => { view.change(parameters); apply(); };
  const choose = async number => {
    chosen = number;
    draw();
    if (number === null) { detail.replaceChildren(); return; }
    const row = rows.at(number), content = await open.of(row, number);
    if (chosen !== number) return;
    detail.replaceChildren(make("div", { class: "bar-line" }, make("h3", { tabindex: "-1" }, open.title(row)),
      make("button", { type: "button", class: "quiet", onclick: () => { view.change({ at: "" }); choose(null); box.focus(); } }, say("Close"))), ...content);
  };

  for (const column of columns) {
    const button = make("button", { type: "button", onclick: () => {
      const { key, down } = sorting();
      change({ sort: (key === column.key ? !down : column.numeric) ? `-${column.key}` : column.key });
    } }, column.name);
    head.append(make("th", { scope: "col", class: column.numeric ? "n" : null, width: column.width }, button));
  }
  let later;
  const filter = make("input", { type: "search", placeholder: say("Filter"), "aria-label": say("Filter {0}", label), value: given.q || "", oninput: () => {
    clearTimeout(later);
    later = setTimeout(() => change({ q: filter.value.trim() }), 150);
  } });
  const selects = choices.map(choice => make("label", {}, make("span", {}, choice.name), make("select", { onchange: event => change({ [choice.key]: event.target.value }) },
    make("option", { value: "" }, say("all")), choice.options.map(([value, name]) => make("option", { value, selected: given[choice.key] === value }, name)))));
  // Columns without a width of their own share the room that there is, and have some in any case.
  const least = columns.map(column => column.width?.endsWith("rem") ? parseFloat(column.width) : column.numeric ? 6 : 12);
  const table = make("table", { "aria-label": label }, make("thead", {}, head), body);
  const empty = make("p", { class: "soft", hidden: true }, rows.length ? [say("No row matches."), " "] : say("There are none."), rows.length ? make("button", { type: "button", class: "quiet", onclick: () => {
    filter.value = "";
    selects.forEach(select => { select.querySelector("select").value = ""; });
    change(Object.fromEntries([["q", ""], ...choices.map(choice => [choice.key, ""])]));
  } }, say("Show all rows")) : null);
  const copy = copier(() => csv(columns.map(column => column.key), numbers.map(number => {
    const row = rows.at(number);
    return columns.map(column => column.value(row, number));
  })));
  table.style.minWidth = `${least.reduce((sum, width) => sum + width, 0)}rem`;
  box.append(table);
  let waiting = false;
  box.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  });
  apply();
  // The room is known only once the table is in the page.
  requestAnimationFrame(() => {
    draw();
    if (open && given.at) {
      let number = 0;
      while (number < rows.length && open.id(rows.at(number)) !== given.at) number++;
      if (number < rows.length) {
        box.scrollTop = Math.max(0, numbers.indexOf(number) - 3) * ROW;
        choose(number);
      }
    }
  });
  const nodes = [make("div", { class: "controls" }, searched.length && rows.length > 5 ? filter : null, selects, make("span", { class: "spring" }), status, copy), box, empty, detail];
  nodes.choose = number => { view.change({ at: open.id(rows.at(number)) }); choose(number).then(() => detail.querySelector("h3")?.focus()); };
  return nodes;
};

// Tables that are in the page from the beginning: their headings sort, and they can be copied.
const enhance = found => {
  const body = found.tBodies[0], heads = [...found.tHead.rows[0].cells], original = [...body.rows];
  if (original.length < 2) return;
  const value = (row, at) => {
    const cell = row.cells[at], text = cell.dataset.v ?? cell.textContent.trim(), number = Number(text.replace(/[\s\u00a0]/g, ""));
    return text === "" ? null : Number.isNaN(number) ? text.toLowerCase() : number;
  };
  heads.forEach((head, at) => {
    const name = head.textContent.trim();
    if (!name) return;
    head.replaceChildren(make("button", { type: "button", onclick: () => {
      const down = head.getAttribute("aria-sort") === "none" || !head.hasAttribute("aria-sort") ? head.classList.contains("n") : head.getAttribute("aria-sort") === "ascending";
      heads.forEach(other => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const order = ordered(original, original.map((_, number) => number), row => value(row, at), down);
      body.replaceChildren(...order.map(number => original[number]));
    } }, name));
  });
  const tools = make("div", { class: "controls" }, make("span", { class: "spring" }), copier(() => csv(heads.map(head => head.textContent.trim()),
    [...body.rows].filter(row => !row.hidden).map(row => [...row.cells].map(cell => cell.textContent.trim())))));
  (found.closest(".wide") || found).before(tools);
  found.tools = tools;
};
