//! Compares the scan with a tree: html5ever, through scraper, on the pages in `tests/data`, whole and damaged.

use std::collections::HashSet;

use html5ever::tendril::TendrilSink;
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{ParseOpts, driver};
use huntsman_html::{Scan, ScanOptions, decode_body};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use scraper::node::Element;
use scraper::{Html, HtmlTreeSink, Node};

const PAGES: [(&str, &str); 6] = [
    ("wiki", include_str!("../data/wiki.html")),
    ("forum", include_str!("../data/forum.html")),
    ("docs", include_str!("../data/docs.html")),
    ("news", include_str!("../data/news.html")),
    ("shop", include_str!("../data/shop.html")),
    ("home", include_str!("../data/home.html")),
];

const BLOCKS: &str = " address article aside blockquote body caption center dd details dialog dir div dl dt fieldset \
    figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li listing main menu \
    nav ol optgroup option p plaintext pre search section summary table tbody td tfoot th thead tr ul xmp ";

type Attributes = Vec<Option<String>>;

/// The findings on which scan and tree must agree.
#[derive(Debug, Default, PartialEq)]
struct Findings {
    /// Address, rel.
    links: Vec<(String, Option<String>)>,
    anchor_texts: Vec<String>,
    base: Option<String>,
    title: Option<String>,
    lang: Option<String>,
    metas: Vec<Attributes>,
    link_elements: Vec<Attributes>,
    text: String,
}

fn stripped(value: &str) -> String {
    value.trim_matches([' ', '\n', '\t', '\r', '\x0C']).to_owned()
}

fn of_scan(page: &str, scripting: bool) -> Findings {
    let scan = Scan::of(page, &ScanOptions { scripting, ..ScanOptions::everything() });
    let owned = |values: &[Option<&str>]| values.iter().map(|value| value.map(str::to_owned)).collect();
    Findings {
        links: scan.links(page).map(|link| (link.href.to_owned(), link.rel.map(str::to_owned))).collect(),
        anchor_texts: scan.links(page).map(|link| link.text.to_owned()).collect(),
        base: scan.base_href(page).map(str::to_owned),
        title: scan.title(page).map(str::to_owned),
        lang: scan.html_lang(page).map(str::to_owned),
        metas: scan
            .metas(page)
            .map(|meta| owned(&[meta.name, meta.http_equiv, meta.property, meta.charset, meta.content]))
            .collect(),
        link_elements: scan
            .link_elements(page)
            .map(|link| owned(&[link.rel, link.href, link.hreflang, link.media_type, link.media]))
            .collect(),
        text: scan.text().to_owned(),
    }
}

/// Text as a tree gives it, collapsed by the same rules.
#[derive(Default)]
struct Collapsed {
    text: String,
    pending: Option<char>,
}

impl Collapsed {
    fn push(&mut self, text: &str) {
        for character in text.chars() {
            if matches!(character, ' ' | '\n' | '\t' | '\r' | '\x0C') {
                self.pending.get_or_insert(' ');
                continue;
            }
            if let Some(separator) = self.pending.take()
                && !self.text.is_empty()
            {
                self.text.push(separator);
            }
            self.text.push(character);
        }
    }

    fn line(&mut self) {
        self.pending = Some('\n');
    }
}

fn of_tree(page: &str, scripting: bool) -> Findings {
    let options = TreeBuilderOpts { scripting_enabled: scripting, ..TreeBuilderOpts::default() };
    let sink = HtmlTreeSink::new(Html::new_document());
    let opts = ParseOpts { tree_builder: options, ..ParseOpts::default() };
    let html = driver::parse_document(sink, opts).one(page);
    let mut found = Findings::default();
    let mut text = Collapsed::default();
    let mut anchors: Vec<(usize, usize)> = Vec::new();
    let mut muted = 0_u32;
    let mut noscripts = 0_u32;
    let mut node = html.tree.root();
    'walk: loop {
        match node.value() {
            Node::Text(value) if muted == 0 && noscripts == 0 => text.push(value),
            Node::Element(element) => {
                if is_break(element) {
                    text.line();
                }
                if element.name() == "title" && is_html(element) && found.title.is_none() && noscripts == 0 {
                    let words: String = node
                        .children()
                        .filter_map(|child| child.value().as_text().map(|text| text.to_string()))
                        .collect();
                    found.title = Some(words.split_ascii_whitespace().collect::<Vec<_>>().join(" "));
                }
                if is_link(element) {
                    anchors.push((found.links.len(), text.text.len()));
                }
                collect(element, &mut found, noscripts > 0);
                muted += u32::from(is_muted(element));
                noscripts += u32::from(element.name() == "noscript" && is_html(element));
            }
            _ => {}
        }
        let is_template =
            node.value().as_element().is_some_and(|element| element.name() == "template" && is_html(element));
        if let Some(child) = node.first_child().filter(|_| !is_template) {
            node = child;
            continue;
        }
        loop {
            if let Node::Element(element) = node.value() {
                if is_break(element) {
                    text.line();
                }
                if is_link(element)
                    && let Some((link, start)) = anchors.pop()
                {
                    found.anchor_texts.resize(found.anchor_texts.len().max(link + 1), String::new());
                    found.anchor_texts[link] = stripped(&text.text[start..]);
                }
                muted -= u32::from(is_muted(element));
                noscripts -= u32::from(element.name() == "noscript" && is_html(element));
            }
            if let Some(next) = node.next_sibling() {
                node = next;
                continue 'walk;
            }
            match node.parent() {
                Some(parent) => node = parent,
                None => break 'walk,
            }
        }
    }
    found.text = text.text;
    found
}

