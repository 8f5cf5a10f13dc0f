//! The process of a job: how it is recognised after the daemon was away, asked to end, and killed.

use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Time between two looks at a process that is not a child of this one.
const LOOK: Duration = Duration::from_millis(250);

/// How the process of a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It was a child of this daemon.
    Exited { code: Option<i32>, signal: Option<i32> },
    /// It ended when no daemon, or another one, was its parent.
    Unseen,
    /// It could not be started, for this reason.
    NotStarted(String),
}

impl From<ExitStatus> for Ending {
    fn from(status: ExitStatus) -> Self {
        #[cfg(unix)]
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        #[cfg(not(unix))]
        let signal = None;
        Self::Exited { code: status.code(), signal }
    }
}

/// A process. Numbers of processes are used again, so the time of its start is part of it, and the boot of the system in which it started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessId {
    pub(crate) pid: u32,
    /// Ticks from the boot to its start; 0 where the system does not tell.
    began: u64,
    boot: String,
}

impl ProcessId {
    /// The process that has this number now.
    pub(crate) fn of(pid: u32) -> Self {
        Self { pid, began: began(pid).unwrap_or(0), boot: boot() }
    }

    /// Whether the process still runs. Where the system does not tell, it is taken for ended; then its directory is locked, so that no second
    /// one is started beside it.
    pub(crate) fn is_alive(&self) -> bool {
        self.began != 0 && self.boot == boot() && began(self.pid) == Some(self.began)
    }

    /// Waits for the end of a process that is not a child of this one.
    pub(crate) async fn ended(self) {
        while self.is_alive() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Asks the process to end: a crawl ends gently at the first time, and at once at the second.
    pub(crate) fn ask(&self) -> io::Result<()> {
        self.signal(false)
    }

    /// Kills the process, with those that it has started.
    pub(crate) fn kill(&self) -> io::Result<()> {
        self.signal(true)
    }

    #[cfg(unix)]
    fn signal(&self, kills: bool) -> io::Result<()> {
        use rustix::process::{Pid, Signal, kill_process, kill_process_group};
        // One that has ended needs no signal, and its number may be that of another process.
        if self.began != 0 && !self.is_alive() {
            return Ok(());
        }
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
        // Each job has a group of its own.
        let sent =
            if kills { kill_process_group(pid, Signal::KILL) } else { kill_process(pid, Signal::TERM) };
        match sent {
            Err(rustix::io::Errno::SRCH) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(unix))]
    fn signal(&self, _kills: bool) -> io::Result<()> {
        Err(io::Error::other("this system has no signals; stop the crawl with `huntsman control`"))
    }
}

/// The process that has this path among its arguments: a daemon that was killed between the start of a job and the note of it finds the
/// job by its directory.
pub(crate) fn with_argument(path: &Path) -> Option<ProcessId> {
    let wanted = path.as_os_str().as_encoded_bytes();
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(words) = std::fs::read(entry.path().join("cmdline")) else { continue };
        if words.split(|byte| *byte == 0).any(|word| word == wanted) {
            return Some(ProcessId::of(pid)).filter(ProcessId::is_alive);
        }
    }
    None
}

/// The start of a process in ticks since the boot; `None` if there is no such process, or only its exit code is left.
fn began(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program is in parentheses and may have any characters.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    fields.get(19)?.parse().ok()
}

fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_known_by_its_start_and_found_by_an_argument() {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "read line"]).arg(dir.path());
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let id = ProcessId::of(child.id());
        // The arguments are those of the new program from a moment after the start on.
        let found = std::iter::repeat_with(|| with_argument(dir.path())).take(10_000).find_map(|found| found);
        assert_eq!(found, Some(id.clone()));
        assert!(id.is_alive());
        assert!(!ProcessId { began: id.began + 1, ..id.clone() }.is_alive(), "another one with this number");
        assert!(!ProcessId { boot: "before".to_owned(), ..id.clone() }.is_alive());
        assert!(with_argument(&dir.path().join("other")).is_none());
        id.ask().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(Ending::from(status), Ending::Exited { code: None, signal: Some(15) });
        assert!(!id.is_alive());
        id.kill().unwrap();
    }
}
