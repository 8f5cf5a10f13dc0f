//! Determines what a store directory contains, and whether all of it can be read.

use std::path::Path;

use huntsman_crawler::{Error, Result};
use huntsman_store::{JobDirectory, StoreError, StoreErrorKind};

use crate::{copyvio, http_cache, incremental};

/// The kind of data in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoredKind {
    /// A store without entries.
    Empty,
    /// The job of a crawl.
    Job,
    /// An HTTP cache, from the setting `httpcache_dir`.
    HttpCache,
    /// Page records across crawls, from the setting `incremental_dir`.
    KnownPages,
    /// Results of checks, from `copyvio check --cache`.
    CheckResults,
}

/// The result of reading all entries of a store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredCheck {
    /// The kind of the data.
    pub kind: StoredKind,
    /// Number of entries that were read.
    pub entries: u64,
    /// Their total size in bytes.
    pub bytes: u64,
    /// Number of responses, pages or results among them; 0 in a job.
    pub records: u64,
    /// Descriptions of the entries that are damaged.
    pub damage: Vec<String>,
}

/// Maximum number of damaged entries that are described one by one.
const TOLD: usize = 20;

impl StoredKind {
    /// Determines the kind from the first key of the store.
    fn of(key: &[u8]) -> Option<Self> {
        Some(match key {
            [b'e' | b'f' | b'p', b'/', ..] => Self::Job,
            [b'a' | b'm' | b's' | b'v', ..] => Self::HttpCache,
            [b'd' | b'n' | b'p', ..] => Self::KnownPages,
            [b'r', ..] => Self::CheckResults,
            _ => return None,
        })
    }

    /// Whether an entry can be read; `None` if it is not a record of this kind.
    fn reads(self, key: &[u8], value: &[u8]) -> Option<bool> {
        match (self, key.first()?) {
            (Self::HttpCache, b'a') => Some(http_cache::is_whole(value)),
            (Self::KnownPages, b'p') => Some(incremental::is_whole(value)),
            (Self::CheckResults, b'r') => Some(copyvio::is_whole_result(value)),
            _ => None,
        }
    }
}

impl StoredCheck {
    /// Reads every entry of the store in a directory, each with its checksum, without writing. A store whose process
    /// was killed is first restored to its last commit, as by any other program that opens it.
    ///
    /// # Errors
    /// There is no store, another process uses it, it was written by a newer version, or it belongs to another program.
    pub fn of(path: impl AsRef<Path>) -> Result<Self> {
        const CACHE: usize = 16 << 20;
        let path = path.as_ref();
        let mut check =
            Self { kind: StoredKind::Empty, entries: 0, bytes: 0, records: 0, damage: Vec::new() };
        let (mut unread, mut is_ours) = (0_u64, true);
        let scanned = JobDirectory::open_read_only(path, CACHE).and_then(|directory| {
            directory.store().scan(b"", &mut |key, value| {
                if check.entries == 0 {
                    let kind = StoredKind::of(key);
                    is_ours = kind.is_some();
                    check.kind = kind.unwrap_or(StoredKind::Empty);
                }
                check.entries += 1;
                check.bytes += (key.len() + value.len()) as u64;
                let read = check.kind.reads(key, value);
                check.records += u64::from(read == Some(true));
                unread += u64::from(read == Some(false));
                is_ours
            })
        });
        if !is_ours {
            return Err(Error::usage(format!("{}: another program keeps its data in it", path.display())));
        }
        check.note(scanned, unread)?;
        Ok(check)
    }

    fn note(&mut self, scanned: Result<(), StoreError>, unread: u64) -> Result<()> {
        if unread > 0 {
            let what = format!("{unread} of {} records cannot be read", self.records + unread);
            self.damage.push(what);
        }
        match scanned {
            Err(error) if error.kind() == StoreErrorKind::Damaged => self.damage.push(error.to_string()),
            scanned => scanned?,
        }
        self.damage.truncate(TOLD);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use huntsman_store::{Backend, Batch, Durability};

    use super::*;

    fn store(path: &Path, entries: &[(&[u8], &[u8])]) {
        let directory = JobDirectory::open(path, Backend::Redb).unwrap();
        let mut batch = Batch::new();
        entries.iter().for_each(|(key, value)| batch.put(*key, *value));
        directory.store().write(&batch, Durability::Full).unwrap();
        directory.close().unwrap();
    }

    #[test]
    fn each_kind_is_known_by_its_keys_and_what_is_none_is_refused() {
        let answer = [b"a".as_slice(), &[7; 16]].concat();
        let page = [b"p".as_slice(), &[7; 16]].concat();
        let result = [b"r".as_slice(), &[7; 32]].concat();
        let cases: [(&[u8], StoredKind, bool); 5] = [
            (b"f/c", StoredKind::Job, true),
            (b"p/stats", StoredKind::Job, true),
            (&answer, StoredKind::HttpCache, false),
            (&page, StoredKind::KnownPages, false),
            (&result, StoredKind::CheckResults, false),
        ];
        let nonsense = b"\x01nonsense";
        for (key, kind, is_whole) in cases {
            let dir = tempfile::tempdir().unwrap();
            store(dir.path(), &[(key, nonsense)]);
            let check = StoredCheck::of(dir.path()).unwrap();
            assert_eq!(
                (check.kind, check.entries, check.damage.is_empty()),
                (kind, 1, is_whole),
                "{check:?}"
            );
        }
        let dir = tempfile::tempdir().unwrap();
        store(dir.path(), &[(b"zz", b"mine")]);
        assert!(StoredCheck::of(dir.path()).unwrap_err().to_string().contains("another program"));
        assert!(StoredCheck::of(dir.path().join("no")).is_err());
    }

    #[test]
    fn a_changed_byte_of_a_value_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let value = vec![b'x'; 5_000];
        store(dir.path(), &[(b"f/c", &value)]);
        let file = dir.path().join("store.redb");
        let mut bytes = std::fs::read(&file).unwrap();
        let at = bytes.windows(100).position(|window| window == &value[..100]).unwrap();
        bytes[at + 50] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        let check = StoredCheck::of(dir.path()).unwrap();
        assert_eq!(check.damage.len(), 1, "{check:?}");
    }
}
