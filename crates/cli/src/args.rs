//! The command line: commands and flags, from which help, checks and completions come.
//!
//! Flags that stand for a setting say which one; [`SiteArgs::settings`] and its neighbours are that mapping.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use huntsman::detect::simhash::Features;
use serde_json::{Value, json};

use crate::copyvio::CopyvioCommand;
use crate::dedup::{DedupCommand, distance, features};
use crate::serve::ServeArgs;
use crate::sweep::SweepArgs;

/// A polite, fast web crawler.
#[derive(Debug, Parser)]
#[command(
    name = "huntsman",
    version,
    before_help = "Examples:\n  \
        huntsman demo\n  \
        huntsman crawl https://example.org/ --max-pages 100\n  \
        huntsman robots https://example.org/ /private/",
    after_help = "Exit codes: 0 finished, 1 crawl error, 2 usage, 3 stopped by a limit (--fail-on-limit), 130 interrupted.\n\
        `huntsman COMMAND --help` shows an example and all flags of a command.",
    max_term_width = 100,
    args_override_self = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Crawls sites and writes one record per page.
    #[command(before_help = "Examples:\n  \
        huntsman crawl https://example.org/ --max-pages 100\n  \
        huntsman crawl http://127.0.0.1:8000/ --profile test --allow-address 127.0.0.1:8000 --out local\n  \
        printf 'https://example.org/\\n' | huntsman crawl --seeds - --max-depth 1 --out -")]
    Crawl(Box<CrawlArgs>),

    /// Fetches one page through the whole chain and prints it.
    #[command(before_help = "Examples:\n  \
        huntsman fetch https://example.org/ --text\n  \
        huntsman fetch https://example.org/ --json")]
    Fetch(FetchArgs),

    /// Shows what a robots.txt says about paths, and which line decides.
    #[command(before_help = "Examples:\n  \
        huntsman robots https://example.org/ /private/ /public/page.html\n  \
        huntsman robots ./robots.txt /private/ --agent mybot")]
    Robots(RobotsArgs),

    /// Lists the settings of a crawl: values, where they come from, what they do.
    #[command(before_help = "Examples:\n  \
        huntsman settings --profile broad\n  \
        huntsman settings --get download_delay --explain")]
    Settings(SettingsCommandArgs),

    /// Shows, prints, removes and exports what an HTTP cache has (setting httpcache_dir).
    #[command(before_help = "Examples:\n  \
        huntsman cache ls .huntsman/httpcache 'https://example.org/*'\n  \
        huntsman cache get .huntsman/httpcache https://example.org/ > page.html\n  \
        huntsman cache export-warc .huntsman/httpcache --out example.warc.gz")]
    Cache {
        #[command(subcommand)]
        what: CacheCommand,
    },

    /// Shows and changes the state of a crawl that does not run.
    #[command(before_help = "Examples:\n  \
        huntsman job info example.org-crawl\n  \
        huntsman job ls-queue example.org-crawl --limit 20\n  \
        huntsman job drop-host example.org-crawl slow.example.org")]
    Job {
        #[command(subcommand)]
        what: JobCommand,
    },

    /// Checks a directory that a command wrote, and changes nothing: the output of a crawl, a sweep or a demo, a job, a text index, an
    /// index of near-duplicates, an HTTP cache, known pages, results of checks. Tells what is missing and what is not what was
    /// written. Exit 0 if all is whole, 1 if it is damaged, 2 if it is no such directory.
    #[command(before_help = "Examples:\n  \
        huntsman verify example.org-crawl\n  \
        huntsman verify stories --json")]
    Verify(VerifyArgs),

    /// Finds near-duplicates among documents: fingerprints, an index of them, flags.
    #[command(before_help = "Examples:\n  \
        huntsman dedup build stories.jsonl.zst --index stories\n  \
        huntsman dedup add today.jsonl --index stories --flags flags.jsonl\n  \
        huntsman dedup stats --index stories")]
    Dedup {
        #[command(subcommand)]
        what: Box<DedupCommand>,
    },

    /// Tells whether texts were copied from others.
    #[command(
        before_help = "Example:\n  huntsman copyvio compare essay.txt https://example.org/page book.html"
    )]
    Copyvio {
        #[command(subcommand)]
        what: CopyvioCommand,
    },

    /// Answers questions about copies over HTTP: pages to paste texts into, an API of the shape of Earwig's, metrics.
    #[command(before_help = "Examples:\n  \
        huntsman serve\n  \
        huntsman serve --listen 8080 --exclude mirrors.txt --wiki manual:en=https://wiki.example/w\n  \
        HUNTSMAN_TOKEN=... huntsman serve --listen 0.0.0.0:8765")]
    Serve(Box<ServeArgs>),

    /// Crawls a site, and checks every page with text against what it links to and what an index or a search finds.
    #[command(before_help = "Examples:\n  \
        huntsman sweep https://example.org/articles/ --scope prefix --max-pages 200\n  \
        huntsman sweep https://example.org/ --no-links --index crawled --exclude-sources mirrors.txt\n  \
        huntsman sweep https://example.org/ --search searxng=https://search.example.org --max-queries 4")]
    Sweep(Box<SweepArgs>),

    /// Crawls a built-in forum on this machine and writes a report: no network needed.
    #[command(before_help = "Example:\n  huntsman demo --out demo-crawl")]
    Demo(DemoArgs),

    /// Measures this machine and this build.
    #[command(before_help = "Example:\n  huntsman bench crawl --pages 2000")]
    Bench {
        #[command(subcommand)]
        what: Bench,
    },

    /// Prints the version.
    #[command(before_help = "Example:\n  huntsman version -v")]
    Version {
        /// Also prints what the build has and which machine it is for.
        #[arg(short, long)]
        verbose: bool,
    },

    /// Prints a completion script for a shell.
    #[command(before_help = "Example:\n  \
        huntsman completions bash > ~/.local/share/bash-completion/completions/huntsman")]
    Completions {
        /// The shell.
        shell: Shell,
    },

    /// Prints the text of a PDF file on stdin, for the commands that compare it.
    #[cfg(feature = "pdf")]
    #[command(name = "pdf-text", hide = true)]
    PdfText {
        /// Tries instead what its sandbox forbids, with what is named on stdin, and prints what of it could be done.
        #[arg(long)]
        attempts: bool,
    },

    /// The server that `bench crawl` measures against; ends when its stdin closes.
    #[command(name = "bench-server", hide = true)]
    BenchServer(BenchSite),
}

