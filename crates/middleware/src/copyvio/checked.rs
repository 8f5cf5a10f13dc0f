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
    /// The reference's numbers, the most suspicious source first.
    pub result: CheckResult,
    /// By source: what was found in those that were compared.
    pub found: HashMap<String, Found>,
    /// By source: what it was found by.
    pub found_by: HashMap<String, Arc<str>>,
    /// Questions that were put to search engines and indexes.
    pub queries: usize,
    /// A violation ended it: sources that had not been begun were skipped.
    pub short_circuit: bool,
    /// Questions were left out, since the check was over before.
    pub possible_miss: bool,
    /// Questions that had no answer: who was asked, and why.
    pub errors: Vec<(Arc<str>, String)>,
    /// How long it took.
    pub time: Duration,
    /// It is the result of an earlier check, of that time.
    #[serde(skip)]
    pub cached: Option<SystemTime>,
}

/// What was found in a source that was compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Found {
    /// What it shares with the article.
    pub evidence: Evidence,
    /// The licence that the source is under, by its own word.
    pub licence: Option<LicenceHint>,
    /// Which of the two was there first.
    pub direction: Direction,
    /// What it says, if texts are kept; of a result of an earlier check, the best source's only.
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

    /// Whether all sources were wanted: none was skipped, no question left out.
    pub(crate) fn is_whole(&self) -> bool {
        !self.possible_miss
            && !self.result.sources.iter().any(|source| source.status == SourceStatus::Skipped)
    }

    /// Whether another check would find the same: nothing failed that is no source's fault.
    pub(crate) fn is_final(&self) -> bool {
        self.errors.is_empty()
            && !self.result.sources.iter().any(|source| source.status == SourceStatus::Late)
    }
}

/// Bytes of memory that a comparison takes for each byte of its two texts, measured with texts of words of one letter, which take most.
const BYTES_PER_BYTE: usize = 80;

impl Found {
    /// Bytes of memory that it takes at most to compare two texts.
    pub fn bytes(article: &Text, source: &Text) -> usize {
        BYTES_PER_BYTE * (article.text().len() + source.text().len())
    }

    /// Compares an article, prepared from the text of `subject`, with a source; `boilerplate` is what is known to stand on many sites.
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
