//! Lists of ids that an SQL query chooses among the rows of Parquet files.
//!
//! The query runs in SQLite. DataFusion 55 reads Parquet by itself and has the functions of a warehouse, but would add 71 packages to the lock
//! file for this one purpose, where SQLite is there for feeds. What DataFusion would do is done here: a name that is no table of the database
//! stands for files, and the columns of them that the query names go into a table before it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use huntsman_bulk::{Error as BulkError, Meaning, ParquetFile, Place, Places, Value};
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::{Value as Cell, ValueRef};
use rusqlite::{Connection, Error as SqlError, Statement};

use super::{ListColumns, Manifest};
use crate::error::Error;

/// By the name of a table, the columns that a query reads.
type Read = BTreeMap<String, BTreeSet<String>>;

impl Manifest {
    /// Chooses ids by a query in the SQL of SQLite, such as `SELECT id FROM 's3://bucket/stories/*.parquet' WHERE year = 2026`. A table in it
    /// is a Parquet file, a folder of them, those that match a pattern, or the same in a bucket (feature `s3`), by its name in quotes.
    ///
    /// The columns of the result are those of a list: `id`, or the only column, and maybe `lang` and `path`; `ids` is another name of the
    /// column of ids. Dates are texts (`2026-11-27`), and times are texts in UTC (`2026-11-27 12:30:00.000`), as SQLite's functions have them.
    /// Names of files that differ only in upper and lower case cannot be in one query.
    ///
    /// All rows of the columns that the query names are read, once, into a temporary file that SQLite removes.
    ///
    /// # Errors
    /// The query is not valid or does more than read, a file cannot be read or has no such column, or there is no room for temporary files.
    pub fn query(sql: &str, ids: Option<&str>) -> Result<Self, Error> {
        // A database without a name is a temporary file, in which SQLite keeps what does not fit its cache.
        let mut database = Connection::open("").map_err(failed)?;
        database.pragma_update(None, "journal_mode", "off").map_err(failed)?;
        let mut tables = BTreeMap::new();
        let read = loop {
            match columns_read(&mut database, sql) {
                Ok(read) => break read,
                Err(error) => {
                    let Some(name) = missing_table(&error).filter(|name| !tables.contains_key(*name)) else {
                        return Err(failed(error));
                    };
                    let table = Table::find(name)?;
                    table.create(&database).map_err(failed)?;
                    tables.insert(name.to_owned(), table);
                }
            }
        };
        for (name, table) in &tables {
            table.fill(&mut database, read.get(name).unwrap_or(&BTreeSet::new()))?;
        }
        let mut chosen = Self::default();
        chosen.rows(&mut database.prepare(sql).map_err(failed)?, ids)?;
        chosen.seen = Mutex::new(vec![false; chosen.entries.len()]);
        Ok(chosen)
    }

    fn rows(&mut self, statement: &mut Statement<'_>, ids: Option<&str>) -> Result<(), Error> {
        let head: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        let columns = match (head.as_slice(), ids) {
            ([_], None) => ListColumns { id: 0, lang: None, path: None },
            _ => ListColumns::of(&head, ids).map_err(wrong)?,
        };
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let text = |column: Option<usize>| match column.map(|column| row.get_ref(column)).transpose() {
                Ok(value) => value.map_or(Ok(None), text),
                Err(error) => Err(failed(error)),
            };
            let line = [text(Some(columns.id))?, text(columns.lang)?, text(columns.path)?];
            self.add(line.each_ref().map(Option::as_deref));
        }
        Ok(())
    }
}

fn wrong(message: impl Into<String>) -> Error {
    Error::Query { message: message.into() }
}

fn failed(error: SqlError) -> Error {
    wrong(match error {
        SqlError::SqlInputError { msg, offset, .. } => match usize::try_from(offset) {
            Ok(at) => format!("{msg}, at byte {}", at + 1),
            Err(_) => msg,
        },
        SqlError::MultipleStatement => "one query is wanted, and not several statements".to_owned(),
        error if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull) => {
            format!("{error}: make room where temporary files are, or name another folder in TMPDIR")
        }
        error if error.sqlite_error_code() == Some(rusqlite::ErrorCode::AuthorizationForStatementDenied) => {
            "only SELECT is allowed".to_owned()
        }
        error => error.to_string(),
    })
}

/// The name of the table that a query lacks.
fn missing_table(error: &SqlError) -> Option<&str> {
    let message = match error {
        SqlError::SqlInputError { msg, .. } | SqlError::SqliteFailure(_, Some(msg)) => msg,
        _ => return None,
    };
    message.strip_prefix("no such table: ")
}

