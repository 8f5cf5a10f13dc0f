//! A hash as a key of a table, in which tables take less memory.

use std::fmt;
use std::hash::{Hash, Hasher};

/// A 64-bit hash that is aligned as a 32-bit number: with a value of 32 bits, an entry of a table takes 12 bytes and not 16.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PackedKey([u32; 2]);

impl PackedKey {
    pub(crate) fn value(self) -> u64 {
        u64::from(self.0[0]) | u64::from(self.0[1]) << 32
    }
}

impl From<u64> for PackedKey {
    fn from(value: u64) -> Self {
        Self([value as u32, (value >> 32) as u32])
    }
}

impl Hash for PackedKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.value());
    }
}

impl fmt::Debug for PackedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}
