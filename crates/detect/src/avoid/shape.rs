//! The shape of a URL: its slots, in one order, with their values as hashes.

use hashbrown::HashMap;
use smallvec::SmallVec;
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

use crate::urlparts::{Parts, Separator};

/// Path segments beyond this are one slot, the rest of the path.
const MOST_SEGMENTS: usize = 16;
/// Parameters beyond this are one slot, the rest of the query.
const MOST_PARAMETERS: usize = 24;
/// Bit of the names of parameters; segments are numbered from 0.
const PARAMETER: u32 = 1 << 31;
/// The host and port.
pub(crate) const HOST: Name = Name(1 << 30);

/// The name of a slot: the number of a path segment, or the hash of the name of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name(pub(crate) u32);

impl Name {
    pub(crate) fn segment(index: usize) -> Self {
        Self(u32::try_from(index).expect("bounded by MOST_SEGMENTS"))
    }

    pub(crate) fn parameter(name: &str) -> Self {
        Self(xxh3_64(name.as_bytes()) as u32 | PARAMETER)
    }

    pub(crate) fn is_segment(self) -> bool {
        self.0 < HOST.0
    }

    pub(crate) fn is_parameter(self) -> bool {
        self.0 & PARAMETER != 0
    }
}

/// A named place of a URL and the hash of what stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) name: Name,
    pub(crate) value: u64,
    /// A part of a value that was split: never an enumeration (parts of identifiers that repeat are no choices).
    pub(crate) is_part: bool,
}

/// Segments in order, then parameters by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) slots: SmallVec<[Slot; 8]>,
    /// Hash of the names of the slots.
    pub(crate) template: u64,
}

/// A slot as it stands in the URL, before values are split.
#[derive(Clone, Debug)]
pub(crate) struct RawSlot {
    pub(crate) name: Name,
    /// Of a parameter, as in the URL, with a number if it is repeated.
    pub(crate) label: String,
    pub(crate) value: String,
}

impl RawSlot {
    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.label.len() + self.value.len()
    }
}

/// Hashes that build on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mix(pub(crate) u64);

impl Mix {
    pub(crate) fn new(kind: u64) -> Self {
        Self(0x9E37_79B9_7F4A_7C15).with(kind)
    }

    /// The splitmix64 finaliser over the sum, so that order counts. Stored: it must not change.
    pub(crate) fn with(self, value: u64) -> Self {
        let mut x = self.0.rotate_left(23).wrapping_add(value).wrapping_add(0x9E37_79B9_7F4A_7C15);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Self(x ^ (x >> 31))
    }
}

/// The slots of a URL as they stand in it. The fragment is none; a repeated name is numbered; a blank value is a value.
pub(crate) fn raw_slots(url: &Url) -> Vec<RawSlot> {
    let parts = Parts::of(url);
    let mut slots = Vec::new();
    let host = parts.authority().rsplit('@').next().unwrap_or_default();
    slots.push(RawSlot { name: HOST, label: String::new(), value: host.to_owned() });
    let mut segments = parts.segments();
    for index in 0..MOST_SEGMENTS {
        let Some(segment) = segments.next() else { break };
        let value = segment.decoded().into_owned();
        slots.push(RawSlot { name: Name::segment(index), label: String::new(), value });
        for pair in segment.param_pairs() {
            let label = format!(";{}", pair.name());
            slots.push(RawSlot { name: Name::parameter(&label), label, value: pair.value().into_owned() });
        }
    }
    let rest: Vec<&str> = segments.map(|segment| segment.raw).collect();
    if !rest.is_empty() {
        let name = Name::segment(MOST_SEGMENTS);
        slots.push(RawSlot { name, label: String::new(), value: rest.join("/") });
    }
    let mut counts: HashMap<String, u32> = HashMap::new();
    let pairs = parts.pairs_at(Separator::AmpersandOrSemicolon);
    for (index, pair) in pairs.enumerate() {
        if index == MOST_PARAMETERS {
            break;
        }
        let mut label = pair.name().into_owned();
        let count = counts.entry(label.clone()).or_default();
        *count += 1;
        if *count > 1 {
            label = format!("{label}#{count}");
        }
        slots.push(RawSlot { name: Name::parameter(&label), label, value: pair.value().into_owned() });
    }
    slots
}

/// Characters at which the values of a parameter may be split.
pub(crate) const SEPARATORS: [char; 2] = [':', '/'];

/// The shape of slots, with the values of some parameters split at their last separator.
pub(crate) fn shape(raw: &[RawSlot], splits: &HashMap<Name, char>) -> Shape {
    let mut slots: SmallVec<[Slot; 8]> = SmallVec::new();
    for slot in raw {
        let parts = splits.get(&slot.name).and_then(|separator| slot.value.rsplit_once(*separator));
        match parts {
            Some((head, tail)) => {
                let of_head = Name::parameter(&format!("{}<", slot.label));
                slots.push(Slot { name: of_head, value: xxh3_64(head.as_bytes()), is_part: true });
                slots.push(Slot { name: slot.name, value: xxh3_64(tail.as_bytes()), is_part: true });
            }
            None => {
                let is_part = splits.contains_key(&slot.name);
                slots.push(Slot { name: slot.name, value: xxh3_64(slot.value.as_bytes()), is_part });
            }
        }
    }
    slots.sort_by_key(|slot| slot.name);
    let template = slots.iter().fold(Mix::new(1), |hash, slot| hash.with(u64::from(slot.name.0)));
    Shape { template: template.0, slots }
}

/// Hash of a set of slots such that URLs of different templates can be compared: segments in order, then parameters.
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
