//! DropLog: records every request that ended without a page, in `drops.jsonl`.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use huntsman_crawler::{Dropped, Error, Event, Observer, Persist, Result, log};
use huntsman_files as files;
use huntsman_text::urlparts::canonical_into;
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

use super::position::FilePosition;
use super::settled::settled_line;
use super::target::{Compression, Lines, Writer, explain, open_to_append};

/// Writes one JSON line for every dropped request, and one for every URL that was refused before it entered the queue,
/// however often it was refused.
///
/// Whether a link is too deep, on a `nofollow` page, or beyond the links of one page depends on the page: another page
/// may link to the same URL. Such records wait until the end of the crawl, and are not written if the URL was queued
/// after all. A queued URL is recorded either in this file or among the pages, never in both.
///
/// In a crawl that several processes share, a line `{"settled": ..}` says that the request of a record is settled for good.
///
/// Every line is complete; the lines of one page are flushed to the system before the next page is reported. Clones
/// write to the same file. Memory: 9 to 18 bytes per queued URL, as much for up to two million refused ones, and up to
/// 100,000 waiting records.
#[derive(Clone, Debug)]
pub struct DropLog(Arc<Mutex<Log>>);

#[derive(Debug)]
struct Log {
    name: String,
    writer: Option<Output>,
    buffer: Vec<u8>,
    /// Hashes of the URLs that were queued.
    queued: Hashes,
    /// Hashes of the URLs whose refusal was written. Two generations bound the memory: a URL may be written again after
    /// a million others.
    refused: [Hashes; 2],
    /// Refusals that depend on the page, by the hash of the URL.
    pending: HashMap<u64, String>,
    beyond: u64,
    failure: Option<String>,
    key: String,
    /// The position in a file that belongs to a job; `None` for other files.
    position: Option<FilePosition>,
}

type Hashes = HashSet<u64, foldhash::fast::RandomState>;

/// Maximum number of records that wait.
const MAX_PENDING: usize = 100_000;
/// Number of URLs in one generation of refusals.
const GENERATION: usize = 1_000_000;
/// Number of buffered bytes at which they are written.
const MAX_BUFFER: usize = 64 << 10;
/// Reasons that depend on the page on which a link was found.
const CONTEXTUAL: [&str; 4] = ["depth", "depth_guard", "nofollow", "links_cut"];

/// `Writer` with `Debug`.
struct Output(Writer);

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Out")
    }
}

impl DropLog {
    /// Creates a new file. Its folder must exist.
    ///
    /// # Errors
    /// The file exists or cannot be created; the error says what to do.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::open(path, "creating", files::create_new(path), Hashes::default())
    }

    /// Creates a file, or overwrites an existing one.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn overwrite(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::open(path, "creating", files::open_empty(path), Hashes::default())
    }

    /// Appends to a file, or creates it, for a crawl that is resumed: an incomplete last line is cut off, and URLs in
    /// the file are not recorded as refused again.
    ///
    /// # Errors
    /// The file cannot be read or opened.
    pub fn append(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = open_to_append(path, Compression::None, Lines::default()).map(|(file, _)| file);
        let known = match &file {
            Ok(_) => urls_of(path, "url")
                .map_err(|cause| explain("reading", &path.display().to_string(), cause))?,
            Err(_) => Hashes::default(),
        };
        Self::open(path, "opening", file, known)
    }

    /// Opens a file that belongs to a job: as [`DropLog::append`], but a resumed job cuts off lines that were written
    /// after its last commit. It must be given to the builder twice, as observer and with `persist`; nothing is written
    /// before the job has loaded its state. Refusals that wait for the end of the crawl are not part of the state: if
    /// the crawl is interrupted, those of its first part are not recorded.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn of_job(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let position = FilePosition::new(path)?;
        let log = Self::open(path, "opening", files::open_append(path), Hashes::default())?;
        log.log().position = Some(position);
        Ok(log)
    }

    fn open(path: &Path, doing: &str, file: std::io::Result<File>, known: Hashes) -> Result<Self> {
        let name = path.display().to_string();
        let writer = file
            .and_then(|file| Writer::new(file, Compression::None))
            .map_err(|cause| explain(doing, &name, cause))?;
        Ok(Self(Arc::new(Mutex::new(Log {
            name,
            writer: Some(Output(writer)),
            buffer: Vec::new(),
            queued: known,
            refused: Default::default(),
            pending: HashMap::new(),
            beyond: 0,
            failure: None,
            key: String::new(),
            position: None,
        }))))
    }

    /// Reads the URLs in a `pages.jsonl` of an earlier run: they are not recorded as refused.
    ///
    /// # Errors
    /// The file cannot be read; a missing file is not an error.
    pub fn pages(self, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        for field in ["url", "final_url"] {
            match urls_of(path, field) {
                Ok(known) => self.log().queued.extend(known),
                Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {}
                Err(cause) => return Err(explain("reading", &path.display().to_string(), cause)),
            }
        }
        Ok(self)
    }

    /// Writes and syncs the waiting records. The crawl calls this at its end.
    ///
    /// # Errors
    /// This or an earlier write failed: the file lacks records.
    pub fn finish(&self) -> Result<()> {
        let mut log = self.log();
        log.release();
        if let Some(Output(writer)) = &log.writer
            && let Err(cause) = writer.sync()
        {
            log.failure = Some(explain("syncing", &log.name, cause).to_string());
        }
        match &log.failure {
            Some(what) => Err(Error::msg(what.clone())),
            None => Ok(()),
        }
    }

    fn log(&self) -> std::sync::MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Persist for DropLog {
    fn name(&self) -> String {
        self.log().position.as_ref().map_or_else(String::new, Persist::name)
    }

    fn load(&self, state: Option<&[u8]>) -> Result<()> {
        let mut log = self.log();
        let Some(position) = log.position.clone() else { return Ok(()) };
        position.load(state)?;
        let name = log.name.clone();
        let path = Path::new(&name);
        let open = || -> std::io::Result<(Writer, Hashes)> {
            let (file, _) = open_to_append(path, Compression::None, Lines::default())?;
            Ok((Writer::new(file, Compression::None)?, urls_of(path, "url")?))
        };
        let (writer, known) = open().map_err(|cause| explain("opening", &name, cause))?;
        log.writer = Some(Output(writer));
        log.queued.extend(known);
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        let mut log = self.log();
        log.write_out();
        match &log.failure {
            Some(what) => Err(Error::msg(what.clone())),
            None => log.position.as_ref().map_or(Ok(None), Persist::save),
        }
    }

    fn sync(&self) -> Result<()> {
        let position = self.log().position.clone();
        position.as_ref().map_or(Ok(()), Persist::sync)
    }
}

