//! Estimates the memory of many keys from a sample.

use super::client::{Batch, Client};
use huntsman_detect::near::IndexError;

/// Asks for the memory of some hundred of many numbered keys, and estimates that of all.
#[derive(Debug)]
pub(super) struct Sample {
    keys: u64,
    asked: u64,
    batch: Batch,
}

const SAMPLES: u64 = 512;

impl Sample {
    /// A sample of this number of keys.
    pub(super) fn new(keys: u64) -> Self {
        Self { keys, asked: 0, batch: Batch::new() }
    }

    /// The number of the next key to ask for; all keys if they are few. The numbers are in a scattered order, unrelated to any order of the
    /// keys.
    pub(super) fn next(&self) -> Option<u64> {
        if self.asked == self.keys.min(SAMPLES) {
            return None;
        }
        if self.keys <= SAMPLES {
            return Some(self.asked);
        }
        let scattered = super::mix::fmix64(self.asked + 1);
        Some(((u128::from(scattered) * u128::from(self.keys)) >> 64) as u64)
    }

    /// Adds a request for the memory of a key.
    pub(super) fn push(&mut self, key: &[u8]) {
        self.batch.push_keyed(&[b"MEMORY", b"USAGE", key], key);
        self.asked += 1;
    }

    /// Bytes of all keys; `None` if the user may not ask.
    pub(super) fn bytes(self, client: &mut Client) -> Result<Option<u64>, IndexError> {
        if self.batch.is_empty() {
            return Ok(Some(0));
        }
        let mut sum = 0_u64;
        for reply in client.answers(&self.batch)? {
            match reply {
                super::client::Reply::Nil => {}
                reply => match reply.number() {
                    Some(bytes) => sum += bytes.max(0).cast_unsigned(),
                    None => return Ok(None),
                },
            }
        }
        Ok(Some((u128::from(sum) * u128::from(self.keys) / u128::from(self.asked)) as u64))
    }
}
