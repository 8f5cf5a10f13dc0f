//! Flags of `huntsman job`.

use std::path::PathBuf;

use clap::{Subcommand, ValueHint};

use crate::args::positive;

/// The commands about the state of a crawl. DIR is the directory that was given to `crawl --out`, or the `state` in it.
#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Shows the progress of the crawl, and which requests are queued.
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
        /// Lists only URLs of this host, by its name in `job info`.
        #[arg(long, value_name = "HOST", value_hint = ValueHint::Hostname)]
        host: Option<String>,
        /// Prints JSON lines.
        #[arg(long)]
        json: bool,
        /// Maximum number of URLs.
        #[arg(long, value_name = "N", value_parser = positive)]
        limit: Option<u64>,
    },

    /// Prints the fingerprints of all requests that were seen, one per line and in no order. URLs are not kept: a fingerprint is
    /// the 128-bit hash of method, URL in canonical form and body in hexadecimal, as in `ls-queue --json`.
    #[command(
        name = "export-seen",
        before_help = "Example:\n  huntsman job export-seen example.org-crawl > seen.txt"
    )]
    ExportSeen {
        /// Directory of the crawl, or the state in it.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
    },

    /// Removes the requests of a host from the queue and records them in drops.jsonl as dropped_by_user; the crawl goes on without
    /// them. Links to the host that are found later are queued again; `crawl --exclude` prevents that.
    #[command(
        name = "drop-host",
        before_help = "Example:\n  huntsman job drop-host example.org-crawl slow.example.org"
    )]
    DropHost {
        /// Directory of the crawl, or the state in it.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
        /// The host, by its name in `job info`.
        #[arg(value_name = "HOST", value_hint = ValueHint::Hostname)]
        host: String,
    },
}
