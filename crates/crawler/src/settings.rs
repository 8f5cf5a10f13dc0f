//! Settings: one typed table, Scrapy's names in lower case, from which help, checks and documentation come.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::frontier::Order;
use crate::host::SlotBy;
use crate::secrets::is_secret_name;

mod layers;
mod profile;

pub use layers::{Layer, Layers, nearest};
pub use profile::Profile;

/// Declares the table once: the struct, its defaults, and what `settings --help` prints.
macro_rules! settings {
    ($( $(#[doc = $doc:literal])+ $name:ident : $type:ty = $default:expr; )+) => {
        /// All settings of a crawl, typed. Times are seconds, sizes are bytes, 0 means no limit where a limit is meant.
        ///
        /// Defaults are the polite profile. Built from layers: see [`Layers`].
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        #[non_exhaustive]
        pub struct Settings { $( $(#[doc = $doc])+ pub $name: $type, )+ }

        impl Default for Settings {
            fn default() -> Self {
                Self { $( $name: $default, )+ }
            }
        }

        /// One row of the table of settings.
        const TABLE: &[SettingInfo] = &[ $( SettingInfo {
            name: stringify!($name), kind: stringify!($type), doc: concat!($($doc, "\n"),+),
        }, )+ ];
    };
}

/// Name, type and documentation of a setting.
#[derive(Clone, Copy, Debug)]
pub struct SettingInfo {
    /// The key in files and after `--set`.
    pub name: &'static str,
    /// The Rust type, for people.
    pub kind: &'static str,
    doc: &'static str,
}

impl SettingInfo {
    /// What the setting does, on one line.
    pub fn doc(&self) -> String {
        self.doc.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

settings! {
    /// Downloads in flight in the whole crawl.
    concurrent_requests: usize = 16;
    /// Downloads in flight per slot.
    concurrent_requests_per_domain: usize = 1;
    /// What a slot is: host, registrable_domain or ip.
    slot_by: SlotBy = SlotBy::Host;
    /// Seconds between the starts of two requests of one slot.
    download_delay: f64 = 1.0;
    /// Each gap is delay * (1 + U(0, jitter)): jitter only lengthens.
    download_delay_jitter: f64 = 0.5;
    /// Per host (`example.com`, `*.example.com`): {concurrency, delay, jitter}.
    download_slots: BTreeMap<String, SlotSettings> = BTreeMap::new();
    /// Quota of the whole crawl, requests a second; 0 is none.
    requests_per_second: f64 = 0.0;
    /// Quota of each proxy, requests a second; 0 is none.
    proxy_requests_per_second: f64 = 0.0;
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
    max_parked_wait: f64 = 600.0;

    /// Seconds that requests in flight may take to end after a stop.
    drain_timeout: f64 = 15.0;

    /// Links followed from a seed at most; 0 is no limit.
    depth_limit: u16 = 0;
    /// Links followed from a seed without a look at them, at most: a guard against endless chains. 0 switches it off.
    depth_guard: u16 = 20;
    /// The guards against traps judge the requests that a spider names, too (seeds, follow, request), and not only links that
    /// are followed without a look (follow_links, rules, sitemaps).
    guard_spider_requests: bool = false;
    /// priority -= depth * depth_priority.
    depth_priority: i32 = 0;
    /// Counts requests per depth.
    depth_stats_verbose: bool = false;
    /// Longest URL in bytes; 0 is no limit.
    urllength_limit: usize = 2_048;
    /// Most path segments in a URL; 0 switches the guard off.
    path_max_segments: usize = 20;
    /// How often the same segment may stand in a path; 0 switches the guard off.
    path_max_repeats: usize = 3;
    /// The other trap guards: off, warn or drop.
    trap_guards: Guard = Guard::Off;
    /// Distinct query strings per path, for the trap guards.
    max_query_variants: usize = 1_000;
    /// URLs per template of one host, for the trap guards.
    max_urls_per_template: usize = 20_000;
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
    /// Which links are followed: host, origin, domain, prefix or all.
    scope: Scope = Scope::All;
    /// Hosts (`name` or `name:port`) that are in scope besides the seeds'.
    allow_hosts: Vec<String> = Vec::new();
    /// Patterns on the URL, globs or `re:` and a regular expression: if any are given, a URL must match one.
    include: Vec<String> = Vec::new();
    /// Patterns as in include: a URL that matches one is not followed. Wins over include.
    exclude: Vec<String> = Vec::new();
    /// A redirect that leaves the scope: drop, record or follow.
    redirect_out_of_scope: OutOfScope = OutOfScope::Drop;

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
    autothrottle_enabled: bool = false;
    /// First delay, seconds.
    autothrottle_start_delay: f64 = 5.0;
    /// Longest delay, seconds.
    autothrottle_max_delay: f64 = 60.0;
    /// Requests that are meant to be in flight per slot, on average.
    autothrottle_target_concurrency: f64 = 1.0;
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

    /// Obeys robots.txt.
    robotstxt_obey: bool = true;
    /// Product token for robots.txt; none takes the first token of the User-Agent.
    robotstxt_user_agent: Option<String> = None;
    /// What an unreachable robots.txt (5xx, 429, network) means: disallow or allow.
    robots_on_error: OnRobotsError = OnRobotsError::Disallow;
    /// Seconds that a robots.txt is good for.
    robots_ttl: f64 = 86_400.0;
    /// Seconds that an authority is refused after robots.txt failed for good.
    robots_error_ttl: f64 = 3_600.0;
    /// Seconds after which an unreachable robots.txt is asked for again.
    robots_retry_delays: Vec<f64> = vec![10.0, 60.0, 300.0];
    /// Longest obeyed Crawl-delay, seconds.
    robots_max_crawl_delay: f64 = 30.0;
    /// A Crawl-delay above the limit: skip the host, or clamp.
    robots_over_cap: OverCap = OverCap::Skip;
    /// Authorities whose robots.txt is kept.
    robots_cache_size: usize = 10_000;
    /// Obeys nofollow of meta robots, X-Robots-Tag and rel.
    obey_nofollow: bool = true;

    /// Retries failed requests.
    retry_enabled: bool = true;
    /// Retries after the first try.
    retry_times: u32 = 2;
    /// Status codes that are retried.
    retry_http_codes: Vec<u16> = vec![500, 502, 503, 504, 522, 524, 408, 429];
    /// Added to the priority of a retry.
    retry_priority_adjust: i32 = -1;
    /// First wait, seconds; doubles each time, with +-50 % jitter.
    retry_backoff_base: f64 = 1.0;
    /// Longest wait, seconds.
    retry_backoff_max: f64 = 60.0;
    /// Retries POST and PATCH even when the connection was lost after sending.
    retry_non_idempotent: bool = false;

    /// Follows redirects.
    redirect_enabled: bool = true;
    /// Longest chain of redirects, meta refreshes included.
    redirect_max_times: u32 = 20;
    /// Added to the priority of a redirected request.
    redirect_priority_adjust: i32 = 2;
    /// A redirect to a URL that was requested already: drop or deliver.
    redirect_dupe: RedirectDupe = RedirectDupe::Drop;
    /// Follows meta refresh.
    metarefresh_enabled: bool = true;
    /// A meta refresh of this many seconds or more is not followed.
    metarefresh_maxdelay: f64 = 100.0;

    /// Keeps cookies.
    cookies_enabled: bool = true;
    /// Logs cookies that are sent and received.
    cookies_debug: bool = false;
    /// The User-Agent header: product, version, and a contact.
    user_agent: String = concat!("huntsman/", env!("CARGO_PKG_VERSION"), " (+https://huntsman.invalid/bot)").to_owned();
    /// Headers that are set when absent, for every host; names match whatever their case. Credentials are refused here: see
    /// http_auth and secret_headers.
    default_request_headers: BTreeMap<String, String> = BTreeMap::from([
        ("Accept".to_owned(), "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8".to_owned()),
        ("Accept-Language".to_owned(), "en".to_owned()),
    ]);
    /// Credentials bound to origins: `https://host[:port]=user:password`.
    http_auth: Vec<String> = Vec::new();
    /// Headers bound to origins: `https://host[:port]=Name: value`.
    secret_headers: Vec<String> = Vec::new();
    /// User for Basic authentication.
    httpauth_user: String = String::new();
    /// Password for Basic authentication.
    httpauth_pass: String = String::new();
    /// Domain for Basic authentication; must be set, and "" means everywhere.
    httpauth_domain: Option<String> = None;
    /// Proxy for all requests: http, https, socks5 or socks5h URL.
    proxy: Option<String> = None;
    /// Takes http_proxy, https_proxy, all_proxy and no_proxy from the environment.
    proxy_from_env: bool = false;
    /// Hosts that are never asked through a proxy.
    no_proxy: Vec<String> = Vec::new();
    /// Referrer policy: one of the eight standard names, or scrapy-default.
    referrer_policy: String = "strict-origin-when-cross-origin".to_owned();

    /// Seconds for a whole request.
    download_timeout: f64 = 30.0;
    /// Seconds for connect and TLS handshake.
    connect_timeout: f64 = 10.0;
    /// Seconds until the headers are complete.
    first_byte_timeout: f64 = 15.0;
    /// Seconds of silence within the body.
    read_idle_timeout: f64 = 10.0;
    /// Largest body after decoding; 0 is no limit.
    download_maxsize: u64 = 16 << 20;
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

    /// Learns which parts of URLs do not change the content, and skips downloads that would bring nothing new.
    avoid_dup_content_enabled: bool = false;
    /// How it is learnt: our own model, or MaybeDont's rules exactly.
    avoid_dup_content_mode: AvoidDupMode = AvoidDupMode::Default;
    /// Which requests are judged and learnt from: all, or those with meta `avoid_dup_content`.
    avoid_dup_content_scope: AvoidDupScope = AvoidDupScope::All;
    /// Pages of a site that are learnt before anything is skipped.
    avoid_dup_content_initial_queue_limit: usize = 300;
    /// A download is skipped when its content is known with more than this probability.
    avoid_dup_content_threshold: f64 = 0.98;
    /// Share of the skips that are downloaded all the same, for evidence and for an estimate of what is lost.
    avoid_dup_content_exploration: f64 = 0.05;
    /// The share may fall to this with the age of a rule: after 20 explorations that found nothing new it is half. Unset: it
    /// does not fall.
    avoid_dup_content_exploration_min: Option<f64> = None;
    /// Parameters (`sid`, `utm_*`), path segments (`/2`) and `host` that never matter: what differs in them only is skipped.
    avoid_dup_content_pinned: Vec<String> = Vec::new();
    /// The same that always matter: nothing is skipped because of them.
    avoid_dup_content_forbidden: Vec<String> = Vec::new();

    /// Fingerprints the text of each page (SimHash) and tells which earlier pages of the crawl it nearly equals.
    near_dup_enabled: bool = false;
    /// In how many of 128 bits the fingerprints of near-duplicates differ at most, 0 to 7.
    near_dup_distance: u32 = 3;
    /// What texts are seen as: words-log, char5, words3 or words-tf.
    near_dup_features: String = "words-log".to_owned();
    /// Pages with fewer words are no near-duplicates: each word is a large part of them.
    near_dup_min_words: usize = 50;
    /// What happens to a near-duplicate of an earlier page.
    on_near_duplicate: OnNearDuplicate = OnNearDuplicate::Flag;

    /// Answers from the HTTP cache what was fetched before, and stores what is fetched.
    httpcache_enabled: bool = false;
    /// Directory of the HTTP cache; one process at a time, in which crawls may share it.
    httpcache_dir: String = ".huntsman/httpcache".to_owned();
    /// Bytes of stored answers, compressed; the ones that were not used for the longest time make room. The file takes up to
    /// about twice as much. 0 is no bound.
    httpcache_max_bytes: u64 = 10 << 30;
    /// Seconds after which a stored answer counts as missing; 0 is never.
    httpcache_expiration_secs: f64 = 0.0;
    /// Status codes that are not stored, besides failures, which never are.
    httpcache_ignore_http_codes: Vec<u16> = Vec::new();
    /// Schemes that are not stored.
    httpcache_ignore_schemes: Vec<String> = vec!["file".to_owned()];
    /// Drops what is not stored instead of fetching it: a crawl without a network.
    httpcache_ignore_missing: bool = false;
    /// Stored answers to requests with cookies are for requests with the same cookies; false suits sites that change them with every
    /// answer, and gives what was fetched with a session to crawls without.
    httpcache_bind_cookies: bool = true;
    /// Which stored answers are used: dummy (all of them) or rfc (by RFC 9111, as a private cache).
    httpcache_policy: HttpCachePolicy = HttpCachePolicy::Dummy;
    /// The rfc policy stores answers that say nothing of their freshness, too.
    httpcache_always_store: bool = false;
    /// Cache-Control directives of answers that the rfc policy does not obey.
    httpcache_ignore_response_cache_controls: Vec<String> = Vec::new();

    /// Remembers every page across crawls, and asks whether it changed before it is fetched again.
    incremental_enabled: bool = false;
    /// Directory of what is known of pages from earlier crawls; one crawl at a time.
    incremental_dir: String = ".huntsman/incremental".to_owned();
    /// What happens to a page that did not change: skip, or call its callback with the flag not_modified and an empty body.
    on_not_modified: OnNotModified = OnNotModified::Skip;
    /// Skips requests whose pages gave items in earlier crawls.
    delta_enabled: bool = false;
    /// Start requests are skipped, too.
    delta_include_start: bool = false;
    /// Forgets which pages gave items, before the crawl begins.
    delta_reset: bool = false;

    /// Status codes besides 2xx that reach the callback.
    httperror_allowed_codes: Vec<u16> = Vec::new();
    /// Every status reaches the callback.
    httperror_allow_all: bool = false;
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
    log_level: String = "info".to_owned();
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
    /// Feeds are flushed after so many items, and before a page is settled.
    feed_flush_items: usize = 1_000;
    /// Feeds are flushed after so many seconds.
    feed_flush_interval: f64 = 1.0;
    /// CSV cells that begin like a formula are neutralised.
    feed_csv_guard: bool = true;
}

/// Settings of one slot (`download_slots`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SlotSettings {
    /// Downloads in flight.
    pub concurrency: Option<usize>,
    /// Seconds between starts.
    pub delay: Option<f64>,
    /// Jitter as in `download_delay_jitter`.
    pub jitter: Option<f64>,
}

/// What becomes of https servers whose certificate is not valid. `true`, `false` and `"record"` in files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum VerifyCertificates {
    /// They are refused.
    #[default]
    Yes,
    /// Pages come with the flag `bad_certificate` and a [`CertificateError`](crate::CertificateError) in their extensions;
    /// through a proxy they are refused, because the certificate is not seen there.
    Record,
    /// Nothing is verified.
    No,
}

impl VerifyCertificates {
    /// Whether a server that answers is the one it says it is: only then does it get credentials.
    pub fn is_proof(self) -> bool {
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

/// What a commit of a job survives (`job_sync`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobSync {
    /// A killed process (default).
    #[default]
    Process,
    /// A power cut.
    Full,
}

/// What AutoThrottle takes for the latency of a slot (`autothrottle_estimate`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyEstimate {
    /// The median of its last five answers: one slow page does not slow the host down.
    #[default]
    Median,
    /// Its last answer, as in Scrapy.
    Last,
}

/// What a trap guard does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// Nothing.
    #[default]
    Off,
    /// Counts and logs once per reason and host.
    Warn,
    /// Drops the URL.
    Drop,
}

/// Which links are followed (`scope`), judged against the seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Scheme, host and port of a seed.
    Origin,
    /// Host of a seed, any port and scheme.
    Host,
    /// Registrable domain of a seed.
    Domain,
    /// Host of a seed, and a path below the folder of the seed's path.
    Prefix,
    /// Everything.
    #[default]
    All,
}

/// What happens to a redirect that leaves the scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutOfScope {
    /// The request is dropped.
    #[default]
    Drop,
    /// The redirect answer itself is recorded as the result: dropped with its target as detail.
    Record,
    /// It is followed; links of the target are judged as ever.
    Follow,
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

/// What an unreachable robots.txt means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnRobotsError {
    /// Everything is forbidden (RFC 9309, 2.3.1.4).
    #[default]
    Disallow,
    /// Everything is allowed.
    Allow,
}

/// How duplicate contents are avoided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AvoidDupMode {
    /// The model of `huntsman_detect::avoid`.
    #[default]
    Default,
    /// MaybeDont 0.1.1, exactly.
    Reference,
}

/// Which requests duplicate contents are avoided for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AvoidDupScope {
    /// All.
    #[default]
    All,
    /// Those with meta `avoid_dup_content`.
    Marked,
}

