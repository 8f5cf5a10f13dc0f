//! Settings: each part of a crawl declares its own next to its code, with Scrapy's names in lower case. The help, the
//! checks, the profiles and the reference page are generated from the declarations.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::frontier::Order;
use crate::host::SlotBy;

mod declared;
mod layers;
mod profile;
mod table;

pub use declared::{SettingInfo, SettingsGroup, private};
pub use layers::{Layer, Layers};
pub use profile::Profile;
pub use table::{GroupInfo, SettingsTable, nearest};

use crate::settings;

settings! {
    /// Settings of the engine and the HTTP client, typed. Times are in seconds and sizes in bytes; for a limit, 0 means
    /// no limit. Defaults are those of the polite profile.
    pub struct EngineSettings checked by check_engine {
        /// Maximum number of downloads in flight in the whole crawl.
        concurrent_requests: usize = 16, broad = 256;
        /// Maximum number of downloads in flight per slot (see slot_by).
        concurrent_requests_per_domain: usize = 1, audit = 5, test = 16;
        /// What a slot is, within which requests share a delay and a limit: host, registrable_domain or ip.
        slot_by: SlotBy = SlotBy::Host, broad = SlotBy::RegistrableDomain;
        /// Seconds between the starts of two requests of one slot.
        download_delay: f64 = 1.0, audit = 0.0, test = 0.0;
        /// Random lengthening of the delay: each gap between two requests is delay * (1 + r), with a random r between 0
        /// and this value.
        download_delay_jitter: f64 = 0.5, audit = 0.0, test = 0.0;
        /// Concurrency, delay and jitter of single hosts (`example.com`, `*.example.com`), as {concurrency, delay,
        /// jitter}.
        download_slots: BTreeMap<String, SlotSettings> = BTreeMap::new();
        /// Maximum number of requests per second of the whole crawl; 0 is no limit.
        requests_per_second: f64 = 0.0;
        /// Seed of all random numbers. If unset, the system gives one, and the report names it.
        seed: Option<u64> = None;
        /// Seconds between two commits of a job. After a crash, the pages since the last commit are fetched again.
        job_commit_interval: f64 = 1.0;
        /// What a commit of a job survives at least: process (the process is killed) or full (the power fails). With
        /// the stores redb and sled it survives both in either case.
        job_sync: JobSync = JobSync::Process;
        /// Number of queued requests that a job keeps in memory, at about 300 bytes each; the others are on disk.
        frontier_memory_limit: usize = 100_000;
        /// Maximum number of bytes of responses that wait for callbacks or are in them. While there are more, no
        /// further requests are taken from the queue.
        scraper_slot_max_active_size: usize = 5_000_000;
        /// Number of callbacks that run at once; 0 is the number of cores.
        callback_threads: usize = 0;
        /// Maximum number of items that a concurrent pipeline has at once. A pipeline that takes one item after the other is
        /// not concerned.
        concurrent_items: usize = 100;
        /// Maximum number of seconds that a pipeline has for one item, which is lost after it; 0 is no limit.
        item_timeout: f64 = 180.0;
        /// More start requests are read from their source only while fewer requests than this are queued.
        start_high_water: usize = 10_000;
        /// Order of the requests of one host that have the same priority: bfs, dfs or best_first.
        scheduler_order: Order = Order::Bfs;
        /// Maximum number of seconds for which a crawl that has nothing else to do waits for delayed requests: those
        /// delayed by Retry-After, a host that is down, an unreachable robots.txt, or the wait before a retry.
        max_parked_wait: f64 = 600.0, audit = 30.0, test = 30.0;
        /// Seconds that requests in flight have to end after the crawl was stopped.
        drain_timeout: f64 = 15.0;
        /// Applies the guards against traps also to requests that the spider makes itself (seeds, follow, request). If
        /// off, they only judge links that are followed automatically (follow_links, rules, sitemaps).
        guard_spider_requests: bool = false;
        /// The scan of each page also collects its text, for components and records that need it.
        page_text: bool = false;
        /// The scan of each page also collects the blocks that its text consists of, with their positions.
        page_blocks: bool = false;
        /// Maximum number of links of one page that are followed automatically; the links beyond it are counted.
        max_links_per_page: usize = 10_000;
        /// Maximum number of entries of one sitemap that are followed; the entries beyond it are counted.
        sitemap_max_entries: usize = 50_000;
        /// Maximum number of sitemaps that are requested per host, without those that the spider starts from.
        sitemap_max_files: usize = 100;
        /// Maximum number of bytes that are read of one sitemap, after unpacking; 0 is no limit.
        sitemap_max_bytes: u64 = 50 << 20;
        /// Levels of sitemap indexes that are followed: 0 is none, 1 an index of sitemaps, 2 also an index of indexes.
        sitemap_max_depth: u16 = 2;
        /// Closes the crawl after this many seconds; 0 is no limit.
        closespider_timeout: f64 = 0.0;
        /// Closes the crawl after this many items; 0 is no limit.
        closespider_itemcount: u64 = 0;
        /// Closes the crawl after this many pages; no page more is delivered. 0 is no limit.
        closespider_pagecount: u64 = 0;
        /// Closes the crawl after this many failed callbacks; 0 is no limit.
        closespider_errorcount: u64 = 0;
        /// Closes the crawl after this many seconds without an item; 0 is no limit.
        closespider_timeout_no_item: f64 = 0.0;
        /// Closes the crawl after this many pages without an item; 0 is no limit.
        closespider_pagecount_no_item: u64 = 0;
        /// Maximum number of pages of one host that are delivered; 0 is no limit.
        max_pages_per_host: u64 = 0;
        /// AutoThrottle: adapts the delay of each slot to the latency of its responses.
        autothrottle_enabled: bool = false, audit = true, broad = true;
        /// First delay of a slot under AutoThrottle, in seconds.
        autothrottle_start_delay: f64 = 5.0, audit = 0.2, broad = 1.0;
        /// Longest delay that AutoThrottle sets, in seconds.
        autothrottle_max_delay: f64 = 60.0;
        /// Average number of requests in flight per slot that AutoThrottle aims at.
        autothrottle_target_concurrency: f64 = 1.0, audit = 5.0, broad = 1.0;
        /// Latency that AutoThrottle uses: median (that of the last five responses of the slot) or last (that of the
        /// last response, as in Scrapy).
        autothrottle_estimate: LatencyEstimate = LatencyEstimate::Median;
        /// Logs each response with its latency and size, the delay of its slot, and how the delay changed.
        autothrottle_debug: bool = false;
        /// Longest Retry-After that is obeyed, in seconds. If a server asks for a longer wait, the request fails, and
        /// its host gets requests more slowly.
        retry_after_max: f64 = 120.0;
        /// Number of connection failures in a row after which a host counts as down; 0 switches this off.
        host_max_failures: u32 = 5;
        /// Seconds for which a host that is down gets no requests; after them one request tries whether it is back.
        host_down_cooldown: f64 = 600.0;
        /// Number of pauses of host_down_cooldown seconds after which the queued requests of a host are dropped.
        host_max_cooldowns: u32 = 3;
        /// The User-Agent header: product, version and a contact.
        user_agent: String = concat!("huntsman/", env!("CARGO_PKG_VERSION"), " (+https://huntsman.invalid/bot)").to_owned();
        /// Maximum number of seconds for a whole request.
        download_timeout: f64 = 30.0;
        /// Maximum number of seconds for connecting, TLS handshake included.
        connect_timeout: f64 = 10.0;
        /// Maximum number of seconds until the headers of a response are complete.
        first_byte_timeout: f64 = 15.0;
        /// Maximum number of seconds without new data while a body is read.
        read_idle_timeout: f64 = 10.0;
        /// Maximum size of a body in bytes, after decoding; 0 is no limit.
        download_maxsize: u64 = 16 << 20, broad = 5 << 20;
        /// Bodies larger than this number of bytes are logged; 0 switches this off.
        download_warnsize: u64 = 8 << 20;
        /// Delivers the first `download_maxsize` bytes of a larger body, marked as truncated, instead of failing the
        /// request.
        download_truncate: bool = false;
        /// Fails a response whose body is shorter than declared, or ends before its content coding does. If off, such a
        /// response is delivered with the flag dataloss or partial.
        download_fail_on_dataloss: bool = true;
        /// Also reads bodies that are neither markup nor text.
        download_binary: bool = false;
        /// Also reads bodies of these media types, such as `application/pdf`, though they are neither markup nor text.
        download_types: Vec<String> = Vec::new();
        /// Maximum number of header lines of a response. It is high because some pages set hundreds of cookies;
        /// `max_header_bytes` limits their size.
        max_header_lines: usize = 1_000;
        /// Maximum number of bytes of the headers of a response.
        max_header_bytes: usize = 256 << 10;
        /// Maximum number of content codings of one body, one inside the other.
        max_content_codings: usize = 3;
        /// Offers HTTP/2 to servers.
        http2: bool = true;
        /// Verifies TLS certificates: true, false, or record, which accepts pages with a bad certificate and marks
        /// them. With any value but true no credentials are sent.
        download_verify_certificates: VerifyCertificates = VerifyCertificates::Yes;
        /// File of certificates in PEM: authorities that are trusted besides those of the system.
        tls_ca_file: Option<String> = None;
        /// Lowest TLS version: 1.2 or 1.3.
        tls_min_version: String = "1.2".to_owned();
        /// Highest TLS version: 1.2 or 1.3.
        tls_max_version: String = "1.3".to_owned();
        /// Maximum number of host names in the DNS cache.
        dnscache_size: usize = 10_000;
        /// Maximum number of seconds for a DNS lookup.
        dns_timeout: f64 = 10.0;
        /// Fixed addresses of hosts: `host:port:address`.
        resolve: Vec<String> = Vec::new();
        /// Hosts that requests may go to although their addresses are private: `host:port`, `host:*`.
        allow_addresses: Vec<String> = Vec::new();
        /// Requests may go to every address, private ones included.
        allow_private_addresses: bool = false;
        /// Local address that requests are sent from.
        bind_address: Option<String> = None;
        /// Request headers that are part of the fingerprint: requests that differ in them are not duplicates.
        fingerprint_headers: Vec<String> = Vec::new();
        /// Arguments of the spider by name. Callbacks and components read them with `Context::arg`; names of feeds
        /// contain them as `%(name)s`.
        spider_args: BTreeMap<String, String> = BTreeMap::new();
        /// Query parameters that are left out of the fingerprint, such as `utm_*` or `gclid`: URLs that differ only in
        /// them are duplicates.
        strip_query_params: Vec<String> = Vec::new();
        /// Leaves path parameters (`;jsessionid=1`) out of the fingerprint.
        strip_path_params: bool = false;
        /// Logs every duplicate, and not only the first one.
        dupefilter_debug: bool = false;
        /// Order numbers of downloader middlewares by name, or "off"; those that are not named keep their usual order.
        downloader_middlewares: BTreeMap<String, Value> = BTreeMap::new();
        /// Order numbers of spider middlewares by name, or "off"; those that are not named keep their usual order.
        spider_middlewares: BTreeMap<String, Value> = BTreeMap::new();
        /// Lowest level that is logged: error, warn, info, debug or trace.
        log_level: String = "info".to_owned(), test = "debug".to_owned();
        /// File that the log is written to; if unset, it goes to stderr.
        log_file: Option<String> = None;
        /// Format of the log: text or json.
        log_format: String = "text".to_owned();
        /// Seconds between two log lines with the statistics of the crawl; 0 switches them off.
        logstats_interval: f64 = 60.0;
        /// Resident memory in megabytes above which a warning is logged; 0 is no limit.
        memusage_warning_mb: u64 = 0;
        /// Resident memory in megabytes above which the crawl is closed; 0 is no limit. At 90 % of it the queue goes to disk, if the crawl
        /// has a job.
        memusage_limit_mb: u64 = 0;
        /// Seconds between two checks of the memory.
        memusage_check_interval: f64 = 60.0;
        /// Number of hosts, the busiest first, that have stats of their own.
        stats_top_hosts: usize = 100;
    }
}

