//! Flags of `huntsman crawl`, most of which `huntsman sweep` has as well.
//!
//! For flags that stand for a setting, the help text names it; [`SiteArgs::settings`] and its neighbours do the
//! mapping.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use huntsman::detect::simhash::Features;
use huntsman::warc::is_archive_name;
use huntsman::{CsvColumn, StartUrls};
use serde_json::json;

use crate::args::{
    Flags, NetworkArgs, SettingsArgs, list, listen_address, positive, positive_seconds, seconds, set, share,
};
use crate::command::flags::replay;
use crate::dedup::{distance, features};
use crate::render::escape;

use super::archive::ArchiveArgs;

/// Flags of `crawl`.
#[derive(Debug, Args)]
pub(crate) struct CrawlArgs {
    #[command(flatten)]
    pub(crate) site: SiteArgs,

    /// Article that every page is compared with: a .txt, .html, .pdf or .wiki file, or a URL. Records then say how
    /// likely it is that the article was copied from the page.
    #[arg(long, value_name = "ARTICLE", value_hint = ValueHint::AnyPath)]
    pub(crate) copyvio: Option<String>,

    #[command(flatten)]
    pub(crate) index: TextIndexArgs,

    #[cfg(feature = "cluster")]
    #[command(flatten)]
    pub(crate) cluster: crate::cluster::ClusterArgs,

    /// File for the items of a spider file: .jsonl or .csv; .json or .xml with --store memory [default: items.jsonl in
    /// the output directory].
    #[arg(short = 'o', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) items: Option<PathBuf>,

    /// The same, but a file or an object of a bucket that exists is overwritten.
    #[arg(short = 'O', long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "items")]
    pub(crate) overwrite_items: Option<PathBuf>,

    /// Also writes report.html, a report for people, into the output directory.
    #[arg(long)]
    pub(crate) html: bool,
}

/// What is crawled, and how: the same for all commands that crawl sites.
#[derive(Debug, Args)]
pub(crate) struct SiteArgs {
    /// Start URLs; for `crawl` also a spider file (.toml), which declares start, rules and items.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) urls: Vec<String>,

    /// File of start URLs, one per line; `#` begins a comment, and `-` reads stdin.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) seeds: Option<PathBuf>,

    /// Reads the start URLs from a column of CSV: by its name in the first row, or by its number (from 1).
    #[arg(long, value_name = "COLUMN", requires = "seeds")]
    pub(crate) seeds_column: Option<String>,

    /// Character between the cells of that CSV, or `tab` [default: a comma].
    #[arg(long, value_name = "CHAR", requires = "seeds_column", value_parser = delimiter)]
    pub(crate) seeds_delimiter: Option<u8>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) archive: ArchiveArgs,

    #[command(flatten)]
    pub(crate) reach: ReachArgs,

    #[cfg(feature = "render")]
    #[command(flatten)]
    pub(crate) render: super::rendering::RenderArgs,

    #[command(flatten)]
    pub(crate) pace: PaceArgs,

    #[command(flatten)]
    pub(crate) avoid_dup: AvoidDupArgs,

    #[command(flatten)]
    pub(crate) near_dup: NearDupArgs,

    #[command(flatten)]
    pub(crate) network: NetworkArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

