//! A hash of words in their order that is made of the hashes of parts, wherever the parts begin and end.

/// The field in which is calculated: the numbers modulo the Mersenne prime 2^61 - 1, in which a product is reduced by shifts.
const PRIME: u64 = (1 << 61) - 1;
/// Any number of the field will do; keys are stored, so this must not change.
const BASE: u64 = 0x18FA_C532_1072_DCB7;

/// The powers of the base by the number of words of a part. Most paragraphs have fewer words than are listed.
const POWERS: [u64; 256] = {
    let mut powers = [1; 256];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = times(powers[at - 1], BASE);
        at += 1;
    }
    powers
};

/// The hash of some words: a polynomial of which they are the coefficients (Karp and Rabin 1987).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fold {
    value: u64,
    /// The number of words.
    pub(crate) words: u32,
}

impl Fold {
    /// Adds a word at the end.
    #[inline]
    pub(crate) fn push(&mut self, word: u32) {
        self.value = reduced(times(self.value, BASE) + u64::from(word) + 1);
        self.words += 1;
    }

    #[inline(always)]
    pub(crate) fn of(words: &[u32]) -> Self {
        let (eights, rest) = words.as_chunks::<8>();
        // The products of eight words do not wait for each other, or for the words before them.
        let value = eights.iter().fold(0, |value, eight| {
            let words = eight.iter().zip([7, 6, 5, 4, 3, 2, 1, 0]);
            let sum: u128 = words.map(|(word, at)| (u128::from(*word) + 1) * u128::from(POWERS[at])).sum();
            reduced(reduced(halves(sum + u128::from(value) * u128::from(POWERS[8]))))
        });
        let mut fold = Self { value, words: 8 * eights.len() as u32 };
        rest.iter().for_each(|word| fold.push(*word));
        fold
    }

    /// Adds all words of a part at the end.
    #[inline]
    pub(crate) fn append(&mut self, part: Self) {
        self.value = reduced(times(self.value, power(part.words)) + part.value);
        self.words += part.words;
    }

    /// The value, without the number of words.
    pub(crate) fn value(self) -> u64 {
        self.value
    }
}

fn power(words: u32) -> u64 {
    if let Some(power) = POWERS.get(words as usize) {
        return *power;
    }
    let (mut power, mut square, mut rest) = (1, BASE, words);
    while rest > 0 {
        if rest & 1 == 1 {
            power = times(power, square);
        }
        square = times(square, square);
        rest >>= 1;
    }
    power
}

#[inline]
const fn times(one: u64, other: u64) -> u64 {
    reduced(halves(one as u128 * other as u128))
}

/// The sum of the lower 61 bits and the others, which is the same in the field. That of a product is less than twice the prime, and that of a
/// product and some words less than three times the prime.
#[inline]
const fn halves(product: u128) -> u64 {
    (product as u64 & PRIME) + (product >> 61) as u64
}

/// For numbers of less than twice the prime.
#[inline]
const fn reduced(sum: u64) -> u64 {
    if sum >= PRIME { sum - PRIME } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_the_whole_wherever_they_begin() {
        let words: Vec<u32> = (0..500u32).map(|word| word.wrapping_mul(0x9E37_79B9)).collect();
        let whole = Fold::of(&words);
        let mut pushed = Fold::default();
        words.iter().for_each(|word| pushed.push(*word));
        assert_eq!(pushed, whole);
        for cut in [0, 1, 7, 8, 9, 200, 244, 245, 255, 256, 257, 499, 500] {
            let mut parts = Fold::of(&words[..cut]);
            parts.append(Fold::of(&words[cut..]));
            assert_eq!(parts, whole, "{cut}");
        }
        let mut swapped = Fold::of(&words[200..]);
        swapped.append(Fold::of(&words[..200]));
        assert_ne!(swapped, whole, "the order matters");
        assert_ne!(Fold::of(&[0, 7]).value(), Fold::of(&[7]).value(), "a word that is 0 counts");
        assert_eq!(Fold::of(&[u32::MAX; 100]).words, 100);
    }
}
