//! Verifies a text index without changing it.

use std::io;
use std::path::{Path, PathBuf};

use tantivy::ReloadPolicy;

use super::directory::{self, Kind};
use super::journal::Journal;
use super::{TextIndexError, unless_damaged};

/// The result of verifying a text index. See [`TextIndex::verify`](super::TextIndex::verify).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TextIndexCheck {
    /// Number of pages that can be found.
    pub pages: u64,
    /// Number of pages in the journal, which are not committed yet.
    pub waiting: u64,
    /// Whether the creation of the index was interrupted; the next process that opens it completes it.
    pub is_unfinished: bool,
    /// Files that are missing or corrupt, with what is wrong.
    pub damage: Vec<(PathBuf, String)>,
}

impl TextIndexCheck {
    pub(super) fn of(directory: &Path) -> Result<Self, TextIndexError> {
        let mut check = Self::default();
        match directory::kind(directory)? {
            Kind::Empty => return Err(TextIndexError::Missing(directory.to_owned())),
            Kind::Unfinished => {
                check.is_unfinished = true;
                return Ok(check);
            }
            Kind::Index => {}
        }
        match unless_damaged(directory, || check.committed(directory)) {
            Err(TextIndexError::Damaged(path, what)) => check.damage.push((path, what)),
            Err(TextIndexError::Failed(what)) => check.damage.push((directory.to_owned(), what)),
            other => other?,
        }
        check.journal(directory)?;
        Ok(check)
    }

    /// Verifies the checksums of the files of the index.
    fn committed(&mut self, directory: &Path) -> Result<(), TextIndexError> {
        let (index, _) = directory::open(directory)?;
        let failed = |error| TextIndexError::of(directory, &error);
        let mut changed: Vec<PathBuf> = index.validate_checksum().map_err(failed)?.into_iter().collect();
        changed.sort();
        let what = "it is not what was written";
        self.damage.extend(
            changed.into_iter().map(|file| (directory::inner(directory).join(file), what.to_owned())),
        );
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual);
        let reader: tantivy::IndexReader = reader.try_into().map_err(failed)?;
        self.pages = reader.searcher().num_docs();
        Ok(())
    }

    fn journal(&mut self, directory: &Path) -> Result<(), TextIndexError> {
        for (_, path) in Journal::files(directory).map_err(directory::io_error(directory))? {
            let read = Journal::read(&path, |_| -> io::Result<()> {
                self.waiting += 1;
                Ok(())
            });
            if let Err(error) = read {
                self.damage.push((path, error.to_string()));
            }
        }
        Ok(())
    }
}
