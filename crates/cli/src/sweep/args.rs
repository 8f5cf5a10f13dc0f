//! Flags of `huntsman sweep`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::positive_seconds;
use crate::commands::SiteArgs;
use crate::copyvio::{CandidateArgs, EachCheckArgs};

/// Flags of `sweep`: those of a crawl and those of a check. Where both have the same name it is the crawl's.
#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) site: SiteArgs,

    #[command(flatten)]
    pub(crate) candidates: CandidateArgs,

    #[command(flatten)]
    pub(crate) checks: ChecksArgs,
}

/// How the articles of a sweep are checked.
#[derive(Debug, Args)]
#[command(next_help_heading = "Checks")]
pub(crate) struct ChecksArgs {
    /// Prints the totals as JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// File for a copy of the report, in addition to sweep.html in the directory.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,

    /// Minimum number of words of a page that is checked as an article.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) min_words: usize,

    /// File of sources that are not fetched, one per line: the beginning of a URL, `*.host/path`, or a regular
    /// expression after `re:`; `#` begins a comment (repeatable). A file given to --exclude is used in the same way.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) exclude_sources: Vec<PathBuf>,

    /// Time limit for each article in seconds; no check lasts longer than --max-time allows the crawl.
    #[arg(long, value_name = "SECS", default_value_t = 30.0, value_parser = positive_seconds)]
    pub(crate) check_time: f64,

    /// Maximum number of articles that are checked at once.
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) checks_at_once: usize,

    /// Maximum number of domains from which sources are fetched at once, with one request in flight each.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) workers: usize,

    #[command(flatten)]
    pub(crate) each: EachCheckArgs,
}
