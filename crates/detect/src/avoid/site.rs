//! The model of one site: what its URLs have in common, and which of their slots change the content.

use std::sync::OnceLock;

use hashbrown::HashMap;
use smallvec::SmallVec;
use url::Url;

use super::chrome::{Chrome, Sample};
use super::content::{ContentId, Contents, Sketch};
use super::kinds::{Kind, Kinds};
use super::page::PageText;
use super::rows::{Belief, Row, RowKeys, Rows};
use super::shape::{Mix, RawSlot, Shape, Slot, normal_form, raw_slots, shape};

/// Contents that one key remembers, the newest ones.
const CONTENTS_OF_KEY: usize = 32;
/// Signatures, and contents of each, that pages with the same free values remember.
const SIGNATURES_OF_BAG: usize = 8;
const CONTENTS_OF_SIGNATURE: usize = 8;
/// Longer variants that a URL remembers.
const LONGER_VARIANTS: usize = 8;
/// Slots that may be dropped; the others of a URL with more are always kept.
const MOST_DROPPABLE: usize = 12;
/// Pages that are kept for learning anew what the content of a page is.
const LOG: usize = 2_000;
/// First rebuild, and the growth of the log after which the next one comes.
const FIRST_REBUILD: usize = 16;
const LEAST_GROWTH: usize = 40;
const GROWTH: f64 = 0.25;
/// Links that led to a URL, as far as they are remembered.
const LINKS: usize = 2;

/// How much evidence a row needs of its own.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Own observations of a row before it decides. Default: 10.
    pub min_evidence: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { min_evidence: 10.0 }
    }
}

/// A link that led to a URL: the page on which it stood, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkContext {
    /// Number of the page, as [`Site::learn`] gave it.
    pub page: u32,
    /// Hash of the tag path of the link.
    pub position: u64,
}

/// What ties a URL to pages that were fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinship {
    /// Some slots have other values.
    Changed,
    /// A page without some of the slots was fetched.
    Removed,
    /// A page with more slots was fetched.
    Added,
    /// A page of another form with the same values was fetched.
    Moved,
    /// A page that is the same but for parameters that do not matter.
    Canonical,
    /// The page that links to it.
    Link,
}

/// What is believed of a URL.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// That its content is known.
    pub probability: f64,
    /// The hypothesis that says so.
    pub kinship: Option<Kinship>,
    /// The row that decides.
    pub row: Row,
    pub set: u16,
    own_key: u64,
    /// Whether a page on the way may settle it.
    pub hold: bool,
}

#[derive(Clone, Debug)]
struct Hypothesis {
    kinship: Kinship,
    set: u16,
    keys: RowKeys,
    contents: SmallVec<[ContentId; 4]>,
    /// The one parameter that it is about.
    parameter: Option<Slot>,
}

#[derive(Clone, Debug)]
struct LoggedPage {
    raw: Vec<RawSlot>,
    text: PageText,
    links: SmallVec<[LinkContext; LINKS]>,
    number: u32,
}

type Ids = SmallVec<[ContentId; 2]>;

/// What was fetched, by what it has in common with other URLs.
#[derive(Clone, Debug, Default)]
struct Stores {
    changed: HashMap<u64, Ids>,
    exact: HashMap<u64, ContentId>,
    longer: HashMap<u64, SmallVec<[(RowKeys, ContentId, Option<Slot>); 1]>>,
    bags: HashMap<u64, SmallVec<[(u64, u64, Ids); 1]>>,
    canonical: HashMap<u64, Ids>,
}

/// A URL as the model sees it.
#[derive(Clone, Debug)]
struct Target {
    shape: Shape,
    kinds: SmallVec<[Kind; 8]>,
    signature: u64,
    label: String,
}

/// The model of one site.
#[derive(Clone, Debug, Default)]
pub struct Site {
    options: Options,
    kinds: Kinds,
    chrome: Chrome,
    contents: Contents,
    rows: Rows,
    stores: Stores,
    log: Vec<LoggedPage>,
    /// Discovered URLs, for counting again when values are split otherwise.
    discovered: Vec<Vec<RawSlot>>,
    content_of: Vec<Option<ContentId>>,
    flying: HashMap<u64, Target>,
    /// URLs that were skipped by a row since it was last confirmed, and those whose row was contradicted then.
    skipped: HashMap<u64, Vec<u64>>,
    reopened: hashbrown::HashSet<u64>,
    next_rebuild: usize,
}

