//! Deterministic filler text.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A generator that is named, so that generated pages never change.
#[derive(Clone, Debug)]
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::seed_from_u64(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`, which is not zero.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).expect("smaller than a usize")
    }
}

const SYLLABLES: [&str; 20] = [
    "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va", "we",
    "xi", "yo", "zu",
];

/// A word of one to four syllables.
pub(crate) fn word(random: &mut Random) -> String {
    (0..=random.below(4)).map(|_| SYLLABLES[random.below(SYLLABLES.len())]).collect()
}

/// So many words, in sentences.
pub(crate) fn prose(random: &mut Random, words: usize) -> String {
    let mut out = String::with_capacity(words * 6);
    let mut left = 0;
    for _ in 0..words {
        if left == 0 {
            left = 6 + random.below(12);
            let mut first = word(random);
            first[..1].make_ascii_uppercase();
            out.push_str(&first);
        } else {
            out.push(' ');
            out.push_str(&word(random));
        }
        left -= 1;
        if left == 0 {
            out.push_str(". ");
        }
    }
    out
}
