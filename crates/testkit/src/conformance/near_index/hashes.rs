//! Generated fingerprints for tests.

use huntsman_detect::simhash::SimHash;
use huntsman_detect::words::Words;

use crate::sites::Random;

/// The distribution of fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// All bits are random: the texts have nothing in common.
    Even,
    /// Each bit is mostly 0 or mostly 1, because of the frequent words of a language: many fingerprints share a band.
    Skewed,
    /// Fingerprints of texts, half of which are copies of an earlier text with some words changed.
    Texts,
}

/// A generator of fingerprints; the same seed gives the same ones.
#[derive(Clone, Debug)]
pub struct Hashes {
    random: Random,
    spread: Spread,
    /// For each bit, the number of fingerprints out of 256 in which it is set.
    shares: [u8; 128],
    texts: Vec<Vec<String>>,
}

impl Hashes {
    /// A generator with this seed.
    pub fn new(seed: u64, spread: Spread) -> Self {
        let mut random = Random::new(seed);
        let shares = std::array::from_fn(|_| [4, 16, 64, 128, 192, 240, 252][random.below(7)]);
        Self { random, spread, shares, texts: Vec::new() }
    }

    /// The next fingerprint.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u128 {
        match self.spread {
            Spread::Even => u128::from(self.random.next()) << 64 | u128::from(self.random.next()),
            Spread::Skewed => {
                let shares = self.shares;
                let set = |share: u8| self.random.below(256) < usize::from(share);
                shares.map(set).into_iter().fold(1, |hash, is_set| hash << 1 | u128::from(is_set))
            }
            Spread::Texts => self.next_text(),
        }
    }

    /// A fingerprint that differs from `hash` in at most `most` bits.
    pub fn near(&mut self, hash: u128, most: u32) -> u128 {
        let distance = self.random.below(most as usize + 1) as u32;
        hash ^ self.bits(distance)
    }

    /// A mask with `count` bits set at random positions.
    pub fn bits(&mut self, count: u32) -> u128 {
        let mut bits = 0_u128;
        while bits.count_ones() < count {
            bits |= 1 << self.random.below(128);
        }
        bits
    }

    fn next_text(&mut self) -> u128 {
        // As in a language, the n-th most frequent word has a share of about 1/n.
        let word = |random: &mut Random| {
            let share = random.below(1 << 20) as f64 / f64::from(1 << 20);
            format!("word{}", 3000.0_f64.powf(share) as usize)
        };
        let mut text = match self.texts.len() {
            count @ 1.. if count % 2 == 1 => self.texts[self.random.below(count)].clone(),
            _ => (0..60 + self.random.below(100)).map(|_| word(&mut self.random)).collect(),
        };
        for _ in 0..self.random.below(3) {
            let at = self.random.below(text.len());
            text[at] = word(&mut self.random);
        }
        let hash = SimHash::of(&Words::of(&text.join(" ")));
        self.texts.push(text);
        hash.0
    }
}
