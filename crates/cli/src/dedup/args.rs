//! Flags of `huntsman dedup`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use huntsman::bulk::{Columns, Dialect, Form, Keep, Link};
use huntsman::dedup::ArchiveId;
use huntsman::dedup::redis::Layout;
use huntsman::detect::near::Identity;
use huntsman::detect::simhash::Features;

/// The commands about near-duplicates.
#[derive(Debug, Subcommand)]
pub(crate) enum DedupCommand {
    /// Prints the fingerprint of each document: {"id","lang","simhash"}, which is an INPUT of the other commands.
    #[command(before_help = "Examples:\n  \
        huntsman dedup hash stories.jsonl > hashes.jsonl\n  \
        huntsman dedup hash folder-of-texts --features char5")]
    Hash(HashArgs),

    /// Flags documents that are near-duplicates of indexed ones, then indexes them, as for the documents of each day.
    /// Adding the same documents again changes nothing and flags nothing twice.
    #[command(before_help = "Examples:\n  \
        huntsman dedup add today.jsonl --index stories --flags flags.jsonl\n  \
        huntsman dedup add s3://news/2026-01-31 --index stories --flags flags.jsonl\n  \
        huntsman dedup add today.jsonl.gz --index redis://localhost:6379/2 --flags flags.jsonl --report report.json")]
    Add(AddArgs),

    /// Builds an index, or adds many documents to one at once; with --flags, flags are written as `add` writes them.
    #[command(before_help = "Examples:\n  \
        huntsman dedup build stories.jsonl.zst --index stories\n  \
        huntsman dedup build stories.jsonl.zst --index stories --k 7 --flags pairs.jsonl")]
    Build(BuildArgs),

    /// Prints which indexed documents each document is near to, and indexes nothing.
    #[command(before_help = "Example:\n  huntsman dedup query suspects.jsonl --index stories")]
    Query(QueryArgs),

    /// Shows the size of an index: documents and bytes, per language.
    #[command(before_help = "Examples:\n  \
        huntsman dedup stats --index stories\n  \
        huntsman dedup stats --index redis://localhost --layout seed --json")]
    Stats(StatsArgs),

    /// Prints every indexed document, in no order: {"id","lang","simhash"}; with --parquet, writes them to files for `join` and for SQL
    /// engines.
    #[command(before_help = "Examples:\n  \
        huntsman dedup export --index stories > hashes.jsonl\n  \
        huntsman dedup export --index stories --parquet exported")]
    Export(ExportArgs),

    /// Finds all pairs of near-duplicates among the fingerprints of files, in bounded memory. Killed at any time, the same command goes
    /// on.
    #[command(before_help = "Examples:\n  \
        huntsman dedup join exported --out near\n  \
        huntsman dedup join december.parquet --against archive --k 3 --out near --memory 8GB\n  \
        huntsman dedup join table.csv --columns id=story_id,hi=h1,lo=h2 --lang hi --out near --format csv")]
    Join(JoinArgs),

    /// Groups the documents of a finished join: all that pairs connect, or copies of what is kept.
    #[command(before_help = "Examples:\n  \
        huntsman dedup cluster near --link components\n  \
        huntsman dedup cluster near --link greedy --order-by published\n  \
        huntsman dedup cluster near --link greedy --keep longest --order-by words")]
    Cluster(ClusterArgs),

    /// Prints the join as queries for a SQL engine: copies, pairs, and values that many documents share.
    #[command(
        before_help = "Example:\n  huntsman dedup sql --dialect spark --k 3 --table archive.fingerprints > near.sql"
    )]
    Sql(SqlArgs),

    /// Checks an index in a directory without changing it: verifies the checksum of every write in its log, reports
    /// missing files, and counts documents. Exits with 0 if the index is whole, 1 if it is damaged, 2 if there is
    /// none.
    #[command(before_help = "Examples:\n  \
        huntsman dedup verify --index stories\n  \
        huntsman dedup verify --index stories --json")]
    Verify(StatsArgs),

    /// Repairs a damaged index in a directory: keeps every whole write, reports what is lost and where it was, and
    /// keeps the damaged files beside the repaired ones as `.damaged`. `dedup add` of the same input restores lost
    /// documents.
    #[command(before_help = "Example:\n  huntsman dedup repair --index stories")]
    Repair(StatsArgs),
}

/// Flags of `dedup hash`.
#[derive(Debug, Args)]
pub(crate) struct HashArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Feature set of the fingerprints: words-log, char5, words3 or words-tf [default: that of a table, or words-log].
    #[arg(long, value_name = "NAME", value_parser = features)]
    pub(crate) features: Option<Features>,

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

    /// File to which one line per document with near-duplicates is appended; lines that it has are not written again
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

    /// File to which one line per document that is near to an earlier one is appended, so that each pair is written once. Lines
    /// that it has are not written again; `-` is stdout. Without this flag, no pairs are searched.
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

    /// File that is overwritten with the lines [default: stdout].
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

    /// Exports only documents in this language.
    #[arg(long, value_name = "LANG")]
    pub(crate) lang: Option<String>,

    /// Folder for Parquet files of at most 1 GiB, in the order of language and fingerprint, in place of lines on stdout. An earlier export
    /// there is replaced.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) parquet: Option<PathBuf>,

    /// Leaves out the columns b0 to b3, which are the bands of the fingerprint.
    #[arg(long, requires = "parquet")]
    pub(crate) no_bands: bool,
}

