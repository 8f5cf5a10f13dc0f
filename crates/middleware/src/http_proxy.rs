//! HttpProxy: chooses the proxy of each request, and limits the request rate of each proxy.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use huntsman_crawler::{
    Component, Context, DownloaderMiddleware, Hooks, OnRequest, RateLimit, Request, Result, Settings, meta,
    settings,
};
use serde_json::Value;
use url::Url;

use crate::added;
use crate::proxies::{NoProxy, check};

settings! {
    /// Settings of [`HttpProxy`].
    pub struct HttpProxySettings {
        /// Maximum number of requests per second through each proxy; 0 is no limit.
        proxy_requests_per_second: f64 = 0.0;
        /// URL of the proxy for all requests: http, https, socks5 or socks5h.
        proxy: Option<String> = None, secret;
        /// Reads http_proxy, https_proxy, all_proxy and no_proxy from the environment.
        proxy_from_env: bool = false;
        /// Hosts that are never reached through a proxy.
        no_proxy: Vec<String> = Vec::new();
    }
}

/// Chooses the proxy of each request: its meta `proxy` (empty text or null means none), else the setting `proxy`, else
/// that of the environment if `proxy_from_env` is on. Hosts in `no_proxy` are reached directly.
///
/// The downloader reads the choice from the meta. Credentials in the proxy's URL are sent to the proxy only. With
/// `proxy_requests_per_second` each proxy has a quota, and requests wait for it.
#[derive(Debug)]
pub struct HttpProxy {
    http: Option<String>,
    https: Option<String>,
    direct: NoProxy,
    /// The time between two requests through one proxy; `None` is no limit.
    period: Option<Duration>,
    limits: Mutex<HashMap<String, Arc<RateLimit>>>,
}

/// Maximum number of proxies whose quota is remembered.
const MAX_PROXIES: usize = 10_000;

impl HttpProxy {
    /// Creates the component from the settings; never `None`, because requests may name a proxy in their meta.
    ///
    /// # Errors
    /// A proxy's address is not an http, https, socks5 or socks5h URL. The message does not repeat it, because it may
    /// contain a password.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        Self::new(settings, |name| std::env::var(name).ok()).map(Some)
    }

    fn new(settings: &Settings, variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let own: HttpProxySettings = settings.of()?;
        let from_env = |names: &[&str]| {
            let found = names.iter().find_map(|name| variable(name).filter(|value| !value.trim().is_empty()));
            found.filter(|_| own.proxy_from_env)
        };
        // Under CGI a request header `Proxy` becomes HTTP_PROXY in capitals, so it cannot be trusted; curl does not
        // read it either.
        let http = from_env(&["http_proxy", "all_proxy", "ALL_PROXY"]);
        let https = from_env(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]);
        let chosen = |env: Option<String>, name: &str| match &own.proxy {
            Some(proxy) if !proxy.trim().is_empty() => check(proxy, "setting proxy").map(Some),
            _ => env.map(|proxy| check(&proxy, name)).transpose(),
        };
        let period = Duration::try_from_secs_f64(1.0 / own.proxy_requests_per_second).ok();
        Ok(Self {
            http: chosen(http, "variable http_proxy")?,
            https: chosen(https, "variable https_proxy")?,
            direct: NoProxy::from_settings(settings, variable),
            period: period.filter(|_| own.proxy_requests_per_second > 0.0),
            limits: Mutex::default(),
        })
    }

    /// The proxy for a URL by the settings or the environment; `None` means that it is reached directly.
    pub fn proxy_for(&self, url: &Url) -> Option<&String> {
        let proxy = if url.scheme() == "https" { &self.https } else { &self.http };
        proxy.as_ref().filter(|_| !self.direct.matches(url))
    }

    /// Waits until the quota of a proxy permits another request.
    async fn wait(&self, proxy: &str, cx: &Context) {
        let Some(period) = self.period else { return };
        let limit = {
            let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
            match limits.get(proxy) {
                Some(limit) => Arc::clone(limit),
                None => {
                    let Some(limit) = RateLimit::every(period, *cx.clock()).map(Arc::new) else { return };
                    if limits.len() >= MAX_PROXIES {
                        limits.clear();
                    }
                    limits.insert(proxy.to_owned(), Arc::clone(&limit));
                    limit
                }
            }
        };
        limit.wait().await;
    }
}

impl Component for HttpProxy {
    const NAME: &'static str = "http_proxy";
    type Settings = HttpProxySettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.downloader(750)
    }
}

impl DownloaderMiddleware for HttpProxy {
    async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
        match request.meta.get(meta::PROXY.name()) {
            None => {
                if let Some(proxy) = self.proxy_for(&request.url) {
                    // The address may contain a password, which must not reach the queue's files.
                    added::set_meta(request, meta::PROXY, proxy.as_str().to_owned());
                }
            }
            Some(Value::String(own)) if !own.trim().is_empty() => {
                check(own, "meta proxy")?;
            }
            Some(_) => drop(request.remove_meta(meta::PROXY)),
        }
        if let Some(proxy) = request.meta_text(meta::PROXY) {
            self.wait(proxy, cx).await;
        }
        Ok(OnRequest::Continue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str) -> Request {
        Request::parse(url).unwrap()
    }

