//! The binary format of the log. Whole numbers are little-endian, fingerprints are 16 bytes big-endian.
//!
//! A segment is a [`SegmentHeader`] followed by frames. A frame without records is a sync mark: everything before it had been synced before
//! it was written. Any other frame holds the changes of one write: a [`FrameHeader`], and groups of records, each for one language and one
//! kind:
//!
//! | bytes | content |
//! |---|---|
//! | 1 | the [`Kind`] |
//! | 1, then that many | the length of the language's name, and the name |
//! | 4 | the number of records |
//! | 8 or 2, then that many | the id of each record: a number, or the length of a text and the text |
//! | 16 | the fingerprint of each record that inserts |

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::frozen::IdRef;
use super::language::Language;
use super::partition::Change;
use crate::simhash::SimHash;

/// The format version that this program writes.
pub(super) const VERSION: u32 = 1;

/// The start of a segment: 8 bytes of magic, the version, flags, the segment's number, a checksum of these 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) version: u32,
    /// Whether all earlier segments are obsolete.
    pub(super) is_base: bool,
}

/// The start of a frame: 4 bytes of magic, the length of the payload, its checksum, the offset of the frame in its segment, and a checksum
/// of these 24 bytes, seeded with the number of the segment.
///
/// So bytes within a record are never mistaken for a frame, and a frame that was moved is recognised as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) length: u32,
    checksum: u64,
    pub(super) at: u64,
}

const SEGMENT_MAGIC: [u8; 8] = *b"HNTSNEAR";
/// The first byte does not occur in UTF-8.
const FRAME_MAGIC: [u8; 4] = *b"\xf5ndx";
const IS_BASE: u32 = 1;

/// The longest payload that a reader accepts: more than 2,048 documents with the longest ids.
const MAX_PAYLOAD: u32 = 64 << 20;

impl SegmentHeader {
    pub(super) const LENGTH: usize = 32;

    pub(super) fn to_bytes(self, number: u64) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..8].copy_from_slice(&SEGMENT_MAGIC);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[12..16].copy_from_slice(&(u32::from(self.is_base) * IS_BASE).to_le_bytes());
        bytes[16..24].copy_from_slice(&number.to_le_bytes());
        let checksum = xxh3_64(&bytes[..24]);
        bytes[24..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header of the segment with this number, if it is intact.
    pub(super) fn read(bytes: &[u8; Self::LENGTH], number: u64) -> Option<Self> {
        let version = u32::from_le_bytes(bytes[8..12].try_into().expect("4 bytes"));
        let flags = u32::from_le_bytes(bytes[12..16].try_into().expect("4 bytes"));
        let is_whole = bytes[..8] == SEGMENT_MAGIC
            && bytes[16..24] == number.to_le_bytes()
            && bytes[24..] == xxh3_64(&bytes[..24]).to_le_bytes();
        is_whole.then_some(Self { version, is_base: flags & IS_BASE != 0 })
    }
}

impl FrameHeader {
    pub(super) const LENGTH: usize = 32;

    /// The header for a frame at this offset of its segment.
    pub(super) fn of(payload: &[u8], at: u64) -> Self {
        let length = u32::try_from(payload.len()).expect("a frame has at most 2,048 documents");
        Self { length, checksum: xxh3_64(payload), at }
    }

    pub(super) fn to_bytes(self, segment: u64) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..4].copy_from_slice(&FRAME_MAGIC);
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.checksum.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.at.to_le_bytes());
        let checksum = xxh3_64_with_seed(&bytes[..24], segment);
        bytes[24..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header of a frame of this segment, if it is valid.
    pub(super) fn read(bytes: &[u8; Self::LENGTH], segment: u64) -> Option<Self> {
        if bytes[..4] != FRAME_MAGIC || bytes[24..] != xxh3_64_with_seed(&bytes[..24], segment).to_le_bytes()
        {
            return None;
        }
        let length = u32::from_le_bytes(bytes[4..8].try_into().expect("4 bytes"));
        let checksum = u64::from_le_bytes(bytes[8..16].try_into().expect("8 bytes"));
        let at = u64::from_le_bytes(bytes[16..24].try_into().expect("8 bytes"));
        (length <= MAX_PAYLOAD).then_some(Self { length, checksum, at })
    }

    pub(super) fn is_of(self, payload: &[u8]) -> bool {
        self == Self::of(payload, self.at)
    }
}

