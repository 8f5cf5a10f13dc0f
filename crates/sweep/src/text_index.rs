//! A full-text index of crawled pages on disk, as a source of candidates.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tantivy::directory::error::LockError;
use tantivy::{Index, IndexReader, ReloadPolicy, Searcher, TantivyError};

use super::candidates::{Candidate, CandidateError, CandidateSource, FindFuture, Subject};

mod check;
mod directory;
mod indexing;
mod journal;
mod page;
mod search;
mod terms;
mod writer;

pub use check::TextIndexCheck;
pub use indexing::IndexPages;
pub use page::IndexedPage;

use directory::{Fields, Kind};
use page::Prepared;
use writer::Writer;

/// Pages of crawls by their text: a [`CandidateSource`] whose candidates have their texts, so that they need not be
/// fetched.
///
/// An article is searched for passage by passage: it reads the pages that have most of the rarest pairs of neighbouring
/// words of a passage, in any order, and returns those that share the most words with the article in passages
/// ([`Evidence`](huntsman_detect::copyvio::Evidence)), at most 20. So it finds a passage of a few sentences in a long
/// page, also if single words were changed. In scripts without spaces between words, three characters are used instead
/// of a pair. Boilerplate elements (`nav`, `header`, `footer`, `aside`) are ignored.
///
/// One process may add pages, any number may search. An added page survives a killed process; it can be found after the
/// next commit, which comes with 16 MiB of text, or with the first page after 30 seconds, or by
/// [`commit`](Self::commit). A page with the same URL replaces the former one. On disk a page takes one to two times
/// the bytes of its text; adding takes about 100 MB of memory.
///
/// ```
/// use huntsman_detect::copyvio::Text;
/// use huntsman_sweep::{IndexedPage, Subject, TextIndex};
///
/// # let dir = tempfile::tempdir()?;
/// # let directory = dir.path().join("index");
/// let index = TextIndex::open_or_create(&directory)?;
/// let text = "The old mill on the bank of the river ground corn for nine villages until the flood of 1923.";
/// index.add(&IndexedPage::new("https://example.org/mill", Text::new(text)))?;
/// index.commit()?;
/// let article = Subject::new(Text::new("For nine villages the old mill ground corn, until the flood of 1923."));
/// assert_eq!(index.candidates(&article)?[0].url, "https://example.org/mill");
/// index.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct TextIndex(Arc<Inner>);

struct Inner {
    directory: PathBuf,
    fields: Fields,
    reader: IndexReader,
    loaded: Mutex<Loaded>,
    /// `None` if it is open for reading only.
    writer: Option<Writer>,
}

/// The state of the index that searches use.
#[derive(Debug)]
struct Loaded {
    commits: u64,
    at: Instant,
}

/// Maximum size of a page's text, in bytes; the rest is left out.
const MAX_TEXT: usize = 1 << 20;
/// Maximum age of that state if another process adds pages.
const MAX_AGE: Duration = Duration::from_secs(5);

/// Why an index cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum TextIndexError {
    /// There is no index in the directory.
    Missing(PathBuf),
    /// The directory contains something else.
    NotAnIndex(PathBuf),
    /// Another process adds pages to the index.
    Locked(PathBuf),
    /// The index was written by a version with another format.
    Version(PathBuf),
    /// The index is open for reading only.
    ReadOnly,
    /// A file of the index could not be read or written.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// A file of the index is missing or corrupt: which, and what is wrong with it.
    Damaged(PathBuf, String),
    /// Any other failure, such as a full disk.
    Failed(String),
}

impl fmt::Display for TextIndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => {
                write!(f, "there is no text index in {}; `huntsman crawl --index` makes one", path.display())
            }
            Self::NotAnIndex(path) => {
                write!(f, "{} is something else than a text index; name another directory", path.display())
            }
            Self::Locked(path) => write!(
                f,
                "another process adds pages to the text index {}; wait for its end, or name another one",
                path.display()
            ),
            Self::Version(path) => write!(
                f,
                "the text index {} was made by another version of this program; crawl into another one",
                path.display()
            ),
            Self::Damaged(path, what) => write!(
                f,
                "the text index is damaged: {}: {what}; nothing was changed. `huntsman verify` on its directory tells what is whole; \
                 put the files back from a copy, or crawl into another directory",
                path.display()
            ),
            Self::ReadOnly => f.write_str("the text index is open for reading only"),
            Self::Io { path, cause } => write!(f, "the text index {}: {cause}", path.display()),
            Self::Failed(why) => write!(f, "the text index: {why}"),
        }
    }
}

