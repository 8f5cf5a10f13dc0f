//! Reads articles, with robots.txt, the address guard and all limits of a crawl.
//!
//! The wikitext of a page is fetched without regard to robots.txt: the operator named the wiki, and
//! `index.php?action=raw` is its interface for programs, which robots.txt closes to crawlers that follow links. All
//! other limits apply to it as well.

use std::sync::Arc;
use std::time::Duration;

use huntsman_crawler::{
    ClientError, Context, CrawlClient, CrawlerBuilder, HttpDownloader, OnDemand, Page, Request, Result,
};
use huntsman_detect::copyvio::Text;
use huntsman_middleware::Defaults;
use url::Url;

use crate::linked_text::LinkedText;
use crate::pdf::PdfText;
use crate::reading::{Reading, TextKind};

/// Label of a request for the wikitext of a page.
const SOURCE: &str = "source";

/// The result of fetching an article: the article, or why it has no text.
type Fetched = std::result::Result<Arc<FetchedArticle>, String>;

/// Fetches articles. Cheap to clone; clones share one crawl.
#[derive(Clone, Debug)]
pub struct ArticleReader {
    client: CrawlClient<Fetched>,
    time: Duration,
}

/// An article that was fetched.
#[derive(Clone, Debug)]
pub struct FetchedArticle {
    /// Its text with its links.
    pub text: LinkedText,
    /// The title of the page.
    pub title: Option<String>,
}

/// Why an article could not be read.
#[derive(Clone, Debug)]
pub struct ReadError {
    /// The reason, for people.
    pub why: String,
    /// Status of the response, if there was one.
    pub status: Option<u16>,
    /// Whether the time limit was reached.
    pub is_late: bool,
}

impl ArticleReader {
    /// Starts the crawl that fetches articles, with [`Defaults`] changed by `configure`. An article may take `time` in
    /// all, including the wait for its host. Without `pdf`, PDF files are not read.
    ///
    /// # Errors
    /// A setting is wrong, or this is not within a tokio runtime.
    pub fn start(
        pdf: Option<Arc<dyn PdfText>>,
        time: Duration,
        configure: impl FnOnce(CrawlerBuilder<OnDemand<Fetched>>) -> CrawlerBuilder<OnDemand<Fetched>>,
    ) -> Result<Self> {
        let reading = OnDemand::reading(move |page: &Page, cx: &Context| match page.callback() {
            SOURCE => source(page),
            _ => article(page, cx, pdf.as_deref()),
        });
        let builder = CrawlerBuilder::new(reading).plugin(Defaults).downloader_with(HttpDownloader::new);
        Ok(Self { client: CrawlClient::start(configure(builder))?, time })
    }

    /// Fetches a page as an article.
    ///
    /// # Errors
    /// The page was not fetched in time, or has no text.
    pub async fn page(&self, url: Url) -> Result<Arc<FetchedArticle>, ReadError> {
        self.read(Request::get(url)).await
    }

    /// Fetches the wikitext of a wiki's page.
    ///
    /// # Errors
    /// The text was not fetched in time, or is larger than 2 MiB.
    pub async fn source(&self, url: Url) -> Result<String, ReadError> {
        let request = Request::get(url).callback(SOURCE).meta("dont_obey_robotstxt", true);
        Ok(self.read(request).await?.text.reading.text.exact().to_owned())
    }

    async fn read(&self, request: Request) -> Result<Arc<FetchedArticle>, ReadError> {
        let request = request.meta("download_timeout", self.time.as_secs_f64());
        let failed = |why: String| ReadError { why, status: None, is_late: false };
        match tokio::time::timeout(self.time, self.client.fetch(request)).await {
            Ok(Ok(read)) => read.map_err(failed),
            Ok(Err(ClientError::Dropped { dropped, .. })) => Err(ReadError {
                why: dropped.why(),
                status: dropped.status,
                is_late: dropped.reason.ends_with("_timeout"),
            }),
            Ok(Err(_)) => Err(failed("the server is ending".to_owned())),
            Err(_) => {
                let why = format!("there was no answer within {} s", self.time.as_secs_f64());
                Err(ReadError { why, status: None, is_late: true })
            }
        }
    }
}

fn article(page: &Page, cx: &Context, pdf: Option<&dyn PdfText>) -> Fetched {
    let text = LinkedText::of_page(page, cx, pdf).map_err(|why| why.to_string())?;
    Ok(Arc::new(FetchedArticle { text, title: page.title().map(str::to_owned) }))
}

fn source(page: &Page) -> Fetched {
    let (body, most) = (&page.response().body, TextKind::Wikitext.most_bytes());
    if body.len() > most {
        return Err(format!("it has more than {most} bytes"));
    }
    let reading = Reading { text: Text::plain(body, Some("utf-8")), ..Reading::default() };
    Ok(Arc::new(FetchedArticle { text: LinkedText { reading, links: Vec::new() }, title: None }))
}
