//! The model of one site: what its URLs have in common, and which of their slots change the content.

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_64;

use super::chrome::{Chrome, Sample};
use super::content::{ContentId, Contents, Sketch};
use super::kinds::{Kind, Kinds};
use super::overrides::PriorKnowledge;
use super::page::PageText;
use super::predictor::Tie;
use super::rows::{Row, RowKeys, Rows};
use super::shape::{Mix, Name, RawSlot, Slot, normal_form};
use super::target::{Target, has};

/// The most contents that one key remembers; the newest ones are kept.
const CONTENTS_OF_KEY: usize = 32;
/// The most signatures, and contents of each, that are remembered for pages with the same free values.
const SIGNATURES_OF_VALUES: usize = 8;
const CONTENTS_OF_SIGNATURE: usize = 8;
/// The most pages that are remembered for a URL which they name as their own.
const NAMED_BY: usize = 4;
/// The most longer variants that are remembered for a URL.
const LONGER_VARIANTS: usize = 8;
/// The most pages that are kept for relearning what the content of a page is.
pub(crate) const LOG: usize = 2_000;
/// The most bytes of their texts.
const LOG_BYTES: usize = 32 << 20;
/// The most discovered URLs that are kept for counting again.
const DISCOVERED: usize = 4 * LOG;
/// The size of the log at the first rebuild, and the growth after which the next one comes.
const FIRST_REBUILD: usize = 16;
const MIN_GROWTH: usize = 40;
const GROWTH: f64 = 0.25;
/// The most links to a URL that are remembered.
pub(crate) const LINKS: usize = 6;
/// The most skips of a row that are remembered until it is confirmed.
const SKIPS_OF_ROW: usize = 10_000;
/// An enumeration with at least this many values may be an identity (commits, chapters).
const IDENTITY_VALUES: u8 = 8;
/// A content that came unexpectedly this often within a number of pages is a wall: a log-in page, an error, a ban.
const WALL: u32 = 10;
const WALL_WINDOW: u32 = 20;

/// A link that led to a URL: its page and its position there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkContext {
    /// The number of the page.
    pub page: u32,
    /// The hash of the tag path of the link.
    pub position: u64,
}

/// The relation of a URL to pages that were fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kinship {
    /// A page that differs in the values of some slots was fetched.
    Changed,
    /// A page without some of the slots was fetched.
    Removed,
    /// A page with more slots was fetched.
    Added,
    /// A page with another template and the same values was fetched.
    Moved,
    /// A page was fetched that is the same except for parameters that were learnt not to matter.
    Canonical,
    /// The page that links to it was fetched.
    Link,
    /// A page that was fetched names it as its own address.
    Named,
    /// It differs from a fetched page only in slots that do not matter by the user's ruling.
    Pinned,
}

/// The prediction for a URL.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prediction {
    /// The probability that its content is known.
    pub(crate) probability: f64,
    pub(crate) kinship: Option<Kinship>,
    /// The slots that the hypothesis considers irrelevant.
    pub(crate) dropped: SmallVec<[Name; 4]>,
    /// The row that decides.
    pub(crate) row: Row,
    pub(crate) key: u64,
    /// The number of a page that may have the same content.
    pub(crate) page: Option<u32>,
    /// Whether a page in flight may decide it.
    pub(crate) hold: bool,
}

#[derive(Clone, Debug)]
struct Hypothesis {
    kinship: Kinship,
    dropped: SmallVec<[Name; 4]>,
    rows: RowKeys,
    contents: Ids,
    /// The parameter, if the hypothesis is about a single one.
    parameter: Option<Slot>,
}

type Ids = SmallVec<[ContentId; 2]>;

/// A set of dropped slots, with the rows that say whether they matter. There are few for all pages of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct DroppedSlots {
    template: u64,
    own: u64,
    /// The name of the slot; 0, which no parameter has, if it is not a single parameter.
    name: Name,
}

impl DroppedSlots {
    fn of(target: &Target, set: u16) -> Self {
        let rows = target.removed_rows(set);
        let name = target.parameter(set).map_or(Name(0), |slot| slot.name);
        Self { template: rows.template, own: rows.own, name }
    }

    /// The slot with this value, if it is a single parameter.
    fn parameter(&self, value: u64) -> Option<Slot> {
        let Self { name, .. } = *self;
        name.is_parameter().then_some(Slot {
            name,
            value,
            is_part: false,
            prior: PriorKnowledge::None,
            base: name,
        })
    }