/// The kind of the records of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Inserted documents whose ids are numbers.
    InsertNumbers = 1,
    /// Inserted documents whose ids are texts.
    InsertTexts = 2,
    /// Removed documents whose ids are numbers.
    RemoveNumbers = 3,
    /// Removed documents whose ids are texts.
    RemoveTexts = 4,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::InsertNumbers, Kind::InsertTexts, Kind::RemoveNumbers, Kind::RemoveTexts];

    fn of(change: &Change<'_>) -> Self {
        match (change.id, change.hash == SimHash::default()) {
            (IdRef::Number(_), false) => Kind::InsertNumbers,
            (IdRef::Text(_), false) => Kind::InsertTexts,
            (IdRef::Number(_), true) => Kind::RemoveNumbers,
            (IdRef::Text(_), true) => Kind::RemoveTexts,
        }
    }

    pub(super) fn has_numbers(self) -> bool {
        matches!(self, Kind::InsertNumbers | Kind::RemoveNumbers)
    }

    fn has_hashes(self) -> bool {
        matches!(self, Kind::InsertNumbers | Kind::InsertTexts)
    }
}

/// Records of one language and one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group<'a> {
    pub(super) language: Language,
    pub(super) kind: Kind,
    pub(super) count: usize,
    /// The bytes of the records, which are complete.
    records: &'a [u8],
}

/// Encodes changes of some languages into `payload` and replaces its content. No id may occur twice, because the order of the changes is
/// lost.
pub(super) fn encode(changes: &[(Language, Vec<Change<'_>>)], payload: &mut Vec<u8>) {
    payload.clear();
    for (language, changes) in changes {
        for kind in Kind::ALL {
            let group = || changes.iter().filter(|change| Kind::of(change) == kind);
            let count = group().count();
            if count == 0 {
                continue;
            }
            let name = language.as_str().as_bytes();
            payload.extend([kind as u8, name.len() as u8]);
            payload.extend(name);
            payload.extend(u32::try_from(count).expect("a frame has at most 2,048 documents").to_le_bytes());
            for change in group() {
                match change.id {
                    IdRef::Number(number) => payload.extend(number.to_le_bytes()),
                    IdRef::Text(text) => {
                        let length = u16::try_from(text.len()).expect("ids were checked");
                        payload.extend(length.to_le_bytes());
                        payload.extend(text.as_bytes());
                    }
                }
                if kind.has_hashes() {
                    payload.extend(change.hash.0.to_be_bytes());
                }
            }
        }
    }
}

/// The groups of a payload. If it is malformed, the error comes last.
pub(super) fn groups(payload: &[u8]) -> impl Iterator<Item = Result<Group<'_>, &'static str>> {
    let mut rest = payload;
    std::iter::from_fn(move || {
        (!rest.is_empty()).then(|| {
            let group = split_group(&mut rest);
            if group.is_none() {
                rest = &[];
            }
            group.ok_or("the record makes no sense, though its checksum is right")
        })
    })
}

fn split_group<'a>(rest: &mut &'a [u8]) -> Option<Group<'a>> {
    let [kind, length] = *rest.split_off(..2)?.as_array()?;
    let kind = Kind::ALL.into_iter().find(|known| *known as u8 == kind)?;
    let name = std::str::from_utf8(rest.split_off(..usize::from(length))?).ok()?;
    let language = Language::parse(name).ok().filter(|language| language.as_str() == name)?;
    let count = u32::from_le_bytes(*rest.split_off(..4)?.as_array()?) as usize;
    let before = *rest;
    for _ in 0..count {
        split_record(rest, kind)?;
    }
    Some(Group { language, kind, count, records: &before[..before.len() - rest.len()] })
}

