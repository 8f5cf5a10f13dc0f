//! Flags that say how an article is checked.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
use huntsman::detect::copyvio::{CheckOptions, Degree, Exclusions};
use huntsman::sweep::{CheckCache, CheckPlan};

use super::args::degree;
use super::common::CommonArgs;
use crate::args::{positive_seconds, share};
use crate::exit::{Failure, Outcome};
use crate::render::{escape, warn};

/// How an article is checked, by a command that checks it alone.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// File of sources that are not fetched, one per line: the beginning of a URL, `*.host/path`, or a regular
    /// expression after `re:`; `#` begins a comment (repeatable).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) exclude: Vec<PathBuf>,

    /// Time limit for the whole check in seconds.
    #[arg(long, value_name = "SECS", default_value_t = 30.0, value_parser = positive_seconds)]
    pub(crate) max_time: f64,

    #[command(flatten)]
    pub(crate) each: EachCheckArgs,
}

impl PlanArgs {
    /// As [`EachCheckArgs::plan`].
    pub(crate) fn plan(&self, max_queries: usize) -> Outcome<CheckPlan> {
        self.each.plan(&self.exclude, self.max_time, max_queries)
    }
}

/// How each article is checked; the same for all commands that check articles.
#[derive(Debug, Args)]
pub(crate) struct EachCheckArgs {
    /// Number of words per window of the confidence.
    #[arg(long, value_name = "N", default_value = "5", value_parser = degree)]
    pub(crate) degree: Degree,

    /// Minimum confidence at which a source is a violation, which ends the check.
    #[arg(long, value_name = "C", default_value_t = 0.75, value_parser = share)]
    pub(crate) min_confidence: f64,

    /// Time limit for one source in seconds.
    #[arg(long, value_name = "SECS", default_value_t = 5.0, value_parser = positive_seconds)]
    pub(crate) source_time: f64,

    /// Fetches all sources, even after a violation was found.
    #[arg(long)]
    pub(crate) no_short_circuit: bool,

    /// Directory that keeps results for three days, without texts: if an article and its sources have not changed,
    /// only the best source is fetched again.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cache: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

impl EachCheckArgs {
    /// The plan of a check, with files of excluded sources and the time limit of a check in seconds. Rules that
    /// cannot be used are reported on stderr.
    ///
    /// # Errors
    /// A file of rules cannot be read, or the directory of results cannot be used.
    pub(crate) fn plan(&self, exclude: &[PathBuf], max_time: f64, max_queries: usize) -> Outcome<CheckPlan> {
        Ok(CheckPlan {
            options: CheckOptions {
                degree: self.degree,
                min_confidence: self.min_confidence,
                short_circuit: !self.no_short_circuit,
                ..CheckOptions::default()
            },
            max_time: Duration::from_secs_f64(max_time),
            source_time: Duration::from_secs_f64(self.source_time),
            max_queries,
            exclusions: Some(Arc::new(exclusions(exclude)?)),
            cache: self.cache()?,
            boilerplate: self.common.boilerplate()?,
            ..CheckPlan::default()
        })
    }

    fn cache(&self) -> Outcome<Option<Arc<CheckCache>>> {
        let Some(path) = &self.cache else { return Ok(None) };
        let cache = CheckCache::open(path)
            .map_err(|error| Failure::usage(format!("--cache: {}", escape(&error.to_string()))))?;
        Ok(Some(Arc::new(cache)))
    }
}

fn exclusions(files: &[PathBuf]) -> Outcome<Exclusions> {
    let mut rules = Vec::new();
    for path in files {
        let text = fs::read_to_string(path).map_err(|error| {
            Failure::usage(format!("sources that are not read: {}: {error}", escape(&path.to_string_lossy())))
        })?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        rules.extend(lines.map(str::to_owned));
    }
    let (exclusions, invalid) = Exclusions::new(&rules);
    for rule in invalid {
        warn(&format!("sources that are not read: {}", escape(&rule.to_string())));
    }
    Ok(exclusions)
}
