//! Checks over a network, any number at once, with a cache of earlier results.

use std::sync::Arc;
use std::time::SystemTime;

use huntsman_crawler::{CrawlReport, CrawlerBuilder, Error, Handle, OnDemand, Result};
use huntsman_detect::copyvio::SourceStatus;
use serde_json::{Value, json};

use super::cache::{Key, SAME_CONFIDENCE};
use super::candidates::{CandidateSource, GivenUrls, Subject};
use super::check::check;
use super::checked::Checked;
use super::pdf::PdfText;
use super::plan::CheckPlan;
use super::reading::TextKind;
use super::source_reader::{SourceReader, SourceResult};

/// Reads sources and compares articles with them: any number of checks at once, with at most one request in flight to
/// each registrable domain over all of them, and with robots.txt, the address guard and all limits of a crawl. (This
/// corresponds to the reference's *global* workers; a workspace for each check corresponds to its *local* ones.)
///
/// A check ends when all its sources were read, when one is a violation (short circuit: those in flight still count,
/// those that were not begun are skipped), or when its time is over: downloads in flight are then cancelled, and those
/// sources are late. A source that several checks need is fetched once, and a source read in the last ten minutes is
/// not fetched again, up to 64 MiB of texts.
///
/// ```no_run
/// # async fn run() -> huntsman_crawler::Result<()> {
/// use std::sync::Arc;
/// use huntsman_detect::copyvio::Text;
/// use huntsman_sweep::{CandidateSource, CheckPlan, GivenUrls, Subject, Workspace};
///
/// let workspace = Workspace::start(None, |crawler| crawler)?;
/// let article = Subject::new(Text::new("The old mill stands on the bank of the river."));
/// let given: Arc<dyn CandidateSource> = Arc::new(GivenUrls::new(["https://example.org/mill"]));
/// let checked = workspace.check(Arc::new(article), &[given], CheckPlan::default()).await?;
/// println!("{:?}", checked.result.best());
/// workspace.finish().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Workspace(Arc<SourceReader>);

/// Number of domains that are fetched from at once: the same as the workers of the reference.
const WORKERS: usize = 8;

impl Workspace {
    /// Starts the crawl that reads sources: with [`Defaults`](huntsman_middleware::Defaults), changed by `configure` (settings,
    /// another downloader). Without `pdf`, PDF files are not read.
    ///
    /// # Errors
    /// A setting is unknown or wrong, or this is not within a tokio runtime.
    pub fn start(
        pdf: Option<Arc<dyn PdfText>>,
        configure: impl FnOnce(CrawlerBuilder<OnDemand<SourceResult>>) -> CrawlerBuilder<OnDemand<SourceResult>>,
    ) -> Result<Self> {
        let with_settings = |builder| {
            let settings = Self::settings().into_iter();
            configure(
                settings.fold(builder, |builder: CrawlerBuilder<_>, (name, value)| builder.set(name, value)),
            )
        };
        Ok(Self(Arc::new(SourceReader::start(pdf, with_settings)?)))
    }

    /// The settings of a workspace, for callers that replace all settings in [`start`](Self::start).
    pub fn settings() -> Vec<(&'static str, Value)> {
        vec![
            ("slot_by", json!("registrable_domain")),
            ("concurrent_requests", json!(WORKERS)),
            ("concurrent_requests_per_domain", json!(1)),
            ("download_delay", json!(0.0)),
            ("download_binary", json!(true)),
            ("download_maxsize", json!(TextKind::Pdf.most_bytes())),
            ("robots_retry_delays", json!([])),
            ("retry_enabled", json!(false)),
        ]
    }

    /// Compares an article with the pages that `sources` find for it. Equal URLs are read once; the URL of the article
    /// itself is not a source. For an article that is too small for a check nothing is queried or read.
    ///
    /// # Errors
    /// The workspace is finished, or a comparison panicked. A failed query is not an error: it is reported in the
    /// result.
    pub async fn check(
        &self,
        subject: Arc<Subject>,
        sources: &[Arc<dyn CandidateSource>],
        plan: CheckPlan,
    ) -> Result<Checked> {
        let Some(cache) = plan.cache.clone() else { return self.check_anew(subject, sources, plan).await };
        let key = Key::of(&subject, sources, &plan);
        let kept = {
            let cache = Arc::clone(&cache);
            tokio::task::spawn_blocking(move || cache.get(key, SystemTime::now())).await??
        };
        let usable = kept.filter(|kept| plan.options.short_circuit || kept.is_whole());
        if let Some(mut kept) = usable
            && self.still_holds(&subject, &mut kept, &plan).await?
        {
            return Ok(kept);
        }
        let checked = self.check_anew(subject, sources, plan).await?;
        if checked.is_final() {
            let checked = checked.clone();
            tokio::task::spawn_blocking(move || cache.put(key, &checked, SystemTime::now())).await??;
        }
        Ok(checked)
    }

    /// Whether the best source of an earlier result still has its confidence; if so, the evidence in it is updated in
    /// the result.
    async fn still_holds(
        &self,
        subject: &Arc<Subject>,
        kept: &mut Checked,
        plan: &CheckPlan,
    ) -> Result<bool> {
        let best = kept.result.best().filter(|best| best.status == SourceStatus::Compared);
        let Some((url, confidence)) = best.map(|best| (best.url.clone(), best.confidence)) else {
            return Ok(true);
        };
        let given: Arc<dyn CandidateSource> = Arc::new(GivenUrls::new([&url]));
        let again = self.check_anew(Arc::clone(subject), &[given], plan.clone()).await?;
        let now = again.result.best().map_or(0.0, |best| best.confidence.value());
        let holds = (now - confidence.value()).abs() < SAME_CONFIDENCE;
        if holds {
            kept.found.extend(again.found);
            kept.time = again.time;
        }
        Ok(holds)
    }

    async fn check_anew(
        &self,
        subject: Arc<Subject>,
        sources: &[Arc<dyn CandidateSource>],
        plan: CheckPlan,
    ) -> Result<Checked> {
        if self.0.client.is_ended() {
            return Err(Error::usage("this workspace is finished"));
        }
        check(&self.0, subject, sources, &plan).await
    }

    /// The crawl that reads sources, for its stats.
    pub fn handle(&self) -> &Handle {
        self.0.client.handle()
    }

    /// Ends the crawl that reads sources, and returns its report.
    pub async fn finish(&self) -> Result<CrawlReport> {
        self.0.client.finish().await
    }
}
