//! Redirect: turns 301, 302, 303, 307 and 308 into new requests, which pass all filters again.

use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use huntsman_crawler::meta::MetaKey;
use huntsman_crawler::referrer::{ReferrerPolicy, referrer};
use huntsman_crawler::{
    Component, Context, DownloaderMiddleware, DropReason, Hooks, OnResponse, Request, Response, Result,
    Settings, meta, redact, settings,
};
use huntsman_text::urlparts::CanonicalOptions;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use crate::chain::CookiesChanged;
use crate::origin::same_origin;
use crate::{added, chain, status};

settings! {
    /// Settings of [`Redirect`].
    pub struct RedirectSettings {
        /// Follows redirects.
        redirect_enabled: bool = true;
        /// Maximum length of a chain of redirects, meta refreshes included.
        redirect_max_times: u32 = 20, audit = 10, broad = 10, test = 10;
        /// Number that is added to the priority of a redirected request.
        redirect_priority_adjust: i32 = 2;
        /// What happens if a redirect leads to a URL that was requested before: drop or deliver (fetch it again).
        redirect_dupe: RedirectDupe = RedirectDupe::Drop;
    }
}

/// What happens to a redirect to a URL that was requested already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedirectDupe {
    /// The request ends with reason `duplicate`.
    #[default]
    Drop,
    /// The target is fetched again and delivered.
    Deliver,
}

/// Follows redirects by status code.
///
/// The target is queued in place of the request: it keeps the callback, meta, depth and what the spider set, and is
/// subject to scope, robots.txt, the slot of its host and the duplicate filter. 301 and 302 turn POST into GET, 303
/// turns every method but GET and HEAD into GET; 307 and 308 keep method and body, but a body is not sent to another
/// origin (reason `redirect_body`). Credentials are sent only to their own origin. A broken `Location` fails the
/// request as `bad_redirect`, a URL that repeats with the same cookies as `redirect_loop`, a chain beyond
/// `redirect_max_times` as `max_redirects`. If the target is not an http or https URL, or the request has
/// `dont_redirect`, `handle_httpstatus_list` or `handle_httpstatus_all`, the response itself is passed on.
///
/// The chain is in the request's meta: `redirect_urls`, `redirect_reasons`, `redirect_times`. Meta `redirect_ttl`
/// limits the number of redirects that one request may still follow.
#[derive(Debug)]
pub struct Redirect {
    follower: Follower,
}

impl Redirect {
    /// Creates the component from the settings; `None` if `redirect_enabled` is off.
    ///
    /// # Errors
    /// `referrer_policy` is not a valid policy.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: RedirectSettings = settings.of()?;
        if !own.redirect_enabled {
            return Ok(None);
        }
        Ok(Some(Self { follower: Follower::from_settings(settings)? }))
    }
}

impl Component for Redirect {
    const NAME: &'static str = "redirect";
    type Settings = RedirectSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.downloader(600)
    }
}

impl DownloaderMiddleware for Redirect {
    async fn process_response(
        &self,
        request: &Request,
        response: &mut Response,
        cx: &Context,
    ) -> Result<OnResponse> {
        let status = response.status;
        if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
            || request.meta_flag(meta::DONT_REDIRECT)
            || status::is_handled(request, status)
        {
            return Ok(OnResponse::Continue);
        }
        let Some(location) = response.headers.get(header::LOCATION) else { return Ok(OnResponse::Continue) };
        let target = match redirect_target(&request.url, location.as_bytes()) {
            Ok(target) => target,
            Err(why) => {
                cx.stats().inc("redirect/bad_location");
                return Ok(OnResponse::Drop(DropReason::failed("bad_redirect").status(status).detail(why)));
            }
        };
        if !matches!(target.scheme(), "http" | "https") {
            return Ok(OnResponse::Continue);
        }
        let step = Step {
            target,
            method: method_after(&request.method, status),
            reason: status.as_u16().into(),
            response,
        };
        Ok(match self.follower.next(request, step, cx) {
            Ok(next) => OnResponse::Reschedule(next),
            Err(reason) => OnResponse::Drop(reason),
        })
    }
}

