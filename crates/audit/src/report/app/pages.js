// Pages: the table of all, and what is known of one.

const reasonOf = row => row[PAGE.reason] === 0 ? "" : say(index.reasons[row[PAGE.reason] - 1]);
const named = (list, number) => number === null || number === undefined ? null : list[number];

const pagesView = async view => {
  await readUrls();
  const rows = await rowsOf("pages", index.pages);
  const [found, clicks] = [new Set(), new Set()];
  for (const row of rows) {
    found.add(Math.floor(row[PAGE.status] / 100));
    if (row[PAGE.depth] !== null) clicks.add(row[PAGE.depth]);
  }
  const classes = [...found].sort(), depths = [...clicks].sort((a, b) => a - b);
  const yesNo = test => [["yes", say("yes"), test], ["no", say("no"), row => !test(row)]];
  const columns = [
    { key: "url", name: say("Page"), value: (row, number) => urls[number], cell: (row, number) => inside(number), search: true, width: "17rem" },
    { key: "title", name: say("Title"), value: row => row[PAGE.title], search: true, width: "14rem" },
    { key: "status", name: say("Status"), value: row => row[PAGE.status], cell: row => statusOf(row[PAGE.status]), width: "5.5rem" },
    { key: "errors", name: say("Errors"), value: row => row[PAGE.errors], numeric: true, width: "5.2rem" },
    { key: "warnings", name: say("Warnings"), value: row => row[PAGE.warnings], numeric: true, width: "6.2rem" },
    { key: "depth", name: say("Clicks"), value: row => row[PAGE.depth], numeric: true, width: "5rem" },
    { key: "rank", name: say("PageRank"), value: row => row[PAGE.rank], cell: row => row[PAGE.rank] === null ? "" : row[PAGE.rank].toFixed(1), numeric: true, width: "6.2rem" },
    { key: "inlinks", name: say("Links in"), value: row => row[PAGE.inlinks], numeric: true, width: "5.6rem" },
    { key: "words", name: say("Words"), value: row => row[PAGE.html] ? row[PAGE.words] : null, numeric: true, width: "5rem" },
    { key: "bytes", name: say("Size"), value: row => row[PAGE.bytes], cell: row => size(row[PAGE.bytes]), numeric: true, width: "6rem" },
    { key: "ttfb", name: say("First byte"), value: row => row[PAGE.ttfb], cell: row => `${Math.round(row[PAGE.ttfb])} ms`, numeric: true, width: "6rem" },
    { key: "index", name: say("Indexable"), value: row => row[PAGE.reason] === 0 ? say("yes") : say("no: {0}", reasonOf(row)), width: "7rem" },
  ];
  const choices = [
    { key: "status", name: say("Status"), options: classes.map(digit => [`${digit}xx`, `${digit}xx`, row => Math.floor(row[PAGE.status] / 100) === digit]) },
    { key: "index", name: say("Indexable"), options: yesNo(row => row[PAGE.reason] === 0) },
    { key: "issues", name: say("With"), options: [["errors", say("errors"), row => row[PAGE.errors] > 0], ["warnings", say("warnings"), row => row[PAGE.warnings] > 0], ["none", say("neither"), row => row[PAGE.errors] + row[PAGE.warnings] === 0]] },
    { key: "depth", name: say("Clicks"), options: [...depths.slice(0, 12).map(depth => [String(depth), String(depth), row => row[PAGE.depth] === depth]), ["none", say("not linked"), row => row[PAGE.depth] === null]] },
    { key: "sitemap", name: say("In a sitemap"), options: yesNo(row => row[PAGE.listed] === 1) },
  ];
  return {
    title: say("Pages"),
    nodes: [
      make("p", { class: "lead" }, say("Every URL of the site that answered. A page opens with all that is known of it.")),
      ...table({ label: say("pages"), columns, rows, choices, view, sort: "-errors" }),
      index.pages.rows < index.all ? make("p", { class: "soft" }, say("The worst {0} of {1} pages are here; {2} has all of them.", count(index.pages.rows), count(index.all), "csv/pages.csv")) : null,
    ],
  };
};

