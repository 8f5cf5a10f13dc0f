//! Reads articles: a crawl that is kept open, with robots.txt, the address guard and all limits.
//!
//! The source of a wiki's page is asked for without looking at robots.txt: the operator named the wiki, and `index.php?action=raw` is its
//! interface for programs, which robots.txt keeps from crawlers that follow links. All other limits hold for it as well.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use huntsman::detect::copyvio::Text;
use huntsman::middleware::Defaults;
use huntsman::middleware::copyvio::{Reading, TextKind, external_links};
use huntsman::{
    Context, CrawlerBuilder, DownloaderMiddleware, DropReason, Event, Handle, HttpDownloader, Layers,
    Observer, OnRequest, Output, Page, Request, Result, Spider, Start, meta,
};
use tokio::sync::oneshot;
use url::Url;

use crate::copyvio::{Read, pdf_reader};

/// Reason of a request for which nobody waits any more.
const NOT_WANTED: &str = "not_wanted";

/// The crawl that reads articles; cheap to clone, ends with the last clone.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    orders: Orders,
    /// The crawl stops when nobody has it any more.
    crawl: Arc<Crawl>,
    time: Duration,
}

#[derive(Debug)]
struct Crawl(Handle);

impl Drop for Crawl {
    fn drop(&mut self) {
        self.0.stop("finished");
    }
}

/// An article that was read.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) read: Read,
    pub(crate) title: Option<String>,
}

/// Why an article could not be read.
#[derive(Clone, Debug)]
pub(crate) struct Unread {
    pub(crate) why: String,
    /// Status of the answer, if there was one.
    pub(crate) status: Option<u16>,
    pub(crate) is_late: bool,
}

impl Unread {
    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), status: None, is_late: false }
    }
}

/// What is wanted of an address.
enum Order {
    Page(oneshot::Sender<std::result::Result<Found, Unread>>),
    Source(oneshot::Sender<std::result::Result<String, Unread>>),
}

impl Order {
    fn is_closed(&self) -> bool {
        match self {
            Order::Page(sender) => sender.is_closed(),
            Order::Source(sender) => sender.is_closed(),
        }
    }

    fn fail(self, unread: Unread) {
        // Who asked may be gone.
        match self {
            Order::Page(sender) => drop(sender.send(Err(unread))),
            Order::Source(sender) => drop(sender.send(Err(unread))),
        }
    }
}

/// Orders by the address of their request, which has a fragment of its own: two who want the same page do not get each other's.
#[derive(Clone, Default)]
struct Orders(Arc<Mutex<Open>>);

#[derive(Default)]
struct Open {
    last: u64,
    orders: HashMap<String, Order>,
    is_closed: bool,
}

impl std::fmt::Debug for Orders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Orders").field("open", &self.open().orders.len()).finish()
    }
}

impl Reader {
    /// Starts the crawl. An article may take `time` in all, waiting for its host included.
    ///
    /// # Errors
    /// A setting is wrong.
    pub(crate) fn start(layers: Layers, time: Duration) -> Result<Self> {
        let orders = Orders::default();
        let builder = CrawlerBuilder::new(orders.clone())
            .plugin(Defaults)
            .downloader_with(HttpDownloader::new)
            .observer(orders.clone())
            .middleware(orders.clone())
            .layers(layers);
        let crawler = builder.build()?;
        let handle = crawler.handle();
        handle.keep_open(true);
        let closing = Closing(orders.clone());
        tokio::spawn(async move {
            // Also when the crawl is dropped with its runtime.
            let _closing = closing;
            // What it ends with is told by what is asked of it afterwards.
            let _ = crawler.run().await;
        });
        Ok(Self { orders, crawl: Arc::new(Crawl(handle)), time })
    }

    /// Reads a page as an article.
    pub(crate) async fn page(&self, url: Url) -> std::result::Result<Found, Unread> {
        let (sender, answer) = oneshot::channel();
        self.ask(url, Order::Page(sender), false, answer).await
    }

