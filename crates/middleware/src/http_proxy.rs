//! HttpProxy: through which proxy a request goes, and how fast each proxy is used.

use std::collections::HashMap;
use std::ffi::OsString;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use huntsman_crawler::{
    Context, DownloaderMiddleware, DropReason, Error, OnRequest, Request, Result, Settings,
};
use serde_json::Value;
use tokio::time::Instant;
use url::{Host, Url};

use crate::{added, origin};

/// Names the proxy of a request in its meta `proxy`, where the HTTP client reads it.
///
/// The request's own meta `proxy` wins (`null`, `false` and `""` mean none), then the setting `proxy`, then, with `proxy_from_env`,
/// `http_proxy`, `https_proxy` and `all_proxy` of the environment. The last two, and `no_proxy`, are also read in capitals;
/// `HTTP_PROXY` is not, since web servers let strangers set it. A proxy is an http, https, socks5 or socks5h URL, or a bare
/// `host:port` for http; user and password in it are percent-decoded, and sent to the proxy only.
///
/// Hosts of `no_proxy` go without, unless their meta names a proxy: `name`, `.name` for the name and its subdomains, an
/// address, a network such as `10.0.0.0/8`, each with `:port` if that is meant, or `*` for all. In the environment's list a
/// `name` covers its subdomains too, as other programs read it, and what is not understood is logged and passed over.
///
/// `proxy_requests_per_second` holds for each proxy: requests wait for their turn in the order in which they came.
#[derive(Debug)]
pub struct HttpProxy {
    /// For http and for https.
    default: [Option<String>; 2],
    exceptions: Vec<Exception>,
    turns: Option<Turns>,
}

/// The meta in which the HTTP client looks.
const META: &str = "proxy";

impl HttpProxy {
    /// The name in settings and records.
    pub const NAME: &'static str = "http_proxy";
    /// The place in the chain.
    pub const ORDER: i32 = 750;

    /// Always configured: the meta of a request may name a proxy.
    ///
    /// # Errors
    /// A proxy address is not valid, or an entry of `no_proxy` is not; the error names the setting or the variable.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        Self::with_environment(settings, |name| std::env::var_os(name)).map(Some)
    }

    fn with_environment(settings: &Settings, var: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let mut exceptions = Vec::with_capacity(settings.no_proxy.len());
        for entry in &settings.no_proxy {
            exceptions.push(Exception::parse(entry, false).ok_or_else(|| {
                Error::usage(format!(
                    "setting no_proxy: \"{}\" is not understood: expected name, .name, address, network/bits, each \
                     with :port or without, or *",
                    entry.escape_debug()
                ))
            })?);
        }
        let mut default = [const { None::<String> }; 2];
        if settings.proxy_from_env {
            let read = |names: &[&str]| -> Result<Option<String>> {
                for name in names {
                    let Some(value) = var(name) else { continue };
                    let value =
                        value.into_string().map_err(|_| Error::usage(format!("variable {name}: no text")))?;
                    return match value.trim() {
                        "" => Ok(None),
                        address => checked(address, || format!("variable {name}")).map(Some),
                    };
                }
                Ok(None)
            };
            let all = read(&["all_proxy", "ALL_PROXY"])?;
            default = [
                read(&["http_proxy"])?.or_else(|| all.clone()),
                read(&["https_proxy", "HTTPS_PROXY"])?.or(all),
            ];
            let list = var("no_proxy").or_else(|| var("NO_PROXY")).unwrap_or_default();
            for entry in list.to_string_lossy().split([',', ' ', '\t']).filter(|entry| !entry.is_empty()) {
                match Exception::parse(entry, true) {
                    Some(exception) => exceptions.push(exception),
                    None => {
                        tracing::warn!("variable no_proxy: \"{}\" is not understood", entry.escape_debug())
                    }
                }
            }
        }
        if let Some(address) = settings.proxy.as_deref().map(str::trim).filter(|address| !address.is_empty())
        {
            let address = checked(address, || "setting proxy".to_owned())?;
            default = [Some(address.clone()), Some(address)];
        }
        Ok(Self { default, exceptions, turns: Turns::new(settings.proxy_requests_per_second) })
    }

    /// The proxy of settings and environment for an address, if it is to go through one.
    pub fn proxy_of(&self, url: &Url) -> Option<&str> {
        let proxy = match url.scheme() {
            "http" => self.default[0].as_deref()?,
            "https" => self.default[1].as_deref()?,
            _ => return None,
        };
        (!self.exceptions.iter().any(|exception| exception.matches(url))).then_some(proxy)
    }
}

