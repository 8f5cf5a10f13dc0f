//! What a callback gives: items for the pipelines, requests for the frontier.

use url::Url;

use crate::context::Context;
use crate::page::Page;
use crate::request::Request;

/// Takes full batches away.
type Flush<I> = Box<dyn FnMut(Vec<I>, Vec<Request>)>;

/// Whether a GET of this URL is queued or done already.
type IsKnown = Box<dyn Fn(&Url) -> bool>;

/// Takes items and requests from a callback.
///
/// They leave in batches while the callback runs, so a callback may give any number of them: memory stays bounded, and the
/// call blocks while the pipelines are behind.
pub struct Output<I> {
    items: Vec<I>,
    requests: Vec<Request>,
    context: Context,
    /// Takes full batches; `None` in tests and for `failed`.
    flush: Option<Flush<I>>,
    /// Whether a GET of this URL is known to be queued or done already.
    is_known: Option<IsKnown>,
}

/// Items or requests that are kept before they leave in one batch.
const BATCH: usize = 1_024;

impl<I> Output<I> {
    /// An output that keeps everything: what tests of a callback use. Read it with [`Output::into_parts`].
    pub fn new(context: Context) -> Self {
        Self { items: Vec::new(), requests: Vec::new(), context, flush: None, is_known: None }
    }

    pub(crate) fn streaming(context: Context, flush: Flush<I>, is_known: IsKnown) -> Self {
        Self { flush: Some(flush), is_known: Some(is_known), ..Self::new(context) }
    }

    /// Gives an item to the pipelines.
    pub fn item(&mut self, item: I) {
        self.items.push(item);
        self.flush_if_full();
    }

    /// Gives a request to the frontier. Depth, referer and slot are set by the engine.
    pub fn request(&mut self, request: Request) {
        self.requests.push(request);
        self.flush_if_full();
    }

    /// Follows a URL with a GET request to the default callback.
    pub fn follow(&mut self, url: Url) {
        self.request(Request::get(url));
    }

    /// Follows several URLs.
    pub fn follow_all(&mut self, urls: impl IntoIterator<Item = Url>) {
        for url in urls {
            self.follow(url);
        }
    }

    /// Follows every link of a page with a GET request to the default callback: what a crawl of a whole site does. Cheaper than
    /// the same by hand: links to pages that are known already cost no request.
    pub fn follow_links(&mut self, page: &Page) {
        for link in page.anchors() {
            if let Some(url) = page.join(link.href)
                && !self.is_known.as_ref().is_some_and(|is_known| is_known(&url))
            {
                let mut request = Request::get(url);
                request.nofollow = link.nofollow();
                self.request(request);
            }
        }
    }

    /// Stats, settings, whether the crawl is stopping, and waiting for a future.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The items and requests that did not leave yet.
    pub fn into_parts(self) -> (Vec<I>, Vec<Request>) {
        (self.items, self.requests)
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
