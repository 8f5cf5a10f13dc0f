//! Settings: each part of a crawl declares its own next to its code, with Scrapy's names in lower case. The help, the
//! checks, the profiles and the reference page are generated from the declarations.

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
pub use table::{SettingsTable, nearest};

use crate::settings;

settings! {
    /// Settings of the engine and the HTTP client, typed. Times are in seconds and sizes in bytes; for a limit, 0 means
    /// no limit. Defaults are those of the polite profile.
    pub struct EngineSettings checked by check_engine {
        /// Downloads in flight in the whole crawl.
        concurrent_requests: usize = 16, broad = 256;
        /// Downloads in flight per slot.
        concurrent_requests_per_domain: usize = 1, audit = 5, test = 16;
        /// What a slot is: host, registrable_domain or ip.
        slot_by: SlotBy = SlotBy::Host, broad = SlotBy::RegistrableDomain;
        /// Seconds between the starts of two requests of one slot.
        download_delay: f64 = 1.0, audit = 0.0, test = 0.0;
        /// Each gap is delay * (1 + U(0, jitter)): jitter only lengthens.
        download_delay_jitter: f64 = 0.5, audit = 0.0, test = 0.0;
        /// Per host (`example.com`, `*.example.com`): {concurrency, delay, jitter}.
        download_slots: BTreeMap<String, SlotSettings> = BTreeMap::new();
        /// Quota of the whole crawl, requests a second; 0 is none.
        requests_per_second: f64 = 0.0;
        /// Seed of all randomness; none takes one from the system and reports it.
        seed: Option<u64> = None;
        /// Seconds between two commits of a job: what a crash may cost in pages that are fetched again.
        job_commit_interval: f64 = 1.0;
        /// What a commit survives at least: process (a kill) or full (a power cut, too). On redb and sled it survives both with either.
        job_sync: JobSync = JobSync::Process;
        /// Queued requests that a job keeps in memory; the others are on disk. Some 300 bytes each.
        frontier_memory_limit: usize = 100_000;
        /// Bytes of responses that wait for or are in callbacks before nothing more is leased.
        scraper_slot_max_active_size: usize = 5_000_000;
        /// Callbacks that run at once; 0 is the number of cores.
        callback_threads: usize = 0;
        /// Start requests queued before the start source is pulled again.
        start_high_water: usize = 10_000;
        /// Order within one priority of one host: bfs, dfs or best_first.
        scheduler_order: Order = Order::Bfs;
        /// Seconds that parked work (Retry-After, host down, robots.txt unreachable, retry back-off) keeps an otherwise idle crawl open.
        max_parked_wait: f64 = 600.0, audit = 30.0, test = 30.0;
        /// Seconds that requests in flight may take to end after a stop.
        drain_timeout: f64 = 15.0;
        /// The guards against traps judge the requests that a spider names, too (seeds, follow, request), and not only links that
        /// are followed without a look (follow_links, rules, sitemaps).
        guard_spider_requests: bool = false;
        /// The scan of each page collects its text too, for detectors and records that want it.
        page_text: bool = false;
        /// The scan of each page collects the blocks of its text too.
        page_blocks: bool = false;
        /// Links of one page that are followed without a look, at most; what was cut is counted.
        max_links_per_page: usize = 10_000;
        /// Entries of one sitemap that are followed at most; what was cut is counted.
        sitemap_max_entries: usize = 50_000;
        /// Sitemaps of one host that are asked for at most, those that the spider starts from not counted.
        sitemap_max_files: usize = 100;
        /// Bytes of one sitemap that are read at most, unpacked; 0 is no limit.
        sitemap_max_bytes: u64 = 50 << 20;
        /// Indexes above a sitemap at most: 1 follows an index, 2 an index of indexes, 0 none.
        sitemap_max_depth: u16 = 2;
        /// Closes after so many seconds; 0 is off.
        closespider_timeout: f64 = 0.0;
        /// Closes after so many items; 0 is off.
        closespider_itemcount: u64 = 0;
        /// Delivers exactly so many pages at most; 0 is off.
        closespider_pagecount: u64 = 0;
        /// Closes after so many failed callbacks; 0 is off.
        closespider_errorcount: u64 = 0;
        /// Closes after so many seconds without an item; 0 is off.
        closespider_timeout_no_item: f64 = 0.0;
        /// Closes after so many pages without an item; 0 is off.
        closespider_pagecount_no_item: u64 = 0;
        /// Delivers exactly so many pages of one host at most; 0 is off.
        max_pages_per_host: u64 = 0;
        /// Adapts the delay of each slot to the latency of its answers.
        autothrottle_enabled: bool = false, audit = true, broad = true;
        /// First delay, seconds.
        autothrottle_start_delay: f64 = 5.0, audit = 0.2, broad = 1.0;
        /// Longest delay, seconds.
        autothrottle_max_delay: f64 = 60.0;
        /// Requests that are meant to be in flight per slot, on average.
        autothrottle_target_concurrency: f64 = 1.0, audit = 5.0, broad = 1.0;
        /// What is taken for the latency of a slot: median, that of its last five answers, or last, the last one alone, as Scrapy has it.
        autothrottle_estimate: LatencyEstimate = LatencyEstimate::Median;
        /// Logs every change.
        autothrottle_debug: bool = false;
        /// Longest obeyed Retry-After, seconds. One beyond it is not believed: the request fails, and its host goes on more slowly.
        retry_after_max: f64 = 120.0;
        /// Connection failures in a row after which a host is down; 0 switches it off.
        host_max_failures: u32 = 5;
        /// Seconds that a host that is down is left alone before one probe.
        host_down_cooldown: f64 = 600.0;
        /// Cool-downs after which the queue of a host is dropped.
        host_max_cooldowns: u32 = 3;
        /// The User-Agent header: product, version, and a contact.
        user_agent: String = concat!("huntsman/", env!("CARGO_PKG_VERSION"), " (+https://huntsman.invalid/bot)").to_owned();
        /// Seconds for a whole request.
        download_timeout: f64 = 30.0;
        /// Seconds for connect and TLS handshake.
        connect_timeout: f64 = 10.0;
        /// Seconds until the headers are complete.
        first_byte_timeout: f64 = 15.0;
        /// Seconds of silence within the body.
        read_idle_timeout: f64 = 10.0;
        /// Largest body after decoding; 0 is no limit.
        download_maxsize: u64 = 16 << 20, broad = 5 << 20;
        /// A body above this is logged; 0 is off.
        download_warnsize: u64 = 8 << 20;
        /// Delivers the first `download_maxsize` bytes of a larger body, marked truncated, instead of failing it.
        download_truncate: bool = false;
        /// Fails a body that is shorter than declared, or that ends before its content coding does; else it passes with the flag
        /// dataloss or partial.
        download_fail_on_dataloss: bool = true;
        /// Reads bodies that are neither markup nor text.
        download_binary: bool = false;
        /// Header lines at most: pages with hundreds of cookies are real, and `max_header_bytes` bounds what they weigh.
        max_header_lines: usize = 1_000;
        /// Header bytes at most.
        max_header_bytes: usize = 256 << 10;
        /// Stacked content codings at most.
        max_content_codings: usize = 3;
        /// Offers HTTP/2.
        http2: bool = true;
        /// Verifies TLS certificates: true, false, or record, which takes pages in spite of a bad certificate and marks them. Anything
        /// but true withholds credentials.
        download_verify_certificates: VerifyCertificates = VerifyCertificates::Yes;
        /// Lowest TLS version: 1.2 or 1.3.
        tls_min_version: String = "1.2".to_owned();
        /// Highest TLS version: 1.2 or 1.3.
        tls_max_version: String = "1.3".to_owned();
        /// Names kept in the DNS cache.
        dnscache_size: usize = 10_000;
        /// Seconds for a DNS answer.
        dns_timeout: f64 = 10.0;
        /// Fixed addresses: `host:port:address`.
        resolve: Vec<String> = Vec::new();
        /// Addresses that the guard lets pass: `host:port`, `host:*`.
        allow_addresses: Vec<String> = Vec::new();
        /// Lets the guard pass every address.
        allow_private_addresses: bool = false;
        /// Local address to send from.
        bind_address: Option<String> = None;
        /// Request headers that count for the fingerprint.
        fingerprint_headers: Vec<String> = Vec::new();
        /// Arguments of the spider by name: what callbacks and components read with `Context::arg`, and `%(name)s` in names of feeds.
        spider_args: BTreeMap<String, String> = BTreeMap::new();
        /// Query parameters that do not count for the fingerprint: `utm_*`, `gclid`.
        strip_query_params: Vec<String> = Vec::new();
        /// Path parameters (`;jsessionid=1`) do not count for the fingerprint.
        strip_path_params: bool = false;
        /// Logs every duplicate instead of the first one.
        dupefilter_debug: bool = false;
        /// Order numbers or "off" by name, merged over the built-in table.
        downloader_middlewares: BTreeMap<String, Value> = BTreeMap::new();
        /// Order numbers or "off" by name, merged over the built-in table.
        spider_middlewares: BTreeMap<String, Value> = BTreeMap::new();
        /// Least level that is logged.
        log_level: String = "info".to_owned(), test = "debug".to_owned();
        /// File for the log instead of stderr.
        log_file: Option<String> = None;
        /// Log as text or json.
        log_format: String = "text".to_owned();
        /// Seconds between two lines of crawl statistics in the log; 0 is off.
        logstats_interval: f64 = 60.0;
        /// Resident megabytes at which a warning is given; 0 is off.
        memusage_warning_mb: u64 = 0;
        /// Resident megabytes at which the crawl is closed; 0 is off.
        memusage_limit_mb: u64 = 0;
        /// Seconds between two looks at the memory.
        memusage_check_interval: f64 = 60.0;
        /// Hosts that get stats of their own.
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
    pub fn of<G: SettingsGroup>(&self) -> G {
        // The values have the types that their group declares: layers are checked against the table, and programs set
        // whole groups.
        G::read(&self.values).unwrap_or_default()
    }

    /// Changes the settings of one group, for programs and tests that do not use [`Layers`].
    pub fn change<G: SettingsGroup>(&mut self, change: impl FnOnce(&mut G)) {
        let mut group = self.of::<G>();
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
    ];
    times.into_iter().try_for_each(|(name, value)| check_time(name, value))?;
    if settings.autothrottle_target_concurrency <= 0.0 {
        return fail("autothrottle_target_concurrency", "must be greater than 0");
    }
    if settings.concurrent_requests_per_domain == 0 {
        return fail("concurrent_requests_per_domain", "must be at least 1");
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

/// How https servers without a valid certificate are treated. `true`, `false` and `"record"` in files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum VerifyCertificates {
    /// They are refused.
    #[default]
    Yes,
    /// Pages come with the flag `bad_certificate` and a [`CertificateError`](crate::CertificateError) in their extensions;
    /// through a proxy they are refused, because the certificate is not seen there.
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
    /// A killed process (default).
    #[default]
    Process,
    /// A power cut.
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
