//! Recognises characters that look like others and invisible characters within words.

use icu_properties::CodePointMapData;
use icu_properties::props::Script;
use serde::{Deserialize, Serialize};

use super::document::normalised;

/// The number of words of a text that look alike but compare unequal, because of unusual characters.
///
/// All of them are normalised before words are compared. A few occur in honest texts (copied from a word processor, a name in another
/// alphabet); [`Disguise::is_suspicious`] sets the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Disguise {
    /// Words in which letters of another script replace similar ones (`pаper` with a Cyrillic `а`).
    pub look_alikes: usize,
    /// Words with invisible characters in them (zero-width space, joiners between Latin letters).
    pub invisible: usize,
    /// Words in mathematical or full-width letters (`𝐩𝐚𝐩𝐞𝐫`, `ｐａｐｅｒ`).
    pub styled: usize,
}

impl Disguise {
    /// The number of all such words.
    pub fn words(self) -> usize {
        self.look_alikes + self.invisible + self.styled
    }

    /// Whether a text of this many words was probably manipulated: at least three such words, and one in a hundred.
    pub fn is_suspicious(self, words: f64) -> bool {
        self.words() >= 3 && self.words() as f64 * 100.0 >= words
    }
}

/// Letters of Cyrillic and Greek with the Latin letter that looks the same, by code point. These are the confusables of UTS 39 that are one
/// letter each and look alike in common typefaces. Capital and small letters are listed separately, because a capital may look like a
/// letter that its small one does not (В and в).
const LOOK_ALIKES: [(char, char); 66] = [
    ('Α', 'A'),
    ('Β', 'B'),
    ('Ε', 'E'),
    ('Ζ', 'Z'),
    ('Η', 'H'),
    ('Ι', 'I'),
    ('Κ', 'K'),
    ('Μ', 'M'),
    ('Ν', 'N'),
    ('Ο', 'O'),
    ('Ρ', 'P'),
    ('Τ', 'T'),
    ('Υ', 'Y'),
    ('Χ', 'X'),
    ('α', 'a'),
    ('γ', 'y'),
    ('ι', 'i'),
    ('κ', 'k'),
    ('ν', 'v'),
    ('ο', 'o'),
    ('ρ', 'p'),
    ('σ', 'o'),
    ('υ', 'u'),
    ('χ', 'x'),
    ('ϲ', 'c'),
    ('ϳ', 'j'),
    ('Ѕ', 'S'),
    ('І', 'I'),
    ('Ј', 'J'),
    ('А', 'A'),
    ('В', 'B'),
    ('Е', 'E'),
    ('К', 'K'),
    ('М', 'M'),
    ('Н', 'H'),
    ('О', 'O'),
    ('Р', 'P'),
    ('С', 'C'),
    ('Т', 'T'),
    ('У', 'Y'),
    ('Х', 'X'),
    ('а', 'a'),
    ('е', 'e'),
    ('к', 'k'),
    ('м', 'm'),
    ('о', 'o'),
    ('п', 'n'),
    ('р', 'p'),
    ('с', 'c'),
    ('т', 't'),
    ('у', 'y'),
    ('х', 'x'),
    ('ѕ', 's'),
    ('і', 'i'),
    ('ј', 'j'),
    ('ѵ', 'v'),
    ('Ү', 'Y'),
    ('ү', 'y'),
    ('һ', 'h'),
    ('Ӏ', 'l'),
    ('ӏ', 'l'),
    ('ԁ', 'd'),
    ('Ԍ', 'G'),
    ('ԛ', 'q'),
    ('Ԝ', 'W'),
    ('ԝ', 'w'),
];

fn look_alike(c: char) -> Option<char> {
    LOOK_ALIKES.binary_search_by_key(&c, |(from, _)| *from).ok().map(|at| LOOK_ALIKES[at].1)
}

/// Normalises a word: NFKC, look-alikes, lower case. `invisible` is the number of invisible characters that were in it. Returns whether
/// anything is left.
///
/// Look-alikes are replaced only in words that contain a Latin letter as well. A word entirely in another script is a word of that script.
pub(super) fn fold_word(word: &mut String, invisible: u32, disguise: &mut Disguise) -> bool {
    let script = |c: char| CodePointMapData::<Script>::new().get(c);
    let is_latin = |c: char| c.is_ascii_alphabetic() || !c.is_ascii() && script(c) == Script::Latin;
    let has_latin = word.chars().any(is_latin);
    // Joiners are part of the spelling of Arabic, Persian and Indic words.
    let is_alphabetic = |c: char| is_latin(c) || matches!(script(c), Script::Cyrillic | Script::Greek);
    if invisible > 0 && word.chars().any(is_alphabetic) {
        disguise.invisible += 1;
    }
    if has_latin && word.chars().any(|c| look_alike(c).is_some()) {
        *word = word.chars().map(|c| look_alike(c).unwrap_or(c)).collect();
        disguise.look_alikes += 1;
    }
    if word
        .chars()
        .any(|c| matches!(c, '\u{FF21}'..='\u{FF5A}' | '\u{1D400}'..='\u{1D7FF}' | '\u{24B6}'..='\u{24E9}'))
    {
        disguise.styled += 1;
    }
    *word = normalised(word);
    !word.is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::Document;
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        assert!(LOOK_ALIKES.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn letters_of_another_script_are_mapped_back_and_reported() {
        let honest = Document::new("the paper of the Tower");
        let tricked = Document::new("thе pаpеr of the Тоwer");
        let hashes =
            |document: &Document<'_>| document.tokens.iter().map(|token| token.hash).collect::<Vec<_>>();
        assert_eq!(hashes(&tricked), hashes(&honest));
        assert_eq!(tricked.disguise(), Disguise { look_alikes: 3, ..Disguise::default() });
        assert!(tricked.disguise().is_suspicious(tricked.words()));
        assert!(!honest.disguise().is_suspicious(honest.words()));
    }

    #[test]
    fn words_of_another_script_stay_its_own() {
        let russian = Document::new("Старая мельница сор");
        assert_eq!(russian.disguise(), Disguise::default());
        assert_ne!(russian.tokens[2].hash, Document::new("cop").tokens[0].hash);
    }

    #[test]
    fn hidden_and_styled_characters_are_reported() {
        let text = Document::new("ze\u{200B}ro ｆｕｌｌ 𝐛𝐨𝐥𝐝 سلام\u{200C}ها");
        assert_eq!(text.disguise(), Disguise { look_alikes: 0, invisible: 1, styled: 2 });
    }
}