/// What is measured.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Crawls a generated site on this machine; the server is a process of its own, so the CPU seconds are the
    /// crawler's.
    #[command(before_help = "Examples:\n  \
        huntsman bench crawl\n  \
        huntsman bench crawl --pages 20000 --text --json")]
    Crawl(BenchCrawlArgs),
}

/// What is done with an HTTP cache.
#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Lists what is stored, in no order; --json for one object a line, with the headers by which an answer varies.
    #[command(before_help = "Examples:\n  \
        huntsman cache ls .huntsman/httpcache\n  \
        huntsman cache ls .huntsman/httpcache 'https://example.org/*' --json")]
    Ls {
        /// Directory of the cache.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
        /// Glob on the URL, or after re: a regular expression.
        #[arg(value_name = "PATTERN")]
        pattern: Option<String>,
        /// Prints JSON lines.
        #[arg(long)]
        json: bool,
    },

    /// Prints the stored answer for a URL: its body, decoded. Exits with 1 if there is none.
    #[command(before_help = "Examples:\n  \
        huntsman cache get .huntsman/httpcache https://example.org/ > page.html\n  \
        huntsman cache get .huntsman/httpcache https://example.org/ --headers")]
    Get(CacheGetArgs),

    /// Removes answers: of a URL, old ones, or all.
    #[command(before_help = "Examples:\n  \
        huntsman cache rm .huntsman/httpcache https://example.org/\n  \
        huntsman cache rm .huntsman/httpcache --older-than 30d")]
    Rm {
        /// Directory of the cache.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
        /// Answers for this URL, whatever the method and the headers were.
        #[arg(value_name = "URL", value_hint = ValueHint::Url, required_unless_present_any = ["older_than", "all"])]
        url: Option<String>,
        /// Answers that were stored, or last confirmed by their server, longer ago: 90s, 15m, 12h, 30d, 2w.
        #[arg(long, value_name = "TIME", value_parser = span, conflicts_with_all = ["url", "all"])]
        older_than: Option<Duration>,
        /// Everything.
        #[arg(long, conflicts_with = "url")]
        all: bool,
    },

    /// Writes the answers to GET requests as a WARC 1.1 file, one gzip member per record.
    #[command(
        name = "export-warc",
        before_help = "Example:\n  \
        huntsman cache export-warc .huntsman/httpcache --out example.warc.gz"
    )]
    ExportWarc {
        /// Directory of the cache.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
        /// Glob on the URL, or after re: a regular expression.
        #[arg(value_name = "PATTERN")]
        pattern: Option<String>,
        /// The file, which must not exist; `-` is stdout.
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        out: PathBuf,
    },
}

