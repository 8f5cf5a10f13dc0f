//! Webhook: a POST request to an address of the operator when the crawl has ended.
//!
//! It is sent by a client of its own, so the limits, the proxies and the middlewares of the crawl do not concern it. Whatever the server
//! does, the crawl has its result: a webhook that cannot be delivered is told in the log and in the stats.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use huntsman_crawler::{
    AtEnd, ClientError, Component, Context, CrawlClient, CrawlEnd, CrawlerBuilder, Downloader, Error,
    FetchError, Hooks, HttpDownloader, OnDemand, Request, Response, Result, Settings, check_time, log,
    seconds, settings,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};
use url::{Host, Url};

settings! {
    /// Settings of [`Webhook`].
    pub struct WebhookSettings checked by check {
        /// Address that gets a POST request with a summary of the crawl as JSON when the crawl has ended; if unset, none is sent.
        webhook_url: Option<String> = None, secret;
        /// Which crawls are told to webhook_url: failure (those that failed, broke off, or do not satisfy a quality rule) or always.
        webhook_when: WebhookWhen = WebhookWhen::Failure;
        /// Maximum number of seconds that the webhook may take in all, retries included.
        webhook_timeout: f64 = 10.0;
    }
}

/// Which crawls are told to the webhook (`webhook_when`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebhookWhen {
    /// Those that failed, broke off, or do not satisfy a quality rule.
    #[default]
    Failure,
    /// All.
    Always,
}

/// Number of times that delivery is tried.
const ATTEMPTS: u32 = 3;
/// Time before the second attempt; it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Largest answer that is read, in bytes. It is not looked at.
const MAX_ANSWER: u64 = 64 << 10;

fn check(settings: &WebhookSettings) -> Result<()> {
    check_time("webhook_timeout", settings.webhook_timeout)?;
    settings.webhook_url.as_deref().map_or(Ok(()), |url| address(url).map(drop))
}

/// The address, which no message shows, because its path is often a secret.
fn address(text: &str) -> Result<Url> {
    let url = Url::parse(text.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or_else(|| {
        Error::usage("setting webhook_url: it is no http or https address; write it as https://host/path")
    })
}

/// Tells an address of the operator how the crawl ended: a POST request with a JSON body, which the guide describes.
///
/// It is tried at most three times within `webhook_timeout` seconds: again after a failed connection, a status 429 and a status from 500 on. Redirects
/// are not followed, and the answer is not looked at. The stats have `webhook/delivered` or `webhook/failed`.
///
/// The address guard judges the address as it does those of pages: a name that leads to this machine or to a private network is refused unless the
/// setting `allow_addresses` names it. An address of digits in `webhook_url`, and `localhost`, are allowed, because the operator has named exactly
/// them. Messages show the host alone, since the path of such addresses is often a secret.
#[derive(Debug)]
pub struct Webhook {
    url: Secret,
    when: WebhookWhen,
    timeout: Duration,
}

/// An address whose path must not be shown.
#[derive(Clone)]
struct Secret(Url);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Secret {
    /// The address without what may be secret: `https://hooks.example/...`.
    fn shown(&self) -> String {
        format!("{}...", self.public())
    }

    /// The origin, which stands for the address inside of the client.
    fn public(&self) -> Url {
        let mut public = self.0.clone();
        // What has a host takes both.
        let _ = public.set_username("");
        let _ = public.set_password(None);
        public.set_path("/");
        public.set_query(None);
        public.set_fragment(None);
        public
    }

    /// The user and the password of the address as a header.
    fn authorization(&self) -> Option<String> {
        let (user, password) = (self.0.username(), self.0.password());
        if user.is_empty() && password.is_none() {
            return None;
        }
        let pair = [url_decoded(user), b":".to_vec(), url_decoded(password.unwrap_or_default())].concat();
        Some(format!("Basic {}", STANDARD.encode(pair)))
    }

    /// The exception from the address guard, if the operator has named this machine or an address of digits.
    fn exception(&self) -> Option<String> {
        let port = self.0.port_or_known_default()?;
        match self.0.host()? {
            Host::Ipv4(address) => Some(format!("{address}:{port}")),
            Host::Ipv6(address) => Some(format!("[{address}]:{port}")),
            Host::Domain("localhost") => Some(format!("localhost:{port}")),
            Host::Domain(_) => None,
        }
    }
}

fn url_decoded(text: &str) -> Vec<u8> {
    // A pair without `=` is a name with an empty value; `+` is a letter here.
    let text = text.replace('+', "%2B");
    url::form_urlencoded::parse(text.as_bytes())
        .next()
        .map_or_else(Vec::new, |(name, _)| name.into_owned().into_bytes())
}

impl Webhook {
    /// The webhook, if the setting `webhook_url` names one.
    ///
    /// # Errors
    /// The address is none.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: WebhookSettings = settings.of()?;
        let Some(url) = own.webhook_url.as_deref() else { return Ok(None) };
        let (url, timeout) = (Secret(address(url)?), seconds(own.webhook_timeout));
        Ok(Some(Self { url, when: own.webhook_when, timeout }))
    }

    /// Sends the body until it is delivered, or attempts or time are over.
    async fn deliver(&self, body: &Value, cx: &Context) -> Result<(), String> {
        let deadline = Instant::now() + self.timeout;
        let client = self.client(cx).map_err(|error| error.to_string())?;
        let delivered = timeout_at(deadline, self.attempts(&client, body, cx)).await;
        client.handle().abort();
        // The requests of the client have ended or were given up, so this waits for nothing of the server.
        let _ = client.finish().await;
        delivered.unwrap_or_else(|_| {
            Err(format!("no answer within {} s (webhook_timeout)", self.timeout.as_secs_f64()))
        })
    }

    async fn attempts(&self, client: &CrawlClient, body: &Value, cx: &Context) -> Result<(), String> {
        let mut wait = FIRST_WAIT;
        for attempt in 1.. {
            let request = self.request(body, cx).map_err(|error| error.to_string())?;
            let (why, may_retry) = match client.fetch(request).await {
                Ok(answer) if answer.status.is_success() => return Ok(()),
                Ok(answer) => {
                    let status = answer.status.as_u16();
                    (format!("status {status}"), status == 429 || status >= 500)
                }
                Err(ClientError::Dropped { dropped, .. }) => {
                    (dropped.why(), dropped.reason != "address_refused")
                }
                Err(other) => (other.to_string(), false),
            };
            if attempt == ATTEMPTS || !may_retry {
                return Err(why);
            }
            sleep(wait).await;
            wait *= 2;
        }
        unreachable!("the loop returns at its last attempt")
    }

    fn request(&self, body: &Value, cx: &Context) -> Result<Request> {
        let request =
            Request::json(self.url.public(), body)?.header("user-agent", &cx.settings().user_agent)?;
        match self.url.authorization() {
            Some(value) => request.header("authorization", &value),
            None => Ok(request),
        }
    }

    /// A client with the network of the crawl, and nothing else of it.
    fn client(&self, cx: &Context) -> Result<CrawlClient> {
        let settings = cx.settings();
        let mut allowed = settings.allow_addresses.clone();
        allowed.extend(self.url.exception());
        let url = self.url.clone();
        let builder = CrawlerBuilder::new(OnDemand::new().grace(Duration::ZERO))
            .set("allow_addresses", allowed)
            .set("allow_private_addresses", settings.allow_private_addresses)
            .set("resolve", settings.resolve.clone())
            .set("download_delay", 0.0)
            .set("download_delay_jitter", 0.0)
            .set("download_maxsize", MAX_ANSWER)
            .set("download_warnsize", 0)
            .set("download_truncate", true)
            .set("download_timeout", self.timeout.as_secs_f64())
            .set("logstats_interval", 0.0)
            .set("drain_timeout", 0.0)
            .downloader_with(move |settings| Ok(ToWebhook { http: HttpDownloader::new(settings)?, url }));
        CrawlClient::start(builder)
    }
}

