//! By what the texts of pages are compared that are nearly the same: a fingerprint, and a sample of the runs of words in them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use huntsman_detect::simhash::{Features, SimHash};
use huntsman_detect::words::Words;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Texts with fewer words are alike by chance.
const MIN_WORDS: usize = 50;
/// Words of a run.
const RUN: usize = 5;
/// Runs in a sample. The share of two texts is estimated within 4 % in two of three cases.
const SAMPLE: usize = 64;

/// The features by which fingerprints are made.
pub(crate) const FEATURES: Features = Features::WordsLog;

/// By what a text is compared with others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Likeness {
    /// The fingerprint: 32 hexadecimal digits.
    pub hash: String,
    /// The smallest hashes of 32 bits of its runs of five words, ascending, little-endian, in base64.
    pub runs: String,
}

impl Likeness {
    /// That of a text; `None` if it has fewer than 50 words.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let words = Words::of(text);
        if words.len() < MIN_WORDS {
            return None;
        }
        // The upper half of a hash of 64 bits.
        let run = |run: &[u128]| {
            let bytes: Vec<u8> = run.iter().flat_map(|word| word.to_le_bytes()).collect();
            (xxh3_64(&bytes) >> 32) as u32
        };
        let mut runs: Vec<u32> = words.hashes().windows(RUN).map(run).collect();
        runs.sort_unstable();
        runs.dedup();
        runs.truncate(SAMPLE);
        let bytes: Vec<u8> = runs.iter().flat_map(|run| run.to_le_bytes()).collect();
        let hash = SimHash::with(FEATURES, &words).to_string();
        Some(Self { hash, runs: BASE64_STANDARD_NO_PAD.encode(bytes) })
    }

    /// The fingerprint; `None` if it is none.
    pub(crate) fn fingerprint(&self) -> Option<SimHash> {
        self.hash.parse().ok()
    }

    /// The share of all runs of five words of two texts that both have, from 0 to 1, as the samples show it.
    pub(crate) fn common_runs(&self, other: &Self) -> f64 {
        let (one, two) = (self.sample(), other.sample());
        let mut all: Vec<u32> = one.iter().chain(&two).copied().collect();
        all.sort_unstable();
        all.dedup();
        // Of the smallest runs of both texts together, each sample has all that its text has.
        all.truncate(SAMPLE);
        let is_common = |run: &&u32| one.binary_search(run).is_ok() && two.binary_search(run).is_ok();
        all.iter().filter(is_common).count() as f64 / all.len().max(1) as f64
    }

    fn sample(&self) -> Vec<u32> {
        let bytes = BASE64_STANDARD_NO_PAD.decode(&self.runs).unwrap_or_default();
        bytes.as_chunks::<4>().0.iter().map(|run| u32::from_le_bytes(*run)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(changed: usize) -> String {
        let word = |at: usize| if at < changed { format!("other{at}") } else { format!("word{at}") };
        (0..400).map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_share_of_common_runs_is_estimated() {
        let whole = Likeness::of(&text(0)).unwrap();
        assert_eq!(whole.common_runs(&whole), 1.0);
        // Of 396 runs 5 differ in each text, and later 200.
        assert!(whole.common_runs(&Likeness::of(&text(5)).unwrap()) >= 0.9);
        assert!(whole.common_runs(&Likeness::of(&text(200)).unwrap()) < 0.6);
    }

    #[test]
    fn a_short_text_is_compared_with_none() {
        assert_eq!(Likeness::of(&"word ".repeat(49)), None);
        assert!(Likeness::of(&"word ".repeat(50)).is_some());
    }
}