    async fn proxy_of(proxy: &HttpProxy, mut request: Request) -> Option<String> {
        let cx = Context::detached(Settings::default());
        proxy.process_request(&mut request, &cx).await.unwrap();
        request.meta_text(meta::PROXY).map(str::to_owned)
    }

    #[tokio::test]
    async fn the_request_wins_over_the_setting_and_the_setting_over_the_environment() {
        let env = |name: &str| Some(format!("http://{name}.example"));
        let mut settings = Settings::default();
        let none = HttpProxy::new(&settings, env).unwrap();
        assert_eq!(proxy_of(&none, request("http://h/")).await, None, "the environment must be asked for");
        settings.change(|own: &mut HttpProxySettings| own.proxy_from_env = true);
        let from_env =
            HttpProxy::new(&settings, |name| env(name).filter(|_| !name.eq_ignore_ascii_case("no_proxy")))
                .unwrap();
        assert_eq!(
            proxy_of(&from_env, request("http://h/")).await.as_deref(),
            Some("http://http_proxy.example")
        );
        assert_eq!(
            proxy_of(&from_env, request("https://h/")).await.as_deref(),
            Some("http://https_proxy.example")
        );
        settings.change(|own: &mut HttpProxySettings| own.proxy = Some("p.example:3128".to_owned()));
        let set = HttpProxy::new(&settings, |_| None).unwrap();
        assert_eq!(proxy_of(&set, request("https://h/")).await.as_deref(), Some("http://p.example:3128"));
        let own = request("http://h/").meta("proxy", "socks5h://own:1");
        assert_eq!(proxy_of(&set, own).await.as_deref(), Some("socks5h://own:1"));
        for off in [Value::Null, "".into()] {
            assert_eq!(proxy_of(&set, request("http://h/").meta("proxy", off)).await, None);
        }
    }

    #[tokio::test]
    async fn some_hosts_are_asked_directly() {
        let mut settings = Settings::default();
        settings.change(|own: &mut HttpProxySettings| own.proxy = Some("http://p".to_owned()));
        settings.change(|own: &mut HttpProxySettings| {
            own.no_proxy =
                [".Intern.example", "h:8080", "10.0.0.0/8", "[::1]", "fd00::/8"].map(str::to_owned).to_vec();
        });
        let proxy = HttpProxy::new(&settings, |_| None).unwrap();
        for (url, direct) in [
            ("http://intern.example/", true),
            ("http://a.intern.example./", true),
            ("http://notintern.example/", false),
            ("http://h:8080/", true),
            ("http://h/", false),
            ("http://10.1.2.3/", true),
            ("http://11.1.2.3/", false),
            ("http://[::1]:81/", true),
            ("http://[fd12::1]/", true),
            ("http://[fe80::1]/", false),
        ] {
            assert_eq!(proxy_of(&proxy, request(url)).await.is_none(), direct, "{url}");
        }
        settings.change(|own: &mut HttpProxySettings| own.no_proxy = vec!["*".to_owned()]);
        let none = HttpProxy::new(&settings, |_| None).unwrap();
        assert_eq!(proxy_of(&none, request("http://h/")).await, None);
    }

    #[tokio::test]
    async fn passwords_are_neither_shown_nor_stored() {
        let mut settings = Settings::default();
        settings.change(|own: &mut HttpProxySettings| own.proxy = Some("ftp://user:secret@p".to_owned()));
        let error = HttpProxy::from_settings(&settings).unwrap_err();
        assert!(error.is_usage() && !error.to_string().contains("secret"), "{error}");
        settings.change(|own: &mut HttpProxySettings| own.proxy = Some("http://user:secret@p".to_owned()));
        let proxy = HttpProxy::from_settings(&settings).unwrap().unwrap();
        let mut request = request("http://h/");
        let cx = Context::detached(settings);
        proxy.process_request(&mut request, &cx).await.unwrap();
        assert_eq!(request.meta_text(meta::PROXY), Some("http://user:secret@p"));
        let retried = crate::retry_request(&request, "test", &cx).unwrap();
        assert!(!retried.to_json().to_string().contains("secret"));
    }

    #[tokio::test(start_paused = true)]
    async fn each_proxy_has_its_quota() {
        let mut settings = Settings::default();
        settings.change(|own: &mut HttpProxySettings| own.proxy_requests_per_second = 2.0);
        let proxy = HttpProxy::new(&settings, |_| None).unwrap();
        let cx = Context::detached(settings);
        for n in 0..5 {
            for name in ["http://a", "http://b"] {
                let mut request = request(&format!("http://h/{n}")).meta("proxy", name);
                proxy.process_request(&mut request, &cx).await.unwrap();
            }
        }
        let elapsed = cx.clock().elapsed().as_secs_f64();
        assert!((2.0..2.1).contains(&elapsed), "5 of each at 2 a second: {elapsed}");
    }
}
