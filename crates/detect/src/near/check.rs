//! The check of an index on disk, which changes nothing, and the results of a repair.

use std::collections::HashSet;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use super::directory::{self, Directory};
use super::error::{IndexError, IndexErrorKind};
use super::frame;
use super::frozen::IdRef;
use super::identity::Identity;
use super::segment::{Damage, Segment};

/// The result of a check of an index on disk. See [`DiskIndex::verify`](super::DiskIndex::verify).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct IndexCheck {
    /// The identity of the index; `None` if the file with it is missing or damaged.
    pub identity: Option<Identity>,
    /// Number of files of the log that are in use.
    pub files: u64,
    /// Number of writes that are intact.
    pub frames: u64,
    /// Number of documents in the index, as far as the intact writes show.
    pub documents: u64,
    /// The damaged or incomplete parts of the log.
    pub damage: Vec<Damage>,
    /// Descriptions of anything else that is missing.
    pub missing: Vec<String>,
}

impl IndexCheck {
    /// Whether all documents that were reported as inserted are intact. A write that was cut off is no damage: opening the index drops it.
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.damage.iter().all(|damage| damage.is_torn)
    }

    pub(super) fn of(path: &Path) -> Result<Self, IndexError> {
        let _lock = Directory::lock_shared(path)?;
        let mut check = Self::default();
        match directory::identity_of(path) {
            Ok(found) => check.identity = found,
            Err(error) if error.kind() == IndexErrorKind::Damaged => {}
            Err(error) => return Err(error),
        }
        if check.identity.is_none() {
            check.missing.push("the file with the identity of the index is missing or damaged".to_owned());
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
                // A later segment was started only after all of this one had been synced, so nothing in it can be a write that was cut off.
                damage.iter_mut().for_each(|damage| damage.is_torn = false);
            }
            check.damage.extend(damage);
        }
        check.documents = there.len() as u64;
        Ok(check)
    }
}

/// Tracks which documents exist, by a hash of language and id.
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
