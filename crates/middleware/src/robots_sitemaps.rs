//! RobotsSitemaps: reads the sitemaps of the sites that a crawl starts from.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use huntsman_crawler::{
    Context, CrawlerBuilder, DownloaderMiddleware, Event, Observer, OnRequest, Plugin, Request, Result,
    SitemapFiles, Spider,
};
use url::Url;

use crate::chain;

/// Asks for the sitemaps that the robots.txt of each start request's origin names, or for `/sitemap.xml` if it names none.
///
/// A plugin; the spider must be in [`Sitemaps`](huntsman_crawler::Sitemaps), which reads them. Where the crawl obeys
/// robots.txt it has the file anyway, and nothing more is asked for; else the file is asked for like a page, and has a record like
/// one. Sitemaps must be in scope themselves, by
/// [`ScopeRules::judge_sitemap`](crate::ScopeRules::judge_sitemap). An origin of whose start requests robots.txt forbids every one is left alone.
///
/// ```
/// use huntsman_crawler::{CrawlerBuilder, Output, Page, Sitemaps, spider_fn};
/// use huntsman_middleware::{Defaults, RobotsSitemaps};
///
/// let spider = Sitemaps::new(spider_fn(["https://example.org/"], |page: &Page, out: &mut Output<String>| {
///     out.item(page.url().to_string());
///     Ok(())
/// }));
/// let sitemaps = RobotsSitemaps::of(&spider);
/// let builder = CrawlerBuilder::new(spider).plugin(Defaults).plugin(sitemaps);
/// # let _ = builder;
/// ```
#[derive(Clone, Debug)]
pub struct RobotsSitemaps(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    files: SitemapFiles,
    found: Mutex<Found>,
    /// Hashes of origins that were looked at: 16 bytes for each origin of a start request.
    origins: Mutex<HashSet<u64>>,
}

/// What robots.txt files named, until it is used.
#[derive(Debug, Default)]
struct Found {
    by_authority: HashMap<String, Vec<Url>>,
    bytes: usize,
}

/// Addresses that are kept of all robots.txt files together.
const MAX_BYTES: usize = 32 << 20;

impl RobotsSitemaps {
    /// The name in settings and records.
    pub const NAME: &'static str = "robots_sitemaps";
    /// The place in the chain: behind RobotsTxt, which has read the file by then.
    pub const ORDER: i32 = 110;

    /// For a spider; what it asks for counts together with what its indexes name.
    pub fn of<S: Spider>(spider: &huntsman_crawler::Sitemaps<S>) -> Self {
        Self(Arc::new(Inner { files: spider.files(), found: Mutex::default(), origins: Mutex::default() }))
    }

    fn requests(&self, request: &Request, cx: &Context) -> Vec<Request> {
        let settings = cx.settings();
        if !settings.robotstxt_obey {
            return SitemapFiles::robots_request(&request.url).into_iter().collect();
        }
        let authority = request.url.origin().ascii_serialization();
        let mut named = lock(&self.0.found).take(&authority);
        if named.is_empty() {
            named.extend(request.url.join("/sitemap.xml"));
        }
        let number = named.len();
        let requests: Vec<Request> =
            named.into_iter().filter_map(|url| self.0.files.request(url, 0, settings)).collect();
        let cut = number - requests.len();
        if cut > 0 {
            cx.stats().add("sitemap/files_cut", i64::try_from(cut).unwrap_or(i64::MAX));
            tracing::warn!(%authority, cut, "sitemaps of robots.txt are left out by sitemap_max_files");
        }
        requests
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Found {
    fn keep(&mut self, authority: &str, sitemaps: &[String]) {
        self.take(authority);
        let bytes: usize = authority.len() + sitemaps.iter().map(String::len).sum::<usize>();
        if !sitemaps.is_empty() && self.bytes + bytes <= MAX_BYTES {
            let urls: Vec<Url> = sitemaps.iter().filter_map(|url| Url::parse(url).ok()).collect();
            self.bytes += Self::bytes_of(authority, &urls);
            self.by_authority.insert(authority.to_owned(), urls);
        }
    }

    fn take(&mut self, authority: &str) -> Vec<Url> {
        let urls = self.by_authority.remove(authority).unwrap_or_default();
        if !urls.is_empty() {
            self.bytes -= Self::bytes_of(authority, &urls);
        }
        urls
    }

    fn bytes_of(authority: &str, urls: &[Url]) -> usize {
        authority.len() + urls.iter().map(|url| url.as_str().len()).sum::<usize>()
    }
}

impl Observer for RobotsSitemaps {
    fn event(&self, event: &Event<'_>) {
        if let Event::RobotsParsed { authority, sitemaps } = event {
            lock(&self.0.found).keep(authority, sitemaps);
        }
    }
}

impl DownloaderMiddleware for RobotsSitemaps {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn order(&self) -> i32 {
        Self::ORDER
    }

    async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
        if !request.meta_flag("is_start_request") || chain::hops(request) > 0 || request.is_nested() {
            return Ok(OnRequest::Continue);
        }
        let origin = request.url.origin().ascii_serialization();
        let is_new = lock(&self.0.origins).insert(xxhash_rust::xxh3::xxh3_64(origin.as_bytes()));
        if is_new {
            let mut requests = self.requests(request, cx);
            for key in ["download_slot", "proxy"] {
                if let Some(value) = request.meta.get(key) {
                    requests
                        .iter_mut()
                        .for_each(|sitemap| drop(sitemap.meta.insert(key.to_owned(), value.clone())));
                }
            }
            // Before the page is fetched: a link of it to a sitemap is a duplicate then.
            cx.push(requests);
        }
        Ok(OnRequest::Continue)
    }
}

impl Plugin for RobotsSitemaps {
    fn install<S: Spider>(self, builder: CrawlerBuilder<S>) -> CrawlerBuilder<S> {
        let files = self.0.files.clone();
        builder.persist(files).observer(self.clone()).middleware(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_robots_files_name_is_kept_within_a_limit_and_given_once() {
        let mut found = Found::default();
        found.keep("http://a", &["http://a/1.xml".to_owned(), "http://a/2.xml".to_owned()]);
        found.keep("http://a", &["http://a/3.xml".to_owned()]);
        found.keep("http://b", &[]);
        assert_eq!(found.take("http://a").len(), 1, "the last file counts");
        assert!(found.take("http://a").is_empty() && found.take("http://b").is_empty());
        assert_eq!(found.bytes, 0);
        let long: Vec<String> = (0..10_000).map(|n| format!("http://h/{}{n}", "x".repeat(2_000))).collect();
        for n in 0..10 {
            found.keep(&format!("http://h{n}"), &long);
        }
        assert_eq!(found.by_authority.len(), 1, "20 MB fit once");
    }
}
