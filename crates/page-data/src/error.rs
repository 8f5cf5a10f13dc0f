//! The error of the crate: a path, a document or a value that cannot be used.

use std::fmt;

/// A path that is not valid, JSON that cannot be read, or a limit that is exceeded. The message says what and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    message: String,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    /// An error at a byte of a text. The message counts lines and columns from 1, and columns in characters.
    pub(crate) fn at(text: &str, byte: usize, what: impl fmt::Display) -> Self {
        let before = &text[..text.floor_char_boundary(byte)];
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self::new(format!("{what}, at line {line}, column {column}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
