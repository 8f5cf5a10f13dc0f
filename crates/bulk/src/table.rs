//! Tables in files: columns with names and types, written as Parquet, JSON Lines, CSV or TSV in parts.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use huntsman_files::Replacement;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use xxhash_rust::xxh3::Xxh3Default;

use crate::error::{Error, Result};

/// Texts that are written at once; a multiple of those after which the writer of Parquet looks at its limits.
const BATCH: usize = 8_192;
/// A part is ended when it has this many bytes, unless something else is asked for.
pub(crate) const PART_BYTES: u64 = 1 << 30;

/// The form of the files that are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Parquet, compressed with zstd.
    #[default]
    Parquet,
    /// A JSON object a line.
    Jsonl,
    /// Comma-separated values with a head line.
    Csv,
    /// Tab-separated values with a head line.
    Tsv,
}

impl Form {
    /// All forms.
    pub const ALL: [Self; 4] = [Self::Parquet, Self::Jsonl, Self::Csv, Self::Tsv];

    /// The name, which is also the extension of the files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Form {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|form| form.name() == name);
        found.ok_or_else(|| "use parquet, jsonl, csv or tsv".to_owned())
    }
}

/// The type of a column. Every column but those that say so has a value in each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Int64,
    Int32,
    Text,
    /// A number that may be missing.
    SomeInt32,
}

/// A value of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell<'a> {
    Int(i64),
    Text(&'a str),
    Missing,
}

/// What a table is like.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) form: Form,
    pub(crate) columns: Vec<(&'static str, Kind)>,
    /// Most rows of a row group: these are in memory while they are written.
    pub(crate) group_rows: usize,
    /// Bytes of a part at most.
    pub(crate) part_bytes: u64,
    /// What the metadata of a Parquet file say.
    pub(crate) metadata: Vec<(String, String)>,
}

/// A file of a table that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The name of the file in its folder.
    pub name: String,
    /// Its rows.
    pub rows: u64,
    /// Its bytes.
    pub bytes: u64,
    /// The XXH3 hash of its bytes, 64 bits in hexadecimal.
    pub xxh3: String,
}

/// Writes a table to a folder: `part-00000.parquet`, `part-00001.parquet` and so on.
pub(crate) struct TableWriter {
    folder: PathBuf,
    shape: Shape,
    open: Option<OpenPart>,
    group: Vec<Values>,
    rows: usize,
    parts: Vec<Part>,
}

struct OpenPart {
    path: PathBuf,
    rows: u64,
    to: Sink,
}

#[expect(clippy::large_enum_variant, reason = "one file is open at a time")]
enum Sink {
    Parquet(Box<SerializedFileWriter<Hashed>>),
    Text(Hashed),
}

enum Values {
    Int64(Vec<i64>),
    Int32(Vec<i32>, Vec<i16>),
    Text(Texts),
}

/// Texts one after the other: a value of its own for each would take three times as much memory.
#[derive(Default)]
struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends.push(self.bytes.len());
    }

    /// Passes on the texts, some at a time.
    fn batches(
        self,
        mut each: impl FnMut(&[ByteArray]) -> parquet::errors::Result<usize>,
    ) -> parquet::errors::Result<()> {
        let (bytes, mut start) = (Bytes::from(self.bytes), 0);
        for ends in self.ends.chunks(BATCH) {
            let text = |end: &usize| ByteArray::from(bytes.slice(std::mem::replace(&mut start, *end)..*end));
            let batch: Vec<ByteArray> = ends.iter().map(text).collect();
            each(&batch)?;
        }
        Ok(())
    }
}

/// A file with the hash of what was written to it.
struct Hashed {
    to: BufWriter<Replacement>,
    hash: Xxh3Default,
    bytes: u64,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// An error of Parquet as one of the file; the cause is kept if the system is at fault.
pub(crate) fn parquet_error(error: parquet::errors::ParquetError) -> io::Error {
    match error {
        parquet::errors::ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(cause) => io::Error::other(cause),
        },
        other => io::Error::other(other),
    }
}

