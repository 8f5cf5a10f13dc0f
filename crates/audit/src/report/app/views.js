// Which view is shown: the fragment says it, with all that was filtered and sorted.

const main = document.getElementById("view"), drawn = document.getElementById("drawn"), menu = [...document.querySelectorAll("nav a[href^='#']")];
const made = new Map([...document.querySelectorAll("section.view[id^='view-']")].map(section => [section.id.slice(5), section]));
const drawing = { pages: (rest, view) => pagesView(view), page: rest => pageView(rest), issue: (rest, view) => issueView(rest, view), redirects: (rest, view) => redirectsView(view),
  duplicates: (rest, view) => duplicatesView(view), languages: (rest, view) => languagesView(view), external: (rest, view) => externalView(view), custom: (rest, view) => customView(view), ignored: (rest, view) => ignoredView(view) };
const around = { page: "pages", issue: "issues" };
const title = document.title;

const decoded = text => { try { return decodeURIComponent(text); } catch { return text; } };
const parsed = () => {
  const [path, query = ""] = location.hash.slice(1).split(/\?(.*)/s);
  const [name, rest = ""] = path.split(/\/(.*)/s);
  const state = Object.create(null);
  for (const pair of query.split("&").filter(Boolean)) { const [key, value = ""] = pair.split(/=(.*)/s); state[decoded(key)] = decoded(value); }
  return { name: made.has(name) || Object.hasOwn(drawing, name) ? name : "overview", rest: decoded(rest), state };
};

// The filter above the table of causes.
const filterCauses = state => {
  const section = made.get("issues"), found = section.querySelector("table[data-filter]");
  if (!found) return;
  const rows = [...found.tBodies[0].rows], choices = { severity: ["error", "warning", "notice"], family: [...new Set(rows.map(row => row.dataset.family))].sort() };
  const change = parameters => {
    Object.assign(state, parameters);
    history.replaceState(null, "", linkTo("issues", "", state));
    apply();
  };
  const apply = () => {
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !Object.keys(choices).every(key => !state[key] || ` ${row.dataset[key]} `.includes(` ${state[key]} `)) || !(state.q || "").toLowerCase().split(/\s+/).every(word => text.includes(word));
    }
  };
  const controls = Object.entries(choices).map(([key, names]) => make("label", {}, make("span", {}, key === "family" ? say("Family") : say("Severity")),
    make("select", { onchange: event => change({ [key]: event.target.value }) }, make("option", { value: "" }, say("all")), names.map(name => make("option", { value: name, selected: state[key] === name }, say(name))))));
  const filter = make("input", { type: "search", placeholder: say("Filter"), "aria-label": say("Filter {0}", say("causes")), value: state.q || "", oninput: () => change({ q: filter.value.trim() }) });
  found.chooser?.remove();
  found.chooser = make("span", { class: "chooser" }, filter, controls);
  found.tools?.prepend(found.chooser);
  apply();
};

let turn = 0;
const show = async focus => {
  const { name, rest, state } = parsed(), mine = ++turn;
  for (const link of menu) {
    const key = link.getAttribute("href").slice(1);
    if (key === (around[name] || name)) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  for (const [key, section] of made) section.hidden = key !== name;
  drawn.hidden = made.has(name);
  let heading = made.get(name)?.querySelector("h2");
  if (name === "issues") filterCauses(state);
  if (!made.has(name)) {
    const slow = setTimeout(() => { if (mine === turn) drawn.replaceChildren(make("p", { class: "soft", role: "status" }, say("Reading …"))); }, 150);
    const view = { state, change: parameters => {
      Object.assign(state, parameters);
      history.replaceState(null, "", linkTo(name, rest, state));
    } };
    let content;
    try { content = await drawing[name](rest, view); } catch (error) {
      content = { title: say("This view cannot be shown"), nodes: [make("div", { class: "banner error" }, error.message)] };
    }
    clearTimeout(slow);
    if (mine !== turn) return;
    heading = make("h2", {}, content.title);
    drawn.replaceChildren(heading, ...content.nodes.flat(Infinity).filter(Boolean));
  }
  document.title = name === "overview" ? title : `${heading.textContent} – ${title}`;
  if (focus) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
};

document.documentElement.classList.add("scripts");
for (const found of document.querySelectorAll("table[data-sort]")) enhance(found);
for (const part of document.querySelectorAll(".scripted")) part.hidden = false;

// Dark and light: as the system has it, unless the reader chooses.
const root = document.documentElement, theme = document.getElementById("theme");
const remembered = value => { try { if (value) localStorage.setItem("huntsman-theme", value); return localStorage.getItem("huntsman-theme"); } catch { return value; } };
const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
const nameTheme = () => { theme.textContent = isDark() ? say("Light") : say("Dark"); };
if (["dark", "light"].includes(remembered())) root.dataset.theme = remembered();
theme.addEventListener("click", () => { root.dataset.theme = remembered(isDark() ? "light" : "dark"); nameTheme(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);
nameTheme();
document.getElementById("print").addEventListener("click", () => print());

// A fragment is the name of a view here, so the browser would not skip to the content: the script moves the focus.
document.querySelector(".skip").addEventListener("click", event => { event.preventDefault(); main.focus(); });

// A slash leads to the filter of the view.
addEventListener("keydown", event => {
  if (event.key !== "/" || event.ctrlKey || event.altKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const filter = [...document.querySelectorAll("input[type=search]")].find(input => input.offsetParent);
  if (filter) { event.preventDefault(); filter.focus(); }
});

addEventListener("hashchange", () => show(true));
show(false);
