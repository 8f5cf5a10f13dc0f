//! Writes the fingerprints of an index to files.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;

use huntsman_detect::near::{DocId, Document, IndexError, Language, NearIndex};
use huntsman_disk::{Scratch, Sorter};

use crate::done::{DONE, Done};
use crate::error::{Error, Result};
use crate::input::{IDS, NUMBERS, VERSION};
use crate::row::{ByHash, Id, Row, halves};
use crate::table::{Cell, Form, Kind, PART_BYTES, Part, Shape, TableWriter};

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 20;
/// Bytes of rows that are sorted in memory.
const SORTED_AT_ONCE: usize = 512 << 20;

/// What is exported, and how.
#[derive(Clone, Debug)]
pub struct Export {
    /// The form of the files (default: Parquet).
    pub form: Form,
    /// Whether the columns `b0` to `b3` are written, which are the bands of the fingerprint (default: yes).
    pub bands: bool,
    /// Only documents of this language (default: of all).
    pub lang: Option<Language>,
    /// A file is ended when it has about this many bytes (default: 1 GiB).
    pub part_bytes: u64,
}

impl Default for Export {
    fn default() -> Self {
        Self { form: Form::Parquet, bands: true, lang: None, part_bytes: PART_BYTES }
    }
}

/// Why an export failed.
#[derive(Debug)]
pub enum ExportError {
    /// The index could not be read.
    Index(IndexError),
    /// The files could not be written.
    Files(Error),
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(error) => write!(f, "index {error}"),
            Self::Files(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ExportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Index(error) => Some(error),
            Self::Files(error) => Some(error),
        }
    }
}

/// Writes the documents of an index to a folder: files of at most 1 GiB, in the order of language and fingerprint, and `_DONE.json` in the
/// end. An earlier export in the folder is replaced.
///
/// The columns are `id` (64 bits with a sign), or `id_text` if any id is a text or above 2^63; `lang`; `hi` and `lo`, the halves of the
/// fingerprint in two's complement; and the bands `b0` to `b3`, the most significant first.
///
/// # Errors
/// The index cannot be read, or the files cannot be written.
pub fn export(index: &dyn NearIndex, folder: &Path, options: &Export) -> Result<Vec<Part>, ExportError> {
    huntsman_files::create_dir_all(folder)
        .map_err(|error| ExportError::Files(Error::writing(folder)(error)))?;
    clear(folder).map_err(ExportError::Files)?;
    let scratch = Scratch::at(folder.join("scratch"));
    let mut sorter = Sorter::new(&scratch, SORTED_AT_ONCE);
    let (mut rows, mut texts, mut given, mut failed) = (0_u64, 0_u64, 0_u64, None);
    let visited = index.for_each(&mut |document: &Document| {
        if options.lang.is_some_and(|only| only != document.language) {
            return ControlFlow::Continue(());
        }
        let row = Row { language: document.language, id: (&document.id).into(), hash: document.hash.0 };
        rows += 1;
        texts += u64::from(row.id.is_text());
        given += u64::from(matches!(document.id, DocId::Text(_)));
        match sorter.push(ByHash(row)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    visited.map_err(ExportError::Index)?;
    if let Some(error) = failed {
        return Err(ExportError::Files(error.into()));
    }
    let identity = *index.identity();
    let mut shape = shape(options, texts > 0, [rows, identity.k().into()], identity.features().name());
    if given == 0 {
        // Those above 2^63 are texts in the files, and with them all.
        shape.metadata.push((IDS.to_owned(), NUMBERS.to_owned()));
    }
    let parts = write(sorter, folder, shape, texts > 0).map_err(ExportError::Files)?;
    let done = Done {
        version: VERSION.to_owned(),
        features: Some(identity.features()),
        k: Some(identity.k()),
        documents: rows,
        files: parts.clone(),
    };
    done.write(folder).map_err(ExportError::Files)?;
    Ok(parts)
}

fn shape(options: &Export, texts: bool, [rows, k]: [u64; 2], features: &str) -> Shape {
    let id = if texts { ("id_text", Kind::Text) } else { ("id", Kind::Int64) };
    let mut columns = vec![id, ("lang", Kind::Text), ("hi", Kind::Int64), ("lo", Kind::Int64)];
    if options.bands {
        columns.extend(["b0", "b1", "b2", "b3"].map(|name| (name, Kind::Int32)));
    }
    let metadata = [
        ("version", VERSION.to_owned()),
        ("features", features.to_owned()),
        ("k", k.to_string()),
        ("documents", rows.to_string()),
    ];
    let metadata = metadata.map(|(name, value)| (format!("huntsman.{name}"), value)).to_vec();
    // So many rows that a part has several groups.
    let group_rows = usize::try_from(options.part_bytes >> 10).unwrap_or(GROUP_ROWS).clamp(1, GROUP_ROWS);
    Shape { form: options.form, columns, group_rows, part_bytes: options.part_bytes, metadata }
}

fn write(sorter: Sorter<ByHash>, folder: &Path, shape: Shape, texts: bool) -> Result<Vec<Part>> {
    let bands = shape.columns.len() > 4;
    let mut table = TableWriter::new(folder, shape)?;
    for row in sorter.finish()? {
        let Row { language, id, hash } = row?.0;
        let id = if texts { id.into_text() } else { id };
        let id = match &id {
            Id::Number(number) => Cell::Int(*number),
            Id::Text(text) => Cell::Text(text),
        };
        let [hi, lo] = halves(hash).map(Cell::Int);
        let mut cells = vec![id, Cell::Text(language.as_str()), hi, lo];
        if bands {
            cells.extend([96, 64, 32, 0].map(|shift| Cell::Int(((hash >> shift) as u32 as i32).into())));
        }
        table.row(&cells)?;
    }
    table.finish()
}

/// Removes an earlier export; the file that says it is whole goes first.
fn clear(folder: &Path) -> Result<()> {
    let done = folder.join(DONE);
    huntsman_files::remove_any(&done).map_err(Error::writing(&done))?;
    for entry in std::fs::read_dir(folder).map_err(Error::reading(folder))? {
        let path = entry.map_err(Error::reading(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("part-") && Form::ALL.iter().any(|form| name.ends_with(form.name())) {
            huntsman_files::remove_file(&path).map_err(Error::writing(&path))?;
        }
    }
    Ok(())
}
