//! Forms of links: the URL of a link as a function of the URL of its page.
//!
//! The links of a page that was skipped are not known, but those of pages of its kind are: where `/article?id=7` links to `/notes?of=7`,
//! `/article?id=8` links to `/notes?of=8`. If no page that was learnt has such a link, the skipped page may be the only one that does.
//! Whether that is worth a download is tested form by form: each page that is fetched for a form lowers its worth, and each new content to
//! which such a link leads raises it.

use std::collections::VecDeque;

use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_64;

use super::page_sample::{PageSample, SampledPage, values_of};
use super::{whole_key, whole_key_of};
use crate::avoid::kinds::Kind;
use crate::avoid::shape::{Mix, Name, RawSlot};
use crate::avoid::target::Target;

/// The pages learnt last: those of which links may still be told.
const RECENT: usize = 64;
/// The most URLs of which it is remembered that they were found; about 16 bytes each.
const MAX_KNOWN: usize = 1_000_000;
/// The most URLs of which it is remembered that the crawl does not fetch them; about 16 bytes each.
const MAX_REFUSED: usize = 262_144;
/// The most forms; about 1 KB each.
const MAX_FORMS: usize = 4_096;
/// With so many forms, links that the crawl does not follow make no new ones.
const MAX_FORMS_OF_REFUSED: usize = 1_024;
/// The most forms that are remembered after one link; about 40 bytes each.
const MAX_SEEN_ONCE: usize = 65_536;
/// The most URLs of which it is remembered by which form they were found, until they are learnt.
const MAX_LEADS: usize = 100_000;
/// The most slots of a page from which values are copied.
const MAX_SLOTS: usize = 32;
/// A value is looked for in slots with other names, and within other values, if it has so many bytes: shorter ones are equal by chance.
const LEAST_BYTES: usize = 4;
/// What a test without new content leaves of the worth of a form, which begins with 1 or less, if new content was certain. The share is raised to the root of the
/// probability of new content: a copy that was certain leaves all, and one that was likely counts for less than a surprise.
const DECAY: f32 = 0.65;
/// A form of less worth is no reason to fetch a page: after six tests in a row that brought nothing new.
const LEAST_WORTH: f32 = 0.1;
/// So many tests of all forms are usual for each link that led to new content, of which one more is assumed. After twice as many a form begins with half of the
/// worth, and so on.
const USUAL_TESTS: f32 = 8.0;
/// A form begins with enough for three tests at least.
const LEAST_WORTH_AT_FIRST: f32 = 2.5 * LEAST_WORTH;
/// The worth at the beginning of a form of which the crawl followed no link so far: enough for one test.
const WORTH_OF_REFUSED: f32 = 1.5 * LEAST_WORTH;
/// The most outcomes of tests of a form that are remembered.
const MAX_TESTS: usize = 48;

/// The kinds of hashes; those of different kinds must not be equal.
const NAMES: u64 = 130;
const FORM: u64 = 131;

/// The indexes of slots of a page, and the hashes of the values that they must have.
type Conditions = SmallVec<[(u8, u64); 4]>;

/// The hashes of the values of the free slots of a page.
type FreeValues = SmallVec<[u32; 2]>;

/// A page learnt not long ago.
#[derive(Clone, Debug)]
struct RecentPage {
    number: u32,
    raw: Vec<RawSlot>,
    kinds: SmallVec<[Kind; 8]>,
    is_copy: bool,
}

/// The value of a slot of a link.
#[derive(Clone, Debug)]
enum Value {
    /// The same on all pages; its hash.
    Fixed(u64),
    /// The value of the slot of the page with this index, between two texts.
    Copied { from: u8, before: Box<str>, after: Box<str> },
}

/// What a link has of the URL of its page, without the slots of the link: most links are of a form that is known.
#[derive(Debug)]
struct LinkShape {
    conditions: Conditions,
    /// By slot of the link.
    values: SmallVec<[Value; 8]>,
}

#[derive(Clone, Debug)]
struct Form {
    /// The indexes and the hashes of the values that the URL of the page must have: those of constants and choices that are not copied.
    conditions: Conditions,
    /// The slots of one of the links; the values of some depend on the page.
    link: Vec<(RawSlot, Value)>,
    /// The slots of the page that had this link.
    page: Vec<RawSlot>,
    /// What the link has of its page, whatever the conditions.
    function: Mix,
    /// Whether the crawl followed no link of this form so far.
    is_refused: bool,
    /// The outcomes in their order: a test, or `None` if the link led to new content.
    outcomes: VecDeque<Option<Test>>,
}

