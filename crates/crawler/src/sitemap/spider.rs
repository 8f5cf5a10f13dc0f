//! A spider that reads sitemaps and passes their pages to another spider.

use std::sync::Arc;

use huntsman_html::PageKind;
use regex::Regex;
use url::Url;

use super::{Sitemap, SitemapEntry, SitemapFiles, SitemapKind, SitemapLimits, SitemapReport, files};
use crate::error::{Error, Result};
use crate::log;
use crate::meta;
use crate::output::Output;
use crate::page::Page;
use crate::request::{DEFAULT_CALLBACK, FoundBy, Request};
use crate::robots::Robots;
use crate::spider::{Spider, check_label};
use crate::start::Start;

/// The label of requests for sitemaps, for information; the engine recognises them by their meta.
pub(super) const LABEL: &str = "sitemap";

/// Largest start document in bytes, which is the limit of sitemaps.org. Settings are not known yet when such a
/// request is made.
const START_BYTES: u64 = 50 << 20;

type Filter = Box<dyn Fn(&SitemapEntry) -> bool + Send + Sync>;
type OnSitemap<I> = Box<dyn Fn(&Page, &SitemapReport, &mut Output<I>) + Send + Sync>;

/// Wraps a spider: reads sitemaps, and passes the pages that they list to the spider, like Scrapy's `SitemapSpider`.
///
/// A start URL may be a robots.txt (all its `Sitemap:` lines), an index, a sitemap, a list with one URL per line, RSS
/// or Atom, packed or not. (A robots.txt that is a start URL is fetched as a page, in addition to the one that the
/// crawl fetches in order to obey it. The plugin `RobotsSitemaps` of the middleware crate uses the latter.) Requests
/// for sitemaps are treated like others: they pass robots.txt, scope and slots, count as pages and end in one record.
/// Pages of a sitemap have the same depth as the links of a start page, however many indexes led there (Scrapy counts
/// those).
///
/// No document can extend the limits of what is read: `sitemap_max_bytes`, `sitemap_max_entries`, `sitemap_max_files`
/// per host, indexes within indexes up to `sitemap_max_depth`, and the duplicate filter. What exceeds a limit is
/// logged and counted: `sitemap/entries_cut`, `sitemap/bytes_cut`, `sitemap/files_cut`, `sitemap/depth_cut`. A
/// document that is broken, missing or not a sitemap affects no others: `sitemap/damaged`, `sitemap/failed`,
/// `sitemap/unknown`.
///
/// ```
/// use huntsman_crawler::{Output, Page, Sitemaps, spider_fn};
///
/// let shop = spider_fn([] as [&str; 0], |page: &Page, out: &mut Output<String>| {
///     out.item(format!("{}: {}", page.callback(), page.title().unwrap_or_default()));
///     Ok(())
/// });
/// let spider = Sitemaps::new(shop)
///     .sitemap_urls(["https://shop.example/robots.txt"])
///     .follow("/sitemap-(products|news)")?
///     .rule("/product/", "product")?
///     .rule("/news/", "parse")?
///     .filter(|entry| entry.lastmod.as_deref().is_none_or(|date| date >= "2026"));
/// # Ok::<(), huntsman_crawler::Error>(())
/// ```
pub struct Sitemaps<S: Spider> {
    inner: S,
    start: Vec<String>,
    rules: Vec<(Regex, Arc<str>)>,
    follow: Vec<Regex>,
    filter: Option<Filter>,
    alternates: bool,
    linked: bool,
    on_sitemap: Option<OnSitemap<S::Item>>,
    files: SitemapFiles,
}

