//! The log layout: all changes in their order, in strings that grow. The index is in the memory of each process.
//!
//! ```text
//! APPEND sh:{<LANG>}:log:<segment>  <16 bytes hash, 8 bytes id>               for ids that are numbers
//! APPEND sh:{<LANG>}:tlog:<segment> <16 bytes hash, 2 bytes length, id>       for ids that are texts
//! HSET   sh:{<LANG>}:log:meta version, layout, features, tag
//! SADD   sh:log:languages <LANG>
//! ```
//!
//! All binary numbers are big-endian. The last record of an id counts; the hash 0 says that the document was removed. A segment of 64 MiB
//! is followed by the next one. If the last record of a segment is cut off, it is ignored, and the next segment is begun. Every call reads
//! the records that other processes appended since the previous one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::client::{Batch, Client, Reply};
use super::latest::{distinct, latest};
use super::meta::{self, Meta, Scheme};
use super::server::Server;
use super::settings::HashTag;
use huntsman_detect::near::{
    DocId, Document, Identity, IndexError, IndexStats, Language, MemoryIndex, NearIndex, NearMatch,
};
use huntsman_detect::simhash::SimHash;

#[derive(Debug)]
pub(super) struct Log {
    server: Server,
    memory: MemoryIndex,
    tails: Mutex<BTreeMap<Language, Tails>>,
}

/// The positions up to which the logs of a language were read.
#[derive(Clone, Debug, Default)]
struct Tails {
    numbers: Tail,
    texts: Tail,
}

/// The position up to which each segment of a log was read.
#[derive(Clone, Debug, Default)]
struct Tail {
    read: Vec<u64>,
    /// Whether the last segment ends with an incomplete record.
    is_cut: bool,
}

/// The two logs of a language, by the kind of their ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ids {
    Numbers,
    Texts,
}

const SCHEME: Scheme = Scheme { layout: "log", registry: b"sh:log:languages" };
/// Bytes that one command reads.
const PIECE: u64 = 4 << 20;
/// Documents that one command appends, some 200 KB.
const DOCUMENTS: usize = 8192;

