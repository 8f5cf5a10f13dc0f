//! The text of a page as the predictor keeps it: hashed words in blocks.

use huntsman_html::Scan;
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

use super::own_words::{OwnRange, OwnWords, Written, has_digit, ranges};
use super::shape::Mix;

/// The most words of a page that are read.
const MAX_WORDS: usize = 20_000;
/// The most blocks that are read.
const MAX_BLOCKS: usize = 4_000;

/// The text of a page as hashes: 4 bytes per word, 16 per block, and 8 for each place where the text repeats a value of the page's URL.
#[derive(Clone, Debug, Default)]
pub struct PageText {
    pub(crate) words: Vec<u32>,
    pub(crate) blocks: Vec<TextBlock>,
    /// The places where the text repeats a value of the page's URL, in order. They do not span blocks.
    pub(crate) own: Vec<OwnRange>,
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
        Self::with(&OwnWords::default(), blocks)
    }

    /// Makes a page from the blocks of text of the page with this URL. Where the text repeats a value of the URL (a title, a revision, a
    /// session, a date), that is noted: a page is compared with these words and without them, because they say where it is and not what it
    /// shows.
    pub fn of_page<'a>(url: &Url, blocks: impl IntoIterator<Item = (u64, &'a str)>) -> Self {
        Self::with(&OwnWords::of(url), blocks)
    }

    /// Makes a page from the scan of the page with this URL, which must have been made with blocks.
    pub fn of_scan(url: &Url, scan: &Scan) -> Self {
        Self::of_page(url, scan.blocks().map(|block| (block.path, block.text)))
    }

    fn with<'a>(own: &OwnWords, blocks: impl IntoIterator<Item = (u64, &'a str)>) -> Self {
        let mut page = Self::default();
        for (path, text) in blocks {
            if page.blocks.len() == MAX_BLOCKS || page.words.len() >= MAX_WORDS {
                break;
            }
            let start = page.words.len();
            let words: Written<'_> = text.split_whitespace().take(MAX_WORDS - start).collect();
            if words.is_empty() {
                continue;
            }
            page.words.extend(words.iter().map(|word| xxh3_64(word.as_bytes()) as u32));
            ranges(own, &words, start as u32, &mut page.own);
            let block = TextBlock {
                position: (path ^ (path >> 32)) as u32,
                text: text_hash(&words),
                start: start as u32,
                words: words.len() as u32,
            };
            page.blocks.push(block);
        }
        page
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.words) + size_of_val(&*self.blocks) + size_of_val(&*self.own)
    }

    /// The words of these blocks, each place that repeats a value of the URL as one word, and the number of words that were replaced.
    pub(crate) fn without_own(&self, blocks: &[TextBlock]) -> (Vec<u32>, usize) {
        let mut words = Vec::new();
        let mut replaced = 0;
        for block in blocks {
            let (mut at, end) = (block.start, block.start + block.words);
            let first = self.own.partition_point(|own| own.start < at);
            for own in self.own[first..].iter().take_while(|own| own.start < end) {
                words.extend_from_slice(&self.words[at as usize..own.start as usize]);
                words.push(OWN);
                replaced += own.words as usize;
                at = own.start + own.words;
            }
            words.extend_from_slice(&self.words[at as usize..end as usize]);
        }
        (words, replaced)
    }
}

/// The word in place of a value of the URL.
const OWN: u32 = 0;

/// The least number of words without a digit in a sentence.
const WORDS_OF_SENTENCE: usize = 3;

/// The hash by which blocks of chrome are recognised. In a sentence all words with digits count as one: `generated at 10:15 in 0.03 s` is
/// the same on each visit.
fn text_hash(words: &[&str]) -> u32 {
    let has_letters = |word: &&&str| !has_digit(word) && word.chars().any(char::is_alphabetic);
    let is_sentence = words.iter().filter(has_letters).take(WORDS_OF_SENTENCE).count() == WORDS_OF_SENTENCE;
    let hash = words.iter().fold(Mix::new(3), |hash, word| match is_sentence && has_digit(word) {
        true => hash.with(0),
        false => hash.with(xxh3_64(word.as_bytes())),
    });
    hash.0 as u32
}