/// A page that was fetched for a link of a form, or had such a link and was fetched anyway.
#[derive(Clone, Copy, Debug)]
struct Test {
    /// The rank of the page.
    rank: u64,
    /// How much it says against the form that the link led to nothing new, between 0 and 1.
    weight: f32,
}

/// A URL that was found by forms, or is expected by them.
#[derive(Clone, Debug, Default)]
struct Lead {
    forms: SmallVec<[u32; 2]>,
    /// The rank of the page.
    rank: u64,
    /// Whether the forms were charged already, because a page was fetched for it.
    is_charged: bool,
}

/// A link that a page is thought to have, to a URL that was not found yet.
#[derive(Clone, Debug)]
pub(super) struct ExpectedLink {
    form: u32,
    /// What a test of the form is worth.
    pub(super) worth: f32,
    key: u64,
    pub(super) raw: Vec<RawSlot>,
}

/// The forms of the links of a site.
#[derive(Clone, Debug, Default)]
pub(super) struct Forms {
    recent: VecDeque<RecentPage>,
    /// Pages that were learnt, by the names of their slots.
    sample: PageSample,
    /// The keys of all URLs that were found.
    known: HashSet<u64>,
    /// The keys of URLs that pages link to and the crawl does not fetch.
    refused: HashSet<u64>,
    forms: Vec<Form>,
    /// By their hashes.
    numbers: HashMap<u64, u32>,
    /// By the hash of what a link has of its page, the free values of the first page with such a link.
    seen_once: HashMap<u64, FreeValues>,
    /// By the hash of the names of the slots of a page.
    of_pages: HashMap<u64, Vec<u32>>,
    /// By the key of a URL.
    leads: HashMap<u64, Lead>,
    /// The sum of the weights of the tests of all forms, and the number of links that led to new content.
    tests: f32,
    rewards: f32,
}

impl Forms {
    /// Records a page that was learnt, and whether its content was known.
    pub(super) fn learn(&mut self, number: u32, raw: &[RawSlot], target: &Target, is_copy: bool) {
        let key = whole_key(raw);
        if self.known.len() < MAX_KNOWN {
            self.known.insert(key);
        }
        self.sample.add(names_of(raw), key, raw);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        let kinds = kinds_of(raw, target);
        self.recent.push_back(RecentPage { number, raw: raw.to_vec(), kinds, is_copy });
    }

    /// Finds the conditions of all forms anew, after the kinds of slots have changed. A slot that was free at first and is a choice now tells pages apart
    /// that had one form. The form is then that of pages like the one from which it was learnt, and its tests are forgotten.
    pub(super) fn relearn(&mut self, target: impl Fn(&[RawSlot]) -> Target) {
        self.numbers.clear();
        self.of_pages.clear();
        for (number, form) in (0..).zip(&mut self.forms) {
            let conditions = form.conditions_by(&kinds_of(&form.page, &target(&form.page)));
            if conditions != form.conditions {
                form.conditions = conditions;
                form.outcomes.clear();
            }
            // Of forms that are the same now, the first one stays.
            if let Entry::Vacant(vacant) = self.numbers.entry(hash_of(form.function, &form.conditions)) {
                vacant.insert(number);
                self.of_pages.entry(names_of(&form.page)).or_default().push(number);
            }
        }
    }

    /// Whether a URL with this key was found by forms, or is expected by them.
    pub(super) fn has_lead(&self, key: u64) -> bool {
        self.leads.contains_key(&key)
    }

    /// Records that a URL with this key was learnt, or led to a page that was. `expected` is the probability with which its content was thought to be known: a
    /// copy that was foreseen says little against the forms by which it was found.
    pub(super) fn came(&mut self, key: u64, is_new: bool, expected: f64) {
        let Some(lead) = self.leads.remove(&key) else { return };
        let weight = weight_of(expected);
        for form in lead.forms {
            let form = &mut self.forms[form as usize];
            if !lead.is_charged {
                form.charge(lead.rank, weight);
                self.tests += weight;
            } else if !is_new {
                form.weigh(lead.rank, weight);
            }
            if is_new {
                form.reward();
                self.rewards += 1.0;
            }
        }
    }