fn is_html(element: &Element) -> bool {
    &*element.name.ns == "http://www.w3.org/1999/xhtml"
}

fn is_break(element: &Element) -> bool {
    is_html(element) && (element.name() == "br" || BLOCKS.contains(&format!(" {} ", element.name())))
}

fn is_muted(element: &Element) -> bool {
    if is_html(element) {
        matches!(
            element.name(),
            "title" | "script" | "style" | "template" | "iframe" | "noembed" | "noframes"
        )
    } else {
        &*element.name.ns == "http://www.w3.org/2000/svg"
            && matches!(element.name(), "title" | "desc" | "script" | "style")
    }
}

/// The address of a link; that of `xlink:href` has the local name `href` in another namespace.
fn address(element: &Element) -> Option<&str> {
    let plain = element.attrs.iter().find(|(name, _)| &*name.local == "href" && name.ns.is_empty());
    let any = element.attrs.iter().find(|(name, _)| &*name.local == "href");
    let found = if is_html(element) { plain } else { plain.or(any) };
    found.map(|(_, value)| &**value)
}

fn is_link(element: &Element) -> bool {
    let is_carrier = element.name() == "a" || (element.name() == "area" && is_html(element));
    is_carrier && address(element).is_some()
}

fn collect(element: &Element, found: &mut Findings, in_noscript: bool) {
    let owned = |names: &[&str]| -> Attributes {
        names.iter().map(|name| element.attr(name).map(str::to_owned)).collect()
    };
    if is_link(element) {
        let address = stripped(address(element).unwrap_or_default());
        found.links.push((address, element.attr("rel").map(str::to_owned)));
        found.anchor_texts.push(String::new());
    }
    if !is_html(element) {
        return;
    }
    match element.name() {
        "html" => found.lang = element.attr("lang").map(stripped),
        "base" if found.base.is_none() && !in_noscript => found.base = element.attr("href").map(stripped),
        "meta" => {
            let values = owned(&["name", "http-equiv", "property", "charset", "content"]);
            if values.iter().any(Option::is_some) {
                found.metas.push(values);
            }
        }
        "link" => {
            let values = owned(&["rel", "href", "hreflang", "type", "media"]);
            if values[0].is_some() || values[1].is_some() {
                found.link_elements.push(values.iter().map(|value| value.as_deref().map(stripped)).collect());
            }
        }
        _ => {}
    }
}

#[test]
fn clean_pages_give_what_a_tree_gives() {
    for (name, page) in PAGES {
        for scripting in [true, false] {
            let (scan, mut tree) = (of_scan(page, scripting), of_tree(page, scripting));
            assert!(scan.links.len() > 5 && scan.text.len() > 1000, "{name}: {} links", scan.links.len());
            if !scripting {
                // Links in noscript have no anchor text in a scan, and none in this tree's text either.
                tree.anchor_texts.truncate(scan.anchor_texts.len());
            }
            assert_eq!(scan, tree, "{name}, scripting {scripting}");
        }
    }
}

/// A generator that gives the same numbers everywhere.
struct Random(SplitMix64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(SplitMix64::seed_from_u64(seed))
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.0.next_u64() % limit.max(1) as u64) as usize
    }
}

