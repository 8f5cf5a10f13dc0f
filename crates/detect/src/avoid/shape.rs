//! The shape of a URL: its slots in a fixed order, with their values as hashes.

use hashbrown::HashMap;
use smallvec::SmallVec;
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

use super::order::{Place, Sort};
use super::overrides::{Overrides, PriorKnowledge};
use huntsman_text::urlparts::{Parts, Separator};

/// The most path segments with slots of their own; the rest of the path is one slot.
const MAX_SEGMENTS: usize = 16;
/// The most parameters with slots of their own; the rest of the query is one slot.
const MAX_PARAMETERS: usize = 24;
/// The bit that marks names of parameters; segments are numbered from 0.
const PARAMETER: u32 = 1 << 31;
/// The bit that marks the part of a path below a number of segments, in a tree.
const BELOW: u32 = 1 << 29;
/// The slot that says whether that part ends with a slash.
pub(crate) const SLASH: Name = Name(BELOW | 0xFF);
/// The slot of host and port.
pub(crate) const HOST: Name = Name(1 << 30);

/// The name of a slot: the number of a path segment, or a hash of the name of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name(pub(crate) u32);

impl Name {
    pub(crate) fn segment(index: usize) -> Self {
        Self(u32::try_from(index).expect("bounded by MOST_SEGMENTS"))
    }

    pub(crate) fn parameter(name: &str) -> Self {
        Self(xxh3_64(name.as_bytes()) as u32 | PARAMETER)
    }

    /// The slot of the first part of the values of a parameter, if they are split.
    pub(crate) fn head(parameter: &str) -> Self {
        Self::parameter(&format!("{parameter}<"))
    }

    /// The slot of the part below this number of segments.
    pub(crate) fn below(segments: u8) -> Self {
        Self(BELOW | u32::from(segments))
    }

    /// The number of segments above, if this is a slot of the part below them.
    pub(crate) fn segments_above(self) -> Option<u32> {
        (self.is_segment() && self.0 & BELOW != 0 && self != SLASH).then_some(self.0 & !BELOW)
    }

    pub(crate) fn is_segment(self) -> bool {
        self.0 < HOST.0
    }

    pub(crate) fn is_parameter(self) -> bool {
        self.0 & PARAMETER != 0
    }
}

/// A named place of a URL and the hash of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) name: Name,
    pub(crate) value: u64,
    /// The hash of the value in any spelling: of its letters and digits in lower case.
    pub(crate) loose: u64,
    /// The place of the value among others of its sort.
    pub(crate) place: Place,
    /// Whether it is a part of a split value. Such a slot is never an enumeration, because repeated parts of identifiers are no choices.
    pub(crate) is_part: bool,
    /// Whether it is the time of day beside a date.
    pub(crate) is_time: bool,
    pub(crate) prior: PriorKnowledge,
    /// The name without its number, if the parameter is repeated.
    pub(crate) base: Name,
}

impl Slot {
    fn of(name: Name, value: &str) -> Self {
        let place = match Place::of(value) {
            // A version in a path is that of all pages below it. In a parameter it is one of few choices, each of which is tested by itself.
            Place { sort: Sort::Version, .. } if !name.is_segment() => Place::default(),
            place => place,
        };
        Self { loose: loose(value), place, ..Self::hashed(name, xxh3_64(value.as_bytes())) }
    }

    /// A slot of which only the hash of the value is known.
    pub(crate) fn hashed(name: Name, value: u64) -> Self {
        let (prior, place) = (PriorKnowledge::None, Place::default());
        Self { name, value, loose: value, place, is_part: false, is_time: false, prior, base: name }
    }
}

/// The slots of a URL: segments in order, then parameters by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) slots: SmallVec<[Slot; 8]>,
    /// A hash of the names of the slots.
    pub(crate) template: u64,
}

/// A slot as it is in the URL, before values are split.
#[derive(Clone, Debug)]
pub(crate) struct RawSlot {
    pub(crate) name: Name,
    /// The name of a parameter as in the URL, with a number if it is repeated.
    pub(crate) label: String,
    pub(crate) value: String,
    pub(crate) prior: PriorKnowledge,
    /// The name without its number, if the parameter is repeated.
    pub(crate) base: Name,
}

