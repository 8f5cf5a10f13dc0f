//! The directory of a text index: recognised by its marker, created once, and never created by opening it for reading.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use huntsman_files::Lock;
use serde::{Deserialize, Serialize};
use tantivy::directory::MmapDirectory;
use tantivy::schema::{
    BytesOptions, Field, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::{Index, IndexSettings, TantivyError};

use super::TextIndexError;
use super::terms::Terms;

/// The marker file, which identifies the directory.
const MARKER: &str = "huntsman-text-index.json";
/// Locked by the process that creates the index.
const LOCK: &str = "huntsman-text-index.lock";
/// Files that a killed process may leave behind before the marker is written.
const LEFTOVERS: [&str; 2] = [LOCK, "huntsman-text-index.json.new"];
const FORMAT: &str = "huntsman text index";
const VERSION: u32 = 1;
/// Tantivy's directory within that of an index.
const INDEX: &str = "index";
/// Tantivy's list of the files of an index; without it, tantivy deletes all other files as garbage.
const META: &str = "meta.json";

#[derive(Serialize, Deserialize)]
struct Marker {
    format: String,
    version: u32,
    /// The content of the directory is incomplete: the process that created the index may have died.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unfinished: bool,
}

/// The content of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Missing or empty.
    Empty,
    /// An index that is being created, or whose creation was interrupted.
    Unfinished,
    Index,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    pub(super) url: Field,
    pub(super) body: Field,
    pub(super) page: Field,
}

/// Determines the content of a directory without changing it.
///
/// # Errors
/// It is something else, of another version, or cannot be read.
pub(super) fn kind(directory: &Path) -> Result<Kind, TextIndexError> {
    let not_ours = || TextIndexError::NotAnIndex(directory.to_owned());
    match fs::read(directory.join(MARKER)) {
        Ok(bytes) => match serde_json::from_slice::<Marker>(&bytes) {
            Ok(marker) if marker.format != FORMAT => Err(not_ours()),
            Ok(marker) if marker.version != VERSION => Err(TextIndexError::Version(directory.to_owned())),
            Ok(Marker { unfinished: true, .. }) => Ok(Kind::Unfinished),
            Ok(_) => Ok(Kind::Index),
            Err(_) => Err(not_ours()),
        },
        Err(error) => match error.kind() {
            io::ErrorKind::NotADirectory => Err(not_ours()),
            io::ErrorKind::NotFound if is_empty(directory)? => Ok(Kind::Empty),
            io::ErrorKind::NotFound => Err(not_ours()),
            _ => Err(io_error(directory)(error)),
        },
    }
}

fn is_empty(directory: &Path) -> Result<bool, TextIndexError> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        entries => entries.map_err(io_error(directory))?,
    };
    for entry in entries {
        let name = entry.map_err(io_error(directory))?.file_name();
        if LEFTOVERS.iter().all(|leftover| name != *leftover) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Creates an empty index where there is none. After a kill at any moment, [`kind`] can still tell that the index is
/// incomplete.
pub(super) fn make(directory: &Path) -> Result<(Index, Fields), TextIndexError> {
    let failed = io_error(directory);
    huntsman_files::create_dir_all(directory).map_err(&failed)?;
    let lock = huntsman_files::open_append(directory.join(LOCK)).map_err(&failed)?;
    let Ok(_lock) = Lock::exclusive_if_supported(lock) else {
        return Err(TextIndexError::Locked(directory.to_owned()));
    };
    if kind(directory)? == Kind::Index {
        // Another process was faster.
        return open(directory);
    }
    mark(directory, true)?;
    let path = directory.join(INDEX);
    huntsman_files::remove_any(&path).map_err(&failed)?;
    huntsman_files::create_dir(&path).map_err(&failed)?;
    let (schema, fields) = schema();
    let made = opened(directory)?;
    let index = Index::create(made, schema, IndexSettings::default())
        .map_err(|error| TextIndexError::of(directory, &error))?;
    huntsman_files::sync_dir(&path).map_err(&failed)?;
    mark(directory, false)?;
    Ok((with_terms(index), fields))
}

/// Opens the index in a directory; missing files are an error and are not created.
pub(super) fn open(directory: &Path) -> Result<(Index, Fields), TextIndexError> {
    let meta = directory.join(INDEX).join(META);
    if let Err(error) = fs::metadata(&meta) {
        return Err(TextIndexError::Damaged(meta, format!("it cannot be read ({error})")));
    }
    let (schema, fields) = schema();
    let index = Index::open(opened(directory)?).map_err(|error| TextIndexError::of(directory, &error))?;
    if index.schema() != schema {
        return Err(TextIndexError::Version(directory.to_owned()));
    }
    Ok((with_terms(index), fields))
}

/// The path of tantivy's directory.
pub(super) fn inner(directory: &Path) -> PathBuf {
    directory.join(INDEX)
}

fn mark(directory: &Path, unfinished: bool) -> Result<(), TextIndexError> {
    let marker = Marker { format: FORMAT.to_owned(), version: VERSION, unfinished };
    let text = serde_json::to_vec(&marker).expect("words and a number");
    huntsman_files::write(directory.join(MARKER), text).map_err(io_error(directory))
}

fn opened(directory: &Path) -> Result<MmapDirectory, TextIndexError> {
    let opened = MmapDirectory::open(directory.join(INDEX));
    opened.map_err(|error| TextIndexError::of(directory, &TantivyError::from(error)))
}

fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let terms = TextFieldIndexing::default()
        .set_tokenizer(Terms::NAME)
        // Positions of words are not indexed: they are looked up in the text of the few pages that are found.
        .set_index_option(IndexRecordOption::WithFreqs);
    let fields = Fields {
        url: schema.add_text_field("url", STRING),
        body: schema.add_text_field("body", TextOptions::default().set_indexing_options(terms)),
        page: schema.add_bytes_field("page", BytesOptions::default().set_stored()),
    };
    (schema.build(), fields)
}

fn with_terms(index: Index) -> Index {
    index.tokenizers().register(Terms::NAME, Terms);
    index
}

pub(super) fn io_error(directory: &Path) -> impl Fn(io::Error) -> TextIndexError + use<> {
    let path: PathBuf = directory.to_owned();
    move |cause| TextIndexError::Io { path: path.clone(), cause }
}
