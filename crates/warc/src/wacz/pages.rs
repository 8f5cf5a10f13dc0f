//! The pages of archives, as the lists of a WACZ file have them.

use std::collections::HashMap;
use std::io::Read;

use serde_json::{Value, json};

use crate::archive::Archive;
use crate::captures::scan::ONE_STREAM;
use crate::captures::{Answer, ArchiveError};
use crate::error::ReadError;
use crate::head::RecordHead;
use crate::key::CaptureKey;
use crate::message::HttpHead;
use crate::reader::{Span, WarcReader};
use crate::record::record_id;

/// Bytes of a response in which its HTTP head is looked for, and greatest length of a record about another one.
const HEAD: u64 = 64 << 10;
/// Greatest length of a page of which title and text are taken.
const MAX_PAGE: u64 = 64 << 20;

/// A page whose title and text are asked for.
#[derive(Debug)]
pub struct PackedPage<'a> {
    /// Its URL.
    pub url: &'a str,
    /// The value of `Content-Type`.
    pub content_type: &'a str,
    /// Its body without codings.
    pub body: &'a [u8],
}

/// What the list of pages says of a page besides its URL and its time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageText {
    /// The title.
    pub title: Option<String>,
    /// The text, for searching.
    pub text: Option<String>,
}

/// The pages of files, the last capture of each URL.
#[derive(Default)]
pub(super) struct Pages {
    files: Vec<Archive>,
    pages: Vec<Page>,
    by_url: HashMap<CaptureKey, usize>,
    /// Whether any record tells how far a page is from the start of its crawl.
    has_hops: bool,
}

pub(super) struct Page {
    file: usize,
    span: Span,
    url: String,
    date: String,
    is_seed: bool,
}

impl Pages {
    /// Adds the pages of a file. Its damage was told before.
    pub(super) fn read<R: Read>(
        &mut self,
        file: &Archive,
        mut reader: WarcReader<R>,
    ) -> Result<(), ArchiveError> {
        self.files.push(file.clone());
        // Pages of this file by the ids of their records.
        let mut ids = HashMap::new();
        loop {
            match self.record(&mut reader, &mut ids) {
                Ok(Some(span)) if !span.is_separate => {
                    return Err(ArchiveError::text(file.name(), ONE_STREAM));
                }
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(error) if error.is_damage() => {}
                Err(error) => return Err(ArchiveError::read(file, error)),
            }
        }
    }

    fn record<R: Read>(
        &mut self,
        reader: &mut WarcReader<R>,
        ids: &mut HashMap<String, usize>,
    ) -> Result<Option<Span>, ReadError> {
        let Some(head) = reader.next_head()? else { return Ok(None) };
        let start = match head.kind() {
            "response" | "metadata" => reader.block(HEAD)?.bytes,
            _ => Vec::new(),
        };
        let Some(span) = reader.finish()? else { return Ok(None) };
        match head.kind() {
            "response" if is_page(&start) => {
                if let Some(page) = self.add(&head, span) {
                    ids.extend(head.id().map(|id| (id.to_owned(), page)));
                }
            }
            "metadata" => {
                let text = String::from_utf8_lossy(&start);
                let hops = text.lines().find_map(|line| line.strip_prefix("hopsFromSeed:"));
                self.has_hops |= hops.is_some();
                let about = head.get("WARC-Concurrent-To").or(head.get("WARC-Refers-To"));
                // Heritrix tells the kinds of the links that led to a page, and nothing for a seed.
                if hops.is_some_and(|hops| matches!(hops.trim(), "0" | ""))
                    && let Some(page) = about.and_then(|id| ids.get(id))
                {
                    self.pages[*page].is_seed = true;
                }
            }
            _ => {}
        }
        Ok(Some(span))
    }

    /// Adds a page, or puts it in the place of an earlier capture.
    fn add(&mut self, head: &RecordHead, span: Span) -> Option<usize> {
        let (url, date) = (head.target()?.to_owned(), head.date()?.to_owned());
        let key = CaptureKey::of(&url)?;
        let page = Page { file: self.files.len() - 1, span, url, date, is_seed: false };
        match self.by_url.get(&key) {
            Some(at) if self.pages[*at].date > page.date => None,
            Some(at) => {
                let is_seed = self.pages[*at].is_seed;
                self.pages[*at] = Page { is_seed, ..page };
                Some(*at)
            }
            None => {
                self.by_url.insert(key, self.pages.len());
                self.pages.push(page);
                Some(self.pages.len() - 1)
            }
        }
    }

    /// The pages at which crawls began, and the others. If no page is known to be one of the first, all are.
    pub(super) fn split(&self) -> (Vec<&Page>, Vec<&Page>) {
        let (seeds, others): (Vec<&Page>, Vec<&Page>) = self.pages.iter().partition(|page| page.is_seed);
        if seeds.is_empty() || !self.has_hops {
            (self.pages.iter().collect(), Vec::new())
        } else {
            (seeds, others)
        }
    }

    /// The line of a page.
    pub(super) fn line(
        &self,
        page: &Page,
        text_of: &mut impl FnMut(&PackedPage<'_>) -> PageText,
    ) -> Result<Value, ArchiveError> {
        let file = &self.files[page.file];
        let record = file
            .open_at(page.span.offset, Some(page.span.length))
            .map_err(|cause| ArchiveError::io(file, cause))?;
        let answer = Answer::of_bytes(record, MAX_PAGE).map_err(|cause| ArchiveError::read(file, cause))?;
        let text = match answer.payload.decoded(MAX_PAGE) {
            Ok(body) => text_of(&PackedPage {
                url: &page.url,
                content_type: answer.payload.content_type().unwrap_or_default(),
                body: &body,
            }),
            // A page that cannot be decoded is in the list, too.
            Err(_) => PageText::default(),
        };
        let id = record_id(&[page.url.as_bytes(), page.date.as_bytes()]);
        let id = id.trim_start_matches("<urn:uuid:").trim_end_matches('>');
        let mut line = json!({"id": id, "url": page.url, "ts": page.date});
        for (name, value) in [("title", text.title), ("text", text.text)] {
            if let Some(value) = value {
                line[name] = value.into();
            }
        }
        Ok(line)
    }
}

/// The first line of a list.
pub(super) fn header(name: &str) -> Value {
    let (id, title) = if name == "pages" { ("pages", "Pages") } else { ("extra-pages", "Extra Pages") };
    json!({"format": "json-pages-1.0", "id": id, "title": title})
}

fn is_page(start: &[u8]) -> bool {
    HttpHead::parse(start).is_some_and(|http| {
        let media_type = http.get("content-type").unwrap_or_default().to_ascii_lowercase();
        http.status() == Some(200) && (media_type.contains("html") || media_type.is_empty())
    })
}
