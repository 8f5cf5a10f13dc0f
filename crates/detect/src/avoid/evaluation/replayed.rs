//! The result of a crawl of a recorded site.

use super::recording::Recording;
use super::truth::Score;

/// What was saved and lost by the truth, and why.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The score by both views of the truth.
    pub score: Score,
    /// The URLs of the requests that were sent, in order.
    pub requests: Vec<String>,
    /// The number of requests that were not sent.
    pub skipped: usize,
    /// The number of requests that were sent although they would have been skipped.
    pub explored: usize,
    /// The number of pages that the model learnt.
    pub pages_learnt: usize,
    /// The pages that were fetched although their content, by the area, had been fetched before; empty for MaybeDont's rules, which have no
    /// such causes.
    pub duplicates: Vec<Duplicate>,
    /// One entry for each content, by the area, that was never fetched.
    pub lost: Vec<Loss>,
    /// The model's own estimate; see [`Totals::loss`](crate::avoid::Totals::loss). `None` for MaybeDont's rules.
    pub estimated_loss: Option<(f64, f64)>,
}

impl Replayed {
    /// The result of a crawl that fetched these pages in this order; what a model counts is empty.
    pub(super) fn of(recording: &Recording, fetched: &[u32], skipped: usize, lost: Vec<Loss>) -> Self {
        let pages = || fetched.iter().map(|page| &recording.pages[*page as usize]);
        Self {
            score: recording.truth.score_rows(pages().map(|page| page.row)),
            requests: pages().map(|page| page.url.to_string()).collect(),
            skipped,
            explored: 0,
            pages_learnt: 0,
            duplicates: Vec::new(),
            lost,
            estimated_loss: None,
        }
    }

    /// The number of duplicates that were fetched for this cause.
    pub fn count(&self, cause: Cause) -> usize {
        self.duplicates.iter().filter(|duplicate| duplicate.cause == cause).count()
    }
}

/// A page whose content had been fetched before.
#[derive(Clone, Debug)]
pub struct Duplicate {
    /// Why it was fetched.
    pub cause: Cause,
    /// Its URL.
    pub url: String,
    /// The first page that was fetched with this content.
    pub like: String,
    /// The relation that came nearest to skipping it; empty if no relation ties it to its content.
    pub rule: String,
}

/// A content that was never fetched.
#[derive(Clone, Debug)]
pub struct Loss {
    /// A URL that has it.
    pub url: String,
    /// The rule by which that URL was skipped. `None` if only pages that were skipped lead to it.
    pub rule: Option<String>,
    /// If so, a skipped URL that leads to it, with its rule.
    pub through: Option<(String, String)>,
    /// A page that was fetched, if the model takes it for the same: then the URL would be lost even if its page were compared.
    pub taken_for: Option<String>,
}

/// The cause of a duplicate that was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Nothing is skipped before a number of pages was learnt.
    WarmUp,
    /// It would have been skipped, but was drawn to test the rule.
    Exploration,
    /// The model knows no content of the page, because its text is too short.
    NoText,
    /// The model takes it for another content than those with which the truth calls it equal.
    NotEqual,
    /// No relation ties its URL to a page of the same content.
    NotTied,
    /// The rule passed while it was on its way, or the first page with its content was on its way, too.
    InFlight,
    /// The rule has no failures, but too few tests.
    LittleEvidence,
    /// The rule holds sometimes only.
    Mixed,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 8] = [
        Self::WarmUp,
        Self::Exploration,
        Self::NoText,
        Self::NotEqual,
        Self::NotTied,
        Self::InFlight,
        Self::LittleEvidence,
        Self::Mixed,
    ];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::WarmUp => "warm-up",
            Self::Exploration => "exploration",
            Self::NoText => "no text",
            Self::NotEqual => "not equal",
            Self::NotTied => "not tied",
            Self::InFlight => "in flight",
            Self::LittleEvidence => "little evidence",
            Self::Mixed => "mixed",
        }
    }
}
