//! This process: settings that hold for all of it, its use of processor time and memory where the system reports
//! them, and the programs that it starts.

use std::ffi::OsStr;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// The build profile of this program, on which its times depend.
pub const BUILD: &str = if cfg!(debug_assertions) { "debug" } else { "release" };

/// Prepares the process. It must be called before everything else.
///
/// Files that libraries create by themselves become private. A limit on the size of files (`ulimit -f`) makes the
/// write fail that exceeds it, as a full disk does, instead of ending the process.
pub fn prepare() {
    #[cfg(unix)]
    {
        use rustix::fs::Mode;
        use rustix::process::{Signal, umask};
        use tokio::signal::unix::{SignalKind, signal};

        umask(Mode::RWXG | Mode::RWXO);
        // Once tokio has handled a signal, it no longer ends the process, even without a runtime.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        if let Ok(runtime) = runtime {
            let _entered = runtime.enter();
            let _taken = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()));
        }
    }
}

/// Seconds that the process had used before it became this command: a program that is replaced by another one (`cargo
/// run` by the command, `exec` in a shell) passes its used time on.
static BEFORE: OnceLock<f64> = OnceLock::new();

/// Begins to count [`cpu_seconds`].
pub fn begin() {
    if let Some(seconds) = all_cpu_seconds() {
        let _ = BEFORE.set(seconds);
    }
}

/// User plus system seconds of the whole command: threads that ended are included, child processes are not.
pub fn cpu_seconds() -> Option<f64> {
    Some(all_cpu_seconds()? - BEFORE.get().unwrap_or(&0.0))
}

#[cfg(unix)]
fn all_cpu_seconds() -> Option<f64> {
    // The clock counts nanoseconds; `/proc/self/stat` has ticks of 10 ms, which is too coarse for a small crawl.
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

#[cfg(not(unix))]
fn all_cpu_seconds() -> Option<f64> {
    None
}

/// A program to start. It inherits only the environment variables that locate programs and temporary directories: no
/// tokens, no settings.
pub fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    let kept = ["PATH", "TMPDIR", "TEMP", "TMP", "SystemRoot"].into_iter();
    command.env_clear().envs(kept.filter_map(|name| Some((name, std::env::var_os(name)?))));
    command
}

/// CPU time of this thread; if the system does not report it, the time since the first call.
pub fn thread_clock() -> Duration {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
    }
    #[cfg(not(unix))]
    {
        static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        START.get_or_init(std::time::Instant::now).elapsed()
    }
}

/// Largest resident size so far, in bytes; `None` on systems other than Linux.
pub fn peak_rss() -> Option<u64> {
    status_bytes(&std::fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// Current resident size, in bytes; `None` on systems other than Linux.
pub fn resident() -> Option<u64> {
    status_bytes(&std::fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

fn status_bytes(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with(key))?;
    let kilobytes: u64 = line[key.len()..].trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_bytes() {
        assert_eq!(status_bytes("Name:\tx\nVmHWM:\t    2048 kB\n", "VmHWM:"), Some(2 << 20));
        assert_eq!(status_bytes("Name:\tx\n", "VmHWM:"), None);
    }

    #[cfg(unix)]
    #[test]
    fn processor_time_grows_with_work() {
        let before = cpu_seconds().unwrap();
        let mut sum = 0_u64;
        while cpu_seconds().unwrap() - before < 0.002 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(sum > 0);
    }
}
