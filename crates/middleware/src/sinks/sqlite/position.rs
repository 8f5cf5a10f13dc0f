//! The database of a feed, and the position in its table that a job saves.

use std::fs::File;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use huntsman_crawler::{Error, Persist, Result};
use huntsman_files as files;

use super::database::{Database, failed};
use super::layout::{Layout, Row};
use crate::sinks::target::explain;

const ADVICE: &str = "restore it from a copy, or start the job anew with --fresh";

/// The position in a table that belongs to a job. Register it with the builder, so that the job saves it: `builder.persist(position)`.
///
/// The job saves the number of the last row. The rows are synced before it is saved.
#[derive(Clone, Debug)]
pub struct TablePosition(pub(super) Arc<Shared>);

/// What the feed and the position share.
#[derive(Debug)]
pub(super) struct Shared {
    inner: Mutex<Inner>,
    /// The number of the last row that is committed.
    last_row: AtomicI64,
    /// Apart from the database, because syncing it takes long.
    log: Mutex<Option<Arc<File>>>,
}

#[derive(Debug)]
struct Inner {
    file: String,
    table: String,
    /// `None` before it is opened and after it was closed.
    database: Option<Database>,
    /// The first error: nothing more is written, and nothing more is committed.
    broken: Option<String>,
}

impl Shared {
    pub(super) fn new(file: String, table: String) -> Self {
        let inner = Inner { file, table, database: None, broken: None };
        Self { inner: Mutex::new(inner), last_row: AtomicI64::new(0), log: Mutex::new(None) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, database: Database) {
        self.inner().database = Some(database);
    }

    pub(super) fn set_table(&self, name: &str) {
        name.clone_into(&mut self.inner().table);
    }

    /// The name of the file, for messages.
    pub(super) fn file_name(&self) -> String {
        self.inner().file.clone()
    }

    pub(super) fn log_file(&self) -> Option<Arc<File>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn check(&self) -> Result<()> {
        self.inner().check()
    }

    /// Begins to write: drops the table, if that is wanted. Returns its columns.
    pub(super) fn begin(&self, file: String, drops: bool) -> Result<Vec<String>> {
        let mut inner = self.inner();
        inner.file = file;
        inner.with("opening", |database, table| {
            if drops {
                database.drop_table(table)?;
            }
            *self.log.lock().unwrap_or_else(PoisonError::into_inner) = database.log_file();
            database.columns(table)
        })
    }

    pub(super) fn write(&self, layout: &mut Layout, rows: &[Row]) -> Result<()> {
        let mut inner = self.inner();
        inner.check()?;
        if rows.is_empty() {
            return Ok(());
        }
        let written = inner.with("writing", |database, table| database.write(table, layout, rows));
        match written {
            Ok(last) => self.last_row.store(last, Ordering::Release),
            Err(ref error) => inner.broken = Some(error.to_string()),
        }
        written.map(drop)
    }

    pub(super) fn close(&self) -> Result<()> {
        let mut inner = self.inner();
        inner.check()?;
        let Some(database) = inner.database.take() else { return Ok(()) };
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = None;
        database.close().map_err(|cause| failed("closing", &inner.file, &cause))
    }
}

impl Inner {
    fn check(&self) -> Result<()> {
        match &self.broken {
            Some(what) => Err(Error::msg(what.clone())),
            None => Ok(()),
        }
    }

    fn with<R>(
        &mut self,
        doing: &str,
        act: impl FnOnce(&mut Database, &str) -> rusqlite::Result<R>,
    ) -> Result<R> {
        let Some(database) = &mut self.database else {
            return Err(Error::msg(format!("{}: the database is closed", self.file)));
        };
        act(database, &self.table).map_err(|cause| failed(doing, &self.file, &cause))
    }
}

impl Persist for TablePosition {
    fn name(&self) -> String {
        let inner = self.0.inner();
        let file = inner.file.rsplit(['/', '\\']).next().unwrap_or_default();
        format!("table/{file}/{}", inner.table)
    }

    fn load(&self, state: Option<&[u8]>) -> Result<()> {
        let mut inner = self.0.inner();
        let Some(state) = state else {
            return inner.with("opening", |database, table| database.drop_table(table));
        };
        let file = inner.file.clone();
        let saved: i64 = std::str::from_utf8(state)
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| Error::msg(format!("the job has no position of {file}; {ADVICE}")))?;
        let last = inner.with("reading", |database, table| database.last_row(table))?;
        if last < saved {
            return Err(Error::msg(format!(
                "the table {} of {file} ends with row {last}, but the crawl had written {saved}: it was changed since; {ADVICE}",
                inner.table
            )));
        }
        inner.with("cutting", |database, table| database.cut(table, saved))?;
        self.0.last_row.store(saved, Ordering::Release);
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        self.0.check()?;
        Ok(Some(self.0.last_row.load(Ordering::Acquire).to_string().into_bytes()))
    }

    fn sync(&self) -> Result<()> {
        match self.0.log_file() {
            Some(log) => files::sync(&log).map_err(|cause| {
                // After a failed sync the system may drop the data and report success the next time.
                let error = explain("syncing", &self.0.file_name(), cause);
                self.0.inner().broken = Some(error.to_string());
                error
            }),
            // It is closed, or its mode makes each commit durable.
            None => Ok(()),
        }
    }
}
