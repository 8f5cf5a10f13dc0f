// The issues of one cause: why they matter, what to change, which URLs have them, and where.

const codeNumbers = new Map(index.codes.map((code, number) => [code.code, number]));
const byCost = index.codes.map((_, number) => number).sort((a, b) => index.codes[b].points - index.codes[a].points);

// Where in its page a place is: line, landmark and link, as far as they are known.
const isLink = place => place[PLACE.link] !== null && place[PLACE.link] !== undefined;
const whereOf = (place, marked = text => text) => [
  place[PLACE.line] ? say("line {0}, column {1}", place[PLACE.line], place[PLACE.column]) : null,
  place[PLACE.region] ? say("in the {0}", place[PLACE.region]) : null,
  isLink(place) ? place[PLACE.link] ? say("link “{0}”", marked(place[PLACE.link])) : say("a link without a name") : null,
].filter(part => part !== null).flatMap((part, at) => at ? [", ", part] : [part]);

// The places of an issue.
const placesOf = async (code, number, issue) => {
  const places = await rowOf(`places-${code}`, index.codes[code].at, number) || [];
  if (!places.length) return [make("p", { class: "soft" }, say("It is about the URL as a whole, and not about a place in its source."))];
  const list = make("ol", { class: "places" }, places.map(place => make("li", {},
    make("p", {},
      place[PLACE.page] !== null ? inside(place[PLACE.page]) : null,
      make("span", { class: "soft" }, place[PLACE.page] !== null && (place[PLACE.line] || place[PLACE.region] || isLink(place)) ? ": " : null, whereOf(place, text => make("strong", {}, text)))),
    place[PLACE.excerpt] ? excerptOf(place[PLACE.excerpt]) : null)));
  const more = issue[ISSUE.sources] - places.length;
  return [list, more > 0 ? make("p", { class: "soft" }, say("and {0}, which are in {1}", counted(more, "further place"), "csv/inlinks.csv, issues.jsonl")) : null];
};

// The source, with the tag that is meant marked.
const excerptOf = text => {
  const end = text.startsWith("<") ? text.indexOf(">") + 1 : 0;
  return make("pre", {}, make("mark", {}, end ? text.slice(0, end) : text), end ? text.slice(end) : "");
};

const evidence = issue => {
  const found = shown(issue[ISSUE.value]), limit = shown(issue[ISSUE.limit]);
  return found && limit ? say("{0} (limit {1})", found, limit) : found || limit;
};

const aboutCode = code => [
  make("p", { class: "lead" }, code.when),
  make("div", { class: "panels" },
    code.why || code.fix ? make("div", { class: "panel" }, code.why ? [make("h3", {}, say("Why it matters")), make("p", {}, code.why)] : null, code.fix ? [make("h3", {}, say("What to change")), make("p", {}, code.fix)] : null,
      code.source ? make("p", { class: "soft" }, say("Source: {0}", code.source)) : null) : null,
    code.wrong ? make("div", { class: "panel" }, make("h3", {}, say("Example")), make("pre", { class: "wrong" }, code.wrong), code.right ? make("pre", { class: "right" }, code.right) : null) : null),
];

const issueView = async (name, view) => {
  const number = codeNumbers.get(name);
  if (number === undefined) return { title: name, nodes: [make("p", {}, say("No issue of this audit has this code."), " ", make("a", { href: "#issues" }, say("All issues")))] };
  const code = index.codes[number];
  await readUrls();
  const rows = await issuesOf(number);
  const present = new Set();
  for (const row of rows) row.forEach((value, field) => { if (value !== null && value !== 0) present.add(field); });
  const has = field => present.has(field);
  const at = byCost.indexOf(number);
  let parts;
  const columns = [
    { key: "url", name: say("URL"), value: row => urlOf(row[ISSUE.url]), cell: row => inside(row[ISSUE.url]), search: true },
    has(ISSUE.target) ? { key: "target", name: say("Other URL"), value: row => urlOf(row[ISSUE.target]), cell: row => row[ISSUE.target] === null ? "" : inside(row[ISSUE.target]), search: true, width: "26%" } : null,
    has(ISSUE.group) ? { key: "group", name: say("In common"), value: row => row[ISSUE.group], search: true, width: "20%" } : null,
    has(ISSUE.value) || has(ISSUE.limit) ? { key: "found", name: say("Found"), value: row => typeof row[ISSUE.value] === "number" ? row[ISSUE.value] : evidence(row), cell: row => evidence(row), search: true, width: "17%" } : null,
    has(ISSUE.template) ? { key: "template", name: say("In a template"), value: row => row[ISSUE.template] ? say("yes") : "", width: "7.5rem" } : null,
    has(ISSUE.severity) ? { key: "severity", name: say("Severity"), value: row => say(row[ISSUE.severity] || code.severity), cell: row => mark(row[ISSUE.severity] || code.severity), width: "6.5rem" } : null,
    index.is_compared ? { key: "new", name: say("New"), value: row => row[ISSUE.fresh] ? say("new") : "", width: "4.5rem" } : null,
    has(ISSUE.sources) ? { key: "places", name: say("Where"), value: row => row[ISSUE.sources], numeric: true, width: "7.5rem",
      cell: (row, at) => row[ISSUE.sources] ? make("button", { type: "button", class: "link", onclick: () => parts.choose(at) }, counted(row[ISSUE.sources], "place")) : "" } : null,
  ].filter(Boolean);
  const choices = [
    index.is_compared ? { key: "new", name: say("New"), options: [["yes", say("yes"), row => row[ISSUE.fresh] === 1], ["no", say("no"), row => row[ISSUE.fresh] === 0]] } : null,
    has(ISSUE.template) ? { key: "template", name: say("In a template"), options: [["yes", say("yes"), row => row[ISSUE.template] === 1], ["no", say("no"), row => row[ISSUE.template] === 0]] } : null,
  ].filter(Boolean);
  parts = table({ label: say("issues"), columns, rows, choices, view, open: {
    id: row => row[ISSUE.id],
    title: row => say("Where {0} shows it", make("em", {}, short(urlOf(row[ISSUE.url]) || ""))),
    of: async (row, number_of_row) => placesOf(number, number_of_row, row),
  } });
  const beside = (to, text) => to === undefined ? make("span", {}) : make("a", { href: linkTo("issue", index.codes[to].code) }, text(index.codes[to].title));
  return {
    title: code.title,
    nodes: [
      make("p", { class: "above" }, make("a", { href: "#issues" }, say("Issues")), " / ", make("a", { href: linkTo("issues", "", { family: code.family }) }, say(code.family)), " / ", make("code", {}, code.code)),
      make("p", { class: "about" }, mark(code.severity), " ", counted(code.issues, "issue"), code.places > code.issues ? [", ", counted(code.places, "place")] : "", code.points ? [", ", say("takes {0} points from {1}", code.points.toFixed(2), say(code.family))] : ""),
      ...aboutCode(code), ...parts,
      moreIn(`csv/${code.code}.csv`, rows.length, code.issues, "issue"),
      make("nav", { class: "beside", "aria-label": say("Other causes") }, beside(byCost[at - 1], title => `← ${title}`), beside(byCost[at + 1], title => `${title} →`)),
    ],
  };
};
