//! Deterministic filler text.

use super::random::Random;

const SYLLABLES: [&str; 20] = [
    "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va", "we",
    "xi", "yo", "zu",
];

/// A word of one to four syllables.
pub(crate) fn word(random: &mut Random) -> String {
    (0..=random.below(4)).map(|_| SYLLABLES[random.below(SYLLABLES.len())]).collect()
}

/// The given number of words, in sentences.
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