/// Flags of `cache get`.
#[derive(Debug, Args)]
pub(crate) struct CacheGetArgs {
    /// Directory of the cache.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,

    /// The page.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: String,

    /// Prints status and headers.
    #[arg(long, group = "what")]
    pub(crate) headers: bool,

    /// Prints the body (the default).
    #[arg(long, group = "what")]
    pub(crate) body: bool,

    /// Prints the body as it came, with its content codings.
    #[arg(long, group = "what")]
    pub(crate) raw: bool,

    /// Answers to requests with this method [default: GET, else whatever there is].
    #[arg(long, value_name = "METHOD")]
    pub(crate) method: Option<String>,

    /// Of several answers the Nth, newest first; they differ by headers of the request.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = positive)]
    pub(crate) variant: u64,
}

/// Flags of `verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The directory.
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,

    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is done with the state of a crawl. DIR is what was given to `crawl --out`, or the `state` in it.
#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Shows how far the crawl came, and what is queued.
    #[command(before_help = "Example:\n  huntsman job info example.org-crawl")]
    Info {
        /// Directory of the crawl, or the state in it.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
        /// Prints one JSON object.
        #[arg(long)]
        json: bool,
    },

    /// Lists the queued URLs, host by host, nearly in the order of the queue; --json for one object a line.
    #[command(
        name = "ls-queue",
        before_help = "Examples:\n  \
        huntsman job ls-queue example.org-crawl --limit 20\n  \
        huntsman job ls-queue example.org-crawl --host example.org --json"
    )]
    LsQueue {
        /// Directory of the crawl, or the state in it.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
        /// Only those of one host, by the name that `job info` has for it.
        #[arg(long, value_name = "HOST", value_hint = ValueHint::Hostname)]
        host: Option<String>,
        /// Prints JSON lines.
        #[arg(long)]
        json: bool,
        /// So many at most.
        #[arg(long, value_name = "N", value_parser = positive)]
        limit: Option<u64>,
    },

    /// Prints what was seen, one a line and in no order. URLs are not kept: each line is a fingerprint, the 128-bit hash of
    /// method, URL in canonical form and body in hexadecimal, as `ls-queue --json` has it.
    #[command(
        name = "export-seen",
        before_help = "Example:\n  huntsman job export-seen example.org-crawl > seen.txt"
    )]
    ExportSeen {
        /// Directory of the crawl, or the state in it.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
    },

    /// Takes the requests of a host out of the queue; they are recorded in drops.jsonl as dropped_by_user, and the crawl goes
    /// on without them. Links to the host that are found later are queued all the same: see `crawl --exclude`.
    #[command(
        name = "drop-host",
        before_help = "Example:\n  huntsman job drop-host example.org-crawl slow.example.org"
    )]
    DropHost {
        /// Directory of the crawl, or the state in it.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
        /// The host, by the name that `job info` has for it.
        #[arg(value_name = "HOST", value_hint = ValueHint::Hostname)]
        host: String,
    },
}

