//! The text of a page as the predictor keeps it: hashed words in blocks.

use huntsman_html::Scan;
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

use super::overrides::Overrides;
use super::shape::{Mix, raw_slots};

/// The most words of a page that are read.
const MAX_WORDS: usize = 20_000;
/// The most blocks that are read.
const MAX_BLOCKS: usize = 4_000;

/// The text of a page as hashes: 4 bytes per word, 16 per block.
#[derive(Clone, Debug, Default)]
pub struct PageText {
    pub(crate) words: Vec<u32>,
    pub(crate) blocks: Vec<TextBlock>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TextBlock {
    /// The position: a hash of the tag path.
    pub(crate) position: u32,
    /// The hash of the text; in a sentence, numbers are left out.
    pub(crate) text: u32,
    pub(crate) start: u32,
    pub(crate) words: u32,
}

impl PageText {
    /// Makes a page from blocks of text with their positions (see [`Block::path`](huntsman_html::Block)).
    pub fn of<'a>(blocks: impl IntoIterator<Item = (u64, &'a str)>) -> Self {
        Self::without(&[], blocks)
    }

    /// Makes a page from the blocks of text of the page with this URL. If the text repeats an identifier of the URL (a value with a digit,
    /// of 5 bytes or more: a revision, a session, a date), these words are ignored, because they say nothing about the content.
    pub fn of_page<'a>(url: &Url, blocks: impl IntoIterator<Item = (u64, &'a str)>) -> Self {
        let slots = raw_slots(url, &Overrides::default());
        let values = slots.iter().skip(1).flat_map(|slot| slot.value.split_whitespace());
        let own: Vec<&str> = values.filter(|value| value.len() >= IDENTIFIER && has_digit(value)).collect();
        Self::without(&own, blocks)
    }

    /// Makes a page from the scan of the page with this URL, which must have been made with blocks.
    pub fn of_scan(url: &Url, scan: &Scan) -> Self {
        Self::of_page(url, scan.blocks().map(|block| (block.path, block.text)))
    }

    fn without<'a>(own: &[&str], blocks: impl IntoIterator<Item = (u64, &'a str)>) -> Self {
        let mut page = Self::default();
        let hash = |word: &str| {
            let is_own =
                word.len() >= IDENTIFIER && has_digit(word) && own.iter().any(|own| word.contains(own));
            if is_own { 0 } else { xxh3_64(word.as_bytes()) as u32 }
        };
        for (path, text) in blocks {
            if page.blocks.len() == MAX_BLOCKS || page.words.len() >= MAX_WORDS {
                break;
            }
            let start = page.words.len();
            let words = text.split_whitespace().map(hash);
            page.words.extend(words.take(MAX_WORDS - start));
            let words = &page.words[start..];
            if words.is_empty() {
                continue;
            }
            let block = TextBlock {
                position: (path ^ (path >> 32)) as u32,
                text: text_hash(text),
                start: start as u32,
                words: words.len() as u32,
            };
            page.blocks.push(block);
        }
        page
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.words) + size_of_val(&*self.blocks)
    }
}

/// The least number of bytes of an identifier.
const IDENTIFIER: usize = 5;

fn has_digit(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
}

/// The least number of words without a digit in a sentence.
const WORDS_OF_SENTENCE: usize = 3;

/// The hash by which blocks of chrome are recognised. In a sentence all words with digits count as one: `generated at 10:15 in 0.03 s` is
/// the same on each visit.
fn text_hash(text: &str) -> u32 {
    let words = || text.split_whitespace().take(MAX_WORDS);
    let has_letters = |word: &&str| !has_digit(word) && word.chars().any(char::is_alphabetic);
    let is_sentence = words().filter(has_letters).take(WORDS_OF_SENTENCE).count() == WORDS_OF_SENTENCE;
    let hash = words().fold(Mix::new(3), |hash, word| match is_sentence && has_digit(word) {
        true => hash.with(0),
        false => hash.with(xxh3_64(word.as_bytes())),
    });
    hash.0 as u32
}
