//! MinHash signatures: 512 bytes from which the similarity of two sets is estimated.
//!
//! They compare sets of hashes, whatever the hashes stand for; [`shingles`](huntsman_text::shingles) makes such sets from texts. To find
//! similar pages among many, use [`lsh`](crate::lsh).

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The number of permutations, which is also the number of 32-bit values in a signature.
///
/// 128 is datasketch's default and MaybeDont's choice. The standard error of the estimate is at most 0.044 (at one half), 0.027
/// at 0.9.
pub const PERMUTATIONS: usize = 128;

/// The seed of the permutations. Signatures are stored, so this never changes.
const SEED: u64 = 1;

/// The permutations `h -> a * h + b` of the 32-bit numbers; because `a` is odd, they are one-to-one.
const MULTIPLIERS: [u32; PERMUTATIONS] = coefficients(SEED, 1);
const INCREMENTS: [u32; PERMUTATIONS] = coefficients(SEED ^ u64::MAX, 0);

/// The upper halves of SplitMix64's first numbers, with the lowest bit set if `odd` is 1. The generator is written out here, because that
/// of `rand_xoshiro` cannot run at compile time; a test compares the two.
const fn coefficients(seed: u64, odd: u32) -> [u32; PERMUTATIONS] {
    let mut all = [0; PERMUTATIONS];
    let mut state = seed;
    let mut at = 0;
    while at < PERMUTATIONS {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        all[at] = (mixed >> 32) as u32 | odd;
        at += 1;
    }
    all
}

/// The MinHash signature of a set of hashes: for each of [`PERMUTATIONS`] permutations, the least image of an element.
///
/// Equal sets have equal signatures, on every machine and in every version, so signatures may be stored. The order and the repetition of
/// elements do not matter. All values of the empty set's signature are the maximum, so two empty sets count as equal, as in datasketch.
/// Elements are 64-bit hashes, of which the lower half is used, so they must come from a good hash function.
///
/// Serialised as a string of 1,024 hexadecimal digits.
///
/// ```
/// use huntsman_detect::minhash::Signature;
/// use huntsman_detect::shingles::shingle_hash;
///
/// let words = |count: u32| (0..count).map(|n| shingle_hash(&n.to_string())).collect::<Vec<u64>>();
/// let (one, two) = (Signature::of(&words(1000)), Signature::of(&words(900)));
/// assert_eq!(one.jaccard(&one), 1.0);
/// assert!((one.jaccard(&two) - 0.9).abs() < 0.1);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Signature([u32; PERMUTATIONS]);

impl Signature {
    /// The signature of the empty set.
    pub const EMPTY: Signature = Signature([u32::MAX; PERMUTATIONS]);

    /// The signature of a set of hashes. Takes some 30 ns per element: 128 multiplications, eight or more at a time.
    pub fn of(hashes: &[u64]) -> Self {
        // One block of values stays in registers while the loop passes over all elements.
        const BLOCK: usize = 16;
        let mut values = [u32::MAX; PERMUTATIONS];
        let blocks = values
            .as_chunks_mut::<BLOCK>()
            .0
            .iter_mut()
            .zip(MULTIPLIERS.as_chunks::<BLOCK>().0.iter().zip(INCREMENTS.as_chunks::<BLOCK>().0));
        for (block, (multipliers, increments)) in blocks {
            let mut least = *block;
            for &hash in hashes {
                let hash = hash as u32;
                for at in 0..BLOCK {
                    let image = multipliers[at].wrapping_mul(hash).wrapping_add(increments[at]);
                    least[at] = least[at].min(image);
                }
            }
            *block = least;
        }
        Signature(values)
    }

    /// A signature from its values, as [`values`](Self::values) returned them.
    pub fn from_values(values: [u32; PERMUTATIONS]) -> Self {
        Signature(values)
    }

    /// The least image under each permutation.
    pub fn values(&self) -> &[u32; PERMUTATIONS] {
        &self.0
    }