// The pages on the way from the start with the fewest clicks.
const wayTo = async number => {
  const way = [];
  for (let at = number; at !== null && at !== undefined && !way.includes(at) && way.length < 50;) {
    way.unshift(at);
    at = (await rowOf("details", index.details, at))?.[DETAIL.parent];
  }
  return way;
};

// How a page may look in the results of a search.
const previewOf = (url, row) => {
  let address = [url];
  try { const parsed = new URL(url); address = [parsed.host, ...parsed.pathname.split("/").filter(Boolean).map(part => { try { return decodeURIComponent(part); } catch { return part; } })]; } catch { /* shown as it is */ }
  return make("div", { class: "preview" }, make("span", {}, address.join(" › ")), make("strong", {}, cut(row[PAGE.title] || say("No title"), 60)), make("p", {}, cut(row[PAGE.description] || say("No description: search engines choose a text of the page."), 160)));
};

const listed = (label, columns, rows, view) => table({ label, columns, rows, view: { state: {}, change: parameters => Object.assign(view, parameters) } });

const ownIssues = async (pairs, number) => {
  const lines = [];
  for (const [code, row] of pairs) {
    const about = index.codes[code], issue = await rowOf(`issues-${code}`, about.rows, row);
    if (!issue) continue;
    // Places are read when somebody wants to see them: there may be a file for each of these issues.
    const showPlaces = async event => {
      const found = event.currentTarget;
      if (!found.open || found.dataset.read) return;
      found.dataset.read = "yes";
      const places = (await rowOf(`places-${code}`, about.at, row) || []).filter(place => place[PLACE.page] === null || place[PLACE.page] === number);
      found.append(...places.slice(0, 10).map(place => make("div", {}, place[PLACE.line] ? make("p", { class: "soft" }, whereOf(place)) : null, place[PLACE.excerpt] ? excerptOf(place[PLACE.excerpt]) : null)));
    };
    const severity = issue[ISSUE.severity] || about.severity;
    lines.push({ severity, node: make("details", { class: "issue", ontoggle: showPlaces },
      make("summary", {}, mark(severity), " ", make("strong", {}, about.title), " ", make("span", { class: "soft" }, [issue[ISSUE.url] !== number ? short(urlOf(issue[ISSUE.url]) || "") : "", issue[ISSUE.target] !== null ? short(urlOf(issue[ISSUE.target]) || "") : "", evidence(issue)].filter(Boolean).join(" · "))),
      make("p", {}, about.fix, " ", make("a", { href: linkTo("issue", about.code, { at: issue[ISSUE.id] }) }, say("All issues of this kind")))) });
  }
  const order = ["error", "warning", "notice"];
  return lines.sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity)).map(line => line.node);
};

