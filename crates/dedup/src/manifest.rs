//! A list of the documents to read.

#[cfg(feature = "sql")]
mod query;

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::sync::Mutex;

use huntsman_detect::near::DocId;

use crate::error::Error;

/// A list of ids. It remembers which of them were met.
#[derive(Debug, Default)]
pub struct Manifest {
    entries: Vec<Entry>,
    /// Index of the entry by the id as text.
    ids: HashMap<Box<str>, usize>,
    /// Index of the entry by the path that the list gives.
    paths: HashMap<Box<str>, usize>,
    seen: Mutex<Vec<bool>>,
}

/// A line of the list.
#[derive(Debug)]
pub(crate) struct Entry {
    /// A number if the text looks like one.
    pub(crate) id: DocId,
    pub(crate) lang: Option<Box<str>>,
}

impl Manifest {
    /// Reads a list. Its header has a column `id` and may have `lang` (or `language`), and `path` (or `file`), which says which file of a
    /// folder has the id.
    ///
    /// # Errors
    /// As [`read_column`](Self::read_column).
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::read_column(path, None)
    }

    /// The same with another name of the column of ids. With the feature `parquet`, a list is CSV or Parquet, a file, a folder of files or
    /// those that match a pattern, and with the feature `s3` also `s3://BUCKET/KEY` or `s3://BUCKET/PREFIX`. The content tells what it is, because engines leave out extensions.
    ///
    /// # Errors
    /// The list cannot be read, or has no such column.
    pub fn read_column(path: &Path, ids: Option<&str>) -> Result<Self, Error> {
        let mut manifest = Self::default();
        #[cfg(not(feature = "parquet"))]
        {
            let file = std::fs::File::open(path)
                .map_err(|error| Error::Manifest { path: path.to_owned(), message: error.to_string() })?;
            manifest.csv(file, path, ids)?;
        }
        #[cfg(feature = "parquet")]
        for place in list::places(path)? {
            manifest.place(&place, ids)?;
        }
        manifest.seen = Mutex::new(vec![false; manifest.entries.len()]);
        Ok(manifest)
    }

    fn csv(&mut self, from: impl Read, path: &Path, ids: Option<&str>) -> Result<(), Error> {
        let named = |message: String| Error::Manifest { path: path.to_owned(), message };
        let mut reader = csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(from);
        let head = reader.headers().map_err(|error| named(error.to_string()))?.clone();
        let columns = ListColumns::of(&head.iter().collect::<Vec<_>>(), ids).map_err(named)?;
        for record in reader.records() {
            let record = record.map_err(|error| named(error.to_string()))?;
            let field = |column: Option<usize>| {
                column.and_then(|column| record.get(column)).filter(|text| !text.is_empty())
            };
            self.add([field(Some(columns.id)), field(columns.lang), field(columns.path)]);
        }
        Ok(())
    }

    /// Adds a line with these id, language and path.
    fn add(&mut self, [id, lang, path]: [Option<&str>; 3]) {
        let Some(text) = id else { return };
        let at = self.entries.len();
        let number: Option<u64> = text.parse().ok().filter(|number: &u64| number.to_string() == text);
        let id = number.map_or_else(|| DocId::from(text), DocId::Number);
        self.entries.push(Entry { id, lang: lang.map(Into::into) });
        self.ids.insert(text.into(), at);
        if let Some(path) = path {
            self.paths.insert(path.into(), at);
        }
    }

    /// The line of an id. Marks the line as met.
    pub(crate) fn id(&self, id: &DocId) -> Option<&Entry> {
        let at = *self.ids.get(id.to_string().as_str())?;
        self.visit(at)
    }

    /// The line of a file: by its path, else by its name, with or without the extension.
    pub(crate) fn path(&self, path: &str) -> Option<&Entry> {
        self.visit(self.of_path(path)?)
    }

    /// Whether a file has a line. This does not mark the line as met.
    pub(crate) fn has_path(&self, path: &str) -> bool {
        self.of_path(path).is_some()
    }

    fn of_path(&self, path: &str) -> Option<usize> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let by_path = self.paths.get(path);
        by_path.or_else(|| [path, name, stem].iter().find_map(|key| self.ids.get(*key))).copied()
    }

    fn visit(&self, at: usize) -> Option<&Entry> {
        self.seen.lock().expect("no thread panics with it")[at] = true;
        self.entries.get(at)
    }

    /// The number of its lines.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has no line.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of listed ids that were not met, and some of them.
    pub fn missing(&self) -> (usize, Vec<String>) {
        let seen = self.seen.lock().expect("no thread panics with it");
        let missing = || self.entries.iter().zip(seen.iter()).filter(|(_, seen)| !**seen);
        (missing().count(), missing().take(5).map(|(entry, _)| entry.id.to_string()).collect())
    }
}

