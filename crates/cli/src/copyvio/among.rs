//! Finds texts among many that share passages: an index of windows tells which pairs are worth comparing.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::sync::Arc;

use huntsman::dedup::{Body, RawDocument, Source};
use huntsman::detect::copyvio::{Band, Boilerplate, Degree, Text, Verdict, WindowIndex};
use huntsman::middleware::copyvio::{Reading, Subject};
use serde::Deserialize;
use serde_json::{Value, json};

use super::comparison::Comparison;
use crate::exit::{Failure, Outcome};

/// The documents whose texts were added, with their index.
pub(crate) struct Among {
    index: WindowIndex,
    spool: Spool,
    min_shared: usize,
    tells_all: bool,
    boilerplate: Option<Arc<Boilerplate>>,
    pub(crate) totals: Totals,
}

/// Counters of a run.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) texts: u64,
    pub(crate) compared: u64,
    pub(crate) told: u64,
    pub(crate) errors: u64,
    /// Texts with windows that were left out of the index because they stand in very many texts.
    pub(crate) common: u64,
    pub(crate) index_bytes: u64,
}

/// The fields that are read from a line of input; all others are ignored.
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    id: Value,
    /// The id in the records of a crawl.
    url: Option<String>,
    text: Option<String>,
    html: Option<String>,
}

/// Number of errors that are printed one by one.
const TOLD: u64 = 20;

impl Among {
    /// Starts without documents. It finds shared passages of at least `run` words; with `tells_all` it also reports
    /// pairs that are probably harmless.
    ///
    /// # Errors
    /// A temporary file cannot be created.
    pub(crate) fn new(
        run: usize,
        min_shared: usize,
        tells_all: bool,
        boilerplate: Option<Arc<Boilerplate>>,
    ) -> Outcome<Self> {
        let degree = Degree::default();
        let winnow = (run + 1).saturating_sub(degree.get()).max(1);
        let spool = Spool::new().map_err(|error| Failure::crawl(format!("a temporary file: {error}")))?;
        Ok(Self {
            index: WindowIndex::new(degree, winnow),
            spool,
            min_shared,
            tells_all,
            boilerplate,
            totals: Totals::default(),
        })
    }

    /// Adds the texts of a source.
    ///
    /// # Errors
    /// The disk is full.
    pub(crate) fn add(
        &mut self,
        source: &Source,
        max_document: u64,
        warn: &mut dyn FnMut(&str),
    ) -> Outcome<()> {
        self.each(source, max_document, warn, &mut |this, id, text| {
            let number = this
                .spool
                .push(id, text)
                .map_err(|error| Failure::crawl(format!("a temporary file: {error}")))?;
            this.index.add(number, &text.document());
            Ok(())
        })
    }

    /// Compares the added texts with each other: each one with those added before it.
    ///
    /// # Errors
    /// The disk fails, or `tell` returned an error.
    pub(crate) fn with_each_other(&mut self, tell: &mut dyn FnMut(Value) -> Outcome<()>) -> Outcome<()> {
        self.index.compact();
        for number in 0..self.spool.len() {
            let (id, text) = self.spool.get(number)?;
            self.compare(&id, text, number, tell)?;
        }
        Ok(())
    }

    /// Compares the texts of a source with those that were added.
    ///
    /// # Errors
    /// As [`with_each_other`](Self::with_each_other).
    pub(crate) fn with(
        &mut self,
        source: &Source,
        max_document: u64,
        warn: &mut dyn FnMut(&str),
        tell: &mut dyn FnMut(Value) -> Outcome<()>,
    ) -> Outcome<()> {
        self.each(source, max_document, warn, &mut |this, id, text| {
            let all = this.spool.len();
            this.compare(id, text.clone(), all, tell)
        })
    }

