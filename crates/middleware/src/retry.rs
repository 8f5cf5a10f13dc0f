//! Retry: repeats requests after a network failure or a temporary error status.

use std::time::Duration;

use http::Method;
use huntsman_crawler::retry_after::requested_wait;
use huntsman_crawler::{
    Component, Context, DownloaderMiddleware, FetchError, Hooks, OnException, OnResponse, Request, Response,
    Result, Settings, log, meta, seconds, settings,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{added, chain};

settings! {
    /// Settings of [`Retry`].
    pub struct RetrySettings {
        /// Repeats requests that failed for a temporary reason.
        retry_enabled: bool = true;
        /// Maximum number of retries of a request, without the first try.
        retry_times: u32 = 2, broad = 1;
        /// Status codes that are retried.
        retry_http_codes: Vec<u16> = vec![500, 502, 503, 504, 522, 524, 408, 429];
        /// Number that is added to the priority of a retry.
        retry_priority_adjust: i32 = -1;
        /// Seconds before the first retry. They double with each retry, with a random deviation of up to 50 %.
        retry_backoff_base: f64 = 1.0;
        /// Maximum number of seconds before a retry.
        retry_backoff_max: f64 = 60.0;
        /// Also retries POST and PATCH requests whose connection was lost after sending.
        retry_non_idempotent: bool = false;
    }
}

/// Queues a copy of a request that failed for a temporary reason: a status in `retry_http_codes`, or a failure of the
/// network.
///
/// The copy waits in the queue, not in a task: `retry_backoff_base` seconds, doubled each time up to
/// `retry_backoff_max`, with 50 % jitter, or `Retry-After` if that is longer. If `Retry-After` exceeds
/// `retry_after_max` the request is not retried, and the response is passed on as it is. POST and PATCH are not sent
/// again when the connection was lost after sending, unless `retry_non_idempotent` is on.
///
/// It reads the meta `dont_retry`, `max_retry_times` and `priority_adjust` of a request, and writes `retry_times`.
#[derive(Debug)]
pub struct Retry {
    codes: Vec<u16>,
}

impl Retry {
    /// Creates the component from the settings; `None` if `retry_enabled` is off.
    ///
    /// # Errors
    /// None.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: RetrySettings = settings.of()?;
        let codes = own.retry_http_codes.clone();
        Ok(own.retry_enabled.then_some(Self { codes }))
    }
}

/// Makes a copy of a request to be retried, for callbacks that see from the page that the request failed. `reason` is a
/// word or two for the stats. `None` if the request was retried often enough, or must not be retried.
///
/// ```
/// use huntsman_crawler::{Context, Request, Settings};
/// use huntsman_middleware::retry_request;
///
/// let cx = Context::detached(Settings::default());
/// let request = Request::parse("https://site.example/").unwrap();
/// let again = retry_request(&request, "empty page", &cx).unwrap();
/// assert_eq!(again.retries, 1);
/// assert!(again.not_before.unwrap() > cx.now());
/// ```
pub fn retry_request(request: &Request, reason: &str, cx: &Context) -> Option<Request> {
    retry_copy(request, reason, Duration::ZERO, cx)
}

/// Like [`retry_request`]; the copy waits at least this long.
pub(crate) fn retry_copy(
    request: &Request,
    reason: &str,
    at_least: Duration,
    cx: &Context,
) -> Option<Request> {
    let settings: RetrySettings = cx.settings().of_or_default();
    if request.meta_flag(meta::DONT_RETRY) {
        return None;
    }
    if retries_left(request, cx) == 0 {
        cx.stats().inc("retry/max_reached");
        log::error!(url = %request.url, retries = request.retries, "gave up: {}", reason.escape_debug());
        return None;
    }
    let mut copy = request.clone();
    added::strip(&mut copy);
    copy.retries += 1;
    copy.set_meta(meta::RETRY_TIMES, copy.retries.into());
    copy.set_meta(meta::PARKED_REASON, Retry::NAME.to_owned());
    chain::set_unfiltered(&mut copy, Retry::NAME);
    let adjust = request.meta_value(meta::PRIORITY_ADJUST);
    let adjust =
        adjust.and_then(|adjust| i32::try_from(adjust).ok()).unwrap_or(settings.retry_priority_adjust);
    copy.priority = copy.priority.saturating_add(adjust);
    copy.not_before = Some(cx.now() + backoff(&copy, cx).max(at_least));
    cx.stats().inc("retry/count");
    cx.stats().inc(&format!("retry/reason_count/{reason}"));
    log::debug!(url = %request.url, retry = copy.retries, "trying again later: {}", reason.escape_debug());
    Some(copy)
}

/// How often a request may still be retried.
pub(crate) fn retries_left(request: &Request, cx: &Context) -> u64 {
    let own = request.meta_value(meta::MAX_RETRY_TIMES);
    let max = own.unwrap_or_else(|| cx.settings().of_or_default::<RetrySettings>().retry_times.into());
    max.min(u8::MAX.into()).saturating_sub(request.retries.into())
}

