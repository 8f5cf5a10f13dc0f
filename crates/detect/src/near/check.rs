//! What is whole of an index on disk, found without changing anything, and what a repair kept.

use std::collections::HashSet;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use super::directory::{self, Directory};
use super::error::{IndexError, IndexErrorKind};
use super::frame;
use super::frozen::IdRef;
use super::identity::Identity;
use super::segment::{Damage, Segment};

/// What a check of an index on disk found. See [`DiskIndex::verify`](super::DiskIndex::verify).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct IndexCheck {
    /// What the index is made for; none if the file that tells is missing or damaged.
    pub identity: Option<Identity>,
    /// Files of the log that count.
    pub files: u64,
    /// Writes that are whole.
    pub frames: u64,
    /// Documents that are there, as far as what is whole tells.
    pub documents: u64,
    /// Bytes that are not whole, and where.
    pub damage: Vec<Damage>,
    /// What is missing otherwise, in words.
    pub missing: Vec<String>,
}

impl IndexCheck {
    /// Whether nothing that anybody was told is there is missing. A write that was cut off is no damage: opening the index drops it.
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.damage.iter().all(|damage| damage.is_torn)
    }

    pub(super) fn of(path: &Path) -> Result<Self, IndexError> {
        let _lock = Directory::look(path)?;
        let mut check = Self::default();
        match directory::identity_of(path) {
            Ok(found) => check.identity = found,
            Err(error) if error.kind() == IndexErrorKind::Damaged => {}
            Err(error) => return Err(error),
        }
        if check.identity.is_none() {
            check
                .missing
                .push("the file that tells what the index is made for is missing or damaged".to_owned());
        }
        let segments = Segment::counting(path)?;
        let first = segments.first().map(|segment| segment.number);
        match first {
            None => check.missing.push("there is no log".to_owned()),
            Some(_) if !segments[0].is_base()? => {
                check.missing.push("the beginning of the log is missing".to_owned())
            }
            Some(_) => {}
        }
        let mut there = HashSet::new();
        let mut next = first.unwrap_or(0);
        for (at, segment) in segments.iter().enumerate() {
            if segment.number != next {
                check.missing.push(format!("{} is missing", Segment::new(path, next).path.display()));
            }
            next = segment.number + 1;
            check.files += 1;
            let mut damage = segment.salvage(&mut |payload| {
                check.frames += 1;
                note(payload, &mut there);
                Ok(())
            })?;
            if at + 1 < segments.len() {
                // What is behind it was written after all of this was synced.
                damage.iter_mut().for_each(|damage| damage.is_torn = false);
            }
            check.damage.extend(damage);
        }
        check.documents = there.len() as u64;
        Ok(check)
    }
}

/// Keeps count of which documents are there, by a hash of language and id.
fn note(payload: &[u8], there: &mut HashSet<u128>) {
    let mut key = Vec::new();
    for group in frame::groups(payload).flatten() {
        for (id, hash) in group.records() {
            key.clear();
            key.extend_from_slice(group.language.as_str().as_bytes());
            match id {
                IdRef::Number(number) => {
                    key.push(0);
                    key.extend_from_slice(&number.to_le_bytes());
                }
                IdRef::Text(text) => {
                    key.push(1);
                    key.extend_from_slice(text.as_bytes());
                }
            }
            let key = xxh3_128(&key);
            if hash.0 == 0 {
                there.remove(&key)
            } else {
                there.insert(key)
            };
        }
    }
}
