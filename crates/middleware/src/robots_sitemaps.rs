//! RobotsSitemaps: reads the sitemaps of the sites that a crawl starts from.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use huntsman_crawler::{
    Change, Context, CrawlerBuilder, DownloaderMiddleware, Event, Observer, OnRequest, Persist, Plugin,
    Request, Result, SitemapFiles, Spider, log, meta,
};
use url::Url;

use crate::chain;
use crate::robots_txt::RobotsSettings;

/// Requests the sitemaps that the robots.txt of each start request's origin names, or `/sitemap.xml` if it names none.
///
/// This is a plugin; the spider must be wrapped in [`Sitemaps`](huntsman_crawler::Sitemaps), which reads the files. If
/// the crawl obeys robots.txt, that file is fetched anyway, and no further request for it is needed; otherwise it is
/// requested like a page, and has a record like one. Sitemaps must be in scope themselves, by
/// [`ScopeRules::check_sitemap`](crate::ScopeRules::check_sitemap). If robots.txt forbids every start request of an
/// origin, its sitemaps are not requested.
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
    found: Mutex<FoundSitemaps>,
    /// Hashes of the origins that were handled: 16 bytes for each origin of a start request.
    origins: Mutex<HashSet<u64>>,
}

/// The sitemaps that robots.txt files named. They are kept after use: a start request that a stop or a crash sends back
/// to the queue needs them again, and robots.txt is not fetched again.
#[derive(Debug, Default)]
struct FoundSitemaps {
    by_authority: HashMap<String, Vec<Url>>,
    /// Ordered from the oldest to the newest.
    order: VecDeque<String>,
    bytes: usize,
    /// Changes to be written to the job; `None` without a job.
    changes: Option<Vec<Change>>,
}

/// Maximum bytes of the URLs kept from all robots.txt files together; the oldest are removed first.
const MAX_BYTES: usize = 16 << 20;

impl RobotsSitemaps {
    /// The name in settings and records.
    pub const NAME: &'static str = "robots_sitemaps";
    /// Position in the chain: after RobotsTxt, which has read the file by then.
    pub const ORDER: i32 = 110;

    /// Creates the plugin for a spider; its sitemaps count towards the same limits as those that sitemap indexes name.
    pub fn of<S: Spider>(spider: &huntsman_crawler::Sitemaps<S>) -> Self {
        Self(Arc::new(Inner { files: spider.files(), found: Mutex::default(), origins: Mutex::default() }))
    }

