//! Shared helpers of the crawl tests: spiders, a log of events, and crawlers with the polite stack.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use huntsman::middleware::Defaults;
use huntsman::{CrawlerBuilder, Dropped, Event, Observer, Output, Page, Spider, spider_fn};
use huntsman_testkit::{RunningSite, ScriptedDownloader};

/// A spider that follows every link and returns the requested address as its item.
pub(crate) fn links<I>(seeds: I) -> impl Spider<Item = String>
where
    I: IntoIterator,
    I::Item: ToString,
{
    let seeds: Vec<String> = seeds.into_iter().map(|seed| seed.to_string()).collect();
    spider_fn(seeds, |page: &Page, out: &mut Output<String>| {
        out.item(page.request().requested_url().to_owned());
        out.follow_links(page);
        Ok(())
    })
}

/// A crawler with the polite stack and scripted responses.
pub(crate) fn polite<S: Spider>(spider: S, web: &ScriptedDownloader) -> CrawlerBuilder<S> {
    CrawlerBuilder::new(spider).plugin(Defaults).downloader(web.clone()).set("seed", 7)
}

/// The same without delays and without robots.txt.
pub(crate) fn quick<S: Spider>(spider: S, web: &ScriptedDownloader) -> CrawlerBuilder<S> {
    polite(spider, web)
        .set("download_delay", 0.0)
        .set("concurrent_requests_per_domain", 16)
        .set("robotstxt_obey", false)
}

/// A crawler with the polite stack and the real client, which may connect to a local site; without delays.
pub(crate) fn on_site<S: Spider>(spider: S, site: &RunningSite) -> CrawlerBuilder<S> {
    let exceptions: Vec<String> = site.hosts().iter().map(|host| format!("{host}:*")).collect();
    huntsman::crawl(spider)
        .set("allow_addresses", exceptions)
        .set("seed", 7)
        .set("download_delay", 0.0)
        .set("concurrent_requests_per_domain", 4)
}

/// `n` pages on a host; page i links to pages 2i+1 and 2i+2.
pub(crate) fn tree(host: &str, n: usize) -> Vec<(String, String)> {
    let page = |i: usize| {
        let children = [2 * i + 1, 2 * i + 2].into_iter().filter(|&child| child < n);
        let links: String = children.map(|child| format!("<a href=/{child}>x</a>")).collect();
        (format!("http://{host}/{i}"), format!("<title>{i}</title>{links}"))
    };
    (0..n).map(page).collect()
}

/// Records the events of an observer.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Told>>);

#[derive(Default)]
struct Told {
    delivered: Vec<String>,
    dropped: Vec<Dropped>,
    refused: Vec<Dropped>,
    lines: Vec<String>,
}

impl Log {
    fn read<T>(&self, read: impl FnOnce(&Told) -> T) -> T {
        read(&self.0.lock().expect("no panic while it is held"))
    }

    /// Delivered pages by their requested addresses, in order.
    pub(crate) fn delivered(&self) -> Vec<String> {
        self.read(|told| told.delivered.clone())
    }

    /// Requests that ended without a page.
    pub(crate) fn dropped(&self) -> Vec<Dropped> {
        self.read(|told| told.dropped.clone())
    }

    /// The only record of an address.
    pub(crate) fn drop_of(&self, url: &str) -> Dropped {
        let mut found: Vec<Dropped> = self.dropped().into_iter().filter(|drop| drop.url == url).collect();
        assert_eq!(found.len(), 1, "records of {url}: {found:?}");
        found.remove(0)
    }

    /// Requests that were refused before they entered the queue.
    pub(crate) fn refused(&self) -> Vec<Dropped> {
        self.read(|told| told.refused.clone())
    }

    /// Descriptions of other events.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.read(|told| told.lines.clone())
    }

    /// Adds a line.
    pub(crate) fn line(&self, line: impl Into<String>) {
        self.0.lock().expect("no panic while it is held").lines.push(line.into());
    }
}

impl Observer for Log {
    fn event(&self, event: &Event<'_>) {
        let mut told = self.0.lock().expect("no panic while it is held");
        match event {
            Event::PageDelivered { request, .. } => told.delivered.push(request.requested_url().to_owned()),
            Event::RequestDropped(dropped) => told.dropped.push((*dropped).clone()),
            Event::RequestRefused(dropped) => told.refused.push((*dropped).clone()),
            Event::EngineStarted => told.lines.push("engine started".to_owned()),
            Event::EngineStopped => told.lines.push("engine stopped".to_owned()),
            Event::SpiderOpened { resumed } => told.lines.push(format!("spider opened, {resumed} queued")),
            Event::SpiderIdle => told.lines.push("idle".to_owned()),
            Event::SpiderClosed { reason } => told.lines.push(format!("spider closed: {reason}")),
            Event::SpiderError { request, error } => told.lines.push(format!("{}: {error}", request.url)),
            Event::RobotsParsed { sitemaps, .. } => told.lines.extend(sitemaps.iter().cloned()),
            Event::RobotsBlocked { url, line } => told.lines.push(format!("{url}: {line}")),
            _ => {}
        }
    }
}

/// Checks that the requests reached the site no faster than one per `delay`. A loaded machine may notice each request
/// late, which shortens the gap to the next one; but the n-th request never arrives before n delays are over.
pub(crate) fn arrive_at_intervals(site: &RunningSite, delay: Duration) {
    let arrivals: Vec<Duration> = site.requests().iter().map(|request| request.started).collect();
    assert!(arrivals.len() > 2, "{arrivals:?}");
    for (earlier, arrival) in (0..).zip(&arrivals) {
        assert!(*arrival >= delay * earlier, "request {earlier} came too early: {arrivals:?}");
    }
}

/// Smallest time between two starts.
pub(crate) fn smallest_gap(starts: &[Duration]) -> Duration {
    let mut starts = starts.to_vec();
    starts.sort_unstable();
    starts.windows(2).map(|pair| pair[1] - pair[0]).min().expect("at least two starts")
}

/// Largest number of concurrent fetches over all hosts.
pub(crate) fn most_at_once(web: &ScriptedDownloader) -> usize {
    let fetched = web.requests();
    let running = |at: Duration| {
        fetched.iter().filter(|f| f.started <= at && f.ended.is_none_or(|ended| ended > at)).count()
    };
    fetched.iter().map(|f| running(f.started)).max().unwrap_or(0)
}
