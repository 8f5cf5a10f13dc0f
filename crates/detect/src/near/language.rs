//! The name of a language, which selects a part of an index.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use huntsman_text::lang::Lang;

/// The name of a part of an index: 1 to 32 of `A-Z`, `0-9`, `_` and `-`.
///
/// Ten languages have full names, HINDI BENGALI MARATHI TAMIL MALAYALAM TELUGU GUJARATI ODIA PUNJABI ENGLISH, and their ISO 639-1 codes are
/// aliases. Lower case becomes upper case, so that `hi`, `HI`, `Hindi` and `HINDI` are one part.
///
/// ```
/// use huntsman_detect::near::Language;
///
/// assert_eq!(Language::parse("hi").unwrap().as_str(), "HINDI");
/// assert_eq!(Language::parse("fr").unwrap().as_str(), "FR");
/// assert!(Language::parse("a language").is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Language([u8; Language::MAX_BYTES]);

/// The error for a text that is not such a name: it has other characters, or none, or too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseLanguageError;

/// ISO 639-1 codes that are aliases of names.
const ALIASES: [(&str, &str); 10] = [
    ("HI", "HINDI"),
    ("BN", "BENGALI"),
    ("MR", "MARATHI"),
    ("TA", "TAMIL"),
    ("ML", "MALAYALAM"),
    ("TE", "TELUGU"),
    ("GU", "GUJARATI"),
    ("OR", "ODIA"),
    ("PA", "PUNJABI"),
    ("EN", "ENGLISH"),
];

impl Language {
    /// The longest name, in bytes.
    pub const MAX_BYTES: usize = 32;

    /// Parses a name or an ISO code.
    ///
    /// # Errors
    /// The text is not a name: see [`Language`].
    pub fn parse(name: &str) -> Result<Self, ParseLanguageError> {
        let known = ALIASES.iter().find(|(code, _)| code.eq_ignore_ascii_case(name));
        let name = known.map_or(name, |(_, name)| name).as_bytes();
        let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if name.is_empty() || name.len() > Self::MAX_BYTES || !name.iter().all(is_allowed) {
            return Err(ParseLanguageError);
        }
        let mut bytes = [0; Self::MAX_BYTES];
        bytes[..name.len()].copy_from_slice(name);
        bytes.make_ascii_uppercase();
        Ok(Self(bytes))
    }

    /// The name in capital letters.
    pub fn as_str(&self) -> &str {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(Self::MAX_BYTES);
        std::str::from_utf8(&self.0[..end]).expect("a name is ASCII")
    }
}

impl From<Lang> for Language {
    /// The part for a language that was declared or recognised; `UND` for an unknown one.
    fn from(lang: Lang) -> Self {
        Self::parse(lang.code()).expect("codes are two or three letters")
    }
}

impl FromStr for Language {
    type Err = ParseLanguageError;

    fn from_str(name: &str) -> Result<Self, ParseLanguageError> {
        Self::parse(name)
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Language {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Language {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&name).map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for ParseLanguageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a language is 1 to 32 letters, digits, _ and -")
    }
}

impl std::error::Error for ParseLanguageError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_are_one_part() {
        for (code, name) in ALIASES {
            let part = Language::parse(name).expect("a name");
            assert_eq!(part.as_str(), name);
            for other in [code, &code.to_lowercase(), &name.to_lowercase()] {
                assert_eq!(other.parse(), Ok(part), "{other}");
            }
            assert_eq!(Language::from(Lang::parse(code).expect("a language")), part);
        }
        assert_eq!(Language::from(Lang::UNKNOWN).as_str(), "UND");
        assert_eq!(Language::parse("pt-BR").map(|part| part.to_string()), Ok("PT-BR".to_owned()));
    }

    #[test]
    fn only_names_are_names() {
        for wrong in ["", " ", "A B", "HI ", "ñ", "हिन्दी", "A:B", "A\0", "{A}", &"A".repeat(33)]
        {
            assert_eq!(Language::parse(wrong), Err(ParseLanguageError), "{wrong:?}");
        }
        let longest = "Z".repeat(32);
        assert_eq!(Language::parse(&longest).map(|part| part.to_string()), Ok(longest));
    }

    #[test]
    fn parts_go_by_the_order_of_their_names() {
        let mut names = ["B", "A-", "AA", "A", "A_", "A0"].map(|name| Language::parse(name).expect("a name"));
        names.sort();
        assert_eq!(names.map(|name| name.to_string()), ["A", "A-", "A0", "AA", "A_", "B"]);
    }
}
