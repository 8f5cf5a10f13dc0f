//! A table of an open SQLite database.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use huntsman_crawler::{Error, Result};
use huntsman_files as files;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, params_from_iter};

use super::layout::{Layout, ROW_NUMBER, Row};
use crate::sinks::feed::Mode;
use crate::sinks::target::explain;

/// How long a write waits for other programs that write to the database.
const PATIENCE: Duration = Duration::from_secs(30);

/// An open database.
#[derive(Debug)]
pub(super) struct Database {
    connection: Connection,
    path: PathBuf,
}

impl Database {
    /// Opens a database, and creates a file that does not exist.
    pub(super) fn open(path: &Path, table: &str, mode: Mode) -> Result<Self> {
        let shown = path.display().to_string();
        let doing = if mode == Mode::Append { "opening" } else { "creating" };
        let fault = |cause| explain(doing, &shown, cause);
        // The file is closed again before SQLite opens it: closing it later would release the locks of SQLite.
        drop(match mode {
            Mode::Create => files::create_new(path).map_err(fault)?,
            Mode::Append | Mode::Overwrite => files::open_write(path).map_err(fault)?,
        });
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Directories may be links, and SQLite refuses links at every level.
        let real = parent.canonicalize().map_err(fault)?.join(path.file_name().unwrap_or_default());
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let opened = || -> rusqlite::Result<Connection> {
            let connection = Connection::open_with_flags(&real, flags)?;
            connection.busy_timeout(PATIENCE)?;
            // What a database brings along must not run code when rows are written.
            connection.execute_batch("PRAGMA trusted_schema = OFF")?;
            let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
            if mode == "wal" {
                // A commit survives the end of the process; the log is synced before the job commits.
                connection.execute_batch("PRAGMA synchronous = NORMAL")?;
            }
            connection.query_row("SELECT count(*) FROM pragma_table_info(?1)", [table], |_| Ok(()))?;
            Ok(connection)
        };
        let connection = opened().map_err(|cause| failed(doing, &shown, &cause))?;
        Ok(Self { connection, path: real })
    }

    pub(super) fn columns(&self, table: &str) -> rusqlite::Result<Vec<String>> {
        let mut names = self.connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
        names.query_map([table], |row| row.get(0))?.collect()
    }

    pub(super) fn drop_table(&self, table: &str) -> rusqlite::Result<()> {
        self.connection.execute_batch(&format!("DROP TABLE IF EXISTS {}", quoted(table)))
    }

    /// Writes rows in one transaction, with the columns that they need. Returns the number of the last row.
    pub(super) fn write(&mut self, table: &str, layout: &mut Layout, rows: &[Row]) -> rusqlite::Result<i64> {
        layout.ensure_column();
        let (columns, made) = layout.columns();
        let table = quoted(table);
        let writing = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if made == 0 {
            let names: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
            writing.execute_batch(&format!("CREATE TABLE {table} ({})", names.join(", ")))?;
        } else {
            for name in &columns[made..] {
                writing.execute_batch(&format!("ALTER TABLE {table} ADD COLUMN {}", quoted(name)))?;
            }
        }
        {
            let names: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
            let places = vec!["?"; columns.len()].join(", ");
            let insert = format!("INSERT INTO {table} ({}) VALUES ({places})", names.join(", "));
            let mut insert = writing.prepare_cached(&insert)?;
            let null = rusqlite::types::Value::Null;
            for Row(cells) in rows {
                let padded = cells.iter().chain(std::iter::repeat(&null)).take(columns.len());
                insert.execute(params_from_iter(padded))?;
            }
        }
        let last = writing.last_insert_rowid();
        writing.commit()?;
        layout.set_made();
        Ok(last)
    }

    /// The number of the last row; 0 without any.
    pub(super) fn last_row(&self, table: &str) -> rusqlite::Result<i64> {
        let columns = self.columns(table)?;
        if columns.is_empty() {
            return Ok(0);
        }
        let query = format!("SELECT coalesce(max({}), 0) FROM {}", number(&columns), quoted(table));
        self.connection.query_row(&query, [], |row| row.get(0))
    }

    /// Deletes the rows after this one.
    pub(super) fn cut(&self, table: &str, last: i64) -> rusqlite::Result<()> {
        let columns = self.columns(table)?;
        if columns.is_empty() {
            return Ok(());
        }
        let delete = format!("DELETE FROM {} WHERE {} > ?1", quoted(table), number(&columns));
        self.connection.execute(&delete, [last]).map(drop)
    }

    /// The log that has the last commits, to be synced. Closing a handle of it releases no locks of SQLite: those are on other files.
    pub(super) fn log_file(&self) -> Option<Arc<File>> {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        let log = PathBuf::from(log);
        // Without this mode there is no log, and every commit is durable.
        if !log.exists() {
            return None;
        }
        // SQLite has made it, so its name may not be on the disk yet.
        files::sync_dir(self.path.parent()?).ok()?;
        files::open_write(log).ok().map(Arc::new)
    }

    /// Moves all rows into the database file and closes it.
    pub(super) fn close(self) -> rusqlite::Result<()> {
        self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        // Fails while another program reads the database. Then its log stays until that one has closed it.
        let _ = self.connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()));
        self.connection.close().map_err(|(_, cause)| cause)
    }
}

/// The name of the row number, which a column of the same name would hide.
fn number(columns: &[String]) -> &'static str {
    let is_free = |name: &&str| !columns.iter().any(|column| column.eq_ignore_ascii_case(name));
    // `Layout` makes no column of the first name; a table of others may have one.
    [ROW_NUMBER, "oid", "rowid"].into_iter().find(is_free).unwrap_or(ROW_NUMBER)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// An error of SQLite, with what to do.
pub(super) fn failed(doing: &str, name: &str, cause: &rusqlite::Error) -> Error {
    let advice = match cause.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => " (it is no SQLite database: choose another name)",
        Some(ErrorCode::DiskFull) => " (make room and run again; what was committed is kept)",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => " (another program writes to it)",
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen) => " (choose a place that may be written to)",
        Some(ErrorCode::DatabaseCorrupt) => {
            " (it is damaged: restore it from a copy, or choose another name)"
        }
        _ => "",
    };
    Error::msg(format!("{doing} {name}{advice}: {cause}"))
}