/// Subsets of `n` slots by growing size: all of up to 5, else those of size 1, 2, n-2, n-1 and n.
fn drop_sets(n: usize) -> &'static [u16] {
    static SETS: OnceLock<Vec<Vec<u16>>> = OnceLock::new();
    let sets = SETS.get_or_init(|| {
        (0..=MOST_DROPPABLE)
            .map(|n| {
                let mut sets: Vec<u16> = (1..1u32 << n)
                    .map(|set| set as u16)
                    .filter(|set| {
                        let size = set.count_ones() as usize;
                        n <= 5 || size <= 2 || size + 2 >= n
                    })
                    .collect();
                sets.sort_by_key(|set| (set.count_ones(), *set));
                sets
            })
            .collect()
    });
    &sets[n.min(MOST_DROPPABLE)]
}

impl Site {
    /// An empty model.
    pub fn new(options: Options) -> Self {
        Self { options, next_rebuild: FIRST_REBUILD, ..Self::default() }
    }

    /// A URL was found that was not known before.
    pub fn discover(&mut self, url: &Url) {
        let raw = raw_slots(url);
        self.kinds.look(&raw);
        self.kinds.count(&shape(&raw, &self.kinds.splits));
        if self.discovered.len() < 4 * LOG {
            self.discovered.push(raw);
        }
    }

    /// Pages that were learnt.
    pub fn pages(&self) -> usize {
        self.content_of.len()
    }

    fn target(&self, raw: &[RawSlot]) -> Target {
        let shape = shape(raw, &self.kinds.splits);
        let kinds = self.kinds.kinds_of(&shape);
        let mut signature = Mix::new(10).with(shape.template);
        for (slot, kind) in shape.slots.iter().zip(&kinds) {
            if *kind != Kind::Free {
                signature = signature.with(u64::from(slot.name.0)).with(slot.value);
            }
        }
        Target { shape, kinds, signature: signature.0, label: raw.iter().map(|r| format!("{}={}", r.label, r.value.chars().take(12).collect::<String>())).collect::<Vec<_>>().join(";") }
    }

    /// What is believed of a URL to which these links led.
    pub fn judge(&self, url: &Url, links: &[LinkContext]) -> Verdict {
        let target = self.target(&raw_slots(url));
        let mut verdict =
            Verdict { probability: 0.0, kinship: None, row: Row::default(), set: 0, own_key: 0, hold: false };
        for hypothesis in self.hypotheses(&target, links) {
            let Belief { probability, own, .. } = self.rows.believe(&hypothesis.keys, self.options.min_evidence);
            if probability > verdict.probability {
                verdict.probability = probability;
                verdict.kinship = Some(hypothesis.kinship);
                verdict.row = own;
                verdict.own_key = hypothesis.keys.own;
                verdict.set = hypothesis.set;
            }
        }
        let own_canonical = self.canonical(&target).0;
        verdict.hold = self.flying.values().any(|other| {
            let (canonical, keys) = self.canonical(other);
            let by_canonical = (canonical == own_canonical).then_some(keys);
            kin(&target, other).into_iter().chain(by_canonical).any(|keys| {
                let belief = self.rows.believe(&keys, self.options.min_evidence);
                belief.own.total() >= 1.0
                    && belief.probability > 0.5
                    && belief.probability > verdict.probability
            })
        });
        verdict
    }

    /// A URL is skipped for now, because of this verdict.
    pub fn skip(&mut self, url: &Url, verdict: &Verdict) {
        let target = self.target(&raw_slots(url));
        let key = normal_form(target.shape.slots.iter());
        self.skipped.entry(verdict.own_key).or_default().push(key);
    }

    /// Whether the row by which a URL was skipped was contradicted by the next page that tested it.
    pub fn is_reopened(&self, url: &Url) -> bool {
        !self.reopened.is_empty() && {
            let target = self.target(&raw_slots(url));
            self.reopened.contains(&normal_form(target.shape.slots.iter()))
        }
    }