/// Judges a proxy address as the HTTP client does. The address may carry a password: no message repeats it.
fn checked(address: &str, place: impl Fn() -> String) -> Result<String> {
    let wrong = |why: &str| Error::usage(format!("{}: the proxy address {why}", place()));
    let parsed = match address.contains("://") {
        true => Url::parse(address),
        false => Url::parse(&format!("http://{address}")),
    };
    let url = parsed.map_err(|_| wrong("is no URL"))?;
    if !matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h") {
        return Err(wrong("has a scheme other than http, https, socks5 and socks5h"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(wrong("has no host"));
    }
    Ok(address.to_owned())
}

/// Hosts that are asked without a proxy.
#[derive(Debug, PartialEq)]
struct Exception {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Debug, PartialEq)]
enum Hosts {
    All,
    Name {
        name: String,
        subdomains: bool,
    },
    /// The addresses that share the first `bits` bits with `network`.
    Network {
        network: u128,
        bits: u32,
    },
}

impl Exception {
    /// Reads an entry; `wide` names cover their subdomains. `None` if it makes no sense.
    fn parse(entry: &str, wide: bool) -> Option<Self> {
        let entry = entry.trim();
        if entry == "*" {
            return Some(Self { hosts: Hosts::All, port: None });
        }
        // An IPv6 address without brackets has no port.
        let (host, port) = match entry.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                (host, Some(port.parse().ok()?))
            }
            _ => (entry, None),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if let Some((address, bits)) = bare.split_once('/') {
            let address: IpAddr = address.parse().ok()?;
            let own: u32 = bits.parse().ok()?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            let bits = (own <= most).then_some(128 - most + own)?;
            return Some(Self { hosts: Hosts::Network { network: number(address), bits }, port });
        }
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Some(Self { hosts: Hosts::Network { network: number(address), bits: 128 }, port });
        }
        let (name, subdomains) = match host.strip_prefix("*.").or_else(|| host.strip_prefix('.')) {
            Some(name) => (name, true),
            None => (host, wide),
        };
        // The URL parser brings names into the form in which URLs have them.
        let url = Url::parse(&format!("http://{name}/")).ok()?;
        let plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let name = origin::host(&url).to_owned();
        (plain && url.username().is_empty() && !name.is_empty())
            .then_some(Self { hosts: Hosts::Name { name, subdomains }, port })
    }

    fn matches(&self, url: &Url) -> bool {
        if self.port.is_some() && self.port != url.port_or_known_default() {
            return false;
        }
        match &self.hosts {
            Hosts::All => true,
            Hosts::Name { name, subdomains: false } => origin::host(url) == name,
            Hosts::Name { name, subdomains: true } => origin::is_within(origin::host(url), name),
            Hosts::Network { network, bits } => {
                let address = match url.host() {
                    Some(Host::Ipv4(address)) => number(address.into()),
                    Some(Host::Ipv6(address)) => number(address.into()),
                    _ => return false,
                };
                *bits == 0 || (address ^ network) >> (128 - bits) == 0
            }
        }
    }
}

/// An address as an IPv6 number, IPv4 in its mapped form, so that both spellings of one address are equal.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().into(),
        IpAddr::V6(address) => address.into(),
    }
}

/// The runtime's clock for governor: stands still with the paused clock of tests.
#[derive(Clone, Debug)]
struct TokioClock(Instant);

impl Clock for TokioClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.0.elapsed().into()
    }
}

type Limiter = RateLimiter<NotKeyed, InMemoryState, TokioClock, NoOpMiddleware<Nanos>>;

/// The quotas of the proxies. Who waits holds the lock of the proxy, and the lock is fair: one task sleeps, the others queue.
#[derive(Debug)]
struct Turns {
    gap: Duration,
    limiters: Mutex<HashMap<String, Arc<tokio::sync::Mutex<Limiter>>>>,
}

/// Proxies that are counted at once: meta can name ever new ones.
const MAX_PROXIES: usize = 10_000;

impl Turns {
    fn new(per_second: f64) -> Option<Self> {
        let gap = (per_second > 0.0).then(|| Duration::try_from_secs_f64(1.0 / per_second).ok()).flatten()?;
        // More than a billion a second is no quota.
        (!gap.is_zero()).then(|| Self { gap, limiters: Mutex::default() })
    }

