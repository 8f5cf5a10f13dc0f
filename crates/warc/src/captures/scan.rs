//! Reads a file once for the places of its captures.

use std::collections::HashMap;
use std::io::Read;

use xxhash_rust::xxh3::xxh3_64;

use super::{Capture, Cause};
use crate::error::ReadError;
use crate::head::RecordHead;
use crate::key::CaptureKey;
use crate::message::HttpHead;
use crate::moment::Moment;
use crate::reader::{Span, WarcReader};

/// Bytes of a response in which its status line is looked for.
const STATUS_LINE: u64 = 1 << 10;
/// Greatest length of a request that is told apart from others by its body, in bytes.
const MAX_REQUEST: u64 = 1 << 20;

pub(crate) const ONE_STREAM: &str = "it is one gzip stream, in which no record can be read by itself: \
    write it again with a member for each record (warcio recompress)";

/// What is found in one file.
pub(super) struct Scan {
    file: u32,
    found: Vec<Found>,
    /// Requests with other methods than GET: method and body, by the ids of the records that belong to them.
    requests: HashMap<u64, (String, Vec<u8>)>,
    pub(super) damaged: u64,
}

struct Found {
    key: CaptureKey,
    capture: Capture,
    /// The ids by which its request may be named: its own, and those of `WARC-Concurrent-To`.
    ids: Vec<u64>,
}

impl Scan {
    pub(super) fn new(file: u32) -> Self {
        Self { file, found: Vec::new(), requests: HashMap::new(), damaged: 0 }
    }

    /// Reads all records; damage is told, and the records behind it are read.
    pub(super) fn read<R: Read>(
        &mut self,
        mut reader: WarcReader<R>,
        told: &mut dyn FnMut(&ReadError),
    ) -> Result<(), Cause> {
        loop {
            match self.record(&mut reader) {
                Ok(Some(span)) if !span.is_separate => return Err(Cause::Text(ONE_STREAM.to_owned())),
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(error) if error.is_damage() => {
                    told(&error);
                    self.damaged += 1;
                }
                Err(error) => return Err(Cause::Read(error)),
            }
        }
    }

    fn record<R: Read>(&mut self, reader: &mut WarcReader<R>) -> Result<Option<Span>, ReadError> {
        let Some(head) = reader.next_head()? else { return Ok(None) };
        let start = match head.kind() {
            "request" => reader.block(MAX_REQUEST)?.bytes,
            "response" | "revisit" => reader.block(STATUS_LINE)?.bytes,
            _ => Vec::new(),
        };
        let Some(span) = reader.finish()? else { return Ok(None) };
        match head.kind() {
            "request" => self.request(&head, &start),
            "response" | "revisit" | "resource" => self.capture(&head, &start, span),
            _ => {}
        }
        Ok(Some(span))
    }

    fn request(&mut self, head: &RecordHead, block: &[u8]) {
        let Some(http) = HttpHead::parse(block) else { return };
        let Some(method) = http.method().filter(|method| *method != "GET") else { return };
        let body = block.get(http.length..).unwrap_or_default();
        for id in ids(head) {
            self.requests.insert(id, (method.to_owned(), body.to_vec()));
        }
    }

    fn capture(&mut self, head: &RecordHead, start: &[u8], span: Span) {
        let Some(key) = head.target().and_then(CaptureKey::of) else { return };
        let capture = Capture {
            file: self.file,
            status: HttpHead::parse(start).and_then(|http| http.status()).unwrap_or(0),
            is_revisit: head.kind() == "revisit",
            offset: span.offset,
            length: span.length,
            moment: head.date().and_then(Moment::parse).unwrap_or_default(),
        };
        self.found.push(Found { key, capture, ids: ids(head).collect() });
    }

    /// Adds what was found: all captures, and those of other methods also by their URLs alone.
    pub(super) fn finish(
        self,
        entries: &mut Vec<(CaptureKey, Capture)>,
        others: &mut Vec<(CaptureKey, Capture)>,
    ) {
        for Found { key, capture, ids } in self.found {
            match ids.iter().find_map(|id| self.requests.get(id)) {
                Some((method, body)) => {
                    entries.push((key.with(method, body), capture));
                    others.push((key, capture));
                }
                None => entries.push((key, capture)),
            }
        }
    }
}

fn ids(head: &RecordHead) -> impl Iterator<Item = u64> {
    head.id().into_iter().chain(head.all("WARC-Concurrent-To")).map(|id| xxh3_64(id.as_bytes()))
}
