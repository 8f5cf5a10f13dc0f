//! Flags of `huntsman job`.

use std::path::PathBuf;

use clap::{Subcommand, ValueHint};

use crate::args::positive;

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
