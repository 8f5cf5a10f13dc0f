//! Reads sources: each page is fetched once for all checks that need it, and not again for some minutes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use huntsman_crawler::{
    ClientError, Context, CrawlClient, CrawlerBuilder, Fetch, HttpDownloader, OnDemand, Page, Request, Result,
};
use huntsman_detect::copyvio::SourceStatus;
use huntsman_middleware::Defaults;
use tokio::sync::watch;
use url::Url;

use super::full_text::{FULL_TEXT, feed_text, full_text_url};
use super::pdf::PdfText;
use super::reading::{NoText, Reading};
use super::recent::Recent;
use super::text_only::TextOnly;

/// The result of fetching a source: its reading, or the reason why it has no text.
pub type SourceResult = Result<Arc<Reading>, NoText>;

/// Maximum bytes of texts that are kept for later checks, and how long they are kept.
const RECENT_BYTES: usize = 64 << 20;
const RECENT_LIFE: Duration = Duration::from_secs(600);
/// How long a download continues when no check waits for it any more.
const GRACE: Duration = Duration::from_millis(200);
/// Maximum number of URLs that are followed to the text of a page.
const MOST_STEPS: usize = 3;

/// Reads sources for any number of checks.
#[derive(Debug)]
pub(crate) struct SourceReader {
    pub(crate) client: CrawlClient<SourceResult>,
    recent: Arc<Mutex<Recent>>,
}

impl SourceReader {
    /// Starts the crawl that fetches the sources.
    ///
    /// # Errors
    /// Those of [`CrawlClient::start`].
    pub(crate) fn start(
        pdf: Option<Arc<dyn PdfText>>,
        configure: impl FnOnce(CrawlerBuilder<OnDemand<SourceResult>>) -> CrawlerBuilder<OnDemand<SourceResult>>,
    ) -> Result<Self> {
        let recent = Arc::new(Mutex::new(Recent::new(RECENT_BYTES, RECENT_LIFE)));
        let keep = Arc::clone(&recent);
        let reading = move |page: &Page, cx: &Context| {
            let reading = Arc::new(read(page, cx, pdf.as_deref())?);
            // The reading is kept before the checks get it: a check that needs the page in between finds either the
            // fetch or the reading, and does not fetch the page again.
            locked(&keep).keep(page.request().requested_url(), &reading, Instant::now());
            Ok(reading)
        };
        let builder = CrawlerBuilder::new(OnDemand::reading(reading).grace(GRACE))
            .plugin(Defaults)
            .downloader_with(HttpDownloader::new)
            .middleware(TextOnly)
            .observer(TextOnly);
        Ok(Self { client: CrawlClient::start(configure(builder))?, recent })
    }

    /// Reads a source, whose download may take `time`. If a page only shows a text from elsewhere, that text is
    /// fetched.
    ///
    /// # Errors
    /// The status of a source without a text: failed; skipped, if it was still in the queue when `over` became true;
    /// late, if the crawl has ended.
    pub(crate) async fn read(
        &self,
        url: &Url,
        time: Duration,
        mut over: watch::Receiver<bool>,
    ) -> Result<Arc<Reading>, SourceStatus> {
        let mut fetch = match self.lookup(Request::get(url.clone()), time) {
            Lookup::Recent(reading) => return Ok(reading),
            Lookup::Fetch(fetch) => fetch,
        };
        let is_over = async { drop(over.wait_for(|over| *over).await) };
        let fetched = tokio::select! {
            biased;
            fetched = &mut fetch => fetched,
            () = is_over => {
                if fetch.is_queued() {
                    return Err(SourceStatus::Skipped);
                }
                fetch.await
            }
        };
        self.follow_to_full_text(fetched, time).await
    }

    /// The text of a page that was fetched, or of the page that has the text it shows.
    async fn follow_to_full_text(
        &self,
        mut fetched: Result<SourceResult, ClientError>,
        time: Duration,
    ) -> Result<Arc<Reading>, SourceStatus> {
        for _ in 0..MOST_STEPS {
            let Ok(Err(NoText::Elsewhere(there))) = fetched else { break };
            fetched = match self.lookup(Request::get(there).callback(FULL_TEXT), time) {
                Lookup::Recent(reading) => return Ok(reading),
                Lookup::Fetch(fetch) => fetch.await,
            };
        }
        match fetched {
            Ok(Ok(reading)) => Ok(reading),
            Ok(Err(why)) => Err(SourceStatus::Failed(why.to_string())),
            Err(ClientError::Dropped { dropped, .. }) => Err(SourceStatus::Failed(match &dropped.detail {
                // The download was stopped by `TextOnly`, which gives the reason.
                Some(why) if dropped.component == TextOnly::NAME => why.clone(),
                _ => dropped.why(),
            })),
            Err(_) => Err(SourceStatus::Late),
        }
    }

    /// A recent reading, or else a fetch of the page.
    fn lookup(&self, request: Request, time: Duration) -> Lookup {
        // The lock is held until the fetch has joined the client: a reading that arrives in between would be missed.
        let recent = locked(&self.recent);
        match recent.get(request.url.as_str(), Instant::now()) {
            Some(reading) => Lookup::Recent(reading),
            None => Lookup::Fetch(self.client.fetch(request.meta("download_timeout", time.as_secs_f64()))),
        }
    }
}

/// Where the reading of a page comes from.
enum Lookup {
    /// It was read in the last minutes.
    Recent(Arc<Reading>),
    /// The page is fetched.
    Fetch(Fetch<SourceResult>),
}

/// The text of a page, unless it is at another URL.
fn read(page: &Page, cx: &Context, pdf: Option<&dyn PdfText>) -> Result<Reading, NoText> {
    let reading = match feed_text(page) {
        Some(text) => Ok(Reading { text, ..Reading::default() }),
        None => Reading::of_page(page, cx, pdf),
    };
    match full_text_url(page, reading.is_err()) {
        Some(there) => Err(NoText::Elsewhere(there)),
        None => reading,
    }
}

fn locked(recent: &Mutex<Recent>) -> MutexGuard<'_, Recent> {
    recent.lock().unwrap_or_else(PoisonError::into_inner)
}