/// A value of the result as a text of a list.
fn text(value: ValueRef<'_>) -> Result<Option<String>, Error> {
    let text = match value {
        ValueRef::Null => return Ok(None),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Real(number) => {
            return Err(wrong(format!("{number:?} in the result: ids are whole numbers or texts")));
        }
        ValueRef::Blob(_) => {
            return Err(wrong("bytes in the result that are no text: ids are whole numbers or texts"));
        }
    };
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// The columns that a query reads of each table. Anything else than reading is refused.
fn columns_read(database: &mut Connection, sql: &str) -> Result<Read, SqlError> {
    let read = Arc::new(Mutex::new(Read::new()));
    let noted = Arc::clone(&read);
    database.authorizer(Some(move |context: AuthContext<'_>| match context.action {
        AuthAction::Read { table_name, column_name } => {
            let mut read = noted.lock().unwrap_or_else(PoisonError::into_inner);
            read.entry(table_name.to_owned()).or_default().insert(column_name.to_owned());
            Authorization::Allow
        }
        AuthAction::Select | AuthAction::Function { .. } | AuthAction::Recursive => Authorization::Allow,
        _ => Authorization::Deny,
    }))?;
    let prepared = database.prepare(sql).map(drop);
    database.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)?;
    prepared?;
    Ok(std::mem::take(&mut *read.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Files whose rows a query sees as one table.
struct Table {
    name: String,
    places: Vec<Place>,
    /// The columns of the first file, which all others have, too.
    columns: Vec<(String, Meaning)>,
}

impl Table {
    fn find(name: &str) -> Result<Self, Error> {
        let named = |error| of_file(name, error);
        let mut places = match Place::find(Path::new(name)).map_err(named)? {
            Places::One(place) => vec![place],
            Places::Folder(places) | Places::Matching(places) => places,
        };
        places.retain(|place| place.bytes() > 0);
        let Some(first) = places.first() else {
            return Err(wrong(format!("{name}: it has no file with rows")));
        };
        let file = ParquetFile::open(first).map_err(named)?;
        let columns = file.columns().into_iter().enumerate();
        let columns =
            columns.map(|(at, column)| Ok((column, file.meaning(at)?))).collect::<Result<_, BulkError>>();
        Ok(Self { name: name.to_owned(), columns: columns.map_err(named)?, places })
    }

    fn create(&self, database: &Connection) -> Result<(), SqlError> {
        let column = |(name, meaning): &(String, Meaning)| {
            let kind = match meaning {
                Meaning::Number => "INTEGER",
                Meaning::Fraction => "REAL",
                Meaning::Text | Meaning::Date | Meaning::Time(_) => "TEXT",
                // A number above 2^63 is a text, which a column of numbers would round.
                _ => "",
            };
            format!("{} {kind}", quoted(name))
        };
        let columns: Vec<String> = self.columns.iter().map(column).collect();
        database.execute_batch(&format!("CREATE TABLE {} ({})", quoted(&self.name), columns.join(", ")))
    }

    /// Reads some columns of the files into the table.
    fn fill(&self, database: &mut Connection, wanted: &BTreeSet<String>) -> Result<(), Error> {
        let is_wanted =
            |(name, _): &&(String, Meaning)| wanted.iter().any(|one| one.eq_ignore_ascii_case(name));
        let mut columns: Vec<&(String, Meaning)> = self.columns.iter().filter(is_wanted).collect();
        if columns.is_empty() {
            // Rows are counted by any column.
            columns.extend(self.columns.first());
        }
        let names: Vec<String> = columns.iter().map(|(name, _)| quoted(name)).collect();
        let values: Vec<&str> = columns.iter().map(|(_, meaning)| placeholder(*meaning)).collect();
        let insert = format!(
            "INSERT INTO {} ({}) VALUES ({})",
            quoted(&self.name),
            names.join(", "),
            values.join(", ")
        );
        let filling = database.transaction().map_err(failed)?;
        let mut insert = filling.prepare(&insert).map_err(failed)?;
        for place in &self.places {
            let named = |error| of_file(&place.path().to_string_lossy(), error);
            let file = ParquetFile::open(place).map_err(named)?;
            let has = file.columns();
            let at = |(name, _): &&(String, Meaning)| {
                has.iter().position(|one| one == name).ok_or_else(|| {
                    wrong(format!(
                        "{}: it has no column {name}, unlike other files of {}",
                        place.path().display(),
                        self.name
                    ))
                })
            };
            let chosen = columns.iter().map(at).collect::<Result<Vec<usize>, Error>>()?;
            let mut refused = None;
            let read = file.read(&chosen, &mut |row| {
                let cells = row.iter().zip(&columns).map(|(value, (_, meaning))| cell(value, *meaning));
                insert.execute(rusqlite::params_from_iter(cells)).map(drop).map_err(|error| {
                    refused = Some(error);
                    BulkError::Stopped
                })
            });
            match refused {
                Some(error) => return Err(failed(error)),
                None => read.map_err(named)?,
            }
        }
        drop(insert);
        filling.commit().map_err(failed)
    }
}

fn of_file(name: &str, error: BulkError) -> Error {
    match error {
        BulkError::Unavailable { name, message } => Error::Unavailable { name, message },
        BulkError::Input { message, .. } => wrong(format!("{name}: {message}")),
        BulkError::File { source, .. } => wrong(format!("{name}: {source}")),
        other => wrong(format!("{name}: {other}")),
    }
}

/// A name as SQL has it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// What makes the value of a column of what is inserted, in the functions of SQLite. Without a value they give none.
fn placeholder(meaning: Meaning) -> &'static str {
    match meaning {
        Meaning::Date => "date(?, 'unixepoch')",
        Meaning::Time(_) => "strftime('%Y-%m-%d %H:%M:%f', ?, 'unixepoch')",
        _ => "?",
    }
}

fn cell(value: &Value, meaning: Meaning) -> Cell {
    match (value, meaning) {
        (Value::Int(days), Meaning::Date) => Cell::Integer(days.saturating_mul(86_400)),
        (Value::Int(time), Meaning::Time(per_second)) => Cell::Real(*time as f64 / f64::from(per_second)),
        (Value::Int(number), _) => Cell::Integer(*number),
        (Value::Large(number), _) => Cell::Text(number.to_string()),
        (Value::Float(number), _) => Cell::Real(*number),
        (Value::Bytes(bytes), _) => match std::str::from_utf8(bytes) {
            Ok(text) => Cell::Text(text.to_owned()),
            Err(_) => Cell::Blob(bytes.clone()),
        },
        _ => Cell::Null,
    }
}