/// Where settings come from. Later wins: profile, settings file, `HUNTSMAN_*` variables, flags, `--set`.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct SettingsArgs {
    /// Bundle of settings to start from [default: polite].
    #[arg(long, value_name = "NAME", value_parser = ["polite", "audit", "broad", "test"])]
    pub(crate) profile: Option<String>,

    /// Any setting (repeatable); `huntsman settings` lists them.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// Settings file [default: huntsman.toml in the working directory, if there is one].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
}

/// How requests are sent.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Network")]
pub(crate) struct NetworkArgs {
    /// Exception to the address guard, which refuses loopback and private addresses (repeatable; `HOST:*` for any
    /// port; setting allow_addresses).
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) allow_address: Vec<String>,

    /// Fixed address for a name (repeatable; setting resolve).
    #[arg(long, value_name = "HOST:PORT:ADDR")]
    pub(crate) resolve: Vec<String>,

    /// Credentials that are sent to one origin only (repeatable; setting http_auth).
    #[arg(long, value_name = "ORIGIN=USER:PASSWORD")]
    pub(crate) auth: Vec<String>,

    /// Header that is sent to one origin only (repeatable; setting secret_headers).
    #[arg(long, value_name = "ORIGIN=NAME: VALUE")]
    pub(crate) secret_header: Vec<String>,

    /// Ignores robots.txt, and nofollow in meta elements, headers and links.
    #[arg(long)]
    pub(crate) ignore_robots: bool,

    /// Keeps no cookies (setting cookies_enabled).
    #[arg(long)]
    pub(crate) no_cookies: bool,

    /// Seconds for a whole request (setting download_timeout).
    #[arg(long, value_name = "SECS", value_parser = positive_seconds)]
    pub(crate) timeout: Option<f64>,
}

/// Flags of `crawl`.
#[derive(Debug, Args)]
pub(crate) struct CrawlArgs {
    #[command(flatten)]
    pub(crate) site: SiteArgs,

    /// Compares every page with this article, a file (.txt, .html, .pdf, .wiki) or a URL: how sure one can be that it is copied from
    /// there.
    #[arg(long, value_name = "ARTICLE", value_hint = ValueHint::AnyPath)]
    pub(crate) copyvio: Option<String>,

    #[command(flatten)]
    pub(crate) index: TextIndexArgs,
}

/// What is crawled, and how: the same for all commands that crawl sites.
#[derive(Debug, Args)]
pub(crate) struct SiteArgs {
    /// Where to start.
    #[arg(value_name = "URL", required_unless_present = "seeds", value_hint = ValueHint::Url)]
    pub(crate) urls: Vec<String>,

