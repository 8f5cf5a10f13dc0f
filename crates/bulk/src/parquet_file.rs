//! Reads columns of a Parquet file, some thousand rows at a time.

use std::path::PathBuf;

use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use crate::error::{Error, Result};
use crate::place::{Chunks, Place};
use crate::table::parquet_error;

/// Rows that are read at once.
const BATCH: usize = 8_192;

/// A value that was read.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// There is none.
    Missing,
    /// A number; a date is one of days, a time one of the unit of its column, or of nanoseconds if that has none, and a truth value is 0 or 1.
    Int(i64),
    /// A number above 2^63.
    Large(u64),
    /// A number with a fraction.
    Float(f64),
    /// A text, or bytes.
    Bytes(Vec<u8>),
}

impl Value {
    /// The value as a text; `None` if there is none, or if it is not UTF-8.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Missing => None,
            Self::Int(number) => Some(number.to_string()),
            Self::Large(number) => Some(number.to_string()),
            Self::Float(number) => Some(number.to_string()),
            Self::Bytes(bytes) => String::from_utf8(bytes.clone()).ok(),
        }
    }
}

/// What the values of a column stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Meaning {
    /// Whole numbers, or truth values.
    Number,
    /// Whole numbers, some of which may be above 2^63.
    Unsigned,
    /// Numbers with a fraction.
    Fraction,
    /// Days since 1970-01-01.
    Date,
    /// Times since the start of 1970, with so many units in a second.
    Time(u32),
    /// Texts, or bytes.
    Text,
}

/// A Parquet file, of which columns are read.
pub struct ParquetFile {
    reader: SerializedFileReader<Chunks>,
    path: PathBuf,
}

impl std::fmt::Debug for ParquetFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.path.fmt(f)
    }
}

impl ParquetFile {
    /// Opens a file or an object.
    ///
    /// # Errors
    /// It cannot be read, or is no whole Parquet file.
    pub fn open(place: &Place) -> Result<Self> {
        let path = place.path();
        let reader = SerializedFileReader::new(place.chunks()?).map_err(|error| match error {
            // The system, or the server, is at fault.
            ParquetError::External(cause) if cause.is::<std::io::Error>() => {
                Error::reading(path)(parquet_error(ParquetError::External(cause)))
            }
            error => Error::input(path, format!("is no whole Parquet file: {error}")),
        })?;
        Ok(Self { reader, path: path.to_owned() })
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.reader.metadata().file_metadata().num_rows().max(0) as u64
    }

