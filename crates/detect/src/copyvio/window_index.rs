//! An index that finds which of many texts share windows of words with a given one.

use std::collections::VecDeque;
use std::fmt;

use super::chain::{Degree, Roller};
use super::evidence::Document;

/// The number of new postings that are kept as sorted runs; beyond it they become a part.
const YOUNG: usize = 1 << 16;
/// The largest part. Positions in it are 32 bits.
const MAX_PART: usize = 1 << 31;
/// The largest winnowing window.
const MAX_WINNOW: usize = 1 << 16;
/// The number of leading bits of a window's hash that are kept.
const HASH_BITS: u32 = 48;
/// Of these bits, the last 32 are stored beside the number of the text; the others follow from the bucket.
const TAG_BITS: u32 = 32;

/// An index of many texts that finds those which share words with a given one, so that not all of them have to be compared.
///
/// Of each text only some of its windows of k words are kept: of every w consecutive ones, the one with the smallest hash (*winnowing*:
/// Schleimer, Wilkerson, Aiken, SIGMOD 2003; for equal hashes it makes no difference which is taken, because hashes are kept and not
/// positions). That is about 2 of w + 1. A query looks for *all* windows of its text.
///
/// With `min_shared` 1, unless [`Candidates::common`] says otherwise, a query is certain to find:
///
/// - a text that has **w + k - 1 words in a row** in common with the query, wherever they are in both;
/// - a text that itself has fewer than w + k - 1 words, if it has k words in a row in common with the query: all windows of such a text are
///   kept. So of two texts of which one is short, the longer one finds the shorter one, but not always the other way round. To find all
///   pairs, add all texts first, and then query with each.
///
/// Shorter common runs are found with a probability that grows with their number: of the windows of k words that both texts share, a share
/// of about 2/(w + 1) is kept and found. Texts of fewer than k words are never found. A hash is 48 bits long: if N windows are kept, a
/// window of a query is found by mistake with a probability of N / 2^48. The caller still has to compare the candidates
/// ([`Article`](super::Article), [`Check`](super::Check)).
///
/// Words are those of a [`Document`]: characters of scripts without spaces count as words, of which the last two of a run depend on what
/// follows them. Texts have no marks at their ends, which could be shared. Words that the document marks as boilerplate are left out, and
/// the words on both sides of them are not in a row: each piece between boilerplate is a run of its own.
///
/// Memory: 8 bytes for each kept window and at most 2 more for finding it; temporarily twice that, when parts are merged. A text of 1,000
/// words takes about 1,300 bytes with w = 12. An addition sorts its text's windows and merges each of them about log2(N / 65,536) times in
/// all; a query looks up each of its windows in as many parts (after [`compact`](Self::compact): in one).
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
    /// Sorted runs, each at least twice as long as the next.
    young: Vec<Vec<Posting>>,
    /// Parts, each at least twice as long as the next.
    parts: Vec<Part>,
}

/// A window and the number of a text that has it.
type Posting = (u64, u32);

/// A text that shares windows with the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The number with which it was added.
    pub id: u32,
    /// The number of distinct windows of the query that it has, of those that are kept and not common.
    pub shared: usize,
}

/// The texts that share windows with a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Candidates {
    /// The texts, sorted by descending number of shared windows and then by their numbers.
    pub texts: Vec<Candidate>,
    /// The number of distinct windows of the query that occur in too many texts and were left out. If it is 0, the guarantees hold
    /// unconditionally; otherwise they hold for runs that contain a kept window which is not among these.
    pub common: usize,
}

impl WindowIndex {
    /// The most texts in which a window may occur if [`candidates`](Self::candidates) is to use it.
    pub const MAX_TEXTS: usize = 1_000;

    /// An empty index for windows of `degree` words, of which at least one of every `winnow` is kept. Every run of `winnow + degree - 1`
    /// words is found. (`winnow` 1 keeps all; values outside 1 to 65,536 are clamped.)
    pub fn new(degree: Degree, winnow: usize) -> Self {
        let winnow = winnow.clamp(1, MAX_WINNOW);
        Self { degree, winnow, texts: 0, young: Vec::new(), parts: Vec::new() }
    }