    fn rows(&self, value: u64) -> RowKeys {
        let mut rows = RowKeys { template: self.template, own: self.own, ..RowKeys::default() };
        rows.values.extend(self.parameter(value).map(|slot| Target::value_row(self.own, &slot)));
        rows
    }
}

/// A page with more slots than the URL under which it is stored. There are several entries for each page.
#[derive(Clone, Copy, Debug)]
struct LongerVariant {
    /// The value of the slot, if a single parameter is dropped.
    value: u64,
    /// The number of the [`DroppedSlots`].
    dropping: u32,
    content: ContentId,
}

/// Contents by key; most keys have only one.
#[derive(Clone, Debug, Default)]
struct ContentIndex {
    /// A content, or the number of a list of contents.
    by_key: HashMap<u64, u32>,
    lists: Vec<Ids>,
}

/// The bit that marks the number of a list; contents have smaller numbers.
const LIST: u32 = 1 << 31;

impl ContentIndex {
    fn get(&self, key: u64) -> &[ContentId] {
        match self.by_key.get(&key) {
            None => &[],
            Some(one) if one & LIST == 0 => std::slice::from_ref(one),
            Some(list) => &self.lists[(list & !LIST) as usize],
        }
    }

    fn remember(&mut self, key: u64, content: ContentId) {
        let entry = self.by_key.entry(key).or_insert(content);
        if *entry == content {
            return;
        }
        if *entry & LIST == 0 {
            self.lists.push(Ids::from_slice(&[*entry]));
            *entry = LIST | (self.lists.len() as u32 - 1);
        }
        remember(&mut self.lists[(*entry & !LIST) as usize], content, CONTENTS_OF_KEY);
    }
}

/// A page that names a URL as its own address.
#[derive(Clone, Copy, Debug)]
struct NamedUrl {
    template: u64,
    signature: u64,
    content: ContentId,
}

/// Pages of one signature with the same free values.
#[derive(Clone, Debug)]
struct SameValues {
    signature: u64,
    template: u64,
    contents: Ids,
}

/// The pages that were fetched, indexed by what they have in common with other URLs.
#[derive(Clone, Debug, Default)]
struct PageIndexes {
    changed: ContentIndex,
    exact: HashMap<u64, ContentId>,
    longer: HashMap<u64, SmallVec<[LongerVariant; 1]>>,
    droppings: Vec<DroppedSlots>,
    number_of_dropping: HashMap<DroppedSlots, u32>,
    by_free_values: HashMap<u64, SmallVec<[SameValues; 1]>>,
    canonical: ContentIndex,
    named: HashMap<u64, SmallVec<[NamedUrl; 1]>>,
}

impl PageIndexes {
    fn number_of(&mut self, dropping: DroppedSlots) -> u32 {
        *self.number_of_dropping.entry(dropping).or_insert_with(|| {
            self.droppings.push(dropping);
            self.droppings.len() as u32 - 1
        })
    }
}

#[derive(Clone, Debug)]
struct LoggedPage {
    raw: Vec<RawSlot>,
    text: PageText,
    links: SmallVec<[LinkContext; LINKS]>,
    number: u32,
    /// The URLs that the page names as its own address.
    names: Vec<Vec<RawSlot>>,
    /// URLs that were later found to lead to a page of the log.
    aliases: Vec<Alias>,
}

/// A URL that led to a page.
#[derive(Clone, Debug)]
struct Alias {
    raw: Vec<RawSlot>,
    page: Vec<RawSlot>,
    links: SmallVec<[LinkContext; LINKS]>,
}

/// A URL without the parameters that were learnt not to matter.
struct Canonical {
    key: u64,
    /// The rows that say whether equality of this form decides.
    rows: RowKeys,
    idle: SmallVec<[Name; 4]>,
}

/// A content that came when another one was expected.
#[derive(Clone, Copy, Debug, Default)]
struct UnexpectedContent {
    content: ContentId,
    count: u32,
    last: u32,
}