    /// A request for the URL is on its way, or no longer.
    pub fn flies(&mut self, url: &Url, starts: bool) {
        let target = self.target(&raw_slots(url));
        let key = normal_form(target.shape.slots.iter());
        if starts {
            self.flying.insert(key, target);
        } else {
            self.flying.remove(&key);
        }
    }

    /// Learns from a page that was fetched; the answer is its number.
    pub fn learn(&mut self, url: &Url, text: PageText, links: &[LinkContext]) -> u32 {
        let number = self.content_of.len() as u32;
        let raw = raw_slots(url);
        let target = self.target(&raw);
        let content = Sketch::of(&self.chrome.content(&text)).map(|sketch| self.contents.id(sketch));
        self.content_of.push(content);
        self.observe(&target, links, content, true);
        if self.log.len() < LOG {
            let links = links.iter().copied().take(LINKS).collect();
            self.log.push(LoggedPage { raw, text, links, number });
            if self.log.len() >= self.next_rebuild {
                self.rebuild();
                let growth = (self.log.len() as f64 * GROWTH) as usize;
                self.next_rebuild = self.log.len() + growth.max(LEAST_GROWTH);
            }
        }
        number
    }

    fn observe(&mut self, target: &Target, links: &[LinkContext], content: Option<ContentId>, is_live: bool) {
        let Some(content) = content else { return };
        for hypothesis in self.hypotheses(target, links) {
            if std::env::var("DEBUGO").is_ok() && !hypothesis.contents.contains(&content) {
                let sims: Vec<_> = hypothesis.contents.iter().map(|id| (self.contents.similarity(*id, content), self.contents.size(*id), self.contents.size(content))).collect();
                println!("NODUP {:?} set{:b} {} pages {} {:?} {sims:?} row {:x}", hypothesis.kinship, hypothesis.set, self.content_of.len(), self.log.len(), target.label, hypothesis.keys.own);
            }
            let is_dup = hypothesis.contents.contains(&content);
            self.rows.observe(&hypothesis.keys, is_dup);
            if let Some(slot) = hypothesis.parameter {
                let (parameter, value) = parameter_rows(&slot);
                self.rows.observe_one(parameter, is_dup);
                if hypothesis.kinship != Kinship::Changed {
                    self.rows.observe_one(value, is_dup);
                }
            }
            if is_live && let Some(skipped) = self.skipped.remove(&hypothesis.keys.own) && !is_dup {
                self.reopened.extend(skipped);
            }
        }
        self.store(target, content);
    }

