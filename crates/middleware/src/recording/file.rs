//! The file of a recording. Lines are collected in memory and written in pieces, each of which can be decoded on its own: a frame of zstd, a
//! member of gzip, or plain lines. So the file can be cut and continued behind any piece.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flate2::write::GzEncoder;
use huntsman_crawler::{Error, Persist, Result, log};
use huntsman_files::{self as files, Lock};

use crate::sinks::{Boundary, Compression, FilePosition, Lines, Writer, explain, open_to_append};

/// Number of bytes of lines at which they are written. On recorded wikis, pieces of 4 MiB take two thirds of the space of pieces of 1 MiB;
/// the lines of one page alone take ten times as much, because the next page resembles it.
const PIECE: usize = 4 << 20;
/// The default level of zstd.
const LEVEL: i32 = 3;

/// The file of a recording. A new crawl and one that goes on both add to its end.
pub(super) struct RecordingFile {
    path: PathBuf,
    compression: Compression,
    waiting: Mutex<Waiting>,
    // Locked before `waiting`, so that the pieces are in the order of their lines.
    output: Mutex<Output>,
}

/// Lines that are not written yet.
#[derive(Default)]
struct Waiting {
    text: Vec<u8>,
    /// The number of the last line.
    last: u64,
    /// After a failed write no more lines are accepted.
    is_closed: bool,
}

#[derive(Default)]
struct Output {
    /// `None` until the file is begun, and after a failed write.
    writer: Option<Writer>,
    has_begun: bool,
    /// The position in the file of a job.
    position: Option<FilePosition>,
    /// Lines in the file, those of earlier runs included.
    lines: u64,
    failure: Option<String>,
    /// Holds the lock of the file.
    lock: Option<Lock>,
}