impl Log {
    pub(super) fn open(server: Server, identity: Identity) -> Result<Self, IndexError> {
        let mut client = server.client();
        let mut tails = BTreeMap::new();
        for language in meta::languages(&server, &mut client, SCHEME.registry)? {
            if is_described(&server, &mut client, &identity, language)? {
                tails.insert(language, Tails::default());
            }
        }
        drop(client);
        let mut failed = None;
        let mut replay =
            Replay { server: &server, languages: tails.iter_mut(), now: None, read: Vec::new().into_iter() };
        let documents = std::iter::from_fn(|| match replay.next() {
            Ok(document) => document,
            Err(error) => {
                failed = Some(error);
                None
            }
        });
        let memory = MemoryIndex::build(identity, documents)?;
        match failed {
            Some(error) => Err(error),
            None => Ok(Self { server, memory, tails: Mutex::new(tails) }),
        }
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    pub(super) fn identity(&self) -> &Identity {
        self.memory.identity()
    }

    fn tails(&self) -> MutexGuard<'_, BTreeMap<Language, Tails>> {
        self.tails.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the records that other processes appended since the last call.
    fn catch_up(&self, languages: impl IntoIterator<Item = Language>) -> Result<(), IndexError> {
        let mut tails = self.tails();
        let mut client = self.server.client();
        for language in languages {
            let tails = match tails.entry(language) {
                Entry::Occupied(tails) => tails.into_mut(),
                Entry::Vacant(_) if !is_described(&self.server, &mut client, self.identity(), language)? => {
                    continue;
                }
                Entry::Vacant(tails) => tails.insert(Tails::default()),
            };
            while let Some(documents) = read(&self.server, &mut client, language, tails)? {
                self.memory.insert(&documents)?;
            }
        }
        Ok(())
    }

    fn catch_up_all(&self) -> Result<(), IndexError> {
        let mut client = self.server.client();
        let mut languages = meta::languages(&self.server, &mut client, SCHEME.registry)?;
        drop(client);
        languages.sort_unstable();
        self.catch_up(languages)
    }

    pub(super) fn near(&self, queries: &[(Language, SimHash)]) -> Result<Vec<Vec<NearMatch>>, IndexError> {
        let mut languages: Vec<Language> = queries.iter().map(|(language, _)| *language).collect();
        languages.sort_unstable();
        languages.dedup();
        self.catch_up(languages)?;
        self.memory.near(queries)
    }

    pub(super) fn get(&self, language: Language, ids: &[DocId]) -> Result<Vec<Option<SimHash>>, IndexError> {
        self.catch_up([language])?;
        self.memory.get(&language, ids)
    }

    pub(super) fn insert(&self, documents: &[Document]) -> Result<(), IndexError> {
        for (language, documents) in latest(documents)? {
            // Reads the changes of other processes first, so that documents which exist already are not appended again.
            self.catch_up([language])?;
            for documents in documents.chunks(DOCUMENTS) {
                self.append(language, documents)?;
            }
        }
        Ok(())
    }

    pub(super) fn remove(&self, language: Language, ids: &[DocId]) -> Result<usize, IndexError> {
        self.catch_up([language])?;
        let mut removed = 0;
        for ids in distinct(ids).chunks(DOCUMENTS) {
            let documents: Vec<(&DocId, SimHash)> = ids.iter().map(|id| (*id, SimHash(0))).collect();
            removed += self.append(language, &documents)?;
        }
        Ok(removed)
    }

    /// Appends the records that do not exist already and applies them; returns the number of appended records.
    fn append(&self, language: Language, documents: &[(&DocId, SimHash)]) -> Result<usize, IndexError> {
        // Held to the end, so that the log and the memory have the same order.
        let mut tails = self.tails();
        let ids: Vec<DocId> = documents.iter().map(|(id, _)| (*id).clone()).collect();
        let there = self.memory.get(&language, &ids)?;
        let is_new = |there: &Option<SimHash>, hash: SimHash| there.unwrap_or_default() != hash;
        let new: Vec<Document> = ids
            .into_iter()
            .zip(documents)
            .zip(there)
            .filter(|((_, (_, hash)), there)| is_new(there, *hash))
            .map(|((id, (_, hash)), _)| Document { language, id, hash: *hash })
            .collect();
        if new.is_empty() {
            return Ok(0);
        }
        let mut client = self.server.client();
        let tails = match tails.entry(language) {
            Entry::Occupied(tails) => tails.into_mut(),
            Entry::Vacant(tails) => {
                if !is_described(&self.server, &mut client, self.identity(), language)? {
                    let key = meta_key(language);
                    meta::register(&mut client, SCHEME, language)?;
                    meta::create(&self.server, &mut client, SCHEME.layout, &key, self.identity(), &[])?;
                    // Another process may have created the language first, with other features.
                    is_described(&self.server, &mut client, self.identity(), language)?;
                }
                tails.insert(Tails::default())
            }
        };
        let count = new.len();
        let (numbers, texts): (Vec<_>, Vec<_>) =
            new.into_iter().partition(|document| matches!(document.id, DocId::Number(_)));
        self.append_to(&mut client, language, tails, Ids::Numbers, &numbers)?;
        self.append_to(&mut client, language, tails, Ids::Texts, &texts)?;
        Ok(count)
    }

    fn append_to(
        &self,
        client: &mut Client,
        language: Language,
        tails: &mut Tails,
        ids: Ids,
        mut documents: &[Document],
    ) -> Result<(), IndexError> {
        let settings = self.server.settings();
        let mut window = documents.len();
        let mut since: Option<Instant> = None;
        while !documents.is_empty() {
            let now = &documents[..documents.len().min(window)];
            let mut records = Vec::with_capacity(now.len() * 24);
            now.iter().for_each(|document| write_record(&mut records, document));
            let tail = tails.of(ids);
            let segment = tail.open_segment(settings.segment_bytes);
            let key = key(settings.tag, language, ids, segment);
            let known = tail.read.get(segment).copied().unwrap_or(0);
            match client.run_at_most_once(&[b"APPEND", &key, &records])? {
                Ok(reply) => {
                    let length = reply.number().map(i64::cast_unsigned);
                    if length == Some(known + records.len() as u64) {
                        tail.grow(segment, records.len() as u64);
                        self.memory.insert(now)?;
                    } else {
                        // Other processes appended in between; our records are behind theirs.
                        self.read_all(client, language, tails)?;
                    }
                    documents = &documents[now.len()..];
                    since = None;
                }
                // Perhaps the command was carried out and only the reply was lost: then the records are behind those read so far. They
                // cannot arrive later, because the connection on which they were sent is gone.
                Err(error) => {
                    let is_there = self.stands(client, &key, known, &records)?;
                    self.read_all(client, language, tails)?;
                    if is_there {
                        documents = &documents[now.len()..];
                        since = None;
                    } else if since.get_or_insert_with(Instant::now).elapsed()
                        >= settings.server.retry_patience()
                    {
                        return Err(error);
                    }
                    // If the data is too long for the network, smaller parts get through.
                    window = (now.len() / 4).max(1);
                }
            }
        }
        Ok(())
    }

    /// Whether these records are at the given position of a segment.
    fn stands(
        &self,
        client: &mut Client,
        key: &[u8],
        known: u64,
        records: &[u8],
    ) -> Result<bool, IndexError> {
        let start = known.to_string();
        let reply = client.call(&[b"GETRANGE", key, start.as_bytes(), b"-1"])?;
        let behind = reply.into_bytes().flatten().unwrap_or_default();
        let mut places = behind.windows(records.len());
        Ok(places.any(|place| place == records))
    }

    fn read_all(&self, client: &mut Client, language: Language, tails: &mut Tails) -> Result<(), IndexError> {
        while let Some(documents) = read(&self.server, client, language, tails)? {
            self.memory.insert(&documents)?;
        }
        Ok(())
    }

    pub(super) fn stats(&self) -> Result<IndexStats, IndexError> {
        self.catch_up_all()?;
        let mut stats = self.memory.stats()?;
        let tails = self.tails();
        let logs = tails.values().flat_map(|tails| [&tails.numbers, &tails.texts]);
        stats.bytes.insert("log", logs.flat_map(|tail| &tail.read).sum());
        Ok(stats)
    }

    pub(super) fn for_each(
        &self,
        each: &mut dyn FnMut(&Document) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        self.catch_up_all()?;
        self.memory.for_each(each)
    }
}

impl Tails {
    fn of(&mut self, ids: Ids) -> &mut Tail {
        match ids {
            Ids::Numbers => &mut self.numbers,
            Ids::Texts => &mut self.texts,
        }
    }
}

impl Tail {
    /// The segment to append to: the last one, or a new one if that is full or cut off.
    fn open_segment(&self, segment_bytes: u64) -> usize {
        match self.read.last() {
            None => 0,
            Some(length) if *length >= segment_bytes || self.is_cut => self.read.len(),
            Some(_) => self.read.len() - 1,
        }
    }