/// Puts the address into the request at the last moment: no part of the client that logs or counts has seen it.
struct ToWebhook {
    http: HttpDownloader,
    url: Secret,
}

impl Downloader for ToWebhook {
    async fn fetch(&self, request: &Request) -> Result<Response, FetchError> {
        let mut request = request.clone();
        request.url = self.url.0.clone();
        // They are in a header.
        let _ = request.url.set_username("");
        let _ = request.url.set_password(None);
        self.http.fetch(&request).await
    }
}

/// What is sent.
fn body(end: &CrawlEnd, failed: bool) -> Value {
    let mut body = json!({"event": "crawl_ended", "spider": end.spider, "failed": failed});
    let told = match &end.result {
        Ok(report) => json!({
            "finish_reason": report.finish_reason,
            "outcome": report.outcome(),
            "elapsed_s": report.elapsed_s,
            "pages": report.pages,
            "failed_rules": report.failed_rules,
            "failed_seeds": report.failed_seeds.len(),
            "losses": report.losses,
            "stats": report.stats,
            "version": report.version,
        }),
        Err(error) => json!({
            "finish_reason": "error",
            "outcome": "error",
            "error": error.to_string(),
            "version": env!("CARGO_PKG_VERSION"),
        }),
    };
    if let (Value::Object(body), Value::Object(told)) = (&mut body, told) {
        body.extend(told);
    }
    body
}

impl Component for Webhook {
    const NAME: &'static str = "webhook";
    type Settings = WebhookSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.at_end()
    }
}

impl AtEnd for Webhook {
    async fn at_end(&self, end: &mut CrawlEnd, cx: &Context) {
        let failed = match &end.result {
            Ok(report) => report.has_failed(),
            Err(_) => true,
        };
        if self.when == WebhookWhen::Failure && !failed {
            return;
        }
        let key = match self.deliver(&body(end, failed), cx).await {
            Ok(()) => "webhook/delivered",
            Err(why) => {
                log::warn!(to = %self.url.shown(), "the webhook was not delivered: {}", why.escape_debug());
                "webhook/failed"
            }
        };
        if let Ok(report) = &mut end.result {
            report.stats.insert(key.to_owned(), 1.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(url: &str) -> Secret {
        Secret(address(url).unwrap())
    }

    #[test]
    fn only_the_origin_of_an_address_is_shown() {
        let url = secret("https://u%40x:p+w@hooks.example:8443/services/T0/SECRET?key=SECRET#SECRET");
        assert_eq!(url.shown(), "https://hooks.example:8443/...");
        assert_eq!(format!("{url:?}"), url.shown());
        assert_eq!(url.authorization().unwrap(), format!("Basic {}", STANDARD.encode("u@x:p+w")));
        assert_eq!(secret("https://hooks.example/x").authorization(), None);
        let error = address("ftp://hooks.example/SECRET").unwrap_err();
        assert!(error.is_usage() && !error.to_string().contains("SECRET"), "{error}");
    }

    #[test]
    fn an_address_of_digits_and_localhost_are_exceptions_from_the_guard_and_names_are_not() {
        for (url, expected) in [
            ("http://127.0.0.1:8080/x", Some("127.0.0.1:8080")),
            ("http://[::1]/x", Some("[::1]:80")),
            ("https://localhost/x", Some("localhost:443")),
            ("http://localhost.evil.example/x", None),
            ("http://intranet.example/x", None),
        ] {
            assert_eq!(secret(url).exception().as_deref(), expected, "{url}");
        }
    }
}
