//! A full-text index of crawled pages on disk, as a source of candidates.

use std::fmt;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tantivy::directory::MmapDirectory;
use tantivy::directory::error::LockError;
use tantivy::schema::{
    BytesOptions, Field, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::{Index, IndexReader, ReloadPolicy, Searcher, TantivyError};

use super::candidates::{Candidate, CandidateError, CandidateSource, Finding, Subject};

mod indexing;
mod journal;
mod page;
mod search;
mod terms;
mod writer;

pub use indexing::IndexPages;
pub use page::IndexedPage;

use page::Prepared;
use terms::Terms;
use writer::Writer;

/// Pages of crawls by what they say: a [`CandidateSource`] whose candidates bring their texts, so that nothing is fetched for them.
///
/// An article is asked for passage by passage: the pages that have most of the rarest pairs of neighbouring words of a passage, in
/// whatever order, are read, and those that share the most words with it in passages
/// ([`Evidence`](huntsman_detect::copyvio::Evidence)) are candidates, at most 20. So a passage of a few sentences in a
/// long page is found, and one in which single words were changed as well. In scripts without spaces between words, three characters
/// stand for a pair. What is boilerplate by its element (`nav`, `header`, `footer`, `aside`) is not looked at.
///
/// One process adds pages, any number look. A page that was added is kept whatever kills the process; it is found after the next
/// commit, which comes with 16 MiB of text, or with the first page after 30 seconds, or by [`commit`](Self::commit). A page again takes
/// the place of the former one. On disk a page takes once to twice the bytes of its text; adding takes some 100 MB of memory.
///
/// ```
/// use huntsman_detect::copyvio::Text;
/// use huntsman_middleware::copyvio::{IndexedPage, Subject, TextIndex};
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
    /// None if it is open for reading only.
    writer: Option<Writer>,
}

/// Which state of the index is looked at.
#[derive(Debug)]
struct Loaded {
    commits: u64,
    at: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Fields {
    url: Field,
    body: Field,
    page: Field,
}

/// The file that says what a directory is.
const MARKER: &str = "huntsman-text-index.json";
const FORMAT: &str = "huntsman text index";
const VERSION: u32 = 1;
/// The directory of tantivy in that of an index.
const INDEX: &str = "index";
/// Bytes of a page's text that are kept.
const MAX_TEXT: usize = 1 << 20;
/// How old a state may be that is looked at, where another process adds pages.
const MAX_AGE: Duration = Duration::from_secs(5);

#[derive(Serialize, Deserialize)]
struct Marker {
    format: String,
    version: u32,
}

/// Why an index cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum TextIndexError {
    /// There is none.
    Missing(PathBuf),
    /// The directory is something else.
    NotAnIndex(PathBuf),
    /// Another process adds pages to it.
    Locked(PathBuf),
    /// It was made by a version that keeps indexes otherwise.
    Version(PathBuf),
    /// It is open for reading only.
    ReadOnly,
    /// The disk fails.
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// Anything else: it is damaged, or the disk is full.
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

/// For `?` where a file is read record by record.
impl From<io::Error> for TextIndexError {
    fn from(cause: io::Error) -> Self {
        Self::Failed(cause.to_string())
    }
}

impl TextIndexError {
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
    /// Opens an index for adding pages and looking for them; makes it where there is nothing, or an empty directory.
    ///
    /// # Errors
    /// The directory is something else, another process adds pages, or the disk fails.
    pub fn open_or_create(directory: impl AsRef<Path>) -> Result<Self, TextIndexError> {
        let directory = directory.as_ref();
        make(directory)?;
        unless_damaged(directory, || {
            let (index, fields) = open(directory)?;
            let writer = Writer::open(directory, &index, fields)?;
            Self::of(directory, &index, fields, Some(writer))
        })
    }

    /// Opens an index for looking. What a killed process left is committed first, unless another one adds pages.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, TextIndexError> {
        let directory = directory.as_ref();
        match kind(directory)? {
            Kind::Index => {}
            Kind::Nothing => return Err(TextIndexError::Missing(directory.to_owned())),
        }
        unless_damaged(directory, || {
            let (index, fields) = open(directory)?;
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

    /// Adds a page, in place of the one with its address. Of a text with more than 1 MiB the rest is left out; a page whose address has
    /// more than 32 KiB is not added. Whatever ends the process then, the page is kept. Waits where more comes than is written.
    ///
    /// # Errors
    /// The disk fails or is full, now or since the last time; or the index is open for reading only.
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

    /// Whether everything that was added is kept; with `from_power_cuts`, also if the power is cut.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn sync(&self, from_power_cuts: bool) -> Result<(), TextIndexError> {
        self.0.writer.as_ref().map_or(Ok(()), |writer| writer.sync(from_power_cuts))
    }

    /// Waits until all that was added can be found.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn commit(&self) -> Result<(), TextIndexError> {
        self.0.writer.as_ref().map_or(Ok(()), Writer::commit)
    }

