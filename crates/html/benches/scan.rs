//! Compares the time of a scan with that of a tree on the same pages, and times hostile inputs at two sizes.
//!
//! The ratios matter: absolute times depend on the machine. Usage: `cargo bench -p huntsman-html [-- FILE...]`; given
//! files are timed in addition to the pages of the tests.

use std::hint::black_box;
use std::time::Instant;

use huntsman_html::{
    Attributes, Name, Scan, ScanOptions, Sink, Span, State, TextKind, decode_body, tokenize,
};
use scraper::{Html, Node, Selector};

#[path = "../tests/it/hostile.rs"]
mod hostile;

/// A sink that receives every tag and stores nothing.
struct Nothing;

impl Sink for Nothing {
    fn text(&mut self, _raw: Span, _kind: TextKind) {}
    fn open(&mut self, _name: Name) -> Attributes {
        Attributes::Skipped
    }
    fn attr(&mut self, _name: Name, _value: Span) {}
    fn opened(&mut self, _name: Name, _self_closing: bool) -> State {
        State::Data
    }
    fn close(&mut self, _name: Name) {}
}

/// The best time per call in seconds, over several passes.
fn best(mut work: impl FnMut()) -> f64 {
    let calls = {
        let start = Instant::now();
        work();
        (0.02 / start.elapsed().as_secs_f64().max(1e-7)).clamp(1.0, 20_000.0) as u32
    };
    let pass = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        for _ in 0..calls {
            work();
        }
        start.elapsed().as_secs_f64() / f64::from(calls)
    };
    (0..7).map(|_| pass(&mut work)).fold(f64::INFINITY, f64::min)
}

fn tree_links(html: &Html, links: &Selector, title: &Selector) -> usize {
    let bytes: usize = html.select(links).filter_map(|link| link.value().attr("href")).map(str::len).sum();
    bytes + html.select(title).next().map_or(0, |title| title.text().map(str::len).sum())
}

fn tree_text(html: &Html) -> usize {
    let mut text = String::new();
    for node in html.tree.root().descendants() {
        if let Node::Text(value) = node.value() {
            let parent =
                node.parent().and_then(|parent| parent.value().as_element().map(|element| element.name()));
            if !matches!(parent, Some("script" | "style" | "title")) {
                for word in value.split_ascii_whitespace() {
                    text.push_str(word);
                    text.push(' ');
                }
            }
        }
    }
    black_box(&text).len()
}

fn compare(name: &str, page: &str) {
    let mut scan = Scan::new();
    let mut time = |options: &ScanOptions| {
        best(|| {
            scan.run(black_box(page), options);
            black_box(&scan);
        })
    };
    let tokens = best(|| tokenize(black_box(page), &mut Nothing));
    let links = time(&ScanOptions::links_only());
    let text = time(&ScanOptions::default());
    let blocks = time(&ScanOptions { blocks: true, ..ScanOptions::default() });
    let all = time(&ScanOptions::everything());
    let decoding = best(|| {
        black_box(decode_body(black_box(page.as_bytes()), None, None));
    });
    let (anchors, title) = (Selector::parse("a[href], area[href]"), Selector::parse("title"));
    let (anchors, title) = (anchors.expect("a selector"), title.expect("a selector"));
    let tree = best(|| {
        let html = Html::parse_document(black_box(page));
        black_box(tree_links(&html, &anchors, &title));
    });
    let tree_with_text = best(|| {
        let html = Html::parse_document(black_box(page));
        black_box(tree_links(&html, &anchors, &title) + tree_text(&html));
    });
    println!(
        "{name}: {} bytes, {} links, {} bytes of text",
        page.len(),
        scan.links(page).len(),
        scan.text().len()
    );
    let row = |what: &str, seconds: f64, rival: f64| {
        let speed = page.len() as f64 / seconds / 1e6;
        println!("  {what:<28} {:>8.1} us {speed:>7.0} MB/s {:>6.1}x", seconds * 1e6, rival / seconds);
    };
    row("decode_body", decoding, tree);
    row("tokenize, empty sink", tokens, tree);
    row("scan: links + head", links, tree);
    row("scan: + text", text, tree_with_text);
    row("scan: + blocks", blocks, tree_with_text);
    row("scan: everything", all, tree_with_text);
    row("scraper: links + title", tree, tree);
    row("scraper: + text", tree_with_text, tree_with_text);
}

/// A page of 21 KB in the style of a generated test site: much text, few tags, 40 links.
fn generated() -> String {
    const SYLLABLES: [&str; 20] = [
        "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va", "we",
        "xi", "yo", "zu",
    ];
    let mut state = 2024_u64;
    let mut random = move |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let mut words = |count: u64| {
        let mut text = String::new();
        for at in 0..count {
            if at > 0 {
                text.push(' ');
            }
            for _ in 0..=random(4) {
                text.push_str(SYLLABLES[random(20) as usize]);
            }
        }
        text
    };
    let mut page = format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Page 7: {}</title><link rel=\"stylesheet\" \
         href=\"/s.css\"><meta name=\"description\" content=\"{}\"></head><body><header><ul>",
        words(1),
        words(12)
    );
    for at in 0..8 {
        page += &format!("<li class=\"nav\"><a href=\"/p/{at}/{at}00.html\">Section {at}</a></li>");
    }
    page += "</ul></header><main><h1>Page 7</h1>";
    for at in 0..32 {
        page += &format!(
            "\n<div class=\"b c{}\"><h3>{}</h3><p id=\"x{at}\">{}. {}. {}. {}. {}. {}. <a href=\"/p/{at}/{at}17.html\" \
             title=\"to {at}17\">{}</a> <em>{}</em></p></div>",
            at % 5,
            words(1),
            words(14),
            words(13),
            words(15),
            words(14),
            words(12),
            words(16),
            words(1),
            words(1)
        );
    }
    page + "</main><footer><p>Footer text, the same on all pages.</p></footer></body></html>\n"
}

fn main() {
    let files: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    compare("generated", &generated());
    for (name, page) in [
        ("wiki", include_str!("../tests/data/wiki.html")),
        ("forum", include_str!("../tests/data/forum.html")),
        ("docs", include_str!("../tests/data/docs.html")),
        ("news", include_str!("../tests/data/news.html")),
        ("shop", include_str!("../tests/data/shop.html")),
    ] {
        compare(name, page);
    }
    for file in files {
        match std::fs::read(&file) {
            Ok(bytes) => compare(&file, &decode_body(&bytes, None, None).text),
            Err(error) => println!("{file}: {error}"),
        }
    }
    println!("\nhostile inputs, everything on: ns per byte at 1 and 8 MiB");
    let options = ScanOptions::everything();
    for (name, make) in hostile::inputs() {
        let mut scan = Scan::new();
        let mut per_byte = |size: usize| {
            let page = make(size);
            let fastest = (0..3)
                .map(|_| {
                    let start = Instant::now();
                    scan.run(black_box(&page), &options);
                    start.elapsed().as_secs_f64()
                })
                .fold(f64::INFINITY, f64::min);
            fastest * 1e9 / page.len() as f64
        };
        let (small, large) = (per_byte(1 << 20), per_byte(8 << 20));
        println!("  {name:<32} {small:>7.2} {large:>7.2}   {:>5.2}x", large / small);
    }
}
