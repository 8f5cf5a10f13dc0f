//! Which of many texts share windows of words with a given one.

use std::collections::VecDeque;
use std::fmt;

use super::chain::{Degree, Roller};
use super::evidence::Document;

/// Postings that are kept as they came; beyond that they become a part.
const YOUNG: usize = 1 << 16;
/// A part does not grow beyond that: places in it are 32 bits.
const MAX_PART: usize = 1 << 31;
/// The largest winnowing window.
const MAX_WINNOW: usize = 1 << 16;
/// Of a window's hash the leading bits are kept.
const HASH_BITS: u32 = 48;
/// Of these the last 32 stand beside the number of the text, and the others are told by the bucket.
const TAG_BITS: u32 = 32;

/// An index of many texts that finds those which share words with a given one, so that not all have to be compared.
///
/// Of each text only some of its windows of k words are kept: of every w that follow each other the one with the smallest hash
/// (*winnowing*: Schleimer, Wilkerson, Aiken, SIGMOD 2003; which of two equal ones is taken makes no difference, since hashes are kept
/// and not places). That is about 2 of w + 1. A query looks for *all* windows of its text.
///
/// What is found for certain, with `min_shared` 1 and unless [`Candidates::common`] says otherwise:
///
/// - a text that has **w + k - 1 words in a row** in common with the query, wherever they stand in both;
/// - a text that has fewer than w + k - 1 words itself, if it has k words in a row in common with the query: all windows of such a
///   text are kept. So of two texts of which one is short, the longer one finds the shorter one, but not always the other way round.
///   To find all pairs, let all texts be added first, and then each ask.
///
/// Shorter runs are found more often the more there are of them: of words that stand in windows of k shared ones, a share of about
/// 2/(w + 1) is a hit each. Texts of fewer than k words are never found. A hash is 48 bits long: among N windows that are kept, one
/// of a query is found where it is not with a probability of N / 2^48. What is found has still to be compared
/// ([`Article`](super::Article), [`Check`](super::Check)).
///
/// Words are those of a [`Document`]: characters of scripts without spaces count as words, of which the last two of a run depend on
/// what follows them. There are no marks before and behind a text that could be shared. Words that the document says are boilerplate
/// are left out, and words on both sides of them are not in a row; a run is what lies between.
///
/// Memory: 8 bytes for each window that is kept and at most 2 more for finding it; twice that for a moment, when parts are merged.
/// A text of 1,000 words takes about 1,300 bytes with w = 12. An addition sorts its text's windows and merges each of them about
/// log2(N / 65,536) times in all; a query looks up each of its windows in as many places ([`compact`](Self::compact): in one).
///
/// ```
/// use huntsman_detect::copyvio::{Degree, Document, WindowIndex};
///
/// let mut index = WindowIndex::new(Degree::default(), 4);
/// index.add(7, &Document::new("Long ago the old mill on the bank of the river ground the corn of nine villages."));
/// index.add(8, &Document::new("Nothing of what this one says stands in any of the other texts that are here."));
/// let found = index.candidates(&Document::new("It is said that the old mill on the bank of the river is gone."), 1);
/// assert_eq!(found.texts.iter().map(|text| text.id).collect::<Vec<_>>(), [7]);
/// ```
#[derive(Clone)]
pub struct WindowIndex {
    degree: Degree,
    winnow: usize,
    texts: usize,
    /// Sorted, each at least twice as long as the next.
    young: Vec<Vec<Posting>>,
    /// Each at least twice as long as the next.
    parts: Vec<Part>,
}

/// A window that a text has.
type Posting = (u64, u32);

/// A text that shares windows with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The number that it was added with.
    pub id: u32,
    /// How many different windows of the query it has, of those that are kept and not common.
    pub shared: usize,
}

/// The texts that share windows with another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Candidates {
    /// Those with the most windows first, and by their numbers.
    pub texts: Vec<Candidate>,
    /// How many different windows of the query stand in more texts than were looked at, and so were left out. If it is 0, what is
    /// promised holds without condition; else it holds of runs of which one window that is kept is not among these.
    pub common: usize,
}

impl WindowIndex {
    /// In how many texts a window may stand for [`candidates`](Self::candidates) to look at them.
    pub const MAX_TEXTS: usize = 1_000;

    /// An empty index for windows of `degree` words, of which one of every `winnow` is kept at least. Every run of
    /// `winnow + degree - 1` words is found. (`winnow` 1 keeps all; it is taken to be between 1 and 65,536.)
    pub fn new(degree: Degree, winnow: usize) -> Self {
        let winnow = winnow.clamp(1, MAX_WINNOW);
        Self { degree, winnow, texts: 0, young: Vec::new(), parts: Vec::new() }
    }

