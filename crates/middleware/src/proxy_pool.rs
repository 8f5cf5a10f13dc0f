//! ProxyPool: shares the requests among many proxies, and leaves out those that do not work.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use http::StatusCode;
use huntsman_crawler::{
    Component, Context, Counter, DownloaderMiddleware, DropReason, Error, FetchError, FetchErrorKind, Hooks,
    OnException, OnRequest, OnResponse, ProxyFault, Request, Response, Result, Settings, log, meta, seconds,
    settings,
};
use serde::{Deserialize, Serialize};

use crate::proxies::NoProxy;
use crate::{HttpProxySettings, added, chain};

mod health;
mod list;

use health::{Choice, Chosen, Health, HealthRules};

settings! {
    /// Settings of [`ProxyPool`].
    pub struct ProxyPoolSettings {
        /// Proxies among which the requests are shared: http, https, socks5 or socks5h URLs with user and password, or
        /// host:port:user:password, each optionally followed by weight=N.
        proxy_pool: Vec<String> = Vec::new(), secret;
        /// File with more proxies for the pool: one a line, as in proxy_pool; lines that begin with # are comments.
        proxy_pool_file: Option<PathBuf> = None;
        /// Which proxy of the pool a request gets: host (always the same for a host, while it works) or request (each
        /// request another).
        proxy_choice: ProxyChoice = ProxyChoice::Host;
        /// Seconds for which a proxy that failed is not used. They double with each further failure.
        proxy_backoff_base: f64 = 10.0;
        /// Maximum number of seconds for which a proxy that failed is not used.
        proxy_backoff_max: f64 = 1800.0;
        /// Maximum number of seconds that requests wait if no proxy of the pool works; then they fail.
        proxy_max_wait: f64 = 300.0;
    }
}

/// Which proxy of a pool a request gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProxyChoice {
    /// All requests to a host get the same one, so that the host sees one visitor. If the proxy fails, its hosts use others until it works
    /// again.
    #[default]
    Host,
    /// Each request gets the next one.
    Request,
}

/// How often a request is sent again because a proxy refused it. Each time a proxy goes out, so this bounds only unusual pools.
const MAX_SWITCHES: usize = 20;
/// How often a request that waits for a proxy looks whether the crawl is stopping.
const LOOK: Duration = Duration::from_secs(1);

/// Shares the requests among the proxies of `proxy_pool` and `proxy_pool_file`, by host or in turn (`proxy_choice`).
///
/// A proxy that cannot be reached or refuses the crawl (407) is out for `proxy_backoff_base` seconds, doubled with each failure, and is then tried
/// by one request. The request that met the failure did not reach its site, so it goes to another proxy at once and is not counted as a retry.
/// If nothing comes through a proxy in time, either the proxy or the site may be at fault: the request is retried through another proxy, and
/// only if that one succeeds, three times, the first is out. So a dead site takes no proxy out, and a dead proxy does not count against a host.
///
/// If all proxies are out, requests wait for up to `proxy_max_wait` seconds, and then fail with reason `proxy`; the detail names the number
/// of proxies and the last error. A waiting request keeps its place among those in flight.
///
/// A request's own meta `proxy` wins, and hosts in `no_proxy` are reached directly. Delays, robots.txt and all other politeness stay per host,
/// whatever the number of proxies. Proxies are named by host and port; users and passwords are in no log, record or report. Health is not kept
/// in the job: a restart is a new chance.
///
/// ```
/// use huntsman_crawler::{CrawlerBuilder, Output, Page, Result, spider_fn};
/// use huntsman_middleware::Defaults;
///
/// let spider = spider_fn(["https://site.example/"], |_: &Page, _: &mut Output<()>| -> Result<()> { Ok(()) });
/// let crawl = CrawlerBuilder::new(spider)
///     .plugin(Defaults)
///     .set("proxy_pool", vec!["http://ann:secret@p1.example:3128", "socks5h://p2.example weight=3"])
///     .set("proxy_choice", "request");
/// ```
#[derive(Debug)]
#[doc(alias = "ROTATING_PROXY_LIST")]
pub struct ProxyPool {
    health: Mutex<Health>,
    /// The place of each proxy in the pool, by name.
    names: HashMap<String, usize>,
    choice: ProxyChoice,
    direct: NoProxy,
    sent: OnceLock<Counter>,
}

/// A proxy of a [`ProxyPool`], as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyStatus {
    /// Host and port, with a number behind `#` if another proxy of the pool has the same.
    pub name: String,
    /// Requests that were given to it.
    pub requests: u64,
    /// Failures that are, or may be, its fault.
    pub failures: u64,
    /// Whether it is out of order.
    pub is_out: bool,
    /// The last failure in a sentence.
    pub last_error: Option<String>,
}

/// The proxy that a session has; set on its requests, in their extensions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundProxy(pub(crate) usize);

/// The proxy that a request was given, in its extensions.
#[derive(Clone, Copy, Debug)]
struct Through(Chosen);