    /// File of start URLs, one a line, `#` begins a comment; `-` reads stdin.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) seeds: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) reach: ReachArgs,

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
    /// Learns which parts of URLs do not change the content, and skips downloads that would bring nothing new: `default`, our
    /// own model, or `reference`, MaybeDont's rules. What was learnt is in rules.json.
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "default")]
    pub(crate) avoid_dup: Option<AvoidDupArg>,

    /// Pages of a site that are fetched before anything is skipped [default: 300].
    #[arg(long, value_name = "PAGES", requires = "avoid_dup")]
    pub(crate) avoid_dup_warmup: Option<u64>,

    /// Skips what is known with more than this probability [default: 0.98].
    #[arg(long, value_name = "P", requires = "avoid_dup", value_parser = share)]
    pub(crate) avoid_dup_threshold: Option<f64>,

    /// Share of the skips that is fetched all the same [default: 0.05].
    #[arg(long, value_name = "SHARE", requires = "avoid_dup", value_parser = share)]
    pub(crate) avoid_dup_exploration: Option<f64>,

    /// Lets that share fall with the age of a rule, down to this.
    #[arg(long, value_name = "SHARE", requires = "avoid_dup", value_parser = share)]
    pub(crate) avoid_dup_exploration_min: Option<f64>,

    /// Never matters: a parameter (`sid`, `utm_*`), a path segment (`/2`, from 0) or `host`. What differs in it only is skipped
    /// from the start; may be repeated.
    #[arg(long, value_name = "NAME", requires = "avoid_dup")]
    pub(crate) avoid_dup_pin: Vec<String>,

    /// Always matters: nothing is skipped because of it; may be repeated.
    #[arg(long, value_name = "NAME", requires = "avoid_dup")]
    pub(crate) avoid_dup_forbid: Vec<String>,

    /// Says at the end what is believed of this URL, and why.
    #[arg(long, value_name = "URL", requires = "avoid_dup", value_hint = ValueHint::Url)]
    pub(crate) explain: Option<url::Url>,
}

/// Near-duplicates.
#[derive(Debug, Args)]
#[command(next_help_heading = "Near-duplicates")]
pub(crate) struct NearDupArgs {
    /// Fingerprints the text of every page, and tells which earlier pages of its language it nearly equals: those that differ in
    /// at most K of 128 bits, 0 to 7 [default K: 3].
    #[arg(long, value_name = "K", num_args = 0..=1, require_equals = true, default_missing_value = "3", value_parser = distance)]
    pub(crate) near_dup: Option<u32>,

    /// What texts are seen as: words-log, char5, words3 or words-tf [default: words-log].
    #[arg(long, value_name = "NAME", requires = "near_dup", value_parser = features)]
    pub(crate) near_dup_features: Option<Features>,

    /// Pages with fewer words are not flagged [default: 50].
    #[arg(long, value_name = "N", requires = "near_dup")]
    pub(crate) near_dup_min_words: Option<usize>,

    /// What happens to a near-duplicate of an earlier page: its record says so (the default), its links are not followed either, or it
    /// is skipped.
    #[arg(long, value_name = "WHAT", requires = "near_dup")]
    pub(crate) on_near_duplicate: Option<OnNearDuplicateArg>,
}

/// A full-text index.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct TextIndexArgs {
    /// Adds what every page says to the full-text index in this directory, which is made if there is none; any number of crawls may
    /// add to one, one after the other. Its pages are sources for `copyvio check --index`.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) index: Option<PathBuf>,
}

/// What happens to a near-duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnNearDuplicateArg {
    /// Its record says so.
    Flag,
    /// That, and its links are not followed.
    NoFollow,
    /// A drop record with reason near_duplicate takes the place of its page record.
    Skip,
}

impl OnNearDuplicateArg {
    /// The name in settings.
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
    /// The name in commands and settings.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Reference => "reference",
        }
    }
}

/// A number from 0 to 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("a number from 0 to 1, such as 0.05".to_owned()),
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

    /// Starts anew where the directory holds an earlier crawl, whose files are deleted.
    #[arg(long)]
    pub(crate) fresh: bool,

    /// Adds the text of each page, counts its words, and detects its language if none is declared. Without it, `words`
    /// is null and `lang` is what the page declares.
    #[arg(long)]
    pub(crate) text: bool,

    /// Where the queue lives: `redb` or `sled` in the directory, so that an interrupted crawl goes on, or `memory`, where it starts
    /// anew [default: redb; memory with --profile test and with --out -].
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,

    /// Exits with 3 when a limit (pages, time, errors) stopped the crawl.
    #[arg(long)]
    pub(crate) fail_on_limit: bool,

    /// Serves Prometheus text at /metrics while the crawl runs. A port alone means 127.0.0.1. A metric is named
    /// huntsman_ and the key of its stat, with _ for everything but letters and digits.
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    pub(crate) metrics: Option<SocketAddr>,

    /// Lets --metrics listen on an address that other machines reach.
    #[arg(long, requires = "metrics")]
    pub(crate) metrics_public: bool,

    /// Seed of all randomness [default: from the system, written to the report] (setting seed).
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// Which pages a crawl fetches.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reach")]
pub(crate) struct ReachArgs {
    /// Which links are followed, compared with the start URLs [default: host] (setting scope).
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Option<ScopeArg>,

