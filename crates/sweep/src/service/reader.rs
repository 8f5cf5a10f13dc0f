//! Reads articles, with robots.txt, the address guard and all limits of a crawl.
//!
//! The wikitext of a page is fetched without regard to robots.txt: the operator named the wiki, and
//! `index.php?action=raw` is its interface for programs, which robots.txt closes to crawlers that follow links. All
//! other limits apply to it as well.

use std::sync::Arc;
use std::time::Duration;

use huntsman::detect::copyvio::Text;
use huntsman::sweep::{Reading, TextKind, external_links};
use huntsman::{ClientError, Context, CrawlClient, Layers, OnDemand, Page, Request, Result};
use url::Url;

use crate::copyvio::{Read, pdf_reader};

/// Label of a request for the wikitext of a page.
const SOURCE: &str = "source";

/// Fetches articles; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    client: CrawlClient<Result<Arc<Found>, String>>,
    time: Duration,
}

/// An article that was read.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) read: Read,
    pub(crate) title: Option<String>,
}

/// Why an article could not be read.
#[derive(Clone, Debug)]
pub(crate) struct Unread {
    pub(crate) why: String,
    /// Status of the response, if there was one.
    pub(crate) status: Option<u16>,
    pub(crate) is_late: bool,
}

impl Reader {
    /// Starts the crawl that fetches articles. An article may take `time` in all, including the wait for its host.
    ///
    /// # Errors
    /// A setting is wrong.
    pub(crate) fn start(layers: Layers, time: Duration) -> Result<Self> {
        let reading = OnDemand::reading(|page: &Page, cx: &Context| match page.callback() {
            SOURCE => source(page),
            _ => article(page, cx),
        });
        Ok(Self { client: CrawlClient::start(huntsman::crawl(reading).layers(layers))?, time })
    }

    /// Reads a page as an article.
    pub(crate) async fn page(&self, url: Url) -> Result<Arc<Found>, Unread> {
        self.read(Request::get(url)).await
    }

    /// Reads the wikitext of a wiki's page.
    pub(crate) async fn source(&self, url: Url) -> Result<String, Unread> {
        let request = Request::get(url).callback(SOURCE).meta("dont_obey_robotstxt", true);
        Ok(self.read(request).await?.read.reading.text.exact().to_owned())
    }

    async fn read(&self, request: Request) -> Result<Arc<Found>, Unread> {
        let request = request.meta("download_timeout", self.time.as_secs_f64());
        let failed = |why: String| Unread { why, status: None, is_late: false };
        match tokio::time::timeout(self.time, self.client.fetch(request)).await {
            Ok(Ok(read)) => read.map_err(failed),
            Ok(Err(ClientError::Dropped { dropped, .. })) => Err(Unread {
                why: dropped.why(),
                status: dropped.status,
                is_late: dropped.reason.ends_with("_timeout"),
            }),
            Ok(Err(_)) => Err(failed("the server is ending".to_owned())),
            Err(_) => {
                let why = format!("there was no answer within {} s", self.time.as_secs_f64());
                Err(Unread { why, status: None, is_late: true })
            }
        }
    }
}

fn article(page: &Page, cx: &Context) -> Result<Arc<Found>, String> {
    let reading = Reading::of_page(page, cx, pdf_reader().as_deref()).map_err(|why| why.to_string())?;
    let read = Read { reading, links: external_links(page) };
    Ok(Arc::new(Found { read, title: page.title().map(str::to_owned) }))
}

fn source(page: &Page) -> Result<Arc<Found>, String> {
    let (body, most) = (&page.response().body, TextKind::Wikitext.most_bytes());
    if body.len() > most {
        return Err(format!("it has more than {most} bytes"));
    }
    let reading = Reading { text: Text::plain(body, Some("utf-8")), ..Reading::default() };
    Ok(Arc::new(Found { read: Read { reading, links: Vec::new() }, title: None }))
}
