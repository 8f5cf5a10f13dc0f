//! The result of a check.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use huntsman_detect::copyvio::{
    Article, Boilerplate, CheckResult, Direction, Evidence, LicenceHint, SourceStatus, Text,
};
use serde::{Deserialize, Serialize};

use super::candidates::Subject;
use super::reading::Reading;

/// The result of a check.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Checked {
    /// The results of the reference's algorithm, the most suspicious source first.
    pub result: CheckResult,
    /// By source: the evidence in the sources that were compared.
    pub found: HashMap<String, Found>,
    /// By source: the name of the candidate source that found it.
    pub found_by: HashMap<String, Arc<str>>,
    /// Number of queries to search engines and indexes.
    pub queries: usize,
    /// Whether a violation ended the check early: sources that were not begun were skipped.
    pub short_circuit: bool,
    /// Whether queries were left out because the check ended before.
    pub possible_miss: bool,
    /// Queries that failed: the name of the candidate source, and the reason.
    pub errors: Vec<(Arc<str>, String)>,
    /// The time that the check took.
    pub time: Duration,
    /// The time of the earlier check, if the result is from the cache.
    #[serde(skip)]
    pub cached: Option<SystemTime>,
}

/// The evidence in a source that was compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Found {
    /// The passages it shares with the article.
    pub evidence: Evidence,
    /// The licence that the source states.
    pub licence: Option<LicenceHint>,
    /// Which of the two texts existed first.
    pub direction: Direction,
    /// Its text, if texts are kept; for a cached result, only that of the best source.
    #[serde(skip)]
    pub text: Option<Text>,
}

impl Checked {
    pub(crate) fn of(result: CheckResult) -> Self {
        Self {
            result,
            found: HashMap::new(),
            found_by: HashMap::new(),
            queries: 0,
            short_circuit: false,
            possible_miss: false,
            errors: Vec::new(),
            time: Duration::ZERO,
            cached: None,
        }
    }

    /// Whether the check was complete: no source was skipped, no query left out.
    pub(crate) fn is_whole(&self) -> bool {
        !self.possible_miss
            && !self.result.sources.iter().any(|source| source.status == SourceStatus::Skipped)
    }

    /// Whether another check would give the same result: no failure was temporary.
    pub(crate) fn is_final(&self) -> bool {
        self.errors.is_empty()
            && !self.result.sources.iter().any(|source| source.status == SourceStatus::Late)
    }
}

/// Memory that a comparison takes per byte of its two texts, in bytes: measured with texts of one-letter words, which take
/// the most.
const BYTES_PER_BYTE: usize = 80;

impl Found {
    /// Maximum bytes of memory that a comparison of two texts takes.
    pub fn bytes(article: &Text, source: &Text) -> usize {
        BYTES_PER_BYTE * (article.text().len() + source.text().len())
    }

    /// Compares an article, prepared from the text of `subject`, with a source; `boilerplate` is text that is known to
    /// occur on many sites.
    pub fn of(
        prepared: &Article<'_>,
        subject: &Subject,
        source: &Reading,
        boilerplate: Option<&Boilerplate>,
        keep_text: bool,
    ) -> Self {
        let document = source.text.document();
        Self {
            evidence: match boilerplate {
                Some(boilerplate) => prepared.compare_knowing(&document, boilerplate),
                None => prepared.compare(&document),
            },
            licence: source.licence.clone(),
            direction: Direction::of(subject.dates, source.dates),
            text: keep_text.then(|| source.text.clone()),
        }
    }
}
