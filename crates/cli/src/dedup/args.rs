//! Flags of `huntsman dedup`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use huntsman::dedup::redis::Layout;
use huntsman::detect::near::Identity;
use huntsman::detect::simhash::Features;

/// What is done with near-duplicates.
#[derive(Debug, Subcommand)]
pub(crate) enum DedupCommand {
    /// Prints the fingerprint of each document: {"id","lang","simhash"}, which is an INPUT of the other commands.
    #[command(before_help = "Examples:\n  \
        huntsman dedup hash stories.jsonl > hashes.jsonl\n  \
        huntsman dedup hash folder-of-texts --features char5")]
    Hash(HashArgs),

    /// The daily run: flags documents that are near-duplicates of indexed ones, then indexes them. The same documents again
    /// change nothing and are not flagged again.
    #[command(before_help = "Examples:\n  \
        huntsman dedup add today.jsonl --index stories --flags flags.jsonl\n  \
        huntsman dedup add s3://news/2026-01-31 --index stories --flags flags.jsonl\n  \
        huntsman dedup add today.jsonl.gz --index redis://localhost:6379/2 --flags flags.jsonl --report report.json")]
    Add(AddArgs),

    /// The first build of an index, or a large addition; with --flags, flags are written as `add` writes them.
    #[command(before_help = "Examples:\n  \
        huntsman dedup build stories.jsonl.zst --index stories\n  \
        huntsman dedup build stories.jsonl.zst --index stories --k 7 --flags pairs.jsonl")]
    Build(BuildArgs),

    /// Prints which indexed documents each document is near to; indexes nothing.
    #[command(before_help = "Example:\n  huntsman dedup query suspects.jsonl --index stories")]
    Query(QueryArgs),

    /// Shows how much an index has: documents and bytes, per language.
    #[command(before_help = "Examples:\n  \
        huntsman dedup stats --index stories\n  \
        huntsman dedup stats --index redis://localhost --layout seed --json")]
    Stats(StatsArgs),

    /// Prints every indexed document, in no order: {"id","lang","simhash"}.
    #[command(before_help = "Example:\n  huntsman dedup export --index stories > hashes.jsonl")]
    Export(ExportArgs),

    /// Checks an index in a directory: every write in its log by its checksum, what is missing, how many documents there are. Changes
    /// nothing. Exit 0 if it is whole, 1 if it is damaged, 2 if there is none.
    #[command(before_help = "Examples:\n  \
        huntsman dedup verify --index stories\n  \
        huntsman dedup verify --index stories --json")]
    Verify(StatsArgs),

    /// Repairs a damaged index in a directory: keeps all that is whole, tells what is lost and where it was, and keeps the damaged
    /// files beside the repaired ones as `.damaged`. Documents that are lost come back by `dedup add` of the same input.
    #[command(before_help = "Example:\n  huntsman dedup repair --index stories")]
    Repair(StatsArgs),
}

/// Flags of `dedup hash`.
#[derive(Debug, Args)]
pub(crate) struct HashArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// What texts are seen as: words-log, char5, words3 or words-tf.
    #[arg(long, value_name = "NAME", default_value = "words-log", value_parser = features)]
    pub(crate) features: Features,

    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Flags of `dedup add`.
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    #[command(flatten)]
    pub(crate) index: IndexArgs,

    /// File that gets a line for each document with near-duplicates; what it has is kept, and not written again
    /// [default: stdout].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) flags: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Flags of `dedup build`.
#[derive(Debug, Args)]
pub(crate) struct BuildArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    #[command(flatten)]
    pub(crate) index: IndexArgs,

    /// File that gets a line for each document that is near to an earlier one: all pairs, each once. What it has is kept, and
    /// not written again; `-` is stdout. Without it no pairs are looked for.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) flags: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Flags of `dedup query`.
#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    #[command(flatten)]
    pub(crate) index: IndexArgs,

    /// File that gets the lines, in place of what it has [default: stdout].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) flags: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Flags of `dedup stats`, `verify` and `repair`.
