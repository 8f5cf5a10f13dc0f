//! Splits a text into words as the reference detector does.
//!
//! The reference lower-cases the whole text, deletes every character that is not a word character, white space or an ASCII hyphen, and
//! splits at white space (`re.sub(r"[^\w\s-]", "", text.lower()).split()` of Python). So punctuation joins and never splits (`and/or` is
//! `andor`), marks vanish, and a paragraph of Chinese is one word. [`huntsman_text::words`] has better rules, which give other numbers.
//!
//! Python's `\w` is *not* the `\w` of the `regex` crate (which includes marks and joiners and lacks numbers such as `½`), and its white
//! space is not [`char::is_whitespace`] (which lacks U+001C to U+001F).

use icu_properties::CodePointMapData;
use icu_properties::props::GeneralCategory;

/// Classes of bytes, as bits.
const KEPT: u8 = 1;
const UPPER: u8 = 2;
const DROPPED: u8 = 4;
const SPACE: u8 = 8;
const NOT_ASCII: u8 = 16;

const CLASS: [u8; 256] = {
    let mut table = [DROPPED; 256];
    let mut byte = 0_u8;
    loop {
        table[byte as usize] = match byte {
            b'\t'..=b'\r' | 0x1C..=0x1F | b' ' => SPACE,
            b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => KEPT,
            b'A'..=b'Z' => UPPER,
            128.. => NOT_ASCII,
            _ => DROPPED,
        };
        if byte == 255 {
            break table;
        }
        byte += 1;
    }
};

/// The white space of Python: U+0009-000D, 001C-001F, 0020, 0085, 00A0, 1680, 2000-200A, 2028, 2029, 202F, 205F, 3000.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\x1C'..='\x1F')
}

/// `text.strip()` of Python.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// `text.split()` of Python: the pieces between white space.
pub(super) fn pieces(text: &str) -> impl DoubleEndedIterator<Item = &str> + Clone {
    text.split(is_space).filter(|piece| !piece.is_empty())
}

/// Whether a character is a letter (general category L*), a number (N*) or `_`: `\w` of Python, checked over all of Unicode 14.
///
/// The categories are those of the Unicode version of the `icu_properties` crate, which is newer: letters that were added after Unicode 14
/// are word characters here.
fn is_word_character(c: char) -> bool {
    use GeneralCategory as Category;
    c == '_'
        || matches!(
            CodePointMapData::<Category>::new().get(c),
            Category::UppercaseLetter
                | Category::LowercaseLetter
                | Category::TitlecaseLetter
                | Category::ModifierLetter
                | Category::OtherLetter
                | Category::DecimalNumber
                | Category::LetterNumber
                | Category::OtherNumber
        )
}

/// Appends the word that is left of `token`, which contains no white space.
fn normalise_into(token: &str, out: &mut String) {
    if token.is_ascii() {
        let kept = token.bytes().filter(|byte| CLASS[usize::from(*byte)] & (KEPT | UPPER) != 0);
        out.extend(kept.map(|byte| char::from(byte.to_ascii_lowercase())));
    } else {
        // Full case mapping with the rule of the final sigma, before anything is deleted. That rule needs no more than the token, because
        // white space is neither cased nor ignorable.
        let lower = token.to_lowercase();
        out.extend(lower.chars().filter(|c| *c == '-' || is_word_character(*c)));
    }
}

/// One piece of a text between white space as a word; empty if no characters are left of it.
pub(super) fn normalised(piece: &str) -> String {
    let mut word = String::new();
    normalise_into(piece, &mut word);
    word
}

/// Calls `word` with each word of `text` in order, in linear time and without keeping them.
///
/// ```
/// use huntsman_detect::copyvio::for_each_word;
///
/// let mut words = Vec::new();
/// for_each_word("Don't say \"and/or\" - ever.", |word| words.push(word.to_owned()));
/// assert_eq!(words, ["dont", "say", "andor", "-", "ever"]);
/// ```
pub fn for_each_word(text: &str, mut word: impl FnMut(&str)) {
    let bytes = text.as_bytes();
    let mut scratch = String::new();
    let mut start = 0;
    while start < bytes.len() {
        let letters = small_letters(&bytes[start..]);
        if letters > 0 && bytes.get(start + letters).is_some_and(|byte| CLASS[usize::from(*byte)] == SPACE) {
            word(&text[start..start + letters]);
            start += letters + 1;
            continue;
        }
        let mut seen = 0;
        let length = bytes[start..].iter().position(|byte| {
            let class = CLASS[usize::from(*byte)];
            let is_end = class & (SPACE | NOT_ASCII) != 0;
            seen |= if is_end { 0 } else { class };
            is_end
        });
        let mut end = length.map_or(bytes.len(), |length| start + length);
        // A byte that is not ASCII begins a character, because all before it are ASCII.
        if bytes.get(end).is_some_and(|byte| *byte >= 128) {
            end = text[end..].find(is_space).map_or(bytes.len(), |at| end + at);
            seen |= NOT_ASCII;
        }
        let token = &text[start..end];
        if seen == KEPT {
            word(token);
        } else if seen & NOT_ASCII != 0 {
            scratch.clear();
            normalise_into(token, &mut scratch);
            if !scratch.is_empty() {
                word(&scratch);
            }
        } else if seen & !DROPPED != 0 {
            ascii_word(token, seen, &mut scratch, &mut word);
        }
        start = end + bytes.get(end).map_or(0, |byte| if *byte < 128 { 1 } else { space_len(&text[end..]) });
    }
}

