//! What the predictor decides about a request, and why.

use std::fmt;

use crate::avoid::rows::Row;
use crate::avoid::site::Kinship;

/// The reason why the content of a URL is probably known.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// The probability that its content is known, by the posterior mean.
    pub probability: f64,
    /// Its relation to a page that was fetched.
    pub kinship: Kinship,
    /// The rule as text: `"sid" does not matter`.
    pub rule: String,
    /// The pages that tested the rule.
    pub evidence: Row,
    /// A page that probably has the same content.
    pub equals: Option<String>,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { dup, nodup } = self.evidence;
        write!(f, "{} ({dup:.0} same, {nodup:.1} not, probability {:.3}", self.rule, self.probability)?;
        if let Some(equals) = &self.equals {
            write!(f, ", like {equals}")?;
        }
        f.write_str(")")
    }
}

/// Whether the decision for a request can still be put off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It can: other requests are queued or in flight.
    Regular,
    /// The request was skipped before and has waited long, but pages of its site are still being fetched or processed: it may be fetched now, but is not
    /// dropped, because these pages may speak against that.
    Waiting,
    /// It cannot: the request was skipped before, and everything else is done.
    Last,
}

/// The decision for a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Fetch it.
    Fetch,
    /// Fetch it, although its content is probably known: to test the prediction, or because copies of its kind led to new content.
    Explore(Reason),
    /// Ask again after the other requests: its content may be known, and more evidence will come. Requests with one probability are best asked for in the
    /// order of their [ranks](super::Predictor::rank).
    Delay {
        /// The probability that its content is known; the higher, the later the request should be asked for again.
        probability: f64,
    },
    /// Ask again soon: a page in flight may decide it.
    Hold,
    /// Do not fetch it now. Ask again with [`Attempt::Last`] when everything else is done.
    Skip(Reason),
    /// Do not fetch it.
    Drop(Reason),
}
