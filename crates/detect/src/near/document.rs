//! The documents of an index and the results of queries.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::error::{IndexError, IndexErrorKind};
use super::language::Language;
use crate::simhash::SimHash;

/// The id of a document within its language: a number or a text. It is returned as it was given.
///
/// `Number(5)` and `Text("5")` are different ids. Numbers sort before texts, and texts sort by their bytes. Numbers take less room in every
/// index. In JSON an id is a number or a string.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DocId {
    /// A number.
    Number(u64),
    /// A text of at most [`DocId::MAX_BYTES`].
    Text(Box<str>),
}

/// A fingerprint with its id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Document {
    /// The language, which selects the part of the index.
    pub language: Language,
    /// The id, which is unique within the language.
    pub id: DocId,
    /// The fingerprint. The fingerprint 0, that of a text without words, is never indexed.
    pub hash: SimHash,
}

/// A document that a query found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NearMatch {
    /// The id of the document.
    pub id: DocId,
    /// The number of bits in which the fingerprints differ: 0 to k.
    pub distance: u32,
}

impl DocId {
    /// The longest text id, in bytes of UTF-8. Any URL in use fits.
    pub const MAX_BYTES: usize = 16 << 10;

    /// Checks whether an index accepts this id.
    ///
    /// # Errors
    /// [`Input`](IndexErrorKind::Input): the text is longer than [`DocId::MAX_BYTES`].
    pub fn check(&self) -> Result<(), IndexError> {
        match self {
            DocId::Text(text) if text.len() > Self::MAX_BYTES => {
                let (bytes, most) = (text.len(), Self::MAX_BYTES);
                let message = format!("an id has {bytes} bytes, and at most {most} are possible");
                Err(IndexError::new(IndexErrorKind::Input, message))
            }
            _ => Ok(()),
        }
    }
}

impl NearMatch {
    /// The order of query results: by distance, then by id.
    pub fn order(&self, other: &NearMatch) -> std::cmp::Ordering {
        self.distance.cmp(&other.distance).then_with(|| self.id.cmp(&other.id))
    }
}

impl fmt::Display for DocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DocId::Number(number) => number.fmt(f),
            DocId::Text(text) => text.fmt(f),
        }
    }
}

impl From<u64> for DocId {
    fn from(number: u64) -> Self {
        DocId::Number(number)
    }
}

impl From<&str> for DocId {
    fn from(text: &str) -> Self {
        DocId::Text(text.into())
    }
}

impl From<String> for DocId {
    fn from(text: String) -> Self {
        DocId::Text(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_before_texts() {
        let mut ids: Vec<DocId> = vec!["10".into(), 10.into(), "".into(), "9".into(), 9.into()];
        ids.sort();
        assert_eq!(ids, [9.into(), 10.into(), "".into(), "10".into(), DocId::from("9")]);
    }

    #[test]
    fn an_id_is_a_number_or_a_string_in_json() {
        for (json, id) in
            [("7", DocId::Number(7)), ("\"7\"", "7".into()), ("18446744073709551615", u64::MAX.into())]
        {
            assert_eq!(serde_json::from_str::<DocId>(json).expect("an id"), id);
            assert_eq!(serde_json::to_string(&id).expect("JSON"), json);
        }
        for json in ["-1", "1.5", "null", "[]"] {
            assert!(serde_json::from_str::<DocId>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn an_id_has_a_longest_length() {
        assert!(DocId::from("x".repeat(DocId::MAX_BYTES)).check().is_ok());
        let error = DocId::from("x".repeat(DocId::MAX_BYTES + 1)).check().expect_err("too long");
        assert_eq!(error.kind(), IndexErrorKind::Input);
    }
}
