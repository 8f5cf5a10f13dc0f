//! Rules: which links of a page are followed, and which callback gets their pages.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use huntsman_html::PageKind;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::meta;
use crate::output::Output;
use crate::page::{FoundLink, LinkExtractor, Page};
use crate::request::{DEFAULT_CALLBACK, Request};
use crate::route::StoredRoute;
use crate::spider::{Spider, check_label};
use crate::start::Start;

/// The label of requests whose pages have no callback: only the rules look at them.
const NO_CALLBACK: &str = "follow_rules";

type ProcessLinks = dyn Fn(Vec<FoundLink>, &Page) -> Vec<FoundLink> + Send + Sync;
type ProcessRequest = dyn Fn(Request, &FoundLink, &Page) -> Option<Request> + Send + Sync;

/// A rule of [`Rules`]: the links that it takes, and what happens with their pages.
#[derive(Clone)]
pub struct Rule {
    links: LinkExtractor,
    route: Option<StoredRoute>,
    arguments: Map<String, Value>,
    errback: Option<Arc<str>>,
    follow: Option<bool>,
    process_links: Option<Arc<ProcessLinks>>,
    process_request: Option<Arc<ProcessRequest>>,
}

impl Rule {
    /// A rule for these links. Until it has a callback, the links of their pages are followed, and nothing else is done with them.
    pub fn new(links: LinkExtractor) -> Self {
        Self {
            links,
            route: None,
            arguments: Map::new(),
            errback: None,
            follow: None,
            process_links: None,
            process_request: None,
        }
    }

    /// Sets the callback of the pages. Their links are followed no more then, unless [`follow`](Self::follow) says so.
    #[must_use]
    pub fn callback(mut self, label: &str) -> Self {
        self.route = Some(StoredRoute { label: label.into(), arguments: Map::new() });
        self
    }

    /// Sets the callback of the pages as a route; see [`Request::to`].
    ///
    /// # Errors
    /// The value is no variant of an enum in serde's default form, or cannot be written as JSON.
    pub fn to<T: Serialize>(mut self, route: T) -> Result<Self> {
        self.route = Some(StoredRoute::of(&route)?);
        Ok(self)
    }

    /// Sets one value that is passed to the callback.
    #[must_use]
    pub fn cb_kwarg(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.arguments.insert(key.to_owned(), value.into());
        self
    }

    /// Sets the label of the error callback; see [`Request::errback`].
    #[must_use]
    pub fn errback(mut self, label: &str) -> Self {
        self.errback = Some(label.into());
        self
    }

    /// Whether the rules look at the pages, too; by default only if they have no callback.
    #[must_use]
    pub fn follow(mut self, follow: bool) -> Self {
        self.follow = Some(follow);
        self
    }

    /// Changes or chooses among the links that the rule found on a page. Links that are not returned are left for later rules.
    #[must_use]
    pub fn process_links(
        mut self,
        process: impl Fn(Vec<FoundLink>, &Page) -> Vec<FoundLink> + Send + Sync + 'static,
    ) -> Self {
        self.process_links = Some(Arc::new(process));
        self
    }

    /// Changes the request of a link on a page; `None` leaves it out. The link is taken all the same.
    #[must_use]
    pub fn process_request(
        mut self,
        process: impl Fn(Request, &FoundLink, &Page) -> Option<Request> + Send + Sync + 'static,
    ) -> Self {
        self.process_request = Some(Arc::new(process));
        self
    }

    fn request(&self, link: &FoundLink, page: &Page) -> Option<Request> {
        let mut request = link.request();
        let follow = self.follow.unwrap_or(self.route.is_none());
        match &self.route {
            Some(route) => {
                route.put(&mut request);
                let is_implied = (*route.label == *DEFAULT_CALLBACK) == follow;
                if !is_implied {
                    request.set_meta(meta::FOLLOW_RULES, follow);
                }
            }
            None => {
                request.callback = NO_CALLBACK.into();
                if !follow {
                    request.set_meta(meta::FOLLOW_RULES, false);
                }
            }
        }
        if !self.arguments.is_empty() {
            request.rare_mut().cb_kwargs.extend(self.arguments.clone());
        }
        if let Some(errback) = &self.errback {
            request.rare_mut().errback = Some(Arc::clone(errback));
        }
        match &self.process_request {
            Some(process) => process(request, link, page),
            None => Some(request),
        }
    }
}

impl From<LinkExtractor> for Rule {
    fn from(links: LinkExtractor) -> Self {
        Self::new(links)
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let callback = self.route.as_ref().map(|route| &route.label);
        f.debug_struct("Rule")
            .field("links", &self.links)
            .field("callback", &callback)
            .field("follow", &self.follow)
            .finish_non_exhaustive()
    }
}