impl std::error::Error for TextIndexError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

/// For `?` while a file is read record by record; the caller adds the path with `at`.
impl From<io::Error> for TextIndexError {
    fn from(cause: io::Error) -> Self {
        Self::Io { path: PathBuf::new(), cause }
    }
}

impl TextIndexError {
    /// Adds the path of the file to an error of reading.
    fn at(self, path: &Path) -> Self {
        match self {
            Self::Io { cause, .. } if cause.kind() == io::ErrorKind::InvalidData => {
                Self::Damaged(path.to_owned(), cause.to_string())
            }
            Self::Io { path: nowhere, cause } if nowhere.as_os_str().is_empty() => {
                Self::Io { path: path.to_owned(), cause }
            }
            other => other,
        }
    }

    fn of(path: &Path, error: &TantivyError) -> Self {
        match error {
            TantivyError::LockFailure(LockError::LockBusy, _) => Self::Locked(path.to_owned()),
            TantivyError::IncompatibleIndex(_) | TantivyError::SchemaError(_) => {
                Self::Version(path.to_owned())
            }
            TantivyError::IoError(cause) => {
                Self::Io { path: path.to_owned(), cause: io::Error::new(cause.kind(), cause.to_string()) }
            }
            other => Self::Failed(format!("{}: {other}", path.display())),
        }
    }
}

impl TextIndex {
    /// Opens an index for adding and searching pages; creates it if the directory is missing, is empty, or has an index
    /// whose creation was interrupted. An existing index is never overwritten.
    ///
    /// # Errors
    /// The directory contains something else, another process adds pages, a file of the index is missing, or the disk
    /// fails.
    pub fn open_or_create(directory: impl AsRef<Path>) -> Result<Self, TextIndexError> {
        let directory = directory.as_ref();
        unless_damaged(directory, || {
            let (index, fields) = match directory::kind(directory)? {
                Kind::Index => directory::open(directory)?,
                Kind::Empty | Kind::Unfinished => directory::make(directory)?,
            };
            let writer = Writer::open(directory, &index, fields)?;
            Self::of(directory, &index, fields, Some(writer))
        })
    }

