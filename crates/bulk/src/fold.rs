//! The first stage of a join: rows get numbers in the order of language and id, and equal fingerprints become their first one.
//!
//! Without it, a million copies of one text would make 5e11 pairs.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use huntsman_detect::near::Language;
use huntsman_disk::{Entry, Fields, Scratch, Sorted, Sorter, put_number};
use serde::{Deserialize, Serialize};

use crate::compare::SIDES;
use crate::done::write_json;
use crate::error::{Error, Result};
use crate::ids::IdWriter;
use crate::input::{Found, Input};
use crate::row::{Id, Row, put_language, read_language};

const STATE: &str = "folded.json";

/// What the first stage made.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Folded {
    /// The languages in order.
    pub(crate) languages: Vec<FoldedLanguage>,
    /// Whether ids are texts.
    pub(crate) are_texts: bool,
    /// Rows without a fingerprint.
    pub(crate) without: u64,
    /// Rows whose id came again with another fingerprint; the last one counts.
    pub(crate) replaced: u64,
}

/// The rows of a language.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FoldedLanguage {
    pub(crate) name: String,
    /// The number of its first row; those of the next language follow.
    pub(crate) start: u64,
    pub(crate) documents: u64,
    /// Different fingerprints.
    pub(crate) rows: u64,
}

impl Folded {
    /// What an earlier run finished; `None` if it was killed before.
    pub(crate) fn read(temp: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(temp.join(STATE)).ok()?).ok()
    }

    pub(crate) fn documents(&self) -> u64 {
        self.languages.iter().map(|language| language.documents).sum()
    }

    pub(crate) fn rows(&self) -> u64 {
        self.languages.iter().map(|language| language.rows).sum()
    }
}

/// The file with the rows of a language.
pub(crate) fn rows_file(temp: &Path, language: usize) -> PathBuf {
    temp.join(format!("rows-{language:05}"))
}

/// The file with the numbers of folded rows and those of their first ones, in order.
pub(crate) fn same_file(temp: &Path) -> PathBuf {
    temp.join("same")
}

/// A row in the order of language and id.
#[derive(Debug)]
struct ById {
    row: Row,
    sides: u8,
}

impl ById {
    fn key(&self) -> (Language, &Id) {
        (self.row.language, &self.row.id)
    }
}

impl Ord for ById {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for ById {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ById {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for ById {}

impl Entry for ById {
    fn heap_size(&self) -> usize {
        self.row.id.heap_size()
    }

    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        put_language(self.row.language, before.map(|before| before.row.language), out);
        out.push(self.sides);
        out.extend_from_slice(&self.row.hash.to_le_bytes());
        self.row.id.put(out);
    }

    fn read(before: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
        let language = read_language(before.map(|before| before.row.language), from)?;
        let sides = from.byte()?;
        let hash = u128::from_le_bytes(from.take(16)?.try_into().ok()?);
        Some(Self { row: Row { language, id: Id::read(from)?, hash }, sides })
    }
}

/// A numbered row in the order of language and fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Numbered {
    language: u32,
    hash: [u64; 2],
    number: u64,
    sides: u8,
}

impl Entry for Numbered {
    fn put(&self, _: Option<&Self>, out: &mut Vec<u8>) {
        put_number(self.language.into(), out);
        self.hash.iter().for_each(|half| out.extend_from_slice(&half.to_le_bytes()));
        put_number(self.number, out);
        out.push(self.sides);
    }

    fn read(_: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
        let language = from.number_u32()?;
        let mut half = || Some(u64::from_le_bytes(from.take(8)?.try_into().ok()?));
        let hash = [half()?, half()?];
        Some(Self { language, hash, number: from.number()?, sides: from.byte()? })
    }
}

/// A folded row and the first one of its fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Same(u64, u64);

impl Entry for Same {
    fn put(&self, _: Option<&Self>, out: &mut Vec<u8>) {
        put_number(self.0, out);
        put_number(self.1, out);
    }

