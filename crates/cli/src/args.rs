//! The command line: commands and flags, from which help, checks and completions come.
//!
//! Flags that stand for a setting say which one; [`SiteArgs::settings`] and its neighbours are that mapping.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use huntsman::detect::avoid::evaluation::{Case, View};
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
    #[command(before_help = "Examples:\n  \
        huntsman bench crawl --pages 2000\n  \
        huntsman bench avoid-dup --case forum-adjacent\n  \
        huntsman bench simhash\n  \
        huntsman bench copyvio\n  \
        huntsman bench store")]
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

    /// The site and the sources of `bench copyvio --only sweep`; ends when its stdin closes.
    #[command(name = "bench-sources", hide = true)]
    BenchSources(BenchSourcesArgs),
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

    /// Measures the avoidance of duplicates: what is saved and what is lost, beside MaybeDont's rules, on made-up sites without a
    /// network, or on a site that runs.
    #[command(
        name = "avoid-dup",
        before_help = "Examples:\n  \
        huntsman bench avoid-dup\n  \
        huntsman bench avoid-dup --case forum-adjacent --case tracking --in-flight 16 --seed 7 --json\n  \
        huntsman bench avoid-dup --site http://127.0.0.1:8104/ --truth forum.tsv.gz --out runs",
        after_help = AVOID_DUP_HELP
    )]
    AvoidDup(Box<BenchAvoidDupArgs>),

    /// Measures near-duplicates: which changes of a text are found, how fast fingerprints are, what an index costs in memory, on the
    /// disk and in Redis, how many stories a run takes. Without a network.
    #[command(
        before_help = "Examples:\n  \
        huntsman bench simhash\n  \
        huntsman bench simhash --documents 15896966 --json\n  \
        huntsman bench simhash --only quality --pairs pairs.jsonl",
        after_help = SIMHASH_HELP
    )]
    Simhash(Box<BenchSimhashArgs>),

    /// Measures copied texts: how fast two are compared, what an index of windows costs, and what confidence and score say of texts of
    /// which it is known what is right. Without a network.
    #[command(before_help = "Examples:\n  \
        huntsman bench copyvio\n  \
        huntsman bench copyvio --only synthetic --markdown\n  \
        huntsman bench copyvio --only index --texts 10000,1000000\n  \
        huntsman bench copyvio --article article.txt --source source.txt --json")]
    Copyvio(BenchCopyvioArgs),

    /// Measures the stores of jobs: writing in batches, reading, walking through, opening anew, bytes on disk.
    #[command(before_help = "Examples:\n  \
        huntsman bench store\n  \
        huntsman bench store --only redb --entries 5000000 --dir /var/tmp --json")]
    Store(BenchStoreArgs),
}

const SIMHASH_HELP: &str = "\
--pairs FILE has a JSON object a line (also packed with gzip or zstd): the texts `a` and `b`, and if you like `kind` (a name of what was \
done) and `level` (how much of it), by which shares are told, `len` (words, a class of its own), and `dup`: 1 if one text was made from the \
other, which is the default, 0 for texts that must not be found. Other fields are passed over.\n\n\
--redis without a URL starts servers of its own. A server that is named keeps what was measured, under the languages BENCH-...: name an \
empty database, and flush it afterwards. Its memory is that of the whole server. The password may stand in HUNTSMAN_REDIS_PASSWORD.";

const AVOID_DUP_HELP: &str = "\
Made-up sites: recall is the share of the requests for known contents that were not sent, the warm-up included; lost are contents \
that never came; the estimate is the model's own, with the upper end of its 95 % interval. Ranges are over the seeds.\n\n\
A site that runs: each crawl is that of\n  \
huntsman crawl URL --profile test --no-cookies --only LIST --concurrency N --per-host N --avoid-dup[=reference] --seed N\n\
with the address of the site allowed. LIST is --list, or the URLs of the truth. Downloads are url and final_url of \
pages.jsonl.\n\n\
The truth is a text of lines (.gz is unpacked) with four columns, separated by tabs:\n  \
1  number of the content, compared by the area with the content proper\n  \
2  number of the content, compared by all visible text but what most pages have\n  \
3  kind: page; all others (redirect, other, error) are not scored and have -1 in both numbers\n  \
4  path and query, such as /viewtopic.php?t=7\n\
Pages with the same number show the same. Lines that begin with # are comments.";

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

