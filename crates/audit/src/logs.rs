//! Log files of servers: which pages of a site robots ask for, how often, and what they are answered.
//!
//! A log is read line by line and summed up by URL, so its size does not matter. Robots are recognised by the names that they give, which anybody can
//! give: only the addresses that an operator publishes tell whether it is true ([`LogReader::ranges`]).

mod joined;
mod line;
mod robots;
mod tables;
mod time;
mod visits;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use huntsman_crawler::{Error, IGNORED_EXTENSIONS, Result};
use huntsman_disk::{List, Scratch};
use serde::Serialize;

pub(crate) use self::joined::{Joined, OfAgent, OfUrl, shown_time};
use self::line::Hit;
pub(crate) use self::robots::Agent;
use self::robots::Robots;
use self::visits::{Counter, Sums, Visits, each_url};

/// Bytes of a line; longer ones are not read.
const MAX_LINE: u64 = 64 << 10;
/// How gzip and Zstandard begin.
const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// What stands between host and target in the keys of visits: no URL has it.
const BETWEEN: char = '\n';

/// Log files that were read: requests by URL, robot and status. Clones share what was read.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("access.log");
/// # std::fs::write(&path, "66.249.66.1 - - [10/Oct/2000:20:55:36 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"Googlebot/2.1\"\n")?;
/// let logs = huntsman_audit::Logs::read([&path])?;
/// assert_eq!(logs.files()[0].lines, 1);
/// let audit = huntsman_audit::audit(["https://site.example/"]).options(|options| options.logs(Some(logs)));
/// # Ok::<(), huntsman_crawler::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Logs(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    files: Vec<LogFile>,
    /// Visits by host and target.
    visits: List<Visits>,
    /// Hosts (empty if the line has none) and targets that robots asked for and got, the most frequent first.
    targets: Vec<(String, String)>,
    period: Option<(i64, i64)>,
    /// Requests that are not for a page: other methods than GET and HEAD, and what is no request.
    without_page: u64,
    /// Robots whose addresses are known.
    with_ranges: BTreeSet<Agent>,
    has_agents: bool,
}

/// A log file that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LogFile {
    /// Its name.
    pub name: String,
    /// Number of lines that are not empty.
    pub lines: u64,
    /// Lines that could not be read.
    pub unread: u64,
    /// The first of them, and what is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_unread: Option<(u64, String)>,
    /// What ended the reading early, such as damage of a compressed file: all lines before it count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

impl LogFile {
    /// What was not read of it, in a sentence; `None` if all was.
    pub fn note(&self) -> Option<String> {
        if let Some(broken) = &self.broken {
            return Some(format!("{}: {broken}; the lines before it count", self.name));
        }
        let (line, why) = self.first_unread.as_ref()?;
        Some(format!(
            "{}: {} of {} lines could not be read; line {line}: {why}",
            self.name, self.unread, self.lines
        ))
    }
}

impl Logs {
    /// Reads log files; see [`LogReader::read`].
    ///
    /// # Errors
    /// As there.
    pub fn read<P: AsRef<Path>>(files: impl IntoIterator<Item = P>) -> Result<Self> {
        LogReader::new().read(files)
    }

    /// The files, with what could not be read of them.
    pub fn files(&self) -> &[LogFile] {
        &self.0.files
    }

    /// Hosts and targets that the crawl may look at, too.
    pub(crate) fn targets(&self) -> &[(String, String)] {
        &self.0.targets
    }
}

/// Reads log files.
#[derive(Debug)]
pub struct LogReader {
    robots: Robots,
    max_urls: usize,
    sorted_bytes: usize,
}

impl Default for LogReader {
    fn default() -> Self {
        Self { robots: Robots::default(), max_urls: 10_000, sorted_bytes: 64 << 20 }
    }
}

impl LogReader {
    /// A reader that recognises robots by their User-Agent alone.
    pub fn new() -> Self {
        Self::default()
    }

    /// Confirms a robot by the addresses in a file of its operator, such as `googlebot.json`: `{"prefixes": [{"ipv4Prefix": "192.0.2.0/24"}]}`.
    ///
    /// # Errors
    /// The robot is not in the list, or the file is none of this form.
    pub fn ranges(mut self, robot: &str, file: impl AsRef<Path>) -> Result<Self> {
        self.robots.add_ranges(robot, file.as_ref())?;
        Ok(self)
    }

