//! What a job keeps of a slot: how its host wants to be asked.

use std::time::Duration;

use crate::clock::Timestamp;

/// What the answers of a host taught. Not whether it fails: a restart is a new chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Learnt {
    /// Delay between starts, without that of robots.txt.
    pub(crate) delay: Duration,
    /// Not asked before, by `Retry-After`.
    pub(crate) sleep_until: Timestamp,
}

impl Learnt {
    /// Both in microseconds, little-endian.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        let delay = u64::try_from(self.delay.as_micros()).unwrap_or(u64::MAX);
        bytes[..8].copy_from_slice(&delay.to_le_bytes());
        bytes[8..].copy_from_slice(&self.sleep_until.0.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (delay, rest) = bytes.split_first_chunk()?;
        Some(Self {
            delay: Duration::from_micros(u64::from_le_bytes(*delay)),
            sleep_until: Timestamp(u64::from_le_bytes(rest.try_into().ok()?)),
        })
    }
}
