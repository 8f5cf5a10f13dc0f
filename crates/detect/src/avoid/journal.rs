//! The journal: the events that the predictor was given, so that they can be replayed.
//!
//! A model is a set of tables that change with every page, and is fully determined by its events: the same events in the same order give
//! the same model. So only events are stored, and a restart replays them.

use std::borrow::Cow;
use std::io::Read;

use hashbrown::{HashMap, HashSet};

use super::content::{ContentText, Texts};
use super::fold::Fold;
use super::own_words::OwnRange;
use super::page::{PageText, TextBlock};
use super::predictor::{Options, Predictor};
use super::site::LinkContext;
use super::sketch::Sketch;

/// The format version that is written; the first byte of a batch.
const FORMAT: u8 = 7;
/// The oldest version that is read.
const OLDEST: u8 = 1;
/// The level of zstd.
const LEVEL: i32 = 1;
/// Bytes of events that are packed together. The memory of a job that is rarely stored is that of packed events.
const FRAME: usize = 256 << 10;
/// The most bytes of an unpacked batch; one that claims to be longer is damaged.
const MAX_BYTES: u64 = 1 << 30;

/// What stands in the place of the URL in an event that has none.
const NO_URL: Cow<'static, str> = Cow::Borrowed("");

/// An event that was given to the predictor and changes its answers.
#[derive(Clone, Debug)]
pub(crate) enum Event<'a> {
    Discover {
        site: Cow<'a, str>,
        url: Cow<'a, str>,
        link: Option<LinkContext>,
    },
    Learn {
        site: Cow<'a, str>,
        url: Cow<'a, str>,
        text: Cow<'a, PageText>,
    },
    LearnTexts {
        site: Cow<'a, str>,
        url: Cow<'a, str>,
        texts: Option<Texts>,
    },
    Skip {
        site: Cow<'a, str>,
        url: Cow<'a, str>,
        row: u64,
    },
    Redirect {
        site: Cow<'a, str>,
        from: Cow<'a, str>,
        to: Cow<'a, str>,
    },
    Claim {
        site: Cow<'a, str>,
        page: u32,
        url: Cow<'a, str>,
        named: Cow<'a, str>,
    },
    Link {
        site: Cow<'a, str>,
        url: Cow<'a, str>,
        page: u32,
    },
    /// A URL was skipped that would have the content of a page to which one page alone links.
    Same {
        site: Cow<'a, str>,
        url: Cow<'a, str>,
        page: u32,
    },
    /// A page was fetched again.
    FetchedAgain {
        site: Cow<'a, str>,
        url: Cow<'a, str>,
        text: Cow<'a, PageText>,
    },
    /// A page links to a URL that the crawl does not fetch.
    Refuse {
        site: Cow<'a, str>,
        url: Cow<'a, str>,
        page: u32,
    },
    /// The pages of a site were ordered by rank.
    Order {
        site: Cow<'a, str>,
    },
    /// A skipped page is fetched for the links that it may have.
    GiveBack {
        site: Cow<'a, str>,
        url: Cow<'a, str>,
    },
}

/// The events that were not yet taken. They are kept only after [`keep_journal`](Predictor::keep_journal) was called.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    is_kept: bool,
    /// The last events, which are not packed yet.
    bytes: Vec<u8>,
    /// A batch of the events before them, as frames of zstd one after the other; empty if there are none.
    packed: Vec<u8>,
    /// Bytes of those events before they were packed.
    packed_bytes: usize,
}

/// The error if a stored journal cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged(&'static str);

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the journal of the predictor is damaged: {}", self.0)
    }
}

impl std::error::Error for Damaged {}

impl Journal {
    pub(crate) fn add<'a>(&mut self, event: impl FnOnce() -> Event<'a>) {
        if self.is_kept {
            write(&mut self.bytes, &event());
            if self.bytes.len() >= FRAME {
                self.pack();
            }
        }
    }

    fn pack(&mut self) {
        if self.packed.is_empty() {
            self.packed.push(FORMAT);
        }
        self.packed.extend(zstd::bulk::compress(&self.bytes, LEVEL).unwrap_or_default());
        self.packed_bytes += self.bytes.len();
        self.bytes.clear();
    }
}

impl Predictor {
    /// Starts to keep events until they are taken with [`take_journal`](Self::take_journal).
    pub fn keep_journal(&mut self) {
        self.journal.is_kept = true;
    }

    /// Bytes of the events that were not yet taken, before they are packed.
    pub fn journal_bytes(&self) -> usize {
        self.journal.packed_bytes + self.journal.bytes.len()
    }