/// The settings of a crawl, made from [`Layers`].
///
/// The engine's settings are fields, through [`EngineSettings`]. Settings of components are read with
/// [`of`](Self::of), as the group that the component declares. Defaults are those of the polite profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    engine: EngineSettings,
    /// Values of the other groups.
    values: Map<String, Value>,
    /// The groups that the parts of the crawl declare; `None` if the settings were not resolved for a crawl.
    declared: Option<Vec<TypeId>>,
}

impl Deref for Settings {
    type Target = EngineSettings;

    fn deref(&self) -> &EngineSettings {
        &self.engine
    }
}

impl DerefMut for Settings {
    fn deref_mut(&mut self) -> &mut EngineSettings {
        &mut self.engine
    }
}

impl Settings {
    /// The settings of one group: the values that were set, and defaults for the rest. Each call reads all values
    /// again, so hot code should keep the result.
    ///
    /// # Errors
    /// No part of the crawl declares the group, so its values cannot be set. Settings that were not resolved from
    /// [`Layers`] (`Settings::default()`) have the defaults of every group.
    pub fn of<G: SettingsGroup>(&self) -> Result<G> {
        let is_declared = |groups: &Vec<TypeId>| groups.contains(&TypeId::of::<G>()) || G::TABLE.is_empty();
        if !self.declared.as_ref().is_none_or(is_declared) {
            return Err(Error::usage(format!(
                "{name}: no part of this crawl declares these settings; add the component that they belong to, or call \
                 CrawlerBuilder::with_settings::<{name}>()",
                name = G::NAME
            )));
        }
        Ok(self.of_or_default())
    }

