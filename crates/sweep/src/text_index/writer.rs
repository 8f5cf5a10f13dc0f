//! Adds pages: to the journal at once, and to the index on a thread that commits from time to time.

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

/// Capacity of the queue of pages to the thread.
const WAITING: usize = 32;
/// A commit is due after this many bytes of text, which tantivy may hold in its own queue until then, or after this
/// time.
const COMMIT_BYTES: usize = 16 << 20;
const COMMIT_AGE: Duration = Duration::from_secs(30);
/// Memory that tantivy may use for pages that it has not written, in bytes.
const MEMORY: usize = 50_000_000;

/// Adds pages to an index. Tantivy's lock makes it the only writer of the index.
#[derive(Debug)]
pub(super) struct Writer {
    adding: Mutex<Adding>,
    progress: Arc<Progress>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Adding {
    journal: Journal,
    /// Bytes of text since the last commit was requested.
    bytes: usize,
    /// When the last commit was requested.
    requested: Instant,
    /// `None` after the writer was closed.
    commands: Option<SyncSender<Command>>,
}

/// A command to the thread.
#[derive(Debug)]
enum Command {
    /// Adds a page.
    Add(Prepared),
    /// Commits all pages added so far, and removes the files of the journal up to this number.
    Commit(u64),
    /// Waits for merges, then ends the thread.
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
        let (commands, received) = sync_channel(WAITING);
        let progress = Arc::new(Progress::default());
        let seen = Arc::clone(&progress);
        let spawned = thread::Builder::new().name("text-index".to_owned());
        let thread = spawned.spawn(move || thread.run(&received, &seen)).map_err(io)?;
        let adding = Adding { journal, bytes: 0, requested: Instant::now(), commands: Some(commands) };
        Ok(Self { adding: Mutex::new(adding), progress, thread: Mutex::new(Some(thread)) })
    }

    fn adding(&self) -> MutexGuard<'_, Adding> {
        self.adding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of commits so far.
    pub(super) fn commits(&self) -> u64 {
        self.progress.state().commits
    }

    /// Adds a page, which replaces the page with the same URL. Blocks if pages are added faster than they are written.
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
        adding.send(Command::Add(page));
        if adding.bytes >= COMMIT_BYTES || adding.requested.elapsed() >= COMMIT_AGE {
            self.request_commit(&mut adding)?;
        }
        Ok(())
    }

    /// Requests a commit of all pages added so far. Returns the number of the journal's last file, which is committed
    /// then; `None` if no page was added since the writer was opened.
    fn request_commit(&self, adding: &mut Adding) -> Result<Option<u64>, TextIndexError> {
        (adding.bytes, adding.requested) = (0, Instant::now());
        match adding.journal.rotate() {
            Ok(Some(number)) => adding.send(Command::Commit(number)),
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

    /// Returns the first error so far. With `from_power_cuts`, syncs the journal, so that added pages survive a power
    /// cut.
    pub(super) fn sync(&self, from_power_cuts: bool) -> Result<(), TextIndexError> {
        self.failed()?;
        if !from_power_cuts {
            return Ok(());
        }
        let adding = self.adding();
        let path = adding.journal_directory();
        adding.journal.sync().map_err(|cause| TextIndexError::Io { path, cause })
    }

    /// Waits until all added pages can be found.
    pub(super) fn commit(&self) -> Result<(), TextIndexError> {
        let Some(last) = self.request_commit(&mut self.adding())? else { return self.failed() };
        let mut state = self.progress.state();
        while state.committed < last && state.failure.is_none() {
            state = self.progress.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        self.failed()
    }

    /// Commits, waits for merges, and releases the lock of the index.
    pub(super) fn close(&self) -> Result<(), TextIndexError> {
        let committed = self.commit();
        self.end(Some(Command::Close));
        committed.and_then(|()| self.failed())
    }

    fn end(&self, last: Option<Command>) {
        {
            let mut adding = self.adding();
            if let Some(last) = last {
                adding.send(last);
            }
            adding.commands = None;
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

    fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // If the thread has ended, it has stored its error.
            let _ = commands.send(command);
        }
    }
}

/// The thread that writes with tantivy.
struct Thread {
    directory: PathBuf,
    writer: IndexWriter,
    fields: Fields,
}

impl Thread {
    fn run(mut self, commands: &Receiver<Command>, progress: &Progress) {
        let guard = PanicGuard(progress);
        while let Ok(command) = commands.recv() {
            let done = match command {
                Command::Add(page) => self.add(page),
                Command::Commit(number) => self.commit(number).map(|()| {
                    progress.change(|state| {
                        state.committed = number;
                        state.commits += 1;
                    });
                }),
                Command::Close => {
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
        drop(guard);
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

    /// Commits, and removes the files of the journal up to a number.
    fn commit(&mut self, number: u64) -> Result<(), TextIndexError> {
        self.writer.commit().map_err(|error| TextIndexError::of(&self.directory, &error))?;
        let io = |cause| TextIndexError::Io { path: self.directory.clone(), cause };
        // A commit ends with a rename of its list of files, which survives a power cut only after a sync of the
        // directory: the journal must stay until then.
        huntsman_files::sync_dir(inner(&self.directory)).map_err(io)?;
        Journal::forget(&self.directory, number).map_err(io)
    }

    /// Commits the pages that are left in the journal.
    fn recover(&mut self) -> Result<(), TextIndexError> {
        let io = |cause| TextIndexError::Io { path: self.directory.clone(), cause };
        for (number, path) in Journal::files(&self.directory).map_err(io)? {
            let read = Journal::read(&path, |record| match Prepared::from_record(record) {
                Some(page) => self.add(page),
                // Its checksum is right, so another program wrote it: no page is lost.
                None => Ok(()),
            });
            read.map_err(|error| error.at(&path))?;
            self.commit(number)?;
        }
        Ok(())
    }
}

/// Reports a panic of the thread as a failure, so that no caller waits for it forever.
struct PanicGuard<'p>(&'p Progress);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.change(|state| state.failure = Some("the index is damaged".to_owned()));
        }
    }
}