    /// Records that a URL with this key was skipped, because its content was thought to be known with this probability. If a page was fetched for the
    /// link to it, the page had the link, and that it would bring nothing new was foreseen.
    pub(super) fn skip(&mut self, key: u64, expected: f64) {
        let Some(lead) = self.leads.get(&key).filter(|lead| lead.is_charged) else { return };
        for form in &lead.forms {
            self.forms[*form as usize].weigh(lead.rank, weight_of(expected));
        }
    }

    /// Records that a page links to a URL that the crawl does not fetch; returns whether no page before it did. `target` tells the kinds of the slots of a URL.
    pub(super) fn refuse(
        &mut self,
        raw: &[RawSlot],
        page: u32,
        target: impl Fn(&[RawSlot]) -> Target,
    ) -> bool {
        let key = whole_key(raw);
        let is_first =
            self.refused.len() < MAX_REFUSED && !self.known.contains(&key) && self.refused.insert(key);
        // Most crawls leave other hosts alone, so links to them are not worth a form.
        let is_of_host = |page: &RecentPage| page.raw.first().map(host) == raw.first().map(host);
        if is_first
            && self.forms.len() < MAX_FORMS_OF_REFUSED
            && let Some(at) = self.recent_page(page).filter(|at| is_of_host(&self.recent[*at]))
        {
            self.form_of(at, raw, target);
        }
        is_first
    }

    /// Records that a URL was found, with the page that links to it. `rank` tells the rank of a page in a breadth-first crawl, and `target` the kinds of
    /// the slots of a URL. Only the first page counts: a page leads to what no other page led to before.
    pub(super) fn find(
        &mut self,
        raw: &[RawSlot],
        page: Option<u32>,
        rank: impl FnOnce(u32) -> u64,
        target: impl Fn(&[RawSlot]) -> Target,
    ) {
        let key = whole_key(raw);
        if self.known.len() >= MAX_KNOWN || !self.known.insert(key) {
            return;
        }
        self.refused.remove(&key);
        let Some(at) = page.and_then(|page| self.recent_page(page)) else { return };
        let Some(number) = self.form_of(at, raw, target) else { return };
        self.forms[number as usize].is_refused = false;
        // Pages with new content are fetched anyway: what copies lead to is the question.
        let page = &self.recent[at];
        if page.is_copy && self.leads.len() < MAX_LEADS {
            let lead = self.leads.entry(key).or_default();
            if lead.forms.is_empty() {
                lead.forms.push(number);
                lead.rank = rank(page.number);
            }
        }
    }

    /// The worth of a form without tests: less than 1 if links of other forms hardly ever led to new content.
    fn worth_at_first(&self) -> f32 {
        (USUAL_TESTS * (self.rewards + 1.0) / self.tests.max(1.0)).clamp(LEAST_WORTH_AT_FIRST, 1.0)
    }

    /// The index of a page among those learnt last.
    fn recent_page(&self, page: u32) -> Option<usize> {
        self.recent.iter().rposition(|recent| recent.number == page)
    }

    /// The number of the form of a link of the recent page with this index. It is `None` as long as one page alone has such a link.
    ///
    /// What one link has in common with its page may be chance, but not if another page has such a link, too. That says nothing of a value that the link has
    /// by itself if the two pages have a free value in common, because the value may belong to that one: all views of a commit link to its parent. A choice
    /// may be such a value all the same.
    fn form_of(&mut self, at: usize, raw: &[RawSlot], target: impl Fn(&[RawSlot]) -> Target) -> Option<u32> {
        let page = &self.recent[at];
        let shape = LinkShape::of(page, raw)?;
        let function = shape.function(&page.raw, raw);
        let hash = hash_of(function, &shape.conditions);
        if let Some(number) = self.numbers.get(&hash) {
            return Some(*number);
        }
        if self.seen_once.len() >= MAX_SEEN_ONCE {
            self.seen_once.clear();
        }
        let free = page.free_values();
        let first = match self.seen_once.entry(function.0) {
            Entry::Vacant(new) => {
                new.insert(free);
                return None;
            }
            Entry::Occupied(known) => known.into_mut(),
        };
        if self.forms.len() >= MAX_FORMS {
            return None;
        }
        if shape.has_free_value(&kinds_of(raw, &target(raw))) {
            if first.len() != free.len() {
                // The kinds of slots have changed since.
                *first = free;
                return None;
            }
            if first.iter().zip(&free).any(|(first, free)| first == free) {
                return None;
            }
        }
        let number = self.forms.len() as u32;
        self.of_pages.entry(names_of(&page.raw)).or_default().push(number);
        self.numbers.insert(hash, number);
        self.forms.push(shape.with_slots(&page.raw, raw, function));
        Some(number)
    }