    /// Reads the source of a wiki's page.
    pub(crate) async fn source(&self, url: Url) -> std::result::Result<String, Unread> {
        let (sender, answer) = oneshot::channel();
        self.ask(url, Order::Source(sender), true, answer).await
    }

    async fn ask<T>(
        &self,
        mut url: Url,
        order: Order,
        passes_robots: bool,
        answer: oneshot::Receiver<std::result::Result<T, Unread>>,
    ) -> std::result::Result<T, Unread> {
        {
            let mut open = self.orders.open();
            if open.is_closed {
                return Err(Unread::new("the server is ending"));
            }
            open.last += 1;
            url.set_fragment(Some(&format!("order-{}", open.last)));
            open.orders.insert(url.as_str().to_owned(), order);
        }
        let mut request = Request::get(url).unfiltered().meta("download_timeout", self.time.as_secs_f64());
        if passes_robots {
            request = request.with_meta(meta::DONT_OBEY_ROBOTSTXT, true);
        }
        self.crawl.0.push(request);
        match tokio::time::timeout(self.time, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Unread::new("the server is ending")),
            Err(_) => Err(Unread {
                is_late: true,
                ..Unread::new(format!("there was no answer within {} s", self.time.as_secs_f64()))
            }),
        }
    }
}

impl Orders {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, url: &str) -> Option<Order> {
        self.open().orders.remove(url)
    }
}

/// Closes the orders of a crawl that has ended, in whatever way.
struct Closing(Orders);

impl Drop for Closing {
    fn drop(&mut self) {
        let mut open = self.0.open();
        open.is_closed = true;
        open.orders.clear();
    }
}

impl Spider for Orders {
    type Item = ();

    fn name(&self) -> &str {
        "copyvio_articles"
    }

    fn start(&self) -> Start {
        Start::none()
    }

    fn parse(&self, page: &Page, out: &mut Output<()>) -> Result<()> {
        match self.take(page.request().requested_url()) {
            Some(Order::Page(sender)) => {
                let reading = Reading::of_page(page, out.context(), pdf_reader().as_deref());
                let found = reading.map_err(|why| Unread::new(why.to_string())).map(|reading| Found {
                    read: Read { reading, links: external_links(page) },
                    title: page.title().map(str::to_owned),
                });
                let _ = sender.send(found);
            }
            Some(Order::Source(sender)) => {
                let body = &page.response().body;
                let most = TextKind::Wikitext.most_bytes();
                let _ = sender.send(if body.len() > most {
                    Err(Unread::new(format!("it has more than {most} bytes")))
                } else {
                    Ok(Text::plain(body, Some("utf-8")).exact().to_owned())
                });
            }
            None => {}
        }
        Ok(())
    }
}

impl DownloaderMiddleware for Orders {
    fn name(&self) -> &'static str {
        "copyvio_articles"
    }

    fn order(&self) -> i32 {
        // Before robots.txt and all others: what nobody wants costs nothing.
        10
    }

    async fn process_request(&self, request: &mut Request, _: &Context) -> Result<OnRequest> {
        if request.is_nested() || request.meta_flag(meta::IS_ROBOTS_TXT) {
            return Ok(OnRequest::Continue);
        }
        let mut open = self.open();
        let url = request.requested_url();
        if open.orders.get(url).is_some_and(|order| !order.is_closed()) {
            return Ok(OnRequest::Continue);
        }
        open.orders.remove(url);
        Ok(OnRequest::Drop(DropReason::skipped(NOT_WANTED)))
    }
}

impl Observer for Orders {
    fn event(&self, event: &Event<'_>) {
        let (Event::RequestDropped(dropped) | Event::RequestRefused(dropped)) = event else { return };
        let Some(order) = self.take(&dropped.url) else { return };
        let why = match (&dropped.detail, dropped.status) {
            (Some(detail), _) => format!("{}: {detail}", dropped.reason),
            (None, Some(status)) => format!("{}: {status}", dropped.reason),
            (None, None) => dropped.reason.to_string(),
        };
        let is_late = dropped.reason.ends_with("_timeout");
        order.fail(Unread { why, status: dropped.status, is_late });
    }
}
