//! Segments: files to which a crawl appends what it finds in each answer.
//!
//! A segment is a header with its version, and frames of entries. The job of a crawl saves how long its segment is, so a crawl that was killed
//! goes on right behind the last entry that counts, and loses and doubles none.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use huntsman_crawler::{Context, Error, OnItem, Pipeline, Result};
use huntsman_middleware::sinks::FilePosition;
use serde::{Deserialize, Serialize};

use crate::edges::put_edges;
use crate::finding::Finding;
use crate::measure::Measure;
use crate::record::{Answered, Record};
use crate::site::Refused;
use huntsman_disk::{FRAME, Fields, Framed, Frames, HEADER, Spool, header, put_bytes};

/// The kind of file, in its header.
const KIND: u16 = 1;
/// Version of the format. A program reads only its own.
const VERSION: u16 = 1;

/// Bytes that are collected before they are written, unless the segment is flushed earlier.
const WRITTEN_AT_ONCE: usize = 256 * 1_024;

const ANSWER: u8 = 1;
const REFUSAL: u8 = 2;

/// What rules found on a page alone.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Judged {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) findings: Vec<Finding>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) measures: Vec<Measure>,
}

/// A URL that was not requested.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) url: String,
    #[serde(flatten)]
    pub(crate) refused: Refused,
}

/// An entry of a segment, of which only the parts are read that are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry<'a> {
    Answer(AnswerParts<'a>),
    Refusal(&'a [u8]),
}

/// The parts of an answer as bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerParts<'a> {
    pub(crate) record: &'a [u8],
    pub(crate) judged: &'a [u8],
    pub(crate) edges: &'a [u8],
}

impl AnswerParts<'_> {
    pub(crate) fn record(&self) -> Result<Record> {
        serde_json::from_slice(self.record).map_err(|error| Error::from(error).context("reading a record"))
    }
}

fn put_answer(answered: &Answered, out: &mut Vec<u8>) -> Result<()> {
    out.push(ANSWER);
    let mut part = serde_json::to_vec(&answered.record)?;
    put_bytes(&part, out);
    part.clear();
    /// The parts of [`Judged`], borrowed.
    #[derive(Serialize)]
    struct Parts<'a> {
        findings: &'a [Finding],
        measures: &'a [Measure],
    }
    if !(answered.findings.is_empty() && answered.measures.is_empty()) {
        let Answered { findings, measures, .. } = answered;
        serde_json::to_writer(&mut part, &Parts { findings, measures })?;
    }
    put_bytes(&part, out);
    part.clear();
    put_edges(&answered.edges, &mut part);
    put_bytes(&part, out);
    Ok(())
}

fn read_entry<'a>(fields: &mut Fields<'a>) -> Option<Entry<'a>> {
    Some(match fields.byte()? {
        ANSWER => Entry::Answer(AnswerParts {
            record: fields.bytes()?,
            judged: fields.bytes()?,
            edges: fields.bytes()?,
        }),
        REFUSAL => Entry::Refusal(fields.bytes()?),
        _ => return None,
    })
}

/// Collects entries into frames.
#[derive(Debug)]
struct Collector {
    framed: Framed,
    frame: Vec<u8>,
    /// Frames that were not written yet.
    out: Vec<u8>,
}

impl Collector {
    fn new() -> Result<Self> {
        Ok(Self { framed: Framed::new()?, frame: Vec::new(), out: Vec::new() })
    }

    fn answer(&mut self, answered: &Answered) -> Result<()> {
        put_answer(answered, &mut self.frame)?;
        self.entry_ended()
    }

    fn refusal(&mut self, refusal: &Refusal) -> Result<()> {
        self.frame.push(REFUSAL);
        put_bytes(&serde_json::to_vec(refusal)?, &mut self.frame);
        self.entry_ended()
    }

    fn entry_ended(&mut self) -> Result<()> {
        if self.frame.len() < FRAME { Ok(()) } else { self.end_frame() }
    }

    fn end_frame(&mut self) -> Result<()> {
        if !self.frame.is_empty() {
            self.framed.put(&self.frame, &mut self.out)?;
            self.frame.clear();
        }
        Ok(())
    }
}

/// A pipeline that appends what a crawl finds to a segment.
#[derive(Debug)]
pub struct Segment {
    path: PathBuf,
    file: Option<File>,
    position: Option<FilePosition>,
    written: u64,
    collector: Collector,
}

