// Lists: redirects, duplicates, languages, other sites, and issues that settings accept.

const redirectsView = async view => {
  await readUrls();
  const rows = await rowsOf("redirects", index.redirects);
  const ends = { well: ["ok", say("a page")], broken: ["bad", say("an error")], loop: ["bad", say("a circle")], unknown: ["soft", say("not requested")] };
  return { title: say("Redirects"), nodes: [
    make("p", { class: "lead" }, rows.length ? say("Every redirect of the site, and where its chain ends. Links should lead to the end at once.") : say("The site has no redirects.")),
    ...table({ label: say("redirects"), rows, view, sort: "-hops", columns: [
      { key: "from", name: say("From"), value: row => urlOf(row[0]), cell: row => inside(row[0]), search: true },
      { key: "status", name: say("Status"), value: row => row[1], width: "5.5rem" },
      { key: "to", name: say("To"), value: row => urlOf(row[2]), cell: row => inside(row[2]), search: true },
      { key: "hops", name: say("Hops"), value: row => row[3], numeric: true, width: "5rem" },
      { key: "end", name: say("Ends at"), value: row => urlOf(row[4]), cell: row => row[3] > 1 && row[4] !== null ? inside(row[4]) : "", search: true },
      { key: "state", name: say("Which is"), value: row => row[6], cell: row => state(ends[row[6]][0], row[5] && row[5] >= 400 ? `${ends[row[6]][1]}: ${row[5]}` : ends[row[6]][1]), width: "9rem" },
    ], choices: [
      { key: "hops", name: say("Hops"), options: [["1", say("one"), row => row[3] === 1], ["more", say("more than one"), row => row[3] > 1]] },
      { key: "end", name: say("Ends at"), options: Object.entries(ends).map(([key, [, name]]) => [key, name, row => row[6] === key]) },
      { key: "kind", name: say("Kind"), options: [["permanent", say("permanent"), row => row[1] === 301 || row[1] === 308], ["temporary", say("temporary"), row => row[1] !== 301 && row[1] !== 308]] },
    ] }),
    moreIn("csv/redirects.csv", rows.length, index.all_redirects, "redirect"),
  ] };
};

const DUPLICATES = { "exact-duplicate": say("the same text"), "near-duplicate": say("nearly the same text"), "title-duplicate": say("the same title"), "description-duplicate": say("the same description"), "url-technical-duplicate": say("the same URL, spelled otherwise"), "url-variant-duplicate": say("a variant of the same URL") };
const duplicatesView = async view => {
  await readUrls();
  const parts = [];
  for (const name of Object.keys(DUPLICATES)) {
    const code = codeNumbers.get(name);
    if (code === undefined) continue;
    const issues = await issuesOf(code);
    parts.push({ name, length: issues.length, at: number => [name, issues.at(number)], all: () => issues.all().map(issue => [name, issue]) });
  }
  const rows = new Rows(parts), sizes = new Map();
  const key = ([name, issue]) => `${name}\n${issue[ISSUE.group] ?? issue[ISSUE.target]}`;
  for (const row of rows) sizes.set(key(row), (sizes.get(key(row)) || 0) + 1);
  return { title: say("Duplicates"), nodes: [
    make("p", { class: "lead" }, rows.length ? say("Pages that share what should be their own. Those of one group stand together.") : say("No page has a text, title, description or URL of another one.")),
    ...table({ label: say("duplicates"), rows, view, sort: "group", columns: [
      { key: "url", name: say("Page"), value: row => urlOf(row[1][ISSUE.url]), cell: row => inside(row[1][ISSUE.url]), search: true },
      { key: "kind", name: say("Has"), value: row => DUPLICATES[row[0]], width: "14rem" },
      { key: "target", name: say("As"), value: row => urlOf(row[1][ISSUE.target]), cell: row => row[1][ISSUE.target] === null ? "" : inside(row[1][ISSUE.target]), search: true },
      { key: "group", name: say("In common"), value: row => shown(row[1][ISSUE.group]), order: key, search: true, width: "24%" },
      { key: "pages", name: say("Group of"), value: row => sizes.get(key(row)), numeric: true, width: "7rem" },
    ], choices: [{ key: "kind", name: say("Has"), options: parts.map(({ name }) => [name, DUPLICATES[name], row => row[0] === name]) }] }),
  ] };
};