    fn grow(&mut self, segment: usize, bytes: u64) {
        if segment >= self.read.len() {
            self.read.resize(segment + 1, 0);
            self.is_cut = false;
        }
        self.read[segment] += bytes;
    }
}

/// An iterator over all documents of all logs, which reads them piece by piece.
struct Replay<'a, I> {
    server: &'a Server,
    languages: I,
    now: Option<(Language, &'a mut Tails)>,
    read: std::vec::IntoIter<Document>,
}

impl<'a, I: Iterator<Item = (&'a Language, &'a mut Tails)>> Replay<'a, I> {
    fn next(&mut self) -> Result<Option<Document>, IndexError> {
        loop {
            if let Some(document) = self.read.next() {
                return Ok(Some(document));
            }
            let Some((language, tails)) = &mut self.now else {
                let Some((language, tails)) = self.languages.next() else { return Ok(None) };
                self.now = Some((*language, tails));
                continue;
            };
            match read(self.server, &mut self.server.client(), *language, tails)? {
                Some(documents) => self.read = documents.into_iter(),
                None => self.now = None,
            }
        }
    }
}

/// Reads the records that were appended since the last time, up to a piece of each segment; `None` if there are none.
fn read(
    server: &Server,
    client: &mut Client,
    language: Language,
    tails: &mut Tails,
) -> Result<Option<Vec<Document>>, IndexError> {
    let tag = server.settings().tag;
    let mut batch = Batch::new();
    let mut asked = Vec::new();
    for ids in [Ids::Numbers, Ids::Texts] {
        let tail = tails.of(ids);
        // The segment after the last known one is read too, because it may have been begun.
        for (segment, from) in tail.read.iter().copied().chain([0]).enumerate() {
            let key = key(tag, language, ids, segment);
            let (start, end) = (from.to_string(), (from + PIECE - 1).to_string());
            batch.push(&[b"GETRANGE", &key, start.as_bytes(), end.as_bytes()]);
            asked.push((ids, segment, key));
        }
    }
    let mut documents = Vec::new();
    let mut has_grown = false;
    for ((ids, segment, key), reply) in asked.into_iter().zip(client.run(&batch)?) {
        let Reply::Bytes(bytes) = reply else {
            return Err(server.damaged(&key, "something else than a log"));
        };
        if bytes.is_empty() {
            continue;
        }
        let taken =
            read_records(language, ids, &bytes, &mut documents).map_err(|what| server.damaged(&key, what))?;
        let tail = tails.of(ids);
        let is_last = segment + 1 >= tail.read.len();
        // A new segment counts even if it contains only the beginning of a record.
        tail.grow(segment, taken as u64);
        has_grown |= taken > 0;
        if taken < bytes.len() && (bytes.len() as u64) < PIECE && is_last && !tail.is_cut {
            tail.is_cut = true;
            let key = String::from_utf8_lossy(&key);
            tracing::warn!(%key, bytes = bytes.len() - taken, "the log ends within a record, which is passed over");
        }
    }
    Ok((has_grown || !documents.is_empty()).then_some(documents))
}

fn write_record(out: &mut Vec<u8>, document: &Document) {
    out.extend(document.hash.0.to_be_bytes());
    match &document.id {
        DocId::Number(number) => out.extend(number.to_be_bytes()),
        DocId::Text(text) => {
            let length = u16::try_from(text.len()).expect("an id has at most 16 KiB");
            out.extend(length.to_be_bytes());
            out.extend(text.as_bytes());
        }
    }
}

/// Reads whole records; returns the number of their bytes.
fn read_records(
    language: Language,
    ids: Ids,
    bytes: &[u8],
    documents: &mut Vec<Document>,
) -> Result<usize, &'static str> {
    let mut rest = bytes;
    while let Some((hash, behind)) = rest.split_first_chunk::<16>() {
        let hash = SimHash(u128::from_be_bytes(*hash));
        let (id, behind) = match ids {
            Ids::Numbers => {
                let Some((number, behind)) = behind.split_first_chunk::<8>() else { break };
                (DocId::Number(u64::from_be_bytes(*number)), behind)
            }
            Ids::Texts => {
                let Some((length, behind)) = behind.split_first_chunk::<2>() else { break };
                let length = usize::from(u16::from_be_bytes(*length));
                if length > DocId::MAX_BYTES {
                    return Err("an id that is too long");
                }
                let Some((text, behind)) = behind.split_at_checked(length) else { break };
                let text = std::str::from_utf8(text).map_err(|_| "an id that is not text")?;
                (DocId::from(text), behind)
            }
        };
        documents.push(Document { language, id, hash });
        rest = behind;
    }
    Ok(bytes.len() - rest.len())
}

