//! Sorted numbers in few bytes, with look-ups by position and by number.

/// Numbers per block. With a block of 64, numbers of w bits fill w words exactly.
const BLOCK: usize = 64;

/// Distinct numbers in ascending order. Each block stores the differences from its first number, in as many bits as the largest of them
/// needs.
///
/// Consecutive numbers take about one byte each, four million random ones of 64 bits some 6.2 bytes. Reading a number costs some
/// nanoseconds; finding one costs a binary search over the blocks and one within a block.
#[derive(Debug)]
pub(super) struct Numbers {
    len: usize,
    last: u64,
    /// The number of blocks, divided by the distance from the first number to the last one.
    blocks_per_number: f64,
    /// The first number of each block.
    firsts: Box<[u64]>,
    /// The start of each block's words, and last the end of the last block's. A block has as many words as its numbers have bits.
    starts: Box<[u32]>,
    words: Box<[u64]>,
}

/// Builds [`Numbers`] from numbers in ascending order.
#[derive(Debug)]
pub(super) struct NumbersBuilder {
    len: usize,
    block: [u64; BLOCK],
    firsts: Vec<u64>,
    starts: Vec<u32>,
    words: Vec<u64>,
}

impl NumbersBuilder {
    /// A builder for about this many numbers.
    pub(super) fn with_capacity(numbers: usize) -> Self {
        let blocks = numbers.div_ceil(BLOCK);
        Self {
            len: 0,
            block: [0; BLOCK],
            firsts: Vec::with_capacity(blocks),
            starts: Vec::with_capacity(blocks + 1),
            words: Vec::new(),
        }
    }

    /// Adds a number, which must be larger than the previous one.
    pub(super) fn push(&mut self, number: u64) {
        let at = self.len % BLOCK;
        debug_assert!(self.len == 0 || self.block[(at + BLOCK - 1) % BLOCK] < number, "numbers ascend");
        self.block[at] = number;
        self.len += 1;
        if at == BLOCK - 1 {
            self.pack(BLOCK);
        }
    }

    fn pack(&mut self, count: usize) {
        let first = self.block[0];
        let width = (u64::BITS - (self.block[count - 1] - first).leading_zeros()) as usize;
        let start = self.words.len();
        self.firsts.push(first);
        self.starts.push(u32::try_from(start).expect("a part has too few rows for 32 GB of numbers"));
        self.words.resize(start + width, 0);
        let words = &mut self.words[start..];
        for (at, number) in self.block[..count].iter().enumerate() {
            let (difference, bit) = (number - first, at * width);
            if difference == 0 {
                continue;
            }
            words[bit / 64] |= difference << (bit % 64);
            if bit % 64 + width > 64 {
                words[bit / 64 + 1] |= difference >> (64 - bit % 64);
            }
        }
    }

    pub(super) fn finish(mut self) -> Numbers {
        if !self.len.is_multiple_of(BLOCK) {
            self.pack(self.len % BLOCK);
        }
        self.starts
            .push(u32::try_from(self.words.len()).expect("a part has too few rows for 32 GB of numbers"));
        let last = self.block[(self.len + BLOCK - 1) % BLOCK];
        let distance = last - self.firsts.first().copied().unwrap_or(last);
        Numbers {
            len: self.len,
            last,
            blocks_per_number: self.firsts.len() as f64 / (distance as f64 + 1.0),
            firsts: self.firsts.into(),
            starts: self.starts.into(),
            words: self.words.into(),
        }
    }
}

impl Numbers {
    /// The number of numbers.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The number at a position below [`len`](Self::len).
    pub(super) fn get(&self, at: usize) -> u64 {
        let block = at / BLOCK;
        let (start, end) = (self.starts[block] as usize, self.starts[block + 1] as usize);
        self.firsts[block] + read(&self.words[start..end], at % BLOCK)
    }