    /// Words per window.
    pub fn degree(&self) -> Degree {
        self.degree
    }

    /// The number of words in a row that are certain to be found: w + k - 1.
    pub fn run(&self) -> usize {
        self.winnow + self.degree.get() - 1
    }

    /// The number of texts that were added, those with a repeated number counted each time.
    pub fn len(&self) -> usize {
        self.texts
    }

    /// Whether no text was added.
    pub fn is_empty(&self) -> bool {
        self.texts == 0
    }

    /// The number of kept windows. A window that was added twice under one number counts twice until it is merged.
    pub fn windows(&self) -> usize {
        self.young.iter().map(Vec::len).sum::<usize>()
            + self.parts.iter().map(|part| part.entries.len()).sum::<usize>()
    }

    /// Number of bytes of memory in use.
    pub fn bytes(&self) -> usize {
        let young: usize = self.young.iter().map(|run| run.capacity() * size_of::<Posting>()).sum();
        young + self.parts.iter().map(Part::bytes).sum::<usize>()
    }

    /// Adds a text under a number. Texts with the same number count as one.
    ///
    /// Linear in the words of the text, for which it takes 8 bytes each during the call. Now and then parts are merged, which takes some
    /// milliseconds for a million windows.
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

    /// Merges all parts that can be merged. Queries are faster until more is added.
    pub fn compact(&mut self) {
        if self.young.is_empty() && self.parts.len() < 2 {
            return;
        }
        self.settle(usize::MAX);
    }

    /// Makes one part of the young runs and of all parts that are not `factor` times as long as everything after them.
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

    /// The texts that have at least `min_shared` windows of `text` (0 counts as 1). Windows that occur in more than
    /// [`MAX_TEXTS`](Self::MAX_TEXTS) texts, such as those of a menu, are left out.
    ///
    /// The windows at the end of a menu are kept in some texts only, because the words after it differ; so texts with the same menu may
    /// share one or two windows. A `min_shared` of 4 leaves such pairs out. With `min_shared` m, runs of m w + k - 1 words in which no
    /// window occurs twice are certain to be found. A text that was added finds itself.
    pub fn candidates(&self, text: &Document<'_>, min_shared: usize) -> Candidates {
        self.candidates_within(text, min_shared, Self::MAX_TEXTS)
    }

    /// As [`candidates`](Self::candidates), with windows that occur in at most `max_texts` texts; with [`usize::MAX`], all windows. It
    /// costs a look-up per window, and sorting at most `max_texts` numbers for each.
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
            // A text may have been added twice.
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
    /// An index for windows of five words that finds 16 words in a row.
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

/// The windows of a text, in the pieces between boilerplate.
struct TextWindows {
    hashes: Vec<u64>,
    /// The end of each piece.
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

    /// All distinct windows, ascending.
    fn distinct(mut self) -> Vec<u64> {
        self.hashes.sort_unstable();
        self.hashes.dedup();
        self.hashes
    }

    /// The windows that are kept, ascending.
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

/// The rank by which minima are chosen. It is not the hash itself, because the smallest hashes would all be in a few buckets of a part.
fn rank(hash: u64) -> u64 {
    hash.rotate_left(64 - HASH_BITS / 2)
}

/// Appends the hash of the lowest rank of every `width` hashes in a row; if there are fewer, of all.
fn minima(hashes: &[u64], width: usize, kept: &mut Vec<u64>) {
    // Positions whose rank is below that of all later ones.
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

/// Merges two sorted runs into one, without repetitions.
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

/// Sorted postings in packed form, found by the leading bits of their hashes.
#[derive(Clone)]
struct Part {
    /// The number of leading bits of a hash that select its bucket; at least those that are not in the tag.
    bits: u32,
    /// The start of each bucket, followed by the end of the last one.
    starts: Vec<u32>,
    /// The low bits of the hash, and the number of the text.
    entries: Vec<u64>,
}

impl Part {
    /// A part of all postings of other parts and runs, `size` in total. All inputs are read in ascending order, so the buckets are written
    /// in ascending order; each bucket is then sorted by itself.
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
        // Postings that exist already.
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
