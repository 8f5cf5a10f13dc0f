//! What this process uses: processor time and memory, where the system reports them.

use std::fs::File;
use std::io::{Read, Seek};
use std::sync::OnceLock;
use std::time::Duration;

/// Seconds that the process had used before it became this command: a program that is replaced by another one (`cargo
/// run` by the command, `exec` in a shell) passes its used time on.
static BEFORE: OnceLock<f64> = OnceLock::new();

/// Begins to count [`cpu_seconds`]; without this call they are those of the whole process.
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
    Resident::open()?.bytes()
}

/// Reads the resident size repeatedly without opening a file each time.
#[derive(Debug)]
pub struct Resident(File);

impl Resident {
    /// Opens the system's file about this process; `None` if there is none.
    pub fn open() -> Option<Self> {
        File::open("/proc/self/status").ok().map(Self)
    }

    /// The resident size now.
    pub fn bytes(&mut self) -> Option<u64> {
        let mut status = String::new();
        self.0.rewind().ok()?;
        self.0.read_to_string(&mut status).ok()?;
        status_bytes(&status, "VmRSS:")
    }
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