    fn read(_: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
        Some(Self(from.number()?, from.number()?))
    }
}

/// Folds the rows of the input; `against` is the other side of the join.
pub(crate) fn fold(
    input: &Input,
    [files, against]: [&Found; 2],
    temp: &Path,
    sorted_at_once: usize,
) -> Result<Folded> {
    let scratch = Scratch::at(temp.join("scratch"));
    let mut folded = Folded::default();
    // Of an id on both sides that has two fingerprints, the one of the input counts, which therefore comes last.
    let mut sorter = Sorter::new(&scratch, sorted_at_once);
    let mut kinds = [0_u64; 2];
    for (files, sides) in [(against, 2), (files, 1)] {
        for file in &files.files {
            input.read(&file.place()?, &mut |row| {
                let Some(row) = row else {
                    folded.without += 1;
                    return Ok(());
                };
                kinds[usize::from(row.id.is_text())] += 1;
                Ok(sorter.push(ById { row, sides })?)
            })?;
        }
    }
    let mut sorted = sorter.finish()?;
    folded.are_texts = kinds[1] > 0;
    if kinds.iter().all(|kind| *kind > 0) {
        let mut texts = Sorter::new(&scratch, sorted_at_once);
        for one in sorted {
            let ById { row, sides } = one?;
            texts.push(ById { row: Row { id: row.id.into_text(), ..row }, sides })?;
        }
        sorted = texts.finish()?;
    }
    let numbered = number(sorted, temp, &mut folded, Sorter::new(&scratch, sorted_at_once))?;
    first_ones(numbered, temp, &mut folded, Sorter::new(&scratch, sorted_at_once))?;
    write_json(&temp.join(STATE), &folded)?;
    Ok(folded)
}

/// Numbers the rows, and writes their ids.
fn number(
    sorted: Sorted<ById>,
    temp: &Path,
    folded: &mut Folded,
    mut out: Sorter<Numbered>,
) -> Result<Sorted<Numbered>> {
    let mut ids = IdWriter::new(temp)?;
    let mut next = 0_u64;
    let mut add = |one: &ById, languages: &mut Vec<FoldedLanguage>| -> Result<()> {
        let name = one.row.language.as_str();
        if languages.last().is_none_or(|last| last.name != name) {
            languages.push(FoldedLanguage { name: name.to_owned(), start: next, documents: 0, rows: 0 });
        }
        let language = languages.len() as u32 - 1;
        languages.last_mut().expect("one was just pushed").documents += 1;
        ids.add(&one.row.id)?;
        let hash = [(one.row.hash >> 64) as u64, one.row.hash as u64];
        out.push(Numbered { language, hash, number: next, sides: one.sides })?;
        next += 1;
        Ok(())
    };
    let mut last: Option<ById> = None;
    for one in sorted {
        let mut one = one?;
        match last.take() {
            Some(before) if before == one => {
                if before.row.hash == one.row.hash {
                    one.sides |= before.sides;
                } else {
                    folded.replaced += 1;
                }
            }
            Some(before) => add(&before, &mut folded.languages)?,
            None => {}
        }
        last = Some(one);
    }
    if let Some(last) = last {
        add(&last, &mut folded.languages)?;
    }
    ids.finish()?;
    Ok(out.finish()?)
}

/// Writes a row for each fingerprint, and which rows have the one of an earlier row.
fn first_ones(
    numbered: Sorted<Numbered>,
    temp: &Path,
    folded: &mut Folded,
    mut same: Sorter<Same>,
) -> Result<()> {
    let mut file: Option<(u32, RowsFile)> = None;
    let mut first: Option<Numbered> = None;
    let mut write = |row: Numbered, languages: &mut [FoldedLanguage]| -> Result<()> {
        if file.as_ref().is_none_or(|(language, _)| *language != row.language) {
            let next = RowsFile::new(&rows_file(temp, row.language as usize))?;
            if let Some((_, done)) = file.replace((row.language, next)) {
                done.finish()?;
            }
        }
        languages[row.language as usize].rows += 1;
        let (_, to) = file.as_mut().expect("it was just opened");
        to.add(&[row.number | u64::from(row.sides) << SIDES, row.hash[0], row.hash[1]])
    };
    for row in numbered {
        let row = row?;
        match &mut first {
            Some(first) if (first.language, first.hash) == (row.language, row.hash) => {
                first.sides |= row.sides;
                same.push(Same(row.number, first.number))?;
            }
            _ => {
                if let Some(before) = first.replace(row) {
                    write(before, &mut folded.languages)?;
                }
            }
        }
    }
    if let Some(last) = first {
        write(last, &mut folded.languages)?;
    }
    if let Some((_, done)) = file {
        done.finish()?;
    }
    let mut to = RowsFile::new(&same_file(temp))?;
    for same in same.finish()? {
        let Same(number, first) = same?;
        to.add(&[number, first])?;
    }
    to.finish()
}

/// A file of numbers.
struct RowsFile {
    path: PathBuf,
    to: BufWriter<File>,
}

impl RowsFile {
    fn new(path: &Path) -> Result<Self> {
        let file = huntsman_files::open_empty(path).map_err(Error::writing(path))?;
        Ok(Self { path: path.to_owned(), to: BufWriter::with_capacity(1 << 18, file) })
    }

    fn add(&mut self, numbers: &[u64]) -> Result<()> {
        let mut written = numbers.iter().map(|number| self.to.write_all(&number.to_le_bytes()));
        written.try_for_each(|done| done).map_err(Error::writing(&self.path))
    }

    fn finish(self) -> Result<()> {
        let file = self.to.into_inner().map_err(|error| Error::writing(&self.path)(error.into_error()))?;
        huntsman_files::sync(&file).map_err(Error::writing(&self.path))
    }
}
