//! A site as people are shown it: the parts of a URL, its relations with what they rest on, and templates of URLs.

use smallvec::SmallVec;

use super::indexes::run_key;
use super::{Kinship, LinkContext, Scope, Site, whole_key};
use crate::avoid::kinds::Kind;
use crate::avoid::order::Sort;
use crate::avoid::overrides::PriorKnowledge;
use crate::avoid::rows::Grounds;
use crate::avoid::shape::{HOST, Name, RawSlot, SLASH, split};
use crate::avoid::target::Target;

/// The most characters of a constant part in a template, and of a template.
const PART: usize = 60;
const TEMPLATE: usize = 240;

/// A part of a URL: a slot as the model sees it, with its text.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) name: Name,
    /// The name of a parameter as in the URL; of the first part of a split value with `<` behind it.
    pub(crate) label: String,
    pub(crate) value: String,
    pub(crate) kind: PartKind,
    pub(crate) sort: Sort,
    pub(crate) is_forbidden: bool,
    /// The separator before the value, if it is the second part of a split one.
    separator: Option<char>,
}

/// The kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    Constant,
    /// One of this many values.
    Choice(u8),
    Free,
    /// It never matters by the user's ruling.
    Pinned,
}

/// A relation of a URL, with what the belief in it rests on.
#[derive(Clone, Debug)]
pub(crate) struct Relationship {
    pub(crate) kinship: Kinship,
    pub(crate) dropped: SmallVec<[Name; 4]>,
    pub(crate) scope: Scope,
    /// The key of the row that decides.
    pub(crate) key: u64,
    pub(crate) grounds: Grounds,
    /// The pages that represent the contents that the URL may have.
    pub(crate) pages: Vec<u32>,
    /// Whether the page is smaller than all that tested the rule, so that only tests of small pages count.
    pub(crate) is_small: bool,
    /// The dropped slots whose values have an order, in the order of the grounds' spans.
    pub(crate) ordered: Vec<(Name, Sort)>,
    /// The distance between the neighbours, of the relation between two pages.
    pub(crate) gap: Option<u64>,
}

impl Site {
    /// All relations of a URL to pages that were learnt, the most probable first.
    pub(crate) fn relationships(
        &self,
        raw: &[RawSlot],
        links: &[LinkContext],
        threshold: f64,
    ) -> Vec<Relationship> {
        let target = Target::of(raw, &self.kinds);
        let of = |hypothesis: super::Hypothesis| {
            let is_dropped = |name: Name| hypothesis.dropped.contains(&name);
            let slots = target.shape.slots.iter();
            let slots = slots.filter(|slot| slot.place.sort != Sort::None && is_dropped(slot.name));
            Relationship {
                kinship: hypothesis.kinship,
                scope: hypothesis.scope,
                key: hypothesis.rows.own,
                grounds: self.rows.grounds(&hypothesis.rows, self.min_evidence, threshold),
                pages: hypothesis.contents.iter().map(|content| self.contents.page(*content)).collect(),
                is_small: hypothesis.row != hypothesis.rows.own,
                ordered: slots.map(|slot| (slot.name, slot.place.sort)).collect(),
                gap: (hypothesis.kinship == Kinship::Between)
                    .then(|| self.gap(&target, hypothesis.dropped.first().copied()))
                    .flatten(),
                dropped: hypothesis.dropped,
            }
        };
        let mut all: Vec<Relationship> = self.hypotheses(&target, links).into_iter().map(of).collect();
        all.sort_by(|a, b| b.grounds.probability.total_cmp(&a.grounds.probability));
        all
    }

    /// The distance between the neighbours of the value of a slot.
    fn gap(&self, target: &Target, name: Option<Name>) -> Option<u64> {
        target.changed_sets().find_map(|set| {
            let key = target.changed_key(set);
            let slot = target.ordered(set).filter(|slot| Some(slot.name) == name)?;
            let around = self.stores.runs.around(run_key(key, slot), slot.place.at)?;
            around.between.map(|(_, _, length)| length)
        })
    }

    /// The page from which a URL differs only in pinned slots.
    pub(crate) fn pinned_to(&self, raw: &[RawSlot]) -> Option<u32> {
        let (page, same) = self.without_pinned.get(&Target::of(raw, &self.kinds).key())?;
        (*same != whole_key(raw)).then_some(*page)
    }

    /// The signature of a URL, as [`facts`](Self::facts) has it.
    pub(crate) fn signature(&self, raw: &[RawSlot]) -> u32 {
        Target::of(raw, &self.kinds).signature as u32
    }

