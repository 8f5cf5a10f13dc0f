//! A rule, with what became of the requests to which it applied.

use crate::avoid::estimate::Explorations;
use crate::avoid::rows::Row;
use crate::avoid::site::Kinship;

/// A rule by which requests were skipped, or which was not believed so far.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The site: a host, or the name that the caller uses for it.
    pub site: String,
    /// The rule as text.
    pub rule: String,
    /// The relation of the URLs that it connects.
    pub kinship: Kinship,
    /// The slots that it considers irrelevant: names of parameters, and numbers of path segments (from 0, as `/0`).
    pub dropped: Vec<String>,
    /// The pages that tested it, with decay.
    pub evidence: Row,
    /// The number of requests that were skipped by it.
    pub skipped: u64,
    /// The number of skips that were fetched nevertheless.
    pub explored: u64,
    /// The number of explored skips that had new content.
    pub lost: u64,
    /// The number of requests that it tied to a known page, and that were fetched because it was not believed.
    pub fetched: u64,
    /// A URL that was skipped by it, or that it tied to a known page.
    pub example: String,
    pub(super) key: u64,
    pub(super) explorations: Explorations,
}

impl Rule {
    /// The share of the skips by this rule that would have brought new content, and the upper end of its 95 % interval; see
    /// [`Totals::loss`](super::Totals::loss).
    pub fn loss(&self) -> Option<(f64, f64)> {
        self.explorations.loss()
    }

    /// Whether any request was skipped or explored by it.
    pub(super) fn is_used(&self) -> bool {
        self.skipped + self.explored > 0
    }
}
