//! By what the texts of pages are compared that are nearly the same: a fingerprint, and a sample of the runs of words in them.

use std::cmp::Ordering;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use huntsman_crawler::Result;
use huntsman_detect::simhash::{Features, SimHash};
use huntsman_detect::words::Words;
use huntsman_disk::{Scratch, Spool};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Texts with fewer words are alike by chance.
const MIN_WORDS: usize = 50;
/// Words of a run.
const RUN: usize = 5;
/// Runs in a sample. The share of two texts is estimated within 4 % in two of three cases.
const SAMPLE: usize = 64;
/// Runs at the beginning of a sample.
const HEAD: usize = 16;
/// The share of common runs from which on texts are alike.
const COMMON_PERCENT: usize = 90;

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
        let mut runs = Smallest::default();
        let mut bytes = [0; RUN * size_of::<u128>()];
        for run in words.hashes().windows(RUN) {
            for (to, word) in bytes.as_chunks_mut().0.iter_mut().zip(run) {
                *to = word.to_le_bytes();
            }
            // The upper half of a hash of 64 bits.
            runs.add((xxh3_64(&bytes) >> 32) as u32);
        }
        let bytes: Vec<u8> = runs.0.iter().flat_map(|run| run.to_le_bytes()).collect();
        let hash = SimHash::with(FEATURES, &words).to_string();
        Some(Self { hash, runs: BASE64_STANDARD_NO_PAD.encode(bytes) })
    }

    /// The fingerprint; `None` if it is none.
    pub(crate) fn fingerprint(&self) -> Option<SimHash> {
        self.hash.parse().ok()
    }

    /// The sample of its runs of five words.
    pub(crate) fn sample(&self) -> Sample {
        let bytes = BASE64_STANDARD_NO_PAD.decode(&self.runs).unwrap_or_default();
        Sample(bytes.as_chunks::<4>().0.iter().map(|run| u32::from_le_bytes(*run)).collect())
    }
}

/// The smallest hashes of the runs of five words in a text, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sample(Vec<u32>);

/// The smallest of many numbers, ascending, each once.
#[derive(Debug, Default)]
struct Smallest(Vec<u32>);

impl Smallest {
    /// Adds a number. Nearly all of a long text are larger than those that are kept, which costs one comparison.
    fn add(&mut self, number: u32) {
        if self.0.len() == SAMPLE && self.0.last().is_some_and(|last| *last <= number) {
            return;
        }
        if let Err(at) = self.0.binary_search(&number) {
            self.0.truncate(SAMPLE - 1);
            self.0.insert(at, number);
        }
    }
}

/// The samples of many texts, which have ascending numbers. Memory holds the beginnings only: nearly all pairs that are not alike differ there.
#[derive(Debug)]
pub(crate) struct Samples {
    numbers: Vec<u32>,
    heads: Vec<[u32; HEAD]>,
    spool: Spool,
}

impl Samples {
    /// Bytes of a sample: its length, and room for its runs.
    const BYTES: usize = 4 * (1 + SAMPLE);

    pub(crate) fn new(scratch: &Scratch) -> Self {
        Self { numbers: Vec::new(), heads: Vec::new(), spool: Spool::new(scratch) }
    }

    /// Adds the sample of a text, whose number is above those before it.
    pub(crate) fn add(&mut self, number: u32, sample: &Sample) -> Result<()> {
        debug_assert!(self.numbers.last().is_none_or(|last| *last < number));
        let runs = &sample.0[..sample.0.len().min(SAMPLE)];
        let mut bytes = Vec::with_capacity(Self::BYTES);
        bytes.extend((runs.len() as u32).to_le_bytes());
        runs.iter().for_each(|run| bytes.extend(run.to_le_bytes()));
        bytes.resize(Self::BYTES, 0);
        self.spool.write(&bytes)?;
        // Texts with fingerprints have more runs than that; of others the beginning decides nothing.
        let head = runs.first_chunk::<HEAD>().copied().unwrap_or([0; HEAD]);
        self.heads.push(head);
        self.numbers.push(number);
        Ok(())
    }

    /// Whether two texts have 90 % of all their runs in common, as their samples show it.
    pub(crate) fn are_alike(&self, one: u32, two: u32) -> Result<bool> {
        let at = |number| self.numbers.binary_search(&number).ok();
        let (Some(one), Some(two)) = (at(one), at(two)) else { return Ok(false) };
        if Common::of(&self.heads[one], &self.heads[two], true).is_unlike() {
            return Ok(false);
        }
        let (one, two) = (self.sample(one)?, self.sample(two)?);
        Ok(Common::of(&one.0, &two.0, false).is_alike())
    }

    fn sample(&self, at: usize) -> Result<Sample> {
        let mut bytes = Vec::with_capacity(Self::BYTES);
        self.spool.read((at * Self::BYTES) as u64, Self::BYTES, &mut bytes)?;
        let mut runs = bytes.as_chunks::<4>().0.iter().map(|run| u32::from_le_bytes(*run));
        let length = runs.next().unwrap_or(0) as usize;
        Ok(Sample(runs.take(length).collect()))
    }
}