    /// The estimated Jaccard similarity of the two sets: the share of equal values, from 0 to 1. Unbiased.
    pub fn jaccard(&self, other: &Signature) -> f64 {
        let equal: u32 = self.0.iter().zip(&other.0).map(|(a, b)| u32::from(a == b)).sum();
        f64::from(equal) / PERMUTATIONS as f64
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({:08x} {:08x} ..)", self.0[0], self.0[1])
    }
}

impl Serialize for Signature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = String::with_capacity(8 * PERMUTATIONS);
        for value in self.0 {
            text.extend((0..8).rev().map(|digit| HEX[(value >> (4 * digit)) as usize & 15] as char));
        }
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let (values, rest) = text.as_bytes().as_chunks::<8>();
        if values.len() != PERMUTATIONS || !rest.is_empty() {
            return Err(D::Error::custom(format!("a signature has {} digits", 8 * PERMUTATIONS)));
        }
        let mut signature = Signature::EMPTY;
        for (value, digits) in signature.0.iter_mut().zip(values) {
            *value = digits
                .iter()
                .try_fold(0, |value, &digit| Some(value << 4 | (digit as char).to_digit(16)?))
                .ok_or_else(|| D::Error::custom("a signature is hexadecimal"))?;
        }
        Ok(signature)
    }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::rand_core::{Rng, SeedableRng};
    use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

    use super::*;

    #[test]
    fn signatures_never_change() {
        let signature = Signature::of(&[0x0123_4567_89ab_cdef, 42, 0]);
        assert_eq!(signature.values()[..4], [79095763, 217829635, 2567818672, 519132859]);
    }

    #[test]
    fn permutations_are_those_of_splitmix64() {
        let mut random = SplitMix64::seed_from_u64(SEED);
        assert_eq!(MULTIPLIERS, std::array::from_fn(|_| (random.next_u64() >> 32) as u32 | 1));
        let mut random = SplitMix64::seed_from_u64(!SEED);
        assert_eq!(INCREMENTS, std::array::from_fn(|_| (random.next_u64() >> 32) as u32));
    }

    #[test]
    fn every_multiplier_is_odd_and_none_repeats() {
        let mut sorted = MULTIPLIERS;
        sorted.sort_unstable();
        assert!(sorted.iter().all(|a| a % 2 == 1));
        assert!(sorted.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn order_and_repetition_do_not_matter() {
        assert_eq!(Signature::of(&[1, 2, 3]), Signature::of(&[3, 2, 2, 1, 3]));
        assert_eq!(Signature::of(&[]), Signature::EMPTY);
        assert_eq!(Signature::EMPTY.jaccard(&Signature::EMPTY), 1.0);
        assert_eq!(Signature::EMPTY.jaccard(&Signature::of(&[1])), 0.0);
    }

    #[test]
    fn the_estimate_is_unbiased_and_as_exact_as_theory_says() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0x5eed_0101);
        let rounds = 200;
        for (shared, own) in [(0, 100), (100, 100), (200, 50), (180, 10), (950, 25)] {
            let jaccard = shared as f64 / (shared + 2 * own) as f64;
            let mut errors = Vec::new();
            for _ in 0..rounds {
                let mut draw = |count: usize| -> Vec<u64> { (0..count).map(|_| rng.next_u64()).collect() };
                let (common, one, two) = (draw(shared), draw(own), draw(own));
                let one = Signature::of(&[&common[..], &one].concat());
                let two = Signature::of(&[&common[..], &two].concat());
                errors.push(one.jaccard(&two) - jaccard);
            }
            let mean = errors.iter().sum::<f64>() / rounds as f64;
            let deviation = (errors.iter().map(|e| e * e).sum::<f64>() / rounds as f64).sqrt();
            let expected = (jaccard * (1.0 - jaccard) / PERMUTATIONS as f64).sqrt();
            assert!(mean.abs() <= 4.0 * expected / (rounds as f64).sqrt(), "{jaccard}: bias {mean}");
            assert!(deviation <= 1.25 * expected, "{jaccard}: {deviation} instead of {expected}");
        }
    }
}