    /// Opens an index for searching. Pages that a killed process left uncommitted are committed first, unless another
    /// process adds pages.
    ///
    /// # Errors
    /// There is no index, or it cannot be read.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, TextIndexError> {
        let directory = directory.as_ref();
        match directory::kind(directory)? {
            Kind::Index => {}
            Kind::Empty | Kind::Unfinished => return Err(TextIndexError::Missing(directory.to_owned())),
        }
        unless_damaged(directory, || {
            let (index, fields) = directory::open(directory)?;
            let io = |cause| TextIndexError::Io { path: directory.to_owned(), cause };
            if !journal::Journal::files(directory).map_err(io)?.is_empty() {
                // Who adds pages commits them, and what may not be written to can be looked at as it is.
                if let Ok(writer) = Writer::open(directory, &index, fields) {
                    writer.close()?;
                }
            }
            Self::of(directory, &index, fields, None)
        })
    }

    /// Verifies the checksums of all files of an index, without changes.
    ///
    /// # Errors
    /// There is no index, it is of another version, or it cannot be read.
    pub fn verify(directory: impl AsRef<Path>) -> Result<TextIndexCheck, TextIndexError> {
        TextIndexCheck::of(directory.as_ref())
    }

    fn of(
        directory: &Path,
        index: &Index,
        fields: Fields,
        writer: Option<Writer>,
    ) -> Result<Self, TextIndexError> {
        let reader =
            index.reader_builder().reload_policy(ReloadPolicy::Manual).doc_store_cache_num_blocks(10);
        let reader = reader.try_into().map_err(|error| TextIndexError::of(directory, &error))?;
        let loaded = Mutex::new(Loaded { commits: 0, at: Instant::now() });
        Ok(Self(Arc::new(Inner { directory: directory.to_owned(), fields, reader, loaded, writer })))
    }

    /// Adds a page, replacing the one with its URL. Text beyond 1 MiB is left out; a page whose URL has more than 32
    /// KiB is not added. The page survives a killed process. Blocks if pages are added faster than they are written.
    ///
    /// # Errors
    /// The disk fails or is full, now or since the last call; or the index is open for reading only.
    pub fn add(&self, page: &IndexedPage) -> Result<(), TextIndexError> {
        let writer = self.0.writer.as_ref().ok_or(TextIndexError::ReadOnly)?;
        let is_long = page.text.text().len() > MAX_TEXT || page.text.exact().len() > MAX_TEXT;
        let prepared = if is_long {
            let mut page = page.clone();
            page.text.truncate(MAX_TEXT);
            Prepared::of(&page)
        } else {
            Prepared::of(page)
        };
        prepared.map_or(Ok(()), |page| writer.add(page))
    }

    /// Returns an error if an added page is not stored; with `from_power_cuts`, syncs them so that they survive a power
    /// cut too.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn sync(&self, from_power_cuts: bool) -> Result<(), TextIndexError> {
        self.0.writer.as_ref().map_or(Ok(()), |writer| writer.sync(from_power_cuts))
    }

    /// Waits until all added pages can be found.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn commit(&self) -> Result<(), TextIndexError> {
        self.0.writer.as_ref().map_or(Ok(()), Writer::commit)
    }

    /// Commits, and ends adding: another process may then add pages. Searching still works.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn close(&self) -> Result<(), TextIndexError> {
        self.0.writer.as_ref().map_or(Ok(()), Writer::close)
    }

    /// The number of pages that can be found.
    ///
    /// # Errors
    /// The disk fails.
    pub fn pages(&self) -> Result<u64, TextIndexError> {
        unless_damaged(&self.0.directory, || Ok(self.0.searcher()?.num_docs()))
    }

    /// Pages that may be sources of an article, the most likely first, without the page of the article itself. Blocks:
    /// some milliseconds, up to a second for long articles and millions of pages.
    ///
    /// # Errors
    /// The index is damaged.
    pub fn candidates(&self, subject: &Subject) -> Result<Vec<Candidate>, TextIndexError> {
        unless_damaged(&self.0.directory, || {
            let found = search::find(&self.0.searcher()?, self.0.fields, subject);
            found.map_err(|error| TextIndexError::of(&self.0.directory, &error))
        })
    }
}

impl Inner {
    /// The newest state.
    fn searcher(&self) -> Result<Searcher, TextIndexError> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let commits = self.writer.as_ref().map_or(0, Writer::commits);
        if commits != loaded.commits || (self.writer.is_none() && loaded.at.elapsed() >= MAX_AGE) {
            self.reader.reload().map_err(|error| TextIndexError::of(&self.directory, &error))?;
            *loaded = Loaded { commits, at: Instant::now() };
        }
        Ok(self.reader.searcher())
    }
}

impl fmt::Debug for TextIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextIndex").field("directory", &self.0.directory).finish_non_exhaustive()
    }
}

impl CandidateSource for TextIndex {
    fn name(&self) -> &str {
        "index"
    }

    fn queries(&self, _: &Subject) -> Vec<String> {
        vec![String::new()]
    }

    fn find<'a>(&'a self, subject: &'a Subject, _: &'a str) -> FindFuture<'a> {
        let (index, subject) = (self.clone(), subject.clone());
        Box::pin(async move {
            let failed = |error: huntsman_crawler::Error| CandidateError::Failed(error.to_string());
            let found = tokio::task::spawn_blocking(move || index.candidates(&subject)).await;
            found.map_err(|error| failed(error.into()))?.map_err(|error| failed(error.into()))
        })
    }
}

/// Runs a function on the index; a panic becomes an error, because its library panics if files were changed by another
/// program.
fn unless_damaged<T>(
    directory: &Path,
    work: impl FnOnce() -> Result<T, TextIndexError>,
) -> Result<T, TextIndexError> {
    // A panic leaves no inconsistent state: the index is then dropped, or it is only read.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(TextIndexError::Damaged(directory.to_owned(), "what is in it is not what was written".to_owned()))
    })
}