/// What happens to a page that is a near-duplicate of an earlier page of the crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnNearDuplicate {
    /// It is a page like others, and what it nearly equals is told with it.
    #[default]
    Flag,
    /// That, but its links are not followed.
    NoFollow,
    /// It is dropped with reason `near_duplicate`, and its links are not followed.
    Skip,
}

/// Which stored answers the HTTP cache uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpCachePolicy {
    /// All of them: for developing a spider, and for replaying a crawl.
    #[default]
    Dummy,
    /// Those that are fresh by RFC 9111; others are asked for with validators.
    Rfc,
}

/// What happens to a page that did not change since an earlier crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnNotModified {
    /// It is dropped with reason `not_modified`; its links are followed.
    #[default]
    Skip,
    /// Its callback is called: the response has the flag `not_modified`, status 304 and no body. Its links are followed, too.
    Call,
}

/// What happens to a host that asks for a longer delay than we accept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverCap {
    /// Its requests are dropped, reason `crawl_delay`.
    #[default]
    Skip,
    /// The longest accepted delay is used, with a warning.
    Clamp,
}

impl Settings {
    /// Every setting with its type and documentation, in table order.
    pub fn table() -> &'static [SettingInfo] {
        TABLE
    }

    /// One value by name, as JSON.
    pub fn get(&self, name: &str) -> Option<Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(mut all)) => all.remove(name),
            _ => None,
        }
    }

    /// A value of a setting as it may be shown: what holds credentials is replaced by `***`.
    pub fn shown(name: &str, value: Value) -> Value {
        const SECRETS: [&str; 4] = ["http_auth", "secret_headers", "httpauth_pass", "proxy"];
        const HIDDEN: &str = "***";
        match value {
            Value::Object(mut headers) if name == "default_request_headers" => {
                let secret = |name: &String| name.parse().is_ok_and(|name| is_secret_name(&name));
                headers
                    .iter_mut()
                    .filter(|(name, _)| secret(name))
                    .for_each(|(_, value)| *value = HIDDEN.into());
                Value::Object(headers)
            }
            value if !SECRETS.contains(&name) || value.is_null() => value,
            Value::Array(values) if values.is_empty() => Value::Array(values),
            Value::String(text) if text.is_empty() => Value::String(text),
            _ => HIDDEN.into(),
        }
    }

    /// Callbacks that run at once.
    pub fn callback_threads(&self) -> usize {
        match self.callback_threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        }
    }
}

/// Seconds of a setting as a duration; negative and non-finite values are zero, and a year is the most.
pub fn seconds(value: f64) -> std::time::Duration {
    const YEAR: f64 = 365.0 * 86_400.0;
    if value.is_finite() {
        std::time::Duration::from_secs_f64(value.clamp(0.0, YEAR))
    } else {
        std::time::Duration::ZERO
    }
}
