//! How likely it is that a text copies another, from the passages that they share.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Equal words of a passage that say nothing: that many two honest texts on one subject have in a row now and then.
const FREE_WORDS: f64 = 4.0;
/// Words beyond those at which copying is as likely as not: for a text of no length, and more per word of it, since chance
/// has more places in a long one.
const EVEN_WORDS: f64 = 7.0;
const EVEN_PER_WORD: f64 = 0.005;
/// How steep the probability rises with the logarithm of the words.
const STEEPNESS: f64 = 2.0;

/// A probability between 0 and 1 that the article takes words from the source, from what they share alone.
///
/// With e the sum over all passages of their equal words, less four each, and n the words of the article:
/// `1 / (1 + (t / (e + 0.5))^2)`, t = 7 + n / 200.
///
/// A logistic curve, of which these numbers are round ones near those that fit short answers of students best (60 of the
/// corpus of Clough and Stevenson, 2011, 36 of them copied or revised). `tests/conformance.toml` has what was measured with
/// texts left out in turn. Texts of other kinds were not calibrated: long texts on one subject, of which `EVEN_PER_WORD`
/// is a guess on the safe side, legal texts, lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Score(f64);

impl Score {
    /// The score of an article of `words` words with passages of so many equal words each. The cost is that of adding them.
    pub fn of(passages: impl IntoIterator<Item = f64>, words: f64) -> Self {
        let excess = passages.into_iter().fold(0.0, |sum, passage| sum + (passage - FREE_WORDS).max(0.0));
        if excess <= 0.0 {
            return Self(0.0);
        }
        let even = EVEN_WORDS + EVEN_PER_WORD * words;
        Self(1.0 / (1.0 + (even / (excess + 0.5)).powf(STEEPNESS)))
    }

    /// The number.
    pub fn value(self) -> f64 {
        self.0
    }

    /// What follows.
    pub fn verdict(self) -> Verdict {
        match self.0 {
            score if score >= Verdict::SUSPECTED => Verdict::Suspected,
            score if score >= Verdict::POSSIBLE => Verdict::Possible,
            _ => Verdict::None,
        }
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}", self.0)
    }
}

/// What follows from a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing to look at.
    None,
    /// As likely as not, or more: somebody should look.
    Possible,
    /// Words were taken, by all appearance.
    Suspected,
}

impl Verdict {
    /// Where [`Verdict::Possible`] begins.
    pub const POSSIBLE: f64 = 0.5;
    /// Where [`Verdict::Suspected`] begins.
    pub const SUSPECTED: f64 = 0.9;
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::None => "none",
            Verdict::Possible => "possible",
            Verdict::Suspected => "suspected",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_words_are_more_likely_and_a_longer_text_needs_more() {
        let score = |words: f64, passages: &[f64]| Score::of(passages.iter().copied(), words).value();
        assert_eq!(score(200.0, &[]), 0.0);
        assert_eq!(score(200.0, &[4.0, 3.0]), 0.0);
        assert!(score(200.0, &[12.0]) > score(200.0, &[11.0]));
        assert!(score(200.0, &[12.0]) > score(2_000.0, &[12.0]));
        // One long passage says more than the same words in pieces.
        assert!(score(200.0, &[20.0]) > score(200.0, &[10.0, 10.0]));
        assert!(score(0.0, &[1e9]) <= 1.0);
    }

    #[test]
    fn verdicts_begin_at_their_limits() {
        assert_eq!(Score(0.49).verdict(), Verdict::None);
        assert_eq!(Score(0.5).verdict(), Verdict::Possible);
        assert_eq!(Score(0.9).verdict(), Verdict::Suspected);
    }
}