/// Wraps a spider: follows links by rules, like Scrapy's `CrawlSpider`.
///
/// On every HTML page that the rules look at, each rule takes its links in turn; a link that a rule took is not given to later ones. Start
/// pages, and all others of the default callback, go to `parse` of the spider, and the rules look at them. A page of another
/// callback that the spider asked for itself is looked at only if its request has [`meta::FOLLOW_RULES`].
///
/// What happens with a page is stored with its request (label, arguments, [`meta::FOLLOW_RULES`]) and not as the number of a rule, so a job
/// goes on rightly after the rules were changed. Links are followed after the callback, even if it failed: a mistake in reading one page
/// takes no other pages away (Scrapy follows nothing then).
///
/// ```
/// # use huntsman_crawler::{CrawlerBuilder, LinkExtractor, Output, Page, Result, Rule, Rules, spider_fn};
/// # use huntsman_testkit::ScriptedDownloader;
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<()> {
/// # let web = ScriptedDownloader::pages([
/// #     ("http://shop.test/", "<a href=/shelf/1>shelf</a><a href=/cart>cart</a>"),
/// #     ("http://shop.test/shelf/1", "<a href=/book/1>1</a><a href=/book/2>2</a>"),
/// #     ("http://shop.test/book/1", "<h1>Mills</h1>"),
/// #     ("http://shop.test/book/2", "<h1>Dams</h1>"),
/// # ]);
/// let shop = spider_fn(["http://shop.test/"], |page: &Page, out: &mut Output<String>| {
///     if page.callback() == "book" {
///         out.item(page.css("h1::text")?.get_or("-"));
///     }
///     Ok(())
/// });
/// let spider = Rules::new(shop)
///     .rule(LinkExtractor::new().allow("/shelf/")?)
///     .rule(Rule::new(LinkExtractor::new().allow("/book/")?).callback("book"));
/// let report = CrawlerBuilder::new(spider).downloader(web).run().await?;
/// assert_eq!((report.pages, report.stat("item_scraped_count")), (4, 2));
/// # Ok(()) }
/// ```
#[doc(alias = "CrawlSpider")]
pub struct Rules<S> {
    inner: S,
    rules: Vec<Rule>,
}

impl<S: Spider> Rules<S> {
    /// Wraps a spider, without rules.
    pub fn new(inner: S) -> Self {
        Self { inner, rules: Vec::new() }
    }

    /// Adds a rule behind the others. A [`LinkExtractor`] alone is a rule whose pages are only followed.
    #[must_use]
    pub fn rule(mut self, rule: impl Into<Rule>) -> Self {
        self.rules.push(rule.into());
        self
    }

    /// The wrapped spider.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    fn follow(&self, page: &Page, out: &mut Output<S::Item>) -> Result<()> {
        let mut taken = HashSet::new();
        for rule in &self.rules {
            let mut links = rule.links.links(page)?;
            links.retain(|link| !taken.contains(&link.url));
            let links = match &rule.process_links {
                Some(process) => process(links, page),
                None => links,
            };
            for link in links {
                if let Some(request) = rule.request(&link, page) {
                    out.request(request);
                }
                taken.insert(link.url);
            }
        }
        Ok(())
    }
}

impl<S: Spider> Spider for Rules<S> {
    type Item = S::Item;

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn start(&self) -> Start {
        self.inner.start()
    }

    fn parse(&self, page: &Page, out: &mut Output<S::Item>) -> Result<()> {
        let label = &*page.requested().callback;
        let by_default = matches!(label, DEFAULT_CALLBACK | NO_CALLBACK);
        let is_followed = page.requested().meta_value(meta::FOLLOW_RULES).unwrap_or(by_default);
        // The engine reports a label that is never read, so this reads none that is for the spider within.
        let parsed = match label {
            NO_CALLBACK => {
                page.callback();
                Ok(())
            }
            _ => check_label(&self.inner, page).and_then(|()| self.inner.parse(page, out)),
        };
        if is_followed && page.kind() == PageKind::Html {
            let followed = self.follow(page, out);
            return parsed.and(followed);
        }
        parsed
    }

    fn failed(&self, request: &Request, error: &Error, out: &mut Output<S::Item>) -> Result<()> {
        self.inner.failed(request, error, out)
    }

    fn allowed_domains(&self) -> Vec<String> {
        self.inner.allowed_domains()
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        self.inner.settings()
    }
}

impl<S: Spider> fmt::Debug for Rules<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules")
            .field("spider", &self.inner.name())
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
