//! Finds the pairs among many texts that share passages.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use huntsman_crawler::{Error, Result};
use huntsman_detect::copyvio::{Boilerplate, Degree, Text, WindowIndex};
use serde_json::{Value, json};

use super::candidates::Subject;
use super::comparison::{Compared, Comparison};
use super::reading::Reading;

/// Finds the pairs among many texts that share passages: each text with those added before it, or each of some texts
/// with those that were added.
///
/// An index of windows of words tells which pairs are worth comparing; only those are compared. It takes about
/// `8,000 / (run - 4)` windows for 1,000 texts of 1,000 words; the texts themselves are in a temporary file.
///
/// ```
/// use huntsman_detect::copyvio::Text;
/// use huntsman_sweep::{FoundPair, PairFinder};
///
/// # fn main() -> huntsman_crawler::Result<()> {
/// let mill = "The old mill on the bank of the river ground corn for nine villages until the flood of the year 1923.";
/// let mut finder = PairFinder::new(8, 1, true, None)?;
/// finder.add("first", &Text::new(mill))?;
/// finder.add("second", &Text::new(format!("Nobody knows more than this. {mill} The rest was lost.")))?;
/// let mut pairs = Vec::new();
/// finder.compare_all(&mut |pair: FoundPair<'_>| -> huntsman_crawler::Result<()> {
///     pairs.push((pair.article.to_owned(), pair.compared.name.clone()));
///     Ok(())
/// })?;
/// assert_eq!(pairs, [("second".to_owned(), "first".to_owned())]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct PairFinder {
    index: WindowIndex,
    spool: Spool,
    min_shared: usize,
    reports_all: bool,
    boilerplate: Option<Arc<Boilerplate>>,
    counts: PairCounts,
}

/// The counts of a [`PairFinder`].
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct PairCounts {
    /// Number of pairs that were compared.
    pub compared: u64,
    /// Number of pairs that were reported.
    pub reported: u64,
    /// Number of texts with windows that were left out of the index because they occur in very many texts
    /// ([`WindowIndex::MAX_TEXTS`]).
    pub common: u64,
    /// Size of the index in bytes.
    pub index_bytes: u64,
}

/// A pair of texts that share passages.
#[derive(Clone, Copy, Debug)]
pub struct FoundPair<'p> {
    /// The id of the text that may be a copy.
    pub article: &'p str,
    /// The other text, by its id, with the shared passages.
    pub compared: &'p Compared,
}

impl FoundPair<'_> {
    /// The pair as a JSON object: `article`, and the fields of [`Compared::json`] except `direction` and `licence`,
    /// which texts without metadata do not have.
    pub fn json(&self) -> Value {
        let mut line = json!({"article": self.article});
        if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), self.compared.json()) {
            let has = |name: &str| !matches!(name, "direction" | "licence");
            line.extend(fields.into_iter().filter(|(name, _)| has(name)));
        }
        line
    }
}

impl PairFinder {
    /// Starts without texts. It finds shared passages of at least `run` words in texts that share at least `min_shared`
    /// windows of five words; with `reports_all` it also reports pairs that are probably harmless. `boilerplate` is text
    /// that is known to occur on many sites.
    ///
    /// # Errors
    /// A temporary file cannot be created.
    pub fn new(
        run: usize,
        min_shared: usize,
        reports_all: bool,
        boilerplate: Option<Arc<Boilerplate>>,
    ) -> Result<Self> {
        let degree = Degree::default();
        let winnow = (run + 1).saturating_sub(degree.get()).max(1);
        Ok(Self {
            index: WindowIndex::new(degree, winnow),
            spool: Spool::new().map_err(failed)?,
            min_shared,
            reports_all,
            boilerplate,
            counts: PairCounts::default(),
        })
    }

    /// The counts so far.
    pub fn counts(&self) -> PairCounts {
        self.counts
    }

    /// Adds a text.
    ///
    /// # Errors
    /// The disk is full, or there are more than 4,294,967,294 texts.
    pub fn add(&mut self, id: &str, text: &Text) -> Result<()> {
        let number = self.spool.push(id, text).map_err(failed)?;
        self.index.add(number, &text.document());
        Ok(())
    }