    /// Words per window.
    pub fn degree(&self) -> Degree {
        self.degree
    }

    /// How many words in a row are found for certain: w + k - 1.
    pub fn run(&self) -> usize {
        self.winnow + self.degree.get() - 1
    }

    /// How often a text was added.
    pub fn len(&self) -> usize {
        self.texts
    }

    /// Whether no text was added.
    pub fn is_empty(&self) -> bool {
        self.texts == 0
    }

    /// How many windows are kept. What was added twice under one number counts twice until it is merged.
    pub fn windows(&self) -> usize {
        self.young.iter().map(Vec::len).sum::<usize>()
            + self.parts.iter().map(|part| part.entries.len()).sum::<usize>()
    }

    /// Bytes of memory that it holds.
    pub fn bytes(&self) -> usize {
        let young: usize = self.young.iter().map(|run| run.capacity() * size_of::<Posting>()).sum();
        young + self.parts.iter().map(Part::bytes).sum::<usize>()
    }

    /// Adds a text under a number. Texts that are added under one number are as one.
    ///
    /// Linear in the words of the text, for which it takes 8 bytes each while it works. Now and then parts are merged, which takes
    /// some milliseconds for a million windows.
    pub fn add(&mut self, id: u32, text: &Document<'_>) {
        let windows = TextWindows::of(text, self.degree);
        let run: Vec<Posting> = windows.winnowed(self.winnow).into_iter().map(|hash| (hash, id)).collect();
        self.texts += 1;
        if run.is_empty() {
            return;
        }
        self.young.push(run);
        while let [.., longer, last] = self.young.as_slice()
            && longer.len() < 2 * last.len()
        {
            let merged = merged(longer, last);
            self.young.truncate(self.young.len() - 2);
            self.young.push(merged);
        }
        if self.young.iter().map(Vec::len).sum::<usize>() >= YOUNG {
            self.settle(2);
        }
    }

    /// Merges all that can be: queries are faster until more is added.
    pub fn compact(&mut self) {
        if self.young.is_empty() && self.parts.len() < 2 {
            return;
        }
        self.settle(usize::MAX);
    }

    /// Makes a part of the young ones and of all parts that are not `factor` times as long as what comes behind them.
    fn settle(&mut self, factor: usize) {
        let mut size: usize = self.young.iter().map(Vec::len).sum();
        let mut from = self.parts.len();
        while let Some(part) = from.checked_sub(1).map(|before| &self.parts[before])
            && part.entries.len() < size.saturating_mul(factor)
            && part.entries.len() + size <= MAX_PART
        {
            size += part.entries.len();
            from -= 1;
        }
        let merged = Part::of(size, &self.parts[from..], &self.young);
        self.young.clear();
        self.parts.truncate(from);
        self.parts.push(merged);
    }

    /// The texts that have at least `min_shared` windows of `text` (0 counts as 1). Windows that stand in more than
    /// [`MAX_TEXTS`](Self::MAX_TEXTS) texts, such as those of a menu, are left out.
    ///
    /// Where a menu ends it has windows that only some texts keep, as the words behind it differ, so texts with one menu may meet in one
    /// or two; a `min_shared` of 4 leaves such pairs out. With `min_shared` m, found for certain are runs of m w + k - 1 words in which no window stands twice. A text that was
    /// added finds itself.
    pub fn candidates(&self, text: &Document<'_>, min_shared: usize) -> Candidates {
        self.candidates_within(text, min_shared, Self::MAX_TEXTS)
    }

    /// As [`candidates`](Self::candidates), with windows that stand in at most `max_texts` texts; with [`usize::MAX`] all. The cost is
    /// that of looking up each window, and of sorting at most `max_texts` numbers for each.
    pub fn candidates_within(&self, text: &Document<'_>, min_shared: usize, max_texts: usize) -> Candidates {
        let mut found = Candidates::default();
        let mut texts: Vec<u32> = Vec::new();
        for window in TextWindows::of(text, self.degree).distinct() {
            let before = texts.len();
            for part in &self.parts {
                let entries = part.entries(window).iter();
                texts.extend(entries.take(max_texts.saturating_add(1)).map(|entry| *entry as u32));
            }
            for run in &self.young {
                let start = run.partition_point(|(hash, _)| *hash < window);
                let postings = run[start..].iter().take_while(|(hash, _)| *hash == window);
                texts.extend(postings.take(max_texts.saturating_add(1)).map(|(_, id)| *id));
            }
            // One text may have been added twice.
            texts[before..].sort_unstable();
            let mut kept = before;
            for at in before..texts.len() {
                if at == before || texts[at] != texts[kept - 1] {
                    texts[kept] = texts[at];
                    kept += 1;
                }
            }
            texts.truncate(kept);
            if kept - before > max_texts {
                texts.truncate(before);
                found.common += 1;
            }
        }
        texts.sort_unstable();
        let shared = texts.chunk_by(|a, b| a == b).map(|same| Candidate { id: same[0], shared: same.len() });
        found.texts = shared.filter(|candidate| candidate.shared >= min_shared).collect();
        found.texts.sort_unstable_by_key(|candidate| (std::cmp::Reverse(candidate.shared), candidate.id));
        found
    }
}

