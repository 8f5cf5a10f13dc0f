//! The directory that a crawl writes: its state, its records, its reports.
//!
//! A run has a directory of its own. [`Plan::of`] says what may be done with what is there, and [`Use::create`] makes and locks the
//! directory; the two are apart so that a program can find all its errors between them and leaves no half-made directory behind. From
//! [`OutputDir::begin`] on the files count, and a run that is killed can be continued; [`OutputDir::finish`] writes the report.
//! [`OutputDir::attach`] makes a crawl write its records. [`html_report`] is a report for people, and [`verify`] checks directories.
//!
//! The crate is not a sink for records of one's own (those are in `huntsman_middleware::sinks`), prints nothing, and parses no flags.
//!
//! ```
//! use huntsman_crawler::{Backend, Timestamp};
//! use huntsman_output::{EarlierRun, OutputDir, Plan, Run, State};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("example.org-crawl");
//! let seed = "https://example.org/".parse()?;
//! if let Plan::Use(plan) = Plan::of(&path, EarlierRun::Continue, Run::Crawl, Backend::Memory)? {
//!     let mut directory = plan.create(&seed, Timestamp::wall().to_rfc3339())?;
//!     directory.begin()?;
//!     // Here is the crawl.
//!     directory.finish(State::Finished, "finished", 0, b"{}\n")?;
//! }
//! assert!(matches!(Plan::of(&path, EarlierRun::Continue, Run::Crawl, Backend::Memory)?, Plan::Finished(_)));
//! # Ok(())
//! # }
//! ```

// Files are written with `huntsman_files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod avoid_dup;
mod collect;
mod directory;
mod error;
mod found;
mod html_report;
pub mod markup;
mod plan;
pub mod process;
mod records;
pub mod render;
mod report;
mod status;
pub mod verify;

use std::path::{Path, PathBuf};

use url::Url;

pub use avoid_dup::{AvoidDupReport, LearntRules, ShownRules};
pub use collect::{Collected, collect};
pub use directory::OutputDir;
pub use error::Error;
pub use found::{Found, Hold};
pub use html_report::html_report;
pub use plan::{EarlierRun, Plan, Use};
pub use report::{
    CopyvioReport, CoverageReport, FailedSeed, FieldCoverage, NearDupLanguage, NearDupReport, Report,
};
pub use status::{Run, State, Status};

/// Records of pages.
pub const PAGES: &str = "pages.jsonl";
/// Records of requests that ended without a page.
pub const DROPS: &str = "drops.jsonl";
/// Items of a spider file.
pub const ITEMS: &str = "items.jsonl";
/// The report of the crawl.
pub const REPORT: &str = "report.json";
/// The rules that AvoidDup learnt.
pub const RULES: &str = "rules.json";
/// Settings that make later crawls treat URLs as equal, as AvoidDup learnt them.
pub const CANONICAL: &str = "canonical.toml";
/// The report for people: `demo` and `crawl --html` write it.
pub const HTML_REPORT: &str = "report.html";
/// The results of a sweep: a pair of an article and a source in each line.
pub const SWEEP: &str = "sweep.jsonl";
/// The results of a sweep for people.
pub const SWEEP_REPORT: &str = "sweep.html";
/// The issues of an audit.
pub const ISSUES: &str = "issues.jsonl";
/// What an audit kept of each answer.
pub const AUDITED: &str = "state/audit.segment";
/// Files that an audit needs while it is judged.
pub const JUDGING: &str = "state/judging";
/// The directory of the tables of an audit.
pub const TABLES: &str = "csv";
/// The directory of the data of the report of a large audit.
pub const REPORT_DATA: &str = "report";
/// Files of an audit for other programs.
pub const AUDIT_EXPORTS: [&str; 10] = [
    "audit.sarif",
    "graph.dot",
    "graph.graphml",
    "junit.xml",
    "overview.html",
    "redirects.csv",
    "redirects.htaccess",
    "redirects.nginx.conf",
    "sitemap.xml",
    "summary.md",
];
/// Address and token of the control, while the crawl runs with one.
pub const CONTROL: &str = "control.json";
/// The directory for the state that later runs need.
const STATE: &str = "state";
/// The name of the status file in the state directory.
pub const STATUS_NAME: &str = "crawl.json";
const LOCK: &str = "state/lock";
/// Queue, seen set, positions of files and everything else that is needed to continue a crawl.
const JOB: &str = "state/job";
/// Pairs of texts for the report of a sweep.
const PAIRS: &str = "state/pairs";
/// Articles of a sweep that wait to be checked.
const ARTICLES: &str = "state/articles";
/// Directories that a run creates, and that `--fresh` deletes.
const OWN_FOLDERS: [&str; 6] = [JOB, PAIRS, ARTICLES, TABLES, REPORT_DATA, JUDGING];
/// Files that a run creates, and that `--fresh` deletes. Nothing else in the directory is ever touched.
const OWN_FILES: [&str; 12] = [
    PAGES,
    DROPS,
    ITEMS,
    REPORT,
    HTML_REPORT,
    RULES,
    CANONICAL,
    SWEEP,
    SWEEP_REPORT,
    CONTROL,
    ISSUES,
    AUDITED,
];

/// Suffix of the temporary file with which a file is replaced; a kill may leave such a file behind.
const UNFINISHED: &str = ".new";

/// The directory of a run from this URL if the user names none, in the working directory: `example.org-crawl`.
pub fn default_dir(seed: &Url, run: Run) -> PathBuf {
    let host = seed.host_str().unwrap_or("site");
    let word = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' };
    let name: String = host.trim_matches(['[', ']', '.']).chars().map(word).take(200).collect();
    PathBuf::from(format!("{name}-{}", run.name()))
}

/// The status of an output directory that no process is using; `None` if it is not an output directory.
///
/// # Errors
/// Another process is using it, or its state is damaged.
pub fn held(path: &Path) -> Result<Option<Status>, Error> {
    if directory::is_locked(path) {
        return Err(Error::InUse { path: path.to_owned() });
    }
    Status::read(path)
}

/// The directory of the job in an output directory.
pub fn job_of(path: &Path) -> PathBuf {
    path.join(JOB)
}

#[cfg(test)]
mod tests;