    /// Host that is in scope as well (repeatable; IPv6 in brackets; setting allow_hosts).
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) allow_host: Vec<String>,

    /// Follows only URLs that match this glob, or after re: this regular expression (repeatable; setting include).
    #[arg(long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,

    /// Does not follow URLs that match this glob or re:expression; wins over --include (repeatable; setting exclude).
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,

    /// Fetches only URLs of this list, compared in canonical form; others are skipped as not_listed.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) only: Option<PathBuf>,

    /// Also reads the sitemaps that robots.txt of each start URL's site names (/sitemap.xml if it names none), and fetches
    /// the pages in them that are in scope. A sitemap is a page of its own, with the number of its entries as `links`.
    #[arg(long)]
    pub(crate) sitemaps: bool,

    /// Delivers exactly so many pages at most (setting closespider_pagecount).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_pages: Option<u64>,

    /// Follows so many links from a start URL or a sitemap at most; 0 fetches the start URLs, and with --sitemaps what the
    /// sitemaps list, only (setting depth_limit).
    #[arg(long, value_name = "N")]
    pub(crate) max_depth: Option<u16>,

    /// Stops after so many seconds (setting closespider_timeout).
    #[arg(long, value_name = "SECS", value_parser = positive_seconds)]
    pub(crate) max_time: Option<f64>,
}

/// How fast a crawl goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Pace")]
pub(crate) struct PaceArgs {
    /// Seconds between the starts of two requests of one host (setting download_delay).
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub(crate) delay: Option<f64>,

    /// Requests in flight per host (setting concurrent_requests_per_domain).
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) per_host: Option<u64>,

    /// Requests in flight in all (setting concurrent_requests).
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) concurrency: Option<u64>,

    /// Quota of the whole crawl (setting requests_per_second).
    #[arg(long, value_name = "N", value_parser = positive_seconds)]
    pub(crate) requests_per_second: Option<f64>,
}

/// Flags of `fetch`.
#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    /// The page.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: String,

    /// Prints the record that `crawl` would write, with text.
    #[arg(long, group = "what")]
    pub(crate) json: bool,

    /// Prints the text that a reader sees.
    #[arg(long, group = "what")]
    pub(crate) text: bool,

    /// Prints the links, one a line.
    #[arg(long, group = "what")]
    pub(crate) links: bool,

    /// Prints status and headers.
    #[arg(long, group = "what")]
    pub(crate) headers: bool,

    #[command(flatten)]
    pub(crate) network: NetworkArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

/// Flags of `robots`.
#[derive(Debug, Args)]
pub(crate) struct RobotsArgs {
    /// A URL of the site, or a robots.txt file on disk.
    #[arg(value_name = "URL|FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) source: String,

    /// Paths (or URLs of the site) to judge, besides the path of the URL.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<String>,

    /// Name of the crawler [default: from the settings].
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) network: NetworkArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

/// Flags of `settings`.
#[derive(Debug, Args)]
pub(crate) struct SettingsCommandArgs {
    /// Prints the value of one setting.
    #[arg(long, value_name = "NAME")]
    pub(crate) get: Option<String>,