    /// Keeps no more events, and forgets those that were not taken.
    pub fn end_journal(&mut self) {
        self.journal = Journal::default();
    }

    /// Returns the events since the last call, for storage; `None` if there are none. Batches must be restored in their order.
    pub fn take_journal(&mut self) -> Option<Vec<u8>> {
        if self.journal_bytes() == 0 {
            return None;
        }
        if !self.journal.bytes.is_empty() {
            self.journal.pack();
        }
        self.journal.packed_bytes = 0;
        Some(std::mem::take(&mut self.journal.packed))
    }

    /// Replays the events of an earlier predictor. Totals are not counted again, and the list of rules is built anew.
    ///
    /// # Errors
    /// The batch is damaged, or has another format version.
    pub fn restore(&mut self, batch: &[u8]) -> Result<(), Damaged> {
        let (&format, packed) = batch.split_first().ok_or(Damaged("it is empty"))?;
        if !(OLDEST..=FORMAT).contains(&format) {
            return Err(Damaged("it is of another version"));
        }
        let mut bytes = Vec::new();
        let decoder =
            zstd::stream::read::Decoder::new(packed).map_err(|_| Damaged("it cannot be unpacked"))?;
        decoder.take(MAX_BYTES).read_to_end(&mut bytes).map_err(|_| Damaged("it cannot be unpacked"))?;
        let was_kept = std::mem::take(&mut self.journal.is_kept);
        let totals = self.totals();
        let older = (format <= OlderTexts::LAST).then(|| OlderTexts::of(&bytes));
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let mut event = read(&mut rest).ok_or(Damaged("it ends in the middle"))?;
            if let Some(older) = &older {
                older.bring_up_to_date(&mut event);
            }
            self.apply(event);
        }
        self.journal.is_kept = was_kept;
        self.set_totals(totals);
        Ok(())
    }

    /// A predictor in the state that these batches of events describe.
    ///
    /// # Errors
    /// As [`restore`](Self::restore).
    pub fn restored<'a>(
        options: Options,
        batches: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, Damaged> {
        let mut predictor = Self::new(options);
        batches.into_iter().try_for_each(|batch| predictor.restore(batch))?;
        Ok(predictor)
    }
}

/// The texts of blocks in a batch of an older format, where their hashes were others.
///
/// A block without numbers is given the hash that it would have now. For a sentence with numbers that is not possible, because only the hashes of its words are
/// known, and the older hash stays. New pages are compared with such sentences word by word; where the older ones differ, any word will do.
#[derive(Debug, Default)]
struct OlderTexts {
    /// By position and text, the words of the first block.
    first: HashMap<(u32, u32), Fold>,
    /// The positions and texts of which not all blocks have the same words.
    with_numbers: HashSet<(u32, u32)>,
}

impl OlderTexts {
    /// The last format with them.
    const LAST: u8 = 6;

    fn of(bytes: &[u8]) -> Self {
        let (mut texts, mut rest) = (Self::default(), bytes);
        while let Some(event) = read(&mut rest) {
            let (Event::Learn { text, .. } | Event::FetchedAgain { text, .. }) = event else { continue };
            for TextBlock { position, text, fold, .. } in &text.blocks {
                let block = (*position, *text);
                if texts.first.entry(block).or_insert(*fold) != fold {
                    texts.with_numbers.insert(block);
                }
            }
        }
        texts
    }

    fn bring_up_to_date(&self, event: &mut Event<'_>) {
        let (Event::Learn { text, .. } | Event::FetchedAgain { text, .. }) = event else { return };
        for block in &mut text.to_mut().blocks {
            if !self.with_numbers.contains(&(block.position, block.text)) {
                block.text = TextBlock::text_of(block.fold);
            }
        }
    }
}

