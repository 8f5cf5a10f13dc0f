//! Sums of weights, one for each bit of a fingerprint.

/// For each bit, the sum of the weights of the features whose hash has it.
pub(super) struct Sums {
    /// The sums since the last flush. They are half as wide as `ones`, so that twice as many are added at once.
    new: [u32; 128],
    /// An upper bound of the values in `new`.
    most_new: u32,
    ones: [u64; 128],
    /// The sum of all weights.
    total: u64,
}

/// Features of equal weight, of which 16 are added to the sums at once.
///
/// These are 128 binary counters, one per bit of a hash: bit i of `ones` to `eights` is a digit of the number of features with bit i that
/// are not yet in the sums. A few operations on whole words add to all counters (W. Mula, N. Kurz, D. Lemire, "Faster Population Counts
/// Using AVX2 Instructions", 2018, there after Harley and Seal). That is some 10 times faster than adding to each sum, and gives the same
/// result.
pub(super) struct Equals {
    weight: u32,
    waiting: [u128; 16],
    /// The number of features that are not yet counted.
    len: usize,
    ones: u128,
    twos: u128,
    fours: u128,
    eights: u128,
}

/// For each byte value, a mask per bit: all ones if the bit is set, else 0.
static MASKS: [[u32; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[byte][bit] = if byte >> bit & 1 == 1 { u32::MAX } else { 0 };
            bit += 1;
        }
        byte += 1;
    }
    table
};

impl Default for Sums {
    fn default() -> Self {
        Self { new: [0; 128], most_new: 0, ones: [0; 128], total: 0 }
    }
}

impl Sums {
    /// Adds a feature.
    pub(super) fn add(&mut self, hash: u128, weight: u32) {
        self.total += u64::from(weight);
        self.add_to(hash, weight);
    }

    /// Adds features of equal weight.
    pub(super) fn add_equals(&mut self, hashes: impl Iterator<Item = u128>, weight: u32) {
        let mut equals = Equals::new(weight);
        hashes.for_each(|hash| equals.add(hash, self));
        equals.finish(self);
    }

    /// Adds a weight to the sums of some bits.
    fn add_to(&mut self, bits: u128, weight: u32) {
        if self.most_new.checked_add(weight).is_none() {
            self.flush();
        }
        self.most_new += weight;
        for (sums, byte) in self.new.chunks_exact_mut(8).zip(bits.to_le_bytes()) {
            for (sum, mask) in sums.iter_mut().zip(&MASKS[usize::from(byte)]) {
                *sum += weight & mask;
            }
        }
    }

    fn flush(&mut self) {
        for (sum, new) in self.ones.iter_mut().zip(&mut self.new) {
            *sum += u64::from(std::mem::take(new));
        }
        self.most_new = 0;
    }

    /// The bits for which the sum is more than half of all weights.
    pub(super) fn majority(mut self) -> u128 {
        self.flush();
        let bits = self.ones.iter().enumerate();
        bits.fold(0, |hash, (bit, ones)| hash | u128::from(*ones > self.total - ones) << bit)
    }
}

impl Equals {
    pub(super) fn new(weight: u32) -> Self {
        Self { weight, waiting: [0; 16], len: 0, ones: 0, twos: 0, fours: 0, eights: 0 }
    }

    pub(super) fn add(&mut self, hash: u128, sums: &mut Sums) {
        self.waiting[self.len] = hash;
        self.len += 1;
        if self.len == self.waiting.len() {
            sums.total += 16 * u64::from(self.weight);
            let sixteens = self.count();
            sums.add_to(sixteens, 16 * self.weight);
            self.len = 0;
        }
    }

    /// Counts the waiting features and returns the carry.
    fn count(&mut self) -> u128 {
        let mut carries = [0; 8];
        for (carry, [a, b]) in carries.iter_mut().zip(self.waiting.as_chunks::<2>().0) {
            *carry = carry_over(&mut self.ones, *a, *b);
        }
        let [a, b, c, d, e, f, g, h] = carries;
        let a = carry_over(&mut self.twos, a, b);
        let b = carry_over(&mut self.twos, c, d);
        let c = carry_over(&mut self.twos, e, f);
        let d = carry_over(&mut self.twos, g, h);
        let a = carry_over(&mut self.fours, a, b);
        let b = carry_over(&mut self.fours, c, d);
        carry_over(&mut self.eights, a, b)
    }

    /// Adds the features that are not yet in the sums.
    pub(super) fn finish(mut self, sums: &mut Sums) {
        sums.total += self.len as u64 * u64::from(self.weight);
        self.waiting[self.len..].fill(0);
        let sixteens = self.count();
        for (bits, times) in
            [(self.ones, 1), (self.twos, 2), (self.fours, 4), (self.eights, 8), (sixteens, 16)]
        {
            // Most are empty for weights that hardly any feature has.
            if bits != 0 {
                sums.add_to(bits, times * self.weight);
            }
        }
    }
}

/// Adds two digits to `digit` in each bit, and returns the carry to the next digit.
fn carry_over(digit: &mut u128, a: u128, b: u128) -> u128 {
    let either = *digit ^ a;
    let carry = *digit & a | either & b;
    *digit = either ^ b;
    carry
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn sums_do_not_overflow() {
        let mut sums = Sums::default();
        for _ in 0..5 {
            sums.add(0b01, u32::MAX);
            sums.add(0b11, u32::MAX - 1);
        }
        assert_eq!((sums.ones[0] + u64::from(sums.new[0])), 5 * (u64::from(u32::MAX) * 2 - 1));
        assert_eq!(sums.majority(), 0b01);
    }

    #[test]
    fn adding_many_at_once_gives_the_sums_of_adding_each() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(0x5eed_0801);
        for count in (0..70).chain([100, 1000, 1024]) {
            for weight in [1, 16, 726] {
                let hashes: Vec<u128> = (0..count)
                    .map(|_| {
                        u128::from(random.next_u64()) << 64
                            | u128::from(random.next_u64() & random.next_u64())
                    })
                    .collect();
                let (mut at_once, mut each) = (Sums::default(), Sums::default());
                at_once.add_equals(hashes.iter().copied(), weight);
                hashes.iter().for_each(|hash| each.add(*hash, weight));
                at_once.flush();
                each.flush();
                assert_eq!((at_once.ones, at_once.total), (each.ones, each.total), "{count} of {weight}");
                let bit = |bit: u32| hashes.iter().filter(|hash| *hash >> bit & 1 == 1).count() as u64;
                let naive: Vec<u64> = (0..128).map(|at| bit(at) * u64::from(weight)).collect();
                assert_eq!(at_once.ones.as_slice(), naive, "{count} of {weight}");
            }
        }
    }

    #[test]
    fn ties_give_zero() {
        let mut sums = Sums::default();
        sums.add(0b011, 4);
        sums.add(0b110, 4);
        assert_eq!(sums.majority(), 0b010);
    }
}