/// Duplicate contents.
#[derive(Debug, Args)]
#[command(next_help_heading = "Duplicate contents")]
pub(crate) struct AvoidDupArgs {
    /// Learns which parts of URLs do not change the content, and skips requests for content that is already known.
    /// MODE is `default` (Huntsman's own model) or `reference` (MaybeDont's rules). The learnt rules are written to
    /// rules.json.
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "default")]
    pub(crate) avoid_dup: Option<AvoidDupArg>,

    /// Number of pages of a site that are fetched before any request is skipped [default: 300].
    #[arg(long, value_name = "PAGES", requires = "avoid_dup")]
    pub(crate) avoid_dup_warmup: Option<u64>,

    /// Skips a request if its content is known with more than this probability [default: 0.98].
    #[arg(long, value_name = "P", requires = "avoid_dup", value_parser = share)]
    pub(crate) avoid_dup_threshold: Option<f64>,

    /// Share of skippable requests that are fetched nevertheless, to test the rules [default: 0.05].
    #[arg(long, value_name = "SHARE", requires = "avoid_dup", value_parser = share)]
    pub(crate) avoid_dup_exploration: Option<f64>,

    /// Lowest share of that kind: the share falls with the age of a rule down to this value.
    #[arg(long, value_name = "SHARE", requires = "avoid_dup", value_parser = share)]
    pub(crate) avoid_dup_exploration_min: Option<f64>,

    /// Part of URLs that never changes the content: a parameter (`sid`, `utm_*`), a path segment (`/2`, counted from
    /// 0) or `host`. URLs that differ only in it are skipped from the start (repeatable).
    #[arg(long, value_name = "NAME", requires = "avoid_dup")]
    pub(crate) avoid_dup_pin: Vec<String>,

    /// Part of URLs that always changes the content: no request is skipped because of it (repeatable).
    #[arg(long, value_name = "NAME", requires = "avoid_dup")]
    pub(crate) avoid_dup_forbid: Vec<String>,

    /// Prints at the end what the model predicts for this URL, and why (repeatable).
    #[arg(long, value_name = "URL", requires = "avoid_dup", value_hint = ValueHint::Url)]
    pub(crate) explain: Vec<url::Url>,
}

/// Near-duplicates.
#[derive(Debug, Args)]
#[command(next_help_heading = "Near-duplicates")]
pub(crate) struct NearDupArgs {
    /// Fingerprints the text of every page, and records which earlier pages in its language it nearly equals: those
    /// whose fingerprints differ in at most K of 128 bits, 0 to 7 [default K: 3].
    #[arg(long, value_name = "K", num_args = 0..=1, require_equals = true, default_missing_value = "3", value_parser = distance)]
    pub(crate) near_dup: Option<u32>,

    /// Feature set of the fingerprints: words-log, char5, words3 or words-tf [default: words-log].
    #[arg(long, value_name = "NAME", requires = "near_dup", value_parser = features)]
    pub(crate) near_dup_features: Option<Features>,

    /// Minimum number of words of a page that is flagged as a near-duplicate [default: 50].
    #[arg(long, value_name = "N", requires = "near_dup")]
    pub(crate) near_dup_min_words: Option<usize>,

    /// What to do with a near-duplicate of an earlier page: flag it in its record (the default), also ignore its
    /// links, or skip it.
    #[arg(long, value_name = "WHAT", requires = "near_dup")]
    pub(crate) on_near_duplicate: Option<OnNearDuplicateArg>,
}

/// A full-text index.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct TextIndexArgs {
    /// Adds the text of every page to the full-text index in this directory, and creates the index if there is none.
    /// Several crawls may add to one index, one after another. `copyvio check --index` finds sources in it.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) index: Option<PathBuf>,
}

/// What happens to a near-duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnNearDuplicateArg {
    /// Its record says which pages it nearly equals.
    Flag,
    /// Its record says so, and its links are not followed.
    NoFollow,
    /// It gets a drop record with the reason near_duplicate instead of a page record.
    Skip,
}

impl OnNearDuplicateArg {
    /// The name as used in settings.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::NoFollow => "no_follow",
            Self::Skip => "skip",
        }
    }
}

/// How duplicate contents are avoided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AvoidDupArg {
    /// Our own model.
    Default,
    /// MaybeDont's rules.
    Reference,
}

impl AvoidDupArg {
    /// The name as used in commands and settings.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Reference => "reference",
        }
    }
}