/// Flags of `dedup join`.
#[derive(Debug, Args)]
pub(crate) struct JoinArgs {
    /// Folders of `dedup export --parquet`, and files: .parquet; .jsonl, .csv and .tsv, also with .gz or .zst. Columns: id (or id_text),
    /// lang, and hi with lo, the halves of the fingerprint as numbers of 64 bits, or simhash.
    #[arg(value_name = "INPUT", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) inputs: Vec<PathBuf>,

    /// Folder for the results: `pairs` (lang, a, b, distance) and `same` (id, first, lang), whose documents have equal fingerprints.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,

    /// Maximum number of differing bits, of 128, 0 to 7.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = distance)]
    pub(crate) k: u32,

    /// Finds only pairs between the inputs and this one, as for a new month against the archive; repeatable.
    #[arg(long, value_name = "INPUT", value_hint = ValueHint::AnyPath)]
    pub(crate) against: Vec<PathBuf>,

    /// Names of columns that differ, such as id=story_id,hi=h1,lo=h2; fp=NAME is one column of 16 bytes.
    #[arg(long, value_name = "LIST")]
    pub(crate) columns: Option<Columns>,

    /// Language of rows that name none.
    #[arg(long, value_name = "LANG")]
    pub(crate) lang: Option<String>,

    /// Memory to use, at least 64MB; KB, MB and GB are powers of 1,024.
    #[arg(long, value_name = "SIZE", default_value = "4GB", value_parser = bytes)]
    pub(crate) memory: u64,

    /// Folder in which one for scratch files is made [default: temp in the folder of the results].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) temp: Option<PathBuf>,

    /// Number of threads that compare [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,

    /// Form of the results: parquet, jsonl, csv or tsv.
    #[arg(long, value_name = "NAME", default_value = "parquet")]
    pub(crate) format: Form,

    /// Begins anew: removes what an earlier join left in the folders.
    #[arg(long)]
    pub(crate) fresh: bool,

    /// Serves metrics as Prometheus text at http://ADDR/metrics while the command runs.
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics: Option<SocketAddr>,

    /// Allows --metrics to listen on an address that other machines can reach.
    #[arg(long, requires = "metrics")]
    pub(crate) metrics_public: bool,

    /// File for the metrics at the end, for a collector that reads files.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) metrics_file: Option<PathBuf>,

    /// File for the report as JSON: rows, comparisons, pairs, bytes, seconds of each key, and the values that most fingerprints share.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
}

/// Flags of `dedup cluster`.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// Folder of a finished `dedup join`; the groups are written to `cluster` in it (id, cluster, kept, distance, lang).
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,

    /// How documents are grouped: components (all that pairs connect, for counting) or greedy (in order, a document is a copy if an
    /// earlier kept one is near, for deleting).
    #[arg(long, value_name = "NAME", default_value = "components")]
    pub(crate) link: Link,

    /// Which document of a group is kept: first or oldest (with the least value of --order-by), or longest (with the greatest).
    #[arg(long, value_name = "NAME", default_value = "first")]
    pub(crate) keep: Keep,

    /// Column of the input of the join that gives the order, such as a date or a number of words [default: the id].
    #[arg(long, value_name = "COLUMN")]
    pub(crate) order_by: Option<String>,
}

/// Flags of `dedup sql`.
#[derive(Debug, Args)]
pub(crate) struct SqlArgs {
    /// Dialect: spark, trino, athena, bigquery, duckdb or datafusion.
    #[arg(long, value_name = "NAME")]
    pub(crate) dialect: Dialect,

    /// Maximum number of differing bits, of 128, 0 to 7.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = distance)]
    pub(crate) k: u32,

    /// Table with the columns of an export, as the engine names it.
    #[arg(long, value_name = "NAME", default_value = "docs")]
    pub(crate) table: String,

    /// Column of the ids; that of an export with text ids is id_text.
    #[arg(long, value_name = "NAME", default_value = "id")]
    pub(crate) id: String,
}

/// The index and its properties.
#[derive(Debug, Args)]
#[command(next_help_heading = "Index")]
pub(crate) struct IndexArgs {
    /// Directory of the index, or a Redis server: `redis://[USER@]HOST[:PORT][/DB]`, `rediss://` for TLS. The
    /// password may be given in HUNTSMAN_REDIS_PASSWORD.
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) index: String,

    /// Layout of an index in a Redis server: compact, seed or log [default: compact].
    #[arg(long, value_name = "NAME", value_parser = layout)]
    pub(crate) layout: Option<Layout>,

    /// Maximum number of differing bits, of 128, between near-duplicates, 0 to 7 [default: that of the index, or 3].
    #[arg(long, value_name = "N", value_parser = distance)]
    pub(crate) k: Option<u32>,

    /// Feature set of the fingerprints: words-log, char5, words3 or words-tf [default: that of the index, or
    /// words-log].
    #[arg(long, value_name = "NAME", value_parser = features)]
    pub(crate) features: Option<Features>,
}