    /// The settings of one group, for code that also works without the component that they belong to: the defaults if
    /// no part of the crawl declares the group.
    pub fn of_or_default<G: SettingsGroup>(&self) -> G {
        let is_engine = TypeId::of::<G>() == TypeId::of::<EngineSettings>();
        // The values have the types that their group declares: layers are checked against the table, and programs set
        // whole groups.
        let read = if is_engine { G::read(&self.engine.values()) } else { G::read(&self.values) };
        read.unwrap_or_default()
    }

    /// Changes the settings of one group, for programs and tests that do not use [`Layers`].
    pub fn change<G: SettingsGroup>(&mut self, change: impl FnOnce(&mut G)) {
        if let Some(engine) = (&mut self.engine as &mut dyn Any).downcast_mut::<G>() {
            return change(engine);
        }
        let mut group = self.of_or_default::<G>();
        change(&mut group);
        self.values.extend(group.values());
    }

    /// One value by name, as JSON; `None` if no part of the crawl has declared it.
    pub fn get(&self, name: &str) -> Option<Value> {
        match self.values.get(name) {
            Some(value) => Some(value.clone()),
            None => self.engine.values().remove(name),
        }
    }

    /// The number of callbacks that run at once.
    pub fn callback_threads(&self) -> usize {
        match self.callback_threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        }
    }
}