    /// Sets how many URLs an audit may request that stand only in logs; 10,000 by default.
    pub fn max_urls(mut self, number: usize) -> Self {
        self.max_urls = number;
        self
    }

    /// Sets how many bytes of sums are kept in memory; 64 MiB by default. What is more is sorted on disk.
    pub fn sorted_bytes(mut self, bytes: usize) -> Self {
        self.sorted_bytes = bytes;
        self
    }

    /// Reads files in the common and the combined format, also with the host before each line, and in JSON lines; compressed by gzip or Zstandard,
    /// or not. A line that is none of these is counted, and the first one is told ([`Logs::files`]).
    ///
    /// # Errors
    /// A file cannot be opened, or none of its lines can be read; or the disk is full.
    pub fn read<P: AsRef<Path>>(self, files: impl IntoIterator<Item = P>) -> Result<Logs> {
        let scratch = Scratch::temporary();
        let mut reading = Reading {
            counter: Counter::new(&scratch, self.sorted_bytes),
            robots: self.robots,
            key: String::new(),
            period: None,
            without_page: 0,
            has_agents: false,
        };
        let mut read = Vec::new();
        for path in files {
            read.push(reading.file(path.as_ref())?);
        }
        let Reading { counter, robots, period, without_page, has_agents, .. } = reading;
        let visits = counter.finish()?;
        let targets = targets(&visits, self.max_urls, has_agents)?;
        let with_ranges = robots.with_ranges().collect();
        Ok(Logs(Arc::new(Inner {
            files: read,
            visits,
            targets,
            period,
            without_page,
            with_ranges,
            has_agents,
        })))
    }
}

/// Files that are being read.
struct Reading {
    counter: Counter,
    robots: Robots,
    key: String,
    period: Option<(i64, i64)>,
    without_page: u64,
    has_agents: bool,
}

impl Reading {
    fn file(&mut self, path: &Path) -> Result<LogFile> {
        let name = path.display().to_string();
        let wrong = |why: String| Error::usage(format!("the log file {name}: {why}"));
        if path.is_dir() {
            return Err(wrong("it is a folder; name the files in it".to_owned()));
        }
        let opened = File::open(path).map_err(|error| wrong(error.to_string()))?;
        let mut reader =
            unpacked(BufReader::with_capacity(1 << 17, opened)).map_err(|error| wrong(error.to_string()))?;
        let mut file = LogFile { name: name.clone(), ..LogFile::default() };
        let (mut number, mut line) = (0_u64, Vec::new());
        loop {
            line.clear();
            number += 1;
            match next_line(&mut reader, &mut line) {
                Ok(NextLine::End) => break,
                Ok(NextLine::Line) if line.iter().all(u8::is_ascii_whitespace) => {}
                Ok(NextLine::Line) => {
                    file.lines += 1;
                    let text = String::from_utf8_lossy(&line);
                    let text = if number == 1 { text.trim_start_matches('\u{feff}') } else { &text };
                    match line::read(text) {
                        Ok(hit) => self.hit(&hit)?,
                        Err(why) => file.miss(number, why),
                    }
                }
                Ok(NextLine::TooLong) => {
                    file.lines += 1;
                    file.miss(number, "it is longer than 64 KiB");
                }
                Err(error) => {
                    file.broken = Some(format!("reading ended at line {number}: {error}"));
                    break;
                }
            }
        }
        match (&file.first_unread, &file.broken) {
            (Some((line, why)), _) if file.unread == file.lines => Err(wrong(format!(
                "none of its {} lines is in the common, the combined or the JSON format; line {line}: {why}",
                file.lines
            ))),
            (None, Some(broken)) if file.lines == 0 => Err(wrong(broken.clone())),
            _ => Ok(file),
        }
    }

