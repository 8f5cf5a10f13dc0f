//! A made-up site as a crawl would have found it, of any size: its answers are made one by one, in an order in which nothing is sorted.

use huntsman::audit::{Answered, Edge, EdgeKind, Finding, HtmlRecord, Kind, Measured, Record};

const HOST: &str = "https://site.example";
/// Links of the menu, which all pages have.
const MENU: u64 = 20;
/// Files that pages load.
const FILES: u64 = 500;
/// Pages of other sites.
const ELSEWHERE: u64 = 20_000;
const WORDS: [&str; 16] = [
    "quiet", "boats", "in", "the", "harbour", "carry", "sails", "of", "linen", "over", "green", "water",
    "towards", "evening", "light", "again",
];

/// The site.
#[derive(Clone, Copy, Debug)]
pub(super) struct MadeUp {
    /// Number of pages.
    pub(super) pages: u64,
    /// Links of a page.
    pub(super) links: u64,
}

impl MadeUp {
    /// All answers: the pages, the files that they load, and pages of other sites.
    pub(super) fn answers(self) -> impl Iterator<Item = Answered> {
        // Larger than any number of pages and prime, so that each page comes once.
        const STEP: u64 = 15_485_863;
        let pages = (0..self.pages).map(move |at| self.page(at * STEP % self.pages));
        let elsewhere = ELSEWHERE.min(self.pages);
        let others = (0..elsewhere).map(move |at| {
            let broken = at % 200 == 7;
            answer(Kind::External, elsewhere_url(at), if broken { 404 } else { 200 }).into()
        });
        pages.chain(files()).chain(others)
    }

    fn page(self, page: u64) -> Answered {
        let mut record = answer(Kind::Page, url(page), 200);
        record.is_start = page == 0;
        record.ttfb_ms = 20.0 + (page % 50) as f64;
        if page % 97 == 5 {
            record.status = Some(301);
            record.redirect = Some(url((page + 1) % self.pages));
            return record.into();
        }
        if page % 199 == 7 {
            record.status = Some(404);
            return record.into();
        }
        record.content_type = Some("text/html".to_owned());
        record.bytes = 24_000 + page % 9_000;
        record.wire_bytes = record.bytes / 4;
        record.html = Some(self.html(page));
        let mut answered = Answered::from(record);
        answered.edges = self.edges(page);
        answered.measures = measures(page, self.links);
        answered.findings = findings(page);
        answered
    }

    fn html(self, page: u64) -> HtmlRecord {
        let mut html = HtmlRecord::default();
        // One of fifty pages shares its title with others.
        let name = if page % 50 == 3 { page % 1_000 } else { page };
        html.title = Some(format!("Boat {name} and its sails in the harbour"));
        html.description = Some(format!(
            "All that there is to know of boat {name}: its sails, its crew, and where it lies at night in the harbour."
        ));
        html.h1 = Some(format!("Boat {name}"));
        html.words = 300 + (page % 400) as usize;
        let text = if page % 100 == 9 { page % 1_000 } else { page };
        html.text_key = format!("{:032x}", u128::from(mixed(text)) << 64 | u128::from(mixed(!text)));
        html.lang = Some("en".to_owned());
        html.canonical = Some(url(page));
        html.anchors = (0..12).map(|at| format!("section-{at}")).collect();
        html.has_scripts = true;
        html
    }