const SNIPPETS: [&str; 30] = [
    "<", ">", "\"", "'", "&", "=", "/", "<!", "<!--", "-->", "</", "</div>", "</p>", "</a>", "</td>",
    "</ul>", "<p>", "<div>", "<b>", "<li>", "</b></i>", "\0", "\r", "&amp", "&#", "<br/>", "</span>", "<i ",
    "<svg>", "</svg>",
];

fn damaged(page: &str, random: &mut Random) -> String {
    let mut page = page.to_owned();
    for _ in 0..1 + random.below(8) {
        let at = page.floor_char_boundary(random.below(page.len()));
        let end = page.floor_char_boundary((at + 1 + random.below(30)).min(page.len()));
        match random.below(5) {
            0 | 1 => page.insert_str(at, SNIPPETS[random.below(SNIPPETS.len())]),
            2 | 3 => page.replace_range(at..end, ""),
            _ => {
                let copy = page[at..end].to_owned();
                let to = page.floor_char_boundary(random.below(page.len()));
                page.insert_str(to, &copy);
            }
        }
    }
    page
}

fn unspaced(text: &str) -> String {
    text.chars().filter(|character| !character.is_ascii_whitespace()).collect()
}

fn first_of_each(links: &[(String, Option<String>)]) -> Vec<&(String, Option<String>)> {
    let mut seen = HashSet::new();
    links.iter().filter(|link| seen.insert(*link)).collect()
}

#[test]
fn damaged_pages_give_nearly_what_a_tree_gives() {
    const ROUNDS: usize = 100;
    let seed = std::env::var("HUNTSMAN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_260_101);
    println!("seed {seed} (HUNTSMAN_SEED)");
    let mut random = Random::new(seed);
    let mut equal = [0_usize; 8];
    let mut total = 0;
    for round in 0..ROUNDS {
        for (name, page) in PAGES {
            let page = damaged(page, &mut random);
            let (scan, tree) = (of_scan(&page, true), of_tree(&page, true));
            let sets = |found: &Findings| found.links.iter().cloned().collect::<HashSet<_>>();
            let same = [
                sets(&scan) == sets(&tree),
                first_of_each(&scan.links) == first_of_each(&tree.links),
                scan.links == tree.links,
                (&scan.base, &scan.title, &scan.lang) == (&tree.base, &tree.title, &tree.lang),
                (&scan.metas, &scan.link_elements) == (&tree.metas, &tree.link_elements),
                unspaced(&scan.text) == unspaced(&tree.text),
                scan.text.split_ascii_whitespace().eq(tree.text.split_ascii_whitespace()),
                scan.text == tree.text,
            ];
            total += 1;
            for (count, same) in equal.iter_mut().zip(same) {
                *count += usize::from(same);
            }
            if std::env::var_os("HUNTSMAN_SHOW").is_some() && !(same[0] && same[3] && same[4]) {
                println!("{name}, round {round}: {same:?}");
                println!("  only in scan {:?}", sets(&scan).difference(&sets(&tree)).collect::<Vec<_>>());
                println!("  only in tree {:?}", sets(&tree).difference(&sets(&scan)).collect::<Vec<_>>());
                println!(
                    "  {:?} {:?}",
                    (&scan.base, &scan.title, &scan.lang),
                    (&tree.base, &tree.title, &tree.lang)
                );
                std::fs::write(std::env::temp_dir().join(format!("damaged-{name}-{round}.html")), &page)
                    .expect("writable");
            }
        }
    }
    // Thresholds in per mille of the pages, somewhat below the results of many seeds.
    let bars = [
        ("links as a set", 995),
        ("links once each, in order", 980),
        ("links, all, in order", 850),
        ("base, title, lang", 995),
        ("metas and link elements", 995),
        ("text without white space", 965),
        ("words in order", 880),
        ("text with lines", 850),
    ];
    for ((what, bar), count) in bars.iter().zip(equal) {
        println!(
            "{what}: {count} of {total}, {:.2} %, bar {}",
            count as f64 * 100.0 / total as f64,
            bar / 10
        );
    }
    for ((what, bar), count) in bars.iter().zip(equal) {
        assert!(count * 1000 >= total * bar, "{what}: {count} of {total}, seed {seed}");
    }
}

const SOUP: [&str; 75] = [
    "<a href=/%>",
    "<a href=/%>",
    "<a href=/%>",
    "</a>",
    "</a>",
    "word%",
    "word%",
    " ",
    "\n",
    "<p>",
    "</p>",
    "<div>",
    "</div>",
    "<b>",
    "</b>",
    "<i>",
    "</i>",
    "<ul>",
    "<li>",
    "</ul>",
    "<span>",
    "</span>",
    "<br>",
    "</br>",
    "<h2>",
    "</h2>",
    "<svg>",
    "</svg>",
    "<svg/>",
    "<title>t%</title>",
    "<title>",
    "</title>",
    "<desc>",
    "</desc>",
    "<foreignObject>",
    "</foreignObject>",
    "<math>",
    "</math>",
    "<mi>",
    "</mi>",
    "<annotation-xml encoding='text/html'>",
    "</annotation-xml>",
    "<style>",
    "</style>",
    "<script>",
    "</script>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<template>",
    "</template>",
    "<textarea>",
    "</textarea>",
    "<font>",
    "<font color=red>",
    "</font>",
    "&amp;",
    "&#x41",
    "&notin",
    "\0",
    "<base href=/b%>",
    "<meta name=m%>",
    "<g>",
    "</g>",
    "<area href=/%>",
    "<iframe>",
    "</iframe>",
    "<noscript>",
    "</noscript>",
    "<img src=i%>",
    "<a xlink:href=/%>",
    "<button>",
    "<a\nHREF='/%'/>",
    "</ a>",
];

#[test]
fn tag_soup_gives_the_links_of_a_tree() {
    let seed = std::env::var("HUNTSMAN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_260_102);
    println!("seed {seed} (HUNTSMAN_SEED)");
    let mut random = Random::new(seed);
    let (mut same_links, mut same_head, mut same_text, mut total) = (0, 0, 0, 0);
    for _ in 0..2000 {
        let page: String = (0..1 + random.below(40))
            .map(|at| SOUP[random.below(SOUP.len())].replace('%', &at.to_string()))
            .collect();
        let (scan, tree) = (of_scan(&page, true), of_tree(&page, true));
        let sets = |found: &Findings| found.links.iter().cloned().collect::<HashSet<_>>();
        let head = |found: &Findings| (found.base.clone(), found.title.clone(), found.metas.clone());
        total += 1;
        same_links += usize::from(sets(&scan) == sets(&tree));
        same_head += usize::from(head(&scan) == head(&tree));
        same_text += usize::from(unspaced(&scan.text) == unspaced(&tree.text));
        if std::env::var_os("HUNTSMAN_SHOW").is_some()
            && (sets(&scan) != sets(&tree) || head(&scan) != head(&tree))
        {
            println!(
                "{page:?}\n  scan {:?} {:?}\n  tree {:?} {:?}",
                scan.links,
                head(&scan),
                tree.links,
                head(&tree)
            );
        }
    }
    println!("links {same_links}, head {same_head}, text {same_text} of {total}");
    // 99.6, 99.6 and 99.5 % for this seed. The differences need a tree: mostly end tags of inline elements that are
    // open around foreign content, which also end that content.
    assert!(same_links * 1000 >= total * 990, "links {same_links} of {total}, seed {seed}");
    assert!(same_head * 1000 >= total * 990, "head {same_head} of {total}, seed {seed}");
    assert!(same_text * 1000 >= total * 985, "text {same_text} of {total}, seed {seed}");
}

fn pages_below(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            pages_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "html" || extension == "htm") {
            found.push(path);
        }
    }
}