    fn requests(&self, request: &Request, cx: &Context) -> Vec<Request> {
        let settings = cx.settings();
        let own: RobotsSettings = settings.of_or_default();
        if !own.robotstxt_obey {
            return SitemapFiles::robots_request(&request.url).into_iter().collect();
        }
        let authority = request.url.origin().ascii_serialization();
        let mut named = lock(&self.0.found).of(&authority);
        if named.is_empty() {
            named.extend(request.url.join("/sitemap.xml"));
        }
        let number = named.len();
        let requests: Vec<Request> =
            named.into_iter().filter_map(|url| self.0.files.request(url, 0, settings)).collect();
        let cut = number - requests.len();
        if cut > 0 {
            cx.stats().add("sitemap/files_cut", i64::try_from(cut).unwrap_or(i64::MAX));
            log::warn!(%authority, cut, "sitemaps of robots.txt are left out by sitemap_max_files");
        }
        requests
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FoundSitemaps {
    fn keep(&mut self, authority: &str, sitemaps: &[String]) {
        self.forget(authority);
        let urls: Vec<Url> = sitemaps.iter().filter_map(|url| Url::parse(url).ok()).collect();
        if urls.is_empty() {
            return;
        }
        if let Some(changes) = &mut self.changes {
            let lines = urls.iter().map(Url::as_str).collect::<Vec<_>>().join("\n");
            changes.push((authority.as_bytes().to_vec(), Some(lines.into_bytes())));
        }
        self.bytes += Self::bytes_of(authority, &urls);
        self.by_authority.insert(authority.to_owned(), urls);
        self.order.push_back(authority.to_owned());
        while self.bytes > MAX_BYTES
            && self.order.len() > 1
            && let Some(oldest) = self.order.front().cloned()
        {
            self.forget(&oldest);
        }
    }

    fn of(&self, authority: &str) -> Vec<Url> {
        self.by_authority.get(authority).cloned().unwrap_or_default()
    }

    fn forget(&mut self, authority: &str) {
        let Some(urls) = self.by_authority.remove(authority) else { return };
        self.bytes -= Self::bytes_of(authority, &urls);
        // Usually this is the oldest one.
        if let Some(at) = self.order.iter().position(|kept| kept == authority) {
            self.order.remove(at);
        }
        if let Some(changes) = &mut self.changes {
            changes.push((authority.as_bytes().to_vec(), None));
        }
    }

    fn bytes_of(authority: &str, urls: &[Url]) -> usize {
        authority.len() + urls.iter().map(|url| url.as_str().len()).sum::<usize>()
    }
}

impl Persist for RobotsSitemaps {
    fn name(&self) -> String {
        Self::NAME.to_owned()
    }

    fn load(&self, _: Option<&[u8]>) -> Result<()> {
        lock(&self.0.found).changes = Some(Vec::new());
        Ok(())
    }

    fn load_entry(&self, authority: &[u8], sitemaps: &[u8]) -> Result<()> {
        let sitemaps: Vec<String> = String::from_utf8_lossy(sitemaps).lines().map(str::to_owned).collect();
        let mut found = lock(&self.0.found);
        // These sitemaps were restored from the job, so they need not be written to it.
        let changes = found.changes.take();
        found.keep(&String::from_utf8_lossy(authority), &sitemaps);
        found.changes = changes;
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn save_entries(&self) -> Result<Vec<Change>> {
        Ok(lock(&self.0.found).changes.as_mut().map(std::mem::take).unwrap_or_default())
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
        if !request.meta_flag(meta::IS_START_REQUEST) || chain::hops(request) > 0 || request.is_nested() {
            return Ok(OnRequest::Continue);
        }
        let origin = request.url.origin().ascii_serialization();
        let is_new = lock(&self.0.origins).insert(xxhash_rust::xxh3::xxh3_64(origin.as_bytes()));
        if is_new {
            let mut requests = self.requests(request, cx);
            for sitemap in &mut requests {
                request.share_meta(meta::DOWNLOAD_SLOT, sitemap);
                request.share_meta(meta::PROXY, sitemap);
            }
            // They are queued before the page is fetched, so a link on the page to a sitemap is a duplicate.
            cx.push(requests);
        }
        Ok(OnRequest::Continue)
    }
}

impl Plugin for RobotsSitemaps {
    fn install<S: Spider>(self, builder: CrawlerBuilder<S>) -> CrawlerBuilder<S> {
        let files = self.0.files.clone();
        builder.persist(files).persist(self.clone()).observer(self.clone()).middleware(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_robots_files_name_is_kept_within_a_limit() {
        let mut found = FoundSitemaps::default();
        found.keep("http://a", &["http://a/1.xml".to_owned(), "http://a/2.xml".to_owned()]);
        found.keep("http://a", &["http://a/3.xml".to_owned()]);
        found.keep("http://b", &[]);
        assert_eq!((found.of("http://a").len(), found.of("http://b").len()), (1, 0), "the last file counts");
        let long: Vec<String> = (0..1_000).map(|n| format!("http://h/{}{n}", "x".repeat(2_000))).collect();
        for n in 0..20 {
            found.keep(&format!("http://h{n}"), &long);
        }
        assert!(found.bytes <= MAX_BYTES && found.by_authority.len() == found.order.len());
        assert_eq!(
            (found.of("http://a").len(), found.of("http://h19").len()),
            (0, 1_000),
            "the oldest go first"
        );
        found.order.clone().iter().for_each(|authority| found.forget(authority));
        assert_eq!(found.bytes, 0);
    }

    #[test]
    fn what_a_job_keeps_is_known_after_a_restart() {
        let spider = huntsman_crawler::Sitemaps::new(huntsman_crawler::spider_fn(
            [] as [&str; 0],
            |_: &huntsman_crawler::Page, _: &mut huntsman_crawler::Output<()>| Ok(()),
        ));
        let (first, second) = (RobotsSitemaps::of(&spider), RobotsSitemaps::of(&spider));
        first.load(None).unwrap();
        let sitemaps = ["http://a/1.xml".to_owned(), "http://a/2.xml".to_owned()];
        first.event(&Event::RobotsParsed { authority: "http://a", sitemaps: &sitemaps });
        second.load(None).unwrap();
        for (key, value) in first.save_entries().unwrap() {
            second.load_entry(&key, &value.unwrap()).unwrap();
        }
        assert_eq!(lock(&second.0.found).of("http://a").len(), 2);
        assert!(first.save_entries().unwrap().is_empty() && second.save_entries().unwrap().is_empty());
    }
}
