//! Refusals of other sites: how long an audit goes on asking a host that is overloaded or refuses robots.
//!
//! Each answer of 429 or 503 doubles the delay of a host, up to a minute. A host with a hundred links would keep an audit busy for hours, although
//! such answers tell nothing of a link. So a URL is not asked for again after one of them, and after some of them without another answer between
//! them, or some more in all, the host is left alone: what was not asked there yet is not verified. How many these are is a setting
//! (`audit_host_refusals_in_a_row`, `audit_host_refusals`).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use huntsman_crawler::meta::MetaKey;
use huntsman_crawler::{
    Component, Context, DownloaderMiddleware, DropReason, FetchError, Hooks, HostKey, OnException, OnRequest,
    OnResponse, Request, Response, Result, Settings,
};
use huntsman_middleware::AuditSettings;

use crate::spider::TRY;

/// The reason why a request to a host that was left alone is dropped.
pub(crate) const REASON: &str = "host_refuses";
/// The request is another one for a URL that seems to be broken.
pub(crate) const SEEMS_BROKEN: MetaKey<bool> = MetaKey::new("audit_seems_broken");

/// Whether a status says that a server refuses an answer to this crawl, so that it is not known whether the URL works for readers.
pub(crate) fn is_refusal(status: u16) -> bool {
    matches!(status, 401 | 403 | 406 | 407 | 429 | 451 | 503 | 999)
}

/// Whether it is worth while to ask once more for a URL of another site that answers this. Some servers refuse HEAD and not GET; one that is overloaded
/// is not asked again.
pub(crate) fn is_worth_asking_again(status: u16, by_head: bool, is_challenge: bool) -> bool {
    let is_refused = is_overload(status) || (is_refusal(status) && !by_head);
    status >= 400 && !is_refused && !is_challenge
}

fn is_overload(status: u16) -> bool {
    matches!(status, 429 | 503)
}

/// Whether a host gave no answer within a time limit; by the name of the [kind](huntsman_crawler::FetchErrorKind) of error.
pub(crate) fn is_timeout(error: &str) -> bool {
    error.ends_with("_timeout")
}

/// Counts refusals by host, and leaves hosts alone that refuse too often. It looks only at requests for single URLs of other sites.
#[derive(Debug)]
pub(crate) struct Refusals {
    /// Refusals after which a host is left alone: one after the other, and in all. A host that answers between them is not overloaded.
    most_in_a_row: u32,
    most: u32,
    /// Hosts that refused, which are fewer than the hosts of links.
    by_host: Mutex<HashMap<HostKey, Refused>>,
}

/// How often a host refused.
#[derive(Clone, Copy, Debug, Default)]
struct Refused {
    in_a_row: u32,
    in_all: u32,
}

impl Refusals {
    pub(crate) fn of_settings(settings: &Settings) -> Result<Self> {
        let limits: AuditSettings = settings.of()?;
        Ok(Self {
            most_in_a_row: limits.audit_host_refusals_in_a_row,
            most: limits.audit_host_refusals,
            by_host: Mutex::default(),
        })
    }

    /// The setting by which a host that refused so often is left alone, with its value.
    fn limit(&self, refused: Refused) -> Option<(&'static str, u32)> {
        let limits = [
            ("audit_host_refusals_in_a_row", refused.in_a_row, self.most_in_a_row),
            ("audit_host_refusals", refused.in_all, self.most),
        ];
        let reached = limits.into_iter().find(|(_, number, most)| *most > 0 && number >= most);
        reached.map(|(name, _, most)| (name, most))
    }

    fn add(&self, request: &Request) {
        if request.has_meta(TRY) {
            let mut by_host = self.by_host.lock().unwrap_or_else(PoisonError::into_inner);
            let refused = by_host.entry(request.host()).or_default();
            refused.in_a_row += 1;
            refused.in_all += 1;
        }
    }

    /// Notes that a host gave another answer.
    fn answered(&self, request: &Request) {
        let mut by_host = self.by_host.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(refused) = by_host.get_mut(&request.host()) {
            refused.in_a_row = 0;
        }
    }

    fn of(&self, host: &HostKey) -> Refused {
        let by_host = self.by_host.lock().unwrap_or_else(PoisonError::into_inner);
        by_host.get(host).copied().unwrap_or_default()
    }
}

impl Component for Refusals {
    const NAME: &'static str = "refusals";
    type Settings = ();

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        // Behind robots.txt, whose rules tell more of a URL.
        hooks.downloader(160)
    }
}

impl DownloaderMiddleware for Refusals {
    async fn process_request(&self, request: &mut Request, _: &Context) -> Result<OnRequest> {
        // What seems to be broken is asked for to its last try.
        let is_first = request.has_meta(TRY) && !request.meta_flag(SEEMS_BROKEN);
        let refused = if is_first { self.of(&request.host()) } else { Refused::default() };
        let Some((name, most)) = self.limit(refused) else { return Ok(OnRequest::Continue) };
        let number = refused.in_all;
        let detail = format!(
            "its host answered {number} requests by 429 or 503 or not in time, and was left alone ({name} = {most})"
        );
        Ok(OnRequest::Drop(DropReason::failed(REASON).detail(detail)))
    }

    async fn process_response(
        &self,
        request: &Request,
        response: &mut Response,
        _: &Context,
    ) -> Result<OnResponse> {
        match is_overload(response.status.as_u16()) {
            true => self.add(request),
            false => self.answered(request),
        }
        Ok(OnResponse::Continue)
    }

    async fn process_exception(
        &self,
        request: &Request,
        error: &FetchError,
        _: &Context,
    ) -> Result<OnException> {
        if is_timeout(error.kind().name()) {
            self.add(request);
        }
        Ok(OnException::Pass)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_be_answered_otherwise_is_asked_for_again() {
        for (status, by_head, by_get) in [
            (404, true, true),
            (500, true, true),
            (600, true, true),
            (403, true, false),
            (999, true, false),
            (429, false, false),
            (503, false, false),
            (200, false, false),
            (301, false, false),
        ] {
            let again = [true, false].map(|by_head| is_worth_asking_again(status, by_head, false));
            assert_eq!(again, [by_head, by_get], "{status}");
            assert!(!is_worth_asking_again(status, true, true), "{status} with a challenge");
        }
    }

    #[test]
    fn a_host_is_left_alone_after_as_many_refusals_as_the_settings_say() {
        let limit = |most_in_a_row, most, in_a_row, in_all| {
            let refusals = Refusals { most_in_a_row, most, by_host: Mutex::default() };
            refusals.limit(Refused { in_a_row, in_all }).map(|(name, _)| name)
        };
        let (in_a_row, in_all) = (Some("audit_host_refusals_in_a_row"), Some("audit_host_refusals"));
        assert_eq!(limit(3, 12, 2, 11), None);
        assert_eq!(limit(3, 12, 3, 3), in_a_row);
        assert_eq!(limit(3, 12, 1, 12), in_all);
        assert_eq!(limit(0, 12, 11, 11), None);
        assert_eq!(limit(0, 12, 12, 12), in_all);
        assert_eq!(limit(0, 0, 500, 900), None);
    }
}
