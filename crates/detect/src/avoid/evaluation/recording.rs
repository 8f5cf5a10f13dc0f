//! A recorded crawl: the answers of a site to all URLs of a list.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufRead};

use huntsman_html::{PageKind, Scan, ScanOptions, sniff};
use url::Url;

use super::super::{LinkPlaces, PageText};
use super::recorded_response::RecordedResponse;
use super::truth::Truth;

/// The `base` of a page is looked for in this many bytes, as the crawler does.
const BASE_LIMIT: u32 = 4_096;

/// The recorded answers to the URLs of a [`Truth`], in the form in which a model of duplicates needs them.
///
/// It is read from [`RecordedResponse`]s. The first of them is the page at which a crawl starts. Answers to URLs that are not in the truth
/// are ignored.
#[derive(Debug)]
pub struct Recording {
    pub(super) pages: Vec<RecordedPage>,
    /// The number of the page at which the crawl starts.
    pub(super) start: u32,
    pub(super) site: String,
    pub(super) truth: Truth,
    /// Whether the pages have their visible texts.
    pub(super) has_texts: bool,
}

/// A URL of the truth with its answer.
#[derive(Debug)]
pub(super) struct RecordedPage {
    pub(super) url: Url,
    /// The number of its row in the truth.
    pub(super) row: usize,
    pub(super) answer: Answer,
}

/// What a request for a URL leads to.
#[derive(Debug, Default)]
pub(super) enum Answer {
    /// A page that can be learnt.
    Page(Box<Learnable>),
    /// A redirect within the site; its target has a number if it is in the truth.
    Redirect { to: Url, page: Option<u32> },
    /// Anything else: an error, or a file without text.
    #[default]
    Other,
}

#[derive(Debug)]
pub(super) struct Learnable {
    pub(super) text: PageText,
    /// The visible text; empty unless texts are kept.
    pub(super) visible: String,
    pub(super) places: LinkPlaces,
    /// The numbers of the pages to which it links, in order, each once.
    pub(super) links: Vec<u32>,
    pub(super) canonical: Option<Url>,
}

/// Why a recorded crawl cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordingError {
    /// It cannot be read.
    Io(io::Error),
    /// A line is malformed.
    Line {
        /// Its number, from 1.
        number: usize,
        /// What is wrong with it.
        what: String,
    },
    /// The first URL is not in the truth, or there is none: both belong to different crawls.
    Start,
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(_) => f.write_str("reading the recorded crawl"),
            Self::Line { number, what } => write!(f, "line {number}: {what}"),
            Self::Start => f.write_str(
                "the first URL of the recorded crawl is not in the truth: give the truth that belongs to it",
            ),
        }
    }
}

impl std::error::Error for RecordingError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(cause) => Some(cause),
            Self::Line { .. } | Self::Start => None,
        }
    }
}

impl Recording {
    /// Reads a recorded crawl, unpacked. Bodies are scanned at once and not kept; it takes some 10 ms per MB.
    ///
    /// # Errors
    /// It cannot be read, a line is malformed (the error names it), or the truth is that of another crawl.
    pub fn read(text: impl BufRead, truth: Truth) -> Result<Self, RecordingError> {
        Self::read_keeping(text, truth, false)
    }

    /// The same, with the visible texts of all pages, which [`Replay::run_reference`](super::Replay::run_reference) needs.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub fn read_with_texts(text: impl BufRead, truth: Truth) -> Result<Self, RecordingError> {
        Self::read_keeping(text, truth, true)
    }

    fn read_keeping(text: impl BufRead, truth: Truth, keeps_texts: bool) -> Result<Self, RecordingError> {
        let (pages, site) = (Vec::new(), String::new());
        let mut recording = Self { pages, start: 0, site, truth, has_texts: keeps_texts };
        let mut numbers: HashMap<Url, u32> = HashMap::new();
        let mut scan = Scan::new();
        for response in RecordedResponse::read(text) {
            let response = response?;
            if numbers.is_empty() {
                recording.number_pages(&response.url, &mut numbers)?;
            }
            let Some(page) = numbers.get(&response.url).copied() else { continue };
            recording.pages[page as usize].answer = Answer::of(&response, &numbers, &mut scan, keeps_texts);
        }
        if numbers.is_empty() {
            return Err(RecordingError::Start);
        }
        Ok(recording)
    }

    /// The list of contents.
    pub fn truth(&self) -> &Truth {
        &self.truth
    }

    /// Gives a number to each URL of the truth.
    fn number_pages(&mut self, first: &Url, numbers: &mut HashMap<Url, u32>) -> Result<(), RecordingError> {
        self.site = first.host_str().unwrap_or_default().to_owned();
        for (row, url) in self.truth.urls().enumerate() {
            let Ok(url) = first.join(url) else { continue };
            let number = self.pages.len() as u32;
            if let std::collections::hash_map::Entry::Vacant(entry) = numbers.entry(url) {
                let url = entry.key().clone();
                entry.insert(number);
                self.pages.push(RecordedPage { url, row, answer: Answer::Other });
            }
        }
        self.start = numbers.get(first).copied().ok_or(RecordingError::Start)?;
        Ok(())
    }
}

impl Answer {
    fn of(
        response: &RecordedResponse,
        numbers: &HashMap<Url, u32>,
        scan: &mut Scan,
        keeps_text: bool,
    ) -> Self {
        let kept = |text: &str| if keeps_text { text.to_owned() } else { String::new() };
        let body = response.text();
        let url = &response.url;
        if (300..400).contains(&response.status) {
            let is_here = |to: &Url| to.host_str() == url.host_str();
            return match response.location.clone().filter(is_here) {
                Some(mut to) => {
                    to.set_fragment(None);
                    let page = numbers.get(&to).copied();
                    Self::Redirect { to, page }
                }
                None => Self::Other,
            };
        }
        if !(200..300).contains(&response.status) {
            return Self::Other;
        }
        let kind = sniff(Some(&response.content_type), None, url.path(), &response.body);
        if kind == PageKind::Binary {
            return Self::Other;
        }
        if !kind.is_markup() {
            let text = PageText::of_page(url, [(0, &*body)]);
            let places = LinkPlaces::default();
            let visible = kept(&body);
            return Self::Page(Box::new(Learnable {
                text,
                visible,
                places,
                links: Vec::new(),
                canonical: None,
            }));
        }
        scan.run(&body, &ScanOptions { blocks: true, ..ScanOptions::default() });
        let base = scan.base_href(&body).filter(|_| scan.base_offset().is_some_and(|at| at < BASE_LIMIT));
        let base = base.and_then(|href| url.join(href).ok()).unwrap_or_else(|| url.clone());
        let resolve = |address: &str| base.join(address).ok();
        let mut links: Vec<u32> = Vec::new();
        let in_list = |address: &str| {
            let mut to = resolve(address)?;
            to.set_fragment(None);
            numbers.get(&to).copied()
        };
        let mut seen = std::collections::HashSet::new();
        links.extend(
            scan.links(&body).filter_map(|link| in_list(link.href)).filter(|page| seen.insert(*page)),
        );
        let places = LinkPlaces::of(scan.links(&body), None, |address| {
            let mut to = resolve(address)?;
            to.set_fragment(None);
            (to.host_str() == url.host_str() || numbers.contains_key(&to)).then_some(to)
        });
        let canonical = scan.canonical(&body).and_then(resolve);
        let canonical = canonical.filter(|named| named.host_str() == url.host_str());
        let visible = kept(scan.text());
        let text = PageText::of_scan(url, scan);
        Self::Page(Box::new(Learnable { text, visible, places, links, canonical }))
    }
}