/// Flags of `bench avoid-dup`.
#[derive(Debug, Args)]
pub(crate) struct BenchAvoidDupArgs {
    /// Made-up site (repeatable) [default: all].
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Case::ALL.map(case_value)))]
    pub(crate) case: Vec<String>,

    /// Requests in flight when the next one is decided (repeatable) [default: 0 and 16; of the forums 0, 1, 4 and 16].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub(crate) in_flight: Vec<u64>,

    /// This seed only.
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    pub(crate) seed: Option<u64>,

    /// So many seeds, from 1 on.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub(crate) seeds: u64,

    /// Which model: our own, MaybeDont's rules, or both side by side.
    #[arg(long, value_name = "MODE", default_value = "both")]
    pub(crate) mode: BenchModes,

    /// A site that runs, by its start URL.
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, requires = "truth", conflicts_with_all = ["case", "in_flight"])]
    pub(crate) site: Option<url::Url>,

    /// Which of its URLs show the same: see below.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "site")]
    pub(crate) truth: Option<PathBuf>,

    /// Fetches only URLs of this list [default: those of the truth].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "site")]
    pub(crate) list: Option<PathBuf>,

    /// By which numbers of the truth the table is.
    #[arg(long, value_name = "VIEW", default_value = "area", requires = "site")]
    pub(crate) view: ViewArg,

    /// Requests in flight, in all and per host.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = positive, requires = "site")]
    pub(crate) concurrency: u64,

    /// Keeps the files of the crawls, each in a directory of its own in this one.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "site")]
    pub(crate) out: Option<PathBuf>,

    /// Starts anew where the directories hold earlier crawls.
    #[arg(long, requires = "out")]
    pub(crate) fresh: bool,

    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

impl BenchAvoidDupArgs {
    /// The seeds that were asked for.
    pub(crate) fn seeds(&self) -> Vec<u64> {
        self.seed.map_or_else(|| (1..=self.seeds).collect(), |seed| vec![seed])
    }
}

fn case_value(case: Case) -> PossibleValue {
    PossibleValue::new(case.name()).help(case.about())
}

/// Values of `bench avoid-dup --mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchModes {
    /// Our own model.
    Default,
    /// MaybeDont's rules.
    Reference,
    /// Both.
    Both,
}

impl BenchModes {
    /// One by one.
    pub(crate) fn each(self) -> &'static [AvoidDupArg] {
        match self {
            Self::Default => &[AvoidDupArg::Default],
            Self::Reference => &[AvoidDupArg::Reference],
            Self::Both => &[AvoidDupArg::Default, AvoidDupArg::Reference],
        }
    }
}

/// Flags of `bench simhash`.
#[derive(Debug, Args)]
pub(crate) struct BenchSimhashArgs {
    /// Only these parts [default: all; redis if there is a redis-server].
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    pub(crate) only: Vec<SimhashPart>,

    /// Where all random numbers begin.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Stories for each kind of change, of ten languages.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(40..=100_000))]
    pub(crate) stories: u64,

    /// Words of a story.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(50..=100_000))]
    pub(crate) words: u64,

    /// Judges the pairs of a file instead: see below. Without --only, nothing else is measured.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) pairs: Option<PathBuf>,

    /// Writes the pairs that are made to a file, as --pairs reads it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "pairs")]
    pub(crate) write_pairs: Option<PathBuf>,

    /// Also measures the speed with this text (repeatable).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) text: Vec<PathBuf>,

    /// Documents of the indexes.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..=200_000_000))]
    pub(crate) documents: u64,

    /// Indexes for these numbers of bits.
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [3, 7], value_parser = clap::value_parser!(u32).range(0..=7))]
    pub(crate) k: Vec<u32>,

    /// Stories that are added to an index.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) add: u64,

    /// Measures with this Redis server; without a URL, with one that is started here.
    #[arg(long, value_name = "URL", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "clap's form for a flag with a value that may be left out")]
    pub(crate) redis: Option<Option<String>>,

    /// Documents of the indexes in Redis.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    pub(crate) redis_documents: u64,

    /// Folder for temporary files [default: that of the system].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) form: FormArgs,

    /// Measures this part for another process.
    #[arg(long, hide = true)]
    pub(crate) part: Option<SimhashPart>,
}

