//! The sources of a check: which candidates are read, and the status of each.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use huntsman_detect::copyvio::{Check, SourceStatus};
use huntsman_detect::urlparts::canonical;
use url::Url;

use super::candidates::{Candidate, Subject};
use super::checked::Found;
use super::plan::CheckPlan;
use super::reading::Reading;

/// All sources that were found for an article, in the order in which they were found.
pub(crate) struct Sources<'p> {
    plan: &'p CheckPlan,
    /// The address of the article itself.
    own: Option<String>,
    seen: HashSet<String>,
    /// The status is set for sources that are not compared, once it is known.
    all: Vec<(String, Option<SourceStatus>)>,
    /// Number of sources that were accepted for reading.
    accepted: usize,
    found_by: HashMap<String, Arc<str>>,
}

/// A source that is to be compared.
pub(crate) struct Source {
    /// Its place among all sources.
    pub(crate) number: usize,
    pub(crate) name: String,
    pub(crate) text: SourceText,
}

/// Where the text of a source is.
pub(crate) enum SourceText {
    /// The candidate came with its text.
    Known(Arc<Reading>),
    /// It is to be fetched.
    At(Url),
}

impl<'p> Sources<'p> {
    pub(crate) fn new(subject: &Subject, plan: &'p CheckPlan) -> Self {
        Self {
            plan,
            own: subject.url.as_deref().and_then(|url| Some(canonical(&Url::parse(url).ok()?))),
            seen: HashSet::new(),
            all: Vec::new(),
            accepted: 0,
            found_by: HashMap::new(),
        }
    }

    /// Records a candidate that `by` found. Returns it as a source if it must be compared: it is new, it is not the
    /// article itself, no rule excludes it, and more sources are wanted.
    pub(crate) fn accept(&mut self, candidate: Candidate, by: &Arc<str>, are_wanted: bool) -> Option<Source> {
        let Candidate { url: name, text, dates } = candidate;
        if !self.seen.insert(name.clone()) {
            return None;
        }
        let url = match Url::parse(&name) {
            Ok(url) if self.own.as_ref().is_some_and(|own| *own == canonical(&url)) => return None,
            Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
            Ok(url) => Err(format!("{}: is not fetched", url.scheme())),
            Err(error) => Err(error.to_string()),
        };
        self.found_by.insert(name.clone(), Arc::clone(by));
        let number = self.all.len();
        self.all.push((name.clone(), None));
        let rule = self.plan.exclusions.as_ref().and_then(|exclusions| exclusions.rule_for(&name));
        if let Some(rule) = rule {
            self.settle(number, SourceStatus::Excluded(rule.to_owned()));
            return None;
        }
        if !are_wanted || self.accepted >= self.plan.max_sources {
            self.settle(number, SourceStatus::Skipped);
            return None;
        }
        self.accepted += 1;
        let text = match (text, url) {
            (Some(text), _) => SourceText::Known(Arc::new(Reading { text, dates, ..Reading::default() })),
            (None, Ok(url)) => SourceText::At(url),
            (None, Err(why)) => {
                self.settle(number, SourceStatus::Failed(why));
                return None;
            }
        };
        Some(Source { number, name, text })
    }

    /// Notes the status of a source.
    pub(crate) fn settle(&mut self, number: usize, status: SourceStatus) {
        self.all[number].1 = Some(status);
    }

    /// Records in the check the sources that were not compared; those without a status are late. Returns the candidate
    /// source that found each of them.
    pub(crate) fn record_unread(
        self,
        check: &mut Check,
        compared: &HashMap<String, Found>,
    ) -> HashMap<String, Arc<str>> {
        for (name, status) in self.all {
            if compared.contains_key(&name) {
                continue;
            }
            match status {
                Some(SourceStatus::Excluded(why)) => check.record_excluded(name, why),
                Some(SourceStatus::Skipped) => check.record_skipped(name),
                Some(SourceStatus::Failed(why)) => check.record_failed(name, why),
                Some(SourceStatus::Late | SourceStatus::Compared) | None => check.record_late(name),
            };
        }
        self.found_by
    }
}
