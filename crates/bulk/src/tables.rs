//! Reads the tables of a join again.

use std::path::Path;

use huntsman_detect::near::Language;
use serde_json::Value as Json;

use crate::error::{Error, Result};
use crate::input::{json_value, text_value, unpacked};
use crate::parquet_file::{ParquetFile, Value};
use crate::place::{Place, Places};
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
        let Places::Folder(mut parts) = Place::find(folder)? else {
            return Err(Error::input(folder, "is no folder"));
        };
        parts.retain(|part| part.path().extension().is_some_and(|extension| extension == form.name()));
        let wanted = [columns[0], columns[1], columns[2], "distance"];
        for part in parts {
            let path = part.path();
            let mut row = |values: [&Value; 4]| {
                let [lang, a, b, distance] = values;
                let damaged = || Error::input(path, "has a row that no join wrote");
                let Value::Bytes(lang) = lang else { return Err(damaged()) };
                let lang = Language::parse(&String::from_utf8_lossy(lang)).map_err(|_| damaged())?;
                let distance = if let Value::Int(distance) = distance { *distance as u32 } else { 0 };
                each(lang, [self.id(a).ok_or_else(damaged)?, self.id(b).ok_or_else(damaged)?], distance);
                Ok(())
            };
            match form {
                Form::Parquet => parquet(&part, wanted, &mut row)?,
                Form::Jsonl => lines(&part, wanted, &mut row)?,
                Form::Csv => separated(&part, b',', wanted, &mut row)?,
                Form::Tsv => separated(&part, b'\t', wanted, &mut row)?,
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

fn parquet(place: &Place, wanted: [&str; 4], row: OfRow<'_>) -> Result<()> {
    let file = ParquetFile::open(place)?;
    let names = file.columns();
    let places = wanted.map(|name| names.iter().position(|have| have == name));
    let columns: Vec<usize> = places.into_iter().flatten().collect();
    file.read(&columns, &mut |values| {
        let mut values = values.iter();
        row(places.map(|place| place.and_then(|_| values.next()).unwrap_or(&Value::Missing)))
    })
}

fn lines(place: &Place, wanted: [&str; 4], row: OfRow<'_>) -> Result<()> {
    let path = place.path();
    for line in std::io::BufRead::lines(unpacked(place)?) {
        let line = line.map_err(Error::reading(path))?;
        let json: Json = serde_json::from_str(&line).map_err(|error| Error::input(path, error))?;
        let values = wanted.map(|name| json.get(name).map_or(Value::Missing, json_value));
        row(values.each_ref())?;
    }
    Ok(())
}

fn separated(place: &Place, delimiter: u8, wanted: [&str; 4], row: OfRow<'_>) -> Result<()> {
    let path = place.path();
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(unpacked(place)?);
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
