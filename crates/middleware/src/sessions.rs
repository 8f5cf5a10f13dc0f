//! Sessions: cookies, a proxy and headers that belong together, as those of one visitor.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, StatusCode};
use huntsman_crawler::{
    Component, Context, DownloaderMiddleware, DropReason, Error, Event, FetchError, FetchErrorKind, Hooks,
    OnException, OnFollow, OnRequest, OnResponse, Page, Persist, ProxyFault, Request, Response, Result,
    Settings, SpiderMiddleware, is_secret_name, log, meta, seconds, settings,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Notify;
use xxhash_rust::xxh3::xxh3_64;

use crate::proxy_pool::{self, BoundProxy, ProxyPool};
use crate::{added, chain, retry, status};

mod page;
mod pool;
mod rules;

use page::{Attached, without_session};
use pool::{Change, Grant, Loan, Pool, PoolRules, Proxies, Retired, SavedPool, SetupEnd, is_of_pool};

pub use page::{PageSession, Session};
pub use rules::{NewSession, SessionRules};

settings! {
    /// Settings of [`Sessions`].
    pub struct SessionsSettings {
        /// Number of sessions among which the requests are shared; 0 switches sessions off.
        session_pool_size: usize = 0;
        /// Number of requests after which a session of the pool ends; 0 is no limit.
        session_max_uses: u64 = 50;
        /// Seconds after which a session of the pool ends; 0 is no limit.
        session_max_age: f64 = 3000.0;
        /// Errors after which a session ends: a failed download counts 1, a good response takes 0.5 away; 0 is no limit.
        session_max_errors: f64 = 3.0;
        /// Status codes that end a session; the request is retried in another one.
        session_blocked_codes: Vec<u16> = vec![401, 403, 429];
        /// Which requests that a page leads to keep its session: none, forms (requests with another method than GET, and
        /// all requests of named sessions) or all.
        session_sticky: SessionSticky = SessionSticky::Forms;
        /// Sets of headers, such as User-Agent and Accept-Language. New sessions take turns with them.
        session_headers: Vec<BTreeMap<String, String>> = Vec::new();
        /// Maximum number of sessions that the spider names. Beyond it the one that was not used for longest ends.
        session_max_named: usize = 1000;
    }
}

/// Which requests that a page leads to keep its session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionSticky {
    /// None: each request gets a session of the pool, unless it names one.
    None,
    /// Requests with another method than GET, because the hidden fields of a form belong to the cookies of its page; and all requests from pages
    /// of a session that the spider named.
    #[default]
    Forms,
    /// All. A crawl from one start page then has one session at a time.
    All,
}

/// Greatest number of sessions in the pool.
const MAX_POOL: usize = 100_000;
/// How long a request waits at a time for a session that is being set up. Then it goes back to the queue, because it holds a place among the
/// requests in flight that the setting up may need.
const LOOK: Duration = Duration::from_secs(1);

/// Keeps cookies, a proxy and headers together, as those of one visitor, and shares the requests among a pool of such sessions.
///
/// With `session_pool_size` requests to a host go through the sessions in turn. Each session has a cookie jar of its own, one proxy of the
/// [`ProxyPool`] if there is one, and one of the sets of `session_headers`, which replace those of other settings but not those of the request.
/// A session ends after `session_max_uses` requests, `session_max_age` seconds, `session_max_errors` errors, or when it is blocked: by a status of
/// `session_blocked_codes`, by [`SessionRules::blocked_if`], or because a callback says so ([`PageSession`]). The blocked request is
/// retried in another session; that counts as a retry (`retry_times`), and at the end it fails with reason `blocked`. Statuses in the request's
/// `handle_httpstatus_list` are left to the callback.
///
/// A request's meta `session` names a session of its own, which has no limit of uses and age; other requests that name it share it. A name
/// that begins with `#` means a session of the pool, or another one if that has ended. With meta `dont_use_session`, or with a `cookiejar` of
/// its own, a request is outside of all sessions, as robots.txt is. Follow-ups keep the session of their page by `session_sticky`.
///
/// [`SessionRules::on_new_session`] logs in before a session is used. Sessions are kept in the job, and so are their cookies; memory is bounded by
/// `session_pool_size` and `session_max_named`. Politeness stays per host, whatever the number of sessions.
#[derive(Debug)]
#[doc(alias = "SessionPool")]
pub struct Sessions {
    shared: Arc<Shared>,
    rules: SessionRules,
    blocked_codes: Vec<u16>,
    sticky: SessionSticky,
    /// Hash of the state that was last saved in the job.
    saved: AtomicU64,
}

