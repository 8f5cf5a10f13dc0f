//! The comparisons of a running check: the article with one source after the other.

use std::collections::HashMap;
use std::sync::Arc;

use huntsman_crawler::Result;
use huntsman_detect::copyvio::{Article, Check, CheckResult, SourceStatus};
use tokio::sync::{Mutex, watch};

use super::candidates::Subject;
use super::checked::Found;
use super::cores::on_core;
use super::plan::CheckPlan;
use super::reading::Reading;
use super::sources::Sources;

/// An article that is being compared with its sources. Comparisons of one article run one after the other, in the order
/// of the calls.
pub(crate) struct RunningCheck(Arc<Inner>);

struct Inner {
    subject: Arc<Subject>,
    plan: CheckPlan,
    article: Article<'static>,
    is_too_small: bool,
    progress: Arc<Mutex<Progress>>,
    has_violation: watch::Sender<bool>,
}

struct Progress {
    /// `None` after the end.
    check: Option<Check>,
    found: HashMap<String, Found>,
}

impl RunningCheck {
    /// Prepares an article.
    ///
    /// # Errors
    /// The preparation panicked.
    pub(crate) async fn begin(subject: Arc<Subject>, plan: CheckPlan) -> Result<Self> {
        on_core(move || {
            let check = Check::new(subject.text.exact(), plan.options);
            let article = Article::new(subject.text.document().into_owned());
            let is_too_small = check.is_too_small();
            let progress = Progress { check: Some(check), found: HashMap::new() };
            let (progress, has_violation) = (Arc::new(Mutex::new(progress)), watch::Sender::new(false));
            Self(Arc::new(Inner { subject, plan, article, is_too_small, progress, has_violation }))
        })
        .await
    }

    /// Whether the article has too few words for a check: no query is sent and no source is read.
    pub(crate) fn is_too_small(&self) -> bool {
        self.0.is_too_small
    }

    /// Whether a violation was found and one is enough, so that the outcome cannot change any more.
    pub(crate) fn has_violation(&self) -> bool {
        *self.0.has_violation.borrow()
    }

    /// A receiver that signals the same.
    pub(crate) fn violation(&self) -> watch::Receiver<bool> {
        self.0.has_violation.subscribe()
    }

    /// Compares the article with a source. After a violation, a source whose text was `known` beforehand is skipped;
    /// one that was being fetched still counts. If this future is dropped before its turn, nothing happens.
    ///
    /// # Errors
    /// The comparison panicked.
    pub(crate) async fn compare(
        &self,
        name: String,
        source: Arc<Reading>,
        known: bool,
    ) -> Result<SourceStatus> {
        if let Some(hint) = source.addresses.mirror(&self.0.subject.mirror_hints) {
            return Ok(SourceStatus::Excluded(hint.to_string()));
        }
        let inner = Arc::clone(&self.0);
        let mut progress = Arc::clone(&inner.progress).lock_owned().await;
        if known && self.has_violation() {
            return Ok(SourceStatus::Skipped);
        }
        let permit = match &inner.plan.memory {
            Some(memory) => Some(memory.reserve(Found::bytes(&inner.subject.text, &source.text)).await),
            None => None,
        };
        on_core(move || {
            let _permit = permit;
            let Some(check) = &mut progress.check else { return };
            check.compare(&*name, source.text.exact());
            inner.has_violation.send_replace(check.is_over());
            let (boilerplate, keep_text) = (inner.plan.boilerplate.as_deref(), inner.plan.keep_texts);
            let found = Found::of(&inner.article, &inner.subject, &source, boilerplate, keep_text);
            progress.found.insert(name, found);
        })
        .await?;
        Ok(SourceStatus::Compared)
    }

    /// The result, with the sources that were not compared: waits for a comparison that has begun.
    ///
    /// # Errors
    /// The last step panicked.
    pub(crate) async fn finish(self, sources: Sources<'_>) -> Result<(CheckResult, Parts)> {
        let mut progress = Arc::clone(&self.0.progress).lock_owned().await;
        let mut check = progress.check.take().expect("a comparison is finished once");
        let found = std::mem::take(&mut progress.found);
        let found_by = sources.record_unread(&mut check, &found);
        // This includes the comparison that was just awaited.
        let short_circuit = self.has_violation();
        Ok((on_core(move || check.finish()).await?, Parts { found, found_by, short_circuit }))
    }
}

/// The results of a check besides those of the reference's algorithm; sources by their names.
pub(crate) struct Parts {
    pub(crate) found: HashMap<String, Found>,
    pub(crate) found_by: HashMap<String, Arc<str>>,
    /// Whether a violation ended the check.
    pub(crate) short_circuit: bool,
}