    /// Everything that ties the URL to pages that were fetched, or that are on their way.
    fn hypotheses(
        &self,
        target: &Target,
        links: &[LinkContext],
    ) -> Vec<Hypothesis> {
        let mut found = Vec::new();
        let mut matched: SmallVec<[u16; 8]> = SmallVec::new();
        let droppable = droppable(target);
        for (set, key) in changed_keys(target) {
            if matched.iter().any(|smaller| smaller & set == *smaller) {
                continue;
            }
            let stored = self.stores.changed.get(&key);
            if let Some(stored) = stored {
                matched.push(set);
                let contents = stored.iter().copied().collect();
                let dropped = |index: usize| droppable.iter().position(|d| *d == index).is_some_and(|at| set & (1 << at) != 0);
                let keys = row_keys(target, 20, dropped, |index| target.kinds[index].is_enum());
                let parameter = (set.count_ones() == 1)
                    .then(|| target.shape.slots[droppable[set.trailing_zeros() as usize]])
                    .filter(|slot| slot.name.is_parameter());
                found.push(Hypothesis { kinship: Kinship::Changed, set, keys, contents, parameter });
            }
        }
        matched.clear();
        for set in &removal_sets(&target.shape) {
            if matched.iter().any(|smaller| smaller & set == *smaller) {
                continue;
            }
            let kept = target.shape.slots.iter().enumerate().filter(|(index, _)| set & (1 << index) == 0);
            if let Some(content) = self.stores.exact.get(&normal_form(kept.map(|(_, slot)| slot))) {
                matched.push(*set);
                let keys = removed_keys(target, *set);
                let parameter = (set.count_ones() == 1)
                    .then(|| target.shape.slots[set.trailing_zeros() as usize])
                    .filter(|slot| slot.name.is_parameter());
                found.push(Hypothesis { kinship: Kinship::Removed, set: *set, keys, contents: [*content].into_iter().collect(), parameter });
            }
        }
        let own = normal_form(target.shape.slots.iter());
        for (keys, content, parameter) in self.stores.longer.get(&own).into_iter().flatten() {
            found.push(Hypothesis {
                kinship: Kinship::Added, set: 0,
                keys: keys.clone(),
                contents: [*content].into_iter().collect(),
                parameter: *parameter,
            });
        }
        if let Some(bag) = bag_key(target) {
            for (signature, template, contents) in self.stores.bags.get(&bag).into_iter().flatten() {
                if *signature != target.signature {
                    let keys = RowKeys {
                        template: Mix::new(40).with(target.shape.template).with(*template).0,
                        own: Mix::new(41).with(target.signature).with(*signature).0,
                        ..RowKeys::default()
                    };
                    let contents = contents.iter().copied().collect();
                    found.push(Hypothesis { kinship: Kinship::Moved, set: 0, keys, contents, parameter: None });
                }
            }
        }
        let (canonical, keys) = self.canonical(target);
        if let Some(contents) = self.stores.canonical.get(&canonical) {
            let contents = contents.iter().copied().collect();
            found.push(Hypothesis { kinship: Kinship::Canonical, set: 0, keys, contents, parameter: None });
        }
        for link in links {
            if let Some(Some(content)) = self.content_of.get(link.page as usize) {
                let keys = RowKeys {
                    template: Mix::new(50).with(target.shape.template).with(link.position).0,
                    own: Mix::new(51).with(target.signature).with(link.position).0,
                    ..RowKeys::default()
                };
                found.push(Hypothesis { kinship: Kinship::Link, set: 0, keys, contents: [*content].into_iter().collect(), parameter: None });
            }
        }
        found
    }

    /// The key of a URL without the parameters that do not matter, and the rows that say whether it decides.
    fn canonical(&self, target: &Target) -> (u64, RowKeys) {
        let mut dropped = Mix::new(60);
        let mut kept: SmallVec<[Slot; 8]> = SmallVec::new();
        for slot in &target.shape.slots {
            let (parameter, value) = parameter_rows(slot);
            if slot.name.is_parameter() && self.rows.is_idle(parameter, value) {
                dropped = dropped.with(u64::from(slot.name.0));
            } else {
                kept.push(*slot);
            }
        }
        let keys =
            RowKeys { template: dropped.0, own: dropped.with(target.shape.template).0, ..RowKeys::default() };
        (normal_form(kept.iter()), keys)
    }

    fn store(&mut self, target: &Target, content: ContentId) {
        let (canonical, _) = self.canonical(target);
        remember(self.stores.canonical.entry(canonical).or_default(), content, CONTENTS_OF_KEY);
        for (_, key) in changed_keys(target) {
            remember(self.stores.changed.entry(key).or_default(), content, CONTENTS_OF_KEY);
        }
        self.stores.exact.insert(normal_form(target.shape.slots.iter()), content);
        for set in &removal_sets(&target.shape) {
            let kept = target.shape.slots.iter().enumerate().filter(|(index, _)| set & (1 << index) == 0);
            let variants = self.stores.longer.entry(normal_form(kept.map(|(_, slot)| slot))).or_default();
            let keys = removed_keys(target, *set);
            if let Some(known) = variants.iter_mut().find(|(known, ..)| known.own == keys.own) {
                known.1 = content;
            } else if variants.len() < LONGER_VARIANTS {
                let parameter = (set.count_ones() == 1)
                    .then(|| target.shape.slots[set.trailing_zeros() as usize])
                    .filter(|slot| slot.name.is_parameter());
                variants.push((keys, content, parameter));
            }
        }
        if let Some(bag) = bag_key(target) {
            let bag = self.stores.bags.entry(bag).or_default();
            if let Some((_, _, contents)) = bag.iter_mut().find(|(other, ..)| *other == target.signature) {
                remember(contents, content, CONTENTS_OF_SIGNATURE);
            } else if bag.len() < SIGNATURES_OF_BAG {
                bag.push((target.signature, target.shape.template, [content].into_iter().collect()));
            }
        }
    }