    fn limiter(&self, proxy: &str) -> Arc<tokio::sync::Mutex<Limiter>> {
        let mut limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = limiters.get(proxy) {
            return Arc::clone(known);
        }
        if limiters.len() >= MAX_PROXIES {
            // What nobody waits for and has its quota back is as good as new; if that is nothing, what nobody waits for.
            let idle = |limiter: &Arc<tokio::sync::Mutex<Limiter>>| Arc::strong_count(limiter) == 1;
            limiters.retain(|_, limiter| {
                !idle(limiter) || limiter.try_lock().is_ok_and(|limiter| limiter.check().is_err())
            });
            if limiters.len() >= MAX_PROXIES {
                limiters.retain(|_, limiter| !idle(limiter));
            }
        }
        let quota = Quota::with_period(self.gap).expect("the gap is not zero").allow_burst(NonZeroU32::MIN);
        let made = RateLimiter::direct_with_clock(quota, TokioClock(Instant::now()));
        let made = Arc::new(tokio::sync::Mutex::new(made));
        limiters.insert(proxy.to_owned(), Arc::clone(&made));
        made
    }

    async fn take(&self, proxy: &str) {
        let limiter = self.limiter(proxy);
        let limiter = limiter.lock().await;
        while let Err(until) = limiter.check() {
            let wait = until.wait_time_from(limiter.clock().now());
            // Timers have a grain of a millisecond.
            tokio::time::sleep(wait.max(Duration::from_millis(1))).await;
        }
    }
}

impl DownloaderMiddleware for HttpProxy {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn order(&self) -> i32 {
        Self::ORDER
    }

