//! What the feed spiders have in common: the requests for feeds, and the pages that their entries lead to.

use std::fmt;

use super::FeedLimits;
use crate::error::{Error, Result};
use crate::log;
use crate::meta;
use crate::output::Output;
use crate::page::Page;
use crate::request::Request;
use crate::route::RouteError;
use crate::spider::{Spider, check_label};
use crate::start::Start;

/// The label of requests for feeds, for information; they are recognised by their meta.
const LABEL: &str = "feed";

/// The start requests of a feed spider, and the spider for other pages.
pub(super) struct FeedRequests<T> {
    urls: Vec<String>,
    pub(super) limits: FeedLimits,
    pages: Option<Box<dyn Spider<Item = T>>>,
}

impl<T: Send + 'static> FeedRequests<T> {
    pub(super) fn new<I>(urls: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let urls = urls.into_iter().map(|url| url.as_ref().to_owned()).collect();
        Self { urls, limits: FeedLimits::default(), pages: None }
    }

    pub(super) fn set_pages(&mut self, spider: impl Spider<Item = T>) {
        self.pages = Some(Box::new(spider));
    }

    pub(super) fn name<'a>(&'a self, name: &'a str) -> &'a str {
        self.pages.as_ref().map_or(name, |pages| pages.name())
    }

    pub(super) fn start(&self) -> Start {
        let max_bytes = self.limits.max_bytes;
        let feeds = self.urls.clone().into_iter().map(move |url| Ok(feed(Request::parse(&url)?, max_bytes)));
        match &self.pages {
            Some(pages) => Start::new(feeds.chain(pages.start())),
            None => Start::new(feeds),
        }
    }

    /// Whether a page is a feed. Any other goes to the spider for pages.
    pub(super) fn is_feed(page: &Page) -> bool {
        page.request().is_feed()
    }

    pub(super) fn parse_page(&self, page: &Page, out: &mut Output<T>) -> Result<()> {
        match &self.pages {
            Some(pages) => {
                page.forget_label_reads();
                check_label(&**pages, page)?;
                pages.parse(page, out)
            }
            None => Err(RouteError::unknown_label(page.requested(), &[LABEL]).into()),
        }
    }

    pub(super) fn failed(&self, request: &Request, error: &Error, out: &mut Output<T>) -> Result<()> {
        if request.is_feed() {
            out.context().stats().inc("feed/failed");
            log::warn!(url = %request.url, "the feed could not be fetched: {error}");
        }
        match &self.pages {
            Some(pages) => pages.failed(request, error, out),
            None => Ok(()),
        }
    }

    pub(super) fn allowed_domains(&self) -> Vec<String> {
        self.pages.as_ref().map(|pages| pages.allowed_domains()).unwrap_or_default()
    }

    pub(super) fn settings(&self) -> Vec<(&'static str, serde_json::Value)> {
        self.pages.as_ref().map(|pages| pages.settings()).unwrap_or_default()
    }
}

impl<T> fmt::Debug for FeedRequests<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FeedRequests")
            .field("urls", &self.urls)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Makes a request one for a feed: it may be large, and packed.
fn feed(request: Request, max_bytes: u64) -> Request {
    request
        .callback(LABEL)
        .with_meta(meta::FEED, true)
        .with_meta(meta::DOWNLOAD_MAXSIZE, max_bytes)
        .with_meta(meta::DOWNLOAD_TRUNCATE, true)
        .with_meta(meta::DOWNLOAD_BINARY, true)
}

/// Calls a callback for entries, and counts those for which it fails. The others are not lost by that.
#[derive(Default)]
pub(super) struct Entries {
    failed: u64,
    first: Option<Error>,
}

impl Entries {
    pub(super) fn count(&mut self, result: Result<()>, place: impl FnOnce() -> String) {
        if let Err(error) = result {
            self.failed += 1;
            self.first.get_or_insert_with(|| error.context(place()));
        }
    }

    /// The result of a feed: `read` are the problems of reading it.
    pub(super) fn end<I>(self, page: &Page, entries: u64, read: Result<()>, out: &Output<I>) -> Result<()> {
        let stats = out.context().stats();
        stats.inc("feed/files");
        stats.add("feed/entries", i64::try_from(entries).unwrap_or(i64::MAX));
        if read.is_err() {
            stats.inc("feed/damaged");
        } else if entries == 0 {
            log::warn!(url = %page.url(), "the feed has no entries");
        }
        let Some(first) = self.first else { return read };
        stats.add("feed/entries_failed", i64::try_from(self.failed).unwrap_or(i64::MAX));
        let failed = format!("{}: the callback failed for {} of {entries} entries", page.url(), self.failed);
        // Of the two the one of the callback is nearer to the mend; the other is logged.
        if let Err(error) = read {
            log::warn!(url = %page.url(), "{error}");
        }
        Err(first.context(failed))
    }
}
