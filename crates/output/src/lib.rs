//! The output directory: it locks out other processes, records the state of the run in it, and leaves no half-made
//! directory behind.
//!
//! Looking ([`Plan::of`]) and making ([`create`](plan::Use::create)) are two steps, and all errors of a command are
//! found between them, so a command that never crawled leaves no directory. The files count as a run from
//! [`OutputDir::begin`] on.

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
/// The rules that AvoidDup learnt.
pub(crate) const RULES: &str = "rules.json";
/// Settings that make later crawls treat URLs as equal, as AvoidDup learnt them.
pub(crate) const CANONICAL: &str = "canonical.toml";
/// The report for people; only `demo` writes it.
pub(crate) const HTML_REPORT: &str = "report.html";
/// The results of a sweep: a pair of an article and a source in each line.
pub(crate) const SWEEP: &str = "sweep.jsonl";
/// The results of a sweep for people.
pub(crate) const SWEEP_REPORT: &str = "sweep.html";
/// The directory for the state that later runs need.
const STATE: &str = "state";
/// The name of the status file in the state directory.
pub(crate) const STATUS_NAME: &str = "crawl.json";
const LOCK: &str = "state/lock";
/// Queue, seen set, positions of files and everything else that is needed to continue a crawl.
const JOB: &str = "state/job";
/// Pairs of texts for the report of a sweep.
const PAIRS: &str = "state/pairs";
/// Articles of a sweep that wait to be checked.
const ARTICLES: &str = "state/articles";
/// Directories that a run creates, and that `--fresh` deletes.
const OWN_FOLDERS: [&str; 3] = [JOB, PAIRS, ARTICLES];
/// Files that a run creates, and that `--fresh` deletes. Nothing else in the directory is ever touched.
const OWN_FILES: [&str; 8] = [PAGES, DROPS, REPORT, HTML_REPORT, RULES, CANONICAL, SWEEP, SWEEP_REPORT];

/// Suffix of the temporary file with which a file is replaced; a kill may leave such a file behind.
const UNFINISHED: &str = ".new";

/// The directory of a run from this URL if the user names none.
pub(crate) fn default_dir(seed: &Url, run: Run) -> PathBuf {
    let host = seed.host_str().unwrap_or("site");
    let word = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' };
    let name: String = host.trim_matches(['[', ']', '.']).chars().map(word).take(200).collect();
    PathBuf::from(format!("{name}-{}", run.name()))
}

/// The status of an output directory that no process is using; `None` if it is not an output directory.
///
/// # Errors
/// Another process is using it, or its state is damaged.
pub(crate) fn held(path: &Path) -> Outcome<Option<Status>> {
    if directory::is_locked(path) {
        return Err(Failure::crawl(format!(
            "another huntsman crawls into {}; wait until it ends",
            shown(path)
        )));
    }
    Status::read(path)
}

/// The directory of the job in an output directory.
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