/// What a crawl writes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Directory for pages.jsonl, drops.jsonl, report.json and state/ [default: ./HOST-crawl]; `-` writes page
    /// records to stdout and no files.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,

    /// Starts a new crawl if the directory holds an earlier one, whose files are deleted.
    #[arg(long)]
    pub(crate) fresh: bool,

    /// Adds the text of each page, counts its words, and detects its language if none is declared. Without this flag,
    /// `words` is null and `lang` is the declared language.
    #[arg(long)]
    pub(crate) text: bool,

    /// Writes every response with its body to this file, from which AvoidDup can be judged without the site: .jsonl.zst, .jsonl.gz or
    /// .jsonl. A crawl that goes on adds to its file; a new one needs a new file (setting recording_file).
    ///
    /// A name that ends with a slash is a folder, into which every exchange is written as readable files, from which --replay crawls
    /// again (setting record_dir).
    #[arg(long, value_name = "FILE|DIR/", value_hint = ValueHint::AnyPath, conflicts_with = "replay")]
    pub(crate) record: Option<String>,

    /// Writes every exchange into WARC files in this folder, which archives and their tools read: requests and responses, also of robots.txt and
    /// redirects (setting warc_dir).
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) warc: Option<String>,

    /// Also writes the links of each page into the WARC files (setting warc_outlinks).
    #[arg(long, requires = "warc")]
    pub(crate) warc_outlinks: bool,

    /// Answers every request from a folder of --record, without a network. A request that was not recorded fails, and the command exits with 1
    /// (setting replay_dir).
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) replay: Option<String>,

    /// Store of the queue: `redb` or `sled` on disk, so that an interrupted crawl can be continued, or `memory`,
    /// which is lost with the process [default: redb; memory with --profile test and with --out -].
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,

    /// Exits with code 3 if a limit (pages, time, errors) stopped the crawl.
    #[arg(long)]
    pub(crate) fail_on_limit: bool,

    /// Serves metrics as Prometheus text at /metrics while the crawl runs. A port alone means 127.0.0.1. The name of
    /// a metric is huntsman_ and the key of its stat, with _ for every character other than letters and digits.
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    pub(crate) metrics: Option<SocketAddr>,

    /// Allows --metrics to listen on an address that other machines can reach.
    #[arg(long, requires = "metrics")]
    pub(crate) metrics_public: bool,

    /// Shows a dashboard on all of the terminal in place of the progress line: hosts, queue, errors, log.
    #[arg(long)]
    pub(crate) tui: bool,

    /// Lets `huntsman control` look at the crawl and steer it while it runs (setting control).
    #[arg(long)]
    pub(crate) control: bool,

    /// Seed of all randomness [default: from the system, written to the report] (setting seed).
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// Which pages a crawl fetches.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reach")]
pub(crate) struct ReachArgs {
    /// Which links are followed, relative to the start URLs [default: host] (setting scope).
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Option<ScopeArg>,

    /// Another host that is in scope (repeatable; IPv6 in brackets; setting allow_hosts).
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) allow_host: Vec<String>,

    /// Follows only URLs that match this glob, or a regular expression after `re:` (repeatable; setting include).
    #[arg(long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,

    /// Does not follow URLs that match this glob, or a regular expression after `re:`; takes precedence over
    /// --include (repeatable; setting exclude).
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,

    /// Fetches only the URLs in this file, one per line, compared in canonical form; other URLs are skipped as
    /// not_listed.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) only: Option<PathBuf>,

    /// Also reads the sitemaps that robots.txt of each start URL's site names (/sitemap.xml if it names none), and
    /// fetches the pages in them that are in scope. A sitemap gets a page record of its own; its `links` is the
    /// number of its entries.
    #[arg(long)]
    pub(crate) sitemaps: bool,

    /// Maximum number of delivered pages, which is never exceeded (setting closespider_pagecount).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_pages: Option<u64>,

    /// Maximum number of links from a start URL or a sitemap to a page; 0 fetches only the start URLs and, with
    /// --sitemaps, the pages in the sitemaps (setting depth_limit).
    #[arg(long, value_name = "N")]
    pub(crate) max_depth: Option<u16>,

    /// Maximum duration of the crawl in seconds (setting closespider_timeout).
    #[arg(long, value_name = "SECS", value_parser = positive_seconds)]
    pub(crate) max_time: Option<f64>,
}

/// How fast a crawl goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Pace")]
pub(crate) struct PaceArgs {
    /// Minimum seconds between the starts of two requests to one host (setting download_delay).
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub(crate) delay: Option<f64>,