    /// The links by forms of enough worth that the page with this URL and this rank is thought to have, to URLs that were not
    /// found yet.
    pub(super) fn expected(&self, raw: &[RawSlot], rank: u64) -> Vec<ExpectedLink> {
        let Some(forms) = self.of_pages.get(&names_of(raw)) else { return Vec::new() };
        let values = values_of(raw);
        let form = |number: &u32| &self.forms[*number as usize];
        let applying: SmallVec<[u32; 16]> =
            forms.iter().copied().filter(|number| form(number).applies(&values)).collect();
        // A crawl with a limit of depth or pages follows links of pages near its start that it does not follow on later ones. So forms of refused links are
        // tried, but only if no link of such pages was followed.
        let is_followed = applying.iter().any(|number| !form(number).is_refused);
        let expected = applying.iter().filter(|number| !(is_followed && form(number).is_refused));
        let expected = expected.filter_map(|number| {
            let form = form(number);
            let worth = form.worth(rank, self.worth_at_first());
            let key = (worth >= LEAST_WORTH).then(|| form.key(raw, &values))?;
            (!self.is_found(key)).then(|| ExpectedLink { form: *number, worth, key, raw: form.link_of(raw) })
        });
        expected.collect()
    }

    /// The share of the pages to which a form applies that have a link of it, by a sample of the pages that were learnt and one more that has it. Which page was the
    /// first to link there does not matter. Where pages often lack such a link, a page for which it was found nowhere probably lacks it, too.
    pub(super) fn share_with(&self, link: &ExpectedLink) -> f64 {
        let form = &self.forms[link.form as usize];
        let of_kind = self.sample.of(names_of(&form.page));
        let (mut pages, mut with_link) = (1, 1);
        for SampledPage { raw, values } in of_kind.filter(|page| form.applies(&page.values)) {
            pages += 1;
            with_link += i32::from(self.is_found(form.key(raw, values)));
        }
        f64::from(with_link) / f64::from(pages)
    }

    /// Whether the URL with this key was found, whether the crawl fetches it or not.
    fn is_found(&self, key: u64) -> bool {
        self.known.contains(&key) || self.refused.contains(&key)
    }

    /// Records that a page with this rank is fetched for these links. A page is one test of a form, however many such links it has.
    pub(super) fn test(&mut self, expected: &[ExpectedLink], rank: u64) {
        let mut tested: SmallVec<[u32; 8]> = SmallVec::new();
        for link in expected {
            if tested.contains(&link.form) || self.leads.len() >= MAX_LEADS {
                continue;
            }
            tested.push(link.form);
            self.forms[link.form as usize].charge(rank, 1.0);
            self.tests += 1.0;
            let lead = self.leads.entry(link.key).or_default();
            if !std::mem::replace(&mut lead.is_charged, true) {
                lead.forms.clear();
            }
            lead.forms.push(link.form);
            lead.rank = rank;
        }
    }
}

impl LinkShape {
    /// The shape of a link of a page. `None` if nothing in the link depends on the page.
    fn of(page: &RecentPage, raw: &[RawSlot]) -> Option<Self> {
        if page.raw.len() > MAX_SLOTS {
            return None;
        }
        let values: SmallVec<[Value; 8]> = raw.iter().map(|slot| page.source_of(slot)).collect();
        let copied = copied(values.iter());
        let depends = |index: usize| copied & (1 << index) != 0 && page.kinds[index] != Kind::Const;
        if !(0..page.raw.len()).any(depends) {
            return None;
        }
        Some(Self { conditions: conditions_of(&page.raw, copied, &page.kinds), values })
    }

    /// The hash of what the link has of its page, whatever the kind of the page; `page` and `link` are the slots of both URLs.
    fn function(&self, page: &[RawSlot], link: &[RawSlot]) -> Mix {
        let mut hash = Mix::new(FORM).with(names_of(page));
        for (slot, value) in link.iter().zip(&self.values) {
            hash = hash.with(u64::from(slot.name.0));
            hash = match value {
                Value::Fixed(value) => hash.with(1).with(*value),
                Value::Copied { from, before, after } => {
                    let around = [before, after].map(|text| xxh3_64(text.as_bytes()));
                    hash.with(2).with(u64::from(*from)).with(around[0]).with(around[1])
                }
            };
        }
        hash
    }

