//! The text of a page as the predictor keeps it: hashed words in blocks.

use std::borrow::Cow;

use fearless_simd::{Level, Simd, dispatch};
use huntsman_html::Scan;
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

use super::fold::Fold;
use super::own_words::{OwnRange, OwnWords, Written, ranges};
use super::shape::Mix;
use super::words::Words;

/// The most words of a page that are read.
const MAX_WORDS: usize = 20_000;
/// Space for so many words is allotted at first.
const USUAL_WORDS: usize = 4_096;
/// The most blocks that are read.
const MAX_BLOCKS: usize = 4_000;

/// The text of a page as hashes: 4 bytes per word, 24 per block, 8 for each place where the text repeats a value of the page's URL, and 32
/// for each block with such a place.
#[derive(Clone, Debug, Default)]
pub struct PageText {
    pub(crate) words: Vec<u32>,
    pub(crate) blocks: Vec<TextBlock>,
    /// The places where the text repeats a value of the page's URL, in order. They do not span blocks.
    pub(crate) own: Vec<OwnRange>,
    /// The blocks with such a place, in order.
    pub(crate) without_own: Vec<WithoutOwn>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TextBlock {
    /// The position: a hash of the tag path.
    pub(crate) position: u32,
    /// The hash by which blocks of chrome are recognised. In a sentence all words with digits count as one: `generated at 10:15 in 0.03 s` is the same on each
    /// visit.
    pub(crate) text: u32,
    pub(crate) start: u32,
    /// The words.
    pub(crate) fold: Fold,
}

/// A block in which each place that repeats a value of the URL is one word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WithoutOwn {
    /// The number of the block.
    pub(crate) block: u32,
    /// The number of words that are replaced.
    pub(crate) replaced: u32,
    pub(crate) fold: Fold,
}

impl TextBlock {
    /// The number of words.
    pub(crate) fn words(&self) -> u32 {
        self.fold.words
    }

    /// [`text`](Self::text) of these words.
    pub(crate) fn text_of(words: Fold) -> u32 {
        Mix::new(TEXT).with(words.value()).with(u64::from(words.words)).0 as u32
    }

    fn range(&self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.words()) as usize
    }
}