    /// Learns anew from the log: what slots are, what chrome is, which contents there are, and what rows say.
    fn rebuild(&mut self) {
        if self.kinds.decide_splits() {
            for raw in &self.discovered {
                self.kinds.count(&shape(raw, &self.kinds.splits));
            }
        }
        self.kinds.decide();
        let targets: Vec<Target> = self.log.iter().map(|page| self.target(&page.raw)).collect();
        let samples: Vec<Sample<'_>> = self
            .log
            .iter()
            .zip(&targets)
            .map(|(page, target)| Sample {
                text: &page.text,
                signature: target.signature,
                label: page.raw.iter().map(|r| format!("{}={}", r.label, r.value.chars().take(12).collect::<String>())).collect::<Vec<_>>().join(";"),
                values: target
                    .shape
                    .slots
                    .iter()
                    .zip(&target.kinds)
                    .filter(|(_, kind)| match kind {
                        Kind::Const => false,
                        Kind::Enum(n) => usize::from(*n) >= idmin(),
                        Kind::Free => true,
                    })
                    .map(|(slot, _)| (slot.name.0, slot.value))
                    .collect(),
            })
            .collect();
        self.chrome = Chrome::learn(&samples);
        self.contents = Contents::default();
        self.rows.clear();
        self.stores = Stores::default();
        let log = std::mem::take(&mut self.log);
        for page in &log {
            let sketch = Sketch::of(&self.chrome.content(&page.text));
            self.content_of[page.number as usize] = sketch.map(|sketch| self.contents.id(sketch));
        }
        for (page, target) in log.iter().zip(&targets) {
            self.observe(target, &page.links, self.content_of[page.number as usize], false);
        }
        self.log = log;
    }

    /// The content of a page, if its text is long enough to tell.
    pub fn content(&self, page: u32) -> Option<u32> {
        self.content_of.get(page as usize).copied().flatten()
    }

    /// What is known of a parameter.
    pub fn parameter(&self, label: &str) -> Row {
        let slot = Slot { name: super::shape::Name::parameter(label), value: 0, is_part: false };
        self.rows.row(parameter_rows(&slot).0)
    }

    /// Sizes, for those who look into it.
    pub fn describe(&self) -> String {
        let (common, identity) = self.chrome.len();
        format!(
            "{} pages, {} contents, {} rows, {} keys, {common} common blocks, {identity} identity positions",
            self.content_of.len(),
            self.contents.len(),
            self.rows.len(),
            self.stores.changed.len(),
        )
    }
}

fn remember(ids: &mut Ids, content: ContentId, most: usize) {
    if !ids.contains(&content) {
        if ids.len() == most {
            ids.remove(0);
        }
        ids.push(content);
    }
}

/// Indexes of slots that may be dropped: those that are not the same everywhere.
fn droppable(target: &Target) -> SmallVec<[usize; 8]> {
    let of = target.kinds.iter().enumerate().filter(|(_, kind)| **kind != Kind::Const);
    of.map(|(index, _)| index).take(MOST_DROPPABLE).collect()
}

/// For each set of dropped slots, the key of all URLs that are equal outside of it.
fn changed_keys(target: &Target) -> impl Iterator<Item = (u16, u64)> {
    let droppable = droppable(target);
    drop_sets(droppable.len()).iter().map(move |set| {
        let mut key = Mix::new(11).with(target.shape.template).with(u64::from(*set));
        for (index, slot) in target.shape.slots.iter().enumerate() {
            let is_dropped = droppable.iter().position(|d| *d == index).is_some_and(|at| set & (1 << at) != 0);
            key = if is_dropped { key.with(u64::from(slot.name.0)) } else { key.with(slot.value) };
        }
        (*set, key.0)
    })
}