/// The number of letters from a to z at the start. They are counted eight at a time: word lengths are unpredictable, so a loop over single
/// letters would mispredict its last branch for almost every word.
fn small_letters(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    let mut count = 0;
    for eight in bytes.chunks(8) {
        let Ok(eight) = <[u8; 8]>::try_from(eight) else {
            return count + eight.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        };
        let eight = u64::from_le_bytes(eight);
        // With the high bits cleared, no sum of a byte overflows into the next.
        let low = eight & !HIGH;
        let from_a = low + (0x80 - u64::from(b'a')) * ONES;
        let behind_z = low + (0x7F - u64::from(b'z')) * ONES;
        let others = !(from_a & !behind_z & !eight) & HIGH;
        if others != 0 {
            return count + others.trailing_zeros() as usize / 8;
        }
        count += 8;
    }
    count
}

/// Writes an ASCII token of which some characters are kept. Most tokens have their punctuation at the ends and need not be copied.
fn ascii_word(token: &str, seen: u8, scratch: &mut String, word: &mut impl FnMut(&str)) {
    let is_dropped = |c: char| CLASS[c as usize & 0x7F] == DROPPED;
    let mut token = token;
    if seen & DROPPED != 0 {
        token = token.trim_matches(is_dropped);
        if token.contains(is_dropped) {
            scratch.clear();
            normalise_into(token, scratch);
            return word(scratch);
        }
    }
    if seen & UPPER != 0 {
        scratch.clear();
        scratch.push_str(token);
        scratch.make_ascii_lowercase();
        token = scratch;
    }
    word(token);
}

fn space_len(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        for_each_word(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn small_letters_are_counted_up_to_any_other_byte() {
        for other in (0..=255_u8).filter(|byte| !byte.is_ascii_lowercase()) {
            for at in 0..20 {
                let mut bytes = b"abcdefghijklmnopqrstuvwxyz".to_vec();
                bytes[at] = other;
                assert_eq!(small_letters(&bytes), at, "{other} at {at}");
            }
        }
        assert_eq!([&b"az"[..], b"", b"abcdefgh", b"abcdefghz"].map(small_letters), [2, 0, 8, 9]);
    }

    #[test]
    fn punctuation_joins_and_a_lone_hyphen_is_a_word() {
        assert_eq!(
            words("and/or 1,234.56 don't - \u{2013} well-known"),
            ["andor", "123456", "dont", "-", "well-known"]
        );
        assert_eq!(words("!!! ... "), Vec::<String>::new());
    }

    #[test]
    fn white_space_is_that_of_python() {
        let all = "a\tb\nc\x0Bd\x0Ce\rf\x1Cg\x1Dh\x1Ei\x1Fj k\u{85}l\u{A0}m\u{1680}n\u{2000}o\u{200A}p\u{2028}q\u{2029}\
                   r\u{202F}s\u{205F}t\u{3000}u";
        assert_eq!(words(all).concat(), "abcdefghijklmnopqrstu");
        assert_eq!(words(all).len(), 21);
        assert_eq!(words("a\u{200B}b \u{FEFF}c d\u{AD}e f\u{180E}g"), ["ab", "c", "de", "fg"]);
    }

    #[test]
    fn marks_and_joiners_vanish_and_numbers_of_all_kinds_stay() {
        assert_eq!(words("हिन्दी"), ["हनद"]);
        assert_eq!(words("e\u{301} \u{E9}"), ["e", "\u{E9}"]);
        assert_eq!(words("½ ² ① Ⅷ Ⓐ a\u{203F}b _"), ["½", "²", "①", "ⅷ", "ab", "_"]);
    }

    #[test]
    fn lower_case_is_the_full_mapping() {
        assert_eq!(words("ΟΔΟΣ ΣΑΣ İstanbul STRASSE ẞ"), ["οδος", "σας", "istanbul", "strasse", "ß"]);
    }
}