impl ProxyPool {
    /// Creates the component from the settings; `None` if they name no proxies.
    ///
    /// # Errors
    /// An entry is not the address of a proxy, the file cannot be read, or the setting `proxy` is there, too. The message does not repeat
    /// addresses, because they may contain passwords.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: ProxyPoolSettings = settings.of()?;
        let listed = list::read(&own.proxy_pool, own.proxy_pool_file.as_deref())?;
        if listed.is_empty() {
            return Ok(None);
        }
        let single: HttpProxySettings = settings.of_or_default();
        if single.proxy.is_some_and(|proxy| !proxy.trim().is_empty()) {
            return Err(Error::usage(
                "settings proxy and proxy_pool: give one proxy, or a pool, and not both",
            ));
        }
        for (name, value) in
            [("proxy_backoff_base", own.proxy_backoff_base), ("proxy_backoff_max", own.proxy_backoff_max)]
        {
            if !(value.is_finite() && value > 0.0) {
                return Err(Error::usage(format!("setting {name} = {value}: give seconds above 0")));
            }
        }
        let rules = HealthRules {
            backoff: seconds(own.proxy_backoff_base),
            max_backoff: seconds(own.proxy_backoff_max.max(own.proxy_backoff_base)),
            max_wait: seconds(own.proxy_max_wait),
        };
        let names = listed.iter().enumerate().map(|(index, proxy)| (proxy.name.clone(), index)).collect();
        Ok(Some(Self {
            names,
            health: Mutex::new(Health::new(listed, rules)),
            choice: own.proxy_choice,
            direct: NoProxy::from_settings(settings, |name| std::env::var(name).ok()),
            sent: OnceLock::new(),
        }))
    }

    /// The proxies in the order of the settings, those of the file last.
    pub fn proxies(&self) -> Vec<ProxyStatus> {
        let health = self.lock();
        let status = |member: &health::Member| ProxyStatus {
            name: member.listed.name.clone(),
            requests: member.requests,
            failures: member.failures,
            is_out: member.is_out(),
            last_error: member.last_error.clone(),
        };
        health.members.iter().map(status).collect()
    }

    /// The proxy of this name; `None` if the pool has none.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// Whether a proxy works or may be tried again.
    pub(crate) fn is_usable(&self, index: usize, cx: &Context) -> bool {
        self.lock().is_usable(index, cx.now())
    }

    /// The name of the proxy that a new session gets: of those that work, the one with the fewest sessions for its weight. If none
    /// works, it is chosen among all.
    pub(crate) fn for_session(&self, sessions_of: impl Fn(&str) -> usize, cx: &Context) -> String {
        let health = self.lock();
        let load = |member: &health::Member| {
            (sessions_of(&member.listed.name) + 1) as f64 / f64::from(member.listed.weight)
        };
        let all = 0..health.members.len();
        let usable: Vec<usize> = all.clone().filter(|index| health.is_usable(*index, cx.now())).collect();
        let among = if usable.is_empty() { all.collect() } else { usable };
        let best =
            among.into_iter().min_by(|a, b| load(&health.members[*a]).total_cmp(&load(&health.members[*b])));
        let best = best.expect("a pool has at least one proxy");
        health.members[best].listed.name.clone()
    }

    /// The request again, for another proxy, after one failed for certain. `None` if that was done often enough.
    pub(crate) fn switched(&self, request: &Request, cx: &Context) -> Option<Request> {
        if self.lock().failures_of(request.fingerprint()) > MAX_SWITCHES {
            return None;
        }
        let mut again = request.clone();
        added::strip(&mut again);
        chain::set_unfiltered(&mut again, Self::NAME);
        cx.stats().inc("proxy/switched");
        Some(again)
    }

    fn lock(&self) -> MutexGuard<'_, Health> {
        // Nothing that can panic is done with the lock.
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A proxy failed for certain.
    fn failed(&self, through: Through, request: &Request, error: &str, cx: &Context) {
        let mut health = self.lock();
        let out = health.failed(through.0, request.fingerprint(), error.to_owned(), cx.now());
        if let Some(wait) = out {
            self.tell_out(&health, through.0.index, wait, cx);
        }
    }

    /// Tells that a proxy is out from now on.
    fn tell_out(&self, health: &Health, index: usize, wait: Duration, cx: &Context) {
        let member = &health.members[index];
        let error = member.last_error.as_deref().unwrap_or_default();
        let name = &member.listed.name;
        log::warn!(proxy = %name, retry_in = ?wait, "the proxy is out of order: {}", error.escape_debug());
        cx.stats().inc("proxy/taken_out");
        self.count_out(health, cx);
    }

    fn count_out(&self, health: &Health, cx: &Context) {
        let out = health.members.iter().filter(|member| member.is_out()).count();
        cx.stats().counter("proxy/out").set(i64::try_from(out).unwrap_or(i64::MAX));
    }
}