/// Sets of slots without which a URL may have been fetched: some parameters, or one segment.
fn removal_sets(shape: &Shape) -> SmallVec<[u16; 32]> {
    let parameters: SmallVec<[usize; 8]> =
        (0..shape.slots.len().min(16)).filter(|index| shape.slots[*index].name.is_parameter()).collect();
    let mut sets: SmallVec<[u16; 32]> = (0..shape.slots.len().min(16))
        .filter(|index| shape.slots[*index].name.is_segment())
        .map(|index| 1 << index)
        .collect();
    for set in drop_sets(parameters.len()) {
        let spread = parameters.iter().take(MOST_DROPPABLE).enumerate();
        sets.push(spread.filter(|(at, _)| set & (1 << at) != 0).map(|(_, index)| 1u16 << index).sum());
    }
    sets
}

/// What ties a URL to one that is on its way: the rows by which it would be judged if that one had landed.
fn kin(target: &Target, other: &Target) -> Option<RowKeys> {
    let slots = &target.shape.slots;
    let others = &other.shape.slots;
    if target.shape.template == other.shape.template {
        let differs = |index: usize| slots[index].value != others[index].value;
        if (0..slots.len()).any(|index| differs(index) && target.kinds[index] == Kind::Const) {
            return None;
        }
        return Some(row_keys(target, 20, differs, |index| target.kinds[index].is_enum()));
    }
    let (long, short) = if slots.len() > others.len() { (target, other) } else { (other, target) };
    let is_kept = |slot: &Slot| {
        short.shape.slots.iter().any(|other| other.name == slot.name && other.value == slot.value)
    };
    let kept = long.shape.slots.iter().filter(|slot| is_kept(slot)).count();
    if kept < short.shape.slots.len() {
        return None;
    }
    let set = long.shape.slots.iter().take(16).enumerate().filter(|(_, slot)| !is_kept(slot));
    Some(removed_keys(long, set.map(|(index, _)| 1u16 << index).sum()))
}

fn removed_keys(target: &Target, set: u16) -> RowKeys {
    row_keys(target, 30, |index| index < 16 && set & (1 << index) != 0, |_| true)
}

/// The rows of a hypothesis: what is dropped, and by which dropped slots the most specific rows are told apart.
fn row_keys(
    target: &Target,
    kind: u64,
    is_dropped: impl Fn(usize) -> bool,
    by_value: impl Fn(usize) -> bool,
) -> RowKeys {
    let mut template = Mix::new(kind).with(target.shape.template);
    for (index, slot) in target.shape.slots.iter().enumerate() {
        if is_dropped(index) {
            template = template.with(u64::from(slot.name.0));
        }
    }
    let choices: SmallVec<[usize; 8]> = (0..target.shape.slots.len())
        .filter(|index| !is_dropped(*index) && target.kinds[*index].is_enum())
        .collect();
    let mut own = Mix(template.0).with(1);
    let mut keys = RowKeys { template: template.0, ..RowKeys::default() };
    for index in &choices {
        let slot = target.shape.slots[*index];
        own = own.with(u64::from(slot.name.0)).with(slot.value);
        if choices.len() >= 2 {
            keys.choices.push(Mix(template.0).with(2).with(u64::from(slot.name.0)).with(slot.value).0);
        }
    }
    keys.own = own.0;
    for (index, slot) in target.shape.slots.iter().enumerate() {
        if is_dropped(index) && by_value(index) {
            keys.values.push(Mix(own.0).with(3).with(u64::from(slot.name.0)).with(slot.value).0);
        }
    }
    keys
}

/// Hash of the values of the free slots, in whatever slots they stand.
fn bag_key(target: &Target) -> Option<u64> {
    let mut values: SmallVec<[u64; 8]> = target
        .shape
        .slots
        .iter()
        .zip(&target.kinds)
        .filter(|(_, kind)| **kind == Kind::Free)
        .map(|(slot, _)| slot.value)
        .collect();
    if values.is_empty() {
        return None;
    }
    values.sort_unstable();
    Some(values.iter().fold(Mix::new(12), |hash, value| hash.with(*value)).0)
}

fn idmin() -> usize {
    static N: OnceLock<usize> = OnceLock::new();
    *N.get_or_init(|| std::env::var("IDMIN").map_or(8, |n| n.parse().unwrap()))
}

/// The rows of a parameter and of its value, over all templates.
fn parameter_rows(slot: &Slot) -> (u64, u64) {
    let parameter = Mix::new(70).with(u64::from(slot.name.0));
    (parameter.0, parameter.with(slot.value).0)
}
