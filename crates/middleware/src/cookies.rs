//! Cookies: stores the cookies that servers set in jars, and sends them with later requests.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderValue, header};
use huntsman_crawler::{
    Component, Context, DownloaderMiddleware, Error, Event, Hooks, Observer, OnRequest, OnResponse, Persist,
    Request, Response, Result, Settings, log, meta, settings,
};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::added;
use crate::chain::CookiesChanged;

mod hand_over;
mod jar;

pub use jar::{CookieJar, StoredCookie};

settings! {
    /// Settings of [`Cookies`].
    pub struct CookiesSettings {
        /// Stores the cookies that servers set, and sends them with later requests.
        cookies_enabled: bool = true, broad = false;
        /// Logs the cookies that are sent and received.
        cookies_debug: bool = false;
    }
}

/// Stores the cookies that servers set and sends them back.
///
/// A request's meta `cookiejar` (text or a number) names one of many jars; links do not inherit it. Cookies given with
/// the request are put into the jar for its host and all its paths, for https only if the request is https. With meta
/// `dont_merge_cookies` no cookies are sent or kept. A `Cookie` header set by hand is replaced.
///
/// A program that seeds the jars before the crawl, or reads them after it, adds the component with jars of its own:
///
/// ```
/// use huntsman_crawler::{CrawlerBuilder, Output, Page, Result, spider_fn};
/// use huntsman_middleware::{CookieJars, Cookies, Defaults};
///
/// let spider = spider_fn(["https://site.example/"], |_: &Page, _: &mut Output<()>| -> Result<()> { Ok(()) });
/// let jars = CookieJars::new();
/// let same = jars.clone();
/// let builder = CrawlerBuilder::new(spider).plugin(Defaults);
/// let logged_in = builder.component(move |settings| Cookies::with_jars(settings, same));
/// ```
#[derive(Debug)]
pub struct Cookies {
    jars: CookieJars,
    debug: bool,
    /// Hash of the state that was last saved in the job.
    saved: AtomicU64,
    changed: hand_over::Changed,
}

/// The jars of a crawl by name; the default jar has the empty name. Clones share the same jars.
#[derive(Clone, Debug, Default)]
pub struct CookieJars(Arc<Mutex<HashMap<String, CookieJar>>>);

impl CookieJars {
    /// Creates an empty set of jars.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs a function on one jar, to read or change it; creates the jar if there is none of that name.
    pub fn with<T>(&self, name: &str, work: impl FnOnce(&mut CookieJar) -> T) -> T {
        // After a panic in another caller's function the jar is still consistent, so the poisoned lock can be used.
        let mut jars = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match jars.get_mut(name) {
            Some(jar) => work(jar),
            None => work(jars.entry(name.to_owned()).or_default()),
        }
    }

    /// The names of the jars.
    pub fn names(&self) -> Vec<String> {
        let jars = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<String> = jars.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Replaces the jar `to` by a copy of the jar `from`.
    pub fn fork(&self, from: &str, to: &str) {
        let copy = self.with(from, |jar| jar.clone());
        self.with(to, |jar| *jar = copy);
    }

    /// Removes a jar with its cookies. Returns whether there was one.
    pub fn remove(&self, name: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name).is_some()
    }

    /// Writes all jars into one JSON file, readable for its owner only.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let text = self.to_json()?;
        huntsman_files::write(path, text)
            .map_err(|cause| Error::from(cause).context(format!("writing cookies to {}", path.display())))
    }

    /// Reads a file that [`CookieJars::save`] wrote. Its jars replace those of the same names.
    ///
    /// # Errors
    /// The file cannot be read, or has another format.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let doing = || format!("reading cookies from {}", path.display());
        let text = std::fs::read_to_string(path).map_err(|cause| Error::from(cause).context(doing()))?;
        self.set_json(&text).map_err(|error| error.context(doing()))
    }

    fn to_json(&self) -> Result<String> {
        let mut all = serde_json::Map::new();
        for name in self.names() {
            let cookies = self.with(&name, |jar| serde_json::from_str(&jar.to_json()))?;
            all.insert(name, cookies);
        }
        Ok(Value::Object(all).to_string())
    }

    fn set_json(&self, text: &str) -> Result<()> {
        let all: HashMap<String, Value> = serde_json::from_str(text)?;
        for (name, cookies) in all {
            let read = CookieJar::from_json(&cookies.to_string())?;
            self.with(&name, |jar| *jar = read);
        }
        Ok(())
    }
}

/// Saves the jars in the job.
impl Persist for Cookies {
    fn name(&self) -> String {
        "cookies".to_owned()
    }

