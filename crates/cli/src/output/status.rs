//! The status file of an output directory: which run is in it and how far it came.
//!
//! Every transition is one atomic replacement of this file, so a kill leaves the state before it or the state after it.

use std::io;
use std::path::Path;

use huntsman::Backend;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{SWEEP, shown};
use crate::exit::{Failure, Outcome};

/// Where it is in the directory.
pub(super) const STATUS: &str = "state/crawl.json";

/// Version of the file that this program writes; it reads this one and all before it.
const FORMAT: u32 = 2;
/// The first version that tells the kind of run, and whose sweeps keep the position of their file in the job.
const TELLS_RUN: u32 = 2;

/// What is in an output directory, in `state/crawl.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Status {
    format: u32,
    /// Version of the program that wrote it.
    version: String,
    pub(crate) state: State,
    /// The kind of run; versions before 2 did not tell it.
    run: Option<Run>,
    /// Where the queue lives.
    pub(super) store: String,
    /// The first start URL.
    pub(crate) seed_url: String,
    pub(crate) started: String,
    pub(crate) finish_reason: Option<String>,
    pub(crate) pages: u64,
}

/// How far a run came, and so what a later command may do with its directory.
///
/// | state | the same command | another kind of run | `--fresh` |
/// |---|---|---|---|
/// | no status file, no file of ours | makes it | makes it | makes it |
/// | `making`, `clearing`, `failed` | clears it and starts | clears it and starts | clears it and starts |
/// | `running`, `interrupted` | goes on | is refused | clears it and starts |
/// | `finished` | says so | is refused | clears it and starts |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// Its files are being made: nothing in them counts yet.
    Making,
    /// The files of an earlier run are being deleted: nothing that is left of them counts.
    Clearing,
    /// The run goes on, or was killed.
    Running,
    /// It was stopped before its end.
    Interrupted,
    /// It ended by itself or by a limit.
    Finished,
    /// It never delivered a page: the next run starts anew.
    Failed,
}

/// What writes into an output directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Run {
    /// `huntsman crawl`, and what measures it.
    Crawl,
    /// `huntsman sweep`.
    Sweep,
    /// `huntsman demo`.
    Demo,
}

impl Run {
    /// The word for it, which is also its command.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Crawl => "crawl",
            Self::Sweep => "sweep",
            Self::Demo => "demo",
        }
    }
}

impl Status {
    /// That of a run that is about to begin.
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

    /// That of a directory; none if there is no status file.
    ///
    /// # Errors
    /// It cannot be read, is damaged, or was written by a newer version.
    pub(super) fn read(directory: &Path) -> Outcome<Option<Self>> {
        let path = directory.join(STATUS);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::crawl(format!("reading {}: {error}", shown(&path)))),
        };
        let mut status: Self = serde_json::from_slice(&bytes).map_err(|error| {
            Failure::crawl(format!(
                "the state in {} is damaged ({error}); `huntsman verify` tells what is whole, --fresh deletes all and starts anew",
                shown(&path)
            ))
        })?;
        if status.format > FORMAT {
            return Err(Failure::crawl(format!(
                "the state in {} was written by a newer version, {}; use that one, or --fresh, which deletes all and starts anew",
                shown(&path),
                crate::render::escape(&status.version)
            )));
        }
        let looks_like = if directory.join(SWEEP).exists() { Run::Sweep } else { Run::Crawl };
        status.run.get_or_insert(looks_like);
        Ok(Some(status))
    }

    /// Writes it; the file is as it was or has all of this.
    pub(super) fn write(&self, directory: &Path) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        let path = directory.join(STATUS);
        huntsman::files::write(&path, text)
            .map_err(|error| io::Error::new(error.kind(), format!("writing {}: {error}", shown(&path))))
    }

    /// The kind of run.
    pub(crate) fn run(&self) -> Run {
        self.run.unwrap_or(Run::Crawl)
    }

    /// Whether all that the run needs to go on is kept.
    pub(super) fn can_go_on(&self) -> bool {
        self.format >= TELLS_RUN || self.run() != Run::Sweep
    }

    /// Whether its queue is gone with its process.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.store == Backend::Memory.name()
    }
}
