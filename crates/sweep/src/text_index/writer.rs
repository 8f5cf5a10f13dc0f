//! Adds pages: to the journal at once, and to the index by a thread that commits from time to time.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tantivy::indexer::IndexWriterOptions;
use tantivy::{Index, IndexWriter, TantivyDocument, Term};

use super::directory::inner;
use super::journal::Journal;
use super::page::Prepared;
use super::{Fields, TextIndexError};

/// Pages on their way to the thread.
const WAITING: usize = 32;
/// A commit is due after so many bytes of text, which tantivy may have in its own queue until then, or so long.
const COMMIT_BYTES: usize = 16 << 20;
const COMMIT_AGE: Duration = Duration::from_secs(30);
/// What tantivy may take for pages that it has not written.
const MEMORY: usize = 50_000_000;

/// Adds pages to an index; the only one that does, by tantivy's lock.
#[derive(Debug)]
pub(super) struct Writer {
    adding: Mutex<Adding>,
    progress: Arc<Progress>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Adding {
    journal: Journal,
    /// Of text, since the last commit was ordered.
    bytes: usize,
    ordered: Instant,
    /// `None` when it is closed.
    orders: Option<SyncSender<Order>>,
}

#[derive(Debug)]
enum Order {
    Add(Prepared),
    /// The journal ends with this file: what came before is committed, then the file is removed.
    Commit(u64),
    /// Merges are waited for, and it is the end.
    Close,
}

/// The progress of the thread.
#[derive(Debug, Default)]
struct Progress {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    committed: u64,
    commits: u64,
    failure: Option<String>,
}

impl Progress {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }
}

impl Writer {
    /// Takes the lock of the index, and commits what an earlier writer left in the journal.
    pub(super) fn open(directory: &Path, index: &Index, fields: Fields) -> Result<Self, TextIndexError> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(1)
            .num_merge_threads(1)
            .memory_budget_per_thread(MEMORY)
            .build();
        let writer =
            index.writer_with_options(options).map_err(|error| TextIndexError::of(directory, &error))?;
        let mut thread = Thread { directory: directory.to_owned(), writer, fields };
        thread.recover()?;
        let io = |cause| TextIndexError::Io { path: directory.to_owned(), cause };
        let journal = Journal::new(directory).map_err(io)?;
        let (orders, received) = sync_channel(WAITING);
        let progress = Arc::new(Progress::default());
        let seen = Arc::clone(&progress);
        let spawned = thread::Builder::new().name("text-index".to_owned());
        let thread = spawned.spawn(move || thread.run(&received, &seen)).map_err(io)?;
        let adding = Adding { journal, bytes: 0, ordered: Instant::now(), orders: Some(orders) };
        Ok(Self { adding: Mutex::new(adding), progress, thread: Mutex::new(Some(thread)) })
    }

    fn adding(&self) -> MutexGuard<'_, Adding> {
        self.adding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of commits so far.
    pub(super) fn commits(&self) -> u64 {
        self.progress.state().commits
    }

    /// Adds a page, in place of the one with its address. Waits where more comes than is written.
    pub(super) fn add(&self, page: Prepared) -> Result<(), TextIndexError> {
        self.failed()?;
        let mut adding = self.adding();
        let directory = adding.journal_directory();
        if let Err(cause) = adding.journal.append(&page.record) {
            let error = TextIndexError::Io { path: directory, cause };
            // A record after an incomplete one would not be read.
            self.progress.change(|state| state.failure = Some(error.to_string()));
            return Err(error);
        }
        adding.bytes += page.body.len() + page.record.len();
        adding.send(Order::Add(page));
        if adding.bytes >= COMMIT_BYTES || adding.ordered.elapsed() >= COMMIT_AGE {
            self.order_commit(&mut adding)?;
        }
        Ok(())
    }

    /// The number up to which everything is committed then; none if nothing was added since the last time and nothing ever was.
    fn order_commit(&self, adding: &mut Adding) -> Result<Option<u64>, TextIndexError> {
        (adding.bytes, adding.ordered) = (0, Instant::now());
        match adding.journal.rotate() {
            Ok(Some(number)) => adding.send(Order::Commit(number)),
            Ok(None) => {}
            Err(cause) => {
                let error = TextIndexError::Io { path: adding.journal_directory(), cause };
                // After a failed sync the system may drop the data.
                self.progress.change(|state| state.failure = Some(error.to_string()));
                return Err(error);
            }
        }
        Ok(adding.journal.last())
    }

    /// Whether everything went well so far; with `safe`, what was added is safe from a loss of power.
    pub(super) fn sync(&self, safe: bool) -> Result<(), TextIndexError> {
        self.failed()?;
        if !safe {
            return Ok(());
        }
        let adding = self.adding();
        let path = adding.journal_directory();
        adding.journal.sync().map_err(|cause| TextIndexError::Io { path, cause })
    }

    /// Waits until what was added can be found.
    pub(super) fn commit(&self) -> Result<(), TextIndexError> {
        let Some(last) = self.order_commit(&mut self.adding())? else { return self.failed() };
        let mut state = self.progress.state();
        while state.committed < last && state.failure.is_none() {
            state = self.progress.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        self.failed()
    }

    /// Commits, waits for merges, and gives the index to others.
    pub(super) fn close(&self) -> Result<(), TextIndexError> {
        let committed = self.commit();
        self.end(Some(Order::Close));
        committed.and_then(|()| self.failed())
    }

    fn end(&self, last: Option<Order>) {
        {
            let mut adding = self.adding();
            if let Some(last) = last {
                adding.send(last);
            }
            adding.orders = None;
        }
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the thread is reported as a failure.
            let _ = thread.join();
        }
    }

    fn failed(&self) -> Result<(), TextIndexError> {
        match &self.progress.state().failure {
            Some(why) => Err(TextIndexError::Failed(why.clone())),
            None => Ok(()),
        }
    }
}

