//! Flags of `huntsman cache`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};

use crate::args::{positive, span};

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