    /// Maximum number of requests in flight per host (setting concurrent_requests_per_domain).
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) per_host: Option<u64>,

    /// Maximum number of requests in flight in total (setting concurrent_requests).
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) concurrency: Option<u64>,

    /// Maximum number of requests per second of the whole crawl (setting requests_per_second).
    #[arg(long, value_name = "N", value_parser = positive_seconds)]
    pub(crate) requests_per_second: Option<f64>,
}

/// Values of `--scope`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ScopeArg {
    /// The host of a start URL, any port.
    Host,
    /// Scheme, host and port of a start URL.
    Origin,
    /// The registrable domain of a start URL.
    Domain,
    /// Below the folder of a start URL.
    Prefix,
    /// Everything.
    All,
}

impl ScopeArg {
    fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Origin => "origin",
            Self::Domain => "domain",
            Self::Prefix => "prefix",
            Self::All => "all",
        }
    }
}

/// One ASCII character, or `tab`.
fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"\"#\r\n".contains(byte) => Ok(*byte),
        _ => Err("give one character such as , or ; or |, or `tab`".to_owned()),
    }
}

/// Whether this can be the name of a spider, and nothing else.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

impl SiteArgs {
    /// The start URLs of the flags.
    pub(crate) fn start_urls(&self) -> huntsman::Result<StartUrls> {
        if self.archive.all {
            return self.archive.pages();
        }
        if let Some(file) = self.urls.iter().find(|url| is_archive_name(url) && !url.contains("://")) {
            return Err(huntsman::Error::usage(format!(
                "{} is an archive and not a URL: write --from-warc before each archive, or name several by a pattern in quotes",
                escape(file)
            )));
        }
        if let Some(name) = self.urls.iter().find(|url| is_name(url)) {
            return Err(huntsman::Error::usage(format!(
                "{name} is neither a URL (https://example.org/) nor a spider file (.toml). A spider of a project is run by its program, \
                 in its folder: cargo run -- crawl {name}"
            )));
        }
        match (&self.seeds, &self.seeds_column) {
            (Some(file), Some(column)) => {
                let column = CsvColumn::parse(column).delimiter(self.seeds_delimiter.unwrap_or(b','));
                StartUrls::of_csv(&self.urls, file, &column)
            }
            (file, _) => StartUrls::of(&self.urls, file.as_deref()),
        }
    }

    /// The number of links that are followed, if it is limited: all pages of archives are start URLs.
    pub(crate) fn max_depth(&self) -> Option<u16> {
        if self.archive.all { Some(0) } else { self.reach.max_depth }
    }

