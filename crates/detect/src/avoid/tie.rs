//! A relation of a URL to pages that were learnt, as evaluations of the model show it.

use std::fmt;

use smallvec::SmallVec;

use super::rows::Row;
use super::shape::Name;
use super::site::Kinship;

/// A relation of a URL to pages that were learnt.
#[derive(Clone, Debug)]
pub(crate) struct Tie {
    pub(crate) kinship: Kinship,
    pub(crate) dropped: SmallVec<[Name; 4]>,
    pub(crate) names: Vec<String>,
    pub(crate) probability: f64,
    /// Whether the probability is above the threshold.
    pub(crate) passes: bool,
    pub(crate) evidence: Row,
    /// The pages that represent the contents that it may have.
    pub(crate) pages: Vec<u32>,
}

impl fmt::Display for Tie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { dup, nodup } = self.evidence;
        let (names, p) = (self.names.join(", "), self.probability);
        write!(f, "{:?} {names} ({dup:.0} same, {nodup:.1} not, probability {p:.3})", self.kinship)
    }
}