impl Default for WindowIndex {
    /// Windows of five words, 16 words in a row are found.
    fn default() -> Self {
        Self::new(Degree::default(), 12)
    }
}

impl fmt::Debug for WindowIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowIndex")
            .field("degree", &self.degree)
            .field("winnow", &self.winnow)
            .field("texts", &self.texts)
            .field("windows", &self.windows())
            .finish_non_exhaustive()
    }
}

/// The windows of a text, in pieces between boilerplate.
struct TextWindows {
    hashes: Vec<u64>,
    /// Where each piece ends.
    ends: Vec<usize>,
}

impl TextWindows {
    fn of(text: &Document<'_>, degree: Degree) -> Self {
        let mut windows = Self { hashes: Vec::new(), ends: Vec::new() };
        let (mut roller, mut words) = (Roller::new(degree), 0);
        for word in text.words_in_pieces() {
            let Some(word) = word else {
                (roller, words) = (Roller::new(degree), 0);
                windows.end_piece();
                continue;
            };
            let hash = roller.push(word) >> (64 - HASH_BITS);
            words += 1;
            if words >= degree.get() {
                windows.hashes.push(hash);
            }
        }
        windows.end_piece();
        windows
    }

    fn end_piece(&mut self) {
        let end = self.hashes.len();
        if self.ends.last().copied().unwrap_or(0) < end {
            self.ends.push(end);
        }
    }

    /// All of them, ascending.
    fn distinct(mut self) -> Vec<u64> {
        self.hashes.sort_unstable();
        self.hashes.dedup();
        self.hashes
    }

    /// Those that are kept, ascending.
    fn winnowed(self, winnow: usize) -> Vec<u64> {
        if self.hashes.len() < winnow {
            return self.distinct();
        }
        let mut kept = Vec::with_capacity(3 * self.hashes.len() / (winnow + 1));
        let mut start = 0;
        for end in &self.ends {
            minima(&self.hashes[start..*end], winnow, &mut kept);
            start = *end;
        }
        kept.sort_unstable();
        kept.dedup();
        kept
    }
}

/// What minima are taken of. Not the hash itself: the smallest hashes would all lie in a few buckets of a part.
fn rank(hash: u64) -> u64 {
    hash.rotate_left(64 - HASH_BITS / 2)
}

/// Of every `width` hashes in a row the one of the lowest rank; of fewer, of all.
fn minima(hashes: &[u64], width: usize, kept: &mut Vec<u64>) {
    // Places whose rank is below that of all behind them.
    let mut rising: VecDeque<usize> = VecDeque::new();
    let mut last = None;
    for (at, hash) in hashes.iter().enumerate() {
        while rising.back().is_some_and(|before| rank(hashes[*before]) >= rank(*hash)) {
            rising.pop_back();
        }
        rising.push_back(at);
        if rising.front().is_some_and(|first| first + width <= at) {
            rising.pop_front();
        }
        let is_whole = at + 1 >= width.min(hashes.len());
        if let Some(first) = rising.front().filter(|_| is_whole)
            && last != Some(*first)
        {
            kept.push(hashes[*first]);
            last = Some(*first);
        }
    }
}

/// Two sorted runs as one, what both have once.
fn merged(a: &[Posting], b: &[Posting]) -> Vec<Posting> {
    let mut out = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        let (x, y) = (**x, **y);
        out.push(x.min(y));
        if x <= y {
            a.next();
        }
        if y <= x {
            b.next();
        }
    }
    out.extend(a);
    out.extend(b);
    out
}

/// Sorted postings, packed: found by the leading bits of their hashes.
#[derive(Clone)]
struct Part {
    /// Leading bits of a hash that tell its bucket, at least those that its tag has not.
    bits: u32,
    /// Where each bucket begins; one more at the end.
    starts: Vec<u32>,
    /// The last bits of the hash, and the number of the text.
    entries: Vec<u64>,
}