impl PageText {
    /// Makes a page from blocks of text with their positions (see [`Block::path`](huntsman_html::Block)).
    pub fn of<'a>(blocks: impl IntoIterator<Item = (u64, &'a str)>) -> Self {
        Self::of_own(&OwnWords::default(), blocks)
    }

    /// Makes a page from the blocks of text of the page with this URL. Where the text repeats a value of the URL (a title, a revision, a
    /// session, a date), that is noted: a page is compared with these words and without them, because they say where it is and not what it
    /// shows.
    pub fn of_page<'a>(url: &Url, blocks: impl IntoIterator<Item = (u64, &'a str)>) -> Self {
        Self::of_own(&OwnWords::of(url), blocks)
    }

    /// Makes a page from the scan of the page with this URL, which must have been made with blocks.
    pub fn of_scan(url: &Url, scan: &Scan) -> Self {
        Self::of_page(url, scan.blocks().map(|block| (block.path, block.text)))
    }

    fn of_own<'a>(own: &OwnWords, blocks: impl IntoIterator<Item = (u64, &'a str)>) -> Self {
        let blocks = blocks.into_iter();
        dispatch!(Level::new(), simd => Self::with(simd, own, blocks))
    }

    #[inline(always)]
    fn with<'a, S: Simd>(simd: S, own: &OwnWords, blocks: impl Iterator<Item = (u64, &'a str)>) -> Self {
        let mut page = Self::default();
        page.blocks.reserve(blocks.size_hint().0.min(MAX_BLOCKS));
        page.words.reserve(USUAL_WORDS);
        let (mut written, mut with_digits) = (Written::new(), Vec::new());
        for (path, text) in blocks {
            if page.blocks.len() == MAX_BLOCKS || page.words.len() >= MAX_WORDS {
                break;
            }
            let start = page.words.len();
            let (mut has_own, mut letters) = (false, 0);
            with_digits.clear();
            for word in Words::of(simd, text).take(MAX_WORDS - start) {
                if word.has_digit {
                    with_digits.push(page.words.len());
                } else if letters < WORDS_OF_SENTENCE {
                    letters += usize::from(word.has_letter());
                }
                page.words.push(xxh3_64(word.bytes()) as u32);
                has_own = has_own || own.may_begin(&word);
            }
            if page.words.len() == start {
                continue;
            }
            let fold = Fold::of(&page.words[start..]);
            let is_sentence = letters == WORDS_OF_SENTENCE && !with_digits.is_empty();
            let without_digits =
                if is_sentence { fold_without(&page.words, start, &with_digits) } else { fold };
            page.blocks.push(TextBlock {
                position: (path ^ (path >> 32)) as u32,
                text: TextBlock::text_of(without_digits),
                start: start as u32,
                fold,
            });
            if has_own {
                let known = page.own.len();
                written.clear();
                written.extend(Words::of(simd, text).take(MAX_WORDS - start));
                ranges(own, &written, start as u32, &mut page.own);
                page.fold_without_own(known);
            }
        }
        page.words.shrink_to_fit();
        page.blocks.shrink_to_fit();
        page
    }

    /// Makes a page of its words, its blocks, and the places that repeat a value of the URL, each in its order.
    pub(crate) fn from_parts(words: Vec<u32>, blocks: Vec<TextBlock>, own: Vec<OwnRange>) -> Self {
        let mut page = Self { words, ..Self::default() };
        let mut own = own.into_iter().peekable();
        for block in blocks {
            let end = block.start + block.words();
            page.blocks.push(block);
            let known = page.own.len();
            while let Some(range) = own.next_if(|range| range.start < end) {
                page.own.push(range);
            }
            page.fold_without_own(known);
        }
        page
    }

    /// Folds the words of the last block without its places that repeat a value of the URL, which are those from this number on.
    fn fold_without_own(&mut self, first: usize) {
        if let (Some(block), false) = (self.blocks.last(), self.own.len() == first) {
            let mut fold = Fold::default();
            let replaced = each_without_own(&self.words, block, &self.own[first..], |word| fold.push(word));
            self.without_own.push(WithoutOwn { block: self.blocks.len() as u32 - 1, replaced, fold });
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.words)
            + size_of_val(&*self.blocks)
            + size_of_val(&*self.own)
            + size_of_val(&*self.without_own)
    }

    /// The words of a block of this page.
    pub(crate) fn words_of_block(&self, block: &TextBlock) -> &[u32] {
        &self.words[block.range()]
    }

    /// The words of these blocks, which are sorted. Where nothing is left out between them, nothing is copied.
    pub(crate) fn words_of(&self, blocks: &[u32]) -> Cow<'_, [u32]> {
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { return Cow::Borrowed(&[]) };
        let [start, end] = [first, last].map(|block| self.blocks[*block as usize].range());
        if (last - first) as usize + 1 == blocks.len() {
            return Cow::Borrowed(&self.words[start.start..end.end]);
        }
        let blocks = blocks.iter().map(|block| &self.blocks[*block as usize]);
        let mut words = Vec::with_capacity(end.end - start.start);
        blocks.for_each(|block| words.extend_from_slice(self.words_of_block(block)));
        Cow::Owned(words)
    }

    /// The words of these blocks, each place that repeats a value of the URL as one word.
    pub(crate) fn words_without_own(&self, blocks: &[u32]) -> Vec<u32> {
        let mut words = Vec::with_capacity(self.words.len());
        for block in blocks.iter().map(|block| &self.blocks[*block as usize]) {
            let first = self.own.partition_point(|own| own.start < block.start);
            each_without_own(&self.words, block, &self.own[first..], |word| words.push(word));
        }
        words
    }
}

/// The word in place of a value of the URL.
const OWN: u32 = 0;

/// Passes on the words of a block, each place that repeats a value of the URL as one word; returns the number of words that were replaced.
/// The places may be followed by those of later blocks.
fn each_without_own(words: &[u32], block: &TextBlock, own: &[OwnRange], mut each: impl FnMut(u32)) -> u32 {
    let (mut at, end) = (block.start, block.start + block.words());
    let mut replaced = 0;
    for own in own.iter().take_while(|own| own.start < end) {
        words[at as usize..own.start as usize].iter().for_each(|word| each(*word));
        each(OWN);
        replaced += own.words;
        at = own.start + own.words;
    }
    words[at as usize..end as usize].iter().for_each(|word| each(*word));
    replaced
}

/// The least number of words with letters and without digits in a sentence.
const WORDS_OF_SENTENCE: usize = 3;
/// The kind of the hashes of texts.
const TEXT: u64 = 15;
/// The word in place of one with digits.
const WITH_DIGIT: u32 = 0;

/// The words from a place on, one word in place of each of those with these numbers.
fn fold_without(words: &[u32], start: usize, numbers: &[usize]) -> Fold {
    let (mut fold, mut at) = (Fold::default(), start);
    for number in numbers {
        fold.append(Fold::of(&words[at..*number]));
        fold.push(WITH_DIGIT);
        at = number + 1;
    }
    fold.append(Fold::of(&words[at..]));
    fold
}