    fn edges(self, page: u64) -> Vec<Edge> {
        let mut edges = Vec::with_capacity(self.links as usize + 5);
        for at in 0..self.links {
            let mut edge = if at < MENU {
                let mut edge = Edge::new(&url(at), EdgeKind::Link);
                edge.place.region = Some("nav".to_owned());
                edge.place.link = Some(format!("Pier {at}"));
                edge
            } else if at % 50 == 29 {
                let target = mixed(page * 131 + at) % ELSEWHERE.min(self.pages);
                let mut edge = Edge::new(&elsewhere_url(target), EdgeKind::Link);
                edge.place.link = Some(format!("Source {target}"));
                edge
            } else {
                let target = mixed(page * 1_000 + at) % self.pages;
                let mut edge = Edge::new(&url(target), EdgeKind::Link);
                edge.place.link = Some(format!("Boat {target}"));
                if at == 40 && page % 20 == 1 {
                    edge.fragment = Some(format!("section-{}", page % 13));
                }
                edge
            };
            edge.place.line = 12 + at as u32 * 2;
            edge.place.column = 5 + (mixed(page + at) % 60) as u32;
            edges.push(edge);
        }
        for (at, kind) in
            [EdgeKind::Style, EdgeKind::Script, EdgeKind::Image, EdgeKind::Image, EdgeKind::Image]
                .into_iter()
                .enumerate()
        {
            let file = if at < 2 { at as u64 } else { mixed(page * 7 + at as u64) % FILES };
            let mut edge = Edge::new(&file_url(file), kind);
            edge.place.line = 4 + at as u32;
            edge.place.column = 1;
            edges.push(edge);
        }
        edges
    }
}

fn files() -> impl Iterator<Item = Answered> {
    (0..FILES).map(|file| {
        let mut record = answer(Kind::Resource, file_url(file), if file % 100 == 42 { 404 } else { 200 });
        record.is_head = file > 1;
        record.wire_bytes = 20_000;
        record.max_age = Some(31_536_000);
        record.into()
    })
}

fn answer(kind: Kind, url: String, status: u16) -> Record {
    let mut record = Record::default();
    record.kind = kind;
    record.url = url;
    record.status = Some(status);
    record
}

fn measures(page: u64, links: u64) -> Vec<huntsman::audit::Measure> {
    [
        (Measured::Title, 36),
        (Measured::Description, 108),
        (Measured::Words, 300 + page % 400),
        (Measured::Url, 40),
        (Measured::UrlParameters, 0),
        (Measured::Links, links),
        (Measured::PageBytes, 24_000),
        (Measured::Elements, 700),
        (Measured::Requests, 5),
    ]
    .map(|(of, value)| huntsman::audit::Measure::new(of, value))
    .to_vec()
}

fn findings(page: u64) -> Vec<Finding> {
    let mut findings = Vec::new();
    if page % 40 == 11 {
        findings.push(Finding::of("img-alt-missing"));
    }
    if page % 300 == 17 {
        findings.push(Finding::of("description-missing"));
    }
    findings
}

fn url(page: u64) -> String {
    let [first, second] = [WORDS[(page % 16) as usize], WORDS[(page / 16 % 16) as usize]];
    format!("{HOST}/{first}/{second}/boat-{page}")
}

fn file_url(file: u64) -> String {
    match file {
        0 => format!("{HOST}/style.css"),
        1 => format!("{HOST}/script.js"),
        _ => format!("{HOST}/images/boat-{file}.jpg"),
    }
}

fn elsewhere_url(at: u64) -> String {
    format!("https://other-{}.example/article/{at}", at % 700)
}

/// A number that looks random.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_page_comes_once_and_has_its_links() {
        let site = MadeUp { pages: 2_000, links: 100 };
        let answers: Vec<Answered> = site.answers().collect();
        let pages: Vec<&Answered> =
            answers.iter().filter(|answer| answer.record.kind == Kind::Page).collect();
        let urls: HashSet<&str> = pages.iter().map(|page| page.record.url.as_str()).collect();
        assert_eq!((pages.len(), urls.len()), (2_000, 2_000));
        let page = pages.iter().find(|page| page.record.html.is_some()).unwrap();
        assert_eq!(page.edges.iter().filter(|edge| edge.kind == EdgeKind::Link).count(), 100);
        let known: HashSet<&str> = answers.iter().map(|answer| answer.record.url.as_str()).collect();
        assert!(pages.iter().flat_map(|page| &page.edges).all(|edge| known.contains(edge.to.as_str())));
    }
}
