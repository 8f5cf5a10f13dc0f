//! The recorded changes of a run to the files of a directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::fault::{Effect, Fault};
use super::process::{Exited, run_bounded, traced};
use super::recorder::{CALLS, Recorder};
use super::trace;

/// The number of a file, directory or link, independent of its names.
pub(super) type Node = usize;

/// The recorded directory itself.
pub(super) const ROOT: Node = 0;

/// The content of a node before the run.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Directory,
    File(Vec<u8>),
    Link(PathBuf),
}

/// A name in a directory, and the node that it stands for afterwards.
pub(super) type Naming = (Node, String, Option<Node>);

/// A change of files, or a sync that makes changes durable.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Write {
        node: Node,
        at: usize,
        data: Vec<u8>,
    },
    Resize {
        node: Node,
        length: usize,
    },
    Name(Vec<Naming>),
    /// All changes of the node before operation `since` are durable from here on.
    Sync {
        node: Node,
        since: usize,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) change: Change,
    /// The system call and the file.
    pub(super) what: String,
}

/// The changes of a run to the files of a directory, in order.
#[derive(Debug)]
pub struct Recording {
    pub(super) contents: Vec<Content>,
    pub(super) names: BTreeMap<(Node, String), Node>,
    pub(super) operations: Vec<Operation>,
    /// Number of calls by system call and file.
    pub(super) calls: BTreeMap<(String, PathBuf), usize>,
}

impl Recording {
    /// Runs a command in a directory and records its changes there.
    ///
    /// # Panics
    /// If `strace` is missing or is not allowed to trace, if the command does not end in time, or if it does
    /// something that the model does not support: writing through a mapping, or links with two names.
    pub fn of(command: &Command, root: &Path, limit: Duration) -> (Exited, Self) {
        let root = root.canonicalize().expect("the directory is there");
        let log = tempfile::NamedTempFile::new().expect("a temporary file");
        let mut recorder = Recorder::before(&root);
        let arguments = [
            // Strings are logged whole and in hexadecimal. The log shows that data was read, but not the data.
            "-xx".to_owned(),
            "-s".to_owned(),
            "16777216".to_owned(),
            "-e".to_owned(),
            "raw=read,readv".to_owned(),
            "-e".to_owned(),
            format!("trace={CALLS}"),
            "-o".to_owned(),
            log.path().display().to_string(),
        ];
        let ended = run_bounded(&mut traced(command, arguments), limit);
        let log = fs::read_to_string(log.path()).expect("strace writes its log");
        assert!(!log.is_empty(), "strace does not trace: {}", ended.stderr);
        trace::calls(&log).iter().for_each(|call| recorder.take(call));
        (ended, recorder.done())
    }

    /// Number of operations; a crash may happen before each of them and after the last.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether the run changed nothing.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// The points that matter most for crashes: before and after each sync and each change of a name.
    pub fn turning_points(&self) -> Vec<usize> {
        let turns = self
            .operations
            .iter()
            .enumerate()
            .filter(|(_, operation)| matches!(operation.change, Change::Sync { .. } | Change::Name(_)));
        let mut points: Vec<usize> = turns.flat_map(|(at, _)| [at, at + 1]).collect();
        points.dedup();
        points
    }

    /// A fault with this effect for every recorded call and file.
    pub fn faults(&self, effect: Effect) -> Vec<Fault> {
        let each = self.calls.iter().flat_map(|((call, path), times)| {
            (1..=*times).map(|nth| Fault { call: call.clone(), path: path.clone(), nth, effect })
        });
        each.collect()
    }
}