/// The smallest runs of two texts together, and how many of them both have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Common {
    all: usize,
    both: usize,
}

impl Common {
    /// Of two samples, in order. Of beginnings of samples nothing is known beyond the end of the shorter one.
    fn of(one: &[u32], two: &[u32], are_beginnings: bool) -> Self {
        let (mut at, mut to, mut common) = (0, 0, Self { all: 0, both: 0 });
        // Of the smallest runs of both texts together, each sample has all that its text has.
        while common.all < SAMPLE && !common.is_unlike() {
            let order = match (one.get(at), two.get(to)) {
                (Some(one), Some(two)) => one.cmp(two),
                (None, None) => break,
                _ if are_beginnings => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
            };
            at += usize::from(order.is_le());
            to += usize::from(order.is_ge());
            common.both += usize::from(order.is_eq());
            common.all += 1;
        }
        common
    }

    /// Whether so many are in one text only that the others of the sample cannot make up for them.
    fn is_unlike(self) -> bool {
        self.all - self.both > SAMPLE - SAMPLE * COMMON_PERCENT / 100
    }

    fn is_alike(self) -> bool {
        self.all > 0 && self.both * 100 >= self.all * COMMON_PERCENT
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    use super::*;

    fn text(changed: usize) -> String {
        let word = |at: usize| if at < changed { format!("other{at}") } else { format!("word{at}") };
        (0..400).map(word).collect::<Vec<_>>().join(" ")
    }

    fn samples(of: &[Sample]) -> Samples {
        let mut samples = Samples::new(&Scratch::temporary());
        of.iter().zip(0..).for_each(|(sample, number)| samples.add(number * 3, sample).unwrap());
        samples
    }

    #[test]
    fn texts_are_alike_by_the_share_of_their_common_runs() {
        // Of 396 runs none, 5 and 200 differ from those of the first text.
        let samples = samples(&[0, 0, 5, 200].map(|changed| Likeness::of(&text(changed)).unwrap().sample()));
        let alike = |two| samples.are_alike(0, two).unwrap();
        assert_eq!([3, 6, 9].map(alike), [true, true, false]);
        assert_eq!([1, 12].map(alike), [false, false], "there is none with this number");
    }

    #[test]
    fn the_smallest_numbers_are_kept_once() {
        let mut smallest = Smallest::default();
        let numbers: Vec<u32> = (0..1_000_u32).map(|at| at.wrapping_mul(0x9E37_79B9) % 700).collect();
        numbers.iter().for_each(|number| smallest.add(*number));
        let mut expected = numbers;
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(smallest.0, expected[..SAMPLE]);
    }

    #[test]
    fn the_beginnings_of_samples_decide_as_whole_samples_do() {
        let seed = rand::random::<u64>();
        let mut random = StdRng::seed_from_u64(seed);
        let mut made = || -> Sample {
            // Of runs that most texts have some are missing, and others are added.
            let (lacks, adds) = (random.random_range(0..8), random.random_range(0..8));
            let mut runs: Vec<u32> = (0..random.random_range(46..90)).map(|run| run * 1_000).collect();
            for _ in 0..lacks {
                runs.swap_remove(random.random_range(0..runs.len()));
            }
            runs.extend((0..adds).map(|_| random.random_range(0..60_000)));
            runs.sort_unstable();
            runs.dedup();
            runs.truncate(SAMPLE);
            Sample(runs)
        };
        // Beside each one that lacks its last run, so that some are alike whatever the seed is.
        let twins = (0..30).flat_map(|_| {
            let one = made();
            let two = Sample(one.0[..one.0.len() - 1].to_vec());
            [one, two]
        });
        let all: Vec<Sample> = twins.collect();
        let samples = samples(&all);
        let mut alike = 0;
        for (one, at) in all.iter().zip(0_u32..) {
            for (two, to) in all.iter().zip(0_u32..) {
                let mut both: Vec<u32> = one.0.iter().chain(&two.0).copied().collect();
                both.sort_unstable();
                both.dedup();
                both.truncate(SAMPLE);
                let common = both.iter().filter(|run| one.0.contains(run) && two.0.contains(run)).count();
                let expected = common as f64 / both.len() as f64 >= 0.9;
                assert_eq!(
                    samples.are_alike(at * 3, to * 3).unwrap(),
                    expected,
                    "{at} and {to}, seed {seed}"
                );
                alike += usize::from(expected);
            }
        }
        assert!((100..3_500).contains(&alike), "both happens: {alike}, seed {seed}");
    }

    #[test]
    fn a_short_text_is_compared_with_none() {
        assert_eq!(Likeness::of(&"word ".repeat(49)), None);
        assert!(Likeness::of(&"word ".repeat(50)).is_some());
    }
}