/// The input.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Files of JSON lines (also compressed with gzip or zstd) with id, lang and text, html or simhash; WARC files of
    /// crawls and of texts (.warc.gz, .warc.wet.gz), also in WACZ files (.wacz); folders of these and of .txt and .html files; Parquet files with
    /// fingerprints, and folders of `dedup export --parquet`; patterns in quotes; `s3://BUCKET/PREFIX`, `s3://BUCKET/KEY` and patterns for the same in a
    /// bucket, configured by the environment variables AWS_*; `-` for JSON lines on stdin.
    #[arg(value_name = "INPUT", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) inputs: Vec<String>,

    /// Language of documents that do not name one [default: detected from the text].
    #[arg(long, value_name = "LANG", help_heading = "Input")]
    pub(crate) lang: Option<String>,

    /// List of ids, as CSV with a header line or as Parquet: only these documents are read. A file, a folder of files, or `s3://BUCKET/KEY`
    /// and `s3://BUCKET/PREFIX`. A column `lang` gives their languages, and a column `path` the file in a folder that has an id. Or a CDXJ index
    /// (.cdxj, .cdx.gz): only the records that its lines name are read, by ranges, of the files beside it and of INPUT (WARC files, or the folder or
    /// prefix that its file names are relative to).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::AnyPath, group = "list", help_heading = "Input")]
    pub(crate) ids: Option<PathBuf>,

    /// Query in the SQL of SQLite that chooses the ids, instead of a list: `SELECT id FROM 's3://bucket/stories/*.parquet' WHERE year = 2026`. A
    /// table is a Parquet file, a folder, a pattern or the same in a bucket, by its name in quotes. Dates and times are texts, such as `2026-11-27` and
    /// `2026-11-27 12:30:00.000` (UTC). It takes a build with the feature `sql`.
    #[arg(long, value_name = "QUERY", group = "list", help_heading = "Input")]
    pub(crate) ids_sql: Option<String>,

    /// Column of the ids in the list, or in the result of the query [default: id].
    #[arg(long, value_name = "NAME", requires = "list", help_heading = "Input")]
    pub(crate) ids_column: Option<String>,

    /// Names of columns of Parquet files that differ from id (or id_text), lang, hi and lo, such as id=story_id,hi=h1,lo=h2; fp=NAME is
    /// one column of 16 bytes.
    #[arg(long, value_name = "LIST", help_heading = "Input")]
    pub(crate) columns: Option<Columns>,

    /// Id of a document in a WARC file: its URL, the id of its record, or its time as 14 digits, a slash and its URL.
    #[arg(long = "id", value_name = "url|record|url-date", default_value = "url", value_parser = archive_id, help_heading = "Input")]
    pub(crate) archive_id: ArchiveId,

    /// Maximum size of a document (a line, a file or a record) in bytes; a larger one is counted as an error.
    #[arg(long, value_name = "BYTES", default_value_t = 32 << 20, value_parser = clap::value_parser!(u64).range(1..=1 << 31), help_heading = "Input")]
    pub(crate) max_document: u64,

    /// Minimum number of words of a text that is flagged; shorter texts are only indexed.
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "Input")]
    pub(crate) min_words: usize,
}

/// How the command runs, and what it reports.
#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
pub(crate) struct RunArgs {
    /// Number of threads that compute fingerprints [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,

    /// Serves metrics as Prometheus text at http://ADDR/metrics while the command runs.
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics: Option<SocketAddr>,

    /// Allows --metrics to listen on an address that other machines can reach.
    #[arg(long, requires = "metrics")]
    pub(crate) metrics_public: bool,

    /// File to which the metrics are added at the end; its counters go on from run to run, for a collector that reads
    /// files.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) metrics_file: Option<PathBuf>,

    /// File for the summary as JSON.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,

    /// File for one JSON line per document that could not be read; the terminal shows only the first ones.
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

fn archive_id(name: &str) -> Result<ArchiveId, String> {
    name.parse()
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

/// Parses a size such as 64MB; the units are powers of 1,024.
fn bytes(text: &str) -> Result<u64, String> {
    let upper = text.to_ascii_uppercase();
    let (digits, unit) = upper.split_at(upper.find(|c: char| !c.is_ascii_digit()).unwrap_or(upper.len()));
    let shift = match unit {
        "" | "B" => 0,
        "KB" | "K" => 10,
        "MB" | "M" => 20,
        "GB" | "G" => 30,
        _ => return Err("use a size such as 64MB or 4GB".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| "use a size such as 64MB or 4GB".to_owned())?;
    number
        .checked_mul(1 << shift)
        .filter(|bytes| *bytes >= 64 << 20)
        .ok_or_else(|| "at least 64MB are needed".to_owned())
}