const FAULTS = { "no-return": say("does not link back"), non200: say("does not answer"), noindex: say("may not be indexed"), noncanonical: say("names another page as canonical"), several: say("is listed under several languages") };
const languagesView = async view => {
  await readUrls();
  const { languages, rows: located, pages, pages_left_out: pagesLeftOut, languages_left_out: languagesLeftOut } = index.languages, rows = await rowsOf("languages", located);
  const isBad = row => row.some(cell => cell && cell[1]);
  return { title: say("Languages"), nodes: [
    make("p", { class: "lead" }, rows.length ? say("{0} with translations, which the pages or sitemaps name. A row is a page in all its languages; a link leads to the page of that language.", counted(pages, "page")) : say("No page and no sitemap names a translation (hreflang).")),
    ...table({ label: say("languages"), rows, view, columns: [
      { key: "page", name: say("Page"), value: row => urlOf((row.find(cell => cell) || [])[0]), cell: row => inside((row.find(cell => cell) || [])[0]), search: true, width: languages.length > 6 ? "16rem" : null },
      ...languages.map((language, at) => ({
        key: language, name: language, width: "11rem",
        value: row => row[at] ? FAULTS[row[at][1]] || row[at][1] || say("well") : "",
        cell: row => !row[at] ? state("soft", "–") : make("a", { href: isPage(row[at][0]) ? linkTo("page", urlOf(row[at][0])) : urlOf(row[at][0]), class: row[at][1] ? "bad" : "ok", title: urlOf(row[at][0]) }, row[at][1] ? FAULTS[row[at][1]] || row[at][1] : say("well")),
      })),
    ], choices: [{ key: "state", name: say("Translations"), options: [["bad", say("with a fault"), isBad], ["well", say("without"), row => !isBad(row)]] }] }),
    pagesLeftOut || languagesLeftOut ? make("p", { class: "soft" }, say("Left out: {0} and {1}; {2} has all of them.", counted(pagesLeftOut, "page"), counted(languagesLeftOut, "rare language"), "csv/hreflang.csv")) : null,
  ] };
};

const STATES = { well: ["ok", say("answers")], moved: ["meh", say("has moved")], broken: ["bad", say("broken")], unclear: ["soft", say("cannot be told")] };
const externalView = async view => {
  await readUrls();
  const [hosts, rows] = await Promise.all([rowsOf("hosts", index.hosts), rowsOf("external", index.external)]);
  const host = row => { try { return new URL(urlOf(row[0])).host; } catch { return ""; } };
  return { title: say("Other sites"), nodes: [
    make("p", { class: "lead" }, rows.length ? say("Where the site links to, by host. What a server refuses to programs cannot be told: open such a link yourself.") : say("No link to another site was looked at.")),
    rows.length ? [
      make("h3", {}, say("Hosts")),
      ...table({ label: say("hosts"), rows: hosts, sort: "-broken", view: { state: { q: view.state.host || "" }, change: () => {} }, columns: [
        { key: "host", name: say("Host"), value: row => row[0], cell: row => make("a", { href: linkTo("external", "", { q: row[0] }) }, row[0]), search: true },
        { key: "urls", name: say("URLs"), value: row => row[1], numeric: true, width: "6rem" }, { key: "links", name: say("Links"), value: row => row[2], numeric: true, width: "6rem" },
        { key: "well", name: say("Answer"), value: row => row[3], numeric: true, width: "6rem" }, { key: "moved", name: say("Moved"), value: row => row[4], numeric: true, width: "6rem" },
        { key: "broken", name: say("Broken"), value: row => row[5], numeric: true, width: "6rem", cell: row => row[5] ? state("bad", count(row[5])) : "0" }, { key: "unclear", name: say("Cannot be told"), value: row => row[6], numeric: true, width: "9.5rem" },
      ] }),
      make("h3", {}, say("URLs")),
      ...table({ label: say("links to other sites"), rows, view, sort: "state", columns: [
        { key: "url", name: say("URL"), value: row => urlOf(row[0]), cell: row => outside(urlOf(row[0])), search: true },
        { key: "state", name: say("State"), value: row => STATES[row[5]][1], order: row => ["broken", "unclear", "moved", "well"].indexOf(row[5]), cell: row => state(STATES[row[5]][0], STATES[row[5]][1]), width: "9rem" },
        { key: "answer", name: say("Answer"), value: row => row[1] ?? row[2], width: "10rem" },
        { key: "to", name: say("Moved to"), value: row => urlOf(row[3]), cell: row => row[3] === null ? "" : outside(urlOf(row[3])), width: "26%" },
        { key: "links", name: say("Links"), value: row => row[4], numeric: true, width: "5.5rem" },
      ], choices: [{ key: "state", name: say("State"), options: Object.entries(STATES).map(([key, [, name]]) => [key, name, row => row[5] === key]) }] }),
      moreIn("csv/external.csv", rows.length, index.all_external, "URL"),
    ] : null,
  ] };
};