impl Component for ProxyPool {
    const NAME: &'static str = "proxy_pool";
    type Settings = ProxyPoolSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        // Right before HttpProxy, which leaves a request alone that has a proxy.
        hooks.downloader(745)
    }
}

impl DownloaderMiddleware for ProxyPool {
    async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
        request.extensions.remove::<Through>();
        let bound = request.extensions.get::<BoundProxy>().copied();
        if request.has_meta(meta::PROXY) || self.direct.matches(&request.url) {
            return Ok(OnRequest::Continue);
        }
        let (host, fingerprint) = (request.host(), request.fingerprint());
        let mut has_waited = false;
        loop {
            let now = cx.now();
            let choice = {
                let mut health = self.lock();
                let choice = match bound {
                    Some(BoundProxy(index)) => health.choose_fixed(index, now),
                    None => health.choose(self.choice, host.as_str(), fingerprint, now),
                };
                if let Choice::Use(chosen) = choice {
                    request.extensions.insert(Through(chosen));
                    added::set_meta(request, meta::PROXY, health.members[chosen.index].listed.url.clone());
                }
                choice
            };
            match choice {
                Choice::Use(_) => {
                    self.sent.get_or_init(|| cx.stats().counter("proxy/requests")).inc();
                    return Ok(OnRequest::Continue);
                }
                // The request stays in the queue of a job.
                Choice::Wait(_) if cx.is_stopping() => {
                    return Ok(OnRequest::drop(FetchErrorKind::Cancelled.name()));
                }
                Choice::Wait(until) => {
                    if !has_waited {
                        cx.stats().inc("proxy/waited");
                    }
                    has_waited = true;
                    tokio::time::sleep(until.since(now).clamp(Duration::from_millis(1), LOOK)).await;
                }
                Choice::Exhausted(why) => {
                    cx.stats().inc("proxy/none_left");
                    let reason = DropReason::failed(FetchErrorKind::Proxy.name()).detail(why);
                    return Ok(OnRequest::Drop(reason));
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
        let Some(through) = request.extensions.get::<Through>().copied() else {
            return Ok(OnResponse::Continue);
        };
        if response.has_flag("cached") {
            return Ok(OnResponse::Continue);
        }
        match response.status {
            StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                cx.stats().inc("proxy/failures/407");
                let what = "it refused the credentials of the crawl, or wants some (407)";
                self.failed(through, request, what, cx);
                if request.extensions.get::<BoundProxy>().is_some() {
                    // The session decides.
                    return Ok(OnResponse::Continue);
                }
                Ok(match self.switched(request, cx) {
                    Some(again) => OnResponse::Reschedule(Box::new(again)),
                    None => OnResponse::Drop(refused(response.status)),
                })
            }
            // Proxies answer so, too, if they cannot reach a site.
            status @ (StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT) => {
                self.lock().maybe_failed(through.0, request.fingerprint(), format!("status {status}"));
                Ok(OnResponse::Continue)
            }
            _ => {
                let mut health = self.lock();
                let (out, is_back) = health.succeeded(through.0, request.fingerprint(), cx.now());
                for index in out {
                    let wait = health.out_for(index);
                    self.tell_out(&health, index, wait, cx);
                }
                if is_back {
                    let name = &health.members[through.0.index].listed.name;
                    log::info!(proxy = %name, "the proxy works again");
                    cx.stats().inc("proxy/recovered");
                    self.count_out(&health, cx);
                }
                Ok(OnResponse::Continue)
            }
        }
    }

    async fn process_exception(
        &self,
        request: &Request,
        error: &FetchError,
        cx: &Context,
    ) -> Result<OnException> {
        let Some(through) = request.extensions.get::<Through>().copied() else {
            return Ok(OnException::Pass);
        };
        match error.proxy_fault() {
            ProxyFault::None => Ok(OnException::Pass),
            ProxyFault::Possible => {
                cx.stats().inc(&format!("proxy/possible_failures/{}", error.kind().name()));
                self.lock().maybe_failed(through.0, request.fingerprint(), error.to_string());
                Ok(OnException::Pass)
            }
            ProxyFault::Certain => {
                cx.stats().inc(&format!("proxy/failures/{}", error.kind().name()));
                self.failed(through, request, &error.to_string(), cx);
                if request.extensions.get::<BoundProxy>().is_some() {
                    return Ok(OnException::Pass);
                }
                let again = self.switched(request, cx);
                Ok(again.map_or(OnException::Pass, |again| OnException::Reschedule(Box::new(again))))
            }
        }
    }
}

/// The reason of a request that proxies refused too often.
pub(crate) fn refused(status: StatusCode) -> DropReason {
    let detail = "the proxies refused the credentials of the crawl, or want some";
    DropReason::failed(FetchErrorKind::Proxy.name()).status(status).detail(detail)
}

/// Whether a request was given a proxy of the pool.
pub(crate) fn is_through_pool(request: &Request) -> bool {
    request.extensions.get::<Through>().is_some()
}