    /// Says which layers set a value; the last one wins.
    #[arg(long)]
    pub(crate) explain: bool,

    /// Lists the middlewares in their order instead.
    #[arg(long, conflicts_with_all = ["get", "explain"])]
    pub(crate) components: bool,

    /// Prints JSON.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

/// Flags of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Directory for pages.jsonl, drops.jsonl, report.json and report.html [default: a temporary one, which is
    /// printed].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,

    /// Starts anew where the directory holds an earlier crawl.
    #[arg(long)]
    pub(crate) fresh: bool,
}

/// Flags of `bench crawl`.
#[derive(Debug, Args)]
pub(crate) struct BenchCrawlArgs {
    #[command(flatten)]
    pub(crate) site: BenchSite,

    /// Requests in flight.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = positive)]
    pub(crate) concurrency: u64,

    /// Also extracts text and counts words.
    #[arg(long)]
    pub(crate) text: bool,

    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The generated site of `bench crawl`.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct BenchSite {
    /// Pages of the site.
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) pages: u64,

    /// Kilobytes of a page.
    #[arg(long, value_name = "KB", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=8_192))]
    pub(crate) kb: u64,

    /// Links of a page.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u64).range(3..=10_000))]
    pub(crate) links: u64,
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

/// Settings that flags stand for.
pub(crate) type Flags = Vec<(&'static str, Value)>;

fn set<T: Into<Value>>(flags: &mut Flags, name: &'static str, value: Option<T>) {
    flags.extend(value.map(|value| (name, value.into())));
}

fn list(flags: &mut Flags, name: &'static str, values: &[String]) {
    if !values.is_empty() {
        flags.push((name, json!(values)));
    }
}

impl NetworkArgs {
    /// The settings that these flags stand for.
    pub(crate) fn settings(&self) -> Flags {
        let mut flags = Flags::new();
        list(&mut flags, "allow_addresses", &self.allow_address);
        list(&mut flags, "resolve", &self.resolve);
        list(&mut flags, "http_auth", &self.auth);
        list(&mut flags, "secret_headers", &self.secret_header);
        if self.ignore_robots {
            flags.extend([("robotstxt_obey", json!(false)), ("obey_nofollow", json!(false))]);
        }
        if self.no_cookies {
            flags.push(("cookies_enabled", json!(false)));
        }
        set(&mut flags, "download_timeout", self.timeout);
        flags
    }
}

impl SiteArgs {
    /// The settings that these flags stand for.
    pub(crate) fn settings(&self) -> Flags {
        let mut flags = self.network.settings();
        set(&mut flags, "scope", self.reach.scope.map(ScopeArg::name));
        list(&mut flags, "allow_hosts", &self.reach.allow_host);
        list(&mut flags, "include", &self.reach.include);
        list(&mut flags, "exclude", &self.reach.exclude);
        set(&mut flags, "closespider_pagecount", self.reach.max_pages);
        if let Some(depth) = self.reach.max_depth {
            // A limit that was asked for takes the place of the guard, also where it is wider.
            flags.extend([("depth_limit", json!(depth)), ("depth_guard", json!(0))]);
        }
        set(&mut flags, "closespider_timeout", self.reach.max_time);
        set(&mut flags, "download_delay", self.pace.delay);
        set(&mut flags, "concurrent_requests_per_domain", self.pace.per_host);
        set(&mut flags, "concurrent_requests", self.pace.concurrency);
        set(&mut flags, "requests_per_second", self.pace.requests_per_second);
        set(&mut flags, "seed", self.output.seed);
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

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("use a number of at least 0".to_owned()),
    }
}

/// Seconds above 0.
pub(crate) fn positive_seconds(text: &str) -> Result<f64, String> {
    match seconds(text) {
        Ok(value) if value > 0.0 => Ok(value),
        _ => Err("use a number greater than 0".to_owned()),
    }
}

pub(crate) fn positive(text: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(value) if value > 0 => Ok(value),
        _ => Err("use a whole number of at least 1".to_owned()),
    }
}

/// A number with its unit; seconds without one.
fn span(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let seconds = match unit {
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        "w" => 604_800.0,
        _ => f64::NAN,
    };
    let seconds = number.trim().parse::<f64>().unwrap_or(f64::NAN) * seconds;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| "use a number and s, m, h, d or w, such as 30d".to_owned())
}