    /// The position of a number.
    pub(super) fn find(&self, number: u64) -> Option<usize> {
        if number > self.last {
            return None;
        }
        let block = self.block_of(number)?;
        let words = &self.words[self.starts[block] as usize..self.starts[block + 1] as usize];
        let difference = number - self.firsts[block];
        // The loop has a fixed number of steps without branches, because the direction of each step cannot be predicted.
        let mut len = BLOCK.min(self.len - block * BLOCK);
        let mut at = 0;
        while len > 1 {
            let half = len / 2;
            at = if read(words, at + half) <= difference { at + half } else { at };
            len -= half;
        }
        (read(words, at) == difference).then_some(block * BLOCK + at)
    }

    /// The last block whose first number is not greater than `number`.
    fn block_of(&self, number: u64) -> Option<usize> {
        // First looks around the position that the block would have if the numbers were evenly distributed, as ids mostly are. This saves
        // the distant reads with which a binary search begins.
        const AROUND: usize = 32;
        let guess = (number.checked_sub(*self.firsts.first()?)? as f64 * self.blocks_per_number) as usize;
        let (from, to) = (guess.saturating_sub(AROUND), (guess + AROUND).min(self.firsts.len()));
        let is_there = from < to
            && self.firsts[from] <= number
            && self.firsts.get(to).is_none_or(|behind| number < *behind);
        let (from, to) = if is_there { (from, to) } else { (0, self.firsts.len()) };
        (from + self.firsts[from..to].partition_point(|first| *first <= number)).checked_sub(1)
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.firsts) + size_of_val(&*self.starts) + size_of_val(&*self.words)
    }
}

/// The number at a position of a block, whose numbers have as many bits as the block has words.
fn read(words: &[u64], at: usize) -> u64 {
    let width = words.len();
    if width == 0 {
        return 0;
    }
    let bit = at * width;
    let mut number = words[bit / 64] >> (bit % 64);
    if bit % 64 + width > 64 {
        number |= words[bit / 64 + 1] << (64 - bit % 64);
    }
    number & (u64::MAX >> (64 - width))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    fn packed(numbers: &[u64]) -> Numbers {
        let mut builder = NumbersBuilder::with_capacity(numbers.len());
        numbers.iter().for_each(|number| builder.push(*number));
        builder.finish()
    }

    fn check(numbers: &[u64]) {
        let packed = packed(numbers);
        assert_eq!(packed.len(), numbers.len());
        for (at, number) in numbers.iter().enumerate() {
            assert_eq!((packed.get(at), packed.find(*number)), (*number, Some(at)));
            for other in [number.wrapping_sub(1), number.wrapping_add(1)] {
                assert_eq!(packed.find(other), numbers.binary_search(&other).ok(), "{other}");
            }
        }
    }

    #[test]
    fn every_number_is_found_at_its_place_and_no_other() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0x5eed_0301);
        for len in [1, 2, 63, 64, 65, 127, 128, 129, 1000] {
            for bits in [10, 12, 20, 33, 48, 63, 64] {
                let mut numbers = BTreeSet::new();
                while numbers.len() < len.min(1 << (bits - 1)) {
                    numbers.insert(rng.next_u64() >> (64 - bits));
                }
                check(&numbers.into_iter().collect::<Vec<u64>>());
            }
        }
        assert_eq!(packed(&[]).find(0), None);
    }

    #[test]
    fn the_ends_of_the_range_are_numbers_as_well() {
        check(&[0, u64::MAX]);
        check(&[u64::MAX]);
        check(&(0..64).chain([u64::MAX - 1, u64::MAX]).collect::<Vec<u64>>());
    }

    #[test]
    fn numbers_that_are_spread_unevenly_are_found_as_well() {
        check(&(0..5000).map(|n: u64| n * n * n * n * n).collect::<Vec<u64>>());
        check(&(0..5000).map(|n| u64::MAX - 1000 * n).rev().collect::<Vec<u64>>());
        let dense = (0..3000).chain(1 << 40..(1 << 40) + 3000).chain(u64::MAX - 3000..=u64::MAX);
        check(&dense.collect::<Vec<u64>>());
    }

    #[test]
    fn what_follows_each_other_takes_a_byte() {
        let numbers: Vec<u64> = (1 << 50..(1 << 50) + 64_000).collect();
        assert!(packed(&numbers).bytes() < 64_100, "{}", packed(&numbers).bytes());
    }
}