    async fn process_request(&self, request: &mut Request, _: &Context) -> Result<OnRequest> {
        // What was decided for another address is decided anew.
        added::unset_meta(request, META);
        let proxy = match request.meta.get(META) {
            None => match self.proxy_of(&request.url) {
                None => return Ok(OnRequest::Continue),
                Some(proxy) => {
                    added::set_meta(request, META, proxy.into());
                    proxy
                }
            },
            Some(Value::Null | Value::Bool(false)) => return Ok(OnRequest::Continue),
            Some(Value::String(own)) if own.is_empty() => return Ok(OnRequest::Continue),
            Some(own) => {
                // Refused here and not by the client: that counts as a failure of the network, which is tried again.
                let judged = own.as_str().ok_or_else(|| Error::usage("meta proxy: expected a text"));
                match judged.and_then(|own| checked(own, || "meta proxy".to_owned()).map(|_| own)) {
                    Ok(own) => own,
                    Err(error) => {
                        return Ok(OnRequest::Drop(DropReason::failed("proxy").detail(error.to_string())));
                    }
                }
            }
        };
        if let Some(turns) = &self.turns {
            turns.take(proxy).await;
        }
        Ok(OnRequest::Continue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(settings: &Settings, environment: &[(&str, &str)]) -> Result<HttpProxy> {
        HttpProxy::with_environment(settings, |name| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        })
    }

    fn of<'a>(proxies: &'a HttpProxy, url: &str) -> Option<&'a str> {
        proxies.proxy_of(&Url::parse(url).unwrap())
    }

    async fn sent(proxies: &HttpProxy, mut request: Request) -> Request {
        let cx = Context::detached(Settings::default());
        let answer = proxies.process_request(&mut request, &cx).await.unwrap();
        assert!(matches!(answer, OnRequest::Continue), "{answer:?}");
        request
    }

    fn request(url: &str) -> Request {
        Request::parse(url).unwrap()
    }

    #[tokio::test]
    async fn meta_wins_over_the_setting_and_the_setting_over_the_environment() {
        let environment = [("all_proxy", "http://env:1")];
        let mut settings = Settings::default();
        let proxy = |request: &Request| request.meta_str("proxy").map(str::to_owned);
        let unasked = proxies(&settings, &environment).unwrap();
        assert_eq!(
            proxy(&sent(&unasked, request("http://h/")).await),
            None,
            "the environment was not asked for"
        );
        settings.proxy_from_env = true;
        let from_env = proxies(&settings, &environment).unwrap();
        assert_eq!(proxy(&sent(&from_env, request("http://h/")).await).as_deref(), Some("http://env:1"));
        settings.proxy = Some("socks5h://set:1".to_owned());
        let set = proxies(&settings, &environment).unwrap();
        assert_eq!(proxy(&sent(&set, request("https://h/")).await).as_deref(), Some("socks5h://set:1"));
        let own = sent(&set, request("http://h/").meta("proxy", "meta:1")).await;
        assert_eq!(proxy(&own).as_deref(), Some("meta:1"));
        for none in [Value::Null, Value::Bool(false), "".into()] {
            let direct = sent(&set, request("http://h/").meta("proxy", none)).await;
            assert!(proxy(&direct).unwrap_or_default().is_empty());
        }
    }

    #[test]
    fn each_scheme_has_its_variable() {
        let mut settings = Settings::default();
        settings.proxy_from_env = true;
        let both = proxies(&settings, &[("http_proxy", "p:1"), ("HTTPS_PROXY", "p:2"), ("ALL_PROXY", "p:3")])
            .unwrap();
        assert_eq!((of(&both, "http://h/"), of(&both, "https://h/")), (Some("p:1"), Some("p:2")));
        let one =
            proxies(&settings, &[("http_proxy", ""), ("HTTP_PROXY", "p:1"), ("all_proxy", "p:3")]).unwrap();
        assert_eq!((of(&one, "http://h/"), of(&one, "https://h/")), (Some("p:3"), Some("p:3")));
        let capitals = proxies(&settings, &[("HTTP_PROXY", "p:1")]).unwrap();
        assert_eq!(of(&capitals, "http://h/"), None);
        assert_eq!(of(&both, "ftp://h/"), None);
    }

    #[test]
    fn exceptions_are_names_domains_addresses_and_networks() {
        let matches = |entry: &str, wide: bool, url: &str| {
            Exception::parse(entry, wide).unwrap().matches(&Url::parse(url).unwrap())
        };
        for (entry, url, expected) in [
            ("*", "http://h/", true),
            ("Example.org", "http://example.org:8080/", true),
            ("example.org", "http://a.example.org/", false),
            ("example.org", "http://badexample.org/", false),
            ("b\u{fc}cher.example", "http://xn--bcher-kva.example/", true),
            (".example.org", "http://a.b.example.org./", true),
            (".example.org", "http://example.org/", true),
            ("*.example.org", "http://a.example.org/", true),
            (".example.org", "http://badexample.org/", false),
            ("example.org:8080", "http://example.org:8080/", true),
            ("example.org:8080", "http://example.org/", false),
            ("example.org:443", "https://example.org/", true),
            ("10.1.2.3", "http://10.1.2.3:99/", true),
            ("10.1.2.3", "http://[::ffff:10.1.2.3]/", true),
            ("10.1.2.3", "http://10.1.2.4/", false),
            ("10.1.2.3:80", "http://10.1.2.3/", true),
            ("10.0.0.0/8", "http://10.255.0.1/", true),
            ("10.0.0.0/8", "http://11.0.0.1/", false),
            ("10.0.0.0/8", "http://ten.example/", false),
            ("0.0.0.0/0", "http://1.2.3.4/", true),
            ("0.0.0.0/0", "http://[::1]/", false),
            ("::1", "http://[::1]/", true),
            ("[::1]:8080", "http://[::1]:8080/", true),
            ("[::1]:8080", "http://[::1]/", false),
            ("fd00::/8", "http://[fd12::1]/", true),
            ("fd00::/8", "http://[fe80::1]/", false),
            ("::/0", "http://1.2.3.4/", true),
        ] {
            assert_eq!(matches(entry, false, url), expected, "{entry} {url}");
        }
        assert!(matches("example.org", true, "http://a.example.org/"));
        for wrong in ["", "a b", "10.0.0.0/33", "::1/129", "x/8", "h:port", "h:99999", "h/path", "u@h", "."] {
            assert_eq!(Exception::parse(wrong, true), None, "{wrong}");
        }
    }

    #[test]
    fn exceptions_of_settings_and_environment_hold_for_the_proxies_of_both() {
        let mut settings = Settings::default();
        settings.proxy = Some("p:1".to_owned());
        settings.no_proxy = vec!["set.example".to_owned()];
        let environment = [("no_proxy", "env.example, <local>,10.0.0.0/8")];
        let without = proxies(&settings, &environment).unwrap();
        assert_eq!(of(&without, "http://env.example/"), Some("p:1"));
        settings.proxy_from_env = true;
        let with = proxies(&settings, &environment).unwrap();
        for (url, proxy) in [
            ("http://set.example/", None),
            ("http://www.set.example/", Some("p:1")),
            ("http://www.env.example/", None),
            ("http://10.1.1.1/", None),
            ("http://other.example/", Some("p:1")),
        ] {
            assert_eq!(of(&with, url), proxy, "{url}");
        }
    }

    #[test]
    fn a_wrong_address_names_its_place_and_keeps_its_password() {
        let mut settings = Settings::default();
        settings.proxy_from_env = true;
        for wrong in
            ["ftp://u:secret@p", "http://u:secret@", "http://u:secret@p:99999", "socks4://u:secret@p"]
        {
            let error = proxies(&settings, &[("https_proxy", wrong)]).unwrap_err();
            let text = error.to_string();
            assert!(error.is_usage() && text.contains("https_proxy") && !text.contains("secret"), "{text}");
            let mut set = Settings::default();
            set.proxy = Some(wrong.to_owned());
            let text = proxies(&set, &[]).unwrap_err().to_string();
            assert!(text.contains("setting proxy") && !text.contains("secret"), "{text}");
        }
        settings.no_proxy = vec!["10.0.0.0/99".to_owned()];
        let error = proxies(&settings, &[]).unwrap_err().to_string();
        assert!(error.contains("no_proxy") && error.contains("10.0.0.0/99"), "{error}");
    }

    #[tokio::test]
    async fn a_wrong_address_of_the_meta_fails_its_request_for_good() {
        let proxies = proxies(&Settings::default(), &[]).unwrap();
        for wrong in [Value::from("gopher://p"), Value::from(8080)] {
            let cx = Context::detached(Settings::default());
            let mut request = request("http://h/").meta("proxy", wrong);
            let answer = proxies.process_request(&mut request, &cx).await.unwrap();
            let OnRequest::Drop(reason) = answer else { panic!("{answer:?}") };
            assert_eq!(reason.reason, "proxy");
            assert!(reason.detail.unwrap().contains("meta proxy"));
        }
    }

    #[tokio::test]
    async fn a_proxy_of_the_settings_is_decided_anew_and_never_stored() {
        let mut settings = Settings::default();
        settings.proxy = Some("http://u:secret@p:1".to_owned());
        settings.no_proxy = vec!["inside".to_owned()];
        let proxies = proxies(&settings, &[]).unwrap();
        let mut moved = sent(&proxies, request("http://outside/")).await;
        moved.url = Url::parse("http://inside/").unwrap();
        assert_eq!(sent(&proxies, moved).await.meta_str("proxy"), None);
        let mut stored = sent(&proxies, request("http://outside/")).await;
        added::strip(&mut stored);
        assert!(stored.meta.is_empty(), "{:?}", stored.meta);
        let mut own = sent(&proxies, request("http://outside/").meta("proxy", "own:1")).await;
        added::strip(&mut own);
        assert_eq!(own.meta_str("proxy"), Some("own:1"));
    }

    #[tokio::test(start_paused = true)]
    async fn each_proxy_has_its_own_quota_and_requests_keep_their_order() {
        let mut settings = Settings::default();
        settings.proxy_requests_per_second = 2.0;
        settings.proxy = Some("p:1".to_owned());
        let proxies = Arc::new(proxies(&settings, &[]).unwrap());
        let start = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..6 {
            let proxies = Arc::clone(&proxies);
            let proxy = if n % 3 == 2 { "other:1" } else { "p:1" };
            tasks.spawn(async move {
                sent(&proxies, request("http://h/").meta("proxy", proxy)).await;
                (n, start.elapsed().as_millis())
            });
        }
        let mut times: Vec<_> = tasks.join_all().await;
        times.sort_unstable();
        let expected = [(0, 0), (1, 500), (2, 0), (3, 1_000), (4, 1_500), (5, 500)];
        for ((n, at), (_, wanted)) in times.into_iter().zip(expected) {
            assert!((wanted..wanted + 10).contains(&at), "request {n} at {at} ms");
        }
        let before = Instant::now();
        sent(&proxies, request("http://h/").meta("proxy", Value::Null)).await;
        assert_eq!(before.elapsed(), Duration::ZERO, "without a proxy there is no quota");
    }

    #[tokio::test(start_paused = true)]
    async fn ever_new_proxies_do_not_fill_the_memory() {
        for (per_second, left) in [(2_000.0, 12), (0.001, 3)] {
            let turns = Turns::new(per_second).unwrap();
            for n in 0..MAX_PROXIES + 3 {
                turns.take(&format!("p{n}:1")).await;
                tokio::time::advance(Duration::from_micros(50)).await;
            }
            assert_eq!(turns.limiters.lock().unwrap().len(), left, "at {per_second} requests a second");
        }
    }
}
