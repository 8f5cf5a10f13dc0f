//! Checks the records of files: their digests, their ids and what they refer to.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use crate::digest::{Digest, Hasher};
use crate::error::ReadError;
use crate::head::RecordHead;
use crate::message::{HttpHead, unchunked};
use crate::reader::WarcReader;

/// Greatest length in bytes of a block whose payload is compared with its digest.
const MAX_PAYLOAD: usize = 256 << 20;

/// Something that is wrong with a record, or may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Name of the file.
    pub file: String,
    /// Offset of the record in bytes.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
    /// Whether the file is damaged. A warning tells of something that a reader may miss, such as an original that is in another file.
    pub is_damage: bool,
}

/// A check of a set of files.
#[derive(Debug, Default)]
pub struct Check {
    /// Number of records by their type.
    pub records: std::collections::BTreeMap<String, u64>,
    /// What was found, in the order of the records.
    pub findings: Vec<Finding>,
    ids: HashSet<String>,
    /// URL and date of responses and resources.
    originals: HashSet<(String, String)>,
    /// Revisits whose original was not seen yet.
    revisits: HashMap<String, Vec<(String, u64)>>,
}

impl Check {
    /// Checks a file as a part of the set.
    ///
    /// # Errors
    /// The file is of another format, or cannot be read.
    pub fn file<R: Read>(&mut self, name: &str, reader: &mut WarcReader<R>) -> Result<(), ReadError> {
        let mut is_separate = true;
        loop {
            match self.record(name, reader, &mut is_separate) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) if error.is_damage() => {
                    let what = error.to_string();
                    let what = what.split_once(": ").map_or(what.clone(), |(_, what)| what.to_owned());
                    self.find(name, error.offset(), what, true);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Compares the revisits with all records: called after the last file.
    pub fn finish(&mut self) {
        let mut missing: Vec<(String, u64, String)> = Vec::new();
        for (original, revisits) in std::mem::take(&mut self.revisits) {
            let is_there = self.ids.contains(&original)
                || original
                    .split_once('\n')
                    .is_some_and(|(url, date)| self.originals.contains(&(url.to_owned(), date.to_owned())));
            if !is_there {
                let shown = original.split('\n').next().unwrap_or_default().to_owned();
                missing.extend(revisits.into_iter().map(|(file, at)| (file, at, shown.clone())));
            }
        }
        missing.sort();
        for (file, at, original) in missing {
            self.find(
                &file,
                at,
                format!("the original of the revisit is not in these files: {original}"),
                false,
            );
        }
    }

    fn find(&mut self, file: &str, offset: u64, what: impl Into<String>, is_damage: bool) {
        self.findings.push(Finding { file: file.to_owned(), offset, what: what.into(), is_damage });
    }

    fn record<R: Read>(
        &mut self,
        name: &str,
        reader: &mut WarcReader<R>,
        is_separate: &mut bool,
    ) -> Result<bool, ReadError> {
        let Some(head) = reader.next_head()? else { return Ok(false) };
        let told = head.get("WARC-Block-Digest").and_then(Digest::parse);
        let mut hasher = told.as_ref().map(|digest| Hasher::new(digest.kind()));
        let mut block = Vec::new();
        let keeps = head.kind() != "revisit" && head.get("WARC-Payload-Digest").is_some();
        reader.each_part(|part| {
            if let Some(hasher) = &mut hasher {
                hasher.update(part);
            }
            if keeps {
                let room = (MAX_PAYLOAD + 1).saturating_sub(block.len());
                block.extend_from_slice(&part[..part.len().min(room)]);
            }
            true
        })?;
        let Some(span) = reader.finish()? else { return Ok(false) };
        *self.records.entry(head.kind().to_owned()).or_default() += 1;
        if hasher.map(Hasher::finish) != told {
            self.find(name, span.offset, "the block does not have the digest that is told", true);
        }
        if keeps && block.len() <= MAX_PAYLOAD && has_other_payload(&head, &block) {
            self.find(name, span.offset, "the payload does not have the digest that is told", true);
        }
        if !span.is_separate && std::mem::take(is_separate) {
            self.find(
                name,
                span.offset,
                "one gzip stream has several records: no reader can begin at a record",
                false,
            );
        }
        self.note(name, span.offset, &head);
        Ok(true)
    }

    fn note(&mut self, name: &str, offset: u64, head: &RecordHead) {
        for field in ["WARC-Type", "WARC-Record-ID", "WARC-Date"] {
            if head.get(field).is_none() {
                self.find(name, offset, format!("the record has no {field}"), true);
            }
        }
        if let Some(id) = head.id()
            && !self.ids.insert(id.to_owned())
        {
            self.find(name, offset, format!("an earlier record has the same id, {id}"), true);
        }
        let target = head.target().unwrap_or_default().to_owned();
        if head.kind() != "revisit" {
            if matches!(head.kind(), "response" | "resource") {
                self.originals.insert((target, head.date().unwrap_or_default().to_owned()));
            }
            return;
        }
        let by_url = || {
            let url = head.get("WARC-Refers-To-Target-URI").unwrap_or_default();
            let date = head.get("WARC-Refers-To-Date").unwrap_or_default();
            format!("{url}\n{date}")
        };
        let original = head.get("WARC-Refers-To").map_or_else(by_url, str::to_owned);
        self.revisits.entry(original).or_default().push((name.to_owned(), offset));
    }
}

/// Whether the payload of a record is another one than its digest says. A digest may be of the body as it is, or without its chunks.
fn has_other_payload(head: &RecordHead, block: &[u8]) -> bool {
    let Some(told) = head.get("WARC-Payload-Digest").and_then(Digest::parse) else { return false };
    let is_http = head.get("Content-Type").is_some_and(|value| value.starts_with("application/http"));
    let start = if is_http { HttpHead::parse(block).map_or(0, |http| http.length) } else { 0 };
    let body = &block[start..];
    told.kind().of(body) != told && unchunked(body).is_none_or(|body| told.kind().of(&body) != told)
}
