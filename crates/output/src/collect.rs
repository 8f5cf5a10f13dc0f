//! Collects the records of the nodes of a shared crawl into one directory, in which each request is recorded once.
//!
//! A node that dies or loses its lease may have recorded a request that another node does again. Records have the name of their request and
//! the epoch of their node, and a line follows when the queue has taken the request as settled; see [`Work`](huntsman_crawler::Work).
//!
//! Lines are sorted on disk, so memory does not grow with the crawl. It does not merge reports, nor items in other formats than JSON lines.

mod line;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use huntsman_crawler::WorkName;
use huntsman_disk::{Scratch, Sorter};
use huntsman_files::Replacement;
use huntsman_text::urlparts::canonical_into;
use url::Url;

use crate::directory::is_locked;
use crate::error::{Error, Result};
use crate::{DROPS, OWN_FILES, PAGES};
use line::{Head, Kind, Refusal, WorkLine};

/// What was collected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collected {
    /// Records by the name of their file, of requests and of addresses that were refused.
    pub records: BTreeMap<String, u64>,
    /// Records that were left out because the request was settled by another node, or replaced by another request.
    pub superseded: u64,
    /// Lines that were left out because they are not whole: a node was killed while it wrote them.
    pub torn: u64,
    /// Files that were left out because they are no JSON lines.
    pub left_out: Vec<PathBuf>,
}

/// Bytes of lines that are sorted in memory, for each of the two orders.
const SORTED_AT_ONCE: usize = 64 << 20;
/// The ending of files that are collected.
const LINES: &str = "jsonl";
/// The number of the file of drops, where addresses are recorded that were refused.
const DROPS_NUMBER: usize = 1;

/// Collects the records of the directories of nodes into a new directory.
///
/// Of each request, the records of the highest epoch in which it was settled are kept; of one that nobody settled, those of the highest
/// epoch. An address that was refused before it entered the queue is kept once, unless it has a record.
///
/// # Errors
/// A directory has no records, is in use, or is of another crawl; or the new directory has records already, or cannot be written.
pub fn collect(directories: &[PathBuf], into: &Path) -> Result<Collected> {
    for name in [PAGES, DROPS] {
        if into.join(name).exists() {
            return Err(Error::HoldsRecords { path: into.to_owned(), name });
        }
    }
    let mut collector = Collector::new();
    for (number, directory) in directories.iter().enumerate() {
        collector.read_directory(number, directory)?;
    }
    collector.write(directories, into)
}

struct Collector {
    /// The names of the files, by number.
    names: Vec<String>,
    lines: Sorter<WorkLine>,
    refusals: Sorter<Refusal>,
    /// Lines that name no request.
    nameless: u64,
    collected: Collected,
}

impl Collector {
    fn new() -> Self {
        let scratch = Scratch::temporary();
        Self {
            names: vec![PAGES.to_owned(), DROPS.to_owned()],
            lines: Sorter::new(&scratch, SORTED_AT_ONCE),
            refusals: Sorter::new(&scratch, SORTED_AT_ONCE),
            nameless: 0,
            collected: Collected::default(),
        }
    }

    fn read_directory(&mut self, number: usize, directory: &Path) -> Result<()> {
        let unreadable = |source| Error::Unreadable { path: directory.to_owned(), source };
        let mut paths = Vec::new();
        for entry in fs::read_dir(directory).map_err(unreadable)? {
            paths.push(entry.map_err(unreadable)?.path());
        }
        paths.sort_unstable();
        if !paths.iter().any(|path| path.ends_with(PAGES) || path.ends_with(DROPS)) {
            return Err(Error::NoRecords { path: directory.to_owned() });
        }
        if is_locked(directory) {
            return Err(Error::InUse { path: directory.to_owned() });
        }
        for path in paths.into_iter().filter(|path| path.is_file()) {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if path.extension().is_some_and(|ending| ending == LINES) {
                let file = self.number_of(name);
                self.read_file(number, file, &path)?;
            } else if !OWN_FILES.contains(&name) {
                self.collected.left_out.push(path);
            }
        }
        Ok(())
    }