/// The URL that a `Location` header refers to. Bytes beyond ASCII are percent-encoded as they are, because sites send
/// raw UTF-8.
///
/// # Errors
/// It is empty or no URL; the error says so.
pub fn redirect_target(base: &Url, location: &[u8]) -> Result<Url, String> {
    let encoded: String = location
        .iter()
        .map(|&byte| if byte.is_ascii() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    let shown = || encoded.chars().take(200).collect::<String>().escape_debug().to_string();
    if encoded.trim().is_empty() {
        return Err("the Location is empty".to_owned());
    }
    let mut target =
        base.join(encoded.trim()).map_err(|cause| format!("Location \"{}\": {cause}", shown()))?;
    if target.fragment().is_none() {
        target.set_fragment(base.fragment());
    }
    Ok(target)
}

fn method_after(method: &Method, status: StatusCode) -> Method {
    match status.as_u16() {
        301 | 302 if *method == Method::POST => Method::GET,
        303 if *method != Method::GET && *method != Method::HEAD => Method::GET,
        _ => method.clone(),
    }
}

/// One redirect: a response, and its target.
#[derive(Debug)]
pub(crate) struct Step<'a> {
    pub(crate) target: Url,
    pub(crate) method: Method,
    /// The status, or `meta refresh`.
    pub(crate) reason: Value,
    pub(crate) response: &'a Response,
}

/// Makes the next request of a chain; shared by redirects and meta refreshes, which count together.
#[derive(Debug)]
pub(crate) struct Follower {
    max: usize,
    adjust: i32,
    deliver_dupes: bool,
    canonical: CanonicalOptions,
    policy: ReferrerPolicy,
}

/// The reason for which redirects after a form was sent pass the duplicate filter, up to the page that is shown.
const ANSWER: &str = "answer to a form";

/// Headers that describe a body.
const BODY_HEADERS: [HeaderName; 6] = [
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LOCATION,
    header::TRANSFER_ENCODING,
];

impl Follower {
    pub(crate) fn from_settings(settings: &Settings) -> Result<Self> {
        let own: RedirectSettings = settings.of()?;
        Ok(Self {
            max: own.redirect_max_times as usize,
            adjust: own.redirect_priority_adjust,
            deliver_dupes: own.redirect_dupe == RedirectDupe::Deliver,
            // URLs are compared as the frontier does: a target that differs only in a stripped parameter is the same.
            canonical: CanonicalOptions {
                strip_params: settings.strip_query_params.clone(),
                strip_path_params: settings.strip_path_params,
                ..CanonicalOptions::default()
            },
            policy: crate::referer::policy_setting(settings)?,
        })
    }

    /// The request for the target, or the reason why the chain ends here.
    pub(crate) fn next(
        &self,
        request: &Request,
        step: Step<'_>,
        cx: &Context,
    ) -> Result<Box<Request>, DropReason> {
        let Step { mut target, method, reason, response } = step;
        let status = response.status;
        let hops = chain::hops(request);
        let fail = |reason: &'static str, detail: String| {
            cx.stats().inc(&format!("redirect/{reason}"));
            Err(DropReason::failed(reason).status(status).detail(detail))
        };
        let since = self.comparable_since(request, response, method != request.method, hops);
        if self.visited(request, &target).is_some_and(|last| last >= since) {
            return fail("redirect_loop", format!("after {} hops back to {target}", hops + 1));
        }
        let ttl = request.meta_value(meta::REDIRECT_TTL);
        if hops >= self.max || ttl == Some(0) {
            return fail("max_redirects", format!("stopped after {hops} hops at a redirect to {target}"));
        }
        let elsewhere = !same_origin(&request.url, &target);
        if elsewhere && !request.body.is_empty() && method == request.method {
            return fail("redirect_body", format!("the body is not sent again to another origin: {target}"));
        }

        // What is shown after a form was sent is the answer to it, even if the same address was read before: the page after a login, or the form
        // with an error.
        let is_answer =
            method != request.method || request.meta_value(meta::UNFILTERED_BY).as_deref() == Some(ANSWER);
        let mut next = request.clone();
        added::strip(&mut next);
        if elsewhere {
            added::drop_credentials(&mut next);
        }
        if method != next.method {
            next.body = bytes::Bytes::new();
            for name in BODY_HEADERS {
                next.headers.remove(name);
            }
            next.method = method;
        }
        // They are already in the jar of the first host; sending them to another host would leak them.
        next.clear_cookies();
        self.set_referer(&mut next, request, response, &target);