fn write(out: &mut Vec<u8>, event: &Event<'_>) {
    let (kind, site, url) = match event {
        Event::Discover { site, url, .. } => (1, site, url),
        // 2 and 3 are those of the first format, 8 is that of the second, and 7 and 14 are those up to the sixth; 11 came with the fourth, 12 and 13 with the
        // fifth, and 17 with the seventh.
        Event::Learn { site, url, .. } => (15, site, url),
        Event::LearnTexts { site, url, .. } => (9, site, url),
        Event::Skip { site, url, .. } => (4, site, url),
        Event::Redirect { site, from, .. } => (5, site, from),
        Event::Claim { site, url, .. } => (6, site, url),
        Event::Link { site, url, .. } => (10, site, url),
        Event::GiveBack { site, url } => (11, site, url),
        Event::Refuse { site, url, .. } => (12, site, url),
        Event::Order { site } => (13, site, &NO_URL),
        Event::FetchedAgain { site, url, .. } => (16, site, url),
        Event::Same { site, url, .. } => (17, site, url),
    };
    out.push(kind);
    put_text(out, site);
    put_text(out, url);
    match event {
        Event::Discover { link, .. } => {
            out.push(u8::from(link.is_some()));
            if let Some(link) = link {
                out.extend_from_slice(&link.page.to_le_bytes());
                out.extend_from_slice(&link.position.to_le_bytes());
            }
        }
        Event::Learn { text, .. } | Event::FetchedAgain { text, .. } => {
            number(out, text.words.len());
            text.words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
            number(out, text.blocks.len());
            for block in &text.blocks {
                for value in [block.position, block.text, block.start, block.words()] {
                    out.extend_from_slice(&value.to_le_bytes());
                }
            }
            number(out, text.own.len());
            for range in &text.own {
                out.extend_from_slice(&range.start.to_le_bytes());
                out.extend_from_slice(&range.words.to_le_bytes());
            }
        }
        Event::LearnTexts { texts, .. } => {
            put_content(out, texts.as_ref().map(|texts| &texts.whole));
            put_content(out, texts.as_ref().and_then(|texts| texts.without_own.as_ref()));
        }
        Event::Skip { row, .. } => out.extend_from_slice(&row.to_le_bytes()),
        Event::Redirect { to, .. } => put_text(out, to),
        Event::Claim { page, named, .. } => {
            out.extend_from_slice(&page.to_le_bytes());
            put_text(out, named);
        }
        Event::Link { page, .. } | Event::Refuse { page, .. } | Event::Same { page, .. } => {
            out.extend_from_slice(&page.to_le_bytes());
        }
        Event::GiveBack { .. } | Event::Order { .. } => {}
    }
}