impl RecordingFile {
    /// Opens the file, or creates it; its folder must exist. Nothing in it is changed.
    ///
    /// # Errors
    /// The name says no format, the file cannot be opened, or another crawl writes to it.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let shown = path.display();
        let compression = compression_of(path)?;
        let opening = |cause: io::Error| explain("opening", &shown.to_string(), cause);
        let file = files::open_append(path).map_err(opening)?;
        if !file.metadata().map_err(opening)?.is_file() {
            return Err(Error::usage(format!("{shown}: a recording needs a regular file")));
        }
        // Elsewhere the lock of one handle would keep the other ones from writing.
        let lock = match cfg!(unix) {
            true => Lock::exclusive_if_supported(file),
            false => Ok(Lock::without(file)),
        };
        let Ok(lock) = lock else {
            return Err(Error::usage(format!("{shown}: another crawl is writing this recording")));
        };
        let output = Output { lock: Some(lock), ..Output::default() };
        Ok(Self {
            path: path.to_owned(),
            compression,
            waiting: Mutex::new(Waiting::default()),
            output: Mutex::new(output),
        })
    }

    /// Finds the end of what the file has already. A file of a job is cut behind its last commit; of another one, an incomplete end that a
    /// crash left is removed. Does nothing if it was called before.
    ///
    /// # Errors
    /// The file is damaged, is not a recording, or cannot be read.
    pub(super) fn begin(&self, belongs_to_job: bool, saved: Option<&[u8]>) -> Result<()> {
        let mut output = self.output();
        if output.has_begun {
            return Ok(());
        }
        let name = self.path.display().to_string();
        let opening = |cause: io::Error| explain("opening", &name, cause);
        let saved = saved.map(|saved| parse(saved, &name)).transpose()?;
        let lines = match &saved {
            Some((lines, position)) => {
                let at = FilePosition::new(&self.path)?;
                at.load(Some(position))?;
                *lines
            }
            None => self.whole_lines()?,
        };
        let file = files::open_write(&self.path).map_err(opening)?;
        let writer = Writer::new(file, Compression::None).map_err(opening)?;
        if belongs_to_job {
            // A repaired file is a new one, so this handle is opened after the repair.
            let position = FilePosition::new(&self.path)?;
            position.set(writer.end().unwrap_or(0));
            output.position = Some(position);
        }
        output.writer = Some(writer);
        output.has_begun = true;
        output.lines = lines;
        self.waiting().last = lines;
        Ok(())
    }

    /// The number of lines of a file that no job has the position of, after its repair.
    fn whole_lines(&self) -> Result<u64> {
        let name = self.path.display().to_string();
        let opening = |cause: io::Error| explain("opening", &name, cause);
        let mut head = Vec::new();
        let file = File::open(&self.path).map_err(opening)?;
        file.take(self.magic().len() as u64).read_to_end(&mut head).map_err(opening)?;
        if head.is_empty() {
            return Ok(0);
        }
        // A power cut leaves zeros in the place of what was not synced.
        let is_unwritten = head.iter().all(|byte| *byte == 0);
        if !self.magic().starts_with(&head) && !is_unwritten {
            return Err(Error::usage(format!("{name} is not a recording of a crawl: choose another name")));
        }
        let mut counted = CountedLines::default();
        open_to_append(&self.path, self.compression, &mut counted).map_err(opening)?;
        if counted.count > 0 {
            log::warn!(file = %name, "the file has {} responses already; those of this crawl follow", counted.count);
        }
        Ok(counted.count)
    }

    /// The first bytes of every file of this format.
    fn magic(&self) -> &'static [u8] {
        match self.compression {
            Compression::None => b"{\"n\":",
            Compression::Gzip => &[0x1f, 0x8b],
            Compression::Zstd => &[0x28, 0xb5, 0x2f, 0xfd],
        }
    }

    /// Adds a line, which `make` writes with its number and without a line break. Returns whether enough lines wait to be written.
    ///
    /// # Errors
    /// The error of `make`; then there is no line.
    pub(super) fn push(&self, make: impl FnOnce(u64, &mut Vec<u8>) -> Result<()>) -> Result<bool> {
        let mut waiting = self.waiting();
        if waiting.is_closed {
            return Ok(false);
        }
        let (start, number) = (waiting.text.len(), waiting.last + 1);
        if let Err(error) = make(number, &mut waiting.text) {
            waiting.text.truncate(start);
            return Err(error);
        }
        waiting.text.push(b'\n');
        waiting.last = number;
        Ok(waiting.text.len() >= PIECE)
    }

    /// Writes the lines that wait. After a failure nothing more is written: a file with a gap is worse than one that ends early.
    pub(super) fn write_out(&self) {
        self.write_into(&mut self.output());
    }

    fn write_into(&self, output: &mut Output) {
        let Some(writer) = &mut output.writer else { return };
        let (text, last) = {
            let mut waiting = self.waiting();
            (std::mem::take(&mut waiting.text), waiting.last)
        };
        if text.is_empty() {
            return;
        }
        match self.compressed(text).and_then(|piece| writer.write(&piece, b"")) {
            Ok(()) => {
                output.lines = last;
                if let (Some(position), Some(end)) = (&output.position, writer.end()) {
                    position.set(end);
                }
            }
            Err(cause) => {
                self.fail(output, explain("writing", &self.path.display().to_string(), cause).to_string());
            }
        }
    }

    /// Stops the recording.
    fn fail(&self, output: &mut Output, why: String) {
        log::error!("{why}; the recording ends here");
        output.writer = None;
        output.has_begun = true;
        if let Some(position) = &output.position {
            position.fail();
        }
        output.failure = Some(why);
        let mut waiting = self.waiting();
        waiting.is_closed = true;
        waiting.text = Vec::new();
    }

    /// Begins the file of a crawl without a job, at the start of the crawl.
    pub(super) fn begin_without_job(&self) {
        if let Err(error) = self.begin(false, None) {
            self.fail(&mut self.output(), error.to_string());
        }
    }

    fn compressed(&self, text: Vec<u8>) -> io::Result<Vec<u8>> {
        match self.compression {
            Compression::None => Ok(text),
            Compression::Gzip => {
                let mut out = GzEncoder::new(Vec::new(), flate2::Compression::default());
                out.write_all(&text)?;
                out.finish()
            }
            Compression::Zstd => {
                let mut packer = zstd::bulk::Compressor::new(LEVEL)?;
                packer.include_checksum(true)?;
                packer.compress(&text)
            }
        }
    }

    /// Why the recording stopped.
    pub(super) fn failure(&self) -> Option<String> {
        self.output().failure.clone()
    }

    /// Whether the recording stopped.
    pub(super) fn has_failed(&self) -> bool {
        self.waiting().is_closed
    }

    /// Number of lines so far, those of earlier runs included.
    pub(super) fn lines(&self) -> u64 {
        self.waiting().last
    }

    /// Writes what waits, and returns what a job needs to go on: the number of lines, and the position behind them.
    pub(super) fn save(&self) -> Result<Option<Vec<u8>>> {
        let mut output = self.output();
        self.write_into(&mut output);
        if let Some(why) = &output.failure {
            return Err(Error::msg(why.clone()));
        }
        let Some(position) = &output.position else { return Ok(None) };
        let saved = position.save()?;
        Ok(saved.map(|position| [output.lines.to_string().as_bytes(), b" ", &position].concat()))
    }

    /// Makes durable what was written.
    pub(super) fn sync(&self) -> Result<()> {
        let mut output = self.output();
        let synced = output.writer.as_ref().map_or(Ok(()), Writer::sync);
        synced.map_err(|cause| {
            let error = explain("syncing", &self.path.display().to_string(), cause);
            // After a failed sync the system may drop the data and report success the next time.
            self.fail(&mut output, error.to_string());
            error
        })
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RecordingFile {
    fn drop(&mut self) {
        // An empty file is no recording, and was perhaps created only to check that it can be.
        if std::fs::metadata(&self.path).is_ok_and(|found| found.len() == 0) {
            let _ = files::remove_file(&self.path);
        }
        self.output().lock = None;
    }
}

impl std::fmt::Debug for RecordingFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordingFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The compression by the name of the file.
fn compression_of(path: &Path) -> Result<Compression> {
    let name = path.to_string_lossy();
    let plain = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    if !plain.ends_with(".jsonl") {
        return Err(Error::usage(format!(
            "{name}: the name of a recording ends with .jsonl.zst, .jsonl.gz or .jsonl"
        )));
    }
    Ok(Compression::of_name(&name))
}

/// Splits what a job saved into the number of lines and the position.
fn parse<'a>(saved: &'a [u8], name: &str) -> Result<(u64, &'a [u8])> {
    let parts = || {
        let space = memchr::memchr(b' ', saved)?;
        Some((std::str::from_utf8(&saved[..space]).ok()?.parse().ok()?, &saved[space + 1..]))
    };
    parts()
        .ok_or_else(|| Error::msg(format!("the job has no position of {name}; start it anew with --fresh")))
}