/// A session of a crawl, as it stands.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SessionStatus {
    /// The name that the spider chose, or one that begins with `#`.
    pub name: String,
    /// Requests that were sent in it.
    pub uses: u64,
    /// Errors, less what good responses took away.
    pub errors: f64,
    /// Host and port of its proxy.
    pub proxy: Option<String>,
    /// Number of its header set in `session_headers`, counted from 0.
    pub headers: usize,
}

/// What the component and the sessions of pages share.
#[derive(Debug)]
pub(crate) struct Shared {
    pool: Mutex<Pool>,
    /// Woken when a session was set up, or could not be.
    ready: Notify,
    headers: Vec<Vec<(HeaderName, HeaderValue)>>,
    proxies: OnceLock<Option<Arc<ProxyPool>>>,
    has_warned: AtomicBool,
}

/// The session of a request, in its extensions.
#[derive(Clone, Debug)]
struct InSession {
    name: Arc<str>,
    is_setup: bool,
}

/// On requests that set up a session, in their extensions.
#[derive(Clone, Debug)]
pub(crate) struct SettingUp(pub(crate) Loan);

impl Sessions {
    /// Creates the component from the settings; `None` if `session_pool_size` is 0.
    ///
    /// # Errors
    /// A header of `session_headers` is not allowed in HTTP or carries credentials, or a limit is out of range.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        Self::with_rules(settings, SessionRules::new())
    }

    /// Creates the component with rules of the program.
    ///
    /// # Errors
    /// As [`from_settings`](Self::from_settings).
    pub fn with_rules(settings: &Settings, rules: SessionRules) -> Result<Option<Self>> {
        let own: SessionsSettings = settings.of()?;
        if own.session_pool_size == 0 {
            return Ok(None);
        }
        if own.session_pool_size > MAX_POOL {
            let size = own.session_pool_size;
            return Err(Error::usage(format!(
                "setting session_pool_size = {size}: at most {MAX_POOL} are possible"
            )));
        }
        if own.session_max_named == 0 {
            return Err(Error::usage("setting session_max_named = 0: give a number above 0"));
        }
        let headers = own.session_headers.iter().enumerate();
        let headers = headers.map(|(set, headers)| header_set(set, headers)).collect::<Result<Vec<_>>>()?;
        let pool_rules = PoolRules {
            size: own.session_pool_size,
            max_named: own.session_max_named,
            max_uses: own.session_max_uses,
            max_age: seconds(own.session_max_age),
            max_errors: own.session_max_errors,
            header_sets: headers.len(),
            needs_setup: rules.set_up.is_some(),
        };
        let shared = Shared {
            pool: Mutex::new(Pool::new(pool_rules)),
            ready: Notify::new(),
            headers,
            proxies: OnceLock::new(),
            has_warned: AtomicBool::new(false),
        };
        Ok(Some(Self {
            shared: Arc::new(shared),
            rules,
            blocked_codes: own.session_blocked_codes.clone(),
            sticky: own.session_sticky,
            saved: AtomicU64::new(0),
        }))
    }

    /// The sessions that have not ended, those of the pool first.
    pub fn sessions(&self) -> Vec<SessionStatus> {
        let status = |member: pool::Member| SessionStatus {
            name: member.name,
            uses: member.uses,
            errors: member.errors,
            proxy: member.proxy,
            headers: member.headers,
        };
        self.shared.pool().members().into_iter().map(status).collect()
    }

    /// Gives a request to a session, and puts down what happened to sessions on the way.
    fn grant(&self, request: &Request, cx: &Context) -> Grant {
        let proxies = self.shared.proxies().map(|pool| PoolProxies { pool, cx });
        let proxies = proxies.as_ref().map(|proxies| proxies as &dyn Proxies);
        let (grant, changes) = {
            let mut pool = self.shared.pool();
            let wanted = request.meta_text(meta::SESSION).filter(|name| !name.is_empty());
            let grant = pool.grant(wanted, request.host().as_str(), cx.now(), proxies);
            (grant, pool.take_changes())
        };
        self.shared.tell(changes, cx);
        grant
    }

    /// Sets up a session, for which this request waits. Gives a decision if that failed.
    async fn set_up(&self, request: &mut Request, loan: Loan, cx: &Context) -> Option<OnRequest> {
        let set_up = self.rules.set_up.as_ref().expect("sessions are set up only if there is a rule for it");
        cx.stats().inc("session/setups");
        let mut end = SetupGuard { shared: &self.shared, cx, name: &loan.name, end: SetupEnd::Interrupted };
        let result = set_up(NewSession { loan: loan.clone(), cx: cx.clone() }).await;
        match result {
            Ok(()) => {
                end.end = SetupEnd::Ready;
                None
            }
            // The request stays in the queue of a job.
            Err(_) if cx.is_stopping() => Some(OnRequest::drop(FetchErrorKind::Cancelled.name())),
            Err(error) => {
                end.end = SetupEnd::Failed;
                cx.stats().inc("session/setup_failed");
                let why = error.to_string();
                log::warn!(session = %loan.name, "the session could not be set up: {}", why.escape_debug());
                let request = without_session(request);
                let again = match retry::may_retry(&request, cx) {
                    true => retry::retry_copy(&request, "session setup", Duration::ZERO, cx),
                    false => None,
                };
                Some(match again {
                    Some(again) => OnRequest::Reschedule(Box::new(again)),
                    None => OnRequest::Drop(DropReason::failed("session_setup").detail(why)),
                })
            }
        }
    }

    /// The session of a request is blocked: the request is retried in another one, or ends.
    fn blocked(&self, request: &Request, name: &str, status: StatusCode, cx: &Context) -> OnResponse {
        cx.stats().inc("session/blocked");
        cx.stats().inc(&format!("session/blocked_status_count/{}", status.as_u16()));
        self.shared.retire(name, Retired::Blocked, cx);
        log::info!(url = %request.url, session = %name, %status, "the session is blocked");
        let request = without_session(request);
        let again = match retry::may_retry(&request, cx) {
            true => retry::retry_copy(&request, "blocked", Duration::ZERO, cx),
            false => None,
        };
        match again {
            Some(again) => {
                cx.stats().inc("session/retried");
                OnResponse::Reschedule(Box::new(again))
            }
            None => {
                cx.stats().inc("session/gave_up");
                let detail = format!("{} sessions were blocked, the last with {status}", request.retries + 1);
                OnResponse::Drop(DropReason::failed("blocked").status(status).detail(detail))
            }
        }
    }

    /// The request again, in a session with another proxy.
    fn with_other_proxy(&self, request: &Request, cx: &Context) -> Option<Request> {
        self.shared.proxies()?.switched(&without_session(request), cx)
    }
}

