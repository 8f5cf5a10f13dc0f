//! Checksums of stored values: reading returns the written value or an error.

use std::path::Path;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::error::{StoreError, StoreErrorKind};

/// Number of bytes before each stored value.
pub(crate) const LENGTH: usize = 8;

/// XXH3-64 of a value, seeded with that of its key, so that a value under another key is detected too.
pub(crate) fn of(key: &[u8], value: &[u8]) -> [u8; LENGTH] {
    xxh3_64_with_seed(value, xxh3_64(key)).to_le_bytes()
}

/// The stored form of a value: its checksum, then the value.
#[cfg(feature = "sled")]
pub(crate) fn seal(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(LENGTH + value.len());
    stored.extend_from_slice(&of(key, value));
    stored.extend_from_slice(value);
    stored
}

/// The value in its stored form.
///
/// # Errors
/// Its checksum is wrong.
pub(crate) fn unseal<'a>(key: &[u8], stored: &'a [u8], path: &Path) -> Result<&'a [u8], StoreError> {
    if let Some((checksum, value)) = stored.split_first_chunk::<LENGTH>()
        && *checksum == of(key, value)
    {
        return Ok(value);
    }
    Err(StoreError::new(
        StoreErrorKind::Damaged,
        format!("the entry {} is damaged: its checksum is wrong; {}", shown(key), crate::error::START_ANEW),
    )
    .at(path))
}

/// A key for a message: printable, and of limited length.
fn shown(key: &[u8]) -> String {
    const MAX_SHOWN: usize = 80;
    let cut = &key[..key.len().min(MAX_SHOWN)];
    let more = if cut.len() < key.len() { "..." } else { "" };
    format!("\"{}{more}\"", cut.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_of_a_stored_value_is_found_and_its_key_is_named() {
        let (key, value) = (b"host/\x00\xff", b"a value");
        let mut stored = [&of(key, value)[..], value].concat();
        assert_eq!(unseal(key, &stored, Path::new("f")).expect("it is as it was"), value);
        for bit in 0..stored.len() * 8 {
            stored[bit / 8] ^= 1 << (bit % 8);
            let error = unseal(key, &stored, Path::new("f")).expect_err("a bit is wrong");
            assert_eq!(error.kind(), StoreErrorKind::Damaged);
            let message = error.to_string();
            assert!(message.starts_with("f: the entry \"host/\\x00\\xff\" is damaged"), "{message}");
            stored[bit / 8] ^= 1 << (bit % 8);
        }
        for length in 0..stored.len() {
            assert!(unseal(key, &stored[..length], Path::new("f")).is_err(), "cut to {length}");
        }
        assert!(unseal(b"another key", &stored, Path::new("f")).is_err());
    }

    #[test]
    fn a_long_key_is_cut_in_the_message() {
        let message = unseal(&[b'k'; 60_000], b"", Path::new("f")).expect_err("no checksum").to_string();
        assert!(message.len() < 300, "{message}");
    }
}