impl Observer for DropLog {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::RequestScheduled { request } => {
                let mut log = self.log();
                let key = log.key_of(&request.url);
                log.is_queued(key);
            }
            Event::PageDelivered { request, .. } => {
                let mut log = self.log();
                // The target of a redirect was not queued under its own URL.
                let key = log.key_of(&request.url);
                log.is_queued(key);
                log.write_out();
            }
            Event::RequestDropped(dropped) => {
                let mut log = self.log();
                let key = log.key_of_text(&dropped.url);
                log.is_queued(key);
                log.line(dropped);
                log.write_out();
            }
            Event::RequestRefused(dropped) => self.log().refuse(dropped),
            Event::WorkSettled { work, delivered: false } => {
                let mut log = self.log();
                log.buffer.extend_from_slice(settled_line(work).as_bytes());
                log.write_out();
            }
            Event::EngineStopped => {
                // The error was logged, and `finish` returns it again.
                let _ = self.finish();
            }
            _ => {}
        }
    }
}

impl Log {
    fn key_of(&mut self, url: &Url) -> u64 {
        self.key.clear();
        canonical_into(url, &mut self.key);
        xxh3_64(self.key.as_bytes())
    }

    fn key_of_text(&mut self, url: &str) -> u64 {
        match Url::parse(url) {
            Ok(url) => self.key_of(&url),
            Err(_) => xxh3_64(url.as_bytes()),
        }
    }

    fn is_queued(&mut self, key: u64) {
        self.pending.remove(&key);
        self.queued.insert(key);
    }

    fn refuse(&mut self, dropped: &Dropped) {
        let key = self.key_of_text(&dropped.url);
        if self.queued.contains(&key) || self.refused.iter().any(|generation| generation.contains(&key)) {
            return;
        }
        if CONTEXTUAL.contains(&&*dropped.reason) {
            if self.pending.len() < MAX_PENDING {
                self.pending.entry(key).or_insert_with(|| json(dropped));
            } else if !self.pending.contains_key(&key) {
                self.beyond += 1;
            }
            return;
        }
        self.pending.remove(&key);
        if self.refused[0].len() >= GENERATION {
            self.refused.swap(0, 1);
            self.refused[0].clear();
        }
        self.refused[0].insert(key);
        self.line(dropped);
        if self.buffer.len() >= MAX_BUFFER {
            self.write_out();
        }
    }

    fn line(&mut self, dropped: &Dropped) {
        self.buffer.extend_from_slice(json(dropped).as_bytes());
        self.buffer.push(b'\n');
    }

