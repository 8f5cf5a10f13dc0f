//! The output directory: who may write into it, what state the run in it is in, and leaving nothing half-made behind.
//!
//! Looking ([`Plan::of`]) and making ([`create`](plan::Use::create)) are two steps: everything that can be wrong with a command is
//! found between them, so a command that never crawled leaves no directory. What is made counts from [`OutputDir::begin`] on.

mod directory;
mod found;
mod plan;
mod status;

use std::path::{Path, PathBuf};

use url::Url;

use crate::exit::{Failure, Outcome};
use crate::render::escape;

pub(crate) use directory::OutputDir;
pub(crate) use found::{Found, Hold};
pub(crate) use plan::Plan;
pub(crate) use status::{Run, State, Status};

/// Records of pages.
pub(crate) const PAGES: &str = "pages.jsonl";
/// Records of requests that ended without a page.
pub(crate) const DROPS: &str = "drops.jsonl";
/// The report of the crawl.
pub(crate) const REPORT: &str = "report.json";
/// What AvoidDup learnt.
pub(crate) const RULES: &str = "rules.json";
/// Settings that take URLs for one, as AvoidDup learnt them.
pub(crate) const CANONICAL: &str = "canonical.toml";
/// The report for people, of `demo`.
pub(crate) const HTML_REPORT: &str = "report.html";
/// What a sweep found: an article with a source a line.
pub(crate) const SWEEP: &str = "sweep.jsonl";
/// The same for people.
pub(crate) const SWEEP_REPORT: &str = "sweep.html";
/// What later runs need to know.
const STATE: &str = "state";
/// The name of the status file in that.
pub(crate) const STATUS_NAME: &str = "crawl.json";
const LOCK: &str = "state/lock";
/// Queue, seen set, positions of files and all else that a crawl goes on with.
const JOB: &str = "state/job";
/// Pairs of texts for the report of a sweep.
const PAIRS: &str = "state/pairs";
/// Articles of a sweep that wait for their check.
const ARTICLES: &str = "state/articles";
/// Folders that a run makes, and that `--fresh` deletes.
const OWN_FOLDERS: [&str; 3] = [JOB, PAIRS, ARTICLES];
/// Files that a run makes, and that `--fresh` deletes. Nothing else in the directory is ever touched.
const OWN_FILES: [&str; 8] = [PAGES, DROPS, REPORT, HTML_REPORT, RULES, CANONICAL, SWEEP, SWEEP_REPORT];

/// A file that is being replaced has its new content in one with this behind its name; a kill leaves it there.
const UNFINISHED: &str = ".new";

/// The directory that a run from this URL gets when none is named.
pub(crate) fn default_dir(seed: &Url, run: Run) -> PathBuf {
    let host = seed.host_str().unwrap_or("site");
    let word = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' };
    let name: String = host.trim_matches(['[', ']', '.']).chars().map(word).take(200).collect();
    PathBuf::from(format!("{name}-{}", run.name()))
}

/// What is in an output directory that nobody works in; none if it is no such directory.
///
/// # Errors
/// Another process works in it, or its state is damaged.
pub(crate) fn held(path: &Path) -> Outcome<Option<Status>> {
    if directory::is_locked(path) {
        return Err(Failure::crawl(format!(
            "another huntsman crawls into {}; wait until it ends",
            shown(path)
        )));
    }
    Status::read(path)
}

/// Where the job of the run in an output directory is.
pub(crate) fn job_of(path: &Path) -> PathBuf {
    path.join(JOB)
}

fn shown(path: &Path) -> String {
    escape(&path.to_string_lossy()).into_owned()
}

fn in_use(path: &Path) -> Failure {
    Failure::crawl(format!(
        "another huntsman crawls into {}; wait for it, or name another directory with --out",
        shown(path)
    ))
}

#[cfg(test)]
mod tests;