    /// The settings that these flags stand for.
    pub(crate) fn settings(&self) -> Flags {
        let mut flags = self.network.settings();
        set(&mut flags, "scope", self.reach.scope.map(ScopeArg::name));
        list(&mut flags, "allow_hosts", &self.reach.allow_host);
        list(&mut flags, "include", &self.reach.include);
        list(&mut flags, "exclude", &self.reach.exclude);
        set(&mut flags, "closespider_pagecount", self.reach.max_pages);
        if let Some(depth) = self.max_depth() {
            // A limit that the user asked for replaces the guard, even if it is wider.
            flags.extend([("depth_limit", json!(depth)), ("depth_guard", json!(0))]);
        }
        set(&mut flags, "closespider_timeout", self.reach.max_time);
        set(&mut flags, "download_delay", self.pace.delay);
        set(&mut flags, "concurrent_requests_per_domain", self.pace.per_host);
        set(&mut flags, "concurrent_requests", self.pace.concurrency);
        set(&mut flags, "requests_per_second", self.pace.requests_per_second);
        set(&mut flags, "seed", self.output.seed);
        set(&mut flags, "control", self.output.control.then_some(true));
        let is_folder = |name: &&str| name.ends_with('/');
        let record = self.output.record.as_deref();
        set(&mut flags, "recording_file", record.filter(|name| !is_folder(name)));
        set(&mut flags, "record_dir", record.filter(is_folder));
        set(&mut flags, "warc_dir", self.output.warc.as_deref());
        set(&mut flags, "warc_outlinks", self.output.warc_outlinks.then_some(true));
        flags.extend(self.output.replay.iter().flat_map(|folder| replay(folder)));
        flags.extend(self.archive.settings());
        #[cfg(feature = "render")]
        flags.extend(self.render.settings());
        if let Some(mode) = self.avoid_dup.avoid_dup {
            flags.extend([
                ("avoid_dup_content_enabled", json!(true)),
                ("avoid_dup_content_mode", json!(mode.name())),
            ]);
        }
        set(&mut flags, "avoid_dup_content_initial_queue_limit", self.avoid_dup.avoid_dup_warmup);
        set(&mut flags, "avoid_dup_content_threshold", self.avoid_dup.avoid_dup_threshold);
        set(&mut flags, "avoid_dup_content_exploration", self.avoid_dup.avoid_dup_exploration);
        set(&mut flags, "avoid_dup_content_exploration_min", self.avoid_dup.avoid_dup_exploration_min);
        list(&mut flags, "avoid_dup_content_pinned", &self.avoid_dup.avoid_dup_pin);
        list(&mut flags, "avoid_dup_content_forbidden", &self.avoid_dup.avoid_dup_forbid);
        if let Some(distance) = self.near_dup.near_dup {
            flags.extend([("near_dup_enabled", json!(true)), ("near_dup_distance", json!(distance))]);
        }
        set(&mut flags, "near_dup_features", self.near_dup.near_dup_features.map(Features::name));
        set(&mut flags, "near_dup_min_words", self.near_dup.near_dup_min_words);
        set(&mut flags, "on_near_duplicate", self.near_dup.on_near_duplicate.map(OnNearDuplicateArg::name));
        flags
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use huntsman::middleware::{CookiesSettings, Defaults, DepthSettings, NofollowSettings, RobotsSettings};
    use huntsman::{Layer, Layers};

    use super::*;
    use crate::args::{Cli, Command};

    fn crawl(line: &str) -> SiteArgs {
        let words = ["huntsman", "crawl"].into_iter().chain(line.split(' '));
        match Cli::try_parse_from(words).unwrap().command {
            Command::Crawl(args) => args.site,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_flag_that_stands_for_a_setting_has_a_value_of_its_type() {
        let args = crawl(
            "https://a.example/ --scope domain --allow-host b.example:81 --include *a* --exclude *b* --max-pages 5 \
             --max-depth 2 --max-time 1.5 --delay 0 --per-host 2 --concurrency 3 --allow-address 127.0.0.1:* \
             --resolve a:80:127.0.0.1 --auth https://a=u:p --ignore-robots --no-cookies --timeout 3 --ca-file ca.pem \
             --requests-per-second 0.5 --seed 7 --record a.jsonl.zst",
        );
        let mut layers = Layers::default();
        for (name, value) in args.settings() {
            layers.set(Layer::CommandLine, name, value);
        }
        let settings = layers.resolve(&Defaults::settings_table()).unwrap();
        assert_eq!(
            (
                settings.closespider_pagecount,
                settings.of::<DepthSettings>().unwrap().depth_limit,
                settings.seed
            ),
            (5, 2, Some(7))
        );
        assert_eq!(settings.allow_addresses, ["127.0.0.1:*"]);
        assert_eq!(settings.tls_ca_file.as_deref(), Some("ca.pem"));
        assert!(!settings.of::<RobotsSettings>().unwrap().robotstxt_obey);
        assert!(!settings.of::<NofollowSettings>().unwrap().obey_nofollow);
        assert!(!settings.of::<CookiesSettings>().unwrap().cookies_enabled);
    }

    #[test]
    fn limits_of_nothing_are_refused_with_what_to_use() {
        let parse = |flag: &str| Cli::try_parse_from(["huntsman", "crawl", "http://a/", flag, "0"]).is_err();
        assert!(parse("--max-pages") && parse("--max-time") && parse("--per-host") && parse("--timeout"));
        assert!(!parse("--max-depth") && !parse("--delay"));
    }
}
