//! Reads the tables of a join again.

use std::path::{Path, PathBuf};

use huntsman_detect::near::Language;
use serde_json::Value as Json;

use crate::error::{Error, Result};
use crate::input::{json_value, open, text_value};
use crate::parquet_file::{ParquetFile, Value};
use crate::row::Id;
use crate::table::Form;

/// The tables of a join.
pub(crate) struct Tables<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) form: Form,
    pub(crate) are_texts: bool,
}

impl Tables<'_> {
    /// Calls a function with the language, the two ids and the distance of each row of a table; the distance is 0 if the table has none.
    pub(crate) fn each_row(
        &self,
        table: &str,
        columns: [&str; 3],
        each: &mut dyn FnMut(Language, [Id; 2], u32),
    ) -> Result<()> {
        let folder = &self.folder.join(table);
        let form = self.form;
        let entries = std::fs::read_dir(folder).map_err(Error::reading(folder))?;
        let mut parts: Vec<PathBuf> = entries
            .map(|entry| Ok(entry?.path()))
            .collect::<std::io::Result<_>>()
            .map_err(Error::reading(folder))?;
        parts.retain(|path| path.extension().is_some_and(|extension| extension == form.name()));
        parts.sort();
        let wanted = [columns[0], columns[1], columns[2], "distance"];
        for path in parts {
            let mut row = |values: [&Value; 4]| {
                let [lang, a, b, distance] = values;
                let damaged = || Error::input(&path, "has a row that no join wrote");
                let Value::Bytes(lang) = lang else { return Err(damaged()) };
                let lang = Language::parse(&String::from_utf8_lossy(lang)).map_err(|_| damaged())?;
                let distance = if let Value::Int(distance) = distance { *distance as u32 } else { 0 };
                each(lang, [self.id(a).ok_or_else(damaged)?, self.id(b).ok_or_else(damaged)?], distance);
                Ok(())
            };
            match form {
                Form::Parquet => parquet(&path, wanted, &mut row)?,
                Form::Jsonl => lines(&path, wanted, &mut row)?,
                Form::Csv => separated(&path, b',', wanted, &mut row)?,
                Form::Tsv => separated(&path, b'\t', wanted, &mut row)?,
            }
        }
        Ok(())
    }

    fn id(&self, value: &Value) -> Option<Id> {
        match value {
            // CSV does not tell digits from numbers.
            Value::Int(number) if self.are_texts => Some(Id::Text(number.to_string().into())),
            Value::Int(number) => Some(Id::Number(*number)),
            Value::Bytes(text) => Some(Id::Text(String::from_utf8_lossy(text).into())),
            _ => None,
        }
    }
}

type OfRow<'r> = &'r mut dyn FnMut([&Value; 4]) -> Result<()>;

fn parquet(path: &Path, wanted: [&str; 4], row: OfRow<'_>) -> Result<()> {
    let file = ParquetFile::open(path)?;
    let names = file.columns();
    let places = wanted.map(|name| names.iter().position(|have| have == name));
    let columns: Vec<usize> = places.into_iter().flatten().collect();
    file.read(&columns, &mut |values| {
        let mut values = values.iter();
        row(places.map(|place| place.and_then(|_| values.next()).unwrap_or(&Value::Missing)))
    })
}

fn lines(path: &Path, wanted: [&str; 4], row: OfRow<'_>) -> Result<()> {
    for line in std::io::BufRead::lines(open(path)?) {
        let line = line.map_err(Error::reading(path))?;
        let json: Json = serde_json::from_str(&line).map_err(|error| Error::input(path, error))?;
        let values = wanted.map(|name| json.get(name).map_or(Value::Missing, json_value));
        row(values.each_ref())?;
    }
    Ok(())
}

fn separated(path: &Path, delimiter: u8, wanted: [&str; 4], row: OfRow<'_>) -> Result<()> {
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(open(path)?);
    let names = reader.headers().map_err(|error| Error::input(path, error))?.clone();
    let places = wanted.map(|name| names.iter().position(|have| have == name));
    for record in reader.records() {
        let record = record.map_err(|error| Error::input(path, error))?;
        let values =
            places.map(|place| place.and_then(|at| record.get(at)).map_or(Value::Missing, text_value));
        row(values.each_ref())?;
    }
    Ok(())
}
