//! The error of a selector that is not valid.

use std::fmt;

/// A text that is not a selector. The message has the selector, the place and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    message: String,
}

impl Error {
    /// An error at a byte of a selector. The message counts characters from 1.
    pub(crate) fn at(css: &str, byte: usize, what: &str) -> Self {
        let (shown, character) = (css.escape_debug(), css[..byte].chars().count() + 1);
        Self { message: format!("CSS selector \"{shown}\", character {character}: {what}") }
    }

    /// An error of a selector as a whole.
    pub(crate) fn whole(css: &str, what: &str) -> Self {
        Self { message: format!("CSS selector \"{}\": {what}", css.escape_debug()) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
