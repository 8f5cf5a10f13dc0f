//! Reads columns of a Parquet file, some thousand rows at a time.

use std::fs::File;
use std::path::Path;

use parquet::basic::ConvertedType;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use crate::error::{Error, Result};
use crate::table::parquet_error;

/// Rows that are read at once.
const BATCH: usize = 8_192;

/// A value that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Missing,
    Int(i64),
    /// A number above 2^63.
    Large(u64),
    Bytes(Vec<u8>),
}

/// A Parquet file.
pub(crate) struct ParquetFile {
    reader: SerializedFileReader<File>,
    path: std::path::PathBuf,
}

impl ParquetFile {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::reading(path))?;
        let reader = SerializedFileReader::new(file);
        let reader =
            reader.map_err(|error| Error::input(path, format!("is no whole Parquet file: {error}")))?;
        Ok(Self { reader, path: path.to_owned() })
    }

    pub(crate) fn rows(&self) -> u64 {
        self.reader.metadata().file_metadata().num_rows().max(0) as u64
    }

    /// A value of the file's metadata.
    pub(crate) fn metadata(&self, key: &str) -> Option<&str> {
        let all = self.reader.metadata().file_metadata().key_value_metadata()?;
        all.iter().find(|pair| pair.key == key)?.value.as_deref()
    }

    /// The names of the columns.
    pub(crate) fn columns(&self) -> Vec<String> {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        schema.columns().iter().map(|column| column.path().string()).collect()
    }

    /// Calls a function with the values of these columns, for each row. Returns at its first error.
    pub(crate) fn read(&self, columns: &[usize], each: &mut dyn FnMut(&[Value]) -> Result<()>) -> Result<()> {
        for group in 0..self.reader.num_row_groups() {
            let group = self.reader.get_row_group(group).map_err(|error| self.damaged(&error))?;
            self.group(&*group, columns, each)?;
        }
        Ok(())
    }

    fn damaged(&self, error: &parquet::errors::ParquetError) -> Error {
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
        _ => Err(parquet::errors::ParquetError::General(
            "a column has a type that is neither a whole number nor a text".to_owned(),
        )),
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