    /// Whether the link has a value that is neither from the page nor a choice; `kinds` are those of its slots.
    fn has_free_value(&self, kinds: &[Kind]) -> bool {
        let mut values = self.values.iter().zip(kinds);
        values.any(|(value, kind)| matches!(value, Value::Fixed(_)) && *kind == Kind::Free)
    }

    fn with_slots(self, page: &[RawSlot], link: &[RawSlot], function: Mix) -> Form {
        Form {
            conditions: self.conditions,
            link: link.iter().cloned().zip(self.values).collect(),
            page: page.to_vec(),
            function,
            is_refused: true,
            outcomes: VecDeque::new(),
        }
    }
}

impl Form {
    /// The conditions, if the slots of pages are of these kinds.
    fn conditions_by(&self, kinds: &[Kind]) -> Conditions {
        conditions_of(&self.page, copied(self.link.iter().map(|(_, value)| value)), kinds)
    }

    /// Lowers the worth by a test of a page with this rank.
    fn charge(&mut self, rank: u64, weight: f32) {
        self.add(Some(Test { rank, weight }));
    }

    /// Sets the weight of the last test of a page with this rank, after its outcome is known.
    fn weigh(&mut self, rank: u64, weight: f32) {
        let mut tests = self.outcomes.iter_mut().rev().flatten();
        if let Some(test) = tests.find(|test| test.rank == rank) {
            test.weight = weight;
        }
    }

    /// Raises the worth by a link that led to new content.
    fn reward(&mut self) {
        self.add(None);
    }

    fn add(&mut self, outcome: Option<Test>) {
        if self.outcomes.len() == MAX_TESTS {
            self.outcomes.pop_front();
        }
        self.outcomes.push_back(outcome);
    }

    /// What a test at a page with this rank is worth; `first` is what the first test of a form is worth. That a crawl ends at some distance, or with some pages, is a reason why links lead to nothing, so a
    /// test says nothing about pages that a breadth-first crawl fetches before.
    fn worth(&self, rank: u64, first: f32) -> f32 {
        let first = if self.is_refused { WORTH_OF_REFUSED } else { first };
        self.outcomes.iter().fold(first, |worth: f32, outcome| match outcome {
            None => (worth + 1.0 - DECAY).min(1.0),
            Some(test) if test.rank <= rank => worth * DECAY.powf(test.weight),
            Some(_) => worth,
        })
    }

    /// Whether a page whose slots have values with these hashes is one of those to which the form applies.
    fn applies(&self, values: &[u64]) -> bool {
        self.conditions.iter().all(|(slot, value)| values[usize::from(*slot)] == *value)
    }

    /// The key of the URL to which the link of a page leads; `values` are the hashes of the values of the page.
    fn key(&self, page: &[RawSlot], values: &[u64]) -> u64 {
        whole_key_of(self.link.iter().map(|(slot, value)| {
            let value = match value {
                Value::Fixed(value) => *value,
                Value::Copied { from, before, after } if before.is_empty() && after.is_empty() => {
                    values[usize::from(*from)]
                }
                Value::Copied { from, before, after } => {
                    let copied = &page[usize::from(*from)].value;
                    xxh3_64(format!("{before}{copied}{after}").as_bytes())
                }
            };
            (slot.name, value)
        }))
    }

    /// The slots of that URL.
    fn link_of(&self, page: &[RawSlot]) -> Vec<RawSlot> {
        let slot = |(slot, value): &(RawSlot, Value)| match value {
            Value::Fixed(_) => slot.clone(),
            Value::Copied { from, before, after } => {
                let copied = &page[usize::from(*from)].value;
                RawSlot { value: format!("{before}{copied}{after}"), ..slot.clone() }
            }
        };
        self.link.iter().map(slot).collect()
    }
}

impl RecentPage {
    fn free_values(&self) -> FreeValues {
        let free = self.raw.iter().zip(&self.kinds).filter(|(_, kind)| **kind == Kind::Free);
        free.map(|(slot, _)| xxh3_64(slot.value.as_bytes()) as u32).collect()
    }

