//! Runs commands with a time limit, directly or under `strace`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How a command ended.
#[derive(Debug)]
pub struct Exited {
    /// The exit code; `None` if a signal ended the command.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether it was killed at the time limit.
    pub hung: bool,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// Runs a command until it ends or reaches the time limit; then it is killed, with all processes that it started.
///
/// # Panics
/// If the command cannot be started.
pub fn run_bounded(command: &mut Command, limit: Duration) -> Exited {
    let [mut stdout, mut stderr] = [(); 2].map(|()| tempfile::tempfile().expect("a temporary file"));
    let shared = |file: &File| Stdio::from(file.try_clone().expect("a handle can be cloned"));
    command.stdin(Stdio::null()).stdout(shared(&stdout)).stderr(shared(&stderr)).process_group(0);
    let mut child = command.spawn().unwrap_or_else(|cause| panic!("{command:?} does not start: {cause}"));
    let deadline = Instant::now() + limit;
    let (status, hung) = loop {
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            break (status, false);
        }
        if Instant::now() > deadline {
            kill_group(&child);
            break (child.wait().expect("the child can be waited for"), true);
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    Exited {
        code: status.code(),
        signal: status.signal(),
        hung,
        stdout: content(&mut stdout),
        stderr: content(&mut stderr),
    }
}

fn content(file: &mut File) -> String {
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("a temporary file can be read");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Kills a child that leads a process group, and the whole group: if only the tracer were killed, the traced process
/// would go on.
fn kill_group(child: &Child) {
    let killed = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
    assert!(killed.is_ok_and(|status| status.success()), "the group of {} can be killed", child.id());
}

/// The command under `strace`, which follows all its threads and processes and prints nothing itself.
pub(super) fn traced<A: Into<OsString>>(
    command: &Command,
    arguments: impl IntoIterator<Item = A>,
) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-f", "--seccomp-bpf", "--quiet=all"]).args(arguments.into_iter().map(Into::into));
    strace.arg("--").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => strace.env(name, value),
            None => strace.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        strace.current_dir(directory);
    }
    strace
}