const pageView = async url => {
  await readUrls();
  const number = pageNumber(url);
  if (number === null) {
    return { title: short(url), nodes: [make("p", { class: "lead" }, say("This URL is no page of this report: it did not answer, belongs to another site, or was left out.")), make("p", {}, outside(url))] };
  }
  const [row, detail, links, headers] = await Promise.all([rowOf("pages", index.pages, number), rowOf("details", index.details, number), rowOf("links", index.links, number), rowOf("headers", index.headers, number)]);
  const [about, shows, way] = await Promise.all([ownIssues(detail[DETAIL.about], number), ownIssues(detail[DETAIL.shows], number), wayTo(number)]);
  const yes = row[PAGE.reason] === 0;
  const incoming = detail[DETAIL.links], [numberOfLinks, outgoing] = links || [[0, 0], []];
  const onlyLinks = outgoing.filter(link => link[1] === "link"), files = outgoing.filter(link => link[1] !== "link");
  const text = at => ({ key: "text", name: say("Text of the link"), value: link => link[at], search: true, width: "28%" });
  const line = at => ({ key: "line", name: say("Line"), value: link => link[at] || null, numeric: true, width: "5rem" });
  const nofollow = at => ({ key: "rel", name: say("Rel"), value: link => link[at] ? "nofollow" : "", width: "6rem" });
  const head = (name, all, there) => make("h3", {}, name, " ", make("span", { class: "soft" }, count(all), all > there ? [", ", say("of which {0} are shown", count(there))] : ""));
  const other = row[PAGE.html] ? null : say("It is no HTML page.");
  return {
    title: short(url),
    nodes: [
      make("p", { class: "above" }, make("a", { href: "#pages" }, say("Pages")), " / ", outside(url)),
      make("p", { class: "about" }, statusOf(row[PAGE.status]), " ", yes ? state("ok", say("indexable")) : state("meh", say("not indexable: {0}", reasonOf(row))), " ", row[PAGE.listed] ? state("ok", say("in a sitemap")) : state("soft", say("in no sitemap")), other ? ` ${other}` : ""),
      make("div", { class: "panels" },
        factPanel(say("Facts"), [
          [say("Title"), row[PAGE.title] ? say("{0} ({1} characters)", row[PAGE.title], [...row[PAGE.title]].length) : row[PAGE.html] ? say("none") : null],
          [say("Description"), row[PAGE.description] ? say("{0} ({1} characters)", row[PAGE.description], [...row[PAGE.description]].length) : row[PAGE.html] ? say("none") : null],
          [say("Main heading"), row[PAGE.h1] || (row[PAGE.html] ? say("none") : null)],
          [say("Language"), named(index.page_languages, row[PAGE.lang]) || (row[PAGE.html] ? say("not stated") : null)],
          [say("Words"), row[PAGE.html] ? count(row[PAGE.words]) : null],
          [say("Canonical URL"), detail[DETAIL.canonical] !== null ? inside(detail[DETAIL.canonical]) : yes && row[PAGE.html] ? say("itself, or none") : null],
          [say("Redirects to"), detail[DETAIL.redirect] !== null ? inside(detail[DETAIL.redirect]) : null],
        ]),
        factPanel(say("Answer"), [
          [say("Type"), named(index.types, row[PAGE.type])],
          [say("Size"), say("{0}, {1} transferred", size(row[PAGE.bytes]), size(row[PAGE.wire]))],
          [say("First byte"), `${row[PAGE.ttfb]} ms`],
          [say("Last modified"), row[PAGE.modified]],
          [say("Clicks from the start"), row[PAGE.depth] === null ? say("no links lead here") : row[PAGE.depth]],
          [say("PageRank"), row[PAGE.rank] === null ? null : say("{0} of {1}", row[PAGE.rank].toFixed(1), 100)],
          [say("Links to it"), say("{0} from {1}", count(row[PAGE.inlinks]), counted(row[PAGE.sources], "page"))],
          [say("Links from it"), say("{0} within the site, {1} to others", count(row[PAGE.within]), count(row[PAGE.elsewhere]))],
        ]),
        row[PAGE.html] && yes ? panel(say("In search results"), previewOf(url, row)) : null,
        factPanel(say("Headers"), headers || [])),
      way.length > 1 ? [make("h3", {}, say("The shortest way from the start")), make("ol", { class: "way" }, way.map(at => make("li", {}, at === number ? say("this page") : inside(at))))] : null,
      make("h3", {}, say("Issues of this page"), " ", make("span", { class: "soft" }, count(about.length))), about.length ? about : make("p", { class: "soft" }, say("None.")),
      shows.length ? [make("h3", {}, say("Issues of other URLs that show here"), " ", make("span", { class: "soft" }, count(shows.length))), shows] : null,
      head(say("Links to this page"), row[PAGE.inlinks], incoming.length),
      ...listed(say("links to this page"), [{ key: "from", name: say("From"), value: link => urlOf(link[0]), cell: link => inside(link[0]), search: true }, text(1), { key: "region", name: say("In the"), value: link => REGIONS[link[3]], width: "6rem" }, line(2), nofollow(4)], incoming, {}),
      head(say("Links from this page"), numberOfLinks[0], onlyLinks.length),
      ...listed(say("links from this page"), [{ key: "to", name: say("To"), value: link => urlOf(link[0]), cell: link => inside(link[0]), search: true }, text(2), { key: "region", name: say("In the"), value: link => link[4], width: "6rem" }, line(3), nofollow(5)], onlyLinks, {}),
      files.length ? [head(say("Files that it loads"), numberOfLinks[1], files.length), ...listed(say("files"), [{ key: "file", name: say("File"), value: file => urlOf(file[0]), cell: file => inside(file[0]), search: true }, { key: "kind", name: say("Kind"), value: file => file[1], width: "8rem" }, line(3)], files, {})] : null,
    ],
  };
};
