//! The kind of a slot: its value is always the same, one of a few, or arbitrary.

use std::mem::discriminant;

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use xxhash_rust::xxh3::xxh3_64;

use super::order::Sort;
use super::shape::{Layout, Mix, Name, RawSlot, SEPARATORS, Shape, is_before_time, is_date, split_once};

/// The most values of an enumeration.
const MAX_VALUES: usize = 24;
/// The least number of URLs per value of an enumeration.
const MIN_URLS: usize = 4;
/// Values are split if at least this many distinct ones
const SPLIT_VALUES: u32 = 10;
/// and this share of them have the separator.
const SPLIT_SHARE: f64 = 0.6;
/// The most parameters whose values are examined for separators.
const MAX_PARAMETERS: usize = 4_096;
/// The most slots of templates that are counted.
const MAX_SLOTS: usize = 65_536;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Const,
    /// One of this many values.
    Enum(u8),
    Free,
}

impl Kind {
    pub(crate) fn is_enum(self) -> bool {
        matches!(self, Self::Enum(_))
    }
}

#[derive(Clone, Debug, Default)]
struct Values {
    /// The distinct values, up to one more than an enumeration may have.
    values: SmallVec<[u64; 2]>,
    urls: u32,
}

impl Values {
    fn kind(&self) -> Kind {
        match self.values.len() {
            0 | 1 => Kind::Const,
            n if n <= MAX_VALUES && self.urls as usize >= n * MIN_URLS => Kind::Enum(n as u8),
            _ => Kind::Free,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct SeparatorCounts {
    seen: HashSet<u64>,
    with: [u32; SEPARATORS.len()],
    /// Dates without a time of day.
    dates: u32,
}

impl SeparatorCounts {
    /// The separator that most values have, and how many. If dates have times of day, those without one count as well.
    fn most(&self) -> (u32, char) {
        let count = |(with, separator): (&u32, char)| {
            let dates = if *with > 0 && is_before_time(separator) { self.dates } else { 0 };
            (with + dates, separator)
        };
        let counts = self.with.iter().zip(SEPARATORS).map(count);
        counts.max_by_key(|(count, _)| *count).expect("there are some")
    }
}

/// Counts the values of discovered URLs. The kinds of slots change only when [`decide`](Self::decide) is called.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kinds {
    counts: HashMap<u64, Values>,
    kinds: HashMap<u64, Kind>,
    separated: HashMap<Name, SeparatorCounts>,
    pub(crate) layout: Layout,
    /// The distinct paths, by their first segment.
    paths: HashMap<u64, Paths>,
    /// The identifiers among the values, by hash, in the order of their discovery.
    ranks: HashMap<u64, u32>,
}

/// The most identifiers whose order is kept.
const MAX_RANKS: usize = 262_144;
/// The most distinct values of a parameter that are examined for a separator.
const MAX_LOOKED_AT: usize = 200;

fn key(template: u64, name: Name) -> u64 {
    Mix(template).with(u64::from(name.0)).0
}

impl Kinds {
    /// Counts a URL that was discovered for the first time.
    pub(crate) fn count(&mut self, shape: &Shape) {
        for slot in &shape.slots {
            let key = key(shape.template, slot.name);
            if self.counts.len() >= MAX_SLOTS && !self.counts.contains_key(&key) {
                continue;
            }
            let counted = self.counts.entry(key).or_default();
            counted.urls = counted.urls.saturating_add(1);
            if counted.values.len() <= MAX_VALUES && !counted.values.contains(&slot.value) {
                counted.values.push(slot.value);
            }
        }
    }

    /// Notes the order in which identifiers were discovered.
    pub(crate) fn rank(&mut self, shape: &Shape) {
        for slot in shape.slots.iter().filter(|slot| slot.place.sort == Sort::Identifier) {
            let next = self.ranks.len();
            if next < MAX_RANKS {
                self.ranks.entry(slot.value).or_insert(next as u32);
            }
        }
    }

    /// Looks up the places of identifiers; unknown ones come last.
    pub(crate) fn place(&self, shape: &mut Shape) {
        for slot in shape.slots.iter_mut().filter(|slot| slot.place.sort == Sort::Identifier) {
            let rank = self.ranks.get(&slot.value).copied().unwrap_or(self.ranks.len() as u32);
            slot.place.at = i64::from(rank);
        }
    }

    /// Examines the values of parameters for separators.
    pub(crate) fn find_separators(&mut self, raw: &[RawSlot]) {
        for slot in raw.iter().filter(|slot| !slot.name.is_segment()) {
            if self.separated.len() >= MAX_PARAMETERS && !self.separated.contains_key(&slot.name) {
                continue;
            }
            let separated = self.separated.entry(slot.name).or_default();
            if separated.seen.len() < MAX_LOOKED_AT && separated.seen.insert(xxh3_64(slot.value.as_bytes())) {
                for (count, separator) in separated.with.iter_mut().zip(SEPARATORS) {
                    *count += u32::from(split_once(&slot.value, separator).is_some());
                }
                separated.dates += u32::from(is_date(&slot.value));
            }
        }
    }

    /// Notes the path of a URL.
    pub(crate) fn add_path(&mut self, raw: &[RawSlot]) {
        let segments = raw.iter().filter(|slot| slot.name.is_segment());
        let path: Path = segments.map(|slot| xxh3_64(slot.value.as_bytes())).collect();
        if let Some(first) = path.first() {
            let whole = path.iter().fold(Mix::new(100), |hash, value| hash.with(*value)).0;
            self.paths.entry(*first).or_default().all.insert(whole, path);
        }
    }

    /// Forgets what only [`decide_layout`](Self::decide_layout) needs.
    pub(crate) fn forget_paths(&mut self) {
        self.paths = HashMap::new();
    }

    /// Decides again which values are split and where trees are. Returns whether anything changed; then all shapes must be computed again.
    pub(crate) fn decide_layout(&mut self) -> bool {
        let mut splits = HashMap::new();
        for (name, separated) in &self.separated {
            let seen = separated.seen.len() as u32;
            let (most, separator) = separated.most();
            if seen >= SPLIT_VALUES && f64::from(most) >= SPLIT_SHARE * f64::from(seen) {
                splits.insert(*name, separator);
            }
        }
        let trees = self.paths.iter_mut().filter_map(|(first, paths)| Some((*first, paths.above_tree()?)));
        let layout = Layout { splits, trees: trees.collect() };
        let is_new = layout != self.layout;
        if is_new {
            self.layout = layout;
            self.counts.clear();
        }
        is_new
    }

    /// Decides again the kinds of slots. Returns whether any slot has another kind now; how many values a choice has does not matter for that.
    pub(crate) fn decide(&mut self) -> bool {
        let kinds: HashMap<u64, Kind> =
            self.counts.iter().map(|(key, values)| (*key, values.kind())).collect();
        let before = |key| self.kinds.get(key).copied().unwrap_or(Kind::Free);
        let is_new = kinds.iter().any(|(key, kind)| discriminant(kind) != discriminant(&before(key)));
        self.kinds = kinds;
        is_new
    }

    pub(crate) fn kinds_of(&self, shape: &Shape) -> SmallVec<[Kind; 8]> {
        let kind = |slot: &super::shape::Slot| {
            let kind = self.kinds.get(&key(shape.template, slot.name)).copied().unwrap_or(Kind::Free);
            if slot.is_part && kind.is_enum() { Kind::Free } else { kind }
        };
        shape.slots.iter().map(kind).collect()
    }
}

/// With fewer distinct paths, no tree is recognised.
const MIN_PATHS: usize = 40;
/// The least number of different depths below the head of a tree.
const MIN_DEPTHS: usize = 3;
/// A tree is recognised if the number of distinct heads and tails is at most this share of the number of paths.
const EXPLAINED: f64 = 0.8;
/// The most segments of the head of a tree.
const MAX_ABOVE: usize = 8;

/// The hashes of the segments of a path.
type Path = SmallVec<[u64; 8]>;

/// The distinct paths with one first segment.
#[derive(Clone, Debug, Default)]
struct Paths {
    all: HashMap<u64, Path>,
    /// The number of segments before the tree, and the number of paths by which that was decided.
    above: Option<u8>,
    decided: usize,
}

impl Paths {
    /// Finds where the paths continue as a tree, as those of a file browser do (`/repository/blame/lib/io/file.c`): the number of segments
    /// before the tree.
    ///
    /// A tree occurs again under each action and each revision, so its paths are combinations of a few heads and tails. It is cut where the
    /// number of distinct heads and tails is least (the shortest description of all paths), if that is much less than the number of paths.
    fn above_tree(&mut self) -> Option<u8> {
        if std::mem::replace(&mut self.decided, self.all.len()) != self.all.len() {
            self.above = self.cut();
        }
        self.above
    }

    fn cut(&self) -> Option<u8> {
        let depths: HashSet<usize> = self.all.values().map(SmallVec::len).collect();
        if self.all.len() < MIN_PATHS || depths.len() < MIN_DEPTHS {
            return None;
        }
        let cuts = (1..=MAX_ABOVE).filter_map(|above| Some((parts(&self.all, above)?, above)));
        let (parts, above) = cuts.min()?;
        (parts as f64 <= EXPLAINED * self.all.len() as f64).then_some(above as u8)
    }
}

/// The number of distinct heads and tails of paths that are cut there; `None` if the part below is not a tree.
fn parts(paths: &HashMap<u64, Path>, above: usize) -> Option<usize> {
    let (mut heads, mut tails, mut depths) = (HashSet::new(), HashSet::new(), HashSet::new());
    let mut short = 0;
    for path in paths.values() {
        if path.len() <= above {
            short += 1;
            continue;
        }
        let (head, tail) = path.split_at(above);
        let hash = |part: &[u64]| part.iter().fold(Mix::new(101), |hash, value| hash.with(*value)).0;
        heads.insert(hash(head));
        tails.insert(hash(tail));
        depths.insert(tail.len());
    }
    // A few tails are views of what the head says (`/MESSAGE/`, `/MESSAGE/thread/`): choices, and no files.
    let is_tree = depths.len() >= MIN_DEPTHS && tails.len() > MAX_VALUES;
    is_tree.then_some(heads.len() + tails.len() + short)
}
