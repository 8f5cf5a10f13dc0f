//! The session of a page, for callbacks.

use std::sync::Arc;

use huntsman_crawler::{Context, Page, Request, meta};

use super::Shared;
use super::pool::{Retired, is_of_pool};

/// The session that a page came in; see [`PageSession`]. If sessions are switched off, or the request was outside of them, it has no name and
/// its methods do nothing.
#[derive(Clone, Debug, Default)]
pub struct Session(Option<Attached>);

/// On responses, in their extensions.
#[derive(Clone, Debug)]
pub(crate) struct Attached {
    pub(crate) name: Arc<str>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) cx: Context,
}

impl Session {
    /// The name: that which the spider gave it in the meta `session`, or one that begins with `#`.
    pub fn name(&self) -> Option<&str> {
        self.0.as_ref().map(|attached| &*attached.name)
    }

    /// Ends the session because the site blocks it. Its cookies are forgotten, and the requests that wanted it get another session.
    pub fn mark_blocked(&self) {
        if let Some(Attached { name, shared, cx }) = &self.0
            && shared.retire(name, Retired::Blocked, cx)
        {
            cx.stats().inc("session/blocked");
        }
    }

    /// Counts an error of the session; it ends with `session_max_errors` of them.
    pub fn mark_bad(&self) {
        if let Some(Attached { name, shared, cx }) = &self.0 {
            shared.bad(name, cx);
        }
    }

    /// Ends the session for another reason: it has done what it was for.
    pub fn retire(&self) {
        if let Some(Attached { name, shared, cx }) = &self.0 {
            shared.retire(name, Retired::Asked, cx);
        }
    }
}

/// The session of a [`Page`].
///
/// ```
/// use huntsman_crawler::{Output, Page, Result};
/// use huntsman_middleware::PageSession;
///
/// fn parse(page: &Page, out: &mut Output<String>) -> Result<()> {
///     if page.title() == Some("Are you human?") {
///         if let Some(again) = page.retry_in_new_session("captcha", out.context()) {
///             out.request(again);
///         }
///         return Ok(());
///     }
///     out.item(page.text().to_owned());
///     Ok(())
/// }
/// ```
pub trait PageSession {
    /// The session that the page came in.
    fn session(&self) -> Session;

    /// Ends the session as blocked, and returns the request of the page, to be queued again for another session. `reason` is a word or two for
    /// the stats. `None` if the request was retried often enough (`retry_times`), or must not be retried.
    fn retry_in_new_session(&self, reason: &str, cx: &Context) -> Option<Request>;
}

impl PageSession for Page {
    fn session(&self) -> Session {
        Session(self.response().extensions.get::<Attached>().cloned())
    }

    fn retry_in_new_session(&self, reason: &str, cx: &Context) -> Option<Request> {
        self.session().mark_blocked();
        let again = crate::retry_request(&without_session(self.request()), reason, cx)?;
        cx.stats().inc("session/retried");
        Some(again)
    }
}

/// A copy of a request that gets another session of the pool. A session that the spider named is kept: a new one begins under its name.
pub(crate) fn without_session(request: &Request) -> Request {
    let mut copy = request.clone();
    if copy.meta_text(meta::SESSION).is_some_and(is_of_pool) {
        copy.remove_meta(meta::SESSION);
    }
    copy
}