impl TableWriter {
    /// A table in a folder, which is made if it is missing. Files of an earlier run with the same names are replaced.
    pub(crate) fn new(folder: &Path, shape: Shape) -> Result<Self> {
        huntsman_files::create_dir_all(folder).map_err(Error::writing(folder))?;
        let mut made = Self {
            folder: folder.to_owned(),
            shape,
            open: None,
            group: Vec::new(),
            rows: 0,
            parts: Vec::new(),
        };
        made.group = made.new_group();
        Ok(made)
    }

    fn new_group(&self) -> Vec<Values> {
        let values = |kind: &Kind| match kind {
            Kind::Int64 => Values::Int64(Vec::new()),
            Kind::Int32 | Kind::SomeInt32 => Values::Int32(Vec::new(), Vec::new()),
            Kind::Text => Values::Text(Texts::default()),
        };
        self.shape.columns.iter().map(|(_, kind)| values(kind)).collect()
    }

    /// Adds a row, whose cells fit the columns.
    pub(crate) fn row(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        if self.shape.form != Form::Parquet {
            let line = text_line(&self.shape, cells);
            return self.text(&line);
        }
        for (values, cell) in self.group.iter_mut().zip(cells) {
            match (values, cell) {
                (Values::Int64(values), Cell::Int(value)) => values.push(*value),
                (Values::Int32(values, levels), Cell::Int(value)) => {
                    values.push(*value as i32);
                    levels.push(1);
                }
                (Values::Int32(_, levels), _) => levels.push(0),
                (Values::Text(values), Cell::Text(text)) => values.push(text),
                _ => unreachable!("the rows of a table have the kinds of its columns"),
            }
        }
        self.rows += 1;
        if self.rows == self.shape.group_rows { self.end_group() } else { Ok(()) }
    }

    fn text(&mut self, line: &[u8]) -> Result<()> {
        let part = self.part()?;
        part.rows += 1;
        let (path, Sink::Text(to)) = (&part.path, &mut part.to) else { return Ok(()) };
        to.write_all(line).map_err(Error::writing(path))?;
        let is_full = to.bytes >= self.shape.part_bytes;
        if is_full { self.end_part() } else { Ok(()) }
    }

    /// The part that is being written; the next one is begun if none is.
    fn part(&mut self) -> Result<&mut OpenPart> {
        if self.open.is_none() {
            let name = format!("part-{:05}.{}", self.parts.len(), self.shape.form);
            let path = self.folder.join(name);
            let to = self.sink(&path).map_err(Error::writing(&path))?;
            self.open = Some(OpenPart { path, rows: 0, to });
        }
        Ok(self.open.as_mut().expect("it was just made"))
    }

