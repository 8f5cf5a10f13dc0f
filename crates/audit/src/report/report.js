"use strict";
// Draws the views of a report from its data. Text of the web becomes text nodes only.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const view = document.getElementById("view"), tabs = document.getElementById("tabs");
  const overview = [...view.childNodes];
  const url = number => number === null || number === undefined ? "" : data.urls[number];
  const SEVERITY = { error: 0, warning: 1, notice: 2 };
  const PAGE = { url: 0, status: 1, type: 2, bytes: 3, ttfb: 4, depth: 5, rank: 6, inlinks: 7, own: 8, other: 9, indexable: 10, title: 11, description: 12, h1: 13, words: 14, lang: 15, issues: 16, canonical: 17 };
  const ISSUE = { code: 0, severity: 1, url: 2, target: 3, group: 4, value: 5, limit: 6, sources: 7, template: 8, fresh: 9, places: 10 };
  const pageOf = new Map(data.pages.map(page => [page[PAGE.url], page]));
  const SVG = "http://www.w3.org/2000/svg";

  // An element with attributes and children; strings become text.
  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
    }
    for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) element.append(child);
    return element;
  };
  const shape = (name, attributes, ...children) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const shown = value => value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  const number = value => value === null || value === undefined ? "" : value.toLocaleString("en");
  const tag = severity => make("span", { class: "tag " + severity }, severity);
  // Links of the audited site open only if browsers may follow them.
  const outside = address => /^https?:/.test(address) ? make("a", { href: address, rel: "noreferrer nofollow" }, address) : address;
  const inspect = (at, text) => make("a", { href: "#page/" + at }, text || url(at));
  const csvCell = value => {
    let text = shown(value);
    // A cell that begins like this would be a formula in a spreadsheet.
    if (/^[=+\-@\t\r]/.test(text) && !/^-?\d+(\.\d+)?$/.test(text)) text = "'" + text;
    return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
  };

  // A table whose visible rows alone are in the document. A column: name, value of a row, and cell if that is not the value as text.
  const ROW = 35;
  const table = (columns, rows, state) => {
    let sorted = rows.slice(), by = state.sort, down = state.down;
    const body = make("tbody"), head = make("tr");
    const box = make("div", { class: "rows", tabindex: "0", role: "region", "aria-label": state.label });
    const count = make("span", { class: "soft", role: "status" });
    const filter = make("input", { type: "search", placeholder: "Filter", "aria-label": "Filter " + state.label, value: state.filter || "", oninput: () => { state.filter = filter.value; change(); } });
    const draw = () => {
      const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 10), last = Math.min(sorted.length, first + Math.ceil((box.clientHeight || 700) / ROW) + 20);
      const gap = rows => make("tr", { "aria-hidden": "true" }, make("td", { colspan: columns.length, style: `height:${rows * ROW}px;padding:0;border:0` }));
      body.replaceChildren(gap(first), ...sorted.slice(first, last).map(row => make("tr", {}, columns.map(column => {
        const value = column.value(row);
        return make("td", { class: column.n ? "n" : null, title: shown(value).slice(0, 300) }, column.cell ? column.cell(row) : column.n ? number(value) : shown(value));
      }))), gap(sorted.length - last));
    };
    const change = () => {
      const wanted = filter.value.toLowerCase();
      sorted = wanted ? rows.filter(row => columns.some(column => shown(column.value(row)).toLowerCase().includes(wanted))) : rows.slice();
      if (by !== undefined) {
        const value = columns[by].value;
        sorted.sort((a, b) => {
          const [x, y] = [value(a), value(b)];
          const empty = v => v === null || v === undefined || v === "";
          if (empty(x) || empty(y)) return empty(x) - empty(y);
          return (down ? -1 : 1) * (typeof x === "number" && typeof y === "number" ? x - y : String(x) < String(y) ? -1 : String(x) > String(y) ? 1 : 0);
        });
      }
      count.textContent = sorted.length === rows.length ? `${number(rows.length)} rows` : `${number(sorted.length)} of ${number(rows.length)} rows`;
      box.scrollTop = 0;
      draw();
    };
    columns.forEach((column, at) => {
      const cell = make("th", { scope: "col", class: column.n ? "n" : null, style: column.width ? `width:${column.width}` : null }, make("button", { type: "button", onclick: () => {
        down = by === at ? !down : Boolean(column.n);
        by = at;
        [...head.children].forEach((other, number) => other.setAttribute("aria-sort", number === at ? (down ? "descending" : "ascending") : "none"));
        change();
      } }, column.name));
      head.append(cell);
    });
    if (by !== undefined) head.children[by].setAttribute("aria-sort", down ? "descending" : "ascending");
    const copy = make("button", { type: "button", onclick: async () => {
      const lines = [columns.map(column => csvCell(column.name)), ...sorted.map(row => columns.map(column => csvCell(column.value(row))))];
      const text = lines.map(line => line.join(",")).join("\r\n") + "\r\n";
      try { await navigator.clipboard.writeText(text); copy.textContent = "Copied"; }
      catch { const area = make("textarea", {}, text); document.body.append(area); area.select(); document.execCommand("copy"); area.remove(); copy.textContent = "Copied"; }
      setTimeout(() => { copy.textContent = "Copy as CSV"; }, 1500);
    } }, "Copy as CSV");
    box.append(make("table", {}, make("thead", {}, head), body));
    box.addEventListener("scroll", () => requestAnimationFrame(draw));
    change();
    requestAnimationFrame(draw);
    return [make("div", { class: "tools" }, filter, copy, count), box];
  };

  // Bars with their numbers, and the same as a table for readers of the screen.
  const bars = (label, pairs) => {
    const most = Math.max(1, ...pairs.map(pair => pair[1])), height = 22 * pairs.length;
    const drawing = shape("svg", { class: "chart", viewBox: `0 0 520 ${height}`, width: "520", height, "aria-hidden": "true" }, ...pairs.flatMap(([name, count], at) => [
      shape("text", { x: 110, y: 22 * at + 15, "text-anchor": "end" }, String(name)),
      shape("rect", { x: 118, y: 22 * at + 4, height: 14, width: Math.max(1, 320 * count / most) }),
      shape("text", { x: 124 + Math.max(1, 320 * count / most), y: 22 * at + 15 }, number(count)),
    ]));
    return [make("h3", {}, label), drawing, make("details", {}, make("summary", {}, "As a table"), make("table", {}, make("tbody", {}, pairs.map(([name, count]) => make("tr", {}, make("td", {}, String(name)), make("td", { class: "n" }, number(count)))))))];
  };
  const tally = (rows, name) => {
    const counts = new Map();
    for (const row of rows) { const key = name(row); counts.set(key, (counts.get(key) || 0) + 1); }
    return [...counts].sort((a, b) => b[1] - a[1]);
  };

  const places = issue => issue[ISSUE.places].map(([page, line, column, link, region, excerpt]) => make("div", {},
    make("div", {}, page !== null ? inspect(page) : null, line ? ` line ${line}, column ${column}` : "", region ? ` in ${region}` : "", link ? ` “${link}”` : ""),
    excerpt ? make("pre", {}, make("mark", {}, excerpt.slice(0, 1)), excerpt.slice(1)) : null));
  const evidence = issue => [shown(issue[ISSUE.value]), issue[ISSUE.limit] !== null && issue[ISSUE.limit] !== undefined ? `limit ${shown(issue[ISSUE.limit])}` : ""].filter(Boolean).join("; ");

  const views = {
    overview: () => [...overview, ...data.left_out.map(text => make("p", { class: "note" }, text))],
    issues: code => {
      const groups = new Map();
      for (const issue of data.issues) { if (!groups.has(issue[0])) groups.set(issue[0], []); groups.get(issue[0]).push(issue); }
      const order = [...groups].sort((a, b) => SEVERITY[a[1][0][1]] - SEVERITY[b[1][0][1]] || b[1].length - a[1].length);
      const chosen = groups.has(code) ? code : order.length ? order[0][0] : null;
      const list = make("ul", { class: "codes" }, order.map(([name, issues]) => make("li", {}, make("a", { href: "#issues/" + name, "aria-current": name === chosen ? "true" : null },
        make("span", { class: issues[0][1] }, name), make("span", { class: "soft" }, number(issues.length))))));
      if (!chosen) return [make("h2", {}, "Issues"), make("p", {}, "There are none.")];
      const about = data.codes[chosen] || {}, rows = groups.get(chosen);
      const columns = [
        { name: "URL", value: row => url(row[ISSUE.url]), cell: row => inspect(row[ISSUE.url]) },
        { name: "Target or group", value: row => row[ISSUE.target] !== null ? url(row[ISSUE.target]) : row[ISSUE.group] || "", width: "24%" },
        { name: "Found", value: evidence, width: "20%" },
        { name: "Places", value: row => row[ISSUE.sources], n: true, width: "6rem" },
      ];
      if (rows.some(row => row[ISSUE.fresh] !== null)) columns.push({ name: "New", value: row => row[ISSUE.fresh] ? "new" : "", width: "5rem" });
      const detail = make("section", { "aria-label": chosen }, make("h2", {}, chosen, " ", tag(rows[0][1])),
        make("dl", {}, [["When", about.when], ["Why", about.why], ["What to change", about.fix], ["Source", about.source]].filter(pair => pair[1]).flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)])),
        about.wrong ? make("p", {}, "Wrong ", make("code", {}, about.wrong)) : null, about.right ? make("p", {}, "Right ", make("code", {}, about.right)) : null,
        table(columns, rows, { label: "issues of " + chosen }),
        make("h3", {}, "Where"), rows.slice(0, 50).map(row => make("details", {}, make("summary", {}, url(row[ISSUE.url]), row[ISSUE.template] ? " (in a template: one change mends all)" : ""), row[ISSUE.places].length ? places(row) : make("p", { class: "soft" }, "It is about the URL as a whole."), row[ISSUE.sources] > row[ISSUE.places].length ? make("p", { class: "soft" }, `${number(row[ISSUE.sources])} places in all; issues.jsonl and csv/inlinks.csv have more.`) : null)),
        rows.length > 50 ? make("p", { class: "soft" }, `The places of the first 50 are shown.`) : null);
      return [make("div", { class: "split" }, make("nav", { "aria-label": "Issues", style: "display:block" }, list), detail)];
    },
    pages: () => [make("h2", {}, "Pages"), table([
      { name: "URL", value: row => url(row[PAGE.url]), cell: row => inspect(row[PAGE.url]) },
      { name: "Status", value: row => row[PAGE.status], width: "5rem", n: true }, { name: "Issues", value: row => row[PAGE.issues], n: true, width: "5rem" },
      { name: "Title", value: row => row[PAGE.title], width: "22%" }, { name: "Words", value: row => row[PAGE.words], n: true, width: "5rem" },
      { name: "Depth", value: row => row[PAGE.depth], n: true, width: "5rem" }, { name: "Rank", value: row => row[PAGE.rank], n: true, width: "5rem" },
      { name: "Links in", value: row => row[PAGE.inlinks], n: true, width: "6rem" }, { name: "Bytes", value: row => row[PAGE.bytes], n: true, width: "7rem" },
      { name: "ms", value: row => row[PAGE.ttfb], n: true, width: "5rem" }, { name: "Indexable", value: row => row[PAGE.indexable] ? "yes" : "no", width: "6rem" },
    ], data.pages, { label: "pages", sort: 2, down: true })],
    page: at => {
      const page = pageOf.get(Number(at)), own = data.issues.filter(issue => issue[ISSUE.url] === Number(at) || issue[ISSUE.places].some(place => place[0] === Number(at)));
      const incoming = data.links.filter(link => link[1] === Number(at)), outgoing = data.links.filter(link => link[0] === Number(at));
      const facts = page ? [["Status", page[1]], ["Type", page[2]], ["Title", page[11]], ["Description", page[12]], ["Heading", page[13]], ["Language", page[15]], ["Canonical", page[17]], ["Words", number(page[14])], ["Bytes", number(page[3])], ["First byte", page[4] + " ms"], ["Depth", page[5]], ["Rank", page[6]], ["Indexable", page[10] ? "yes" : "no"]] : [];
      const list = (label, links, end) => [make("h3", {}, `${label} (${number(links.length)})`), table([{ name: "URL", value: link => url(link[end]), cell: link => inspect(link[end]) }, { name: "Text", value: link => link[2], width: "35%" }, { name: "Line", value: link => link[3], n: true, width: "5rem" }], links, { label })];
      return [make("h2", { class: "wrap" }, outside(url(at) || "")), page ? null : make("p", { class: "soft" }, "It was not fetched as a page of the site."),
        make("dl", {}, facts.filter(pair => pair[1] !== null && pair[1] !== undefined && pair[1] !== "").flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))])),
        page && page[11] ? make("section", {}, make("h3", {}, "In search results"), make("div", { class: "card" }, make("span", {}, url(at)), make("a", { href: "#page/" + at }, page[11].slice(0, 60)), make("span", {}, (page[12] || "").slice(0, 160)))) : null,
        make("h3", {}, `Issues (${own.length})`), own.map(issue => make("details", { open: own.length < 6 ? "" : null }, make("summary", {}, tag(issue[1]), " ", make("a", { href: "#issues/" + issue[0] }, issue[0]), " ", evidence(issue)), places(issue))),
        list("Links to it", incoming, 0), list("Links from it", outgoing, 1)];
    },
    structure: () => {
      const folders = new Map();
      for (const page of data.pages) {
        let address; try { address = new URL(url(page[PAGE.url])); } catch { continue; }
        const parts = address.pathname.split("/").slice(0, -1);
        for (let depth = 1; depth <= parts.length; depth++) {
          const key = address.host + parts.slice(0, depth).join("/") + "/";
          const folder = folders.get(key) || { name: key, pages: 0, issues: 0 };
          folder.pages++; folder.issues += page[PAGE.issues]; folders.set(key, folder);
        }
      }
      const depths = tally(data.pages.filter(page => page[PAGE.depth] !== null), page => page[PAGE.depth]).sort((a, b) => a[0] - b[0]);
      const ranked = data.pages.filter(page => page[PAGE.rank] !== null).sort((a, b) => b[PAGE.rank] - a[PAGE.rank]).slice(0, 20);
      return [make("h2", {}, "Structure"), ...bars("Pages by clicks from the start", depths),
        make("h3", {}, "Folders"), table([{ name: "Folder", value: row => row.name }, { name: "Pages", value: row => row.pages, n: true, width: "7rem" }, { name: "Issues", value: row => row.issues, n: true, width: "7rem" }], [...folders.values()], { label: "folders", sort: 1, down: true }),
        make("h3", {}, "Most linked pages by PageRank"), make("table", {}, make("tbody", {}, ranked.map(page => make("tr", {}, make("td", { class: "n" }, String(page[PAGE.rank])), make("td", { class: "url" }, inspect(page[PAGE.url]))))))];
    },
    responses: () => {
      const times = [[100, "up to 100 ms"], [300, "up to 300 ms"], [800, "up to 800 ms"], [2000, "up to 2 s"], [Infinity, "above 2 s"]];
      const class_of = page => times.find(time => page[PAGE.ttfb] <= time[0])[1];
      const by_time = new Map(tally(data.pages, class_of));
      return [make("h2", {}, "Responses"), ...bars("Status", tally(data.pages, page => page[PAGE.status]).sort((a, b) => a[0] - b[0])), ...bars("Type", tally(data.pages, page => page[PAGE.type] || "none")),
        ...bars("Time to the first byte", times.map(time => [time[1], by_time.get(time[1]) || 0]))];
    },
    duplicates: () => {
      const groups = data.issues.filter(issue => /duplicate/.test(issue[0]) && issue[ISSUE.group]);
      return [make("h2", {}, "Duplicates"), groups.length ? table([{ name: "Kind", value: row => row[0], width: "14rem" }, { name: "In common", value: row => row[ISSUE.group] }, { name: "URL", value: row => url(row[ISSUE.url]), cell: row => inspect(row[ISSUE.url]) }], groups, { label: "duplicates", sort: 1 }) : make("p", {}, "None were found.")];
    },
    redirects: () => [make("h2", {}, "Redirects"), data.redirects.length ? table([{ name: "From", value: row => url(row[0]), cell: row => inspect(row[0]) }, { name: "Status", value: row => row[1], n: true, width: "6rem" }, { name: "Hops", value: row => row[2], n: true, width: "6rem" }, { name: "Ends at", value: row => row[5] ? "a loop" : url(row[3]) }, { name: "Answer", value: row => row[4], n: true, width: "6rem" }], data.redirects, { label: "redirects" }) : make("p", {}, "There are none.")],
    external: () => [make("h2", {}, "Links to other sites"), data.external.length ? table([{ name: "URL", value: row => url(row[0]), cell: row => inspect(row[0]) }, { name: "Answer", value: row => row[1] !== null ? row[1] : row[2], width: "12rem" }, { name: "Links", value: row => row[3], n: true, width: "6rem" }], data.external, { label: "links to other sites" }) : make("p", {}, "None were looked at.")],
  };
  const NAMES = { overview: "Overview", issues: "Issues", pages: "Pages", structure: "Structure", responses: "Responses", duplicates: "Duplicates", redirects: "Redirects", external: "Other sites" };

  const show = focus => {
    const hash = location.hash.slice(1), slash = hash.indexOf("/");
    let name = slash < 0 ? hash : hash.slice(0, slash);
    const rest = slash < 0 ? "" : decodeURIComponent(hash.slice(slash + 1));
    if (!Object.hasOwn(views, name)) name = "overview";
    tabs.replaceChildren(...Object.entries(NAMES).map(([key, text]) => make("a", { href: "#" + key, "aria-current": key === name || (name === "page" && key === "pages") ? "page" : null }, text)));
    view.replaceChildren(...views[name](rest).flat(Infinity).filter(Boolean));
    if (focus) { view.focus(); scrollTo(0, 0); }
  };
  addEventListener("hashchange", () => show(true));

  const theme = document.getElementById("theme"), root = document.documentElement;
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const name_theme = () => { theme.textContent = dark() ? "Light" : "Dark"; };
  theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; name_theme(); });
  name_theme();
  // On paper: the first view, and each issue with its first URLs.
  addEventListener("beforeprint", () => {
    const groups = new Map();
    for (const issue of data.issues) { if (!groups.has(issue[0])) groups.set(issue[0], []); groups.get(issue[0]).push(issue); }
    view.replaceChildren(...overview, make("h2", {}, "Issues"), ...[...groups].map(([name, issues]) => make("section", {}, make("h3", {}, `${name} (${number(issues.length)})`), make("p", {}, (data.codes[name] || {}).fix || ""), make("ul", {}, issues.slice(0, 20).map(issue => make("li", { class: "wrap" }, url(issue[ISSUE.url])))), issues.length > 20 ? make("p", {}, `and ${number(issues.length - 20)} more`) : null)));
  });
  addEventListener("afterprint", () => show(false));
  show(false);
})();