        let came_before = self.same_request(request, &target);
        chain::clear_unfiltered(&mut next);
        if is_answer {
            chain::set_unfiltered(&mut next, ANSWER);
        } else if self.deliver_dupes || came_before {
            chain::set_unfiltered(&mut next, Redirect::NAME);
        }
        if target.fragment().is_none() {
            target.set_fragment(request.url.fragment());
        }
        redact(&mut target);
        next.url = target;
        next.unassign();
        next.not_before = None;
        next.priority = next.priority.saturating_add(self.adjust);
        next.remove_meta(meta::PARKED_REASON);
        push(&mut next, meta::REDIRECT_URLS, request.url.as_str().into());
        push(&mut next, meta::REDIRECT_REASONS, reason);
        next.set_meta(meta::REDIRECT_TIMES, hops as u64 + 1);
        if since > 0 {
            next.set_meta(meta::REDIRECT_SINCE, since as u64);
        }
        if let Some(ttl) = ttl {
            next.set_meta(meta::REDIRECT_TTL, ttl - 1);
        }
        cx.stats().inc("redirect/count");
        Ok(Box::new(next))
    }

    /// The hop from which on a repeated URL means a loop. A login form that is posted to and shown again is not a loop,
    /// nor is a page that sets a cookie and redirects to itself.
    fn comparable_since(
        &self,
        request: &Request,
        response: &Response,
        other_method: bool,
        hops: usize,
    ) -> usize {
        let before = request.meta_value(meta::REDIRECT_SINCE).unwrap_or(0);
        let changed = response.extensions.get::<CookiesChanged>().is_some();
        if changed || other_method { hops + 1 } else { usize::try_from(before).unwrap_or(usize::MAX) }
    }

    /// The last hop at which exactly this URL was requested; the present request counts.
    fn visited(&self, request: &Request, target: &Url) -> Option<usize> {
        let wanted = &target[..url::Position::AfterQuery];
        if &request.url[..url::Position::AfterQuery] == wanted {
            return Some(chain::hops(request));
        }
        let before: Vec<&str> = chain::urls(request).collect();
        before.iter().rposition(|url| url.split('#').next() == Some(wanted))
    }

    /// Whether the duplicate filter would treat the target as equal to a request of this chain.
    fn same_request(&self, request: &Request, target: &Url) -> bool {
        let wanted = self.canonical.canonical(target);
        let chain = chain::urls(request).filter_map(|url| Url::parse(url).ok());
        std::iter::once(request.url.clone()).chain(chain).any(|url| self.canonical.canonical(&url) == wanted)
    }

    /// Sets the `Referer` of the next hop by the policy. It is derived from the `Referer` of this hop, so a chain never
    /// reveals more than its first request did. The value belongs to the request itself, and is not derived again from
    /// the URL of the page.
    fn set_referer(&self, next: &mut Request, request: &Request, response: &Response, target: &Url) {
        let told = request.headers.get(header::REFERER);
        let policy = crate::referer::policy_after(request, response, self.policy);
        let value = told
            .and_then(|told| Url::parse(told.to_str().ok()?).ok())
            .and_then(|from| referrer(policy, &from, target))
            .and_then(|value| HeaderValue::try_from(value).ok());
        match value {
            Some(value) => drop(next.headers.insert(header::REFERER, value)),
            None => {
                next.headers.remove(header::REFERER);
                // A request that did not come from a page has no referrer.
                if next.referer.is_some() {
                    let none = ReferrerPolicy::NoReferrer.name();
                    next.set_meta(meta::REFERRER_POLICY, none.to_owned());
                }
            }
        }
    }
}

