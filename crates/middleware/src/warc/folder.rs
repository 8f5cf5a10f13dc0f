//! The files of a folder: which one is written, where it stands, and what crashes left.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use huntsman_crawler::{Error, Result, Timestamp};
use huntsman_files::{self as files, Lock};
use huntsman_warc::{Options, Record, WarcReader};
use serde::{Deserialize, Serialize};

use super::shown;

const ADVICE: &str = "restore it from a copy, or start the job anew with --fresh";

/// Writes members to files one after the other.
#[derive(Debug)]
pub(super) struct WarcFolder {
    dir: PathBuf,
    name: String,
    max_bytes: u64,
    options: Options,
    info: Vec<(&'static str, String)>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_resumed: bool,
    stamp: Option<String>,
    number: u32,
    open: Option<OpenFile>,
    /// The error of a write; nothing is written after it.
    failure: Option<String>,
}

#[derive(Debug)]
struct OpenFile {
    name: String,
    file: Arc<Lock>,
    /// Bytes of whole records.
    written: u64,
}

/// The position that a job keeps.
#[derive(Debug, Serialize, Deserialize)]
struct Position {
    stamp: String,
    number: u32,
    /// Name and length of the open file; none if it was finished.
    open: Option<(String, u64)>,
}

impl WarcFolder {
    pub(super) fn new(
        dir: PathBuf,
        name: String,
        max_bytes: u64,
        options: Options,
        info: Vec<(&'static str, String)>,
    ) -> Self {
        Self { dir, name, max_bytes, options, info, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn explain(&self, doing: &str, name: &str, cause: io::Error) -> Error {
        let advice = files::no_room(&cause).map(|advice| format!(" ({advice})")).unwrap_or_default();
        Error::from(cause).context(format!("{doing} {}{advice}", shown(&self.dir.join(name))))
    }

    /// Called once, before the first record: completes files that a killed crawl left, and shows the files of earlier crawls to `visit`, unless a job goes on,
    /// which knows them.
    pub(super) fn begin(&self, now: Timestamp, mut visit: impl FnMut(&mut WarcReader<File>)) -> Result<()> {
        let mut state = self.lock();
        if state.stamp.is_none() {
            state.stamp = Some(stamp(now));
        }
        for name in self.names(".warc.gz.open")? {
            let is_ours = state.open.as_ref().is_some_and(|open| open.name == name);
            if !is_ours {
                self.complete(&name)?;
            }
        }
        if !state.is_resumed {
            for name in self.names(".warc.gz")? {
                let file = File::open(self.dir.join(&name))
                    .map_err(|cause| self.explain("reading", &name, cause))?;
                visit(&mut WarcReader::new(file));
            }
        }
        Ok(())
    }

    /// The names of files with an ending, in order.
    fn names(&self, ending: &str) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            names.extend(name.to_str().filter(|name| name.ends_with(ending)).map(str::to_owned));
        }
        names.sort();
        Ok(names)
    }

    /// Completes a file that a killed crawl left: what stands behind its last whole record is cut off. A file that another crawl writes is left
    /// alone.
    fn complete(&self, name: &str) -> Result<()> {
        let path = self.dir.join(name);
        let explain = |cause| self.explain("completing", name, cause);
        let Ok(mut file) = Lock::exclusive(files::open_write(&path).map_err(explain)?) else { return Ok(()) };
        let mut whole = 0;
        let mut reader = WarcReader::new(&mut *file);
        while let Ok(Some(_)) = reader.next_head() {
            let Ok(Some(span)) = reader.finish() else { break };
            whole = span.offset + span.length;
        }
        if whole == 0 {
            return files::remove_file(&path).map_err(explain);
        }
        file.set_len(whole).and_then(|()| files::sync(&file)).map_err(explain)?;
        files::rename(&path, self.dir.join(final_name(name))).map_err(explain)
    }

    /// Writes members that belong together at the end of the open file.
    pub(super) fn append(&self, members: &[u8], now: Timestamp) -> Result<()> {
        let mut state = self.lock();
        if let Some(failure) = &state.failure {
            return Err(Error::msg(failure.clone()));
        }
        let appended = self.append_to(&mut state, members, now);
        if let Err(error) = &appended {
            state.failure = Some(error.to_string());
        }
        appended
    }

    fn append_to(&self, state: &mut State, members: &[u8], now: Timestamp) -> Result<()> {
        if state.open.as_ref().is_some_and(|open| open.written >= self.max_bytes) {
            self.finish_open(state)?;
        }
        if state.open.is_none() {
            self.open_next(state, now)?;
        }
        let open = state.open.as_mut().expect("a file was just opened");
        open.append(members).map_err(|cause| self.explain("writing", &open.name, cause))
    }

    fn open_next(&self, state: &mut State, now: Timestamp) -> Result<()> {
        let stamp = state.stamp.get_or_insert_with(|| stamp(now));
        loop {
            let name = format!("{}-{stamp}-{:05}.warc.gz", self.name, state.number);
            state.number += 1;
            let open = format!("{name}.open");
            if self.dir.join(&name).exists() {
                continue;
            }
            let file = match files::create_new(self.dir.join(&open)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file.map_err(|cause| self.explain("creating", &open, cause))?,
            };
            // Another crawl leaves a file alone that is locked.
            let file = Lock::exclusive(file).map_err(|cause| self.explain("locking", &open, cause.into()))?;
            let fields: Vec<(&str, &str)> =
                self.info.iter().map(|(field, value)| (*field, value.as_str())).collect();
            let info = Record::info(&name, now.to_rfc3339(), &fields).to_member(self.options);
            let mut file = OpenFile { name: open, file: Arc::new(file), written: 0 };
            file.append(&info).map_err(|cause| self.explain("writing", &file.name, cause))?;
            state.open = Some(file);
            return Ok(());
        }
    }

    fn finish_open(&self, state: &mut State) -> Result<()> {
        let Some(open) = state.open.take() else { return Ok(()) };
        let (from, to) = (self.dir.join(&open.name), self.dir.join(final_name(&open.name)));
        let finished = files::sync(&open.file).and_then(|()| files::rename(from, to));
        finished.map_err(|cause| self.explain("finishing", &open.name, cause))
    }

    /// Gives the open file its name: the crawl has ended.
    pub(super) fn finish(&self) -> Result<()> {
        self.finish_open(&mut self.lock())
    }

    /// Goes on at the position that a job has saved.
    pub(super) fn resume(&self, saved: Option<&[u8]>) -> Result<()> {
        let Some(saved) = saved else { return Ok(()) };
        let Position { stamp, number, open } = serde_json::from_slice(saved)?;
        let mut state = self.lock();
        for name in self.names(".warc.gz")?.into_iter().chain(self.names(".warc.gz.open")?) {
            // Files that were begun after the commit.
            let later = name.strip_prefix(&format!("{}-{stamp}-", self.name)).and_then(|rest| rest.get(..5));
            if later.and_then(|digits| digits.parse::<u32>().ok()).is_some_and(|later| later >= number) {
                let path = self.dir.join(&name);
                files::remove_file(path).map_err(|cause| self.explain("removing", &name, cause))?;
            }
        }
        if let Some((name, written)) = open {
            state.open = Some(self.reopen(&name, written)?);
        }
        (state.stamp, state.number, state.is_resumed) = (Some(stamp), number, true);
        Ok(())
    }

    /// Opens the file that was open at the last commit, which may have been finished since.
    fn reopen(&self, name: &str, written: u64) -> Result<OpenFile> {
        let path = self.dir.join(name);
        let explain = |cause| self.explain("going on with", name, cause);
        let finished = self.dir.join(final_name(name));
        if !path.exists() && finished.exists() {
            files::rename(&finished, &path).map_err(explain)?;
        }
        if !path.exists() {
            return Err(Error::msg(format!("{} is missing: {ADVICE}", shown(&finished))));
        }
        let file = Lock::exclusive(files::open_write(&path).map_err(explain)?);
        let file = file.map_err(|cause| explain(cause.into()))?;
        let length = file.metadata().map_err(explain)?.len();
        if length < written {
            return Err(Error::msg(format!(
                "{} has {length} bytes, but the crawl had written {written}: it was changed since; {ADVICE}",
                shown(&path)
            )));
        }
        file.set_len(written).map_err(explain)?;
        Ok(OpenFile { name: name.to_owned(), file: Arc::new(file), written })
    }

    /// The position for the job; `None` before the first record.
    pub(super) fn position(&self) -> Result<Option<Vec<u8>>> {
        let state = self.lock();
        if let Some(failure) = &state.failure {
            return Err(Error::msg(failure.clone()));
        }
        let Some(stamp) = state.stamp.clone().filter(|_| state.number > 0) else { return Ok(None) };
        let open = state.open.as_ref().map(|open| (open.name.clone(), open.written));
        Ok(Some(serde_json::to_vec(&Position { stamp, number: state.number, open })?))
    }

    /// Makes the open file durable. Others were made so when they were finished.
    pub(super) fn sync(&self) -> Result<()> {
        let open = self.lock().open.as_ref().map(|open| (open.name.clone(), Arc::clone(&open.file)));
        let Some((name, file)) = open else { return Ok(()) };
        files::sync(&file).map_err(|cause| {
            let error = self.explain("syncing", &name, cause);
            // After a failed sync the system may drop the data and report success the next time.
            self.lock().failure = Some(error.to_string());
            error
        })
    }
}

impl OpenFile {
    /// Writes at the end of the whole records. What cannot be written whole is taken away.
    fn append(&mut self, members: &[u8]) -> io::Result<()> {
        let mut file = &**self.file;
        let written = file.seek(SeekFrom::Start(self.written)).and_then(|_| file.write_all(members));
        match written {
            Ok(()) => self.written += members.len() as u64,
            // A file that cannot be cut is cut when the job goes on.
            Err(_) => drop(file.set_len(self.written)),
        }
        written
    }
}

/// The name of a file that is whole.
fn final_name(open: &str) -> &str {
    open.strip_suffix(".open").unwrap_or(open)
}

/// The time in the name of a file: 14 digits.
fn stamp(now: Timestamp) -> String {
    now.to_rfc3339().chars().filter(char::is_ascii_digit).take(14).collect()
}
