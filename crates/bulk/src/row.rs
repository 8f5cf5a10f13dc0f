//! A fingerprint with its id, as it is in files.

use std::cmp::Ordering;

use huntsman_detect::near::{DocId, Language};
use huntsman_disk::{Entry, Fields, put_bytes};

/// The id of a document: a number of 64 bits with a sign, as files have it, or a text.
///
/// A number above 2^63 becomes a text. Numbers sort before texts, and texts sort by their bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    /// A number.
    Number(i64),
    /// A text.
    Text(Box<str>),
}

impl Id {
    /// The same id as a text.
    pub fn into_text(self) -> Self {
        match self {
            Self::Number(number) => Self::Text(number.to_string().into()),
            text @ Self::Text(_) => text,
        }
    }

    /// The id as an index has it. `are_numbers` says that texts stand for numbers.
    pub(crate) fn into_doc_id(self, are_numbers: bool) -> Result<DocId, String> {
        match self {
            Self::Number(number) => u64::try_from(number).map(DocId::Number).map_err(|_| {
                format!("id {number}: ids are whole numbers from 0 to {}, or strings", u64::MAX)
            }),
            Self::Text(text) => match text.parse() {
                Ok(number) if are_numbers => Ok(DocId::Number(number)),
                _ => Ok(DocId::Text(text)),
            },
        }
    }

    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Number(number) => {
                out.push(0);
                out.extend_from_slice(&number.to_le_bytes());
            }
            Self::Text(text) => {
                out.push(1);
                put_bytes(text.as_bytes(), out);
            }
        }
    }

    pub(crate) fn read(from: &mut Fields<'_>) -> Option<Self> {
        match from.byte()? {
            0 => Some(Self::Number(i64::from_le_bytes(from.take(8)?.try_into().ok()?))),
            1 => Some(Self::Text(from.text()?.into())),
            _ => None,
        }
    }

    pub(crate) fn heap_size(&self) -> usize {
        match self {
            Self::Number(_) => 0,
            // With what an allocation costs.
            Self::Text(text) => text.len() + 16,
        }
    }
}

impl From<&DocId> for Id {
    fn from(id: &DocId) -> Self {
        match id {
            DocId::Number(number) => match i64::try_from(*number) {
                Ok(number) => Self::Number(number),
                Err(_) => Self::Text(number.to_string().into()),
            },
            DocId::Text(text) => Self::Text(text.clone()),
        }
    }
}

/// A fingerprint with its language and its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The language.
    pub language: Language,
    /// The id, which is unique within the language.
    pub id: Id,
    /// The fingerprint.
    pub hash: u128,
}

/// The halves of a fingerprint as the columns `hi` and `lo`.
pub(crate) fn halves(hash: u128) -> [i64; 2] {
    [(hash >> 64) as u64 as i64, hash as u64 as i64]
}

/// The fingerprint of the columns `hi` and `lo`.
pub(crate) fn whole(hi: i64, lo: i64) -> u128 {
    u128::from(hi as u64) << 64 | u128::from(lo as u64)
}

pub(crate) fn put_language(language: Language, before: Option<Language>, out: &mut Vec<u8>) {
    // Sorted rows mostly have the language of the row before.
    match before == Some(language) {
        true => put_bytes(b"", out),
        false => put_bytes(language.as_str().as_bytes(), out),
    }
}

pub(crate) fn read_language(before: Option<Language>, from: &mut Fields<'_>) -> Option<Language> {
    match from.text()? {
        "" => before,
        name => Language::parse(name).ok(),
    }
}

/// A row in the order of language and fingerprint, whose halves are numbers with a sign, as engines sort them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ByHash(pub(crate) Row);

impl ByHash {
    fn key(&self) -> (Language, [i64; 2], &Id) {
        (self.0.language, halves(self.0.hash), &self.0.id)
    }
}

impl Ord for ByHash {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for ByHash {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Entry for ByHash {
    fn heap_size(&self) -> usize {
        self.0.id.heap_size()
    }

    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        put_language(self.0.language, before.map(|before| before.0.language), out);
        out.extend_from_slice(&self.0.hash.to_le_bytes());
        self.0.id.put(out);
    }

    fn read(before: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
        let language = read_language(before.map(|before| before.0.language), from)?;
        let hash = u128::from_le_bytes(from.take(16)?.try_into().ok()?);
        Some(Self(Row { language, id: Id::read(from)?, hash }))
    }
}