    fn number_of(&mut self, name: &str) -> usize {
        self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        })
    }

    fn read_file(&mut self, directory: usize, file: usize, path: &Path) -> Result<()> {
        let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
        let mut reader = BufReader::with_capacity(1 << 16, File::open(path).map_err(unreadable)?);
        loop {
            let mut line = Vec::new();
            if reader.read_until(b'\n', &mut line).map_err(unreadable)? == 0 {
                return Ok(());
            }
            let is_whole = line.pop_if(|last| *last == b'\n').is_some();
            match serde_json::from_slice::<Head>(&line) {
                Ok(head) if is_whole => self.add(directory, file, &head, line)?,
                _ => self.collected.torn += 1,
            }
        }
    }

    fn add(&mut self, directory: usize, file: usize, head: &Head, text: Vec<u8>) -> Result<()> {
        if let Some((work, epoch)) = head.settled() {
            let text = Vec::new();
            return Ok(self.lines.push(WorkLine { work, epoch, kind: Kind::Settled, directory, text })?);
        }
        let named = head.work();
        if named.is_none() && file == DROPS_NUMBER {
            // The address never was in the queue.
            let url = head.url().map(canonical).unwrap_or_default();
            return Ok(self.refusals.push(Refusal { url, text: Some(text) })?);
        }
        let (work, epoch) = named.unwrap_or_else(|| {
            // The record of a crawl that nobody shared stands for itself.
            self.nameless += 1;
            (WorkName { partition: u32::MAX, sequence: self.nameless }, 0)
        });
        Ok(self.lines.push(WorkLine { work, epoch, kind: Kind::Record(file), directory, text })?)
    }

    fn write(self, directories: &[PathBuf], into: &Path) -> Result<Collected> {
        let Self { names, lines, refusals, collected, .. } = self;
        let mut written = Written { directories, files: Files::new(into, &names)?, refusals, collected };
        let mut group: Vec<WorkLine> = Vec::new();
        for line in lines.finish()? {
            let line = line?;
            if group.first().is_some_and(|first| first.work != line.work) {
                written.add(&mut group)?;
            }
            group.push(line);
        }
        written.add(&mut group)?;
        let Written { mut files, refusals, mut collected, .. } = written;
        let mut last: Option<String> = None;
        for refusal in refusals.finish()? {
            let Refusal { url, text } = refusal?;
            if last.as_ref() == Some(&url) {
                continue;
            }
            if let Some(text) = text {
                files.line(DROPS_NUMBER, &text)?;
            }
            last = Some(url);
        }
        collected.records = files.finish(names)?;
        Ok(collected)
    }
}

/// What is written request by request.
struct Written<'a> {
    directories: &'a [PathBuf],
    files: Files,
    refusals: Sorter<Refusal>,
    collected: Collected,
}

impl Written<'_> {
    /// Writes the lines of one request that count, and empties the group.
    fn add(&mut self, group: &mut Vec<WorkLine>) -> Result<()> {
        let settled = group.iter().rev().find(|line| line.kind == Kind::Settled);
        let Some(epoch) = settled.or(group.last()).map(|line| line.epoch) else { return Ok(()) };
        let mut first: Option<(String, usize)> = None;
        for line in group.drain(..) {
            let Kind::Record(file) = line.kind else { continue };
            if file <= DROPS_NUMBER {
                // It was read before.
                let Ok(head) = serde_json::from_slice::<Head>(&line.text) else { continue };
                let url = head.url().unwrap_or_default();
                let (known, other) = first.get_or_insert_with(|| (url.to_owned(), line.directory));
                if known != url {
                    return Err(Error::OtherCrawl {
                        one: self.directories[*other].clone(),
                        other: self.directories[line.directory].clone(),
                        work: line.work,
                    });
                }
                if line.epoch == epoch {
                    for url in head.urls() {
                        self.refusals.push(Refusal { url: canonical(url), text: None })?;
                    }
                }
            }
            match line.epoch == epoch {
                true => self.files.line(file, &line.text)?,
                false => self.collected.superseded += 1,
            }
        }
        Ok(())
    }
}

/// The files that are written, by number.
struct Files {
    into: PathBuf,
    files: Vec<Replacement>,
    counts: Vec<u64>,
}

impl Files {
    fn new(into: &Path, names: &[String]) -> Result<Self> {
        let unwritable = |source| Error::Unwritable { path: into.to_owned(), source };
        huntsman_files::create_dir_all(into).map_err(unwritable)?;
        let files = names.iter().map(|name| Replacement::new(into.join(name)).map_err(unwritable));
        let files = files.collect::<Result<Vec<_>>>()?;
        Ok(Self { into: into.to_owned(), files, counts: vec![0; names.len()] })
    }

    fn line(&mut self, file: usize, text: &[u8]) -> Result<()> {
        self.counts[file] += 1;
        let to = &mut self.files[file];
        let written = to.write_all(text).and_then(|()| to.write_all(b"\n"));
        written.map_err(|source| Error::Unwritable { path: self.into.clone(), source })
    }

    /// Returns the numbers of lines by name.
    fn finish(self, names: Vec<String>) -> Result<BTreeMap<String, u64>> {
        let Self { into, files, counts } = self;
        for file in files {
            file.finish().map_err(|source| Error::Unwritable { path: into.clone(), source })?;
        }
        Ok(names.into_iter().zip(counts).collect())
    }
}

fn canonical(url: &str) -> String {
    let mut text = String::with_capacity(url.len());
    match Url::parse(url) {
        Ok(url) => canonical_into(&url, &mut text),
        Err(_) => text.push_str(url),
    }
    text
}