fn push<T>(request: &mut Request, key: MetaKey<T>, value: Value) {
    match request.meta.get_mut(key.name()) {
        Some(Value::Array(list)) => list.push(value),
        _ => drop(request.meta.insert(key.name().to_owned(), Value::Array(vec![value]))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cx(change: impl FnOnce(&mut Settings)) -> Context {
        let mut settings = Settings::default();
        change(&mut settings);
        Context::detached(settings)
    }

    fn request(url: &str) -> Request {
        Request::parse(url).unwrap()
    }

    fn answer(request: &Request, status: u16, location: &[u8]) -> Response {
        let mut response = Response::new(request.url.clone(), StatusCode::from_u16(status).unwrap(), "");
        response.headers.insert("location", HeaderValue::from_bytes(location).unwrap());
        response
    }

    async fn respond(cx: &Context, request: &Request, mut response: Response) -> OnResponse {
        let redirect = Redirect::from_settings(cx.settings()).unwrap().unwrap();
        redirect.process_response(request, &mut response, cx).await.unwrap()
    }

    async fn redirect(cx: &Context, request: &Request, status: u16, location: &str) -> Request {
        match respond(cx, request, answer(request, status, location.as_bytes())).await {
            OnResponse::Reschedule(next) => *next,
            other => panic!("{status} to {location}: {other:?}"),
        }
    }

    async fn ended(cx: &Context, request: &Request, status: u16, location: &[u8]) -> String {
        match respond(cx, request, answer(request, status, location)).await {
            OnResponse::Drop(reason) => reason.reason.into_owned(),
            OnResponse::Continue => "passed".to_owned(),
            OnResponse::Reschedule(next) => next.url.into(),
        }
    }

    #[tokio::test]
    async fn addresses_are_resolved_as_browsers_do() {
        let cx = cx(|_| {});
        for (from, location, to) in [
            ("http://h/a/b?c", &b"d?e"[..], "http://h/a/d?e"),
            ("https://h/a", b"//g/x", "https://g/x"),
            ("http://h/a", b"HTTP://G:80/x", "http://g/x"),
            ("http://h/a#f", b"/b", "http://h/b#f"),
            ("http://h/a#f", b"/b#g", "http://h/b#g"),
            ("http://h/a", "/caf\u{e9}?q=\u{20ac}".as_bytes(), "http://h/caf%C3%A9?q=%E2%82%AC"),
            ("http://h/a", b"/caf\xe9", "http://h/caf%E9"),
            ("http://h/a", b"  /b c ", "http://h/b%20c"),
            ("http://h/a", b"http://[::1", "bad_redirect"),
            ("http://h/a", b"http://", "bad_redirect"),
            ("http://h/a", b"http://a b/", "bad_redirect"),
            ("http://h/a", b"http://h:99999/", "bad_redirect"),
            ("http://h/a", b"", "bad_redirect"),
            ("http://h/a", b"mailto:a@b", "passed"),
            ("http://h/a", b"file:///etc/passwd", "passed"),
            ("http://h/a", b"javascript:alert(1)", "passed"),
        ] {
            let shown = String::from_utf8_lossy(location);
            assert_eq!(ended(&cx, &request(from), 302, location).await, to, "{from} -> {shown}");
        }
    }

    #[tokio::test]
    async fn methods_follow_the_status() {
        let cx = cx(|_| {});
        for (method, status, after) in [
            (Method::POST, 301, Method::GET),
            (Method::POST, 302, Method::GET),
            (Method::POST, 303, Method::GET),
            (Method::PUT, 302, Method::PUT),
            (Method::PUT, 303, Method::GET),
            (Method::HEAD, 303, Method::HEAD),
            (Method::HEAD, 301, Method::HEAD),
            (Method::POST, 307, Method::POST),
            (Method::POST, 308, Method::POST),
        ] {
            let mut from = Request::form(Url::parse("http://h/a").unwrap(), [("k", "v")]);
            from.method = method.clone();
            let next = redirect(&cx, &from, status, "/b").await;
            assert_eq!(next.method, after, "{method} {status}");
            let kept = method == after;
            assert_eq!(next.body.is_empty(), !kept, "{method} {status}");
            assert_eq!(next.headers.contains_key("content-type"), kept, "{method} {status}");
        }
    }

    #[tokio::test]
    async fn a_body_does_not_go_to_another_origin() {
        let cx = cx(|_| {});
        let post = Request::form(Url::parse("http://h/a").unwrap(), [("k", "v")]);
        assert_eq!(ended(&cx, &post, 307, b"http://g/").await, "redirect_body");
        assert_eq!(ended(&cx, &post, 308, b"https://h/").await, "redirect_body");
        assert_eq!(ended(&cx, &post, 302, b"http://g/").await, "http://g/");
    }

    #[tokio::test]
    async fn credentials_stay_with_their_origin() {
        let cx = cx(|_| {});
        let mut from = request("https://h/a").meta("secret_headers", json!(["X-Token"]));
        for name in ["authorization", "cookie", "proxy-authorization", "x-token", "x-plain", "x-marked"] {
            let mut value = HeaderValue::from_static("v");
            value.set_sensitive(name == "x-marked");
            from.headers.insert(name, value);
        }
        let from = from.cookie("session", "1");
        let at_home = redirect(&cx, &from, 302, "/b").await;
        assert_eq!(at_home.headers.len(), 6);
        assert!(at_home.cookies().is_empty(), "they are in the jar already");
        for elsewhere in ["http://h/b", "https://h:444/b", "https://g/b"] {
            let next = redirect(&cx, &from, 307, elsewhere).await;
            let names: Vec<_> = next.headers.keys().map(HeaderName::as_str).collect();
            assert_eq!(names, ["x-plain"], "{elsewhere}");
        }
    }

    #[tokio::test]
    async fn what_middlewares_added_is_made_anew() {
        let cx = cx(|_| {});
        let mut from = request("http://h/a").header("X-Mine", "1").unwrap();
        added::set(&mut from, header::AUTHORIZATION, HeaderValue::from_static("Basic x"));
        let next = redirect(&cx, &from, 302, "/b").await;
        assert_eq!(next.headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-mine"]);
    }

    #[tokio::test]
    async fn the_chain_is_recorded_and_limited() {
        let cx = cx(|settings| settings.change(|own: &mut RedirectSettings| own.redirect_max_times = 3));
        let mut now = request("http://h/0").callback("item").meta("mine", 7);
        now.depth = 4;
        now.assign_slot(huntsman_crawler::HostKey::new("other"));
        for hop in 1..=3 {
            now = redirect(&cx, &now, 302, &format!("/{hop}")).await;
        }
        assert_eq!((&*now.callback, now.depth, now.priority), ("item", 4, 6));
        assert_eq!((&now.meta["mine"], &now.meta["redirect_times"]), (&json!(7), &json!(3)));
        assert_eq!(now.meta["redirect_urls"], json!(["http://h/0", "http://h/1", "http://h/2"]));
        assert_eq!(now.meta["redirect_reasons"], json!([302, 302, 302]));
        assert_eq!((now.requested_url(), now.host().as_str()), ("http://h/0", "h"));
        assert_eq!(ended(&cx, &now, 302, b"/4").await, "max_redirects");
        let mut capped = request("http://h/0").with_meta(meta::REDIRECT_TTL, 1);
        capped = redirect(&cx, &capped, 302, "/1").await;
        assert_eq!(ended(&cx, &capped, 302, b"/2").await, "max_redirects");
    }

    #[tokio::test]
    async fn a_loop_with_the_same_cookies_ends_at_once() {
        let cx = cx(|_| {});
        assert_eq!(ended(&cx, &request("http://h/a#x"), 302, b"/a#y").await, "redirect_loop");
        let b = redirect(&cx, &request("http://h/a"), 302, "/b").await;
        let c = redirect(&cx, &b, 302, "/c").await;
        assert_eq!(ended(&cx, &c, 302, b"/b").await, "redirect_loop");
        assert_eq!(ended(&cx, &c, 302, b"/a").await, "redirect_loop");
        assert_eq!(ended(&cx, &c, 302, b"/A").await, "http://h/A");
    }

    #[tokio::test]
    async fn a_new_cookie_lets_an_address_come_again() {
        let cx = cx(|_| {});
        let first = request("http://h/a");
        let mut with_cookie = answer(&first, 302, b"/a");
        with_cookie.extensions.insert(CookiesChanged);
        let OnResponse::Reschedule(again) = respond(&cx, &first, with_cookie).await else { panic!("a loop") };
        assert!(again.unfiltered, "the duplicate filter knows this address");
        assert_eq!(ended(&cx, &again, 302, b"/a").await, "redirect_loop");
        let b = redirect(&cx, &again, 302, "/b").await;
        assert!(!b.unfiltered, "a new target is filtered");
        assert_eq!(ended(&cx, &b, 302, b"/a").await, "redirect_loop");
    }

    #[tokio::test]
    async fn a_form_that_is_shown_again_is_no_loop() {
        let cx = cx(|_| {});
        let post = Request::form(Url::parse("http://h/login").unwrap(), [("user", "u")]);
        let home = redirect(&cx, &post, 303, "/home").await;
        let login = redirect(&cx, &home, 302, "/login").await;
        assert_eq!(login.method, Method::GET);
        assert!(home.unfiltered && login.unfiltered, "they answer the form, also if they were read before");
        assert_eq!(ended(&cx, &login, 302, b"/home").await, "redirect_loop");
    }

    #[tokio::test]
    async fn the_duplicate_filter_is_skipped_within_the_own_chain_only() {
        let strip = cx(|settings| settings.strip_query_params = vec!["sid".to_owned()]);
        let next = redirect(&strip, &request("http://h/a?sid=1"), 302, "/a").await;
        assert!(next.unfiltered, "it has the fingerprint of the request that led to it");
        let plain = cx(|_| {});
        assert!(!redirect(&plain, &request("http://h/a"), 302, "/b").await.unfiltered);
        // A retry skips the duplicate filter, but the target of its redirect must not.
        let mut retried = request("http://h/a");
        chain::set_unfiltered(&mut retried, "retry");
        assert!(!redirect(&plain, &retried, 302, "/b").await.unfiltered);
        assert!(redirect(&plain, &request("http://h/a").unfiltered(), 302, "/b").await.unfiltered);
        let deliver = cx(|settings| {
            settings.change(|own: &mut RedirectSettings| own.redirect_dupe = RedirectDupe::Deliver)
        });
        assert!(redirect(&deliver, &request("http://h/a"), 302, "/b").await.unfiltered);
    }

    #[tokio::test]
    async fn the_request_can_ask_for_the_redirect_itself() {
        let cx = cx(|_| {});
        for asked in [
            request("http://h/").with_meta(meta::DONT_REDIRECT, true),
            request("http://h/").meta("handle_httpstatus_list", json!([302])),
            request("http://h/").with_meta(meta::HANDLE_HTTPSTATUS_ALL, true),
        ] {
            assert_eq!(ended(&cx, &asked, 302, b"/b").await, "passed");
        }
        let mut without = answer(&request("http://h/"), 302, b"/");
        without.headers.clear();
        assert!(matches!(respond(&cx, &request("http://h/"), without).await, OnResponse::Continue));
        assert_eq!(ended(&cx, &request("http://h/"), 304, b"/b").await, "passed");
    }

    #[tokio::test]
    async fn the_referer_is_made_anew_and_never_tells_more() {
        let cx = cx(|_| {});
        let from = request("https://h/a").header("Referer", "https://h/page?q").unwrap();
        let told =
            |next: &Request| next.headers.get("referer").map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(told(&redirect(&cx, &from, 302, "/b").await).as_deref(), Some("https://h/page?q"));
        let away = redirect(&cx, &from, 302, "https://g/b").await;
        assert_eq!(told(&away).as_deref(), Some("https://h/"));
        assert_eq!(told(&redirect(&cx, &away, 302, "https://h/c").await).as_deref(), Some("https://h/"));
        assert_eq!(told(&redirect(&cx, &from, 302, "http://g/b").await), None);
    }

    /// The `Referer` with which the chain sends a request that came from a page.
    async fn sent(cx: &Context, request: &mut Request) -> Option<String> {
        let referer = crate::Referer::from_settings(cx.settings()).unwrap().unwrap();
        DownloaderMiddleware::process_request(&referer, request, cx).await.unwrap();
        request.headers.get("referer").map(|value| value.to_str().unwrap().to_owned())
    }

    #[tokio::test]
    async fn a_followed_link_tells_less_at_each_hop_and_never_more() {
        let cx = cx(|_| {});
        let mut first = request("https://h/a");
        first.referer = Some("https://h/page?q".into());
        assert_eq!(sent(&cx, &mut first).await.as_deref(), Some("https://h/page?q"));
        let mut home = redirect(&cx, &first, 302, "/b").await;
        assert_eq!(sent(&cx, &mut home).await.as_deref(), Some("https://h/page?q"));
        let mut away = redirect(&cx, &home, 302, "https://g/b").await;
        assert_eq!(sent(&cx, &mut away).await.as_deref(), Some("https://h/"));
        let mut back = redirect(&cx, &away, 302, "https://h/c").await;
        assert_eq!(sent(&cx, &mut back).await.as_deref(), Some("https://h/"));
        let mut plain = redirect(&cx, &back, 302, "http://g/d").await;
        assert_eq!(sent(&cx, &mut plain).await, None);
        let mut secure = redirect(&cx, &plain, 302, "https://h/e").await;
        assert_eq!(sent(&cx, &mut secure).await, None, "nothing was told to the hop before");
        assert_eq!(secure.referer.as_deref(), Some("https://h/page?q"), "records have it all the same");
    }

    #[tokio::test]
    async fn a_redirect_states_the_policy_of_the_next_hop() {
        let cx = cx(|_| {});
        let mut first = request("https://h/a").meta("page_referrer_policy", "unsafe-url");
        first.referer = Some("https://h/page?q".into());
        sent(&cx, &mut first).await;
        for (stated, told) in
            [("no-referrer", None), ("origin", Some("https://h/")), ("x", Some("https://h/page?q"))]
        {
            let mut response = answer(&first, 302, b"https://g/b");
            response.headers.insert("referrer-policy", stated.parse().unwrap());
            let OnResponse::Reschedule(mut next) = respond(&cx, &first, response).await else {
                panic!("{stated}")
            };
            assert_eq!(sent(&cx, &mut next).await.as_deref(), told, "{stated}");
        }
    }
}
