//! Determines what a store directory contains, and whether all of it can be read.

use std::fmt;
use std::path::Path;

use huntsman_crawler::{Error, Result, SavedJob};
use huntsman_store::{JobDirectory, StoreError, StoreErrorKind};

use crate::{http_cache, incremental};

/// A kind of data in a store, recognised by the keys of its entries.
///
/// The kinds of this crate are constants; other crates define their own and pass them to [`StoredCheck::of`].
#[derive(Clone, Copy)]
pub struct StoredKind {
    /// The name for messages, such as "HTTP cache".
    pub name: &'static str,
    /// The plural noun for its records in messages, such as "pages"; `None` if records are not counted.
    pub records: Option<&'static str>,
    /// Advice for a damaged store, such as "remove the directory".
    pub help: &'static str,
    /// Whether a store whose first key is this one has this kind.
    pub begins: fn(&[u8]) -> bool,
    /// Whether the record of a key and a value can be read; `None` if the entry is not a record.
    pub reads: fn(&[u8], &[u8]) -> Option<bool>,
}

impl StoredKind {
    /// A store without entries.
    pub const EMPTY: Self = Self {
        name: "store without an entry",
        records: None,
        help: "remove the directory",
        begins: |_| false,
        reads: |_, _| None,
    };
    /// The job of a crawl.
    pub const JOB: Self = Self {
        name: "job of a crawl",
        help: "restore it from a copy, or start the crawl anew with --fresh",
        begins: SavedJob::is_key,
        ..Self::EMPTY
    };
    /// An HTTP cache, from the setting `httpcache_dir`.
    pub const HTTP_CACHE: Self = Self {
        name: "HTTP cache",
        records: Some("answers"),
        help: "remove the directory: a crawl fetches and stores answers again",
        begins: |key| matches!(key, [b'a' | b'm' | b's' | b'v', ..]),
        reads: |key, value| key.starts_with(b"a").then(|| http_cache::is_whole(value)),
    };
    /// Page records across crawls, from the setting `incremental_dir`.
    pub const KNOWN_PAGES: Self = Self {
        name: "known pages of earlier crawls",
        records: Some("pages"),
        help: "remove the directory: a crawl fetches all pages again",
        begins: |key| matches!(key, [b'd' | b'n' | b'p', ..]),
        reads: |key, value| key.starts_with(b"p").then(|| incremental::is_whole(value)),
    };
    /// The kinds of this crate, in the order in which they are tried.
    const OURS: [Self; 3] = [Self::JOB, Self::HTTP_CACHE, Self::KNOWN_PAGES];
}

impl fmt::Debug for StoredKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoredKind").field(&self.name).finish()
    }
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
const MAX_DESCRIBED: usize = 20;

impl StoredCheck {
    /// Reads every entry of the store in a directory, each with its checksum, without writing. A store whose process
    /// was killed is first restored to its last commit, as by any other program that opens it. The store may have a kind
    /// of this crate or one of `others`.
    ///
    /// # Errors
    /// There is no store, another process uses it, it was written by a newer version, or it belongs to another program.
    pub fn of(path: impl AsRef<Path>, others: &[StoredKind]) -> Result<Self> {
        const CACHE: usize = 16 << 20;
        let path = path.as_ref();
        let mut check =
            Self { kind: StoredKind::EMPTY, entries: 0, bytes: 0, records: 0, damage: Vec::new() };
        let (mut unread, mut is_ours) = (0_u64, true);
        let scanned = JobDirectory::open_read_only(path, CACHE).and_then(|directory| {
            directory.store().scan(b"", &mut |key, value| {
                if check.entries == 0 {
                    let mut kinds = StoredKind::OURS.iter().chain(others);
                    let kind = kinds.find(|kind| (kind.begins)(key));
                    is_ours = kind.is_some();
                    check.kind = kind.copied().unwrap_or(StoredKind::EMPTY);
                }
                check.entries += 1;
                check.bytes += (key.len() + value.len()) as u64;
                let read = (check.kind.reads)(key, value);
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
        self.damage.truncate(MAX_DESCRIBED);
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
        let results = StoredKind {
            name: "results",
            begins: |key| key.starts_with(b"r"),
            reads: |_, value| Some(value.is_empty()),
            ..StoredKind::EMPTY
        };
        let cases: [(&[u8], StoredKind, bool); 5] = [
            (b"f/c", StoredKind::JOB, true),
            (b"p/stats", StoredKind::JOB, true),
            (&answer, StoredKind::HTTP_CACHE, false),
            (&page, StoredKind::KNOWN_PAGES, false),
            (&result, results, false),
        ];
        let nonsense = b"\x01nonsense";
        for (key, kind, is_whole) in cases {
            let dir = tempfile::tempdir().unwrap();
            store(dir.path(), &[(key, nonsense)]);
            let check = StoredCheck::of(dir.path(), &[results]).unwrap();
            assert_eq!(
                (check.kind.name, check.entries, check.damage.is_empty()),
                (kind.name, 1, is_whole),
                "{check:?}"
            );
        }
        let dir = tempfile::tempdir().unwrap();
        store(dir.path(), &[(b"zz", b"mine")]);
        assert!(StoredCheck::of(dir.path(), &[]).unwrap_err().to_string().contains("another program"));
        assert!(StoredCheck::of(dir.path().join("no"), &[]).is_err());
    }

    #[test]
    fn a_changed_byte_of_a_value_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let value = vec![b'x'; 5_000];
        store(dir.path(), &[(b"f/c", &value)]);
        let file = dir.path().join("store.redb");
        let mut bytes = std::fs::read(&file).unwrap();
        let at = bytes.windows(100).position(|window| window == &value[..100]).unwrap();
        bytes[at + 50] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        let check = StoredCheck::of(dir.path(), &[]).unwrap();
        assert_eq!(check.damage.len(), 1, "{check:?}");
    }
}
