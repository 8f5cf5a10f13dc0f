//! The results of a join as tables: pairs, and rows that have the fingerprint of an earlier one.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use huntsman_disk::{Entry, Fields, Scratch, Sorter, put_number};

use crate::compare::Found;
use crate::error::{Error, Result};
use crate::fold::{Folded, same_file};
use crate::ids::Ids;
use crate::row::Id;
use crate::table::{Cell, Form, Kind, PART_BYTES, Part, Shape, TableWriter};

/// Bytes of a pair in the file of a step.
pub(crate) const PAIR_BYTES: usize = 17;
/// Rows of a row group of the results: few, so that they need little memory.
const GROUP_ROWS: usize = 1 << 16;

impl Entry for Found {
    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        put_number(self.a - before.map_or(0, |before| before.a), out);
        put_number(self.b, out);
        out.push(self.distance as u8);
    }

    fn read(before: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
        let a = before.map_or(0, |before| before.a).checked_add(from.number()?)?;
        Some(Self { a, b: from.number()?, distance: from.byte()?.into() })
    }
}

/// Writes `pairs` and `same`; returns their bytes.
pub(crate) fn write(
    out: &Path,
    form: Form,
    temp: &Path,
    folded: &Folded,
    steps: &[PathBuf],
    sorted_at_once: usize,
) -> Result<u64> {
    let id = if folded.are_texts { Kind::Text } else { Kind::Int64 };
    let shape = |columns| Shape {
        form,
        columns,
        group_rows: GROUP_ROWS,
        part_bytes: PART_BYTES,
        metadata: Vec::new(),
    };
    let columns = vec![("lang", Kind::Text), ("a", id), ("b", id), ("distance", Kind::Int32)];
    let pairs = TableWriter::new(&out.join("pairs"), shape(columns))?;
    let pairs = write_pairs(pairs, temp, folded, steps, sorted_at_once)?;
    let columns = vec![("id", id), ("first", id), ("lang", Kind::Text)];
    let same = TableWriter::new(&out.join("same"), shape(columns))?;
    let same = write_same(same, temp, folded)?;
    Ok(pairs.iter().chain(&same).map(|part| part.bytes).sum())
}

/// The language of a row; the numbers that are asked for do not descend.
fn language(folded: &Folded, number: u64) -> &str {
    let at = folded.languages.partition_point(|language| language.start <= number);
    &folded.languages[at - 1].name
}

fn cell(id: &Id) -> Cell<'_> {
    match id {
        Id::Number(number) => Cell::Int(*number),
        Id::Text(text) => Cell::Text(text),
    }
}

fn write_pairs(
    mut to: TableWriter,
    temp: &Path,
    folded: &Folded,
    steps: &[PathBuf],
    sorted_at_once: usize,
) -> Result<Vec<Part>> {
    let mut sorter = Sorter::new(&Scratch::at(temp.join("scratch")), sorted_at_once);
    for step in steps {
        records::<PAIR_BYTES>(step, &mut |bytes| {
            let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
            Ok(sorter.push(Found { a: number(0), b: number(8), distance: bytes[16].into() })?)
        })?;
    }
    let mut ids = Ids::open(temp, folded.are_texts)?;
    for pair in sorter.finish()? {
        let Found { a, b, distance } = pair?;
        let lang = language(folded, a);
        let (a, b) = (ids.id(a)?, ids.id(b)?);
        to.row(&[Cell::Text(lang), cell(&a), cell(&b), Cell::Int(distance.into())])?;
    }
    to.finish()
}

fn write_same(mut to: TableWriter, temp: &Path, folded: &Folded) -> Result<Vec<Part>> {
    let mut ids = Ids::open(temp, folded.are_texts)?;
    records::<16>(&same_file(temp), &mut |bytes| {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let lang = language(folded, number(0));
        let (id, first) = (ids.id(number(0))?, ids.id(number(8))?);
        to.row(&[cell(&id), cell(&first), Cell::Text(lang)])
    })?;
    to.finish()
}

/// Calls a function with each record of a file.
fn records<const BYTES: usize>(path: &Path, each: &mut dyn FnMut(&[u8; BYTES]) -> Result<()>) -> Result<()> {
    let file = File::open(path).map_err(Error::reading(path))?;
    let mut left = file.metadata().map_err(Error::reading(path))?.len() / BYTES as u64;
    let mut reader = BufReader::with_capacity(1 << 17, file);
    let mut record = [0; BYTES];
    while left > 0 {
        reader.read_exact(&mut record).map_err(Error::reading(path))?;
        each(&record)?;
        left -= 1;
    }
    Ok(())
}