/// Values of `bench simhash --only`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimhashPart {
    /// Which changes of a text are found.
    Quality,
    /// How fast texts become fingerprints.
    Speed,
    /// Memory and time of indexes.
    Index,
    /// `dedup add` from texts to flags.
    Add,
    /// Memory and time of indexes in Redis.
    Redis,
}

impl SimhashPart {
    /// All of them, in the order in which they are measured.
    pub(crate) const ALL: [Self; 5] = [Self::Quality, Self::Speed, Self::Index, Self::Add, Self::Redis];

    /// The value that stands for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Quality => "quality",
            Self::Speed => "speed",
            Self::Index => "index",
            Self::Add => "add",
            Self::Redis => "redis",
        }
    }
}

/// Flags of `bench copyvio`.
#[derive(Debug, Args)]
pub(crate) struct BenchCopyvioArgs {
    /// Only these parts [default: all; with --article speed].
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    pub(crate) only: Vec<CopyvioPart>,

    /// Where all random numbers begin.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Words of the two texts of which the speed is measured.
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    pub(crate) words: u64,

    /// Measures the speed with this article, a text in UTF-8.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "source")]
    pub(crate) article: Option<PathBuf>,

    /// Measures the speed with this source.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "article")]
    pub(crate) source: Option<PathBuf>,

    /// Texts of the indexes, of 1,000 words each.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [10_000], value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    pub(crate) texts: Vec<u64>,

    #[command(flatten)]
    pub(crate) sources: BenchSourcesArgs,

    /// Pairs of each case that is made.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) pairs: u64,

    #[command(flatten)]
    pub(crate) form: FormArgs,
}

/// How figures are printed: as tables unless another form is wanted.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct FormArgs {
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    /// Prints tables in Markdown.
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
}

/// Flags of `bench store`.
#[derive(Debug, Args)]
pub(crate) struct BenchStoreArgs {
    /// Only these stores [default: all of this build].
    #[arg(long, value_name = "STORE", value_delimiter = ',', value_parser = ["memory", "redb", "sled"])]
    pub(crate) only: Vec<String>,

    /// Entries of each store.
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) entries: u64,

    /// Bytes of a value.
    #[arg(long, value_name = "BYTES", default_value_t = 200, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub(crate) value_bytes: u64,

    /// Entries that are written at once.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) batch: u64,

    /// Directory on the disk that is measured [default: that of temporary files].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,

    /// Where all random numbers begin.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    #[command(flatten)]
    pub(crate) form: FormArgs,
}

/// Values of `bench copyvio --only`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CopyvioPart {
    /// How fast two texts are compared.
    Speed,
    /// Memory and time of an index of windows.
    Index,
    /// What confidence and score say of texts of which it is known what is right.
    Synthetic,
    /// A sweep of a made-up site on this machine.
    Sweep,
}

/// The site that is swept, and where its sources are.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct BenchSourcesArgs {
    /// Articles of the sweep.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) articles: u64,

    /// Sources of each article.
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u64).range(1..=200))]
    pub(crate) sources_each: u64,

    /// Domains that the sources are on.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=500))]
    pub(crate) domains: u64,
}

/// Values of `bench avoid-dup --view`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ViewArg {
    /// The area with the content proper.
    Area,
    /// All visible text but what most pages have.
    Page,
}

impl From<ViewArg> for View {
    fn from(view: ViewArg) -> Self {
        match view {
            ViewArg::Area => Self::Area,
            ViewArg::Page => Self::Page,
        }
    }
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
    use huntsman::middleware::{CookiesSettings, Defaults, DepthSettings, NofollowSettings, RobotsSettings};
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
            layers.set(Layer::CommandLine, name, value);
        }
        let settings = layers.resolve(&Defaults::settings_table()).unwrap();
        assert_eq!(
            (settings.closespider_pagecount, settings.of::<DepthSettings>().depth_limit, settings.seed),
            (5, 2, Some(7))
        );
        assert_eq!(settings.allow_addresses, ["127.0.0.1:*"]);
        assert!(!settings.of::<RobotsSettings>().robotstxt_obey);
        assert!(!settings.of::<NofollowSettings>().obey_nofollow);
        assert!(!settings.of::<CookiesSettings>().cookies_enabled);
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