// Fields that the user reads from pages, and texts that are looked for. A search that finds nothing is 0 or false.
const customView = async view => {
  await readUrls();
  const { names, pages, rows: located } = index.custom || { names: [], pages: 0 }, rows = located ? await rowsOf("custom", located) : [];
  const shownValue = value => value === null ? "" : String(value);
  const isFound = (value, isSearch) => value !== null && value !== "" && !(isSearch && (value === 0 || value === false));
  return { title: say("Own fields"), nodes: [
    make("p", { class: "lead" }, names.length ? say("What the fields and searches of audit_custom found in {0}.", counted(pages, "page")) : say("No fields and searches were asked for (audit_custom).")),
    names.length ? [
      make("h3", {}, say("Fields and searches")),
      ...table({ label: say("fields and searches"), rows: names, view: { state: {}, change: () => {} }, columns: [
        { key: "name", name: say("Name"), value: row => row.name, search: true, width: "12rem" },
        { key: "query", name: say("What is read"), value: row => row.query, search: true },
        { key: "pages", name: say("Pages with it"), value: row => row.pages, numeric: true, width: "8rem" },
        { key: "without", name: say("Without"), value: row => pages - row.pages, numeric: true, width: "6.5rem" },
        { key: "errors", name: say("Faults"), value: row => row.errors, numeric: true, width: "6rem", cell: row => row.errors ? state("bad", count(row.errors)) : "0" },
        { key: "values", name: say("Most frequent values"), value: row => row.values.map(([value, number]) => `${value} (${count(number)})`).join("; "), width: "34%" },
      ] }),
      make("h3", {}, say("Pages")),
      ...table({ label: say("values of pages"), rows, view, columns: [
        { key: "page", name: say("Page"), value: row => urlOf(row[0]), cell: row => inside(row[0]), search: true },
        ...names.map((field, at) => ({ key: `f${at}`, name: field.name, value: row => shownValue(row[1][at]), order: row => row[1][at], search: true, width: names.length > 4 ? "11rem" : null })),
        { key: "errors", name: say("Faults"), value: row => row[2], search: true, width: "12rem" },
      ], choices: names.map((field, at) => ({ key: `has${at}`, name: field.name, options: [["yes", say("with it"), row => isFound(row[1][at], field.is_search)], ["no", say("without"), row => !isFound(row[1][at], field.is_search)]] })) }),
      moreIn("csv/custom.csv", rows.length, pages, "page"),
    ] : null,
  ] };
};

const ignoredView = async view => {
  await readUrls();
  const rows = await rowsOf("ignored", index.ignored);
  return { title: say("Accepted issues"), nodes: [
    make("p", { class: "lead" }, say("Issues that settings accept (audit_ignore). They cost no points and close no gate.")),
    ...table({ label: say("accepted issues"), rows, view, columns: [
      { key: "code", name: say("Code"), value: row => row[0], search: true, width: "16rem" },
      { key: "url", name: say("URL"), value: row => urlOf(row[1]), cell: row => inside(row[1]), search: true },
      { key: "reason", name: say("Reason"), value: row => row[2], search: true, width: "34%" },
    ] }),
  ] };
};