    /// A value of the file's metadata.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        let all = self.reader.metadata().file_metadata().key_value_metadata()?;
        all.iter().find(|pair| pair.key == key)?.value.as_deref()
    }

    /// The names of the columns.
    pub fn columns(&self) -> Vec<String> {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        schema.columns().iter().map(|column| column.path().string()).collect()
    }

    /// What the values of a column stand for, by its number.
    ///
    /// # Errors
    /// The column has values that are not read as they are meant: decimal numbers.
    pub fn meaning(&self, column: usize) -> Result<Meaning> {
        let of = self.reader.metadata().file_metadata().schema_descr().column(column);
        let per_second = |unit: &TimeUnit| match unit {
            TimeUnit::MILLIS => 1_000,
            TimeUnit::MICROS => 1_000_000,
            TimeUnit::NANOS => 1_000_000_000,
        };
        Ok(match (of.logical_type_ref(), of.converted_type(), of.physical_type()) {
            (Some(LogicalType::Date), ..) | (_, ConvertedType::DATE, _) => Meaning::Date,
            (Some(LogicalType::Timestamp(time)), ..) => Meaning::Time(per_second(&time.unit)),
            (_, ConvertedType::TIMESTAMP_MILLIS, _) => Meaning::Time(1_000),
            (_, ConvertedType::TIMESTAMP_MICROS, _) => Meaning::Time(1_000_000),
            (Some(LogicalType::Decimal(_)), ..) | (_, ConvertedType::DECIMAL, _) => {
                let name = of.path().string();
                let message =
                    format!("column {name} has decimal numbers; write it as whole numbers or fractions");
                return Err(Error::input(&self.path, message));
            }
            (_, ConvertedType::UINT_64, _) => Meaning::Unsigned,
            (.., Type::INT96) => Meaning::Time(1_000_000_000),
            (.., Type::BOOLEAN | Type::INT32 | Type::INT64) => Meaning::Number,
            (.., Type::FLOAT | Type::DOUBLE) => Meaning::Fraction,
            (.., Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY) => Meaning::Text,
        })
    }

    /// Bytes of a column of texts before compression; 0 for another one.
    pub(crate) fn text_bytes(&self, column: usize) -> u64 {
        let chunks = self.reader.metadata().row_groups().iter().map(|group| group.column(column));
        let texts = chunks.filter(|chunk| chunk.column_type() == Type::BYTE_ARRAY);
        texts.map(|chunk| chunk.uncompressed_size().max(0) as u64).sum()
    }

    /// Calls a function with the values of these columns, by number, for each row. Returns at its first error.
    ///
    /// # Errors
    /// The file is damaged or cannot be read, or a column has lists.
    pub fn read(&self, columns: &[usize], each: &mut dyn FnMut(&[Value]) -> Result<()>) -> Result<()> {
        for group in 0..self.reader.num_row_groups() {
            let group = self.reader.get_row_group(group).map_err(|error| self.damaged(&error))?;
            self.group(&*group, columns, each)?;
        }
        Ok(())
    }

    fn damaged(&self, error: &ParquetError) -> Error {
        Error::input(&self.path, format!("is damaged: {error}"))
    }

    fn group(
        &self,
        group: &dyn RowGroupReader,
        columns: &[usize],
        each: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<()> {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let mut readers = Vec::with_capacity(columns.len());
        for column in columns {
            let of = schema.column(*column);
            if of.max_rep_level() > 0 {
                let message = format!("column {} has lists; one value a row is needed", of.path().string());
                return Err(Error::input(&self.path, message));
            }
            let unsigned = of.converted_type() == ConvertedType::UINT_64;
            let reader = group.get_column_reader(*column).map_err(|error| self.damaged(&error))?;
            readers.push((reader, of.max_def_level(), unsigned));
        }
        let mut row = vec![Value::Missing; columns.len()];
        let mut left = group.metadata().num_rows().max(0) as usize;
        while left > 0 {
            let mut batches = Vec::with_capacity(readers.len());
            for (reader, levels, unsigned) in &mut readers {
                let read = batch(reader, *levels, *unsigned, BATCH.min(left));
                batches.push(read.map_err(|error| Error::File {
                    doing: "reading",
                    path: self.path.clone(),
                    source: parquet_error(error),
                })?);
            }
            let rows = batches.iter().map(Vec::len).min().unwrap_or(0);
            if rows == 0 {
                return Err(Error::input(&self.path, "is damaged: a column has fewer rows than it says"));
            }
            for at in 0..rows {
                for (value, batch) in row.iter_mut().zip(&mut batches) {
                    *value = std::mem::replace(&mut batch[at], Value::Missing);
                }
                each(&row)?;
            }
            left -= rows;
        }
        Ok(())
    }
}

fn batch(
    reader: &mut ColumnReader,
    levels: i16,
    unsigned: bool,
    rows: usize,
) -> parquet::errors::Result<Vec<Value>> {
    let int = |value: i64| match unsigned && value < 0 {
        true => Value::Large(value as u64),
        false => Value::Int(value),
    };
    match reader {
        ColumnReader::Int64ColumnReader(reader) => typed(reader, levels, rows, |value: i64| int(value)),
        ColumnReader::Int32ColumnReader(reader) => {
            typed(reader, levels, rows, |value: i32| Value::Int(value.into()))
        }
        ColumnReader::ByteArrayColumnReader(reader) => {
            typed(reader, levels, rows, |value: ByteArray| Value::Bytes(value.data().to_vec()))
        }
        ColumnReader::FixedLenByteArrayColumnReader(reader) => {
            typed(reader, levels, rows, |value: FixedLenByteArray| Value::Bytes(value.data().to_vec()))
        }
        ColumnReader::Int96ColumnReader(reader) => {
            typed(reader, levels, rows, |value: Int96| Value::Int(value.to_nanos()))
        }
        ColumnReader::FloatColumnReader(reader) => {
            typed(reader, levels, rows, |value: f32| Value::Float(value.into()))
        }
        ColumnReader::DoubleColumnReader(reader) => typed(reader, levels, rows, Value::Float),
        ColumnReader::BoolColumnReader(reader) => {
            typed(reader, levels, rows, |value| Value::Int(value.into()))
        }
    }
}

fn typed<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    levels: i16,
    rows: usize,
    value: impl Fn(T::T) -> Value,
) -> parquet::errors::Result<Vec<Value>> {
    let (mut values, mut definitions) = (Vec::new(), Vec::new());
    let (read, ..) = reader.read_records(rows, Some(&mut definitions), None, &mut values)?;
    let mut values = values.into_iter();
    if levels == 0 {
        return Ok(values.map(value).collect());
    }
    let all = definitions.iter().take(read);
    Ok(all
        .map(
            |level| {
                if *level == levels { values.next().map_or(Value::Missing, &value) } else { Value::Missing }
            },
        )
        .collect())
}