    /// Commits, and ends adding: the index is free for another process. Looking goes on.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn close(&self) -> Result<(), TextIndexError> {
        self.0.writer.as_ref().map_or(Ok(()), Writer::close)
    }

    /// Pages that can be found.
    ///
    /// # Errors
    /// The disk fails.
    pub fn pages(&self) -> Result<u64, TextIndexError> {
        unless_damaged(&self.0.directory, || Ok(self.0.searcher()?.num_docs()))
    }

    /// Pages that an article may be taken from, the likeliest first; not the page of the article itself. Blocks: some milliseconds, up to
    /// a second for long articles and millions of pages.
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

    fn questions(&self, _: &Subject) -> Vec<String> {
        vec![String::new()]
    }

    fn find<'a>(&'a self, subject: &'a Subject, _: &'a str) -> Finding<'a> {
        let (index, subject) = (self.clone(), subject.clone());
        Box::pin(async move {
            let failed = |error: huntsman_crawler::Error| CandidateError::Failed(error.to_string());
            let found = tokio::task::spawn_blocking(move || index.candidates(&subject)).await;
            found.map_err(|error| failed(error.into()))?.map_err(|error| failed(error.into()))
        })
    }
}

/// Works with the index: its library panics where files were changed by something else.
fn unless_damaged<T>(
    directory: &Path,
    work: impl FnOnce() -> Result<T, TextIndexError>,
) -> Result<T, TextIndexError> {
    let damaged =
        || TextIndexError::Failed(format!("{} is damaged; crawl into another one", directory.display()));
    // What a panic leaves behind is dropped with its index, or only read.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(damaged()))
}

/// What a directory is.
enum Kind {
    Nothing,
    Index,
}

fn kind(directory: &Path) -> Result<Kind, TextIndexError> {
    let io = |cause| TextIndexError::Io { path: directory.to_owned(), cause };
    match fs::read(directory.join(MARKER)) {
        Ok(bytes) => match serde_json::from_slice::<Marker>(&bytes) {
            Ok(marker) if marker.format != FORMAT => Err(TextIndexError::NotAnIndex(directory.to_owned())),
            Ok(marker) if marker.version != VERSION => Err(TextIndexError::Version(directory.to_owned())),
            Ok(_) => Ok(Kind::Index),
            Err(_) => Err(TextIndexError::NotAnIndex(directory.to_owned())),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::read_dir(directory) {
            Ok(mut entries) => match entries.next() {
                None => Ok(Kind::Nothing),
                Some(_) => Err(TextIndexError::NotAnIndex(directory.to_owned())),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Kind::Nothing),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                Err(TextIndexError::NotAnIndex(directory.to_owned()))
            }
            Err(error) => Err(io(error)),
        },
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(TextIndexError::NotAnIndex(directory.to_owned()))
        }
        Err(error) => Err(io(error)),
    }
}

/// Makes an index where there is nothing.
fn make(directory: &Path) -> Result<(), TextIndexError> {
    if matches!(kind(directory)?, Kind::Index) {
        return Ok(());
    }
    let io = |cause| TextIndexError::Io { path: directory.to_owned(), cause };
    fs::create_dir_all(directory).map_err(io)?;
    let marker = Marker { format: FORMAT.to_owned(), version: VERSION };
    let text = serde_json::to_vec(&marker).expect("a name and a number");
    // First of all, and whole or not at all: a kill leaves nothing that looks like something else.
    let mut file = tempfile_in(directory).map_err(io)?;
    io::Write::write_all(&mut file.1, &text).map_err(io)?;
    fs::rename(&file.0, directory.join(MARKER)).map_err(io)
}

/// A file beside the directory, of this process only.
fn tempfile_in(directory: &Path) -> io::Result<(PathBuf, fs::File)> {
    // Without a slash at its end.
    let mut name = directory.components().as_path().as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let path = PathBuf::from(name);
    let file = fs::File::create(&path)?;
    Ok((path, file))
}

/// The index of tantivy in a directory.
fn open(directory: &Path) -> Result<(Index, Fields), TextIndexError> {
    let io = |cause| TextIndexError::Io { path: directory.to_owned(), cause };
    let failed = |error: TantivyError| TextIndexError::of(directory, &error);
    let path = directory.join(INDEX);
    if !path.is_dir() {
        fs::create_dir_all(&path).map_err(io)?;
    }
    let mut schema = Schema::builder();
    let terms = TextFieldIndexing::default()
        .set_tokenizer(Terms::NAME)
        // Where words stand is looked up in the text of the few pages that have them.
        .set_index_option(IndexRecordOption::WithFreqs);
    let fields = Fields {
        url: schema.add_text_field("url", STRING),
        body: schema.add_text_field("body", TextOptions::default().set_indexing_options(terms)),
        page: schema.add_bytes_field("page", BytesOptions::default().set_stored()),
    };
    let opened = MmapDirectory::open(&path).map_err(|error| failed(error.into()))?;
    let index = Index::open_or_create(opened, schema.build()).map_err(failed)?;
    index.tokenizers().register(Terms::NAME, Terms);
    Ok((index, fields))
}