    fn load(&self, state: Option<&[u8]>) -> Result<()> {
        let Some(state) = state else { return Ok(()) };
        // Not the hash of any state: the next one is written even if it has no jars.
        self.saved.store(1, Ordering::Relaxed);
        self.jars.set_json(&String::from_utf8_lossy(state))
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        // Jars that were removed must also leave the job.
        if self.jars.names().is_empty() && self.saved.load(Ordering::Relaxed) == 0 {
            return Ok(None);
        }
        let text = self.jars.to_json()?;
        let hash = xxh3_64(text.as_bytes());
        let is_new = self.saved.swap(hash, Ordering::Relaxed) != hash;
        Ok(is_new.then(|| text.into_bytes()))
    }
}

impl Cookies {
    /// Creates the component from the settings; `None` if `cookies_enabled` is off.
    ///
    /// # Errors
    /// None.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        Self::with_jars(settings, CookieJars::new())
    }

    /// Uses the given jars, so that a program can seed them before the crawl or read them after it.
    ///
    /// # Errors
    /// None.
    pub fn with_jars(settings: &Settings, jars: CookieJars) -> Result<Option<Self>> {
        let own: CookiesSettings = settings.of()?;
        Ok(own.cookies_enabled.then_some(Self {
            jars,
            debug: own.cookies_debug,
            saved: AtomicU64::new(0),
            changed: hand_over::Changed::default(),
        }))
    }

    /// The jars.
    pub fn jars(&self) -> &CookieJars {
        &self.jars
    }
}

/// The name of the jar that a request uses.
pub(crate) fn jar_name(request: &Request) -> String {
    match request.meta.get(meta::COOKIEJAR.name()) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(name)) => name.clone(),
        Some(other) => other.to_string(),
    }
}

impl Component for Cookies {
    const NAME: &'static str = "cookies";
    type Settings = CookiesSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.downloader(700).observer().persist().hand_over()
    }
}

impl DownloaderMiddleware for Cookies {
    async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
        if request.meta_flag(meta::DONT_MERGE_COOKIES) {
            return Ok(OnRequest::Continue);
        }
        let now = cx.now();
        let value = self.jars.with(&jar_name(request), |jar| {
            for (name, value) in request.cookies() {
                jar.insert(StoredCookie::new(&request.url, name, value), now);
            }
            jar.header(&request.url, now)
        });
        request.headers.remove(header::COOKIE);
        if let Some(value) = value
            && let Ok(mut value) = HeaderValue::from_bytes(value.as_bytes())
        {
            if self.debug {
                log::debug!(url = %request.url, "sending cookies: {:?}", value.to_str().unwrap_or(""));
            }
            value.set_sensitive(true);
            added::set(request, header::COOKIE, value);
        }
        Ok(OnRequest::Continue)
    }

    async fn process_response(
        &self,
        request: &Request,
        response: &mut Response,
        cx: &Context,
    ) -> Result<OnResponse> {
        if !response.headers.contains_key(header::SET_COOKIE) || request.meta_flag(meta::DONT_MERGE_COOKIES) {
            return Ok(OnResponse::Continue);
        }
        let now = cx.now();
        let changed = self.jars.with(&jar_name(request), |jar| {
            let mut changed = false;
            for value in response.headers.get_all(header::SET_COOKIE) {
                let Ok(value) = std::str::from_utf8(value.as_bytes()) else { continue };
                let kept = jar.store(&request.url, value, now);
                if self.debug {
                    let what = if kept { "kept" } else { "not kept or not new" };
                    log::debug!(url = %request.url, "received a cookie, {what}: {value:?}");
                }
                changed |= kept;
            }
            changed
        });
        if changed {
            response.extensions.insert(CookiesChanged);
            self.changed.note(request);
        }
        Ok(OnResponse::Continue)
    }
}

