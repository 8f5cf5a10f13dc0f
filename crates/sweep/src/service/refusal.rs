//! Why a request got no result.

use std::fmt;

use http::StatusCode;
use tokio::task::JoinError;

/// An error of the API: a stable code and a sentence.
///
/// The codes are the reference's; `bad_article`, `bad_degree`, `bad_text`, `busy` and `cross_origin` are ours, for
/// errors that the reference does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: &'static str,
    pub(crate) info: String,
}

impl Refusal {
    pub(crate) fn new(code: &'static str, info: impl Into<String>) -> Self {
        Self { code, info: info.into() }
    }

    /// The client did not send the token.
    pub(crate) fn not_logged_in() -> Self {
        Self::new(
            "not_logged_in",
            "the token of this server is needed: Authorization: Bearer TOKEN, or the field 'token' of a form",
        )
    }

    /// An internal error.
    pub(crate) fn unhandled(what: impl fmt::Display) -> Self {
        Self::new("unhandled_exception", what.to_string())
    }

    /// The error for a task that ended without a result. The message of a panic is not sent to the client, because it
    /// describes the inside of a library.
    pub(crate) fn of_task(ended: JoinError) -> Self {
        Self::unhandled(huntsman::Error::from(ended))
    }

    /// The status of the HTTP response. As in the reference it is 200 for all errors in the question; if the client
    /// must retry later or is not let in, the status says so as well, for proxies in between.
    pub(crate) fn status(&self) -> StatusCode {
        match self.code {
            "busy" => StatusCode::SERVICE_UNAVAILABLE,
            "not_logged_in" => StatusCode::UNAUTHORIZED,
            "cross_origin" => StatusCode::FORBIDDEN,
            _ => StatusCode::OK,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.info)
    }
}