/// Whether a language has a log; if so, checks that it has our features.
fn is_described(
    server: &Server,
    client: &mut Client,
    identity: &Identity,
    language: Language,
) -> Result<bool, IndexError> {
    let key = meta_key(language);
    match Meta::read(server, client, &key)? {
        None => Ok(false),
        Some(meta) => meta.check(SCHEME.layout, server, identity, &key).map(|()| true),
    }
}

fn key(tag: HashTag, language: Language, ids: Ids, segment: usize) -> Vec<u8> {
    let part = if ids == Ids::Numbers { "log" } else { "tlog" };
    match tag {
        HashTag::Language => format!("sh:{{{language}}}:{part}:{segment}"),
        HashTag::Band => format!("sh:{{{language}:{part}}}:{segment}"),
        HashTag::Bucket => format!("sh:{{{language}:{part}:{segment}}}"),
    }
    .into_bytes()
}

fn meta_key(language: Language) -> Vec<u8> {
    format!("sh:{{{language}}}:log:meta").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents() -> (Language, Vec<Document>) {
        let language = Language::parse("hi").expect("a language");
        let ids = [DocId::from(""), "a".into(), "ü".into()];
        let documents = ids.into_iter().enumerate();
        (language, documents.map(|(at, id)| Document { language, id, hash: SimHash(at as u128) }).collect())
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let (language, texts) = documents();
        let mut log = Vec::new();
        texts.iter().for_each(|document| write_record(&mut log, document));
        for cut in 0..=log.len() {
            let mut read = Vec::new();
            let taken = read_records(language, Ids::Texts, &log[..cut], &mut read).expect("a log");
            assert_eq!(read, texts[..read.len()]);
            let mut whole = Vec::new();
            read.iter().for_each(|document| write_record(&mut whole, document));
            assert_eq!(whole, log[..taken]);
            assert!(cut - taken < 20 && (cut < log.len() || taken == cut));
        }
        let number = Document { language, id: 258.into(), hash: SimHash(u128::MAX) };
        let mut log = Vec::new();
        write_record(&mut log, &number);
        assert_eq!(log, [[255; 16].as_slice(), &[0, 0, 0, 0, 0, 0, 1, 2]].concat());
        let mut read = Vec::new();
        assert_eq!(read_records(language, Ids::Numbers, &[&log[..], &[1; 23]].concat(), &mut read), Ok(24));
        assert_eq!(read, [number]);
    }

    #[test]
    fn what_is_no_record_is_an_error() {
        let language = documents().0;
        let mut read = Vec::new();
        for wrong in [[&[1; 16][..], &[255, 255]].concat(), [&[1; 16][..], &[0, 1, 0xff]].concat()] {
            assert!(read_records(language, Ids::Texts, &wrong, &mut read).is_err());
        }
    }

    #[test]
    fn a_segment_that_is_full_or_cut_off_is_followed_by_the_next() {
        let mut tail = Tail::default();
        assert_eq!(tail.open_segment(48), 0);
        tail.grow(0, 24);
        assert_eq!(tail.open_segment(48), 0);
        tail.grow(0, 24);
        assert_eq!(tail.open_segment(48), 1);
        tail.grow(1, 24);
        assert_eq!(tail.open_segment(48), 1);
        tail.is_cut = true;
        assert_eq!(tail.open_segment(48), 2);
        tail.grow(2, 24);
        assert_eq!((tail.open_segment(48), tail.read), (2, vec![48, 24, 24]));
    }
}