fn put_content(out: &mut Vec<u8>, text: Option<&ContentText>) {
    out.push(u8::from(text.is_some()));
    let Some(text) = text else { return };
    out.extend_from_slice(&text.key.to_le_bytes());
    match &text.sketch {
        None => number(out, 0),
        Some(sketch) => {
            number(out, sketch.hashes().len());
            sketch.hashes().iter().for_each(|hash| out.extend_from_slice(&hash.to_le_bytes()));
            sketch.numbers().iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
        }
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    number(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

fn read(rest: &mut &[u8]) -> Option<Event<'static>> {
    let kind = take(rest, 1)?[0];
    let site = Cow::Owned(text(rest)?);
    let url = Cow::Owned(text(rest)?);
    Some(match kind {
        1 => {
            let link = match take(rest, 1)?[0] {
                0 => None,
                _ => Some(LinkContext {
                    page: u32::from_le_bytes(take(rest, 4)?.try_into().ok()?),
                    position: u64::from_le_bytes(take(rest, 8)?.try_into().ok()?),
                }),
            };
            Event::Discover { site, url, link }
        }
        2 | 7 | 15 => Event::Learn { site, url, text: Cow::Owned(page_text(rest, kind != 2)?) },
        3 => {
            let whole = sketch(rest, false)?.map(ContentText::of_sketch);
            let texts = whole.map(|whole| Texts { whole, without_own: None });
            Event::LearnTexts { site, url, texts }
        }
        8 | 9 => {
            let (whole, without_own) = (content(rest, kind == 9)?, content(rest, kind == 9)?);
            let texts = whole.map(|whole| Texts { whole, without_own });
            Event::LearnTexts { site, url, texts }
        }
        4 => Event::Skip { site, url, row: u64::from_le_bytes(take(rest, 8)?.try_into().ok()?) },
        5 => Event::Redirect { site, from: url, to: Cow::Owned(text(rest)?) },
        6 => Event::Claim { site, page: value(rest)?, url, named: Cow::Owned(text(rest)?) },
        10 => Event::Link { site, url, page: value(rest)? },
        11 => Event::GiveBack { site, url },
        12 => Event::Refuse { site, url, page: value(rest)? },
        13 => Event::Order { site },
        14 | 16 => Event::FetchedAgain { site, url, text: Cow::Owned(page_text(rest, true)?) },
        17 => Event::Same { site, url, page: value(rest)? },
        _ => return None,
    })
}

fn page_text(rest: &mut &[u8], has_ranges: bool) -> Option<PageText> {
    let words = words(rest)?;
    let bound = words.len();
    let is_within =
        |start: u32, words: u32| start.checked_add(words).is_some_and(|end| end as usize <= bound);
    let mut blocks: Vec<TextBlock> = Vec::new();
    for _ in 0..length(rest)? {
        let [position, text, start, count] = [value(rest)?, value(rest)?, value(rest)?, value(rest)?];
        if !is_within(start, count) || blocks.last().is_some_and(|last| start < last.start + last.words()) {
            return None;
        }
        let fold = Fold::of(&words[start as usize..][..count as usize]);
        blocks.push(TextBlock { position, text, start, fold });
    }
    let mut own: Vec<OwnRange> = Vec::new();
    for _ in 0..if has_ranges { length(rest)? } else { 0 } {
        let range = OwnRange { start: value(rest)?, words: value(rest)? };
        let end = own.last().map_or(0, |last| last.start + last.words);
        // In order and without overlap, and each within one block.
        let block = blocks.partition_point(|block| block.start <= range.start).checked_sub(1)?;
        let block = &blocks[block];
        if !is_within(range.start, range.words)
            || range.start < end
            || range.start + range.words > block.start + block.words()
        {
            return None;
        }
        own.push(range);
    }
    Some(PageText::from_parts(words, blocks, own))
}

fn content(rest: &mut &[u8], has_bands: bool) -> Option<Option<ContentText>> {
    if take(rest, 1)?[0] == 0 {
        return Some(None);
    }
    let key = u64::from_le_bytes(take(rest, 8)?.try_into().ok()?);
    Some(Some(ContentText { key, sketch: sketch(rest, has_bands)? }))
}

fn sketch(rest: &mut &[u8], has_bands: bool) -> Option<Option<Sketch>> {
    let hashes = words(rest)?;
    if hashes.is_empty() {
        return Some(None);
    }
    let mut numbers = Vec::new();
    for _ in 0..Sketch::NUMBERS {
        numbers.push(value(rest)?);
    }
    Some(Some(Sketch::from_parts(hashes, &numbers, has_bands)?))
}

fn number(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(head)
}

fn value(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(take(rest, 4)?.try_into().ok()?))
}

fn length(rest: &mut &[u8]) -> Option<usize> {
    Some(value(rest)? as usize)
}

fn words(rest: &mut &[u8]) -> Option<Vec<u32>> {
    let count = length(rest)?;
    let bytes = take(rest, count.checked_mul(4)?)?;
    let (words, _) = bytes.as_chunks::<4>();
    Some(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

fn text(rest: &mut &[u8]) -> Option<String> {
    let length = length(rest)?;
    Some(std::str::from_utf8(take(rest, length)?).ok()?.to_owned())
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::avoid::{Attempt, Decision};

    const SITE: &str = "shop.example";

    fn url(article: u32, session: u32) -> Url {
        let url = format!("http://{SITE}/article?id={article}&sid={session}");
        url.parse().expect("a URL")
    }

    fn decisions(predictor: &mut Predictor) -> Vec<Decision> {
        let asked = (0..40).map(|article| url(article, 9_000 + article));
        asked.map(|url| predictor.decide(SITE, &url, Attempt::Regular)).collect()
    }

    #[test]
    fn a_batch_of_many_frames_is_read_as_one_of_a_single_frame() {
        let options = Options { warmup: 0, ..Options::default() };
        let mut predictor = Predictor::new(options);
        predictor.keep_journal();
        for article in 0..60u32 {
            let words: String = (0..900u32).map(|at| format!("word{} ", article * 7_919 + at * 31)).collect();
            for session in [article, article + 1_000] {
                let url = url(article, session);
                predictor.discover(SITE, &url, None);
                predictor.learn(SITE, &url, PageText::of([(0, &*words)]));
            }
        }
        let bytes = predictor.journal_bytes();
        assert!(bytes > FRAME && predictor.journal.bytes.len() < FRAME, "{bytes} bytes");
        let batch = predictor.take_journal().expect("something was told");
        assert!(predictor.take_journal().is_none() && predictor.journal_bytes() == 0);
        let all = zstd::stream::decode_all(&batch[1..]).expect("frames of zstd");
        assert_eq!(all.len(), bytes);
        let single = [&[FORMAT], &*zstd::bulk::compress(&all, 3).expect("it can be packed")].concat();
        let wanted = format!("{:?}", decisions(&mut predictor));
        assert!(wanted.contains("Skip"), "{wanted}");
        for batch in [batch, single] {
            let mut restored = Predictor::restored(options, [&*batch]).expect("a journal");
            assert_eq!(format!("{:?}", decisions(&mut restored)), wanted);
        }
    }
}