impl RawSlot {
    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.label.len() + self.value.len()
    }
}

/// A running hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mix(pub(crate) u64);

impl Mix {
    #[inline(always)]
    pub(crate) fn new(kind: u64) -> Self {
        Self(0x9E37_79B9_7F4A_7C15).with(kind)
    }

    /// Adds a value by the splitmix64 finaliser over the sum, so that order matters. The result is stored, so this must not change.
    #[inline(always)]
    pub(crate) fn with(self, value: u64) -> Self {
        let mut x = self.0.rotate_left(23).wrapping_add(value).wrapping_add(0x9E37_79B9_7F4A_7C15);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Self(x ^ (x >> 31))
    }
}

/// The slots of a URL as they are in it. The fragment is not a slot; repeated names are numbered; a blank value is a value.
pub(crate) fn raw_slots(url: &Url, overrides: &Overrides) -> Vec<RawSlot> {
    let parts = Parts::of(url);
    let mut slots: Vec<RawSlot> = Vec::new();
    let slot = |name: Name, label: String, value: String| {
        let prior = overrides.of(name, &label);
        RawSlot { name, label, value, prior, base: name }
    };
    let host = parts.authority().rsplit('@').next().unwrap_or_default();
    slots.push(slot(HOST, String::new(), host.to_owned()));
    let mut segments = parts.segments();
    for index in 0..MAX_SEGMENTS {
        let Some(segment) = segments.next() else { break };
        let value = segment.decoded().into_owned();
        slots.push(slot(Name::segment(index), String::new(), value));
        for pair in segment.param_pairs() {
            let label = format!(";{}", pair.name());
            slots.push(slot(Name::parameter(&label), label, pair.value().into_owned()));
        }
    }
    let rest: Vec<&str> = segments.map(|segment| segment.raw).collect();
    if !rest.is_empty() {
        slots.push(slot(Name::segment(MAX_SEGMENTS), String::new(), rest.join("/")));
    }
    let pairs = parts.pairs_at(Separator::AmpersandOrSemicolon);
    for (index, pair) in pairs.enumerate() {
        if index == MAX_PARAMETERS {
            break;
        }
        let mut label = pair.name().into_owned();
        let (base, value) = (Name::parameter(&label), pair.value().into_owned());
        let before = slots.iter().filter(|slot| slot.base == base).count();
        let equal = slots.iter().filter(|slot| slot.base == base && slot.value == value).count();
        // A value that is there already changes a page hardly ever, and another one often does, so a repeated value has a slot of its own.
        match (before, equal) {
            (0, _) => {}
            (_, 0) => label = format!("{label}#{}", before + 1),
            (_, equal) => label = format!("{label}#={equal}"),
        }
        let repeated = slot(Name::parameter(&label), label, value);
        slots.push(RawSlot { base, ..repeated });
    }
    slots
}

/// Characters at which the values of a parameter may be split.
pub(crate) const SEPARATORS: [char; 4] = [':', '/', ' ', 'T'];

/// The two parts of a value: before and after the last separator, or a date and the time of day (`2024-05-01T10:15:00Z`).
pub(crate) fn split_once(value: &str, separator: char) -> Option<(&str, &str)> {
    if is_before_time(separator) {
        let parts = value.split_once(separator)?;
        return (is_date(parts.0) && parts.1.starts_with(|first: char| first.is_ascii_digit()))
            .then_some(parts);
    }
    value.rsplit_once(separator)
}

/// The first and the last part of a value that is split. A date without a time of day has no last part; any other value without the separator
/// has no first one.
pub(crate) fn split(value: &str, separator: char) -> (Option<&str>, Option<&str>) {
    match split_once(value, separator) {
        Some((head, tail)) => (Some(head), Some(tail)),
        None if is_before_time(separator) && is_date(value) => (Some(value), None),
        None => (None, Some(value)),
    }
}

/// Whether a date and a time of day are split there.
pub(crate) fn is_before_time(separator: char) -> bool {
    matches!(separator, ' ' | 'T')
}

