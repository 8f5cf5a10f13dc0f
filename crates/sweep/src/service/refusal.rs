//! Why an order got no result.

use std::fmt;

use tokio::task::JoinError;

/// An error of an order: a stable code for programs, and a sentence for people.
///
/// The codes are those of the reference (Earwig's Copyvio Detector); `bad_article`, `bad_degree`, `bad_text`, `busy` and
/// `cross_origin` are ours, for errors that the reference does not have. `unhandled_exception` is an internal error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The code, such as `no_data`.
    pub code: &'static str,
    /// The sentence.
    pub info: String,
}

impl Refusal {
    /// An error with a code and a sentence.
    pub fn new(code: &'static str, info: impl Into<String>) -> Self {
        Self { code, info: info.into() }
    }

    /// An internal error: `unhandled_exception`.
    pub fn unhandled(what: impl fmt::Display) -> Self {
        Self::new("unhandled_exception", what.to_string())
    }

    /// The error for a task that ended without a result. The message of a panic is left out, because it describes the
    /// inside of a library.
    pub fn of_task(ended: JoinError) -> Self {
        Self::unhandled(huntsman_crawler::Error::from(ended))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.info)
    }
}

impl std::error::Error for Refusal {}