impl Observer for Cookies {
    fn event(&self, event: &Event<'_>) {
        if let Event::CookieJarEnded { name } = event {
            self.jars.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;

    struct Bench {
        cookies: Cookies,
        cx: Context,
    }

    fn bench() -> Bench {
        let settings = Settings::default();
        Bench {
            cookies: Cookies::from_settings(&settings).unwrap().unwrap(),
            cx: Context::detached(settings),
        }
    }

    fn request(url: &str) -> Request {
        Request::parse(url).unwrap()
    }

    impl Bench {
        async fn send(&self, request: &mut Request) -> Option<String> {
            self.cookies.process_request(request, &self.cx).await.unwrap();
            request.headers.get("cookie").map(|value| value.to_str().unwrap().to_owned())
        }

        async fn receive(&self, request: &Request, set_cookie: &[&[u8]]) -> bool {
            let mut response = Response::new(request.url.clone(), StatusCode::OK, "");
            for value in set_cookie {
                response.headers.append("set-cookie", HeaderValue::from_bytes(value).unwrap());
            }
            self.cookies.process_response(request, &mut response, &self.cx).await.unwrap();
            response.extensions.get::<CookiesChanged>().is_some()
        }
    }

    #[tokio::test]
    async fn what_a_server_sets_is_sent_back() {
        let bench = bench();
        let first = request("http://h/");
        assert!(bench.receive(&first, &[b"a=1", b"b=2; Path=/x", b"c=\xff", b"nonsense"]).await);
        assert!(!bench.receive(&first, &[b"a=1"]).await);
        assert_eq!(bench.send(&mut request("http://h/x/")).await.as_deref(), Some("b=2; a=1"));
        assert_eq!(bench.send(&mut request("http://g/")).await, None);
    }

    #[tokio::test]
    async fn values_beyond_ascii_are_sent_back_unchanged() {
        let bench = bench();
        bench.receive(&request("http://h/"), &["a=caf\u{e9}".as_bytes(), b"b=2"]).await;
        let mut next = request("http://h/");
        bench.cookies.process_request(&mut next, &bench.cx).await.unwrap();
        assert_eq!(next.headers["cookie"].as_bytes(), "a=caf\u{e9}; b=2".as_bytes());
        // This cookie was set by hand and is not valid: it would end the header.
        let mut odd = request("http://h/").cookie("c", "1\r\nX-Evil: 1").cookie("d;e", "1").cookie("f", "ok");
        bench.cookies.process_request(&mut odd, &bench.cx).await.unwrap();
        assert_eq!(odd.headers["cookie"].as_bytes(), "a=caf\u{e9}; b=2; f=ok".as_bytes());
    }

    #[tokio::test]
    async fn jars_are_apart() {
        let bench = bench();
        bench.receive(&request("http://h/").meta("cookiejar", 1), &[b"a=1"]).await;
        bench.receive(&request("http://h/").meta("cookiejar", "x"), &[b"a=2"]).await;
        assert_eq!(bench.send(&mut request("http://h/").meta("cookiejar", 1)).await.as_deref(), Some("a=1"));
        assert_eq!(
            bench.send(&mut request("http://h/").meta("cookiejar", "x")).await.as_deref(),
            Some("a=2")
        );
        assert_eq!(bench.send(&mut request("http://h/")).await, None);
        bench.cookies.jars().fork("x", "");
        assert_eq!(bench.send(&mut request("http://h/")).await.as_deref(), Some("a=2"));
    }

    #[tokio::test]
    async fn cookies_of_a_request_go_into_the_jar() {
        let bench = bench();
        let mut first = request("https://h/login/form").cookie("session", "s1");
        assert_eq!(bench.send(&mut first).await.as_deref(), Some("session=s1"));
        assert_eq!(bench.send(&mut request("https://h/account")).await.as_deref(), Some("session=s1"));
        assert_eq!(
            bench.send(&mut request("http://h/account")).await,
            None,
            "given over https, it is secure"
        );
    }

    #[tokio::test]
    async fn a_header_set_by_hand_is_replaced_unless_merging_is_off() {
        let bench = bench();
        bench.receive(&request("http://h/"), &[b"a=1"]).await;
        let by_hand = |url: &str| request(url).header("Cookie", "mine=1").unwrap();
        assert_eq!(bench.send(&mut by_hand("http://h/")).await.as_deref(), Some("a=1"));
        assert_eq!(bench.send(&mut by_hand("http://g/")).await, None);
        let mut own = by_hand("http://h/").with_meta(meta::DONT_MERGE_COOKIES, true);
        assert_eq!(bench.send(&mut own).await.as_deref(), Some("mine=1"));
        assert!(!bench.receive(&own, &[b"z=1"]).await);
    }

    #[tokio::test]
    async fn jars_survive_in_a_file() {
        let bench = bench();
        bench.receive(&request("http://h/"), &[b"a=1"]).await;
        bench.receive(&request("http://h/").meta("cookiejar", 7), &[b"a=2; Max-Age=60"]).await;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jars.json");
        bench.cookies.jars().save(&path).unwrap();
        let other = super::tests::bench();
        other.cookies.jars().load(&path).unwrap();
        assert_eq!(other.send(&mut request("http://h/")).await.as_deref(), Some("a=1"));
        assert_eq!(other.send(&mut request("http://h/").meta("cookiejar", 7)).await.as_deref(), Some("a=2"));
        std::fs::write(&path, "{\"a\": 1}").unwrap();
        assert!(other.cookies.jars().load(&path).unwrap_err().to_string().contains("jars.json"));
    }
}