/// Uncommitted pages stay in the journal.
impl Drop for Writer {
    fn drop(&mut self) {
        self.end(None);
    }
}

impl Adding {
    fn journal_directory(&self) -> PathBuf {
        self.journal.directory().to_owned()
    }

    fn send(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // A thread that ended has reported why.
            let _ = orders.send(order);
        }
    }
}

/// The thread that works with tantivy.
struct Thread {
    directory: PathBuf,
    writer: IndexWriter,
    fields: Fields,
}

impl Thread {
    fn run(mut self, orders: &Receiver<Order>, progress: &Progress) {
        let failing = Failing(progress);
        while let Ok(order) = orders.recv() {
            let done = match order {
                Order::Add(page) => self.add(page),
                Order::Commit(number) => self.commit(number).map(|()| {
                    progress.change(|state| {
                        state.committed = number;
                        state.commits += 1;
                    });
                }),
                Order::Close => {
                    let closed = self.writer.wait_merging_threads();
                    if let Err(error) = closed {
                        progress.change(|state| state.failure = Some(error.to_string()));
                    }
                    return;
                }
            };
            if let Err(error) = done {
                progress.change(|state| state.failure = Some(error.to_string()));
                return;
            }
        }
        drop(failing);
    }

    fn add(&mut self, page: Prepared) -> Result<(), TextIndexError> {
        let failed = |error: tantivy::TantivyError| TextIndexError::of(&self.directory, &error);
        self.writer.delete_term(Term::from_field_text(self.fields.url, &page.key));
        let mut document = TantivyDocument::default();
        document.add_text(self.fields.url, page.key);
        document.add_text(self.fields.body, page.body);
        document.add_bytes(self.fields.page, &page.record);
        self.writer.add_document(document).map_err(failed)?;
        Ok(())
    }

    /// Commits, and removes the journal up to a file.
    fn commit(&mut self, number: u64) -> Result<(), TextIndexError> {
        self.writer.commit().map_err(|error| TextIndexError::of(&self.directory, &error))?;
        let io = |cause| TextIndexError::Io { path: self.directory.clone(), cause };
        // A commit renames its list of files last, and only a sync of the directory makes that last: before it the journal must stay.
        huntsman_files::sync_dir(inner(&self.directory)).map_err(io)?;
        Journal::forget(&self.directory, number).map_err(io)
    }

    /// Commits what is left in the journal.
    fn recover(&mut self) -> Result<(), TextIndexError> {
        let io = |cause| TextIndexError::Io { path: self.directory.clone(), cause };
        for (number, path) in Journal::files(&self.directory).map_err(io)? {
            let read = Journal::read(&path, |record| match Prepared::from_record(record) {
                Some(page) => self.add(page),
                // By its checksum it is as it was written, so it was written by something else: no page is lost.
                None => Ok(()),
            });
            read.map_err(|error| error.at(&path))?;
            self.commit(number)?;
        }
        Ok(())
    }
}

/// Reports a panic of the thread as a failure, so that no caller waits for it forever.
struct Failing<'p>(&'p Progress);

impl Drop for Failing<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.change(|state| state.failure = Some("the index is damaged".to_owned()));
        }
    }
}