impl<S: Spider> Sitemaps<S> {
    /// Wraps a spider, without start URLs of its own: every page of a sitemap is passed to `parse` of the spider.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            start: Vec::new(),
            rules: Vec::new(),
            follow: Vec::new(),
            filter: None,
            alternates: false,
            linked: false,
            on_sitemap: None,
            files: SitemapFiles::default(),
        }
    }

    /// Adds sitemaps to start from; they precede the start requests of the spider.
    pub fn sitemap_urls<I>(mut self, urls: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.start.extend(urls.into_iter().map(Into::into));
        self
    }

    /// Adds a rule: a page whose URL matches this regular expression goes to the callback with this label. The first
    /// matching rule applies; once there are rules, a page that matches none is left out.
    ///
    /// # Errors
    /// The expression is not valid.
    pub fn rule(mut self, expression: &str, callback: &str) -> Result<Self> {
        self.rules.push((regex(expression)?, callback.into()));
        Ok(self)
    }

    /// Restricts the sitemaps of an index that are followed to those whose URL matches this regular expression, or
    /// another one added with this method. Without any, all are followed.
    ///
    /// # Errors
    /// The expression is not valid.
    pub fn follow(mut self, expression: &str) -> Result<Self> {
        self.follow.push(regex(expression)?);
        Ok(self)
    }

    /// Leaves out entries for which `keep` returns false, including entries of indexes.
    pub fn filter(mut self, keep: impl Fn(&SitemapEntry) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(Box::new(keep));
        self
    }

    /// Whether to follow also the pages in other languages that an entry names (default: no); for one sitemap, at
    /// most as many as its entries.
    pub fn follow_alternates(mut self, take: bool) -> Self {
        self.alternates = take;
        self
    }

    /// Whether to read also XML sitemaps and indexes that were reached by a link (default: no); they are not passed
    /// to the spider then. Switch it on if the spider follows links, because a sitemap that was reached by a link is
    /// a duplicate when its index names it.
    pub fn read_linked(mut self, read: bool) -> Self {
        self.linked = read;
        self
    }

    /// Calls this function after a sitemap was read, for example to give items about sitemaps.
    pub fn on_sitemap(
        mut self,
        on_sitemap: impl Fn(&Page, &SitemapReport, &mut Output<S::Item>) + Send + Sync + 'static,
    ) -> Self {
        self.on_sitemap = Some(Box::new(on_sitemap));
        self
    }

    /// The record of requested sitemaps, for code that finds sitemaps elsewhere, and for jobs.
    pub fn files(&self) -> SitemapFiles {
        self.files.clone()
    }

    /// The wrapped spider.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    fn read(&self, page: &Page, out: &mut Output<S::Item>) -> SitemapReport {
        let limits = SitemapLimits::of(out.context().settings());
        let mut sitemap = Sitemap::new(&page.response().body, page.url(), limits);
        let mut nested = Nested::default();
        let mut alternates_left = if self.alternates { limits.max_entries } else { 0 };
        let mut alternates_cut = 0;
        while let Some(entry) = sitemap.next() {
            if self.filter.as_ref().is_some_and(|keep| !keep(&entry)) {
                continue;
            }
            if sitemap.report().kind == Some(SitemapKind::Index) {
                self.nested(page, entry.loc, &mut nested, out);
                continue;
            }
            let number = entry.alternates.len();
            let taken = number.min(alternates_left);
            alternates_left -= taken;
            alternates_cut += if self.alternates { number - taken } else { 0 };
            self.page(entry.loc, out);
            entry.alternates.into_iter().take(taken).for_each(|alternate| self.page(alternate.href, out));
        }
        let mut report = sitemap.report();
        report.entries_cut += alternates_cut;
        report.is_cut |= page.response().has_flag("truncated");
        tell(page, &report, &nested, out);
        report
    }

    /// Whether a page is a sitemap that was reached by a link, and its host has not reached its limit of sitemaps.
    fn is_linked(&self, page: &Page, out: &Output<S::Item>) -> bool {
        const BEGINNING: usize = 4 << 10;
        if page.kind() != PageKind::Xml {
            return false;
        }
        let body = &page.response().body;
        let mut sitemap =
            Sitemap::new(&body[..body.len().min(BEGINNING)], page.url(), SitemapLimits::default());
        let _ = sitemap.next();
        matches!(sitemap.report().kind, Some(SitemapKind::UrlSet | SitemapKind::Index))
            && self.files.request(page.url().clone(), 0, out.context().settings()).is_some()
    }

    /// Handles a page that a sitemap lists.
    fn page(&self, mut url: Url, out: &mut Output<S::Item>) {
        let callback = match self.rules.iter().find(|(rule, _)| rule.is_match(url.as_str())) {
            Some((_, callback)) => callback,
            None if self.rules.is_empty() => DEFAULT_CALLBACK,
            None => return,
        };
        url.set_fragment(None);
        let mut request = Request::get(url).callback(callback);
        request.found_by = FoundBy::Sitemap;
        out.request(request);
    }

    /// Handles a sitemap that an index or a robots.txt names.
    fn nested(&self, page: &Page, url: Url, nested: &mut Nested, out: &mut Output<S::Item>) {
        let is_index = !page.request().meta_flag(meta::SITEMAP_ROBOTS);
        if is_index && !self.follow.is_empty() && !self.follow.iter().any(|rule| rule.is_match(url.as_str()))
        {
            return;
        }
        let above = page.request().meta_value(meta::SITEMAP_DEPTH).unwrap_or(0);
        let depth = above.saturating_add(u64::from(is_index));
        let settings = out.context().settings();
        if depth > u64::from(settings.sitemap_max_depth) {
            nested.too_deep += 1;
        } else if let Some(request) = self.files.request(url, depth, settings) {
            out.request(request);
        } else {
            nested.too_many += 1;
        }
    }

    /// Handles the sitemaps of a robots.txt that was fetched like a page.
    fn robots(&self, page: &Page, out: &mut Output<S::Item>) -> SitemapReport {
        let urls = Robots::parse(&page.response().body).sitemaps(page.url());
        let mut nested = Nested::default();
        let report = SitemapReport { entries: urls.len(), ..SitemapReport::default() };
        if urls.is_empty() {
            self.default_sitemap(page.request(), out);
        }
        urls.into_iter().for_each(|url| self.nested(page, url, &mut nested, out));
        nested.tell(page, out);
        report
    }

    /// Requests a sitemap at the usual location, for a site that names none.
    fn default_sitemap(&self, robots: &Request, out: &mut Output<S::Item>) {
        if robots.meta_flag(meta::SITEMAP_OR_DEFAULT)
            && let Ok(url) = robots.url.join("/sitemap.xml")
            && let Some(request) = self.files.request(url, 0, out.context().settings())
        {
            out.request(request);
        }
    }
}

