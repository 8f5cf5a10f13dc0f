//! Injects faults: system calls that fail, or at which the process is killed, in a run of their own.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::process::{Exited, run_bounded, traced};

/// The effect of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The call fails with this error and does nothing.
    Error(&'static str),
    /// The process is killed before the call.
    Kill,
}

/// A fault at the `nth` call (from 1) of a system call for one file.
///
/// A run may differ a little from the recorded one, so a fault may find no such call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The name of the system call, such as `fsync`.
    pub call: String,
    /// The file, relative to the directory of the run.
    pub path: PathBuf,
    /// The number of the call; each thread counts its own calls.
    pub nth: usize,
    /// What happens at the call.
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

/// Runs a command in the directory `root`, with one fault.
///
/// # Panics
/// If `strace` cannot be started.
pub fn run_with(fault: &Fault, command: &Command, root: &Path, limit: Duration) -> Exited {
    let effect = match fault.effect {
        Effect::Error(error) => format!("error={error}"),
        Effect::Kill => "signal=KILL".to_owned(),
    };
    let call = &fault.call;
    // The command may name the file in any way, and open files are known by their absolute paths.
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
