//! What a callback gives: items for the pipelines, requests for the frontier.

use url::Url;

use crate::context::Context;
use crate::page::Page;
use crate::request::Request;

/// Takes full batches away.
type Flush<I> = Box<dyn FnMut(Vec<I>, Vec<Request>)>;

/// Tells links to what is queued or done already from new ones.
type Resolve = Box<dyn Fn(&Page, &str) -> Resolved>;

/// What a link of a page leads to.
pub(crate) enum Resolved {
    /// What is no URL.
    Invalid,
    /// A URL of another scheme than http and https.
    Nowhere,
    /// What is queued or done.
    Known,
    /// Something else, as far as the frontier can tell at once. Without the fragment.
    New(Url),
}

/// Takes items and requests from a callback.
///
/// They leave in batches while the callback runs, so a callback may give any number of them: memory stays bounded, and the
/// call blocks while the pipelines are behind.
pub struct Output<I> {
    items: Vec<I>,
    /// Items that were given, those that left included.
    given: u64,
    requests: Vec<Request>,
    context: Context,
    /// Takes full batches; `None` in tests and for `failed`.
    flush: Option<Flush<I>>,
    /// `None` where nobody knows what is queued.
    resolve: Option<Resolve>,
}

/// Items or requests that are kept before they leave in one batch.
const BATCH: usize = 1_024;

impl Resolved {
    /// Without knowledge of what is queued.
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
    /// An output that keeps everything: what tests of a callback use. Read it with [`Output::into_parts`].
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

    /// Gives a request to the frontier. Depth, referer and slot are set by the engine.
    pub fn request(&mut self, request: Request) {
        self.requests.push(request);
        self.flush_if_full();
    }

    /// Follows a URL with a GET request to the default callback. It is the spider's own choice
    /// ([`FoundBy::Spider`](crate::FoundBy)): the guards against traps let it pass.
    ///
    /// What is no page (`mailto:`, `javascript:`, `tel:`: neither http nor https) is passed over and counted in the stat
    /// `links/no_page`.
    pub fn follow(&mut self, url: Url) {
        match url.scheme() {
            "http" | "https" => self.request(Request::get(url)),
            _ => self.context.stats().inc("links/no_page"),
        }
    }

    /// Follows several URLs, as [`Output::follow`] does. For all links of a page there is [`Output::follow_links`].
    pub fn follow_all(&mut self, urls: impl IntoIterator<Item = Url>) {
        for url in urls {
            self.follow(url);
        }
    }

    /// Follows every link of a page with a GET request to the default callback, and answers with the number of its links
    /// to http and https addresses, repetitions included: what a crawl of a whole site does.
    ///
    /// What is no URL is left out and counted in the stat `links/invalid`. Nobody looks at these links
    /// ([`FoundBy::Link`](crate::FoundBy)), so the guards against traps do: `depth_guard`, `max_links_per_page` and their kin.
    ///
    /// Much cheaper than the same by hand: links to what is queued or done already cost no request. Fragments are left
    /// out, they are never sent.
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

    /// Stats, settings, whether the crawl is stopping, and waiting for a future.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The items and requests that did not leave yet.
    pub fn into_parts(self) -> (Vec<I>, Vec<Request>) {
        (self.items, self.requests)
    }

    /// Items that were given so far.
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