#[test]
#[ignore = "needs a folder of pages in $HUNTSMAN_PAGES"]
fn real_pages_give_what_a_tree_gives() {
    let folder = std::env::var_os("HUNTSMAN_PAGES").expect("HUNTSMAN_PAGES is set");
    let mut pages = Vec::new();
    pages_below(folder.as_ref(), &mut pages);
    pages.sort();
    assert!(!pages.is_empty(), "no pages found");
    let (mut other_text, mut other) = (0, 0);
    for path in &pages {
        let body = std::fs::read(path).expect("a readable page");
        let page = decode_body(&body, None, None).text;
        let (mut scan, mut tree) = (of_scan(&page, true), of_tree(&page, true));
        let texts = (std::mem::take(&mut scan.text), std::mem::take(&mut tree.text));
        if texts.0 != texts.1 {
            // Known: text directly in a table, which a tree moves before the table.
            other_text += 1;
            let line = texts.0.lines().zip(texts.1.lines()).find(|(scan, tree)| scan != tree);
            println!("{}: {line:?}", path.display());
        }
        if scan != tree {
            other += 1;
            println!("{}: {scan:?}\n{tree:?}", path.display());
        }
    }
    println!("{} pages: {other} differ in links or head, {other_text} in text", pages.len());
    assert!(other == 0 && other_text * 100 <= pages.len());
}