fn check_engine(settings: &EngineSettings) -> Result<()> {
    let fail = |name: &str, what: &str| Err(Error::usage(format!("setting {name}: {what}")));
    let times = [
        ("download_delay", settings.download_delay),
        ("download_delay_jitter", settings.download_delay_jitter),
        ("requests_per_second", settings.requests_per_second),
        ("download_timeout", settings.download_timeout),
        ("connect_timeout", settings.connect_timeout),
        ("first_byte_timeout", settings.first_byte_timeout),
        ("read_idle_timeout", settings.read_idle_timeout),
        ("dns_timeout", settings.dns_timeout),
        ("autothrottle_start_delay", settings.autothrottle_start_delay),
        ("autothrottle_max_delay", settings.autothrottle_max_delay),
        ("retry_after_max", settings.retry_after_max),
        ("max_parked_wait", settings.max_parked_wait),
        ("closespider_timeout", settings.closespider_timeout),
        ("item_timeout", settings.item_timeout),
    ];
    times.into_iter().try_for_each(|(name, value)| check_time(name, value))?;
    if settings.autothrottle_target_concurrency <= 0.0 {
        return fail("autothrottle_target_concurrency", "must be greater than 0");
    }
    if settings.concurrent_requests_per_domain == 0 {
        return fail("concurrent_requests_per_domain", "must be at least 1");
    }
    if settings.concurrent_items == 0 {
        return fail("concurrent_items", "must be at least 1");
    }
    if http::HeaderValue::from_str(&settings.user_agent).is_err() {
        return fail("user_agent", "not allowed as a header value");
    }
    if !matches!(settings.tls_max_version.as_str(), "1.2" | "1.3") {
        return fail("tls_max_version", "use 1.2 or 1.3");
    }
    if !matches!(settings.tls_min_version.as_str(), "1.2" | "1.3") {
        return fail("tls_min_version", "use 1.2 or 1.3");
    }
    Ok(())
}

