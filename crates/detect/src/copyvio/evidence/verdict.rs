//! The probability that a text copies another, computed from the passages that they share.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of equal words in a passage that are no evidence: two honest texts on one subject sometimes have that many in a row.
const FREE_WORDS: f64 = 4.0;
/// The number of further words at which copying is as likely as not, for a text of length zero; it grows with each word of the text,
/// because a long text has more places for chance matches.
const EVEN_WORDS: f64 = 7.0;
const EVEN_PER_WORD: f64 = 0.005;
/// The steepness with which the probability rises with the logarithm of the words.
const STEEPNESS: f64 = 2.0;

/// The probability, between 0 and 1, that the article takes words from the source, computed only from the passages that they share.
///
/// Let e be the sum over all passages of their equal words, less four each, and n the number of words of the article.
///
/// The score is `1 / (1 + (t / (e + 0.5))^2)`, with t = 7 + n / 200.
///
/// This is a logistic curve. Its numbers are round ones near those that fit short answers of students best (60 of the corpus of Clough and
/// Stevenson, 2011, 36 of them copied or revised). `tests/conformance.toml` has the results of cross-validation. It was not calibrated for
/// texts of other kinds: legal texts, lists, and long texts on one subject, for which `EVEN_PER_WORD` is a guess on the safe side.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Score(f64);

impl Score {
    /// The score of an article of `words` words, given the number of equal words of each passage. Costs one addition per passage.
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

    /// The verdict for this score.
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

/// The verdict for a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No sign of copying.
    None,
    /// Copying is at least as likely as not: a person should look.
    Possible,
    /// Words were very probably copied.
    Suspected,
}

impl Verdict {
    /// The lower limit of [`Verdict::Possible`].
    pub const POSSIBLE: f64 = 0.5;
    /// The lower limit of [`Verdict::Suspected`].
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
        // One long passage is stronger evidence than the same words in pieces.
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