impl Shared {
    fn pool(&self) -> MutexGuard<'_, Pool> {
        // A panic of the pool would be a fault of this crate; what it holds can be used all the same.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the pool of proxies, at the first request.
    fn meet(&self, cx: &Context) {
        self.proxies.get_or_init(|| cx.component());
    }

    fn proxies(&self) -> Option<&Arc<ProxyPool>> {
        self.proxies.get()?.as_ref()
    }

    /// Ends a session. Returns whether it was there.
    fn retire(&self, name: &str, why: Retired, cx: &Context) -> bool {
        let (was_there, changes) = {
            let mut pool = self.pool();
            (pool.retire(name, why), pool.take_changes())
        };
        self.tell(changes, cx);
        was_there
    }

    fn bad(&self, name: &str, cx: &Context) {
        let changes = {
            let mut pool = self.pool();
            pool.bad(name);
            pool.take_changes()
        };
        self.tell(changes, cx);
    }

    /// Counts what happened to sessions, and tells that the cookie jars of those that ended are not used again.
    fn tell(&self, changes: Vec<Change>, cx: &Context) {
        for change in changes {
            match change {
                Change::Created => cx.stats().inc("session/created"),
                Change::ProxyChanged => cx.stats().inc("session/proxy_changed"),
                Change::Retired(name, why) => {
                    cx.stats().inc("session/retired");
                    cx.stats().inc(&format!("session/retired/{}", why.name()));
                    cx.emit(&Event::CookieJarEnded { name: &jar_name(&name) });
                    if why == Retired::Evicted && !self.has_warned.swap(true, Ordering::Relaxed) {
                        log::warn!(
                            session = %name,
                            "there are more named sessions than session_max_named: the one that was not used for longest ended; \
                             further ones are counted, not logged"
                        );
                    }
                }
            }
        }
    }
    /// Gives a request the cookies, the headers and the proxy of its session.
    fn dress(&self, request: &mut Request, loan: Loan, is_setup: bool) {
        if let Some(headers) = self.headers.get(loan.headers) {
            for (name, value) in headers {
                if !request.headers.contains_key(name) || added::is_ours(request, name) {
                    added::set(request, name.clone(), value.clone());
                }
            }
        }
        if let Some(proxy) = &loan.proxy
            && let Some(index) = self.proxies().and_then(|pool| pool.find(proxy))
        {
            request.extensions.insert(BoundProxy(index));
        }
        added::set_meta(request, meta::COOKIEJAR, Value::from(jar_name(&loan.name)));
        request.extensions.insert(InSession { name: loan.name.as_str().into(), is_setup });
        // It stays with the request: redirects and retries go on in the session.
        request.set_meta(meta::SESSION, loan.name);
    }
}

