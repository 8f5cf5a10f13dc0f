//! A site with faults: for each code of an audit a planted instance, and at least two near misses that look like it and are none.
//!
//! [`audited`] gives the answers of the site by URL, and the issues that an audit has to find: these, and no others. The cases are in
//! `audit/pages.rs` (faults of single pages), `audit/declarations.rs` (what pages and answers say of themselves), `audit/links.rs` (faults that
//! show only in the whole site), `audit/robots_files.rs` (robots.txt and sitemaps), `audit/transport.rs` (certificates and https) and `audit/further.rs` (marks of links, images, frames and fields, and headers).
//! [`audited_rendered`] is a second such site, of what scripts change (`audit/rendered.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::Version;
use huntsman_crawler::CertificateFault;
use url::Position;

use super::random::Random;
use crate::Reply;
use crate::ScriptedDownloader;

mod declarations;
mod further;
mod links;
mod named;
mod pages;
mod rendered;
mod robots_files;
mod spellings;
mod transport;
mod traps;

/// Where the site is.
pub const AUDITED: &str = "https://audit.example";

/// The port of the host of the site that speaks HTTP/1.1 only.
const OLD_PORT: u16 = 8_450;

/// Links on one list of pages.
const LISTED: usize = 60;

/// A site with faults, and what is wrong with it.
#[derive(Debug)]
pub struct Audited {
    /// Code and URL of each issue.
    pub expected: BTreeSet<(String, String)>,
    /// For each code the number of planted instances and of near misses.
    pub cases: BTreeMap<String, (usize, usize)>,
    answers: BTreeMap<String, Reply>,
    /// Answers from the second request on.
    later: BTreeMap<String, Reply>,
    /// Certificates by host with its port, and why they are refused.
    certificates: BTreeMap<String, Certificate>,
}

/// A certificate in DER, and why it is refused.
type Certificate = (Vec<u8>, Option<CertificateFault>);

/// Other hosts at which an audit of the site begins, too.
pub const ALSO_AUDITED: [&str; 9] = [
    "https://map.example/",
    "https://unlisted.example/",
    "https://redirecting.example/",
    "https://silent.example/",
    "https://expired.example/",
    "https://misnamed.example/",
    "https://unknown.example/",
    "https://weak.example/",
    "https://moths.localhost/",
];

/// The site.
pub fn audited() -> Audited {
    let mut site = Builder::default();
    pages::add(&mut site);
    declarations::add(&mut site);
    links::add(&mut site);
    further::add(&mut site);
    transport::add(&mut site);
    robots_files::add(&mut site);
    named::add(&mut site);
    traps::add(&mut site);
    spellings::add(&mut site);
    site.finish()
}

/// The part of it whose faults only scripts make, as a site of its own: it needs a browser.
pub fn audited_rendered() -> Audited {
    let mut site = Builder::default();
    rendered::add(&mut site);
    site.finish()
}

impl Audited {
    /// Serves the site without a network. URLs that it does not have answer 404.
    pub fn downloader(&self) -> ScriptedDownloader {
        let (answers, later) = (self.answers.clone(), self.later.clone());
        let certificates = self.certificates.clone();
        ScriptedDownloader::new().otherwise(move |request, nth| {
            let certificate = certificates.get(&request.url[Position::BeforeHost..Position::AfterPort]);
            let certificate = certificate.filter(|_| request.url.scheme() == "https");
            if let Some((der, Some(fault))) = certificate {
                return Reply::refused(der.clone(), *fault);
            }
            let url = request.url.as_str().split('#').next().unwrap_or_default();
            let later = if nth > 0 { later.get(url) } else { None };
            let known = later.or_else(|| answers.get(url)).cloned();
            let is_elsewhere = ["https://other.example/page?", "https://other.example/script.js"]
                .iter()
                .any(|start| url.starts_with(start));
            let reply = known
                .unwrap_or_else(|| if is_elsewhere { Reply::text("elsewhere") } else { Reply::status(404) });
            match certificate {
                Some((der, None)) => {
                    let is_old = request.url.port() == Some(OLD_PORT);
                    let version = if is_old { Version::HTTP_11 } else { Version::HTTP_2 };
                    reply.certificate(der.clone()).version(version)
                }
                _ => reply,
            }
        })
    }
}

/// A page without faults, to be changed.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    url: String,
    doctype: String,
    charset: String,
    html: String,
    title: String,
    description: String,
    canonical: String,
    viewport: String,
    graph: String,
    icon: String,
    head: String,
    h1: String,
    body: String,
    words: usize,
    main: bool,
    home: bool,
    headers: Vec<(String, String)>,
    is_plain: bool,
    status: u16,
}