fn split_record<'a>(rest: &mut &'a [u8], kind: Kind) -> Option<(IdRef<'a>, SimHash)> {
    let id = if kind.has_numbers() {
        IdRef::Number(u64::from_le_bytes(*rest.split_off(..8)?.as_array()?))
    } else {
        let length = u16::from_le_bytes(*rest.split_off(..2)?.as_array()?);
        IdRef::Text(std::str::from_utf8(rest.split_off(..usize::from(length))?).ok()?)
    };
    let hash = match kind.has_hashes() {
        true => u128::from_be_bytes(*rest.split_off(..16)?.as_array()?),
        false => 0,
    };
    Some((id, SimHash(hash)))
}

impl<'a> Group<'a> {
    /// The ids with their fingerprints; the fingerprint is 0 for a removal.
    pub(super) fn records(&self) -> impl Iterator<Item = (IdRef<'a>, SimHash)> {
        let (mut rest, kind) = (self.records, self.kind);
        (0..self.count).map(move |_| split_record(&mut rest, kind).expect("records of a group are whole"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::near::DocId;

    fn language(name: &str) -> Language {
        Language::parse(name).expect("a name")
    }

    #[test]
    fn changes_come_back_as_they_were() {
        let ids: [DocId; 5] =
            [1.into(), u64::MAX.into(), "".into(), "ñ/\u{1}".into(), "x".repeat(DocId::MAX_BYTES).into()];
        let hashes = [5, 0, u128::MAX, 0, 1 << 127].map(SimHash);
        let changes = ids
            .iter()
            .zip(hashes)
            .map(|(id, hash)| Change { id: id.into(), hash, is_there: false })
            .collect();
        let one = vec![Change { id: (&ids[0]).into(), hash: SimHash(7), is_there: true }];
        let mut payload = b"what was there before".to_vec();
        encode(&[(language("hi"), changes), (language("X"), Vec::new()), (language("Y"), one)], &mut payload);
        let mut found = Vec::new();
        for group in groups(&payload) {
            let group = group.expect("it is whole");
            found.extend(
                group.records().map(|(id, hash)| (group.language.to_string(), DocId::from(id), hash.0)),
            );
        }
        let hindi = [0, 2, 4, 1, 3].map(|at| ("HINDI".to_owned(), ids[at].clone(), hashes[at].0));
        let expected = hindi.into_iter().chain([("Y".to_owned(), ids[0].clone(), 7)]);
        let sorted = |mut found: Vec<(String, DocId, u128)>| {
            found.sort();
            found
        };
        assert_eq!(sorted(found), sorted(expected.collect()));
    }

    #[test]
    fn nonsense_is_no_group_and_no_panic() {
        let id = DocId::from("an id");
        let changes =
            vec![(language("hi"), vec![Change { id: (&id).into(), hash: SimHash(1), is_there: false }])];
        let mut payload = Vec::new();
        encode(&changes, &mut payload);
        for end in 1..payload.len() {
            assert!(groups(&payload[..end]).any(|group| group.is_err()), "cut at {end}");
        }
        for at in 0..payload.len() {
            for byte in [0, 5, 0x7f, 0x80, 0xff] {
                let mut other = payload.clone();
                other[at] = byte;
                groups(&other).flatten().for_each(|group| assert!(group.records().count() <= other.len()));
            }
        }
    }

    #[test]
    fn a_frame_is_a_frame_only_in_its_segment() {
        let header = FrameHeader::of(b"payload", 1000);
        let bytes = header.to_bytes(3);
        assert_eq!(FrameHeader::read(&bytes, 3), Some(header));
        assert!(header.is_of(b"payload") && !header.is_of(b"paylaod"));
        assert_eq!(FrameHeader::read(&bytes, 4), None);
        for bit in 0..bytes.len() * 8 {
            let mut other = bytes;
            other[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FrameHeader::read(&other, 3), None, "bit {bit}");
        }
    }

    #[test]
    fn a_segment_is_known_by_its_number() {
        let header = SegmentHeader { version: VERSION, is_base: true };
        let bytes = header.to_bytes(7);
        assert_eq!((SegmentHeader::read(&bytes, 7), SegmentHeader::read(&bytes, 8)), (Some(header), None));
        for bit in 0..bytes.len() * 8 {
            let mut other = bytes;
            other[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::read(&other, 7), None, "bit {bit}");
        }
    }
}