    /// Where the URL of the page has the value of a slot of a link: in the slot with the same name, in another free one, or within the value.
    fn source_of(&self, slot: &RawSlot) -> Value {
        let copied = |index: usize, before: &str, after: &str| Value::Copied {
            from: index as u8,
            before: before.into(),
            after: after.into(),
        };
        let is_same = |other: &RawSlot| other.name == slot.name && other.value == slot.value;
        if let Some(same) = self.raw.iter().position(is_same) {
            return copied(same, "", "");
        }
        let value_of = |index: usize| self.raw[index].value.as_str();
        let is_free = |index: &usize| {
            self.kinds[*index] == Kind::Free
                && value_of(*index).len() >= LEAST_BYTES
                && slot.value.contains(value_of(*index))
        };
        let longest = (0..self.raw.len()).filter(is_free).max_by_key(|index| value_of(*index).len());
        match longest.and_then(|index| Some((index, slot.value.split_once(value_of(index))?))) {
            Some((index, (before, after))) => copied(index, before, after),
            None => Value::Fixed(xxh3_64(slot.value.as_bytes())),
        }
    }
}

/// The indexes of the slots of a page from which these values are copied, a bit each.
fn copied<'a>(values: impl Iterator<Item = &'a Value>) -> u32 {
    values.fold(0, |copied, value| match value {
        Value::Copied { from, .. } => copied | 1 << from,
        Value::Fixed(_) => copied,
    })
}

/// What a page must have to have the links of one like it: its constants and choices that are not copied.
fn conditions_of(page: &[RawSlot], copied: u32, kinds: &[Kind]) -> Conditions {
    let slots = page.iter().zip(kinds).enumerate();
    let slots = slots.filter(|(index, (_, kind))| copied & (1 << index) == 0 && **kind != Kind::Free);
    slots.map(|(index, (slot, _))| (index as u8, xxh3_64(slot.value.as_bytes()))).collect()
}

/// The value of the first slot of a URL, which is its host.
fn host(first: &RawSlot) -> &str {
    &first.value
}

/// The hash of a form.
fn hash_of(function: Mix, conditions: &Conditions) -> u64 {
    conditions.iter().fold(function, |hash, (slot, value)| hash.with(u64::from(*slot)).with(*value)).0
}

/// The kinds of the slots of a page; those of slots that are split are free.
fn kinds_of(raw: &[RawSlot], target: &Target) -> SmallVec<[Kind; 8]> {
    let kind = |name: Name| {
        let slot = target.slots().find(|(slot, _)| slot.name == name);
        slot.map_or(Kind::Free, |(slot, kind)| if slot.is_part { Kind::Free } else { kind })
    };
    raw.iter().map(|slot| kind(slot.name)).collect()
}

/// How much a link says against its form if the content of its page was thought to be known with this probability.
fn weight_of(expected: f64) -> f32 {
    (1.0 - expected).sqrt() as f32
}