    /// Writes the waiting records.
    fn release(&mut self) {
        let mut pending: Vec<(u64, String)> = self.pending.drain().collect();
        pending.sort_unstable_by(|a, b| a.1.cmp(&b.1));
        for (key, line) in pending {
            self.refused[0].insert(key);
            self.buffer.extend_from_slice(line.as_bytes());
            self.buffer.push(b'\n');
        }
        if self.beyond > 0 {
            log::warn!(file = %self.name, "{} more refused links are not recorded", self.beyond);
            self.beyond = 0;
        }
        self.write_out();
    }

    fn write_out(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        if let Some(Output(writer)) = &mut self.writer
            && let Err(cause) = writer.write(&self.buffer, b"")
        {
            let error = explain("writing", &self.name, cause).to_string();
            log::error!("{error}; later records are lost");
            self.failure = Some(error);
            // After a failed write nothing more is written: a file with a gap is worse than one that ends early.
            self.writer = None;
        }
        self.buffer.clear();
        if let (Some(position), Some(Output(writer))) = (&self.position, &self.writer)
            && let Some(end) = writer.end()
        {
            position.set(end);
        }
    }
}

/// The last clone writes the waiting records, also when the crawl never began.
impl Drop for Log {
    fn drop(&mut self) {
        self.release();
    }
}

fn json(dropped: &Dropped) -> String {
    serde_json::to_string(dropped).expect("a record is text and numbers")
}

