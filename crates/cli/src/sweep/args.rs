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

    /// File that gets the report, beside sweep.html in the directory.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,

    /// Words that a page must have to be an article.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) min_words: usize,

    /// File of sources that are not read, one a line: the beginning of an address, `*.host/path`, or `re:` and a pattern; `#` begins a
    /// comment (repeatable). A file that is named by --exclude is one, too.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) exclude_sources: Vec<PathBuf>,

    /// Seconds for each article; no check lasts longer than --max-time allows the crawl.
    #[arg(long, value_name = "SECS", default_value_t = 30.0, value_parser = positive_seconds)]
    pub(crate) check_time: f64,

    /// Articles that are checked at once.
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) checks_at_once: usize,

    /// Domains of sources that are asked at once; each has one request in flight.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) workers: usize,

    #[command(flatten)]
    pub(crate) each: EachCheckArgs,
}
