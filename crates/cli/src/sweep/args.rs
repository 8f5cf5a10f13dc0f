//! Flags of `huntsman sweep`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use huntsman::detect::copyvio::Degree;

use crate::args::{SiteArgs, positive_seconds, share};
use crate::copyvio::{CandidateArgs, CommonArgs, PlanArgs, degree};

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

    /// Words per window of the confidence.
    #[arg(long, value_name = "N", default_value = "5", value_parser = degree)]
    pub(crate) degree: Degree,

    /// From this confidence on a source is a violation, and ends the check of its article.
    #[arg(long, value_name = "C", default_value_t = 0.75, value_parser = share)]
    pub(crate) min_confidence: f64,

    /// Seconds for each article; no check lasts longer than --max-time allows the crawl.
    #[arg(long, value_name = "SECS", default_value_t = 30.0, value_parser = positive_seconds)]
    pub(crate) check_time: f64,

    /// Seconds for one source.
    #[arg(long, value_name = "SECS", default_value_t = 5.0, value_parser = positive_seconds)]
    pub(crate) source_time: f64,

    /// Reads all sources of an article, also after a violation.
    #[arg(long)]
    pub(crate) no_short_circuit: bool,

    /// Folder that keeps results for three days: of articles and sources that did not change, nothing is read but the best source.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cache: Option<PathBuf>,

    /// Articles that are checked at once.
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) checks_at_once: usize,

    /// Domains of sources that are asked at once; each has one request in flight.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) workers: usize,

    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

impl ChecksArgs {
    /// The same as flags of a check.
    pub(crate) fn as_check(&self) -> PlanArgs {
        PlanArgs {
            exclude: self.exclude_sources.clone(),
            degree: self.degree,
            min_confidence: self.min_confidence,
            max_time: self.check_time,
            source_time: self.source_time,
            no_short_circuit: self.no_short_circuit,
            cache: self.cache.clone(),
            common: self.common.clone(),
        }
    }
}
