//! The output of a callback: items for the pipelines, requests for the frontier.

use serde::Serialize;
use url::Url;

use crate::context::Context;
use crate::error::Result;
use crate::log;
use crate::losses::LossKind;
use crate::page::Page;
use crate::request::Request;
use crate::route::StoredRoute;

/// Sends a full batch to the pipelines and the frontier.
type Flush<I> = Box<dyn FnMut(Vec<I>, Vec<Request>)>;

/// Tells whether a link leads to a request that is already queued or done, or to a new one.
pub(crate) type Resolve = Box<dyn Fn(&Page, &str) -> Resolved>;

/// The target of a link of a page.
pub(crate) enum Resolved {
    /// The text is not a URL.
    Invalid,
    /// A URL with a scheme other than http and https.
    Nowhere,
    /// A URL that is already queued or done.
    Known,
    /// A URL that is new, as far as the frontier can tell at once. Without the fragment.
    New(Url),
}

/// Collects the items and requests of a callback.
///
/// They are sent in batches while the callback runs, so a callback may give any number of them: memory stays bounded,
/// and the call blocks while the pipelines are behind.
pub struct Output<I> {
    items: Vec<I>,
    /// Number of items that were given, including those already sent.
    given: u64,
    requests: Vec<Request>,
    context: Context,
    /// Sends full batches; `None` in tests and for `failed`.
    flush: Option<Flush<I>>,
    /// `None` if the frontier's content is not available.
    resolve: Option<Resolve>,
}

/// Number of items or requests that are collected before they are sent as one batch.
const BATCH: usize = 1_024;

impl Resolved {
    /// Resolves a link without knowledge of the queue.
    pub(crate) fn of(page: &Page, href: &str) -> Self {
        match page.resolve(href) {
            Err(_) => Self::Invalid,
            Ok(url) if !matches!(url.scheme(), "http" | "https") => Self::Nowhere,
            Ok(mut url) => {
                url.set_fragment(None);
                Self::New(url)
            }
        }
    }
}

impl<I> Output<I> {
    /// An output that keeps everything, for tests of a callback. Read it with [`Output::into_parts`].
    pub fn new(context: Context) -> Self {
        Self { items: Vec::new(), given: 0, requests: Vec::new(), context, flush: None, resolve: None }
    }

    pub(crate) fn streaming(context: Context, flush: Flush<I>, resolve: Resolve) -> Self {
        Self { flush: Some(flush), resolve: Some(resolve), ..Self::new(context) }
    }

    /// Gives an item to the pipelines.
    pub fn item(&mut self, item: I) {
        self.items.push(item);
        self.given += 1;
        self.flush_if_full();
    }

    /// Gives an item that could be read; one that could not is counted as a loss ([`LossKind::ItemsUnread`]) and in the stat
    /// `items/unread`, and the first one is logged. So a page with a bad row gives its other rows:
    ///
    /// ```
    /// use huntsman_crawler::{Item, Output, Page, Result};
    ///
    /// fn rows<T: Item>(page: &Page, out: &mut Output<T>) -> Result<()> {
    ///     page.try_items("tr.row")?.into_iter().for_each(|row| out.try_item(row));
    ///     Ok(())
    /// }
    /// ```
    pub fn try_item(&mut self, item: Result<I>) {
        let error = match item {
            Ok(item) => return self.item(item),
            Err(error) => error,
        };
        self.context.stats().inc("items/unread");
        if self.context.lost(LossKind::ItemsUnread, "", || error.to_string()) {
            let error = error.to_string();
            log::warn!(
                "an item could not be read: {}; further ones are counted, not logged",
                error.escape_debug()
            );
        }
    }

    /// Gives items, one after the other: `out.items(page.items("div.quote")?)`.
    pub fn items(&mut self, items: impl IntoIterator<Item = I>) {
        items.into_iter().for_each(|item| self.item(item));
    }

    /// Gives a request to the frontier. Depth, referer and slot are set by the engine.
    pub fn request(&mut self, request: Request) {
        self.requests.push(request);
        self.flush_if_full();
    }

    /// Queues requests, one after the other: `out.requests(page.follow_all("li.next a")?)`.
    pub fn requests(&mut self, requests: impl IntoIterator<Item = Request>) {
        requests.into_iter().for_each(|request| self.request(request));
    }