/// Whether components may retry a request at all.
pub(crate) fn may_retry(request: &Request, cx: &Context) -> bool {
    let settings: RetrySettings = cx.settings().of_or_default();
    settings.retry_enabled && !request.meta_flag(meta::DONT_RETRY)
}

/// Whether a request that failed may be sent again: the failure is temporary, and either nothing was sent or sending twice does no harm.
pub(crate) fn is_repeatable(request: &Request, error: &FetchError, cx: &Context) -> bool {
    let settings: RetrySettings = cx.settings().of_or_default();
    let is_harmless = !matches!(request.method, Method::POST | Method::PATCH);
    error.is_transient() && (is_harmless || settings.retry_non_idempotent || !error.was_sent())
}

/// The wait before this retry. The jitter is a hash of the URL, so a crawl with the same seed waits equally long.
fn backoff(request: &Request, cx: &Context) -> Duration {
    let settings = cx.settings();
    let own: RetrySettings = settings.of_or_default();
    let doublings = i32::from(request.retries.saturating_sub(1));
    let wait = (own.retry_backoff_base * 2.0_f64.powi(doublings)).min(own.retry_backoff_max);
    let hash =
        xxh3_64_with_seed(request.url.as_str().as_bytes(), cx.seed().wrapping_add(request.retries.into()));
    let share = (hash >> 11) as f64 / (1_u64 << 53) as f64;
    seconds(wait * (0.5 + share))
}

impl Component for Retry {
    const NAME: &'static str = "retry";
    type Settings = RetrySettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.downloader(550)
    }
}

impl DownloaderMiddleware for Retry {
    async fn process_response(
        &self,
        request: &Request,
        response: &mut Response,
        cx: &Context,
    ) -> Result<OnResponse> {
        let status = response.status;
        if !self.codes.contains(&status.as_u16()) || request.meta_flag(meta::DONT_RETRY) {
            return Ok(OnResponse::Continue);
        }
        let wait = requested_wait(&response.headers, cx.now()).unwrap_or_default();
        if wait > seconds(cx.settings().retry_after_max) {
            cx.stats().inc("retry/retry_after_too_long");
            return Ok(OnResponse::Continue);
        }
        let reason = match status.canonical_reason() {
            Some(reason) => format!("{} {reason}", status.as_u16()),
            None => status.as_u16().to_string(),
        };
        Ok(match retry_copy(request, &reason, wait, cx) {
            Some(copy) => OnResponse::Reschedule(Box::new(copy)),
            None => OnResponse::Continue,
        })
    }