    /// Compares a text with those texts of smaller numbers that share windows with it.
    fn compare(
        &mut self,
        id: &str,
        text: Text,
        before: u32,
        tell: &mut dyn FnMut(Value) -> Outcome<()>,
    ) -> Outcome<()> {
        let found = self.index.candidates(&text.document(), self.min_shared);
        self.totals.common += u64::from(found.common > 0);
        self.totals.index_bytes = self.index.bytes() as u64;
        let mut sources = Vec::new();
        for candidate in found.texts.iter().filter(|candidate| candidate.id < before) {
            let (source, text) = self.spool.get(candidate.id)?;
            if source != id {
                sources.push((source, Ok(Reading { text, ..Reading::default() })));
            }
        }
        self.totals.compared += sources.len() as u64;
        let subject = Subject::new(text);
        let comparison =
            Comparison::of(id.to_owned(), &subject, Degree::default(), self.boilerplate.as_deref(), sources);
        for compared in comparison.ranked() {
            let is_flagged = compared.source.confidence.band() != Band::None
                || compared.evidence().is_some_and(|evidence| evidence.verdict != Verdict::None);
            if !is_flagged && !self.tells_all {
                continue;
            }
            let mut line = json!({"article": id});
            if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), compared.json()) {
                line.extend(
                    fields.into_iter().filter(|(name, _)| !matches!(name.as_str(), "direction" | "licence")),
                );
            }
            self.totals.told += 1;
            tell(line)?;
        }
        Ok(())
    }

    /// Reads the texts of a source; a text that cannot be read is reported and skipped.
    fn each(
        &mut self,
        source: &Source,
        max_document: u64,
        warn: &mut dyn FnMut(&str),
        take: &mut dyn FnMut(&mut Self, &str, &Text) -> Outcome<()>,
    ) -> Outcome<()> {
        let mut failure = None;
        let _ = source.read(None, max_document, &mut |raw| {
            let document = raw.map_err(|broken| broken.to_string()).and_then(|raw| {
                let place = raw.position.to_string();
                document(raw).map_err(|why| format!("{place}: {why}"))
            });
            match document {
                Ok((id, text)) => {
                    self.totals.texts += 1;
                    if let Err(error) = take(self, &id, &text) {
                        failure = Some(error);
                        return ControlFlow::Break(());
                    }
                }
                Err(why) => {
                    self.totals.errors += 1;
                    if self.totals.errors <= TOLD {
                        warn(&why);
                    }
                }
            }
            ControlFlow::Continue(())
        });
        failure.map_or(Ok(()), Err)
    }
}

/// The id of a document and its text.
pub(super) fn document(raw: RawDocument) -> Result<(String, Text), String> {
    match raw.body {
        Body::Unreadable(why) => Err(why),
        Body::File { path, is_html: true, bytes } => Ok((path, Text::html(&bytes, None))),
        Body::File { path, is_html: false, bytes } => Ok((path, Text::plain(&bytes, None))),
        Body::Line(bytes) => {
            let line: Line = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
            let id = match (line.id, line.url) {
                (Value::String(id), _) | (Value::Null, Some(id)) => id,
                (Value::Null, None) => return Err("neither id nor url".to_owned()),
                (other, _) => other.to_string(),
            };
            match (line.html, line.text) {
                (Some(html), _) => Ok((id, Text::html(html.as_bytes(), Some("utf-8")))),
                (None, Some(text)) => Ok((id, Text::new(text))),
                (None, None) => Err("neither text nor html; a crawl has text with --text".to_owned()),
            }
        }
    }
}

/// Texts with their ids in a temporary file, which leaves the memory to the index.
struct Spool {
    file: File,
    /// The offset at which each text begins, and the end of the last one.
    places: Vec<u64>,
    buffer: Vec<u8>,
}

/// Maximum size of an unpacked text, in bytes.
const MOST: usize = 256 << 20;

impl Spool {
    fn new() -> io::Result<Self> {
        Ok(Self { file: tempfile::tempfile()?, places: vec![0], buffer: Vec::new() })
    }

    fn len(&self) -> u32 {
        // Each text takes more than a byte in the file, and `push` has checked its number.
        u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
    }

    fn push(&mut self, id: &str, text: &Text) -> io::Result<u32> {
        let number = self.len();
        if number == u32::MAX {
            return Err(io::Error::other("more than 4,294,967,294 texts"));
        }
        let packed = zstd::bulk::compress(&serde_json::to_vec(&(id, text))?, 1)?;
        let end = self.file.seek(SeekFrom::End(0))? + packed.len() as u64;
        self.file.write_all(&packed)?;
        self.places.push(end);
        Ok(number)
    }

    fn get(&mut self, number: u32) -> Outcome<(String, Text)> {
        let [from, to] = [0, 1].map(|end| self.places[number as usize + end]);
        self.buffer.resize(usize::try_from(to - from).unwrap_or(usize::MAX), 0);
        let mut read = || -> io::Result<(Arc<str>, Text)> {
            self.file.seek(SeekFrom::Start(from))?;
            self.file.read_exact(&mut self.buffer)?;
            Ok(serde_json::from_slice(&zstd::bulk::decompress(&self.buffer, MOST)?)?)
        };
        let (id, text) = read().map_err(|error| Failure::crawl(format!("a temporary file: {error}")))?;
        Ok((id.as_ref().to_owned(), text))
    }
}
