//! A list of the documents to read.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;

use huntsman_detect::near::DocId;

use crate::error::Error;

/// A list of ids, read from a CSV file. It remembers which of them were met.
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
    /// The file cannot be read, or has no column `id`.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let named = |message: String| Error::Manifest { path: path.to_owned(), message };
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .trim(csv::Trim::All)
            .from_path(path)
            .map_err(|error| named(error.to_string()))?;
        let head = reader.headers().map_err(|error| named(error.to_string()))?.clone();
        let column = |names: &[&str]| {
            head.iter().position(|field| {
                names.iter().any(|name| field.trim_start_matches('\u{feff}').eq_ignore_ascii_case(name))
            })
        };
        let Some(id) = column(&["id"]) else {
            let columns: Vec<&str> = head.iter().collect();
            return Err(named(format!("no column id; the head line has {}", columns.join(", "))));
        };
        let (lang, file) = (column(&["lang", "language"]), column(&["path", "file"]));
        let mut manifest = Self::default();
        for record in reader.records() {
            let record = record.map_err(|error| named(error.to_string()))?;
            let field = |column: Option<usize>| {
                column.and_then(|column| record.get(column)).filter(|text| !text.is_empty())
            };
            let Some(text) = field(Some(id)) else { continue };
            let at = manifest.entries.len();
            let number: Option<u64> = text.parse().ok().filter(|number: &u64| number.to_string() == text);
            let id = number.map_or_else(|| DocId::from(text), DocId::Number);
            manifest.entries.push(Entry { id, lang: field(lang).map(Into::into) });
            manifest.ids.insert(text.into(), at);
            if let Some(path) = field(file) {
                manifest.paths.insert(path.into(), at);
            }
        }
        manifest.seen = Mutex::new(vec![false; manifest.entries.len()]);
        Ok(manifest)
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

    /// The number of listed ids that were not met, and some of them.
    pub fn missing(&self) -> (usize, Vec<String>) {
        let seen = self.seen.lock().expect("no thread panics with it");
        let missing = || self.entries.iter().zip(seen.iter()).filter(|(_, seen)| !**seen);
        (missing().count(), missing().take(5).map(|(entry, _)| entry.id.to_string()).collect())
    }
}