    /// Follows a URL with a GET request to the default callback. It counts as the spider's own request
    /// ([`FoundBy::Spider`](crate::FoundBy)), so the guards against traps let it pass.
    ///
    /// A URL that is neither http nor https (`mailto:`, `javascript:`, `tel:`) is ignored and counted in the stat
    /// `links/no_page`.
    pub fn follow(&mut self, url: Url) {
        match url.scheme() {
            "http" | "https" => self.request(Request::get(url)),
            _ => self.context.stats().inc("links/no_page"),
        }
    }

    /// Follows several URLs like [`Output::follow`]. To follow all links of a page use [`Output::follow_links`].
    pub fn follow_all(&mut self, urls: impl IntoIterator<Item = Url>) {
        for url in urls {
            self.follow(url);
        }
    }

    /// Follows a URL with a GET request to a variant of the spider's enum of callbacks, like [`Output::follow`]; see [`Request::to`].
    ///
    /// # Errors
    /// The route is no variant of an enum, or cannot be written as JSON.
    pub fn go<T: Serialize>(&mut self, url: Url, route: T) -> Result<()> {
        let route = StoredRoute::of(&route)?;
        match url.scheme() {
            "http" | "https" => {
                let mut request = Request::get(url);
                route.put(&mut request);
                self.request(request);
            }
            _ => self.context.stats().inc("links/no_page"),
        }
        Ok(())
    }

    /// Follows the links that a CSS selector finds on a page ([`Page::follow_all`]), all to the same route. Returns their number.
    ///
    /// # Errors
    /// The selector is not valid, or the route is no variant of an enum, or cannot be written as JSON.
    pub fn go_all<T: Serialize>(&mut self, page: &Page, css: &str, route: T) -> Result<usize> {
        let route = StoredRoute::of(&route)?;
        let requests = page.follow_all(css)?;
        let number = requests.len();
        for mut request in requests {
            route.put(&mut request);
            self.request(request);
        }
        Ok(number)
    }

    /// Follows every link of a page with a GET request to the default callback, as a crawl of a whole site does.
    /// Returns the number of links to http and https URLs, repetitions included.
    ///
    /// A link that is not a URL is ignored and counted in the stat `links/invalid`. These links are followed
    /// automatically ([`FoundBy::Link`](crate::FoundBy)), so the guards against traps judge them: `depth_guard`,
    /// `max_links_per_page` and similar ones.
    ///
    /// This is much cheaper than following the links one by one: no request is made for links that are already queued
    /// or done. Fragments are removed, since they are never sent.
    pub fn follow_links(&mut self, page: &Page) -> usize {
        let mut links = 0;
        for link in page.anchors() {
            let resolved = match &self.resolve {
                Some(resolve) => resolve(page, link.href),
                None => Resolved::of(page, link.href),
            };
            links += usize::from(!matches!(resolved, Resolved::Invalid | Resolved::Nowhere));
            if let Resolved::New(url) = resolved {
                self.request(Request::of_link(url, link.nofollow()));
            }
        }
        links
    }

    /// Fetches a page and waits for it, through the downloader chain and the slot of its host; see [`Context::fetch`]. Meanwhile another callback
    /// has the worker thread.
    ///
    /// # Errors
    /// The download failed, a middleware dropped the request, or there is no engine.
    pub fn fetch(&self, request: Request) -> Result<Page> {
        Ok(self.context.block_on(self.context.fetch(request))?)
    }

    /// The context of the crawl: stats, settings, whether the crawl is stopping, and waiting for a future.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The items and requests that were not sent yet.
    pub fn into_parts(self) -> (Vec<I>, Vec<Request>) {
        (self.items, self.requests)
    }

    /// Number of items that were given so far.
    pub(crate) fn items_given(&self) -> u64 {
        self.given
    }

    fn flush_if_full(&mut self) {
        if self.items.len() < BATCH && self.requests.len() < BATCH {
            return;
        }
        if let Some(flush) = &mut self.flush {
            flush(std::mem::take(&mut self.items), std::mem::take(&mut self.requests));
        }
    }
}

impl<I> std::fmt::Debug for Output<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output")
            .field("items", &self.items.len())
            .field("requests", &self.requests.len())
            .finish_non_exhaustive()
    }
}
