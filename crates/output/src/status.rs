//! The status file of an output directory: which run is in it and how far it came.
//!
//! Every transition is one atomic replacement of this file, so a kill leaves the state before it or the state after it.

use std::io;
use std::path::Path;

use huntsman_crawler::Backend;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::SWEEP;
use crate::error::{Error, Result};

/// The path of the status file in the output directory.
pub(super) const STATUS: &str = "state/crawl.json";

/// Version of the file that this program writes; it reads this and all earlier versions.
const FORMAT: u32 = 2;
/// The first version that records the kind of run, and whose sweeps keep the position of their file in the job.
const TELLS_RUN: u32 = 2;

/// The status of the run in an output directory, stored in `state/crawl.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    format: u32,
    /// Version of the program that wrote the file.
    version: String,
    /// How far the run came.
    pub state: State,
    /// The kind of run; versions before 2 did not record it.
    run: Option<Run>,
    /// The store of the queue.
    pub(super) store: String,
    /// The first start URL.
    pub seed_url: String,
    /// When the run started, in RFC 3339.
    pub started: String,
    /// Why the run ended; `None` until it did.
    pub finish_reason: Option<String>,
    /// Number of pages that the run delivered; 0 until it ended.
    pub pages: u64,
}

/// How far a run came, which decides what a later command may do with its directory.
///
/// | state | the same command | another kind of run | `--fresh` |
/// |---|---|---|---|
/// | no status file, no file of ours | makes it | makes it | makes it |
/// | `making`, `clearing`, `failed` | clears it and starts | clears it and starts | clears it and starts |
/// | `running`, `interrupted` | goes on | is refused | clears it and starts |
/// | `finished` | says so | is refused | clears it and starts |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its files are being created: their contents do not count yet.
    Making,
    /// The files of an earlier run are being deleted: the remaining ones do not count.
    Clearing,
    /// The run is going on, or was killed.
    Running,
    /// It was stopped before its end.
    Interrupted,
    /// It ended by itself or by a limit.
    Finished,
    /// It never delivered a page: the next run starts from the beginning.
    Failed,
}

/// The kind of run that writes into an output directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Run {
    /// `huntsman crawl`, and its benchmark.
    Crawl,
    /// `huntsman sweep`.
    Sweep,
    /// `huntsman demo`.
    Demo,
    /// `huntsman audit`.
    Audit,
}

impl Run {
    /// The name of the kind, which is also its command.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crawl => "crawl",
            Self::Sweep => "sweep",
            Self::Demo => "demo",
            Self::Audit => "audit",
        }
    }
}

impl Status {
    /// The status of a run that is about to begin.
    pub(super) fn new(run: Run, seed: &Url, started: String, store: Backend) -> Self {
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            state: State::Making,
            run: Some(run),
            store: store.name().to_owned(),
            seed_url: seed.to_string(),
            started,
            finish_reason: None,
            pages: 0,
        }
    }

    /// Reads the status of a directory; `None` if there is no status file.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or was written by a newer version.
    pub(super) fn read(directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(STATUS);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::Unreadable { path, source }),
        };
        let mut status: Self = match serde_json::from_slice(&bytes) {
            Ok(status) => status,
            Err(source) => return Err(Error::Damaged { path, source }),
        };
        if status.format > FORMAT {
            return Err(Error::NewerVersion { path, version: status.version });
        }
        let looks_like = if directory.join(SWEEP).exists() { Run::Sweep } else { Run::Crawl };
        status.run.get_or_insert(looks_like);
        Ok(Some(status))
    }

    /// Writes the file atomically: it has its old content or the new one.
    pub(super) fn write(&self, directory: &Path) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        let path = directory.join(STATUS);
        huntsman_files::write(&path, text)
            .map_err(|error| io::Error::new(error.kind(), format!("writing {}: {error}", path.display())))
    }

    /// The kind of run.
    pub fn run(&self) -> Run {
        self.run.unwrap_or(Run::Crawl)
    }

    /// Whether everything that is needed to continue the run was kept.
    pub(super) fn can_go_on(&self) -> bool {
        self.format >= TELLS_RUN || self.run() != Run::Sweep
    }

    /// Whether its queue was lost with its process.
    pub fn is_in_memory(&self) -> bool {
        self.store == Backend::Memory.name()
    }
}
