//! What this process used: processor time and memory, read from `/proc`; nothing where there is none.

use std::fs;

/// Clock ticks a second in `/proc`; fixed at 100 for user space on every Linux architecture that Rust supports.
const TICKS: f64 = 100.0;

/// User plus system seconds of the whole process, threads that ended included.
pub(crate) fn cpu_seconds() -> Option<f64> {
    ticks(&fs::read_to_string("/proc/self/stat").ok()?).map(|ticks| ticks as f64 / TICKS)
}

/// Largest resident size so far, in bytes.
pub(crate) fn peak_rss() -> Option<u64> {
    status_bytes(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// Fields 14 and 15 of `stat`. The command name (field 2) may hold anything, blanks and brackets too, so the count
/// starts behind its last bracket.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
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
    fn a_command_name_with_brackets_does_not_shift_the_fields() {
        let stat = "17 (a) b) (c) R 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 1 0 100 0 0";
        assert_eq!(ticks(stat), Some(300));
        assert_eq!(ticks("nonsense"), None);
    }

    #[test]
    fn memory_is_read_in_bytes() {
        assert_eq!(status_bytes("Name:\tx\nVmHWM:\t    2048 kB\n", "VmHWM:"), Some(2 << 20));
        assert_eq!(status_bytes("Name:\tx\n", "VmHWM:"), None);
    }
}