impl Draft {
    fn new(url: &str) -> Self {
        let path = url.trim_start_matches(AUDITED).trim_start_matches("https://");
        let path = path.trim_matches('/').replace(['/', '_'], " ");
        let name: String = path.chars().take(30).collect();
        Self {
            doctype: "<!doctype html>".to_owned(),
            charset: "<meta charset=utf-8>".to_owned(),
            html: "<html lang=en>".to_owned(),
            title: format!("<title>About {name} and its kind</title>"),
            description: format!(
                "<meta name=description content=\"This page tells all that there is to know about {name}, at some length and with care.\">"
            ),
            canonical: format!("<link rel=canonical href=\"{url}\">"),
            viewport: "<meta name=viewport content=\"width=device-width\">".to_owned(),
            graph: "<meta property=og:title content=Moths><meta property=og:image content=\"https://audit.example/moth.png\">"
                .to_owned(),
            icon: "<link rel=icon href=/icon.svg>".to_owned(),
            head: String::new(),
            h1: format!("<h1>{name}</h1>"),
            body: String::new(),
            words: 210,
            main: true,
            home: true,
            headers: [
                ("content-type", "text/html; charset=utf-8"),
                ("strict-transport-security", "max-age=31536000"),
                ("content-security-policy", "default-src 'self'; frame-ancestors 'none'"),
                ("x-content-type-options", "nosniff"),
                ("referrer-policy", "same-origin"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
            is_plain: false,
            status: 200,
            url: url.to_owned(),
        }
    }

    pub(super) fn doctype(mut self, doctype: &str) -> Self {
        doctype.clone_into(&mut self.doctype);
        self
    }

    /// Replaces what states the encoding.
    pub(super) fn charset(mut self, element: &str) -> Self {
        element.clone_into(&mut self.charset);
        self
    }

    pub(super) fn html(mut self, tag: &str) -> Self {
        tag.clone_into(&mut self.html);
        self
    }

    pub(super) fn title(mut self, element: &str) -> Self {
        element.clone_into(&mut self.title);
        self
    }

    pub(super) fn description(mut self, element: &str) -> Self {
        element.clone_into(&mut self.description);
        self
    }

    pub(super) fn canonical(mut self, element: &str) -> Self {
        element.clone_into(&mut self.canonical);
        self
    }

    pub(super) fn viewport(mut self, element: &str) -> Self {
        element.clone_into(&mut self.viewport);
        self
    }

    /// Replaces the data for previews.
    pub(super) fn graph(mut self, elements: &str) -> Self {
        elements.clone_into(&mut self.graph);
        self
    }

    /// Replaces the link to the icon.
    pub(super) fn icon(mut self, element: &str) -> Self {
        element.clone_into(&mut self.icon);
        self
    }

    /// Adds to the head.
    pub(super) fn head(mut self, html: &str) -> Self {
        self.head.push_str(html);
        self
    }

    pub(super) fn h1(mut self, element: &str) -> Self {
        element.clone_into(&mut self.h1);
        self
    }

    /// Adds to the content.
    pub(super) fn body(mut self, html: &str) -> Self {
        self.body.push_str(html);
        self
    }

    pub(super) fn words(mut self, number: usize) -> Self {
        self.words = number;
        self
    }

    pub(super) fn no_main(mut self) -> Self {
        self.main = false;
        self
    }

    /// Leaves out the menu.
    pub(super) fn no_home(mut self) -> Self {
        self.home = false;
        self
    }

    /// Takes a header off.
    pub(super) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(found, _)| found != name);
        self
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn uncompressed(mut self) -> Self {
        self.is_plain = true;
        self
    }

    pub(super) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    fn reply(self) -> Reply {
        let mut page = format!("{}{}<head>{}", self.doctype, self.html, self.charset);
        let parts = [
            &self.title,
            &self.description,
            &self.canonical,
            &self.viewport,
            &self.graph,
            &self.icon,
            &self.head,
        ];
        for part in parts {
            page.push_str(part);
        }
        page.push_str("</head><body>");
        if self.home {
            page.push_str("<nav><a href=\"/\">Front page</a></nav>");
        }
        let (open, close) = if self.main { ("<main>", "</main>") } else { ("<div>", "</div>") };
        let _ = write!(
            page,
            "{open}\n{}\n{}\n<p>{}</p>{close}</body></html>",
            self.h1,
            self.body,
            text(&self.url, self.words)
        );
        let reply = Reply::status(self.status);
        let reply = self.headers.iter().fold(reply, |reply, (name, value)| reply.header(name, value));
        if self.is_plain {
            return reply.body(page);
        }
        reply.header("content-encoding", "gzip").body(gzip(&page))
    }
}

/// A text of this many words that no other page has.
fn text(url: &str, words: usize) -> String {
    const FIRST: [&str; 16] = [
        "sea", "moon", "hill", "wind", "rain", "moth", "leaf", "star", "stone", "wood", "field", "night",
        "snow", "salt", "fern", "dusk",
    ];
    const SECOND: [&str; 16] = [
        "light", "side", "song", "path", "wing", "gate", "fall", "mark", "land", "tide", "bird", "rise",
        "line", "house", "flower", "water",
    ];
    let start = url.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let mut random = Random::new(start);
    (0..words)
        .map(|_| format!("{}{}", FIRST[random.below(FIRST.len())], SECOND[random.below(SECOND.len())]))
        .collect::<Vec<_>>()
        .join(" ")
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).expect("a vector takes all");
    encoder.finish().expect("a vector takes all")
}