impl Part {
    /// A part of all postings of others and of runs, of which there are `size`. All are read in ascending order, and so written in
    /// ascending order of buckets, which are then sorted for themselves.
    fn of(size: usize, parts: &[Part], runs: &[Vec<Posting>]) -> Self {
        let bits = (size / 8).max(1).ilog2().max(HASH_BITS - TAG_BITS);
        let bucket = |hash: u64| (hash >> (HASH_BITS - bits)) as usize;
        let each = |visit: &mut dyn FnMut(u64, u32)| {
            parts.iter().for_each(|part| part.for_each(visit));
            runs.iter().flatten().for_each(|(hash, id)| visit(*hash, *id));
        };
        let mut starts = vec![0_u32; (1 << bits) + 1];
        each(&mut |hash, _| starts[bucket(hash) + 1] += 1);
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut next = starts.clone();
        let mut entries = vec![0_u64; size];
        each(&mut |hash, id| {
            let place = &mut next[bucket(hash)];
            entries[*place as usize] = (hash << TAG_BITS) | u64::from(id);
            *place += 1;
        });
        drop(next);
        let mut kept = 0;
        for index in 0..starts.len() - 1 {
            let (from, to) = (starts[index] as usize, starts[index + 1] as usize);
            entries[from..to].sort_unstable();
            starts[index] = kept as u32; // at most `MAX_PART`
            for at in from..to {
                if at == from || entries[kept - 1] != entries[at] {
                    entries[kept] = entries[at];
                    kept += 1;
                }
            }
        }
        *starts.last_mut().expect("there is one more than buckets") = kept as u32;
        if kept < size {
            entries.truncate(kept);
            entries.shrink_to_fit();
        }
        Self { bits, starts, entries }
    }

    fn for_each(&self, visit: &mut dyn FnMut(u64, u32)) {
        for bucket in 0..self.starts.len() - 1 {
            let leading = (bucket as u64) >> (self.bits - (HASH_BITS - TAG_BITS)) << TAG_BITS;
            for entry in &self.entries[self.starts[bucket] as usize..self.starts[bucket + 1] as usize] {
                visit(leading | entry >> TAG_BITS, *entry as u32);
            }
        }
    }

    /// The entries of a window, ascending by text.
    fn entries(&self, hash: u64) -> &[u64] {
        let bucket = (hash >> (HASH_BITS - self.bits)) as usize;
        let entries = &self.entries[self.starts[bucket] as usize..self.starts[bucket + 1] as usize];
        let tag = hash << TAG_BITS;
        let start = entries.partition_point(|entry| *entry < tag);
        let rest = &entries[start..];
        &rest[..rest.partition_point(|entry| *entry >> TAG_BITS == tag >> TAG_BITS)]
    }

    fn bytes(&self) -> usize {
        self.entries.capacity() * 8 + self.starts.capacity() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minima_of_every_window_are_kept_and_no_others() {
        let mut state = 1_u64;
        for width in [1, 2, 3, 7, 40] {
            let hashes: Vec<u64> = (0..200)
                .map(|_| {
                    state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                    state >> 60 // many are equal
                })
                .collect();
            for length in [0, 1, width - 1, width, width + 1, 200] {
                let hashes = &hashes[..length];
                let mut kept = Vec::new();
                minima(hashes, width, &mut kept);
                kept.sort_unstable();
                kept.dedup();
                let rows = hashes.windows(width.min(length).max(1));
                let mut expected: Vec<u64> =
                    rows.map(|row| *row.iter().min_by_key(|hash| rank(**hash)).unwrap()).collect();
                expected.sort_unstable();
                expected.dedup();
                assert_eq!(kept, expected, "{length} hashes, {width} in a row");
            }
        }
    }

    #[test]
    fn a_part_gives_back_what_was_put_into_it() {
        let mut state = 7_u64;
        let mut posting = || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            (state >> 16 & !0xFFFF_F000_0000, (state >> 40) as u32 % 5)
        };
        let mut runs: Vec<Vec<Posting>> = (0..3).map(|_| (0..1_000).map(|_| posting()).collect()).collect();
        runs.iter_mut().for_each(|run| {
            run.sort_unstable();
            run.dedup();
        });
        let size = |runs: &[Vec<Posting>]| runs.iter().map(Vec::len).sum::<usize>();
        let first = Part::of(size(&runs[..2]), &[], &runs[..2]);
        // Once more what is there already.
        let again = first.entries.len() + runs[1].len() + runs[2].len();
        let all = Part::of(again, std::slice::from_ref(&first), &runs[1..]);
        let mut expected: Vec<Posting> = runs.concat();
        expected.sort_unstable();
        expected.dedup();
        let mut given = Vec::new();
        all.for_each(&mut |hash, id| given.push((hash, id)));
        assert_eq!(given, expected);
        for (hash, _) in &expected {
            let ids: Vec<u32> = all.entries(*hash).iter().map(|entry| *entry as u32).collect();
            let of_hash = expected.iter().filter(|(other, _)| other == hash).map(|(_, id)| *id);
            assert!(of_hash.eq(ids));
        }
    }
}
