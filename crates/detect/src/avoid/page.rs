//! What a page says, as the predictor keeps it: hashed words in blocks.

use xxhash_rust::xxh3::xxh3_64;

/// Words of a page beyond this are not looked at.
const MOST_WORDS: usize = 20_000;
/// Blocks beyond this are not looked at.
const MOST_BLOCKS: usize = 4_000;

/// The text of a page as hashes: 4 bytes a word, 16 a block.
#[derive(Clone, Debug, Default)]
pub struct PageText {
    pub(crate) words: Vec<u32>,
    pub(crate) blocks: Vec<TextBlock>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TextBlock {
    /// Position: hash of the tag path.
    pub(crate) position: u32,
    /// Hash of the words.
    pub(crate) text: u32,
    pub(crate) start: u32,
    pub(crate) words: u32,
}

impl PageText {
    /// Of blocks of text with their positions (see [`Block::path`](huntsman_html::Block)).
    pub fn of<'a>(blocks: impl IntoIterator<Item = (u64, &'a str)>) -> Self {
        let mut page = Self::default();
        for (path, text) in blocks {
            if page.blocks.len() == MOST_BLOCKS || page.words.len() >= MOST_WORDS {
                break;
            }
            let start = page.words.len();
            let words = text.split_whitespace().map(|word| xxh3_64(word.as_bytes()) as u32);
            page.words.extend(words.take(MOST_WORDS - start));
            let words = &page.words[start..];
            if words.is_empty() {
                continue;
            }
            let hash = words.iter().fold(super::shape::Mix::new(3), |hash, word| hash.with(u64::from(*word)));
            let block = TextBlock {
                position: (path ^ (path >> 32)) as u32,
                text: hash.0 as u32,
                start: start as u32,
                words: words.len() as u32,
            };
            page.blocks.push(block);
        }
        page
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.words) + size_of_val(&*self.blocks)
    }
}
