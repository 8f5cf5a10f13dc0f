//! What is found by the outline against what plain walks of the same trees find, on random pages.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use scraper::ElementRef;
use url::Url;

use crate::{Page, Request, Response};

const PIECES: [&str; 40] = [
    "<div class=a>",
    "<div class='b a' id=x>",
    "<div>",
    "</div>",
    "</div>",
    "<p>",
    "<p class=b title='1 &lt; 2'>",
    "<span id=y class='a a b'>",
    "</span>",
    "<a href=/x>",
    "<a href='/y?a=1&amp;b=2' class=c>",
    "</a>",
    "<ul><li>",
    "<li class=a>",
    "</ul>",
    "<table><tr><td>",
    "<td class=b>",
    "</table>",
    "<b><i>",
    "</b>",
    "<svg xlink:href=u viewBox='0'><a class=a>",
    "</svg>",
    "<template><p class=a>",
    "</template>",
    "<noscript><img alt=\"x\u{a0}'\">",
    "</noscript>",
    "<script>if (a < b && c) {}</script>",
    "<style>p > a {}</style>",
    "<br>",
    "<img src=i title='\"'>",
    "<!--a < b-->",
    "<textarea>\n<b></textarea>",
    "<select><option class=b>",
    "</select>",
    "one & two ",
    "\u{a0}caf\u{e9} \u{c2}\u{2603}",
    "&lt;b&gt;",
    "\n",
    "<body class=c>",
    "<DIV CLASS=A ID=X>",
];

fn page(random: &mut StdRng) -> Page {
    let count = random.random_range(1..120);
    let html: String = (0..count).map(|_| PIECES[random.random_range(0..PIECES.len())]).collect();
    let url = Url::parse("http://h/").unwrap();
    Page::new(Request::get(url.clone()), Response::html(url, html))
}

fn selector(random: &mut StdRng) -> String {
    const COMPOUNDS: [&str; 22] = [
        "a",
        "p",
        "div",
        "li",
        "*",
        ".a",
        ".b",
        ".c",
        "#x",
        "#y",
        "[href]",
        "[title]",
        "[class~=a]",
        "p.b",
        "div#x",
        "a[href]",
        "span.a.b",
        "svg a",
        ":first-child",
        ":not(.a)",
        "td.b",
        "absent",
    ];
    const COMBINATORS: [&str; 5] = [" ", " > ", " + ", " ~ ", ", "];
    let mut css = COMPOUNDS[random.random_range(0..COMPOUNDS.len())].to_owned();
    for _ in 0..random.random_range(0..3) {
        css += COMBINATORS[random.random_range(0..COMBINATORS.len())];
        css += COMPOUNDS[random.random_range(0..COMPOUNDS.len())];
    }
    css
}

/// The elements that another implementation finds at the outermost element and below. Its own walk over a page is not in document order.
fn model<'a>(page: &'a Page, css: &str) -> Vec<ElementRef<'a>> {
    let selector = scraper::Selector::parse(css).unwrap();
    let all = page.tree().html.root_element().descendants().filter_map(ElementRef::wrap);
    all.filter(|element| selector.matches(element)).collect()
}

#[test]
fn selectors_find_what_a_plain_walk_finds() {
    for seed in 0..600 {
        let mut random = StdRng::seed_from_u64(seed);
        let page = page(&mut random);
        for _ in 0..12 {
            let css = selector(&mut random);
            let (found, walked) = (page.select(&css).unwrap(), model(&page, &css));
            let told = || format!("seed {seed}: {css} in {}", page.body_text());
            let markup: Vec<String> = found.iter().map(|element| element.html()).collect();
            let expected: Vec<String> = walked.iter().map(ElementRef::html).collect();
            assert_eq!(markup, expected, "{}", told());
            assert_eq!(page.css(&css).unwrap().get_all(), expected, "{}", told());
            // `p *::text` takes what `p ::text` takes.
            let is_deep = css.ends_with(" *") && !["> *", "+ *", "~ *"].iter().any(|end| css.ends_with(end));
            if css.contains(',') || is_deep {
                continue;
            }
            let is_taken = |element: &ElementRef<'_>| walked.contains(element);
            let above = |element: ElementRef<'_>| {
                is_taken(&element)
                    || element.ancestors().filter_map(ElementRef::wrap).any(|above| is_taken(&above))
            };
            let all = || page.tree().html.root_element().descendants();
            let text_of = |parent: &dyn Fn(ElementRef<'_>) -> bool| -> Vec<String> {
                let texts = all().filter(|node| node.parent().and_then(ElementRef::wrap).is_some_and(parent));
                texts.filter_map(|node| Some(node.value().as_text()?.to_string())).collect()
            };
            let attribute_of = |owner: &dyn Fn(ElementRef<'_>) -> bool| -> Vec<String> {
                let owners = all().filter_map(ElementRef::wrap).filter(|element| owner(*element));
                owners.filter_map(|element| Some(element.attr("class")?.to_owned())).collect()
            };
            for (suffix, expected) in [
                ("::text", text_of(&|element| is_taken(&element))),
                (" ::text", text_of(&above)),
                ("::attr(class)", attribute_of(&|element| is_taken(&element))),
                (" ::attr(class)", attribute_of(&above)),
            ] {
                let css = format!("{css}{suffix}");
                assert_eq!(page.css(&css).unwrap().get_all(), expected, "{css}: {}", told());
            }
        }
    }
}

#[test]
fn inside_an_element_only_what_is_there_is_found() {
    for seed in 0..300 {
        let mut random = StdRng::seed_from_u64(seed);
        let page = page(&mut random);
        for outer in page.select("div, p, ul, svg").unwrap() {
            let css = [".a", "a", "[title]", "#x", "*", "span"][random.random_range(0..6)];
            let found = outer.select(css).unwrap();
            let all = page.select(css).unwrap();
            let is_inside = |element: &&crate::Element<'_>| {
                element
                    .nodes("ancestor::*")
                    .unwrap()
                    .iter()
                    .any(|above| above.element().is_some_and(|above| above.place() == outer.place()))
            };
            let expected: Vec<u32> = all.iter().filter(is_inside).map(|element| element.place()).collect();
            let found: Vec<u32> = found.iter().map(|element| element.place()).collect();
            assert_eq!(found, expected, "seed {seed}: {css} in {} of {}", outer.html(), page.body_text());
            let first = outer.text_of(css).ok();
            assert_eq!(
                first,
                outer.select(css).unwrap().first().map(|first| first.text()),
                "seed {seed}: {css}"
            );
        }
    }
}
