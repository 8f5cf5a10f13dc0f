//! The reason why a request ended without a page. It is a value that is counted, recorded and explained, and not an
//! error.

use std::borrow::Cow;
use std::sync::Arc;

use http::StatusCode;
use serde::Serialize;

use crate::client::FetchId;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::fetch::FetchError;
use crate::frontier::Work;
use crate::request::Request;
use crate::response::Response;
use crate::secrets::redacted;

/// Whether a request failed or was rejected by a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DropState {
    /// The request was tried, but there was no page.
    Failed,
    /// A rule rejected the request.
    Skipped,
}

/// Why a request was dropped: a stable snake_case reason and a sentence of detail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropReason {
    /// Failed or skipped.
    pub state: DropState,
    /// Stable name in snake_case; part of the output format.
    pub reason: Cow<'static, str>,
    /// A detail for people: the robots.txt line, the limit, the cause.
    pub detail: Option<String>,
    /// Status of the response, if there was one.
    pub status: Option<StatusCode>,
    /// The setting of the guard against traps that rejected the request, if one did; the report lists what guards
    /// rejected.
    pub guard: Option<&'static str>,
    /// The error that caused the drop, for the spider's `failed`.
    pub(crate) cause: Cause,
}

/// An error that is ignored when reasons are compared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cause(Option<Arc<Error>>);

impl PartialEq for Cause {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Cause {}

impl DropReason {
    /// The reason of a request that a rule rejected. If `reason` is free text instead of a snake_case name, it becomes
    /// the detail of the reason `dropped`.
    pub fn skipped(reason: impl Into<Cow<'static, str>>) -> Self {
        let reason = reason.into();
        let is_name = !reason.is_empty()
            && reason.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        let (reason, detail) =
            if is_name { (reason, None) } else { (Cow::Borrowed("dropped"), Some(reason.into_owned())) };
        Self { state: DropState::Skipped, reason, detail, status: None, guard: None, cause: Cause::default() }
    }

    /// The reason of a request that was tried and failed.
    pub fn failed(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { state: DropState::Failed, ..Self::skipped(reason) }
    }

    /// Adds a detail.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Marks that a guard against traps rejected the request; `setting` is the setting with its limit.
    pub fn guard(mut self, setting: &'static str) -> Self {
        self.guard = Some(setting);
        self
    }

    /// Adds the error that caused the drop, which the spider's `failed` gets. Without one it gets a [`FetchError`] made of the reason.
    pub fn with_error(mut self, error: Error) -> Self {
        self.cause = Cause(Some(Arc::new(error)));
        self
    }

    /// Adds the response, for the spider's `failed`.
    pub(crate) fn answered(self, response: Response) -> Self {
        match self.state {
            DropState::Failed => {
                let error = FetchError::of_drop(&self).with_response(response);
                self.with_error(error.into())
            }
            DropState::Skipped => self,
        }
    }

    /// The error for the spider's `failed`: the cause, or an error made of the reason.
    pub(crate) fn error(&self) -> Arc<Error> {
        self.cause.0.clone().unwrap_or_else(|| Arc::new(FetchError::of_drop(self).into()))
    }

    /// Adds the status of the response.
    pub fn status(mut self, status: StatusCode) -> Self {
        self.status = Some(status);
        self
    }
}

/// The record of one dropped request, as written to `drops.jsonl`.
#[derive(Clone, Debug, Serialize)]
pub struct Dropped {
    /// The URL under which the request entered the queue (before redirects).
    pub url: String,
    /// Failed or skipped.
    pub state: DropState,
    /// Stable reason in snake_case.
    pub reason: Cow<'static, str>,
    /// Name of the component that dropped the request.
    pub component: Cow<'static, str>,
    /// A sentence for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The page on which the URL was found.
    pub referer: Option<String>,
    /// Links followed from the seed.
    pub depth: u16,
    /// Status of the response, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Time of the drop, RFC 3339.
    pub at: String,
    /// The name of the request in a queue that several processes share.
    #[serde(flatten)]
    pub work: Option<Work>,
    /// The client's fetch that the request belongs to.
    #[serde(skip)]
    pub(crate) fetch: Option<FetchId>,
}

impl Dropped {
    /// The record of a request that a component dropped.
    pub fn new(
        request: &Request,
        component: impl Into<Cow<'static, str>>,
        why: DropReason,
        at: Timestamp,
    ) -> Self {
        Self {
            url: redacted(request.requested_url()).into_owned(),
            state: why.state,
            reason: why.reason,
            component: component.into(),
            detail: why.detail,
            referer: request.referer.as_deref().map(str::to_owned),
            depth: request.depth,
            status: why.status.map(|s| s.as_u16()),
            at: at.to_rfc3339(),
            work: request.extensions.get().copied(),
            fetch: FetchId::of(request),
        }
    }

    /// The reason with its detail, or else with the status: `robots: Disallow: /private`, `http_status: 404`.
    pub fn why(&self) -> String {
        match (&self.detail, self.status) {
            (Some(detail), _) => format!("{}: {detail}", self.reason),
            (None, Some(status)) => format!("{}: {status}", self.reason),
            (None, None) => self.reason.to_string(),
        }
    }
}