/// Lines, counted.
#[derive(Default)]
struct CountedLines {
    lines: Lines,
    count: u64,
}

impl Boundary for CountedLines {
    fn feed(&mut self, bytes: &[u8]) {
        self.count += memchr::memchr_iter(b'\n', bytes).count() as u64;
        self.lines.feed(bytes);
    }

    fn end(&self) -> u64 {
        self.lines.end()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use flate2::read::MultiGzDecoder;

    use super::*;

    const NAMES: [&str; 3] = ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst"];

    fn begun(path: &Path) -> RecordingFile {
        let file = RecordingFile::open(path).unwrap();
        file.begin(false, None).unwrap();
        file
    }

    fn add(file: &RecordingFile, lines: u64) {
        for _ in 0..lines {
            file.push(|n, out| Ok(write!(out, "{{\"n\":{n},\"body\":\"{}\"}}", "x".repeat(100))?)).unwrap();
        }
    }

    fn text(path: &Path) -> String {
        let bytes = fs::read(path).unwrap();
        let mut text = String::new();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text).map(drop).unwrap(),
            Some("zst") => text = String::from_utf8(zstd::decode_all(&bytes[..]).unwrap()).unwrap(),
            _ => text = String::from_utf8(bytes).unwrap(),
        }
        text
    }

    /// The numbers of the lines, each of which must be whole.
    fn numbers(path: &Path) -> Vec<u64> {
        let number =
            |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["n"].as_u64().unwrap();
        text(path).lines().map(number).collect()
    }

    #[test]
    fn what_a_job_did_not_commit_is_cut_off_and_the_rest_follows_in_whole_pieces() {
        for name in NAMES {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(name);
            let file = RecordingFile::open(&path).unwrap();
            file.begin(true, None).unwrap();
            add(&file, 3);
            file.save().unwrap().unwrap();
            add(&file, 2);
            let saved = file.save().unwrap().unwrap();
            file.sync().unwrap();
            assert_eq!(numbers(&path), [1, 2, 3, 4, 5], "{name}: readable while it is written");
            // These are written and not committed; then the process is killed in the middle of a write.
            add(&file, 4);
            file.write_out();
            drop(file);
            let whole = fs::read(&path).unwrap();
            for kept in [whole.len(), whole.len() - 1, whole.len() - 30] {
                fs::write(&path, &whole[..kept]).unwrap();
                let file = RecordingFile::open(&path).unwrap();
                file.begin(true, Some(&saved)).unwrap();
                assert_eq!(file.lines(), 5);
                add(&file, 1);
                file.save().unwrap();
                drop(file);
                assert_eq!(numbers(&path), [1, 2, 3, 4, 5, 6], "{name}, {kept} bytes");
            }
        }
    }

    #[test]
    fn without_a_position_a_torn_end_is_repaired_and_no_whole_line_is_lost() {
        for name in NAMES {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(name);
            let file = begun(&path);
            add(&file, 3);
            file.write_out();
            add(&file, 3);
            file.write_out();
            drop(file);
            let whole = fs::read(&path).unwrap();
            for cut in [0, 1, 9] {
                fs::write(&path, &whole[..whole.len() - cut]).unwrap();
                let file = begun(&path);
                let there = file.lines();
                assert!((3..=6).contains(&there) && (cut > 0 || there == 6), "{name}, cut {cut}: {there}");
                add(&file, 1);
                file.write_out();
                drop(file);
                assert_eq!(numbers(&path), (1..=there + 1).collect::<Vec<_>>(), "{name}, cut {cut}");
            }
        }
    }

    #[test]
    fn a_file_that_a_power_cut_left_empty_is_begun_and_a_foreign_one_is_left_alone() {
        for name in NAMES {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(name);
            fs::write(&path, [0; 600]).unwrap();
            let file = begun(&path);
            add(&file, 2);
            file.write_out();
            drop(file);
            assert_eq!(numbers(&path), [1, 2], "{name}");
            fs::write(&path, "notes of mine").unwrap();
            let error = RecordingFile::open(&path).unwrap().begin(true, None).unwrap_err();
            assert!(error.is_usage() && error.to_string().contains("not a recording"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "notes of mine");
        }
    }

    #[test]
    fn a_wrong_name_place_or_second_writer_is_an_error_at_once() {
        let folder = tempfile::tempdir().unwrap();
        for (name, what) in
            [("a.json", ".jsonl.zst"), ("a.zst", ".jsonl.zst"), ("none/a.jsonl", "make its folder")]
        {
            let error = RecordingFile::open(&folder.path().join(name)).unwrap_err().to_string();
            assert!(error.contains(what) && error.contains(name), "{error}");
        }
        let path = folder.path().join("a.jsonl");
        let first = RecordingFile::open(&path).unwrap();
        if cfg!(unix) {
            let error = RecordingFile::open(&path).unwrap_err().to_string();
            assert!(error.contains("another crawl"), "{error}");
        }
        drop(first);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "an empty file is not left behind");
    }

    #[test]
    fn enough_lines_are_written_at_once_and_a_line_that_fails_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl.zst");
        let file = begun(&path);
        let large = |n, out: &mut Vec<u8>| {
            write!(out, "{{\"n\":{n}}}").unwrap();
            out.resize(PIECE / 2, b' ');
            Ok(())
        };
        assert!(!file.push(large).unwrap());
        let failed = file.push(|_, out| {
            out.extend_from_slice(b"half");
            Err(Error::msg("as asked"))
        });
        assert!(failed.is_err());
        assert!(
            file.push(|n, out| {
                write!(out, "{{\"n\":{n}}}").unwrap();
                out.resize(out.len() + PIECE / 2, b' ');
                Ok(())
            })
            .unwrap()
        );
        file.write_out();
        assert_eq!(numbers(&path), [1, 2]);
    }
}
