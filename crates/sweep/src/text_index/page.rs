//! A page as it is stored in the index.

use std::io::Read;

use huntsman_crawler::Timestamp;
use huntsman_detect::copyvio::Text;
use huntsman_detect::urlparts::canonical;
use serde::{Deserialize, Serialize};
use url::Url;

/// A page of a crawl, for a [`TextIndex`](super::TextIndex).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexedPage {
    /// Its URL. It replaces a page with the same URL, compared in canonical form.
    pub url: String,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its language, an ISO 639 code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lang: Option<String>,
    /// When it was fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetched_at: Option<Timestamp>,
    /// Its text. It is indexed without boilerplate elements, and stored as it is.
    pub text: Text,
}

/// Maximum size of a URL; longer ones cannot be terms of the index.
const MAX_URL_BYTES: usize = 32_768;
/// Maximum size of an unpacked record; a larger one was written by another program.
const MAX_PAGE_BYTES: u64 = 64 << 20;

impl IndexedPage {
    /// A page with only a URL and a text.
    pub fn new(url: impl Into<String>, text: Text) -> Self {
        Self { url: url.into(), title: None, lang: None, fetched_at: None, text }
    }

    /// The key of a page in the index: its URL in canonical form.
    pub(super) fn key_of(url: &str) -> String {
        Url::parse(url).map_or_else(|_| url.to_owned(), |url| canonical(&url))
    }

    /// The page of a record; `None` if the record is something else.
    pub(super) fn of_record(record: &[u8]) -> Option<Self> {
        let unpacked = zstd::stream::read::Decoder::new(record).ok()?;
        let mut json = Vec::new();
        unpacked.take(MAX_PAGE_BYTES).read_to_end(&mut json).ok()?;
        serde_json::from_slice(&json).ok()
    }
}

/// The part of a text that is indexed: everything but boilerplate elements. Words do not cross the border of two
/// elements.
pub(super) fn body(text: &Text) -> String {
    text.content().collect::<Vec<_>>().join("\n")
}

/// A page in its serialized form.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) key: String,
    pub(super) body: String,
    pub(super) record: Vec<u8>,
}

impl Prepared {
    /// `None` if the URL is too long.
    pub(super) fn of(page: &IndexedPage) -> Option<Self> {
        const LEVEL: i32 = 1;
        let key = Some(IndexedPage::key_of(&page.url)).filter(|key| key.len() <= MAX_URL_BYTES)?;
        let json = serde_json::to_vec(page).expect("a page is texts and numbers");
        let record = zstd::bulk::compress(&json, LEVEL).expect("memory can be written to");
        Some(Self { key, body: body(&page.text), record })
    }

    pub(super) fn from_record(record: &[u8]) -> Option<Self> {
        let page = IndexedPage::of_record(record)?;
        Some(Self { key: IndexedPage::key_of(&page.url), body: body(&page.text), record: record.to_vec() })
    }
}