/// Whether a text is a date such as `2024-05-01`.
pub(crate) fn is_date(text: &str) -> bool {
    let mut parts = text.split(['-', '/', '.']);
    let is_number =
        |part: &str| matches!(part.len(), 1..=4) && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.by_ref().take(3).filter(|part| is_number(part)).count() == 3 && parts.next().is_none()
}

/// The properties of a site that the shape of a URL depends on.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Layout {
    /// The separators of parameters whose values are split.
    pub(crate) splits: HashMap<Name, char>,
    /// By the hash of the first segment, the number of segments above a tree; the path below is one value.
    pub(crate) trees: HashMap<u64, u8>,
}

/// Makes a shape from slots. The values of some parameters are split at their last separator. Pinned slots are left out, or always have the
/// same value.
pub(crate) fn shape(raw: &[RawSlot], layout: &Layout) -> Shape {
    let Layout { splits, trees } = layout;
    let first = raw.iter().find(|slot| slot.name == Name::segment(0)).filter(|_| !trees.is_empty());
    let above = first.and_then(|slot| trees.get(&xxh3_64(slot.value.as_bytes()))).copied();
    let mut below: Option<Slot> = None;
    let mut ends_with_slash = false;
    let mut slots: SmallVec<[Slot; 8]> = SmallVec::new();
    for slot in raw {
        let (prior, base) = (slot.prior, slot.base);
        if prior == PriorKnowledge::Pinned {
            if !slot.name.is_parameter() {
                slots.push(Slot { prior, base, ..Slot::hashed(slot.name, 0) });
            }
            continue;
        }
        if let Some(above) = above.filter(|above| slot.name.is_segment() && slot.name.0 >= u32::from(*above))
        {
            let whole = below.get_or_insert(Slot {
                is_part: true,
                prior,
                base,
                ..Slot::hashed(Name::below(above), 0)
            });
            ends_with_slash = slot.value.is_empty();
            if !ends_with_slash {
                whole.value = Mix(whole.value).with(xxh3_64(slot.value.as_bytes())).0;
                whole.loose = Mix(whole.loose).with(loose(&slot.value)).0;
            }
            continue;
        }
        let Some(separator) = splits.get(&slot.name) else {
            slots.push(Slot { prior, base, ..Slot::of(slot.name, &slot.value) });
            continue;
        };
        let (head, tail) = split(&slot.value, *separator);
        let part = |name: Name, value: &str| Slot { is_part: true, prior, base, ..Slot::of(name, value) };
        let is_time = head.is_some() && is_before_time(*separator);
        slots.extend(head.map(|head| part(Name::head(&slot.label), head)));
        slots.extend(tail.map(|tail| Slot { is_time, ..part(slot.name, tail) }));
    }
    if let Some(below) = below {
        let value = u64::from(ends_with_slash);
        slots.push(Slot { prior: below.prior, base: below.base, ..Slot::hashed(SLASH, value) });
        slots.push(below);
    }
    slots.sort_by_key(|slot| slot.name);
    let template = slots.iter().fold(Mix::new(1), |hash, slot| hash.with(u64::from(slot.name.0)));
    Shape { template: template.0, slots }
}

/// The hash of a value by its runs of letters and digits, in lower case: the same for `A,_part_5` and `a, part 5`.
fn loose(value: &str) -> u64 {
    if value.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
        return xxh3_64(value.as_bytes());
    }
    let mut spelt = String::with_capacity(value.len());
    for run in value.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
        if !spelt.is_empty() {
            spelt.push(' ');
        }
        spelt.extend(run.chars().flat_map(char::to_lowercase));
    }
    // A value without letters and digits is itself.
    xxh3_64(if spelt.is_empty() { value } else { &spelt }.as_bytes())
}

/// A hash of a set of slots by which URLs of different templates can be compared: segments in order, then parameters.
pub(crate) fn normal_form<'a>(slots: impl Iterator<Item = &'a Slot>) -> u64 {
    let mut hash = Mix::new(2);
    for slot in slots {
        if !slot.name.is_segment() {
            hash = hash.with(u64::from(slot.name.0));
        }
        hash = hash.with(slot.value);
    }
    hash.0
}