/// The model of a site; see the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Site {
    min_evidence: f64,
    has_pins: bool,
    kinds: Kinds,
    chrome: Chrome,
    contents: Contents,
    rows: Rows,
    stores: PageIndexes,
    log: Vec<LoggedPage>,
    /// Bytes of the texts in the log, and of the discovered URLs.
    log_bytes: usize,
    /// Whether relearning has ended; then there is no log.
    is_frozen: bool,
    discovered: Vec<Vec<RawSlot>>,
    content_of: Vec<Option<ContentId>>,
    /// By the number of a page, the hash of its signature.
    signature_of: Vec<u32>,
    in_flight: HashMap<u64, Target>,
    /// The URLs that were skipped by a row since it was last confirmed.
    skipped: HashMap<u64, Vec<u64>>,
    /// The URLs that were skipped by a row which the next page contradicted.
    reopened: HashSet<u64>,
    unexpected: UnexpectedContent,
    walls: HashSet<ContentId>,
    next_rebuild: usize,
    /// By the URL without pinned slots, the first page and the hash of its URL; empty if nothing is pinned.
    without_pinned: HashMap<u64, (u32, u64)>,
}

impl Site {
    /// An empty model. `has_pins` says whether any slot is pinned.
    pub(crate) fn new(min_evidence: f64, has_pins: bool) -> Self {
        Self { min_evidence, has_pins, next_rebuild: FIRST_REBUILD, ..Self::default() }
    }

    /// Records a URL that was found for the first time.
    pub(crate) fn discover(&mut self, raw: Vec<RawSlot>) {
        if !self.is_frozen && self.discovered.len() < DISCOVERED {
            self.kinds.find_separators(&raw);
            self.kinds.count(&Target::of(&raw, &self.kinds).shape);
            self.log_bytes += raw.iter().map(RawSlot::bytes).sum::<usize>();
            self.discovered.push(raw);
        }
    }

    /// The number of pages that were learnt.
    pub(crate) fn pages(&self) -> u32 {
        self.content_of.len() as u32
    }

    /// The prediction for a URL to which these links led.
    pub(crate) fn predict(&self, raw: &[RawSlot], links: &[LinkContext]) -> Prediction {
        let target = Target::of(raw, &self.kinds);
        let mut best = Prediction::default();
        if let Some((page, same)) = self.without_pinned.get(&target.key())
            && *same != whole_key(raw)
        {
            let dropped = raw
                .iter()
                .filter(|slot| slot.prior == PriorKnowledge::Pinned)
                .map(|slot| slot.name)
                .collect();
            let (kinship, page) = (Some(Kinship::Pinned), Some(*page));
            return Prediction { probability: 1.0, kinship, dropped, page, ..best };
        }
        if self.has_pins && self.in_flight.contains_key(&target.key()) {
            return Prediction { hold: true, ..best };
        }
        for hypothesis in self.hypotheses(&target, links) {
            let (probability, row) = self.rows.believe(&hypothesis.rows, self.min_evidence);
            if probability > best.probability {
                best = Prediction {
                    probability,
                    kinship: Some(hypothesis.kinship),
                    dropped: hypothesis.dropped,
                    row,
                    key: hypothesis.rows.own,
                    page: hypothesis.contents.first().map(|content| self.contents.leader(*content)),
                    hold: false,
                };
            }
        }
        if !self.in_flight.is_empty() {
            let (own, canonical) = (target.key(), self.canonical(&target).key);
            best.hold = self.in_flight.iter().filter(|(key, _)| **key != own).any(|(_, other)| {
                let others = self.canonical(other);
                let by_canonical = (others.key == canonical).then_some(others.rows);
                target.rows_if_fetched(other).into_iter().chain(by_canonical).any(|rows| {
                    let (probability, row) = self.rows.believe(&rows, self.min_evidence);
                    row.total() >= 1.0 && probability > 0.5 && probability > best.probability
                })
            });
        }
        best
    }

    /// All relations of the URL to pages that were learnt.
    pub(crate) fn ties(&self, raw: &[RawSlot], links: &[LinkContext]) -> Vec<Tie> {
        let target = Target::of(raw, &self.kinds);
        let hypotheses = self.hypotheses(&target, links).into_iter();
        let tie = |hypothesis: Hypothesis| {
            let (probability, evidence) = self.rows.believe(&hypothesis.rows, self.min_evidence);
            Tie {
                kinship: hypothesis.kinship,
                dropped: hypothesis.dropped,
                names: Vec::new(),
                probability,
                passes: false,
                evidence,
                pages: hypothesis.contents.iter().map(|content| self.contents.leader(*content)).collect(),
            }
        };
        hypotheses.map(tie).collect()
    }

    /// The content of the page with this number.
    pub(crate) fn content(&self, page: u32) -> Option<ContentId> {
        self.content_of.get(page as usize).copied().flatten()
    }

