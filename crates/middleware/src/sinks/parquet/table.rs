//! Writes rows as row groups, column by column.

use std::io::Write;
use std::sync::Arc;

use huntsman_crawler::Result;
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use serde_json::{Map, Value};

use super::schema::{Columns, Kind};

/// A file that is being written.
pub(super) struct Writer<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Columns,
    group: Vec<Column>,
    rows: usize,
}

/// The values of a column in a row group.
struct Column {
    values: Values,
    /// How much of a value there is, in the levels of Parquet: 0 is NULL; for lists, 1 is an empty one, 2 an element that is NULL, 3 an element.
    definitions: Vec<i16>,
    /// Of lists: 0 begins a list, 1 goes on with it.
    repetitions: Vec<i16>,
}

enum Values {
    Bools(Vec<bool>),
    Integers(Vec<i64>),
    Reals(Vec<f64>),
    Texts(Vec<ByteArray>),
    Lists(Vec<ByteArray>),
    Json(Vec<ByteArray>),
}

impl Column {
    fn new(kind: Kind) -> Self {
        let values = match kind {
            Kind::Bool => Values::Bools(Vec::new()),
            Kind::Integer => Values::Integers(Vec::new()),
            Kind::Real => Values::Reals(Vec::new()),
            Kind::Text => Values::Texts(Vec::new()),
            Kind::Texts => Values::Lists(Vec::new()),
            Kind::Json => Values::Json(Vec::new()),
        };
        Self { values, definitions: Vec::new(), repetitions: Vec::new() }
    }

    /// Adds a value. The kind of the column fits all values, so none is lost.
    fn push(&mut self, value: Value) {
        let Self { values, definitions, repetitions } = self;
        let is_there = match (values, value) {
            (_, Value::Null) => false,
            (Values::Lists(texts), Value::Array(list)) => {
                if list.is_empty() {
                    definitions.push(1);
                    repetitions.push(0);
                }
                for (number, element) in list.into_iter().enumerate() {
                    repetitions.push(i16::from(number > 0));
                    match element {
                        Value::String(text) => {
                            definitions.push(3);
                            texts.push(text.into_bytes().into());
                        }
                        _ => definitions.push(2),
                    }
                }
                return;
            }
            (Values::Bools(bools), Value::Bool(is)) => {
                bools.push(is);
                true
            }
            (Values::Integers(integers), Value::Number(number)) => {
                integers.extend(number.as_i64());
                true
            }
            (Values::Reals(reals), Value::Number(number)) => {
                reals.extend(number.as_f64());
                true
            }
            (Values::Texts(texts), Value::String(text)) => {
                texts.push(text.into_bytes().into());
                true
            }
            (Values::Json(texts), value) => {
                texts.push(value.to_string().into_bytes().into());
                true
            }
            // The journal has changed between the two passes.
            (
                Values::Bools(_)
                | Values::Integers(_)
                | Values::Reals(_)
                | Values::Texts(_)
                | Values::Lists(_),
                _,
            ) => false,
        };
        if matches!(self.values, Values::Lists(_)) {
            self.repetitions.push(0);
        }
        self.definitions.push(is_there.into());
    }

    fn write(&mut self, to: &mut SerializedColumnWriter<'_>) -> parquet::errors::Result<()> {
        let Self { values, definitions, repetitions } = self;
        let levels = Some(definitions.as_slice());
        match values {
            Values::Bools(values) => to.typed::<BoolType>().write_batch(values, levels, None),
            Values::Integers(values) => to.typed::<Int64Type>().write_batch(values, levels, None),
            Values::Reals(values) => to.typed::<DoubleType>().write_batch(values, levels, None),
            Values::Texts(values) | Values::Json(values) => {
                to.typed::<ByteArrayType>().write_batch(values, levels, None)
            }
            Values::Lists(values) => {
                to.typed::<ByteArrayType>().write_batch(values, levels, Some(repetitions))
            }
        }
        .map(drop)
    }
}

impl<W: Write + Send> Writer<W> {
    pub(super) fn new(to: W, columns: Columns) -> Result<Self> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("huntsman ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let file = SerializedFileWriter::new(to, columns.schema()?, Arc::new(properties))?;
        let group = new_group(&columns);
        Ok(Self { file, columns, group, rows: 0 })
    }

    /// The number of rows in the current row group.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn row(&mut self, item: Map<String, Value>) {
        let mut cells = vec![Value::Null; self.group.len()];
        let mut rest = Map::new();
        for (field, value) in item {
            match self.columns.of(&field) {
                Some(column) => cells[column] = value,
                None => {
                    rest.insert(field, value);
                }
            }
        }
        if let (false, Some(column)) = (rest.is_empty(), self.columns.rest()) {
            cells[column] = Value::Object(rest);
        }
        for (column, value) in self.group.iter_mut().zip(cells) {
            column.push(value);
        }
        self.rows += 1;
    }

    /// Writes the current row group.
    pub(super) fn end_group(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for column in &mut self.group {
            let Some(mut to) = group.next_column()? else { break };
            column.write(&mut to)?;
            to.close()?;
        }
        group.close()?;
        self.group = new_group(&self.columns);
        self.rows = 0;
        Ok(())
    }

    pub(super) fn close(mut self) -> Result<()> {
        self.end_group()?;
        self.file.close()?;
        Ok(())
    }
}

fn new_group(columns: &Columns) -> Vec<Column> {
    columns.kinds().into_iter().map(Column::new).collect()
}