/// `9100` and `:9100` mean loopback; else an address with a port.
pub(crate) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    let text = if port.parse::<u16>().is_ok() {
        format!("127.0.0.1:{port}")
    } else {
        text.replacen("localhost:", "127.0.0.1:", 1)
    };
    text.parse().map_err(|_| "use ADDRESS:PORT such as 127.0.0.1:9100, or a port alone".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use huntsman::{Layer, Layers};

    use super::*;

    fn crawl(line: &str) -> SiteArgs {
        let words = ["huntsman", "crawl"].into_iter().chain(line.split(' '));
        match Cli::try_parse_from(words).unwrap().command {
            Command::Crawl(args) => args.site,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_an_example_first() {
        let mut cli = Cli::command();
        cli.build();
        let mut commands: Vec<_> = cli.get_subcommands().filter(|c| !c.is_hide_set()).cloned().collect();
        commands.extend(cli.find_subcommand("bench").unwrap().get_subcommands().cloned());
        for mut command in commands.into_iter().filter(|command| command.get_name() != "help") {
            let help = command.render_long_help().to_string();
            assert!(help.starts_with("Example"), "{}: {help}", command.get_name());
        }
    }

    #[test]
    fn every_flag_that_stands_for_a_setting_has_a_value_of_its_type() {
        let args = crawl(
            "https://a.example/ --scope domain --allow-host b.example:81 --include *a* --exclude *b* --max-pages 5 \
             --max-depth 2 --max-time 1.5 --delay 0 --per-host 2 --concurrency 3 --allow-address 127.0.0.1:* \
             --resolve a:80:127.0.0.1 --auth https://a=u:p --ignore-robots --no-cookies --timeout 3 \
             --requests-per-second 0.5 --seed 7",
        );
        let mut layers = Layers::default();
        for (name, value) in args.settings() {
            layers.set(Layer::CommandLine, name, value).unwrap();
        }
        let settings = layers.resolve().unwrap();
        assert_eq!((settings.closespider_pagecount, settings.depth_limit, settings.seed), (5, 2, Some(7)));
        assert_eq!(settings.allow_addresses, ["127.0.0.1:*"]);
        assert!(!settings.robotstxt_obey && !settings.obey_nofollow && !settings.cookies_enabled);
    }

    #[test]
    fn spans_of_time_have_units() {
        let seconds = |text: &str| span(text).map(|span| span.as_secs_f64());
        for (text, expected) in
            [("90", 90.0), ("1.5m", 90.0), ("2h", 7_200.0), ("30d", 2_592_000.0), ("1w", 604_800.0)]
        {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for text in ["", "d", "-1s", "1y", "nan", "inf", "1e300w", "12 parsecs"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn metrics_without_a_host_listen_on_loopback() {
        for text in ["9100", ":9100", "localhost:9100", "127.0.0.1:9100"] {
            assert_eq!(listen_address(text).unwrap().to_string(), "127.0.0.1:9100");
        }
        assert!(listen_address("nonsense").is_err());
        assert!(listen_address("127.0.0.1:99999").is_err());
    }

    #[test]
    fn limits_of_nothing_are_refused_with_what_to_use() {
        let parse = |flag: &str| Cli::try_parse_from(["huntsman", "crawl", "http://a/", flag, "0"]).is_err();
        assert!(parse("--max-pages") && parse("--max-time") && parse("--per-host") && parse("--timeout"));
        assert!(!parse("--max-depth") && !parse("--delay"));
    }
}