impl Segment {
    /// A segment in a new file.
    ///
    /// # Errors
    /// The file exists or cannot be created.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let file = huntsman_files::create_new(&path)
            .map_err(|error| Error::from(error).context(format!("creating {}", path.display())))?;
        Ok(Self { path, file: Some(file), position: None, written: 0, collector: Collector::new()? })
    }

    /// A segment that belongs to a job. The position must be given to the builder, which saves it.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn of_job(path: impl Into<PathBuf>) -> Result<(Self, FilePosition)> {
        let path = path.into();
        let position = FilePosition::new(&path)?;
        let segment = Self {
            path,
            file: None,
            position: Some(position.clone()),
            written: 0,
            collector: Collector::new()?,
        };
        Ok((segment, position))
    }

    /// Appends an answer.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append(&mut self, answered: &Answered) -> Result<()> {
        self.collector.answer(answered)?;
        if self.collector.out.len() < WRITTEN_AT_ONCE { Ok(()) } else { self.write() }
    }

    /// Writes what was appended.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<()> {
        self.write()
    }

    /// The open file. That of a job is opened late, when what does not count any more was cut off.
    fn file(&mut self) -> Result<&mut File> {
        if self.file.is_none() {
            let context = |error| Error::from(error).context(format!("opening {}", self.path.display()));
            let file = huntsman_files::open_append(&self.path).map_err(context)?;
            self.written = file.metadata().map_err(context)?.len();
            self.file = Some(file);
        }
        Ok(self.file.as_mut().expect("it was opened above"))
    }

    fn write(&mut self) -> Result<()> {
        self.collector.end_frame()?;
        if self.collector.out.is_empty() {
            return Ok(());
        }
        self.file()?;
        if self.written == 0 {
            self.collector.out.splice(..0, header(KIND, VERSION));
        }
        let file = self.file.as_mut().expect("it was opened above");
        let done = file.write_all(&self.collector.out);
        done.map_err(|error| Error::from(error).context(format!("writing {}", self.path.display())))?;
        self.written += self.collector.out.len() as u64;
        self.collector.out.clear();
        if let Some(position) = &self.position {
            position.set(self.written);
        }
        Ok(())
    }
}

impl Pipeline<Answered> for Segment {
    async fn process_item(&mut self, item: Answered, _: &Context) -> Result<OnItem<Answered>> {
        self.collector.answer(&item)?;
        Ok(OnItem::Keep(item))
    }

    async fn flush(&mut self) -> Result<()> {
        let done = self.write();
        if let (Err(_), Some(position)) = (&done, &self.position) {
            position.fail();
        }
        done
    }

    async fn close(&mut self) -> Result<()> {
        self.flush().await
    }
}

/// A segment in a spool, for crawls without a directory. Clones write to the same one.
#[derive(Clone, Debug)]
pub(crate) struct Kept(Arc<Mutex<(Collector, Spool)>>);

impl Kept {
    pub(crate) fn new(spool: Spool) -> Result<Self> {
        Ok(Self(Arc::new(Mutex::new((Collector::new()?, spool)))))
    }

    pub(crate) fn answer(&self, answered: &Answered) -> Result<()> {
        self.add(|collector| collector.answer(answered))
    }

    pub(crate) fn refusal(&self, refusal: &Refusal) -> Result<()> {
        self.add(|collector| collector.refusal(refusal))
    }

    fn add(&self, add: impl FnOnce(&mut Collector) -> Result<()>) -> Result<()> {
        let (collector, spool) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        add(collector)?;
        written(collector, spool)
    }

    /// All that was kept. It is empty afterwards.
    pub(crate) fn take(&self, empty: Spool) -> Result<Spool> {
        let (collector, spool) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        collector.end_frame()?;
        written(collector, spool)?;
        Ok(std::mem::replace(spool, empty))
    }
}

fn written(collector: &mut Collector, spool: &mut Spool) -> Result<()> {
    if collector.out.is_empty() {
        return Ok(());
    }
    if spool.is_empty() {
        spool.write(&header(KIND, VERSION))?;
    }
    spool.write(&collector.out)?;
    collector.out.clear();
    Ok(())
}

impl Pipeline<Answered> for Kept {
    async fn process_item(&mut self, item: Answered, _: &Context) -> Result<OnItem<Answered>> {
        self.answer(&item)?;
        Ok(OnItem::Keep(item))
    }
}

/// Where an entry stands: the offset of its frame, and its number in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Locator {
    pub(crate) frame: u64,
    pub(crate) entry: u32,
}

/// Calls `each` with all entries of a segment, in the order in which they were written.
pub(crate) fn each_entry(
    spool: &Spool,
    each: &mut dyn FnMut(Locator, Entry<'_>) -> Result<()>,
) -> Result<()> {
    let mut frames = Frames::new()?;
    frames.check(spool, KIND, VERSION)?;
    let (mut offset, mut frame) = (HEADER, Vec::new());
    while let Some(next) = frames.read(spool, offset, &mut frame)? {
        let (mut fields, mut entry) = (Fields::new(&frame), 0);
        while !fields.is_empty() {
            let read = read_entry(&mut fields).ok_or_else(|| no_entry(spool, offset))?;
            each(Locator { frame: offset, entry }, read)?;
            entry += 1;
        }
        offset = next;
    }
    Ok(())
}

/// The answer at a place of a frame that was read.
pub(crate) fn answer_at(frame: &[u8], entry: u32) -> Option<AnswerParts<'_>> {
    let mut fields = Fields::new(frame);
    for _ in 0..entry {
        read_entry(&mut fields)?;
    }
    match read_entry(&mut fields)? {
        Entry::Answer(parts) => Some(parts),
        Entry::Refusal(_) => None,
    }
}

pub(crate) fn no_entry(spool: &Spool, offset: u64) -> Error {
    Error::msg(format!(
        "{} has an entry in the frame at byte {offset} that was not written there",
        spool.name()
    ))
}
