//! Flags of `huntsman warc`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// The commands about WARC files.
#[derive(Debug, Subcommand)]
pub(crate) enum WarcCommand {
    /// Lists the records of files and folders: offset, type, status, date and URL; --json prints one object per line.
    #[command(before_help = "Example:\n  huntsman warc ls archive --json")]
    Ls {
        /// WARC files, folders with such files, WACZ files, patterns in quotes, and the same in buckets (s3://BUCKET/KEY).
        #[arg(value_name = "FILE|DIR", value_hint = ValueHint::AnyPath, required = true)]
        files: Vec<PathBuf>,
        /// Prints JSON lines.
        #[arg(long)]
        json: bool,
    },

    /// Prints the decoded body of the capture of a URL. Exits with 1 if there is none.
    #[command(before_help = "Examples:\n  \
        huntsman warc get archive https://example.org/ > page.html\n  \
        huntsman warc get a.warc.gz b.warc.gz https://example.org/ --at 2026-01-31T12:00:00Z\n  \
        huntsman warc get --index archive/index.cdxj https://example.org/")]
    Get(WarcGetArgs),

    /// Checks digests, lengths, ids and what revisits refer to. Exits with 1 if a file is damaged; what is missing in the files but may be elsewhere
    /// is a warning.
    #[command(before_help = "Example:\n  huntsman warc check archive")]
    Check {
        /// WARC files, folders with such files, WACZ files, patterns in quotes, and the same in buckets (s3://BUCKET/KEY).
        #[arg(value_name = "FILE|DIR", value_hint = ValueHint::AnyPath, required = true)]
        files: Vec<PathBuf>,
    },

    /// Prints a CDXJ index of the files, sorted by bytes, from which players find the capture of a URL.
    #[command(before_help = "Example:\n  huntsman warc index archive --out index.cdxj")]
    Index {
        /// WARC files, folders with such files, WACZ files, patterns in quotes, and the same in buckets (s3://BUCKET/KEY).
        #[arg(value_name = "FILE|DIR", value_hint = ValueHint::AnyPath, required = true)]
        files: Vec<PathBuf>,
        /// The file to write; an index that exists is replaced [default: stdout].
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        out: Option<PathBuf>,
    },

    /// Packs files with their index and the list of their pages into one WACZ file (1.1.1), which players in browsers read. Exits with 1 if a file is
    /// damaged; it is packed as it is.
    #[command(
        before_help = "Example:\n  huntsman warc pack archive --wacz site.wacz --title 'The site in January'"
    )]
    Pack(WarcPackArgs),
}

/// Flags of `warc pack`.
#[derive(Debug, Args)]
pub(crate) struct WarcPackArgs {
    /// WARC files, folders with such files, WACZ files, patterns in quotes, and the same in buckets (s3://BUCKET/KEY).
    #[arg(value_name = "FILE|DIR", value_hint = ValueHint::AnyPath, required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// The file to write; one that exists is replaced when the new one is whole.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) wacz: PathBuf,

    /// Adds the text of each page, in which players search.
    #[arg(long)]
    pub(crate) text: bool,

    /// Title for people.
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,

    /// Description for people.
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
}

/// Flags of `warc get`.
#[derive(Debug, Args)]
pub(crate) struct WarcGetArgs {
    /// Files, folders, WACZ files and patterns, also in buckets (s3://BUCKET/KEY), and behind them the URL of the page.
    #[arg(value_names = ["FILE|DIR", "URL"], num_args = 1.., required = true)]
    pub(crate) files_and_url: Vec<String>,

    /// CDXJ index that says where the captures are, so that only their bytes are read. Its files are looked for beside it, in ../archive, and among
    /// those that are named.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) index: Option<PathBuf>,

    /// Takes the capture nearest to this time, 14 digits or RFC 3339 [default: the last one].
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,

    /// Prints status and headers.
    #[arg(long)]
    pub(crate) headers: bool,
}
