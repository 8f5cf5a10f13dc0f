//! Why a page was not rendered.

use std::fmt;

use huntsman_crawler::Error;

/// Why a renderer has no page to give.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RenderError {
    /// The browser crashed, hung, or could not be started. Another try may succeed.
    Crashed(String),
    /// A step failed that is not optional, or there is no browser. Another try would fail as well.
    Failed(String),
}

impl fmt::Display for RenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crashed(why) | Self::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for RenderError {}

/// Why a page of the crawl was not rendered.
pub(super) enum Failure {
    /// The crawl stops.
    Cancelled,
    /// See [`RenderError::Crashed`].
    Crashed(String),
    /// See [`RenderError::Failed`].
    Failed(String),
}

impl From<RenderError> for Failure {
    fn from(error: RenderError) -> Self {
        match error {
            RenderError::Crashed(why) => Self::Crashed(why),
            RenderError::Failed(why) => Self::Failed(why),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Failed(error.to_string())
    }
}