/// The cookie jar of a session.
fn jar_name(session: &str) -> String {
    format!("session {session}")
}

/// Checks one set of headers. Credentials are refused, because a session sends its headers to every host.
fn header_set(set: usize, headers: &BTreeMap<String, String>) -> Result<Vec<(HeaderName, HeaderValue)>> {
    let read = |(name, value): (&String, &String)| {
        let wrong = |what: &str| {
            let name = name.escape_debug();
            Error::usage(format!(
                "setting session_headers, set {}: {what} of \"{name}\" is not allowed in HTTP",
                set + 1
            ))
        };
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("the name"))?;
        if is_secret_name(&key) {
            return Err(Error::usage(format!(
                "setting session_headers, set {}: {key} would go to every host; log in with SessionRules::on_new_session, or see http_auth \
                 and secret_headers",
                set + 1
            )));
        }
        Ok((key, HeaderValue::from_str(value).map_err(|_| wrong("the value"))?))
    };
    headers.iter().map(read).collect()
}

/// The pool of proxies as sessions see it.
struct PoolProxies<'a> {
    pool: &'a ProxyPool,
    cx: &'a Context,
}

impl Proxies for PoolProxies<'_> {
    fn has(&self, name: &str) -> bool {
        self.pool.find(name).is_some()
    }

    fn is_usable(&self, name: &str) -> bool {
        self.pool.find(name).is_some_and(|index| self.pool.is_usable(index, self.cx))
    }

    fn choose(&self, sessions_of: &dyn Fn(&str) -> usize) -> String {
        self.pool.for_session(sessions_of, self.cx)
    }
}

/// Ends the setting up of a session, even if its request is dropped or panics.
struct SetupGuard<'a> {
    shared: &'a Shared,
    cx: &'a Context,
    name: &'a str,
    end: SetupEnd,
}

impl Drop for SetupGuard<'_> {
    fn drop(&mut self) {
        let changes = {
            let mut pool = self.shared.pool();
            pool.set_up(self.name, self.end);
            pool.take_changes()
        };
        self.shared.tell(changes, self.cx);
        self.shared.ready.notify_waiters();
    }
}

impl Component for Sessions {
    const NAME: &'static str = "sessions";
    type Settings = SessionsSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        // Behind HttpCompression, so that a rule reads decoded bodies, and before Retry, which would retry a block in the same session.
        hooks.downloader(585).spider(700).persist()
    }
}

