// Elements. Text from the web becomes text nodes, and only http URLs become links.

const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "width") element.style.width = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
  return element;
};

// A text in which `{0}` and so on stand for the parts, which may be elements.
const say = (text, ...parts) => {
  const pieces = text.split(/\{(\d)\}/).map((piece, at) => at % 2 ? parts[piece] : piece);
  return parts.some(part => part instanceof Node || Array.isArray(part)) ? pieces : pieces.join("");
};

// Numbers as the rest of the page writes them.
const count = number => number === null || number === undefined ? "" : String(number).replace(/\B(?=(\d{3})+(?!\d))/g, "\u00a0");
const counted = (number, noun) => say(`{0} ${noun}${number === 1 ? "" : "s"}`, count(number));
const size = number => {
  if (number === null || number === undefined) return "";
  const units = ["B", "kB", "MB", "GB"];
  let unit = 0;
  while (number >= 1000 && unit < units.length - 1) { number /= 1000; unit++; }
  return `${unit === 0 || number >= 100 ? Math.round(number) : number.toFixed(1)} ${units[unit]}`;
};
const cut = (text, length) => text.length > length ? text.slice(0, length - 1) + "…" : text;

const fragment = text => encodeURIComponent(text).replace(/%2F/g, "/").replace(/%3A/g, ":");
const linkTo = (view, rest = "", parameters = {}) => {
  const pairs = Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = pairs.map(([key, value]) => `${key}=${fragment(String(value))}`).join("&");
  return `#${view}${rest ? "/" + fragment(rest) : ""}${query ? "?" + query : ""}`;
};

// A URL without its host, if that is the one that was audited.
const short = url => {
  const at = url.indexOf(`://${index.site}`);
  const path = at >= 0 ? url.slice(at + 3 + index.site.length) : null;
  return path !== null && path.startsWith("/") ? path : url;
};

const outside = (url, text = url) => /^https?:\/\//i.test(url)
  ? make("a", { href: url, rel: "noreferrer nofollow noopener", target: "_blank", class: "outside", title: url }, text) : make("span", { title: url }, text);
const inside = number => {
  const url = urlOf(number);
  if (url === null || url === undefined) return make("span", { class: "soft" }, say("not in this report"));
  return isPage(number) ? make("a", { href: linkTo("page", url), title: url }, short(url)) : outside(url, short(url));
};

const mark = severity => make("span", { class: `mark ${severity}` }, say(severity));
const state = (kind, text) => make("span", { class: kind }, text);
const statusOf = status => status === null || status === undefined ? state("bad", say("none")) : state(status < 300 ? "ok" : status < 400 ? "meh" : "bad", String(status));

const shown = value => value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);

const facts = pairs => make("dl", { class: "facts" }, pairs
  .filter(([, value]) => value !== null && value !== undefined && value !== "")
  .map(([name, value]) => [make("dt", {}, name), make("dd", {}, value instanceof Node ? value : Array.isArray(value) ? value : String(value))]));
const moreIn = (file, there, all, noun) => there < all ? make("p", { class: "soft" }, say("{0} of {1} are here; {2} has all of them.", count(there), counted(all, noun), file)) : null;
const panel = (title, ...content) => make("div", { class: "panel" }, make("h3", {}, title), ...content);
// A panel of facts; none if nothing is known.
const factPanel = (title, pairs) => { const list = facts(pairs); return list.children.length ? panel(title, list) : null; };
