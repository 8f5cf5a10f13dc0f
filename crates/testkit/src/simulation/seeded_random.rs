//! Random numbers from a seed: one stream for each kind of decision, so that changing one kind leaves the others as
//! they are.

use std::time::Duration;

use crate::sites::Random;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(super) struct SeededRandom(Random);

/// A hash of bytes (FNV-1a).
pub(super) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let start = seed ^ 0xcbf2_9ce4_8422_2325;
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

impl SeededRandom {
    /// The stream for a named thing in the world of a seed.
    pub(super) fn of(seed: u64, thing: &str) -> Self {
        Self(Random::new(hash(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), thing.as_bytes())))
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0.below(end)
    }

    pub(super) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A number from `least` to `most`.
    pub(super) fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    pub(super) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// A duration of at most `most` milliseconds; short ones are more frequent than long ones.
    pub(super) fn millis(&mut self, most: u64) -> Duration {
        let share = self.between(0, 1_000) as u64;
        Duration::from_micros(most * share * share / 1_000)
    }

    /// A text of this many words.
    pub(super) fn prose(&mut self, words: usize) -> String {
        crate::sites::prose(&mut self.0, words)
    }
}
