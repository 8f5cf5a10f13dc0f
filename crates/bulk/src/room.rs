//! Room on the disk: how much there is, and how much a join needs.

use std::path::Path;

/// A full disk lacks at least so many bytes, such as for results, which are not known beforehand.
pub(crate) const LEAST_MISSING: u64 = 1 << 20;

/// Room on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that are needed at most.
    pub needed: u64,
    /// Bytes that are free; `None` if the system does not tell.
    pub free: Option<u64>,
}

impl Room {
    /// Bytes that may be missing.
    pub fn missing(&self) -> u64 {
        self.free.map_or(0, |free| self.needed.saturating_sub(free))
    }
}

/// Bytes that this user can still write on the disk of a path; `None` where the system does not tell.
#[cfg_attr(not(unix), expect(unused_variables, reason = "other systems are not asked"))]
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        rustix::fs::statvfs(path).ok().map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize))
    }
    #[cfg(not(unix))]
    None
}

/// Bytes of the files in a folder and in those in it.
pub(crate) fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_in(&entry.path()),
        metadata => metadata.map_or(0, |metadata| metadata.len()),
    });
    bytes.sum()
}