    fn hit(&mut self, hit: &Hit<'_>) -> Result<()> {
        if let Some(time) = hit.time {
            let (first, last) = self.period.unwrap_or((time, time));
            self.period = Some((first.min(time), last.max(time)));
        }
        self.has_agents |= hit.agent.is_some();
        let is_page = matches!(&*hit.method, "GET" | "HEAD") && !matches!(&*hit.target, "" | "*");
        if !is_page {
            self.without_page += 1;
            return Ok(());
        }
        let agent = self.robots.agent(hit.agent.as_deref());
        let confirmed = self.robots.is_confirmed(agent, hit.address);
        let sums = Sums {
            hits: 1,
            confirmed: u64::from(confirmed == Some(true)),
            contradicted: u64::from(confirmed == Some(false)),
            last: hit.time.and_then(|time| u64::try_from(time).ok()).unwrap_or(0),
        };
        self.key.clear();
        key_of(hit, &mut self.key);
        self.counter.add(&self.key, agent, hit.status, sums)
    }
}

impl LogFile {
    fn miss(&mut self, line: u64, why: &str) {
        self.unread += 1;
        self.first_unread.get_or_insert_with(|| (line, why.to_owned()));
    }
}

/// Host and target of a request. A target that is a whole URL has its own host.
fn key_of(hit: &Hit<'_>, key: &mut String) {
    let whole = hit.target.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"));
    let (host, target) = match whole {
        Some((_, rest)) => rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len())),
        None => (hit.host.as_deref().unwrap_or_default(), &*hit.target),
    };
    let host = host.strip_suffix(":443").or_else(|| host.strip_suffix(":80")).unwrap_or(host);
    key.extend(host.chars().map(|c| c.to_ascii_lowercase()));
    key.push(BETWEEN);
    if !target.starts_with('/') {
        key.push('/');
    }
    key.push_str(target.split('#').next().unwrap_or_default());
}

fn unpacked(mut reader: BufReader<File>) -> io::Result<Box<dyn BufRead>> {
    let head = reader.fill_buf()?;
    if head.starts_with(GZIP) {
        let unpacked = flate2::bufread::MultiGzDecoder::new(reader);
        return Ok(Box::new(BufReader::with_capacity(1 << 17, unpacked)));
    }
    if head.starts_with(ZSTD) {
        let unpacked = zstd::Decoder::with_buffer(reader)?;
        return Ok(Box::new(BufReader::with_capacity(1 << 17, unpacked)));
    }
    Ok(Box::new(reader))
}

/// What was read of a line.
enum NextLine {
    Line,
    TooLong,
    End,
}

fn next_line(reader: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<NextLine> {
    let read = reader.take(MAX_LINE).read_until(b'\n', line)?;
    match line.last() {
        None => Ok(NextLine::End),
        Some(b'\n') => Ok(NextLine::Line),
        Some(_) if (read as u64) < MAX_LINE => Ok(NextLine::Line),
        Some(_) => reader.skip_until(b'\n').map(|_| NextLine::TooLong),
    }
}

/// The targets that robots got most often, or anybody in logs without User-Agents. What has a query may do something, and files are no pages, so
/// these are not among them.
fn targets(visits: &List<Visits>, most: usize, has_agents: bool) -> Result<Vec<(String, String)>> {
    let mut found: Vec<(u64, Box<str>)> = Vec::new();
    each_url(visits, &mut |of_url| {
        let url = &of_url[0].url;
        let name = url.rsplit('/').next().unwrap_or_default();
        let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
        let is_file = extension.is_some_and(|extension| IGNORED_EXTENSIONS.contains(&extension.as_str()));
        if url.contains('?') || is_file {
            return Ok(());
        }
        let counts = |visits: &&Visits| {
            (visits.agent.is_robot() || !has_agents) && (matches!(visits.status, 200..=299 | 304))
        };
        let hits = of_url.iter().filter(counts).map(|visits| visits.sums.hits).sum::<u64>();
        if hits > 0 {
            found.push((hits, url.clone()));
        }
        // Twice as many are enough to choose from at any time.
        if found.len() > most.saturating_mul(2).max(1_000) {
            keep_most(&mut found, most);
        }
        Ok(())
    })?;
    keep_most(&mut found, most);
    let parts = |(_, key): (u64, Box<str>)| {
        key.split_once(BETWEEN).map(|(host, target)| (host.to_owned(), target.to_owned()))
    };
    Ok(found.into_iter().filter_map(parts).collect())
}

fn keep_most(found: &mut Vec<(u64, Box<str>)>, most: usize) {
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found.truncate(most);
}