impl<S: Spider> Spider for Sitemaps<S> {
    type Item = S::Item;

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn start(&self) -> Start {
        let sitemaps = self.start.clone().into_iter().map(|url| {
            let url = Request::parse(&url)?.url;
            let is_robots = url.path() == "/robots.txt";
            let request = files::request(url, 0, START_BYTES);
            Ok(if is_robots { request.with_meta(meta::SITEMAP_ROBOTS, true) } else { request })
        });
        Start::new(sitemaps.chain(self.inner.start()))
    }

    fn parse(&self, page: &Page, out: &mut Output<S::Item>) -> Result<()> {
        let is_sitemap = page.requested().is_sitemap() || (self.linked && self.is_linked(page, out));
        if !is_sitemap {
            // The engine cannot check labels, because the list of labels would need one more entry.
            check_label(&self.inner, page)?;
            return self.inner.parse(page, out);
        }
        let is_robots = page.request().meta_flag(meta::SITEMAP_ROBOTS);
        let report = if is_robots { self.robots(page, out) } else { self.read(page, out) };
        if let Some(on_sitemap) = &self.on_sitemap {
            on_sitemap(page, &report, out);
        }
        Ok(())
    }

    fn failed(&self, request: &Request, error: &Error, out: &mut Output<S::Item>) -> Result<()> {
        if request.is_sitemap() {
            out.context().stats().inc("sitemap/failed");
            log::info!(url = %request.url, "the sitemap could not be fetched: {error}");
            self.default_sitemap(request, out);
        }
        self.inner.failed(request, error, out)
    }

    fn allowed_domains(&self) -> Vec<String> {
        self.inner.allowed_domains()
    }

    fn settings(&self) -> Vec<(&'static str, serde_json::Value)> {
        self.inner.settings()
    }
}

impl<S: Spider> std::fmt::Debug for Sitemaps<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sitemaps")
            .field("spider", &self.inner.name())
            .field("start", &self.start)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

impl SitemapFiles {
    /// A request for the robots.txt of a URL's origin: its sitemaps are followed, or `/sitemap.xml` if it names none.
    pub fn robots_request(url: &Url) -> Option<Request> {
        let robots =
            url.join("/robots.txt").ok().filter(|robots| matches!(robots.scheme(), "http" | "https"))?;
        let bytes = crate::robots::MAX_BYTES as u64 + 1;
        Some(
            files::request(robots, 0, bytes)
                .with_meta(meta::SITEMAP_ROBOTS, true)
                .with_meta(meta::SITEMAP_OR_DEFAULT, true),
        )
    }
}

/// Counts sitemaps that were named but not requested.
#[derive(Default)]
struct Nested {
    too_deep: usize,
    too_many: usize,
}

impl Nested {
    fn tell<I>(&self, page: &Page, out: &Output<I>) {
        let Self { too_deep, too_many } = *self;
        count(out, "sitemap/depth_cut", too_deep);
        count(out, "sitemap/files_cut", too_many);
        if too_deep > 0 || too_many > 0 {
            log::warn!(
                url = %page.url(), too_deep, too_many,
                "sitemaps are left out by sitemap_max_depth and sitemap_max_files"
            );
        }
    }
}

fn count<I>(out: &Output<I>, key: &str, number: usize) {
    if number > 0 {
        out.context().stats().add(key, i64::try_from(number).unwrap_or(i64::MAX));
    }
}

/// Counts and logs the result of reading a document.
fn tell<I>(page: &Page, report: &SitemapReport, nested: &Nested, out: &Output<I>) {
    let url = page.url();
    let SitemapReport { entries, entries_cut, invalid, .. } = *report;
    count(out, "sitemap/files", 1);
    count(out, "sitemap/entries", entries);
    count(out, "sitemap/entries_cut", entries_cut);
    count(out, "sitemap/invalid", invalid);
    count(out, "sitemap/bytes_cut", report.is_cut.into());
    count(out, "sitemap/damaged", (report.is_damaged || report.is_too_deep).into());
    nested.tell(page, out);
    let Some(kind) = report.kind else {
        count(out, "sitemap/unknown", 1);
        log::warn!(%url, "this is not a sitemap: skipped");
        return;
    };
    let kind = kind.name();
    if entries_cut > 0 || report.is_cut {
        log::warn!(%url, kind, entries, entries_cut, bytes_cut = report.is_cut, "a sitemap beyond the limits: the rest is left out");
    }
    if report.is_damaged || report.is_too_deep || invalid > 0 {
        let (damaged, too_deep) = (report.is_damaged, report.is_too_deep);
        log::warn!(%url, kind, entries, invalid, damaged, too_deep, "a sitemap with errors: read as far as it goes");
    } else {
        log::debug!(%url, kind, entries, "sitemap");
    }
}

fn regex(expression: &str) -> Result<Regex> {
    Regex::new(expression).map_err(|cause| Error::usage(format!("the expression {expression:?}: {cause}")))
}
