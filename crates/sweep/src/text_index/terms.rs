//! The terms by which a text is indexed and searched for: pairs of neighbouring words.

use std::collections::VecDeque;

use huntsman_detect::words::Words;
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// Maximum size of a word; a longer one is an encoded file or a hash.
const MAX_BYTES: usize = 96;

/// The terms of a text: all pairs of neighbouring words in order, with repetitions.
///
/// Single words would find all pages on the same subject, and a word that replaced another one would find as many pages
/// as a copied one. Pairs of neighbouring words are rare, and a pair with a changed word occurs nowhere else.
///
/// Words are the [`Words`] of all detectors. In scripts without spaces these are single characters: there two
/// neighbouring characters count as a word, so a term has three characters.
pub(super) fn terms(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    each_term(text, |term| all.push(term));
    all
}

fn each_term(text: &str, mut each: impl FnMut(String)) {
    let mut before: Option<String> = None;
    each_word(text, |word| {
        if let Some(before) = &before {
            each([before, " ", &word].concat());
        }
        before = Some(word);
    });
}

fn each_word(text: &str, mut each: impl FnMut(String)) {
    let words = Words::of(text);
    let mut before: Option<&str> = None;
    let mut is_paired = false;
    for word in words.iter() {
        if is_character(word) {
            match before {
                Some(first) => {
                    each([first, word].concat());
                    is_paired = true;
                }
                None => is_paired = false,
            }
            before = Some(word);
            continue;
        }
        // A single character between other words counts as a word.
        if let Some(alone) = before.take().filter(|_| !is_paired) {
            each(alone.to_owned());
        }
        if word.len() <= MAX_BYTES {
            each(word.to_owned());
        }
    }
    if let Some(alone) = before.filter(|_| !is_paired) {
        each(alone.to_owned());
    }
}

/// Whether a word is one character, with its marks, of a script without spaces.
fn is_character(word: &str) -> bool {
    word.len() <= 24
        && word.chars().next().is_some_and(|c| {
            matches!(c,
                '\u{e00}'..='\u{eff}' // Thai, Lao
                | '\u{1000}'..='\u{109f}' // Myanmar
                | '\u{1780}'..='\u{17ff}' // Khmer
                | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{309f}' // iteration marks, Hiragana
                | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' // Han
                | '\u{20000}'..='\u{3ffff}')
        })
}

/// Makes terms for tantivy.
#[derive(Clone, Debug, Default)]
pub(super) struct Terms;

impl Terms {
    /// The name in the schema. It must change if terms are made in another way.
    pub(super) const NAME: &'static str = "huntsman_pairs_1";
}

impl Tokenizer for Terms {
    type TokenStream<'a> = Stream;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Stream {
        let mut left = VecDeque::new();
        each_term(text, |term| left.push_back(term));
        Stream { left, token: Token::default() }
    }
}

#[derive(Debug)]
pub(super) struct Stream {
    left: VecDeque<String>,
    token: Token,
}

impl TokenStream for Stream {
    fn advance(&mut self) -> bool {
        let Some(term) = self.left.pop_front() else { return false };
        self.token.position = self.token.position.wrapping_add(1);
        self.token.text = term;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_words_are_terms_and_three_characters_where_nothing_parts_words() {
        for (text, expected) in [
            ("The old mill, 1923!", &["the old", "old mill", "mill 1923"][..]),
            ("日本語圏", &["日本 本語", "本語 語圏"]),
            ("古い mill 水", &["古い mill", "mill 水"]),
            ("東京タワー", &["東京 タワー"]),
            ("กขคง", &["กข ขค", "ขค คง"]),
            ("alone", &[]),
            ("", &[]),
        ] {
            assert_eq!(terms(text), expected, "{text}");
        }
        assert_eq!(terms(&format!("a {} b", "x".repeat(200))), ["a b"]);
    }

    #[test]
    fn the_stream_has_the_terms() {
        let text = "The old mill 日本語";
        let mut tokenizer = Terms;
        let mut stream = tokenizer.token_stream(text);
        let mut seen = Vec::new();
        while stream.advance() {
            seen.push((stream.token().position, stream.token().text.clone()));
        }
        let expected: Vec<_> = terms(text).into_iter().enumerate().collect();
        assert_eq!(seen, expected);
    }
}
