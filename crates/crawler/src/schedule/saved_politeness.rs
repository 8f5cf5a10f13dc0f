//! The politeness of a slot that a job or a shared frontier stores.

use std::time::Duration;

use crate::clock::Timestamp;

/// What was learnt from the responses of a host. Failures are not stored: a restart is a new chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedPoliteness {
    /// Delay between starts, without the delay of robots.txt.
    pub delay: Duration,
    /// No request before this time, because of `Retry-After`.
    pub sleep_until: Timestamp,
}

impl SavedPoliteness {
    /// Both numbers in microseconds, little-endian.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        let delay = u64::try_from(self.delay.as_micros()).unwrap_or(u64::MAX);
        bytes[..8].copy_from_slice(&delay.to_le_bytes());
        bytes[8..].copy_from_slice(&self.sleep_until.0.to_le_bytes());
        bytes
    }

    /// Reads the output of [`to_bytes`](Self::to_bytes); `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (delay, rest) = bytes.split_first_chunk()?;
        Some(Self {
            delay: Duration::from_micros(u64::from_le_bytes(*delay)),
            sleep_until: Timestamp(u64::from_le_bytes(rest.try_into().ok()?)),
        })
    }
}
