//! The politeness of a slot that a job or a shared frontier stores.

use std::time::Duration;

use crate::clock::Timestamp;

/// What was learnt from the responses of a host. Failures are not stored in a job: a restart is a new chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SavedPoliteness {
    /// Delay between starts, without the delay of robots.txt.
    pub delay: Duration,
    /// No request before this time, because of `Retry-After`; in a shared queue also because the host failed.
    pub sleep_until: Timestamp,
    /// The Crawl-delay of robots.txt, if there is one. Only stored in a shared queue: a job has the robots.txt itself.
    pub crawl_delay: Duration,
    /// When a request was last sent, as the process told that gave the host away; 0 if it is not known.
    pub last_start: Timestamp,
}

impl SavedPoliteness {
    /// Length of the bytes that earlier versions wrote: the first two numbers.
    const SHORT: usize = 16;

    /// All numbers in microseconds, little-endian; the last two are left out if both are zero.
    pub fn to_bytes(self) -> Vec<u8> {
        let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let numbers = [micros(self.delay), self.sleep_until.0, micros(self.crawl_delay), self.last_start.0];
        let count = if numbers[2..] == [0, 0] { 2 } else { 4 };
        numbers[..count].iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    /// Reads the output of [`to_bytes`](Self::to_bytes); `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != Self::SHORT && bytes.len() != 2 * Self::SHORT {
            return None;
        }
        let (numbers, _) = bytes.as_chunks::<8>();
        let number = |at: usize| numbers.get(at).map_or(0, |number| u64::from_le_bytes(*number));
        Some(Self {
            delay: Duration::from_micros(number(0)),
            sleep_until: Timestamp(number(1)),
            crawl_delay: Duration::from_micros(number(2)),
            last_start: Timestamp(number(3)),
        })
    }
}
