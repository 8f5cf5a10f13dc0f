//! What a job has left in its directory: how its crawl ended, and its numbers.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use huntsman_output::{REPORT, State};
use serde::Deserialize;

/// Most bytes of a report that are read.
const MAX_REPORT: u64 = 64 << 20;

/// Files of a daemon.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    folder: PathBuf,
}

impl Places {
    /// Those of the daemon with this directory, whose path is absolute.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The queue and the history.
    pub(crate) fn ledger(&self) -> PathBuf {
        self.folder.join("jobs.json")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.folder.join("lock")
    }

    pub(crate) fn jobs(&self) -> PathBuf {
        self.folder.join("jobs")
    }

    /// The directory of a job. The id is one of the ledger, or has the form of one.
    pub(crate) fn job(&self, id: &str) -> PathBuf {
        self.jobs().join(id)
    }

    pub(crate) fn log(&self, id: &str) -> PathBuf {
        self.job(id).join("log")
    }

    /// The directory of its crawl.
    pub(crate) fn crawl(&self, id: &str) -> PathBuf {
        self.job(id).join("crawl")
    }
}

/// Whether a name has the form of an id, so that it leads to no other place.
pub(crate) fn is_id(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let time = |text: &str| text.split_once('T').is_some_and(|(day, time)| digits(day) && digits(time));
    name.len() < 60 && name.split_once('-').is_some_and(|(at, number)| time(at) && digits(number))
}

/// What a directory of a crawl says.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) state: Option<State>,
    pub(crate) reason: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) pages: Option<u64>,
    pub(crate) items: Option<u64>,
}

#[derive(Deserialize)]
struct Numbers {
    finish_reason: String,
    error: Option<String>,
    pages: u64,
    #[serde(default)]
    stats: Stats,
}

/// The stats that are of interest.
#[derive(Default, Deserialize)]
struct Stats {
    /// Items of a spider file, whose crawl counts its pages as items as well.
    #[serde(rename = "items/written")]
    written: Option<u64>,
    #[serde(rename = "item_scraped_count")]
    scraped: Option<u64>,
}

impl Found {
    /// Looks into the directory of a crawl that does not run. One that cannot be understood is one that says nothing.
    pub(crate) fn of(crawl: &Path) -> Self {
        let Ok(Some(status)) = huntsman_output::held(crawl) else { return Self::default() };
        let mut found = Self { state: Some(status.state), ..Self::default() };
        // While a crawl runs, the report is that of its last stop.
        if matches!(status.state, State::Finished | State::Interrupted | State::Failed)
            && let Ok(file) = File::open(crawl.join(REPORT))
            && let Ok(numbers) = serde_json::from_reader::<_, Numbers>(BufReader::new(file.take(MAX_REPORT)))
        {
            found.reason = Some(numbers.finish_reason);
            found.error = numbers.error;
            found.pages = Some(numbers.pages);
            found.items = numbers.stats.written.or(numbers.stats.scraped);
        }
        found
    }

    /// Whether the crawl has ended, or was stopped, by itself: its process did not just die.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, Some(State::Finished | State::Interrupted | State::Failed))
    }

    /// Whether the crawl was stopped by hand and can go on.
    pub(crate) fn was_stopped(&self) -> bool {
        self.state == Some(State::Interrupted) && self.error.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_lead_to_files() {
        assert!(is_id("20261123T220153-17"));
        for wrong in
            ["", "..", "../..", "20261123T220153-17/..", "20261123T220153-", "T-1", "20261123-1", "a"]
        {
            assert!(!is_id(wrong), "{wrong}");
        }
    }
}