impl DownloaderMiddleware for Sessions {
    async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
        request.extensions.remove::<InSession>();
        request.extensions.remove::<BoundProxy>();
        self.shared.meet(cx);
        if let Some(SettingUp(loan)) = request.extensions.get::<SettingUp>().cloned() {
            self.shared.dress(request, loan, true);
            return Ok(OnRequest::Continue);
        }
        let is_outside = request.meta_flag(meta::DONT_USE_SESSION)
            || request.meta_flag(meta::IS_ROBOTS_TXT)
            || request.has_meta(meta::COOKIEJAR) && !request.has_meta(meta::SESSION);
        if is_outside {
            return Ok(OnRequest::Continue);
        }
        let mut has_waited = false;
        loop {
            let ready = self.shared.ready.notified();
            match self.grant(request, cx) {
                Grant::Use(loan) => {
                    self.shared.dress(request, loan, false);
                    return Ok(OnRequest::Continue);
                }
                Grant::SetUp(loan) => {
                    request.set_meta(meta::SESSION, loan.name.clone());
                    if let Some(decision) = self.set_up(request, loan, cx).await {
                        return Ok(decision);
                    }
                }
                // The request stays in the queue of a job.
                Grant::Wait if cx.is_stopping() => {
                    return Ok(OnRequest::drop(FetchErrorKind::Cancelled.name()));
                }
                Grant::Wait if has_waited => {
                    let mut again = request.clone();
                    added::strip(&mut again);
                    chain::set_unfiltered(&mut again, Self::NAME);
                    return Ok(OnRequest::Reschedule(Box::new(again)));
                }
                Grant::Wait => {
                    has_waited = true;
                    // After this time the request asks once more, and then gives its place up.
                    let _ = tokio::time::timeout(LOOK, ready).await;
                }
            }
        }
    }

    async fn process_response(
        &self,
        request: &Request,
        response: &mut Response,
        cx: &Context,
    ) -> Result<OnResponse> {
        let Some(InSession { name, is_setup: false }) = request.extensions.get::<InSession>() else {
            return Ok(OnResponse::Continue);
        };
        if !response.has_flag("cached") {
            let status = response.status;
            if status == StatusCode::PROXY_AUTHENTICATION_REQUIRED && proxy_pool::is_through_pool(request) {
                self.shared.bad(name, cx);
                return Ok(match self.with_other_proxy(request, cx) {
                    Some(again) => OnResponse::Reschedule(Box::new(again)),
                    None => OnResponse::Drop(proxy_pool::refused(status)),
                });
            }
            let by_status =
                self.blocked_codes.contains(&status.as_u16()) && !status::is_handled(request, status);
            let by_rule = || self.rules.is_blocked.as_ref().is_some_and(|is_blocked| is_blocked(response));
            if by_status || by_rule() {
                return Ok(self.blocked(request, name, status, cx));
            }
            let is_there = {
                let mut pool = self.shared.pool();
                if !status.is_server_error() {
                    pool.good(name);
                }
                pool.has(name)
            };
            if !is_there {
                // The session ended while the request was under way, and the response has put cookies into its jar again.
                cx.emit(&Event::CookieJarEnded { name: &jar_name(name) });
            }
        }
        let attached = Attached { name: Arc::clone(name), shared: Arc::clone(&self.shared), cx: cx.clone() };
        response.extensions.insert(attached);
        Ok(OnResponse::Continue)
    }

    async fn process_exception(
        &self,
        request: &Request,
        error: &FetchError,
        cx: &Context,
    ) -> Result<OnException> {
        let Some(InSession { name, is_setup: false }) = request.extensions.get::<InSession>() else {
            return Ok(OnException::Pass);
        };
        // A site that cannot be reached is not the fault of the session.
        if !error.is_transient() || error.is_host_failure() {
            return Ok(OnException::Pass);
        }
        self.shared.bad(name, cx);
        if error.proxy_fault() == ProxyFault::Certain && proxy_pool::is_through_pool(request) {
            let again = self.with_other_proxy(request, cx);
            return Ok(again.map_or(OnException::Pass, |again| OnException::Reschedule(Box::new(again))));
        }
        let moved = without_session(request);
        let is_worth_it = retry::may_retry(&moved, cx)
            && retry::retries_left(&moved, cx) > 0
            && retry::is_repeatable(&moved, error, cx);
        let again = match is_worth_it {
            true => retry::retry_copy(&moved, error.kind().name(), Duration::ZERO, cx),
            false => None,
        };
        Ok(again.map_or(OnException::Pass, |again| OnException::Reschedule(Box::new(again))))
    }
}

impl SpiderMiddleware for Sessions {
    fn process_follow(&self, page: &Page, request: &mut Request, _: &Context) -> Result<OnFollow> {
        let is_free = !request.has_meta(meta::SESSION)
            && !request.has_meta(meta::COOKIEJAR)
            && !request.meta_flag(meta::DONT_USE_SESSION);
        let session = page.session();
        if let (true, Some(name)) = (is_free, session.name()) {
            let keeps = match self.sticky {
                SessionSticky::None => false,
                SessionSticky::Forms => request.method != Method::GET || !is_of_pool(name),
                SessionSticky::All => true,
            };
            if keeps {
                request.set_meta(meta::SESSION, name.to_owned());
            }
        }
        Ok(OnFollow::Keep)
    }
}

/// Saves the sessions in the job. Their cookies are saved by the component that keeps cookies.
impl Persist for Sessions {
    fn name(&self) -> String {
        Self::NAME.to_owned()
    }

    fn load(&self, state: Option<&[u8]>) -> Result<()> {
        let Some(state) = state else { return Ok(()) };
        let saved: SavedPool = serde_json::from_slice(state)?;
        let cut = self.shared.pool().resume(saved);
        if let Some(first) = cut.first() {
            log::warn!(
                sessions = cut.len(),
                "the job has more sessions than session_pool_size and session_max_named allow; these are given up, {first} first"
            );
        }
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        let state = serde_json::to_vec(&self.shared.pool().saved())?;
        let hash = xxh3_64(&state);
        let is_new = self.saved.swap(hash, Ordering::Relaxed) != hash;
        Ok(is_new.then_some(state))
    }
}