/// The columns of a list, by number.
struct ListColumns {
    id: usize,
    lang: Option<usize>,
    path: Option<usize>,
}

impl ListColumns {
    fn of(head: &[&str], ids: Option<&str>) -> Result<Self, String> {
        let column = |names: &[&str]| {
            head.iter().position(|field| {
                names.iter().any(|name| field.trim_start_matches('\u{feff}').eq_ignore_ascii_case(name))
            })
        };
        let (id, name) = match ids {
            Some(name) => (head.iter().position(|field| *field == name).or_else(|| column(&[name])), name),
            None => (column(&["id"]).or_else(|| column(&["id_text"])), "id"),
        };
        let Some(id) = id else {
            return Err(format!("no column {name}; it has {}; --ids-column names another", head.join(", ")));
        };
        Ok(Self { id, lang: column(&["lang", "language"]), path: column(&["path", "file"]) })
    }
}

/// Lists in Parquet files, in folders and in buckets.
#[cfg(feature = "parquet")]
mod list {
    use std::path::Path;

    use huntsman_bulk::{Error as BulkError, ParquetFile, Place, Places, Value};

    use super::{ListColumns, Manifest};
    use crate::error::Error;

    /// The first bytes of a Parquet file.
    const MAGIC: &[u8] = b"PAR1";

    fn named(path: &Path) -> impl Fn(BulkError) -> Error {
        move |error| match error {
            BulkError::Unavailable { name, message } => Error::Unavailable { name, message },
            BulkError::Input { message, .. } => Error::Manifest { path: path.to_owned(), message },
            BulkError::File { source, .. } => {
                Error::Manifest { path: path.to_owned(), message: source.to_string() }
            }
            other => Error::Manifest { path: path.to_owned(), message: other.to_string() },
        }
    }

    /// The files of a list.
    pub(super) fn places(path: &Path) -> Result<Vec<Place>, Error> {
        let mut places = match Place::find(path).map_err(named(path))? {
            Places::One(place) => return Ok(vec![place]),
            Places::Folder(places) | Places::Matching(places) => places,
        };
        // Engines leave empty files behind where a part of a query has no rows.
        places.retain(|place| place.bytes() > 0);
        if places.is_empty() {
            let message = "it has no file with ids".to_owned();
            return Err(Error::Manifest { path: path.to_owned(), message });
        }
        Ok(places)
    }

    impl Manifest {
        pub(super) fn place(&mut self, place: &Place, ids: Option<&str>) -> Result<(), Error> {
            let path = place.path();
            if place.head(MAGIC.len()).map_err(named(path))? != MAGIC {
                return self.csv(place.open().map_err(named(path))?, path, ids);
            }
            let wrong = |message: String| Error::Manifest { path: path.to_owned(), message };
            let file = ParquetFile::open(place).map_err(named(path))?;
            let names = file.columns();
            let head: Vec<&str> = names.iter().map(String::as_str).collect();
            let columns = ListColumns::of(&head, ids).map_err(wrong)?;
            let chosen = [Some(columns.id), columns.lang, columns.path];
            let wanted: Vec<usize> = chosen.into_iter().flatten().collect();
            let read = file.read(&wanted, &mut |values| {
                if let Value::Float(number) = values[0] {
                    let message = format!("id {number}: ids are whole numbers or texts");
                    return Err(BulkError::Input { name: String::new(), message });
                }
                let mut texts = values.iter().map(|value| value.text().filter(|text| !text.is_empty()));
                let line = chosen.map(|column| column.and_then(|_| texts.next().flatten()));
                self.add(line.each_ref().map(Option::as_deref));
                Ok(())
            });
            read.map_err(named(path))
        }
    }
}
