//! Errors of expressions, evaluations and documents.

use std::fmt;

/// An expression that cannot be compiled or evaluated, or a document that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    message: String,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    /// An error at a byte of an expression. The message counts characters from 1.
    pub(crate) fn at(expression: &str, byte: usize, what: impl fmt::Display) -> Self {
        let shown = expression.escape_debug();
        let character = expression.get(..byte).map_or(0, |before| before.chars().count()) + 1;
        Self { message: format!("XPath \"{shown}\", character {character}: {what}") }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