#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) index: IndexArgs,

    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags of `dedup export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) index: IndexArgs,

    /// Only this language.
    #[arg(long, value_name = "LANG")]
    pub(crate) lang: Option<String>,
}

/// Which index, and what it is made for.
#[derive(Debug, Args)]
#[command(next_help_heading = "Index")]
pub(crate) struct IndexArgs {
    /// A directory, or a Redis server: `redis://[USER@]HOST[:PORT][/DB]`, `rediss://` for TLS. The password may stand in
    /// HUNTSMAN_REDIS_PASSWORD.
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) index: String,

    /// How an index lies in a Redis server: compact, seed or log [default: compact].
    #[arg(long, value_name = "NAME", value_parser = layout)]
    pub(crate) layout: Option<Layout>,

    /// In how many of 128 bits near-duplicates differ at most, 0 to 7 [default: 3, or what the index is made for].
    #[arg(long, value_name = "N", value_parser = distance)]
    pub(crate) k: Option<u32>,

    /// What texts are seen as: words-log, char5, words3 or words-tf [default: words-log, or what the index is made for].
    #[arg(long, value_name = "NAME", value_parser = features)]
    pub(crate) features: Option<Features>,
}

/// What is read.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Files of JSON lines (also packed with gzip or zstd) with id, lang and text, html or simhash; folders of .txt and .html
    /// files; `s3://BUCKET/PREFIX` and `s3://BUCKET/KEY` for the same in a bucket, as the variables AWS_* of the environment
    /// say; `-` for JSON lines on stdin.
    #[arg(value_name = "INPUT", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) inputs: Vec<String>,

    /// Language of documents that name none [default: recognised from the text].
    #[arg(long, value_name = "LANG", help_heading = "Input")]
    pub(crate) lang: Option<String>,

    /// CSV file with a head line and a column `id`: only these documents are read. A column `lang` names languages, a column
    /// `path` tells which file of a folder has an id.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Input")]
    pub(crate) ids: Option<PathBuf>,

    /// Longest document in bytes, be it a line or a file; a longer one is an error of its own.
    #[arg(long, value_name = "BYTES", default_value_t = 32 << 20, value_parser = clap::value_parser!(u64).range(1..=1 << 31), help_heading = "Input")]
    pub(crate) max_document: u64,

    /// Texts with fewer words are indexed, but not flagged.
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "Input")]
    pub(crate) min_words: usize,
}

/// How it is done, and what is told about it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
pub(crate) struct RunArgs {
    /// Threads that fingerprint [default: as many as processors].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,

    /// Prometheus text at http://ADDR/metrics while the command runs.
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics: Option<SocketAddr>,

    /// Lets --metrics listen where other machines can read.
    #[arg(long, requires = "metrics")]
    pub(crate) metrics_public: bool,

    /// File that gets the metrics at the end, added to those of earlier runs, for a collector that reads files.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) metrics_file: Option<PathBuf>,

    /// File that gets the summary as JSON.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,

    /// File that gets a JSON line for each document that could not be read; only the first ones are shown.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) errors: Option<PathBuf>,
}

impl RunArgs {
    /// Number of threads that compute fingerprints.
    pub(crate) fn workers(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.jobs.map_or_else(all, usize::from)
    }
}

/// Parses the name of a feature set.
pub(crate) fn features(name: &str) -> Result<Features, String> {
    name.parse().map_err(|_| {
        let near = huntsman::nearest(name, Features::ALL.into_iter().map(Features::name));
        let hint = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
        format!("use words-log, char5, words3 or words-tf{hint}")
    })
}

fn layout(name: &str) -> Result<Layout, String> {
    name.parse().map_err(|_| "use compact, seed or log".to_owned())
}

/// Parses a distance; an index must be able to answer it exactly.
pub(crate) fn distance(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(k) if k <= Identity::MAX_K => Ok(k),
        Ok(_) => Err(format!("at most {}: beyond it an answer would not be exact", Identity::MAX_K)),
        Err(_) => Err(format!("use a whole number from 0 to {}", Identity::MAX_K)),
    }
}