/// Checks that a setting is a finite number of at least 0: a time, or a rate.
///
/// # Errors
/// The value is not such a number; the error names the setting.
pub fn check_time(name: &str, value: f64) -> Result<()> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(Error::usage(format!("setting {name}: {value} is not a finite number of at least 0")))
}

/// Settings of one slot (`download_slots`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SlotSettings {
    /// Limit of downloads in flight.
    pub concurrency: Option<usize>,
    /// Seconds between starts.
    pub delay: Option<f64>,
    /// Jitter, as in `download_delay_jitter`.
    pub jitter: Option<f64>,
}

/// How https servers without a valid certificate are treated (`download_verify_certificates`): `true`, `"record"` or
/// `false` in files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum VerifyCertificates {
    /// Their responses are refused.
    #[default]
    Yes,
    /// Their pages are accepted, with the flag `bad_certificate` and a [`CertificateError`](crate::CertificateError) in
    /// their extensions. An https proxy is refused for a bad certificate, unless it is on the very host of the site.
    Record,
    /// Certificates are not verified.
    No,
}

impl VerifyCertificates {
    /// Whether a response proves the identity of the server; credentials are sent only then.
    pub fn proves_identity(self) -> bool {
        self == Self::Yes
    }
}

impl From<bool> for VerifyCertificates {
    fn from(verify: bool) -> Self {
        if verify { Self::Yes } else { Self::No }
    }
}

impl TryFrom<Value> for VerifyCertificates {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        match value {
            Value::Bool(verify) => Ok(verify.into()),
            Value::String(word) if word == "record" => Ok(Self::Record),
            _ => Err("expected true, false or record"),
        }
    }
}

impl From<VerifyCertificates> for Value {
    fn from(verify: VerifyCertificates) -> Self {
        match verify {
            VerifyCertificates::Yes => Self::Bool(true),
            VerifyCertificates::No => Self::Bool(false),
            VerifyCertificates::Record => Self::from("record"),
        }
    }
}

/// What a commit of a job must survive (`job_sync`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobSync {
    /// A commit survives a kill of the process (default).
    #[default]
    Process,
    /// A commit survives a power cut.
    Full,
}

/// How AutoThrottle estimates the latency of a slot (`autothrottle_estimate`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyEstimate {
    /// The median of the last five responses: one slow page does not slow the host down.
    #[default]
    Median,
    /// The last response, as in Scrapy.
    Last,
}

/// Converts the seconds of a setting to a duration. Negative and non-finite values become zero, and the maximum is
/// one year.
pub fn seconds(value: f64) -> std::time::Duration {
    const YEAR: f64 = 365.0 * 86_400.0;
    if value.is_finite() {
        std::time::Duration::from_secs_f64(value.clamp(0.0, YEAR))
    } else {
        std::time::Duration::ZERO
    }
}