    fn sink(&self, path: &Path) -> io::Result<Sink> {
        let to = BufWriter::with_capacity(1 << 18, Replacement::new(path)?);
        let mut to = Hashed { to, hash: Xxh3Default::new(), bytes: 0 };
        let delimiter = match self.shape.form {
            Form::Csv => ",",
            Form::Tsv => "\t",
            Form::Jsonl => return Ok(Sink::Text(to)),
            Form::Parquet => {
                let metadata = self.shape.metadata.iter();
                let metadata =
                    metadata.map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::default()))
                    .set_created_by(concat!("huntsman ", env!("CARGO_PKG_VERSION")).to_owned())
                    .set_key_value_metadata(Some(metadata))
                    .build();
                let schema = self.schema().map_err(parquet_error)?;
                let file = SerializedFileWriter::new(to, schema, Arc::new(properties));
                return Ok(Sink::Parquet(Box::new(file.map_err(parquet_error)?)));
            }
        };
        let names: Vec<&str> = self.shape.columns.iter().map(|(name, _)| *name).collect();
        writeln!(to, "{}", names.join(delimiter))?;
        Ok(Sink::Text(to))
    }

    fn schema(&self) -> parquet::errors::Result<Arc<Type>> {
        let field = |(name, kind): &(&str, Kind)| {
            let (physical, logical) = match kind {
                Kind::Int64 => (Physical::INT64, None),
                Kind::Int32 | Kind::SomeInt32 => (Physical::INT32, None),
                Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            };
            let repetition = match kind {
                Kind::SomeInt32 => Repetition::OPTIONAL,
                _ => Repetition::REQUIRED,
            };
            let made = Type::primitive_type_builder(name, physical);
            Ok(Arc::new(made.with_logical_type(logical).with_repetition(repetition).build()?))
        };
        let fields = self.shape.columns.iter().map(field).collect::<parquet::errors::Result<_>>()?;
        Ok(Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?))
    }

    fn end_group(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let (fresh, rows) = (self.new_group(), std::mem::take(&mut self.rows));
        let group = std::mem::replace(&mut self.group, fresh);
        let columns = self.shape.columns.clone();
        let part = self.part()?;
        part.rows += rows as u64;
        let (path, Sink::Parquet(to)) = (&part.path, &mut part.to) else { return Ok(()) };
        let written = write_group(to, &columns, group).map_err(parquet_error);
        written.map_err(Error::writing(path))?;
        let (bytes, most) = (to.inner().bytes, self.shape.part_bytes);
        if bytes >= most - (most >> 4) { self.end_part() } else { Ok(()) }
    }

    fn end_part(&mut self) -> Result<()> {
        let Some(part) = self.open.take() else { return Ok(()) };
        let name = part.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ended = match part.to {
            Sink::Text(to) => Ok(to),
            Sink::Parquet(to) => to.into_inner().map_err(parquet_error),
        };
        let finished = ended.and_then(|ended| {
            let (hash, bytes) = (ended.hash.digest(), ended.bytes);
            ended.to.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?;
            Ok((hash, bytes))
        });
        let (hash, bytes) = finished.map_err(Error::writing(&part.path))?;
        self.parts.push(Part { name, rows: part.rows, bytes, xxh3: format!("{hash:016x}") });
        Ok(())
    }

    /// Ends the table. A table without rows has one part all the same.
    pub(crate) fn finish(mut self) -> Result<Vec<Part>> {
        self.end_group()?;
        if self.parts.is_empty() {
            self.part()?;
        }
        self.end_part()?;
        Ok(self.parts)
    }
}

fn write_group(
    to: &mut SerializedFileWriter<Hashed>,
    columns: &[(&'static str, Kind)],
    values: Vec<Values>,
) -> parquet::errors::Result<()> {
    let mut group = to.next_row_group()?;
    for ((_, kind), values) in columns.iter().zip(values) {
        let Some(mut column) = group.next_column()? else { break };
        match values {
            Values::Int64(values) => {
                column.typed::<Int64Type>().write_batch(&values, None, None)?;
            }
            Values::Int32(values, levels) => {
                let levels = (*kind == Kind::SomeInt32).then_some(levels.as_slice());
                column.typed::<Int32Type>().write_batch(&values, levels, None)?;
            }
            Values::Text(texts) => {
                let column = column.typed::<ByteArrayType>();
                texts.batches(|batch| column.write_batch(batch, None, None))?;
            }
        }
        column.close()?;
    }
    group.close().map(drop)
}

fn text_line(shape: &Shape, cells: &[Cell<'_>]) -> Vec<u8> {
    if shape.form == Form::Jsonl {
        let value = |cell: &Cell<'_>| match cell {
            Cell::Int(number) => Value::from(*number),
            Cell::Text(text) => Value::from(*text),
            Cell::Missing => Value::Null,
        };
        let named =
            shape.columns.iter().zip(cells).map(|((name, _), cell)| ((*name).to_owned(), value(cell)));
        return format!("{}\n", Value::Object(named.collect::<Map<_, _>>())).into_bytes();
    }
    let delimiter = if shape.form == Form::Csv { b',' } else { b'\t' };
    let mut line = csv::WriterBuilder::new().delimiter(delimiter).from_writer(Vec::new());
    let written = line.write_record(cells.iter().map(|cell| match cell {
        Cell::Int(number) => number.to_string(),
        Cell::Text(text) => (*text).to_owned(),
        Cell::Missing => String::new(),
    }));
    written.expect("a row in memory is written");
    line.into_inner().expect("a row in memory is written")
}