    /// Records that a URL was skipped for now by the row with this key.
    pub(crate) fn skip(&mut self, raw: &[RawSlot], row: u64) {
        let skipped = self.skipped.entry(row).or_default();
        if skipped.len() < SKIPS_OF_ROW {
            skipped.push(Target::of(raw, &self.kinds).key());
        }
    }

    /// Whether a URL was skipped by a row that the next page to test it contradicted.
    pub(crate) fn is_reopened(&self, raw: &[RawSlot]) -> bool {
        !self.reopened.is_empty() && self.reopened.contains(&Target::of(raw, &self.kinds).key())
    }

    pub(crate) fn has_requests_in_flight(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Records that a request for the URL is in flight.
    pub(crate) fn request_started(&mut self, raw: &[RawSlot]) {
        let target = Target::of(raw, &self.kinds);
        self.in_flight.insert(target.key(), target);
    }

    /// Records that a request for the URL is no longer in flight.
    pub(crate) fn request_finished(&mut self, raw: &[RawSlot]) {
        self.in_flight.remove(&Target::of(raw, &self.kinds).key());
    }

    /// The text of a page in the form that is kept once the log is full; `None` before that.
    pub(crate) fn sketch(&self, text: &PageText) -> Option<Option<Sketch>> {
        self.is_frozen.then(|| Sketch::of(&self.chrome.content(text)))
    }

    /// Learns from a page that was fetched; returns its number, and whether its content is new.
    pub(crate) fn learn(&mut self, raw: Vec<RawSlot>, text: PageText, links: &[LinkContext]) -> (u32, bool) {
        let (number, is_new) = self.learn_sketch(&raw, Sketch::of(&self.chrome.content(&text)), links);
        let links = links.iter().copied().take(LINKS).collect();
        self.log_bytes += text.bytes();
        self.log.push(LoggedPage { raw, text, links, number, names: Vec::new(), aliases: Vec::new() });
        if self.log.len() >= self.next_rebuild {
            self.rebuild();
            let growth = (self.log.len() as f64 * GROWTH) as usize;
            self.next_rebuild = self.log.len() + growth.max(MIN_GROWTH);
        }
        if self.log.len() >= LOG || self.log_bytes >= LOG_BYTES {
            self.freeze();
        }
        (number, is_new)
    }

    /// Records that a page which was learnt just now names this URL as its own.
    pub(crate) fn claim(&mut self, page: u32, page_raw: &[RawSlot], named: Vec<RawSlot>) {
        self.store_claim(page, page_raw, &named);
        if let Some(last) = self.log.last_mut().filter(|last| last.number == page) {
            self.log_bytes += named.iter().map(RawSlot::bytes).sum::<usize>();
            last.names.push(named);
        }
    }

    fn store_claim(&mut self, page: u32, page_raw: &[RawSlot], named: &[RawSlot]) {
        let Some(Some(content)) = self.content_of.get(page as usize).copied() else { return };
        let (target, named) = (Target::of(page_raw, &self.kinds), Target::of(named, &self.kinds));
        if self.walls.contains(&content) || target.key() == named.key() {
            return;
        }
        let by = self.stores.named.entry(named.key()).or_default();
        if by.len() < NAMED_BY {
            by.push(NamedUrl { template: target.shape.template, signature: target.signature, content });
        }
    }

    /// See [`Rows::idle_evidence`].
    pub(crate) fn idle_evidence(&self, name: Name) -> Option<Row> {
        self.rows.idle_evidence(parameter_row(name).0)
    }

    /// Whether a page with this URL was learnt and can be compared.
    pub(crate) fn knows(&self, raw: &[RawSlot]) -> bool {
        self.stores.exact.contains_key(&Target::of(raw, &self.kinds).key())
    }

    /// Records that a URL led to a page that was learnt, and so has the content of that page.
    pub(crate) fn alias(&mut self, raw: Vec<RawSlot>, page: Vec<RawSlot>, links: &[LinkContext]) {
        self.observe_alias(&raw, &page, links, true);
        if let Some(last) = self.log.last_mut() {
            self.log_bytes += raw.iter().chain(&page).map(RawSlot::bytes).sum::<usize>();
            last.aliases.push(Alias { raw, page, links: links.iter().copied().take(LINKS).collect() });
        }
    }

    fn observe_alias(&mut self, raw: &[RawSlot], page: &[RawSlot], links: &[LinkContext], is_live: bool) {
        let page = Target::of(page, &self.kinds).key();
        if let Some(content) = self.stores.exact.get(&page).copied() {
            let target = Target::of(raw, &self.kinds);
            self.observe(&target, links, content, is_live);
        }
    }

    /// Bytes that [`freeze`](Self::freeze) would free.
    pub(crate) fn log_bytes(&self) -> usize {
        self.log_bytes
    }

    /// Ends relearning and frees the memory for it.
    pub(crate) fn freeze(&mut self) {
        if !self.is_frozen && self.log.len() > FIRST_REBUILD {
            self.rebuild();
        }
        self.is_frozen = true;
        self.log = Vec::new();
        self.log_bytes = 0;
        self.discovered = Vec::new();
    }

    /// Learns from a page of which only the sketch is known.
    pub(crate) fn learn_sketch(
        &mut self,
        raw: &[RawSlot],
        sketch: Option<Sketch>,
        links: &[LinkContext],
    ) -> (u32, bool) {
        let number = self.pages();
        let contents = self.contents.len();
        let target = Target::of(raw, &self.kinds);
        let content = sketch.map(|sketch| self.contents.id(sketch, number));
        self.content_of.push(content);
        self.signature_of.push(target.signature as u32);
        if self.has_pins {
            self.without_pinned.entry(target.key()).or_insert((number, whole_key(raw)));
        }
        if let Some(content) = content {
            self.look_for_walls(&target, content);
            self.observe(&target, links, content, true);
        }
        (number, self.contents.len() > contents)
    }

    /// Detects walls: a content that comes again and again where rows with evidence say that each page has its own. Then the responses were
    /// not the pages.
    fn look_for_walls(&mut self, target: &Target, content: ContentId) {
        let number = self.pages();
        let is_expected = self.hypotheses(target, &[]).iter().any(|hypothesis| {
            let (probability, row) = self.rows.believe(&hypothesis.rows, self.min_evidence);
            probability > 0.2 || row.total() < self.min_evidence
        });
        let is_new = self.contents.leader(content) + 1 == number;
        if is_expected || is_new {
            return;
        }
        if self.unexpected.content != content || number > self.unexpected.last + WALL_WINDOW {
            self.unexpected = UnexpectedContent { content, count: 0, last: number };
        }
        self.unexpected.count += 1;
        self.unexpected.last = number;
        if self.unexpected.count == WALL && self.walls.insert(content) {
            tracing::warn!(
                pages = WALL,
                "pages that were different before have one text now: it is not learnt from"
            );
        }
    }

    fn observe(&mut self, target: &Target, links: &[LinkContext], content: ContentId, is_live: bool) {
        if self.walls.contains(&content) {
            return;
        }
        for hypothesis in self.hypotheses(target, links) {
            let is_dup = hypothesis.contents.contains(&content);
            self.rows.observe(&hypothesis.rows, is_dup);
            if let Some(slot) = hypothesis.parameter {
                let (parameter, value) = parameter_rows(&slot);
                self.rows.observe_one(parameter, is_dup);
                if hypothesis.kinship != Kinship::Changed {
                    self.rows.observe_one(value, is_dup);
                }
            }
            if is_live
                && let Some(skipped) = self.skipped.remove(&hypothesis.rows.own)
                && !is_dup
            {
                self.reopened.extend(skipped);
            }
        }
        self.store(target, content);
    }

    /// All relations of the URL to pages that were fetched. Only minimal sets of dropped slots count, so that a row describes exactly the
    /// situation in which it is used: that no finer relation is known.
    fn hypotheses(&self, target: &Target, links: &[LinkContext]) -> Vec<Hypothesis> {
        let mut found = Vec::new();
        let names = |set: u16| -> SmallVec<[Name; 4]> {
            let slots = target.shape.slots.iter().enumerate();
            slots.filter(|(index, _)| has(set, *index)).map(|(_, slot)| slot.name).collect()
        };
        let mut matched: SmallVec<[u16; 8]> = SmallVec::new();
        for (set, key) in target.changed_keys() {
            if matched.iter().any(|smaller| smaller & set == *smaller) {
                continue;
            }
            let contents = self.stores.changed.get(key);
            if !contents.is_empty() {
                matched.push(set);
                found.push(Hypothesis {
                    kinship: Kinship::Changed,
                    dropped: names(set),
                    rows: target.changed_rows(set),
                    contents: contents.into(),
                    parameter: target.parameter(set),
                });
            }
        }
        matched.clear();
        for set in target.removal_sets() {
            if matched.iter().any(|smaller| smaller & set == *smaller) {
                continue;
            }
            if let Some(content) = self.stores.exact.get(&target.key_without(set)) {
                matched.push(set);
                found.push(Hypothesis {
                    kinship: Kinship::Removed,
                    dropped: names(set),
                    rows: target.removed_rows(set),
                    contents: Ids::from_slice(&[*content]),
                    parameter: target.parameter(set),
                });
            }
        }
        for named in self.stores.named.get(&target.key()).into_iter().flatten() {
            let rows = RowKeys {
                template: Mix::new(80).with(target.shape.template).with(named.template).0,
                own: Mix::new(81).with(target.signature).with(named.signature).0,
                ..RowKeys::default()
            };
            let contents = Ids::from_slice(&[named.content]);
            let kinship = Kinship::Named;
            found.push(Hypothesis { kinship, dropped: SmallVec::new(), rows, contents, parameter: None });
        }
        for longer in self.stores.longer.get(&target.key()).into_iter().flatten() {
            let dropping = &self.stores.droppings[longer.dropping as usize];
            let parameter = dropping.parameter(longer.value);
            found.push(Hypothesis {
                kinship: Kinship::Added,
                dropped: parameter.iter().map(|slot| slot.name).collect(),
                rows: dropping.rows(longer.value),
                contents: Ids::from_slice(&[longer.content]),
                parameter,
            });
        }
        let plain = |kinship, rows, contents| Hypothesis {
            kinship,
            dropped: SmallVec::new(),
            rows,
            contents,
            parameter: None,
        };
        if let Some(same_values) = target.free_values_key() {
            for bagged in self.stores.by_free_values.get(&same_values).into_iter().flatten() {
                if bagged.signature != target.signature {
                    let rows = RowKeys {
                        template: Mix::new(40).with(target.shape.template).with(bagged.template).0,
                        own: Mix::new(41).with(target.signature).with(bagged.signature).0,
                        ..RowKeys::default()
                    };
                    found.push(plain(Kinship::Moved, rows, bagged.contents.clone()));
                }
            }
        }
        let canonical = self.canonical(target);
        let contents = self.stores.canonical.get(canonical.key);
        if !contents.is_empty() {
            found.push(Hypothesis {
                dropped: canonical.idle,
                ..plain(Kinship::Canonical, canonical.rows, contents.into())
            });
        }
        for link in links.iter().filter(|_| !target.has_forbidden()) {
            if let Some(Some(content)) = self.content_of.get(link.page as usize) {
                let rows = RowKeys {
                    template: Mix::new(50).with(target.shape.template).with(link.position).0,
                    own: Mix::new(51).with(target.signature).with(link.position).0,
                    finer: Mix::new(52)
                        .with(target.signature)
                        .with(link.position)
                        .with(u64::from(self.signature_of[link.page as usize]))
                        .0,
                    ..RowKeys::default()
                };
                found.push(plain(Kinship::Link, rows, Ids::from_slice(&[*content])));
            }
        }
        found
    }

    /// The URL without the parameters that were learnt not to matter.
    fn canonical(&self, target: &Target) -> Canonical {
        let mut idle: SmallVec<[Name; 4]> = SmallVec::new();
        let mut dropped = Mix::new(60);
        let mut kept: SmallVec<[Slot; 8]> = SmallVec::new();
        for slot in &target.shape.slots {
            let (parameter, value) = parameter_rows(slot);
            let is_tracking = slot.prior == PriorKnowledge::Tracking;
            let may_be_idle = slot.name.is_parameter() && slot.prior != PriorKnowledge::Forbidden;
            if may_be_idle && self.rows.is_idle(parameter, value, is_tracking) {
                dropped = dropped.with(u64::from(slot.name.0));
                idle.push(slot.name);
            } else {
                kept.push(*slot);
            }
        }
        let own = dropped.with(target.shape.template).0;
        let rows = RowKeys { template: dropped.0, own, ..RowKeys::default() };
        // The order of repeated parameters is ignored.
        kept.sort_by_key(|slot| (slot.base, slot.value));
        for slot in &mut kept {
            slot.name = slot.base;
        }
        Canonical { key: normal_form(kept.iter()), rows, idle }
    }

    fn store(&mut self, target: &Target, content: ContentId) {
        for (_, key) in target.changed_keys() {
            self.stores.changed.remember(key, content);
        }
        self.stores.exact.insert(target.key(), content);
        let canonical = self.canonical(target).key;
        self.stores.canonical.remember(canonical, content);
        let sets = target.removal_sets();
        // The last set contains all parameters.
        let all = sets.last().copied().unwrap_or_default();
        for set in sets.into_iter().filter(|set| set.count_ones() <= 2 || *set == all) {
            let dropping = self.stores.number_of(DroppedSlots::of(target, set));
            let value = target.parameter(set).map_or(0, |slot| slot.value);
            let longer = LongerVariant { value, dropping, content };
            let variants = self.stores.longer.entry(target.key_without(set)).or_default();
            if let Some(known) = variants.iter_mut().find(|known| known.dropping == dropping) {
                *known = longer;
            } else if variants.len() < LONGER_VARIANTS {
                variants.push(longer);
            }
        }
        if let Some(same_values) = target.free_values_key() {
            let same_values = self.stores.by_free_values.entry(same_values).or_default();
            if let Some(known) = same_values.iter_mut().find(|known| known.signature == target.signature) {
                remember(&mut known.contents, content, CONTENTS_OF_SIGNATURE);
            } else if same_values.len() < SIGNATURES_OF_VALUES {
                let contents = Ids::from_slice(&[content]);
                same_values.push(SameValues {
                    signature: target.signature,
                    template: target.shape.template,
                    contents,
                });
            }
        }
    }

    /// Relearns from the log: the kinds of slots, chrome, contents, and rows.
    fn rebuild(&mut self) {
        if self.kinds.decide_layout(&self.discovered) {
            for raw in &self.discovered {
                let shape = Target::of(raw, &self.kinds).shape;
                self.kinds.count(&shape);
            }
        }
        self.kinds.decide();
        let targets: Vec<Target> = self.log.iter().map(|page| Target::of(&page.raw, &self.kinds)).collect();
        let is_identity = |kind: Kind| match kind {
            Kind::Const => false,
            Kind::Enum(values) => values >= IDENTITY_VALUES,
            Kind::Free => true,
        };
        let samples: Vec<Sample<'_>> = self
            .log
            .iter()
            .zip(&targets)
            .map(|(page, target)| {
                let values = target.slots().filter(|(_, kind)| is_identity(*kind));
                let values = values.map(|(slot, _)| (slot.name.0, slot.value)).collect();
                Sample { text: &page.text, signature: target.signature, values }
            })
            .collect();
        self.chrome = Chrome::learn(&samples);
        self.contents = Contents::default();
        self.rows = Rows::default();
        self.stores = PageIndexes::default();
        self.walls.clear();
        self.unexpected = UnexpectedContent::default();
        let log = std::mem::take(&mut self.log);
        for (page, target) in log.iter().zip(&targets) {
            self.signature_of[page.number as usize] = target.signature as u32;
        }
        for page in &log {
            let sketch = Sketch::of(&self.chrome.content(&page.text));
            let content = sketch.map(|sketch| self.contents.id(sketch, page.number));
            self.content_of[page.number as usize] = content;
        }
        for (page, target) in log.iter().zip(&targets) {
            if let Some(content) = self.content_of[page.number as usize] {
                self.observe(target, &page.links, content, false);
            }
            for named in &page.names {
                self.store_claim(page.number, &page.raw, named);
            }
            for alias in &page.aliases {
                self.observe_alias(&alias.raw, &alias.page, &alias.links, false);
            }
        }
        self.log = log;
    }
}

/// The key of the URL with its pinned slots.
fn whole_key(raw: &[RawSlot]) -> u64 {
    raw.iter()
        .fold(Mix::new(90), |hash, slot| {
            hash.with(u64::from(slot.name.0)).with(xxh3_64(slot.value.as_bytes()))
        })
        .0
}

fn remember(ids: &mut Ids, content: ContentId, most: usize) {
    if !ids.contains(&content) {
        if ids.len() == most {
            ids.remove(0);
        }
        ids.push(content);
    }
}

/// The keys of the rows of a parameter and of its value, over all templates.
fn parameter_rows(slot: &Slot) -> (u64, u64) {
    let parameter = parameter_row(slot.name);
    (parameter.0, parameter.with(slot.value).0)
}

fn parameter_row(name: Name) -> Mix {
    Mix::new(70).with(u64::from(name.0))
}