    /// The signature of a page, and the groups of its texts: of the whole one, and of that without its own words. `None` for a page without
    /// words.
    pub(crate) fn facts(&self, page: u32) -> (u32, Option<(u32, Option<u32>)>) {
        let groups = self.content(page).map(|content| self.contents.groups(content));
        (self.signature_of.get(page as usize).copied().unwrap_or_default(), groups)
    }

    /// The parts of a URL as the model sees them.
    pub(crate) fn parts(&self, raw: &[RawSlot]) -> Vec<Part> {
        let target = Target::of(raw, &self.kinds);
        let slot_of = |name: Name| target.slots().find(|(slot, _)| slot.name == name);
        let below = target.shape.slots.iter().find_map(|slot| slot.name.segments_above().map(|_| slot.name));
        let mut parts: Vec<Part> = Vec::new();
        for slot in raw {
            let part = |name: Name, label: String, value: &str| {
                let found = slot_of(name);
                let kind = match found {
                    _ if slot.prior == PriorKnowledge::Pinned => PartKind::Pinned,
                    Some((_, Kind::Const)) => PartKind::Constant,
                    Some((_, Kind::Enum(values))) => PartKind::Choice(values),
                    _ => PartKind::Free,
                };
                Part {
                    name,
                    label,
                    value: value.to_owned(),
                    kind,
                    sort: found.map(|(slot, _)| slot.place.sort).unwrap_or_default(),
                    is_forbidden: slot.prior == PriorKnowledge::Forbidden,
                    separator: None,
                }
            };
            let separator = self.kinds.layout.splits.get(&slot.name).copied();
            let separator = separator.filter(|_| slot.prior != PriorKnowledge::Pinned);
            match (below, separator) {
                (Some(below), _) if slot.name.is_segment() && slot_of(slot.name).is_none() => {
                    match parts.last_mut().filter(|last| last.name == below) {
                        Some(path) => {
                            path.value.push('/');
                            path.value.push_str(&slot.value);
                        }
                        None => parts.push(part(below, String::new(), &slot.value)),
                    }
                }
                (_, Some(separator)) => {
                    let (head, tail) = split(&slot.value, separator);
                    parts.extend(
                        head.map(|head| part(Name::head(&slot.label), format!("{}<", slot.label), head)),
                    );
                    parts.extend(tail.map(|tail| {
                        let separator = head.map(|_| separator);
                        Part { separator, ..part(slot.name, slot.label.clone(), tail) }
                    }));
                }
                _ => parts.push(part(slot.name, slot.label.clone(), &slot.value)),
            }
        }
        parts
    }
}

impl Part {
    /// The words in braces that stand for a value that is not constant. Whether a text is an identifier differs from value to value, so it is
    /// not told.
    fn placeholder(&self) -> &'static str {
        match (self.kind, self.sort) {
            (PartKind::Pinned, _) => "{pinned}",
            (PartKind::Choice(_), _) => "{choice}",
            (_, Sort::Number | Sort::OpenNumber) => "{number}",
            (_, Sort::Date | Sort::OpenDate) => "{date}",
            _ if self.name.segments_above().is_some() => "{path}",
            _ if self.name.is_segment() => "{name}",
            _ => "{text}",
        }
    }

    fn in_template(&self) -> String {
        // Choices of a path, such as the names of scripts, say most about what a page is.
        let is_shown = match self.kind {
            PartKind::Constant => true,
            PartKind::Choice(_) => !self.name.is_parameter(),
            PartKind::Free | PartKind::Pinned => false,
        };
        if is_shown { self.value.chars().take(PART).collect() } else { self.placeholder().to_owned() }
    }
}

/// The template of URLs with these parts: `/wiki/{name}?do={choice}&rev={date}`. The host is named only if the site has several.
pub(crate) fn template(parts: &[Part]) -> String {
    let (mut text, mut query) = (String::new(), String::new());
    for part in parts {
        let value = part.in_template();
        if part.name == HOST {
            if matches!(part.kind, PartKind::Choice(_)) {
                text = format!("//{value}");
            }
        } else if part.name.is_segment() && part.name != SLASH {
            text.push('/');
            text.push_str(&value);
        } else if let Some(label) = part.label.strip_prefix(';') {
            text.push_str(&format!(";{label}={value}"));
        } else if let Some(separator) = part.separator {
            query.push(separator);
            query.push_str(&value);
        } else {
            query.push(if query.is_empty() { '?' } else { '&' });
            let label = part.label.trim_end_matches('<');
            let label = label.rsplit_once('#').map_or(label, |(label, _)| label);
            query.push_str(&format!("{label}={value}"));
        }
    }
    if text.is_empty() {
        text.push('/');
    }
    text.push_str(&query);
    if text.chars().count() > TEMPLATE {
        text = text.chars().take(TEMPLATE - 1).chain(['…']).collect();
    }
    text
}
