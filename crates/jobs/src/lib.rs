//! A daemon of jobs: it runs spiders as child processes, from a queue and at the times of cron lines.
//!
//! [`Daemon`] has a directory with the queue, the history, and a directory for each job: its log, its items, its state, its report. A project is a
//! program that is made with `huntsman::Project`, or spider files; it comes from the [`Config`] only. A job that crashes costs no other one,
//! and not the daemon. A daemon that is killed loses nothing: the jobs go on, and the next daemon finds them.
//!
//! | request, below `/api` | answer |
//! | --- | --- |
//! | `GET /daemonstatus.json` | the state of the daemon and the number of its jobs |
//! | `GET /listprojects.json` | the projects |
//! | `GET /listspiders.json?project=NAME` | the spiders of one |
//! | `GET /listjobs.json?project=NAME&spider=NAME&limit=100` | `pending`, `running` and `finished` jobs with pages, items, exit code and reason |
//! | `GET /status.json?job=ID` | one job, with its arguments, settings and directory |
//! | `GET /listschedules.json` | the lines of cron with their next runs |
//! | `POST /schedule.json {"project", "spider", "args", "settings", "priority"}` | `jobid` |
//! | `POST /cancel.json {"job"}` | `prevstate`; the second time, the job is killed |
//! | `POST /control.json {"job"}` | `url`: a link to the page of a running crawl, which works once |
//! | `GET /logs/ID`, `/items/ID`, `/reports/ID` | files, also in parts (`Range`) |
//!
//! All of it needs the token, as [`huntsman_serve::local`] says; an error is `{"error": message}`. Nothing that is sent names what is executed.
//!
//! ```no_run
//! use huntsman_jobs::{Config, Daemon};
//!
//! # async fn serve() -> Result<(), huntsman_jobs::Error> {
//! let daemon = Daemon::open("/var/lib/jobs".as_ref(), Config::read("jobs.toml".as_ref())?).await?;
//! println!("http://{}/", daemon.address());
//! let (_stop, stopped) = tokio::sync::watch::channel(None);
//! daemon.run(stopped).await;
//! # Ok(())
//! # }
//! ```

// Files are written with `huntsman_files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod api;
mod config;
mod cron;
mod daemon;
mod error;
mod ledger;
mod order;
mod page;
mod process;
mod projects;
mod ranges;
mod result;

use std::path::{Path, PathBuf};

pub use config::{Config, Limits};
pub use cron::{Cron, CronError};
pub use daemon::{CONTACT, Daemon};
pub use error::Error;

/// The log of a job in the directory of a daemon; `None` if this is not the id of a job. It can be read without the daemon.
pub fn log_file(folder: &Path, job: &str) -> Option<PathBuf> {
    result::is_id(job).then(|| result::Places::new(folder.to_owned()).log(job))
}

/// The items of a job, if its spider does not write them elsewhere; as [`log_file`].
pub fn items_file(folder: &Path, job: &str) -> Option<PathBuf> {
    result::is_id(job).then(|| result::Places::new(folder.to_owned()).crawl(job).join(huntsman_output::ITEMS))
}
