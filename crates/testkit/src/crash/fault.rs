//! Calls that fail, or kill the process, in a run of their own.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::process::{Ended, run_bounded, traced};

/// What happens at a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It fails with this error and does nothing.
    Error(&'static str),
    /// The process is killed before it.
    Kill,
}

/// The `nth` call (from 1) of a name for one file, and what happens there.
///
/// A run differs a little from the one that was recorded, so that a fault may meet no call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The system call, as `fsync`.
    pub call: String,
    /// The file, below the directory of the run.
    pub path: PathBuf,
    /// Which of these calls; each thread counts its own.
    pub nth: usize,
    /// What happens.
    pub effect: Effect,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, path, nth, effect } = self;
        let path = path.display();
        match effect {
            Effect::Error(error) => write!(f, "{error} at {call} {nth} of {path}"),
            Effect::Kill => write!(f, "killed at {call} {nth} of {path}"),
        }
    }
}

/// Runs a command in its directory `root`, with one fault.
///
/// # Panics
/// If `strace` cannot be started.
pub fn run_with(fault: &Fault, command: &Command, root: &Path, limit: Duration) -> Ended {
    let effect = match fault.effect {
        Effect::Error(error) => format!("error={error}"),
        Effect::Kill => "signal=KILL".to_owned(),
    };
    let call = &fault.call;
    // The command may name the file as it likes, and open files are known by their whole path.
    let (relative, whole) = (fault.path.clone(), root.join(&fault.path));
    let arguments = [
        "-o".into(),
        "/dev/null".into(),
        "-P".into(),
        relative.into_os_string(),
        "-P".into(),
        whole.into_os_string(),
        "-e".into(),
        format!("trace={call}").into(),
        "-e".into(),
        format!("inject={call}:{effect}:when={}", fault.nth).into(),
    ];
    run_bounded(&mut traced::<std::ffi::OsString>(command, arguments), limit)
}