    /// Compares the added texts with each other: each one with those added before it. `report` gets each pair.
    ///
    /// # Errors
    /// The disk fails, or `report` returned an error.
    pub fn compare_all<E: From<Error>>(
        &mut self,
        report: &mut dyn FnMut(FoundPair<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.index.compact();
        for number in 0..self.spool.len() {
            let (id, text) = self.spool.get(number)?;
            self.compare_with_earlier(&id, text, number, report)?;
        }
        Ok(())
    }

    /// Compares a text with those that were added.
    ///
    /// # Errors
    /// As [`compare_all`](Self::compare_all).
    pub fn compare<E: From<Error>>(
        &mut self,
        id: &str,
        text: Text,
        report: &mut dyn FnMut(FoundPair<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let all = self.spool.len();
        self.compare_with_earlier(id, text, all, report)
    }

    /// Compares a text with the texts of smaller numbers that share windows with it.
    fn compare_with_earlier<E: From<Error>>(
        &mut self,
        id: &str,
        text: Text,
        before: u32,
        report: &mut dyn FnMut(FoundPair<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let found = self.index.candidates(&text.document(), self.min_shared);
        self.counts.common += u64::from(found.common > 0);
        self.counts.index_bytes = self.index.bytes() as u64;
        let mut sources = Vec::new();
        for candidate in found.texts.iter().filter(|candidate| candidate.id < before) {
            let (source, text) = self.spool.get(candidate.id)?;
            if source != id {
                sources.push((source, Ok(Reading { text, ..Reading::default() })));
            }
        }
        self.counts.compared += sources.len() as u64;
        let subject = Subject::new(text);
        let comparison =
            Comparison::of(id.to_owned(), &subject, Degree::default(), self.boilerplate.as_deref(), sources);
        for compared in comparison.ranked() {
            if compared.is_flagged() || self.reports_all {
                self.counts.reported += 1;
                report(FoundPair { article: id, compared })?;
            }
        }
        Ok(())
    }
}

fn failed(error: io::Error) -> Error {
    Error::from(error).context("a temporary file")
}

/// Texts with their ids in a temporary file, which leaves the memory to the index.
#[derive(Debug)]
struct Spool {
    file: File,
    /// The offset at which each text begins, and the end of the last one.
    places: Vec<u64>,
    buffer: Vec<u8>,
}

/// Maximum size of an unpacked text, in bytes.
const MOST: usize = 256 << 20;

impl Spool {
    fn new() -> io::Result<Self> {
        Ok(Self { file: tempfile::tempfile()?, places: vec![0], buffer: Vec::new() })
    }

    fn len(&self) -> u32 {
        // Each text takes more than a byte in the file, and `push` has checked its number.
        u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
    }

    fn push(&mut self, id: &str, text: &Text) -> io::Result<u32> {
        let number = self.len();
        if number == u32::MAX {
            return Err(io::Error::other("more than 4,294,967,294 texts"));
        }
        let packed = zstd::bulk::compress(&serde_json::to_vec(&(id, text))?, 1)?;
        let end = self.file.seek(SeekFrom::End(0))? + packed.len() as u64;
        self.file.write_all(&packed)?;
        self.places.push(end);
        Ok(number)
    }

    fn get(&mut self, number: u32) -> Result<(String, Text)> {
        let [from, to] = [0, 1].map(|end| self.places[number as usize + end]);
        self.buffer.resize(usize::try_from(to - from).unwrap_or(usize::MAX), 0);
        let mut read = || -> io::Result<(Arc<str>, Text)> {
            self.file.seek(SeekFrom::Start(from))?;
            self.file.read_exact(&mut self.buffer)?;
            Ok(serde_json::from_slice(&zstd::bulk::decompress(&self.buffer, MOST)?)?)
        };
        let (id, text) = read().map_err(failed)?;
        Ok((id.as_ref().to_owned(), text))
    }
}
