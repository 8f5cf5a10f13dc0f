//! The errors of a client's fetch.

use std::fmt;
use std::sync::Arc;

use crate::drop::Dropped;
use crate::response::Response;

/// Why a fetch returned no page. The error is cheap to clone, and callers that share a fetch get the same one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The request ended without a page: it failed, or a rule rejected it.
    Dropped {
        /// The record of the drop: reason, detail, component.
        dropped: Arc<Dropped>,
        /// The response, if one was received completely, such as a page with status 404.
        response: Option<Arc<Response>>,
    },
    /// The crawl ended before the fetch did.
    Ended {
        /// Its finish reason (`finished`, `shutdown`, `closespider_pagecount`, ...), or the error that ended it.
        reason: Arc<str>,
    },
}

impl ClientError {
    /// The record of a request that ended without a page; `None` if the crawl ended.
    pub fn dropped(&self) -> Option<&Dropped> {
        match self {
            ClientError::Dropped { dropped, .. } => Some(dropped),
            ClientError::Ended { .. } => None,
        }
    }

    /// The response, if one was received completely.
    pub fn response(&self) -> Option<&Response> {
        match self {
            ClientError::Dropped { response, .. } => response.as_deref(),
            ClientError::Ended { .. } => None,
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Dropped { dropped, .. } => write!(f, "fetching {}: {}", dropped.url, dropped.why()),
            ClientError::Ended { reason } => write!(f, "the crawl of this client has ended: {reason}"),
        }
    }
}

impl std::error::Error for ClientError {}