/// The faulty site that is being made.
#[derive(Debug, Default)]
pub(super) struct Builder {
    answers: BTreeMap<String, Reply>,
    later: BTreeMap<String, Reply>,
    certificates: BTreeMap<String, Certificate>,
    /// URLs that a list of pages links to.
    linked: Vec<String>,
    listed: Vec<String>,
    expected: BTreeSet<(String, String)>,
    cases: BTreeMap<String, (usize, usize)>,
}

/// The URL of a path, which may be a URL itself.
pub(super) fn url_of(path: &str) -> String {
    if path.starts_with("http") { path.to_owned() } else { format!("{AUDITED}{path}") }
}

impl Builder {
    /// Adds a page that a list links to.
    pub(super) fn page(&mut self, path: &str, change: impl FnOnce(Draft) -> Draft) {
        self.linked.push(url_of(path));
        self.hidden(path, change);
    }

    /// Adds a page that no list links to.
    pub(super) fn hidden(&mut self, path: &str, change: impl FnOnce(Draft) -> Draft) {
        let url = url_of(path);
        self.answer(path, change(Draft::new(&url)).reply());
    }

    /// Adds an answer that no list links to.
    pub(super) fn answer(&mut self, path: &str, reply: Reply) {
        self.answers.insert(url_of(path), reply);
    }

    /// Lets an answer that was added come after this many milliseconds.
    pub(super) fn delay(&mut self, path: &str, milliseconds: u64) {
        let url = url_of(path);
        let reply = self.answers.remove(&url).expect("the answer was added before");
        self.answers.insert(url, reply.after(Duration::from_millis(milliseconds)));
    }

    /// Sets the answer from the second request on.
    pub(super) fn once_more(&mut self, path: &str, reply: Reply) {
        self.later.insert(url_of(path), reply);
    }

    /// Sets the certificate of a host with its port, and why it is refused.
    pub(super) fn certificate(&mut self, host: &str, der: Vec<u8>, fault: Option<CertificateFault>) {
        self.certificates.insert(host.to_owned(), (der, fault));
    }

    /// Adds a link to a list of pages.
    pub(super) fn link(&mut self, path: &str) {
        self.linked.push(url_of(path));
    }

    /// Puts a URL into the sitemap.
    pub(super) fn list(&mut self, path: &str) {
        self.listed.push(url_of(path));
    }

    /// Expects an issue, which is a planted instance of its code.
    pub(super) fn expect(&mut self, code: &str, path: &str) {
        self.expected.insert((code.to_owned(), url_of(path)));
        self.cases.entry(code.to_owned()).or_default().0 += 1;
    }

    /// Counts near misses of a code.
    pub(super) fn misses(&mut self, code: &str, number: usize) {
        self.cases.entry(code.to_owned()).or_default().1 += number;
    }

    /// Adds a page with a fault, and near misses of it.
    pub(super) fn case<const N: usize>(
        &mut self,
        code: &str,
        planted: fn(Draft) -> Draft,
        near: [fn(Draft) -> Draft; N],
    ) {
        let path = format!("/{code}/planted");
        self.page(&path, planted);
        self.expect(code, &path);
        for (number, miss) in near.into_iter().enumerate() {
            self.page(&format!("/{code}/miss-{}", number + 1), miss);
        }
        self.misses(code, N);
    }

    fn finish(mut self) -> Audited {
        let mut lists = String::new();
        for (number, urls) in std::mem::take(&mut self.linked).chunks(LISTED).enumerate() {
            let path = format!("/list-{number}");
            let _ = writeln!(lists, "<a href=\"{path}\">List number {number}</a>");
            let mut links = String::new();
            for url in urls {
                let name = url.trim_start_matches(AUDITED);
                let _ = writeln!(links, "<a href=\"{url}\">Page {name}</a>");
            }
            self.hidden(&path, |page| page.body(&links));
        }
        let description = "<meta name=description content=\"The front page of a site that has every fault that an audit tells, and what nearly is one.\">";
        self.hidden("/", |page| {
            page.description(description)
                .title("<title>The front page of a site with faults</title>")
                .h1("<h1>Front</h1>")
                .body(&lists)
        });
        let listed = std::mem::take(&mut self.listed);
        self.answer("/sitemap.xml", robots_files::sitemap(&listed));
        let Self { expected, cases, answers, later, certificates, .. } = self;
        Audited { expected, cases, answers, later, certificates }
    }
}