/// The URLs in one field of a file of JSON lines. A line that is not JSON is incomplete, and is skipped.
fn urls_of(path: &Path, field: &str) -> std::io::Result<Hashes> {
    let mut known = Hashes::default();
    let mut buffer = String::new();
    for line in BufReader::new(File::open(path)?).split(b'\n') {
        let Ok(serde_json::Value::Object(record)) = serde_json::from_slice(&line?) else { continue };
        if let Some(url) = record.get(field).and_then(serde_json::Value::as_str) {
            buffer.clear();
            match Url::parse(url) {
                Ok(url) => canonical_into(&url, &mut buffer),
                Err(_) => buffer.push_str(url),
            }
            known.insert(xxh3_64(buffer.as_bytes()));
        }
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use huntsman_crawler::{DropReason, Request, Timestamp};
    use serde_json::Value;

    struct Bench {
        folder: tempfile::TempDir,
    }

    impl Bench {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().unwrap() }
        }

        fn path(&self) -> std::path::PathBuf {
            self.folder.path().join("drops.jsonl")
        }

        /// URL and reason of each line.
        fn lines(&self) -> Vec<(String, String)> {
            let text = std::fs::read_to_string(self.path()).unwrap();
            assert!(text.is_empty() || text.ends_with('\n'));
            let field = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
            text.lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .map(|line: Value| (field(&line, "url"), field(&line, "reason")))
                .collect()
        }
    }

    fn dropped(url: &str, reason: &'static str) -> Dropped {
        Dropped::new(&Request::parse(url).unwrap(), "test", DropReason::skipped(reason), Timestamp(0))
    }

    fn refuse(log: &DropLog, url: &str, reason: &'static str) {
        log.event(&Event::RequestRefused(&dropped(url, reason)));
    }

    fn schedule(log: &DropLog, url: &str) {
        log.event(&Event::RequestScheduled { request: &Request::parse(url).unwrap() });
    }

    fn pair(url: &str, reason: &str) -> (String, String) {
        (url.to_owned(), reason.to_owned())
    }

    #[test]
    fn every_drop_is_a_line_at_once() {
        let bench = Bench::new();
        let log = DropLog::create(bench.path()).unwrap();
        for reason in ["robots", "http_status"] {
            log.event(&Event::RequestDropped(&dropped("http://h/a", reason)));
        }
        assert_eq!(bench.lines(), [pair("http://h/a", "robots"), pair("http://h/a", "http_status")]);
        let line: Value =
            serde_json::from_str(std::fs::read_to_string(bench.path()).unwrap().lines().next().unwrap())
                .unwrap();
        assert_eq!(line["state"], "skipped");
        assert_eq!(
            (&line["component"], &line["depth"], &line["referer"]),
            (&"test".into(), &0.into(), &Value::Null)
        );
        assert_eq!(line["at"], "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn a_refused_address_is_recorded_once() {
        let bench = Bench::new();
        let log = DropLog::create(bench.path()).unwrap();
        for url in ["http://other/", "http://OTHER/#x", "http://other:80/", "http://other/b"] {
            refuse(&log, url, "offsite");
        }
        log.event(&Event::EngineStopped);
        assert_eq!(bench.lines(), [pair("http://other/", "offsite"), pair("http://other/b", "offsite")]);
    }

    #[test]
    fn refusals_that_depend_on_the_page_wait_for_the_end() {
        let bench = Bench::new();
        let log = DropLog::create(bench.path()).unwrap();
        for (url, reason) in
            [("http://h/later", "depth"), ("http://h/never", "nofollow"), ("http://h/hop", "depth_guard")]
        {
            refuse(&log, url, reason);
            refuse(&log, url, reason);
        }
        schedule(&log, "http://h/later?");
        schedule(&log, "http://h/before");
        refuse(&log, "http://h/before", "depth");
        refuse(&log, "http://h/before", "url_length");
        let mut hop = Request::parse("http://h/hop").unwrap();
        hop.meta.insert("redirect_urls".to_owned(), serde_json::json!(["http://h/first"]));
        log.event(&Event::PageDelivered { request: &hop, items: 0, found: &http::Extensions::new() });
        log.event(&Event::RequestDropped(&dropped("http://h/lost", "robots")));
        refuse(&log, "http://h/lost", "depth");
        assert_eq!(bench.lines(), [pair("http://h/lost", "robots")]);
        log.event(&Event::EngineStopped);
        assert_eq!(bench.lines(), [pair("http://h/lost", "robots"), pair("http://h/never", "nofollow")]);
        drop(log);
        assert_eq!(bench.lines().len(), 2);
    }

    #[test]
    fn a_resumed_file_is_mended_and_not_repeated() {
        let bench = Bench::new();
        let log = DropLog::create(bench.path()).unwrap();
        refuse(&log, "http://other/", "offsite");
        drop(log);
        let mut text = std::fs::read(bench.path()).unwrap();
        text.extend_from_slice(b"{\"url\":\"http://torn/");
        std::fs::write(bench.path(), text).unwrap();
        let pages = bench.folder.path().join("pages.jsonl");
        std::fs::write(&pages, "{\"url\":\"http://h/p\",\"final_url\":\"http://h/q\"}\n").unwrap();

        let log =
            DropLog::append(bench.path()).unwrap().pages(&pages).unwrap().pages("/nonexistent").unwrap();
        for url in ["http://other/", "http://h/p", "http://h/q", "http://torn/"] {
            refuse(&log, url, "depth");
        }
        log.finish().unwrap();
        assert_eq!(bench.lines(), [pair("http://other/", "offsite"), pair("http://torn/", "depth")]);
        assert!(DropLog::create(bench.path()).unwrap_err().to_string().contains("append to it"));
    }

    #[test]
    fn what_waits_is_bounded() {
        let bench = Bench::new();
        let log = DropLog::create(bench.path()).unwrap();
        for n in 0..MAX_PENDING + 10 {
            refuse(&log, &format!("http://h/{n}"), "depth");
        }
        log.finish().unwrap();
        assert_eq!(bench.lines().len(), MAX_PENDING);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_reported_at_the_end() {
        let log = DropLog::overwrite("/dev/full").unwrap();
        log.event(&Event::RequestDropped(&dropped("http://h/", "robots")));
        log.event(&Event::EngineStopped);
        assert!(log.finish().unwrap_err().to_string().contains("/dev/full"));
    }

    #[test]
    fn random_histories_agree_with_a_naive_judge() {
        let seed: u64 = 0x5eed_0007;
        println!("seed {seed}");
        let mut state = seed;
        let mut random = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for _ in 0..50 {
            let bench = Bench::new();
            let log = DropLog::create(bench.path()).unwrap();
            let mut queued = HashSet::new();
            let mut at_once = HashSet::new();
            let mut waiting = HashSet::new();
            for _ in 0..200 {
                let url = format!("http://h/{}", random(20));
                match random(3) {
                    0 => {
                        schedule(&log, &url);
                        queued.insert(url);
                    }
                    1 => {
                        refuse(&log, &url, "depth");
                        waiting.insert(url);
                    }
                    _ => {
                        refuse(&log, &url, "userinfo");
                        if !queued.contains(&url) {
                            at_once.insert(url);
                        }
                    }
                }
            }
            drop(log);
            let mut expected: Vec<_> = at_once.iter().map(|url| pair(url, "userinfo")).collect();
            let late = waiting.iter().filter(|url| !queued.contains(*url) && !at_once.contains(*url));
            expected.extend(late.map(|url| pair(url, "depth")));
            expected.sort();
            let mut lines = bench.lines();
            lines.sort();
            assert_eq!(lines, expected);
        }
    }
}
