//! A random number generator that gives the same numbers in every version and on every machine.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

pub(super) struct SeededRandom(Xoshiro256PlusPlus);

impl SeededRandom {
    pub(super) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A number below `end`; the bias is below `end` / 2^64.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u64
    }

    pub(super) fn within(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    pub(super) fn is_under(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Sixteen hexadecimal digits.
    pub(super) fn session(&mut self) -> String {
        format!("{:016x}", self.0.next_u64())
    }

    pub(super) fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}
