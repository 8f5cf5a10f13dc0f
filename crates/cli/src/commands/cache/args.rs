//! Flags of `huntsman cache`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};

use crate::args::{positive, span};

/// The commands about an HTTP cache.
#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Lists the stored responses, in no order; --json prints one object per line, with the headers by which a response varies.
    #[command(before_help = "Examples:\n  \
        huntsman cache ls .huntsman/httpcache\n  \
        huntsman cache ls .huntsman/httpcache 'https://example.org/*' --json")]
    Ls {
        /// Directory of the cache.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
        /// Glob that URLs must match, or a regular expression after `re:`.
        #[arg(value_name = "PATTERN")]
        pattern: Option<String>,
        /// Prints JSON lines.
        #[arg(long)]
        json: bool,
    },

    /// Prints the decoded body of the stored response for a URL. Exits with 1 if there is none.
    #[command(before_help = "Examples:\n  \
        huntsman cache get .huntsman/httpcache https://example.org/ > page.html\n  \
        huntsman cache get .huntsman/httpcache https://example.org/ --headers")]
    Get(CacheGetArgs),

    /// Removes the responses for a URL, old ones, or all.
    #[command(before_help = "Examples:\n  \
        huntsman cache rm .huntsman/httpcache https://example.org/\n  \
        huntsman cache rm .huntsman/httpcache --older-than 30d")]
    Rm {
        /// Directory of the cache.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
        /// Removes the responses for this URL, with any method and any headers.
        #[arg(value_name = "URL", value_hint = ValueHint::Url, required_unless_present_any = ["older_than", "all"])]
        url: Option<String>,
        /// Removes responses that were stored, or last confirmed by their server, longer ago than this: 90s, 15m, 12h, 30d, 2w.
        #[arg(long, value_name = "TIME", value_parser = span, conflicts_with_all = ["url", "all"])]
        older_than: Option<Duration>,
        /// Removes all responses.
        #[arg(long, conflicts_with = "url")]
        all: bool,
    },

    /// Writes the responses to GET requests into a WARC 1.1 file, one gzip member per record.
    #[command(
        name = "export-warc",
        before_help = "Example:\n  \
        huntsman cache export-warc .huntsman/httpcache --out example.warc.gz"
    )]
    ExportWarc {
        /// Directory of the cache.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
        /// Glob that URLs must match, or a regular expression after `re:`.
        #[arg(value_name = "PATTERN")]
        pattern: Option<String>,
        /// The file to write, which must not exist; `-` is stdout.
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

    /// URL of the page.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: String,

    /// Prints status and headers.
    #[arg(long, group = "what")]
    pub(crate) headers: bool,

    /// Prints the decoded body (the default).
    #[arg(long, group = "what")]
    pub(crate) body: bool,

    /// Prints the body as it was received, with its content codings.
    #[arg(long, group = "what")]
    pub(crate) raw: bool,

    /// Method of the request [default: GET, or any method if there is no response to GET].
    #[arg(long, value_name = "METHOD")]
    pub(crate) method: Option<String>,

    /// Number of the response, newest first, if there are several for different request headers.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = positive)]
    pub(crate) variant: u64,
}