/// The hash of the names of slots.
fn names_of(raw: &[RawSlot]) -> u64 {
    raw.iter().fold(Mix::new(NAMES), |hash, slot| hash.with(u64::from(slot.name.0))).0
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::avoid::kinds::Kinds;
    use crate::avoid::overrides::Overrides;
    use crate::avoid::shape::{HOST, raw_slots};

    fn raw(path: &str) -> Vec<RawSlot> {
        let url = Url::parse("https://h.example/").and_then(|base| base.join(path)).expect("a URL");
        raw_slots(&url, &Overrides::default())
    }

    /// The form of a link of a page whose parameters with two letters or more in their names are free.
    fn form(page: &str, link: &str) -> Option<(Form, u64)> {
        let raw_page = raw(page);
        let kind = |slot: &RawSlot| if slot.label.len() >= 2 { Kind::Free } else { Kind::Const };
        let kinds = raw_page.iter().map(kind).collect();
        let page = RecentPage { number: 0, raw: raw_page, kinds, is_copy: true };
        let link = raw(link);
        let shape = LinkShape::of(&page, &link)?;
        let function = shape.function(&page.raw, &link);
        let hash = hash_of(function, &shape.conditions);
        Some((shape.with_slots(&page.raw, &link, function), hash))
    }

    #[test]
    fn the_link_of_another_page_has_the_values_of_that_page() {
        for (page, link, other, expected) in [
            ("/p?id=first", "/notes?id=first", "/p?id=second", "/notes?id=second"),
            ("/p?id=first", "/q?of=first&a=1", "/p?id=second", "/q?of=second&a=1"),
            ("/p?id=first&xy=7", "/p?back=/p?id=first", "/p?id=second&xy=9", "/p?back=/p?id=second"),
            ("/p?id=1&xy=1", "/r?id=1&xy=1", "/p?id=2&xy=3", "/r?id=2&xy=3"),
        ] {
            let (form, _) = form(page, link).expect("the link depends on the page");
            let other = raw(other);
            let values: Vec<u64> = other.iter().map(|slot| xxh3_64(slot.value.as_bytes())).collect();
            assert_eq!(form.key(&other, &values), whole_key(&raw(expected)), "{link}");
            assert_eq!(whole_key(&form.link_of(&other)), whole_key(&raw(expected)), "{link}");
        }
    }

    #[test]
    fn a_link_that_is_the_same_on_all_pages_has_no_form() {
        assert!(form("/p?id=first", "/about").is_none());
        assert!(form("/p?id=1", "/q?n=1").is_none(), "short values are equal by chance");
    }

    #[test]
    fn pages_of_another_kind_do_not_have_the_same_form() {
        let hash = |page: &str, link: &str| form(page, link).map(|(_, hash)| hash);
        let (one, same) = (hash("/p?id=first", "/n?id=first"), hash("/p?id=other", "/n?id=other"));
        assert_eq!(one, same);
        assert_ne!(one, hash("/q?id=first", "/n?id=first"), "its path is a constant that is not copied");
    }

    /// The URL as a model sees it for which segments of paths are choices, or free as all else.
    fn target(raw: &[RawSlot], are_segments_choices: bool) -> Target {
        let mut target = Target::of(raw, &Kinds::default());
        for (slot, kind) in target.shape.slots.iter().zip(&mut target.kinds) {
            *kind = match slot.name {
                HOST => Kind::Const,
                name if are_segments_choices && name.is_segment() => Kind::Enum(2),
                _ => Kind::Free,
            };
        }
        target
    }

    /// Learns a copy, once segments of paths are known to be choices.
    fn learn(forms: &mut Forms, number: u32, page: &str) {
        forms.learn(number, &raw(page), &target(&raw(page), true), true);
    }

    fn find(forms: &mut Forms, number: u32, link: &str) {
        forms.find(&raw(link), Some(number), |_| 0, |raw| target(raw, true));
    }

    /// The form of links of `/git/log?id=...` to `/git?id=...`, learnt from copies while nothing is known to be a choice.
    fn learnt() -> Forms {
        let mut forms = Forms::default();
        for (number, id) in (0..).zip(["first", "second", "third"]) {
            let page = raw(&format!("/git/log?id={id}"));
            forms.learn(number, &page, &target(&page, false), true);
            forms.find(&raw(&format!("/git?id={id}")), Some(number), |_| 0, |raw| target(raw, false));
        }
        forms
    }

    fn worths(forms: &Forms, page: &str) -> Vec<f32> {
        forms.expected(&raw(page), 0).iter().map(|link| link.worth).collect()
    }

    #[test]
    fn a_form_is_that_of_its_page_once_more_slots_are_known_to_be_choices() {
        let mut forms = learnt();
        assert_eq!(worths(&forms, "/git/tree?id=other"), [1.0], "nothing tells the pages apart");
        for page in ["/git/tree?id=fourth", "/git/tree?id=fifth"] {
            let raw = raw(page);
            forms.test(&forms.expected(&raw, 0), 0);
        }
        assert_eq!(worths(&forms, "/git/log?id=other"), [DECAY * DECAY]);
        forms.relearn(|raw| target(raw, true));
        assert!(worths(&forms, "/git/tree?id=other").is_empty());
        assert_eq!(worths(&forms, "/git/log?id=other"), [1.0], "what the other pages said does not count");
        forms.test(&forms.expected(&raw("/git/log?id=sixth"), 0), 0);
        forms.relearn(|raw| target(raw, true));
        assert_eq!(worths(&forms, "/git/log?id=other"), [DECAY], "if nothing changes, what it was stays");
    }

    #[test]
    fn a_page_whose_link_was_then_skipped_says_little_against_the_form() {
        let mut forms = learnt();
        forms.test(&forms.expected(&raw("/git/log?id=fourth"), 0), 0);
        assert_eq!(worths(&forms, "/git/log?id=other"), [DECAY], "as far as is known, it has no such link");
        forms.skip(whole_key(&raw("/git?id=fourth")), 0.98);
        let worth = worths(&forms, "/git/log?id=other")[0];
        assert!((worth - DECAY.powf(0.02f32.sqrt())).abs() < 1e-3, "{worth}");
        forms.came(whole_key(&raw("/git?id=fourth")), true, 0.98);
        assert_eq!(worths(&forms, "/git/log?id=other"), [1.0], "it was fetched after all, and is new");
    }

    #[test]
    fn forms_are_tested_less_often_where_no_form_led_to_anything_new() {
        let tests = |earlier: usize, is_new: bool| {
            let mut forms = learnt();
            for test in 0..earlier {
                forms.leads.insert(test as u64, Lead { forms: [0].into_iter().collect(), ..Lead::default() });
                forms.came(test as u64, is_new, 0.0);
            }
            forms.forms[0].outcomes.clear();
            let mut tests = 0;
            while let expected @ [_, ..] = &forms.expected(&raw(&format!("/git/log?id=page{tests}")), 0)[..] {
                forms.test(expected, 0);
                tests += 1;
            }
            tests
        };
        assert_eq!([0, 2, 16, 1_000].map(|earlier| tests(earlier, false)), [6, 6, 4, 3]);
        assert_eq!(tests(1_000, true), 6);
    }

    #[test]
    fn the_pages_to_which_a_form_applies_tell_how_many_have_its_link() {
        let share = |without_link: u32| {
            let mut forms = learnt();
            for number in 0..without_link {
                learn(&mut forms, 10 + number, &format!("/git/log?id=other{number}"));
                learn(&mut forms, 1_000 + number, &format!("/page?id=other{number}"));
            }
            let expected = forms.expected(&raw("/git/log?id=fourth"), 0);
            forms.share_with(&expected[0])
        };
        assert_eq!(share(0), 1.0, "the three pages that were learnt have it");
        assert_eq!(share(4), 0.5, "four of eight, of which one is assumed");
        assert_eq!(share(60), 4.0 / 64.0);
    }

    #[test]
    fn a_value_that_no_page_has_belongs_to_a_form_once_pages_with_nothing_in_common_have_it() {
        let mut forms = Forms::default();
        // Two views of a commit have links with its parent.
        let views = ["/log?tag=one&id=first", "/log?tag=two&id=first", "/log?tag=three&id=other"];
        for (number, page) in (0..).zip(views) {
            learn(&mut forms, number, page);
            let link = page.replace("log", "diff") + "&parent=zeroth";
            find(&mut forms, number, &link);
            let is_form = !forms.expected(&raw("/log?tag=four&id=third"), 0).is_empty();
            assert_eq!(is_form, number == 2, "{page}");
        }
    }

    #[test]
    fn a_link_that_was_refused_on_each_page_is_looked_for_once() {
        let mut forms = Forms::default();
        let refuse = |forms: &mut Forms, number: u32, link: &str| {
            forms.refuse(&raw(link), number, |raw| target(raw, true));
        };
        for (number, id) in (0..).zip(["first", "second"]) {
            learn(&mut forms, number, &format!("/log?id={id}"));
            refuse(&mut forms, number, &format!("/commit?id={id}"));
            refuse(&mut forms, number, &format!("https://other.example/share?id={id}"));
        }
        assert!(forms.expected(&raw("/log?id=first"), 0).is_empty(), "it is refused there");
        let expected = forms.expected(&raw("/log?id=third"), 0);
        assert_eq!(expected.iter().map(|link| link.worth).collect::<Vec<_>>(), [WORTH_OF_REFUSED]);
        assert_eq!(expected[0].key, whole_key(&raw("/commit?id=third")), "and not the link to another host");
        let mut tested = forms.clone();
        tested.test(&expected, 0);
        assert!(worths(&tested, "/log?id=fourth").is_empty());
        // A page that has the link, and the crawl follows it.
        learn(&mut tested, 2, "/log?id=third");
        find(&mut tested, 2, "/commit?id=third");
        tested.came(expected[0].key, true, 0.0);
        assert_eq!(worths(&tested, "/log?id=fourth"), [DECAY + 1.0 - DECAY]);
        // Where links of another form are followed, those that are refused are not looked for.
        for (number, id) in (2..).zip(["fifth", "sixth"]) {
            learn(&mut forms, number, &format!("/log?id={id}"));
            find(&mut forms, number, &format!("/tree?id={id}"));
        }
        let followed = forms.expected(&raw("/log?id=seventh"), 0);
        assert_eq!(
            followed.iter().map(|link| link.key).collect::<Vec<_>>(),
            [whole_key(&raw("/tree?id=seventh"))]
        );
    }
}