    async fn process_exception(
        &self,
        request: &Request,
        error: &FetchError,
        cx: &Context,
    ) -> Result<OnException> {
        if !is_repeatable(request, error, cx) {
            return Ok(OnException::Pass);
        }
        Ok(match retry_copy(request, error.kind().name(), Duration::ZERO, cx) {
            Some(copy) => OnException::Reschedule(Box::new(copy)),
            None => OnException::Pass,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderValue, StatusCode, header};
    use huntsman_crawler::FetchErrorKind;

    fn cx(change: impl FnOnce(&mut Settings)) -> Context {
        let mut settings = Settings::default();
        settings.seed = Some(1);
        change(&mut settings);
        Context::detached(settings)
    }

    fn request() -> Request {
        Request::parse("http://h/a").unwrap()
    }

    async fn answer(
        cx: &Context,
        request: &Request,
        status: u16,
        retry_after: Option<&str>,
    ) -> Option<Request> {
        let mut response = Response::new(request.url.clone(), StatusCode::from_u16(status).unwrap(), "");
        if let Some(value) = retry_after {
            response.headers.insert("retry-after", HeaderValue::from_str(value).unwrap());
        }
        let retry = Retry::from_settings(cx.settings()).unwrap().unwrap();
        match retry.process_response(request, &mut response, cx).await.unwrap() {
            OnResponse::Reschedule(copy) => Some(*copy),
            OnResponse::Continue => None,
            other => panic!("{other:?}"),
        }
    }

    async fn failure(cx: &Context, request: &Request, error: FetchError) -> Option<Request> {
        let retry = Retry::from_settings(cx.settings()).unwrap().unwrap();
        match retry.process_exception(request, &error, cx).await.unwrap() {
            OnException::Reschedule(copy) => Some(*copy),
            _ => None,
        }
    }

    fn wait(copy: &Request, cx: &Context) -> f64 {
        copy.not_before.unwrap().since(cx.now()).as_secs_f64()
    }

    #[tokio::test(start_paused = true)]
    async fn two_retries_then_the_answer_goes_on() {
        let cx = cx(|_| {});
        let first = answer(&cx, &request(), 503, None).await.unwrap();
        assert_eq!((first.retries, first.priority, first.unfiltered), (1, -1, true));
        assert_eq!((&first.meta["retry_times"], &first.meta["parked_reason"]), (&1.into(), &"retry".into()));
        let second = answer(&cx, &first, 503, None).await.unwrap();
        assert_eq!((second.retries, second.priority), (2, -2));
        assert!(answer(&cx, &second, 503, None).await.is_none());
        for (key, value) in
            [("retry/count", 2), ("retry/reason_count/503 Service Unavailable", 2), ("retry/max_reached", 1)]
        {
            assert_eq!(cx.stats().get(key), value, "{key}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_doubles_with_jitter_up_to_its_limit() {
        let cx = cx(|settings| settings.change(|own: &mut RetrySettings| own.retry_times = 20));
        let mut now = request();
        let mut shares = Vec::new();
        for n in 0..12 {
            now = answer(&cx, &now, 500, None).await.unwrap();
            let base = 2.0_f64.powi(n).min(60.0);
            let share = wait(&now, &cx) / base;
            assert!((0.5..1.5).contains(&share), "try {n}: {share} of {base}");
            shares.push(share);
        }
        let spread =
            shares.iter().fold(f64::MIN, |a, b| a.max(*b)) - shares.iter().fold(f64::MAX, |a, b| a.min(*b));
        assert!(spread > 0.3, "{shares:?}");
        let replayed = answer(&cx, &request(), 500, None).await.unwrap();
        assert!((wait(&replayed, &cx) - shares[0]).abs() < 1e-3, "the same seed waits the same");
    }

    #[tokio::test(start_paused = true)]
    async fn retry_after_is_waited_for_up_to_the_cap() {
        let cx = cx(|_| {});
        assert_eq!(wait(&answer(&cx, &request(), 429, Some("100")).await.unwrap(), &cx), 100.0);
        assert_eq!(wait(&answer(&cx, &request(), 429, Some("120")).await.unwrap(), &cx), 120.0);
        for beyond in ["121", "9999999999999999999", "Fri, 01 Jan 2100 00:00:00 GMT"] {
            assert!(answer(&cx, &request(), 429, Some(beyond)).await.is_none(), "{beyond}");
        }
        for nonsense in ["-5", "soon", "1.5", "", "99999999999999999999"] {
            assert!(
                wait(&answer(&cx, &request(), 429, Some(nonsense)).await.unwrap(), &cx) < 1.5,
                "{nonsense}"
            );
        }
    }

    #[tokio::test]
    async fn only_passing_failures_are_retried() {
        let cx = cx(|_| {});
        use FetchErrorKind as K;
        for (kind, retried) in [
            (K::Dns, true),
            (K::Connect, true),
            (K::Reset, true),
            (K::Tls, true),
            (K::Incomplete, true),
            (K::Proxy, true),
            (K::FirstByteTimeout, true),
            (K::TooLarge, false),
            (K::Decode, false),
            (K::AddressRefused, false),
            (K::Cancelled, false),
        ] {
            let copy = failure(&cx, &request(), FetchError::new(kind, "x")).await;
            assert_eq!(copy.is_some(), retried, "{kind:?}");
        }
        assert_eq!(cx.stats().get("retry/reason_count/connection_reset"), 1);
        for status in [200, 404, 403, 501] {
            assert!(answer(&cx, &request(), status, None).await.is_none(), "{status}");
        }
    }

    #[tokio::test]
    async fn a_post_is_not_sent_twice() {
        let plain = cx(|_| {});
        let post = request().method(Method::POST);
        let lost = || FetchError::new(FetchErrorKind::Reset, "x").after_sending();
        assert!(failure(&plain, &post, lost()).await.is_none());
        assert!(failure(&plain, &post, FetchError::new(FetchErrorKind::Connect, "x")).await.is_some());
        assert!(failure(&plain, &request(), lost()).await.is_some());
        assert!(answer(&plain, &post, 503, None).await.is_some());
        let bold = cx(|settings| settings.change(|own: &mut RetrySettings| own.retry_non_idempotent = true));
        assert!(failure(&bold, &post, lost()).await.is_some());
    }

    #[tokio::test]
    async fn a_request_may_have_its_own_limits() {
        let cx = cx(|_| {});
        assert!(answer(&cx, &request().with_meta(meta::DONT_RETRY, true), 503, None).await.is_none());
        assert!(answer(&cx, &request().with_meta(meta::MAX_RETRY_TIMES, 0), 503, None).await.is_none());
        let mut tried = request().with_meta(meta::MAX_RETRY_TIMES, 5).meta("priority_adjust", 10);
        tried.retries = 4;
        assert_eq!(answer(&cx, &tried, 503, None).await.unwrap().priority, 10);
    }

    #[tokio::test]
    async fn credentials_of_the_settings_do_not_go_to_the_queue() {
        let cx = cx(|_| {});
        let mut sent = request().header("X-Mine", "1").unwrap();
        added::set(&mut sent, header::AUTHORIZATION, HeaderValue::from_static("Basic x"));
        let copy = answer(&cx, &sent, 503, None).await.unwrap();
        assert_eq!(copy.headers.len(), 1);
        assert!(!copy.to_json().to_string().contains("Basic"));
    }
}
