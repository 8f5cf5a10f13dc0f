//! The compact layout: four bands in sets of packed numbers, rows of 24 bytes.
//!
//! ```text
//! INCRBY sh:{<LANG>}:next                       numbers of documents are dense and of 32 bits
//! SADD   sh:{<LANG>}:<b>:<p> <m>                b = 0..3, p in hexadecimal digits
//!          v = fmix32(32 bits of the band), p = its top P bits, m = its other bits << 32 | number
//! HSET   sh:{<LANG>}:d:<number >> 7> <number & 127> <16 bytes hash, 8 bytes id>
//! HSET   sh:{<LANG>}:t:<number >> 7> <number & 127> <id>    for ids that are texts; their rows have 16 bytes
//! HSET   sh:{<LANG>}:i:<top P bits of a hash of the id> <id> <number>
//! HSET   sh:{<LANG>}:meta version, layout, features, p, tag, count
//! SADD   sh:languages <LANG>
//! ```
//!
//! All binary numbers are big-endian. Sets and hashes of this size are packed in the server's memory (with Redis 7's defaults up to 512
//! members and entries, values up to 64 bytes). A member contains the rest of a band, which is compared in this process, so that only rows
//! whose document has a band in common are fetched. fmix32 distributes the bands of texts, which are far from random: without it some
//! buckets would outgrow the packed form.
//!
//! Fingerprints within 3 bits have a band in common. For k of 4 to 7 they have a band in which they differ by at most one bit, so the 32
//! neighbours of each band are fetched as well: this is exact, and costs 33 times the work.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::{ControlFlow, Range};
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use xxhash_rust::xxh3::xxh3_64;

use super::client::{Batch, Client, Reply, Shape};
use super::latest::{distinct, latest};
use super::meta::{self, Meta, Scheme};
use super::mix::{fmix32, fmix64};
use super::sample::Sample;
use super::server::Server;
use super::settings::HashTag;
use super::tally::Tally;
use huntsman_detect::near::{
    DocId, Document, Identity, IndexError, IndexErrorKind, IndexStats, Language, NearMatch,
};
use huntsman_detect::simhash::SimHash;

#[derive(Debug)]
pub(super) struct Compact {
    server: Server,
    identity: Identity,
    languages: Mutex<BTreeMap<Language, Arc<Names>>>,
    /// Held while writing, so that only one call at a time reads the current rows and replaces them.
    writing: Mutex<()>,
    tally: Tally,
}

/// The names of the keys of a language.
#[derive(Debug)]
struct Names {
    language: Language,
    tag: HashTag,
    /// The number of bits of a band that are in the name of its bucket.
    p: u32,
}

/// The content of a document's row: its fingerprint, and its id if that is a number.
type Row = (SimHash, Option<u64>);

const SCHEME: Scheme = Scheme { layout: "compact", registry: b"sh:languages" };
/// Sets that are fetched in one batch, of some 100 members each.
const SETS: usize = 256;
/// Documents that are written in one batch, with up to twelve commands each.
const DOCUMENTS: usize = 512;
/// Commands of other kinds that are sent in one batch.
const COMMANDS: usize = 4096;
/// Documents per row bucket.
const ROWS: u32 = 128;

impl Compact {
    pub(super) fn open(server: Server, identity: Identity) -> Result<Self, IndexError> {
        let compact = Self {
            server,
            identity,
            languages: Mutex::default(),
            writing: Mutex::default(),
            tally: Tally::default(),
        };
        let mut client = compact.server.client();
        for language in meta::languages(&compact.server, &mut client, SCHEME.registry)? {
            compact.names(&mut client, language)?;
        }
        drop(client);
        Ok(compact)
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    fn languages(&self) -> MutexGuard<'_, BTreeMap<Language, Arc<Names>>> {
        self.languages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names of a language's keys; `None` if the language has no keys.
    fn names(&self, client: &mut Client, language: Language) -> Result<Option<Arc<Names>>, IndexError> {
        if let Some(names) = self.languages().get(&language) {
            return Ok(Some(names.clone()));
        }
        let key = meta_key(language);
        let Some(meta) = Meta::read(&self.server, client, &key)? else { return Ok(None) };
        meta.check(SCHEME.layout, &self.server, &self.identity, &key)?;
        let p = meta.number("p").filter(|p| (1..=24).contains(p));
        let p = p.ok_or_else(|| self.server.damaged(&key, "no number of bits"))? as u32;
        let names = Arc::new(Names { language, tag: self.server.settings().tag, p });
        self.languages().insert(language, names.clone());
        Ok(Some(names))
    }

    /// The names of a language's keys; the language is created if it does not exist.
    fn create(&self, client: &mut Client, language: Language) -> Result<Arc<Names>, IndexError> {
        if let Some(names) = self.names(client, language)? {
            return Ok(names);
        }
        let p = bits(self.server.settings().design_size_for(language)).to_string();
        let own = [("p", p.as_str())];
        meta::register(client, SCHEME, language)?;
        meta::create(&self.server, client, SCHEME.layout, &meta_key(language), &self.identity, &own)?;
        let names = self.names(client, language)?;
        names.ok_or_else(|| self.server.damaged(&meta_key(language), "nothing, though it was just written"))
    }

    pub(super) fn near(&self, queries: &[(Language, SimHash)]) -> Result<Vec<Vec<NearMatch>>, IndexError> {
        let mut client = self.server.client();
        let wanted: BTreeSet<Language> = queries.iter().map(|(language, _)| *language).collect();
        let mut names = HashMap::new();
        for language in wanted {
            if let Some(found) = self.names(&mut client, language)? {
                names.insert(language, found);
            }
        }
        let neighbours = if self.identity.k() < 4 { 1 } else { 33 };
        let together = (SETS / (4 * neighbours)).max(1);
        let ask = |client: &mut Client, queries: &[(Language, SimHash)]| {
            let mut found = Vec::with_capacity(queries.len());
            for queries in queries.chunks(together) {
                self.near_some(client, &names, neighbours, queries, &mut found)?;
            }
            Ok::<_, IndexError>(found)
        };
        if queries.len() <= 2 * together {
            return ask(&mut client, queries);
        }
        // While this process reads the replies to one half, the server works on the other.
        let (one, other) = queries.split_at(queries.len() / 2);
        let (one, other) = thread::scope(|scope| {
            let other = scope.spawn(|| ask(&mut self.server.client(), other));
            (ask(&mut client, one), other.join())
        });
        let mut found = one?;
        found.extend(other.unwrap_or_else(|panic| resume_unwind(panic))?);
        Ok(found)
    }

    fn near_some(
        &self,
        client: &mut Client,
        names: &HashMap<Language, Arc<Names>>,
        neighbours: usize,
        queries: &[(Language, SimHash)],
        found: &mut Vec<Vec<NearMatch>>,
    ) -> Result<(), IndexError> {
        let mut batch = Batch::of(Shape::Numbers);
        // The rest of the band for each set: a member with this rest is a document with the band in common.
        let mut rests = Vec::new();
        for (language, hash) in queries {
            let Some(names) = names.get(language).filter(|_| hash.0 != 0) else { continue };
            for (band, value) in wide_bands(*hash).into_iter().enumerate() {
                for neighbour in 0..neighbours {
                    let flipped = if neighbour == 0 { value } else { value ^ 1 << (neighbour - 1) };
                    let (bucket, rest) = names.split(flipped);
                    batch.push(&[b"SMEMBERS", &names.bucket(band, bucket)]);
                    rests.push(rest);
                }
            }
        }
        let mut sets = client.run(&batch)?.into_iter().zip(rests);
        let mut candidates: Vec<Vec<u32>> = Vec::with_capacity(queries.len());
        for (language, hash) in queries {
            let is_asked = names.contains_key(language) && hash.0 != 0;
            let mut numbers = Vec::new();
            for (reply, rest) in sets.by_ref().take(if is_asked { 4 * neighbours } else { 0 }) {
                let Reply::Numbers(members) = reply else {
                    return Err(self.server.damaged(SCHEME.registry, "languages whose buckets are not sets"));
                };
                let common = members.into_iter().filter(|member| member >> 32 == u64::from(rest));
                numbers.extend(common.map(|member| member as u32));
            }
            numbers.sort_unstable();
            numbers.dedup();
            candidates.push(numbers);
        }
        self.tally.record(candidates.iter().map(Vec::len));

        let mut wanted: Vec<(Language, u32)> = Vec::new();
        for ((language, _), numbers) in queries.iter().zip(&candidates) {
            wanted.extend(numbers.iter().map(|number| (*language, *number)));
        }
        wanted.sort_unstable();
        wanted.dedup();
        let by_language: Vec<(&Names, u32)> =
            wanted.iter().map(|(language, number)| (&*names[language], *number)).collect();
        let rows: HashMap<(Language, u32), Row> = wanted
            .iter()
            .copied()
            .zip(self.rows(client, &by_language)?)
            .filter_map(|(document, row)| Some((document, row?)))
            .collect();

        // For each query the documents within k bits; their text ids are fetched afterwards.
        let mut within: Vec<(usize, u32, u32, Option<u64>)> = Vec::new();
        for (query, ((language, hash), numbers)) in queries.iter().zip(&candidates).enumerate() {
            for number in numbers {
                // A number without a row belongs to a document that is being written or was removed.
                let Some((other, id)) = rows.get(&(*language, *number)) else { continue };
                let distance = hash.distance(*other);
                if distance <= self.identity.k() {
                    within.push((query, *number, distance, *id));
                }
            }
        }
        let unnamed = within.iter().filter(|(.., id)| id.is_none());
        let unnamed: Vec<(&Names, u32)> =
            unnamed.map(|(query, number, ..)| (&*names[&queries[*query].0], *number)).collect();
        let mut texts = self.texts(client, &unnamed)?.into_iter();
        let first = found.len();
        found.resize_with(first + queries.len(), Vec::new);
        for (query, _, distance, id) in within {
            let id = match id {
                Some(number) => Some(DocId::Number(number)),
                None => texts.next().flatten(),
            };
            found[first + query].extend(id.map(|id| NearMatch { id, distance }));
        }
        found[first..].iter_mut().for_each(|near| near.sort_by(NearMatch::order));
        Ok(())
    }

    /// The rows of documents, one for each number, in their order.
    fn rows(&self, client: &mut Client, numbers: &[(&Names, u32)]) -> Result<Vec<Option<Row>>, IndexError> {
        self.fields(client, b"d", numbers, |key, value| {
            read_row(&value).ok_or_else(|| self.server.damaged(key, "a row that has neither 24 nor 16 bytes"))
        })
    }

    /// The ids of documents whose ids are texts, one for each, in their order.
    fn texts(
        &self,
        client: &mut Client,
        numbers: &[(&Names, u32)],
    ) -> Result<Vec<Option<DocId>>, IndexError> {
        self.fields(client, b"t", numbers, |key, value| {
            let text =
                String::from_utf8(value).map_err(|_| self.server.damaged(key, "an id that is not text"))?;
            Ok(DocId::from(text))
        })
    }

    fn fields<T>(
        &self,
        client: &mut Client,
        part: &[u8],
        numbers: &[(&Names, u32)],
        read: impl Fn(&[u8], Vec<u8>) -> Result<T, IndexError>,
    ) -> Result<Vec<Option<T>>, IndexError> {
        let mut all = Vec::with_capacity(numbers.len());
        for numbers in numbers.chunks(COMMANDS) {
            let mut batch = Batch::new();
            for (names, number) in numbers {
                let (key, field) = names.row(part, *number);
                batch.push(&[b"HGET", &key, field.as_bytes()]);
            }
            for ((names, number), reply) in numbers.iter().zip(client.run(&batch)?) {
                let key = names.row(part, *number).0;
                match reply
                    .into_bytes()
                    .ok_or_else(|| self.server.damaged(&key, "something else than a value"))?
                {
                    Some(value) => all.push(Some(read(&key, value)?)),
                    None => all.push(None),
                }
            }
        }
        Ok(all)
    }

    /// The numbers of documents, one for each id, in their order.
    fn numbers(
        &self,
        client: &mut Client,
        names: &Names,
        ids: &[&DocId],
    ) -> Result<Vec<Option<u32>>, IndexError> {
        let mut numbers = Vec::with_capacity(ids.len());
        for ids in ids.chunks(COMMANDS) {
            let mut batch = Batch::new();
            for id in ids {
                let (key, field) = names.id(id);
                batch.push(&[b"HGET", &key, &field]);
            }
            for (id, reply) in ids.iter().zip(client.run(&batch)?) {
                numbers.push(self.number(&names.id(id).0, &reply)?);
            }
        }
        Ok(numbers)
    }

    fn number(&self, key: &[u8], reply: &Reply) -> Result<Option<u32>, IndexError> {
        if *reply == Reply::Nil {
            return Ok(None);
        }
        let number = reply.number().and_then(|number| u32::try_from(number).ok());
        number.map(Some).ok_or_else(|| self.server.damaged(key, "a number of a document that is none"))
    }

    pub(super) fn get(&self, language: Language, ids: &[DocId]) -> Result<Vec<Option<SimHash>>, IndexError> {
        let mut client = self.server.client();
        let Some(names) = self.names(&mut client, language)? else { return Ok(vec![None; ids.len()]) };
        let ids: Vec<&DocId> = ids.iter().collect();
        let numbers = self.numbers(&mut client, &names, &ids)?;
        let hashes = self.hashes(&mut client, &names, &ids, &numbers)?;
        Ok(hashes)
    }

    /// The fingerprints of documents with these ids and numbers.
    fn hashes(
        &self,
        client: &mut Client,
        names: &Names,
        ids: &[&DocId],
        numbers: &[Option<u32>],
    ) -> Result<Vec<Option<SimHash>>, IndexError> {
        let known: Vec<(&Names, u32)> = numbers.iter().flatten().map(|number| (names, *number)).collect();
        let mut rows = self.rows(client, &known)?.into_iter();
        let mut hashes = Vec::with_capacity(ids.len());
        for (id, number) in ids.iter().zip(numbers) {
            let row = number.and_then(|number| Some((number, rows.next()??)));
            let Some((number, (hash, named))) = row else {
                hashes.push(None);
                continue;
            };
            let expected = if let DocId::Number(id) = id { Some(*id) } else { None };
            if named != expected {
                let key = names.row(b"d", number).0;
                return Err(self.server.damaged(&key, &format!("another document under the number of {id}")));
            }
            hashes.push(Some(hash));
        }
        Ok(hashes)
    }

    pub(super) fn insert(&self, documents: &[Document]) -> Result<(), IndexError> {
        let languages = latest(documents)?;
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut client = self.server.client();
        for (language, documents) in languages {
            let (none, some): (Vec<_>, Vec<_>) = documents.into_iter().partition(|(_, hash)| hash.0 == 0);
            if !some.is_empty() {
                let names = self.create(&mut client, language)?;
                for documents in some.chunks(DOCUMENTS) {
                    self.insert_some(&mut client, &names, documents)?;
                }
            }
            let none: Vec<&DocId> = none.into_iter().map(|(id, _)| id).collect();
            self.remove_all(&mut client, language, &none)?;
        }
        Ok(())
    }

    fn insert_some(
        &self,
        client: &mut Client,
        names: &Names,
        documents: &[(&DocId, SimHash)],
    ) -> Result<(), IndexError> {
        let ids: Vec<&DocId> = documents.iter().map(|(id, _)| *id).collect();
        let mut numbers = self.numbers(client, names, &ids)?;
        let reserved = self.claim(client, names, &ids, &mut numbers)?;
        // If another process has assigned the number, it may have a row already.
        let known: Vec<Option<u32>> =
            numbers.iter().map(|number| number.filter(|number| !reserved.contains(number))).collect();
        let old = self.hashes(client, names, &ids, &known)?;
        // First the new bands are added, then the row is written, then the old bands are removed. So at each moment a document is found by
        // the content of its row, and if the process stops in between, the worst that remains is a number in a set where it is not needed.
        let (mut add, mut write, mut remove) = (Batch::new(), Batch::new(), Batch::new());
        for (((id, hash), number), old) in documents.iter().zip(numbers).zip(old) {
            let number = number.expect("each id was given a number");
            let (new_members, old_members) =
                (names.members(*hash, number), old.map(|old| names.members(old, number)));
            for (key, member) in &new_members {
                add.push(&[b"SADD", key, member]);
            }
            for old in old_members.iter().flatten().filter(|old| !new_members.contains(old)) {
                remove.push(&[b"SREM", &old.0, &old.1]);
            }
            let mut row = hash.0.to_be_bytes().to_vec();
            match id {
                DocId::Number(id) => row.extend(id.to_be_bytes()),
                DocId::Text(text) => {
                    let (key, field) = names.row(b"t", number);
                    add.push(&[b"HSET", &key, field.as_bytes(), text.as_bytes()]);
                }
            }
            let (key, field) = names.row(b"d", number);
            write.push(&[b"HSET", &key, field.as_bytes(), &row]);
        }
        client.run_in_order(vec![add, write, remove])
    }

    /// Assigns numbers to ids that have none; returns which numbers are newly assigned.
    ///
    /// A number that is reserved and then not used, because the process ends or another one is faster, is never used.
    fn claim(
        &self,
        client: &mut Client,
        names: &Names,
        ids: &[&DocId],
        numbers: &mut [Option<u32>],
    ) -> Result<Range<u32>, IndexError> {
        let new: Vec<usize> = (0..ids.len()).filter(|at| numbers[*at].is_none()).collect();
        if new.is_empty() {
            return Ok(0..0);
        }
        let key = next_key(names.language);
        let next = client.call(&[b"INCRBY", &key, new.len().to_string().as_bytes()])?.number();
        let first = next.and_then(|next| next.checked_sub_unsigned(new.len() as u64));
        let first =
            first.and_then(|first| u32::try_from(first).ok().filter(|_| next <= Some(i64::from(u32::MAX))));
        let first = first.ok_or_else(|| {
            let message = format!("{} has had 2^32 documents, and there is no number left", names.language);
            IndexError::new(IndexErrorKind::Full, message).at(self.server.settings().address())
        })?;
        let reserved = first..first + new.len() as u32;
        let mut batch = Batch::new();
        for (number, at) in reserved.clone().zip(&new) {
            let (key, field) = names.id(ids[*at]);
            batch.push(&[b"HSETNX", &key, &field, number.to_string().as_bytes()]);
        }
        let replies = client.run(&batch)?;
        let mut others = Vec::new();
        for ((number, at), reply) in reserved.clone().zip(new).zip(replies) {
            if reply == Reply::Number(1) {
                numbers[at] = Some(number);
            } else {
                others.push(at);
            }
        }
        // Another process was faster; or this one was, and the reply was lost.
        let other_ids: Vec<&DocId> = others.iter().map(|at| ids[*at]).collect();
        for (at, number) in others.into_iter().zip(self.numbers(client, names, &other_ids)?) {
            numbers[at] = number;
            if number.is_none() {
                return Err(self
                    .server
                    .damaged(&names.id(ids[at]).0, "no number, though it was just written"));
            }
        }
        Ok(reserved)
    }

    pub(super) fn remove(&self, language: Language, ids: &[DocId]) -> Result<usize, IndexError> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.remove_all(&mut self.server.client(), language, &distinct(ids))
    }

    fn remove_all(
        &self,
        client: &mut Client,
        language: Language,
        ids: &[&DocId],
    ) -> Result<usize, IndexError> {
        let Some(names) = self.names(client, language)? else { return Ok(0) };
        let mut removed = 0;
        for ids in ids.chunks(DOCUMENTS) {
            let numbers = self.numbers(client, &names, ids)?;
            let old = self.hashes(client, &names, ids, &numbers)?;
            removed += old.iter().flatten().count();
            // The row is removed first: without it the document is not found. Its number is removed last: if the process stops before that,
            // the next removal finds the rest again.
            let (mut row, mut rest, mut number_of) = (Batch::new(), Batch::new(), Batch::new());
            for ((id, number), old) in ids.iter().zip(numbers).zip(old) {
                let Some(number) = number else { continue };
                let (key, field) = names.row(b"d", number);
                row.push(&[b"HDEL", &key, field.as_bytes()]);
                for (key, member) in old.iter().flat_map(|old| names.members(*old, number)) {
                    rest.push(&[b"SREM", &key, &member]);
                }
                if let DocId::Text(_) = id {
                    let (key, field) = names.row(b"t", number);
                    rest.push(&[b"HDEL", &key, field.as_bytes()]);
                }
                let (key, field) = names.id(id);
                number_of.push(&[b"HDEL", &key, &field]);
            }
            client.run_in_order(vec![row, rest, number_of])?;
        }
        Ok(removed)
    }

    pub(super) fn stats(&self) -> Result<IndexStats, IndexError> {
        let mut stats = IndexStats::default();
        let mut client = self.server.client();
        for language in meta::languages(&self.server, &mut client, SCHEME.registry)? {
            let Some(names) = self.names(&mut client, language)? else { continue };
            let buckets = self.row_buckets(&mut client, language)?;
            let documents = self.documents(&mut client, &names, buckets)?;
            if documents == 0 {
                continue;
            }
            let part = stats.languages.entry(language).or_default();
            part.documents = documents;
            type Key<'a> = Box<dyn Fn(u64) -> Vec<u8> + 'a>;
            let parts: [(&'static str, u64, Key<'_>); 4] = [
                ("bands", 4 << names.p, Box::new(|at| names.bucket((at & 3) as usize, (at >> 2) as u32))),
                ("hashes", u64::from(buckets), Box::new(|at| names.row(b"d", at as u32 * ROWS).0)),
                ("ids", 1 << names.p, Box::new(|at| names.key(b"i", at as u32))),
                ("texts", u64::from(buckets), Box::new(|at| names.row(b"t", at as u32 * ROWS).0)),
            ];
            for (name, keys, key) in parts {
                let mut sample = Sample::new(keys);
                while let Some(at) = sample.next() {
                    sample.push(&key(at));
                }
                if let Some(bytes) = sample.bytes(&mut client)?.filter(|bytes| *bytes > 0) {
                    part.bytes.insert(name, bytes);
                }
            }
        }
        self.tally.write_to(&mut stats);
        Ok(stats)
    }

    /// The number of row buckets that may exist.
    fn row_buckets(&self, client: &mut Client, language: Language) -> Result<u32, IndexError> {
        let next = client.call(&[b"GET", &next_key(language)])?.number().unwrap_or(0);
        Ok(u32::try_from(next).unwrap_or(u32::MAX).div_ceil(ROWS))
    }

    fn documents(&self, client: &mut Client, names: &Names, buckets: u32) -> Result<u64, IndexError> {
        let mut documents = 0;
        for start in (0..buckets).step_by(COMMANDS) {
            let mut batch = Batch::new();
            for bucket in start..buckets.min(start + COMMANDS as u32) {
                batch.push(&[b"HLEN", &names.key(b"d", bucket)]);
            }
            let lengths = client.run(&batch)?;
            documents += lengths.iter().filter_map(Reply::number).map(i64::cast_unsigned).sum::<u64>();
        }
        Ok(documents)
    }

    pub(super) fn for_each(
        &self,
        each: &mut dyn FnMut(&Document) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        let languages = meta::languages(&self.server, &mut self.server.client(), SCHEME.registry)?;
        for language in languages {
            let Some(names) = self.names(&mut self.server.client(), language)? else { continue };
            let buckets = self.row_buckets(&mut self.server.client(), language)?;
            for start in (0..buckets).step_by(64) {
                // The whole bucket is read before its first document is shown, because the callback may call the index.
                for document in self.bucket_documents(&names, start..buckets.min(start + 64))? {
                    if each(&document).is_break() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    fn bucket_documents(&self, names: &Names, buckets: Range<u32>) -> Result<Vec<Document>, IndexError> {
        let mut client = self.server.client();
        let mut batch = Batch::new();
        buckets.clone().for_each(|bucket| batch.push(&[b"HGETALL", &names.key(b"d", bucket)]));
        let mut rows: Vec<(u32, Row)> = Vec::new();
        for (bucket, reply) in buckets.zip(client.run(&batch)?) {
            let key = names.key(b"d", bucket);
            let wrong = || self.server.damaged(&key, "rows of another form");
            for pair in reply.into_values().ok_or_else(wrong)?.chunks_exact(2) {
                let [Some(field), Some(value)] = pair else { return Err(wrong()) };
                let field = std::str::from_utf8(field).ok().and_then(|field| field.parse::<u32>().ok());
                let field = field.filter(|field| *field < ROWS).ok_or_else(wrong)?;
                rows.push((bucket * ROWS + field, read_row(value).ok_or_else(wrong)?));
            }
        }
        let unnamed: Vec<(&Names, u32)> =
            rows.iter().filter(|(_, (_, id))| id.is_none()).map(|(number, _)| (names, *number)).collect();
        let mut texts = self.texts(&mut client, &unnamed)?.into_iter();
        let named = rows.into_iter().filter_map(|(_, (hash, id))| {
            let id = match id {
                Some(id) => DocId::Number(id),
                None => texts.next()??,
            };
            Some(Document { language: names.language, id, hash })
        });
        Ok(named.collect())
    }

    /// Stores the number of documents, for people who inspect the server.
    pub(super) fn flush(&self) -> Result<(), IndexError> {
        let mut client = self.server.client();
        let known: Vec<Arc<Names>> = self.languages().values().cloned().collect();
        for names in known {
            let buckets = self.row_buckets(&mut client, names.language)?;
            let documents = self.documents(&mut client, &names, buckets)?.to_string();
            client.call(&[b"HSET", &meta_key(names.language), b"count", documents.as_bytes()])?;
        }
        Ok(())
    }
}

impl Names {
    /// The name of a key. The part in braces decides which node of a cluster has it.
    fn key(&self, part: &[u8], bucket: u32) -> Vec<u8> {
        use std::io::Write;
        let mut key = Vec::with_capacity(64);
        let part = std::str::from_utf8(part).expect("parts have names in ASCII");
        let language = self.language;
        match self.tag {
            HashTag::Language => write!(key, "sh:{{{language}}}:{part}:{bucket:x}"),
            HashTag::Band => write!(key, "sh:{{{language}:{part}}}:{bucket:x}"),
            HashTag::Bucket => write!(key, "sh:{{{language}:{part}:{bucket:x}}}"),
        }
        .expect("memory takes what is written");
        key
    }

    fn bucket(&self, band: usize, bucket: u32) -> Vec<u8> {
        const BANDS: [&[u8]; 4] = [b"0", b"1", b"2", b"3"];
        self.key(BANDS[band], bucket)
    }

    /// The key and field of a document's row or text.
    fn row(&self, part: &[u8], number: u32) -> (Vec<u8>, String) {
        (self.key(part, number / ROWS), (number % ROWS).to_string())
    }

    /// The key and field of an id's number. A text begins with a quotation mark, so that it is not mistaken for a number.
    fn id(&self, id: &DocId) -> (Vec<u8>, Vec<u8>) {
        let (hash, field) = match id {
            DocId::Number(number) => (fmix64(*number), number.to_string().into_bytes()),
            DocId::Text(text) => (xxh3_64(text.as_bytes()), [b"\"", text.as_bytes()].concat()),
        };
        (self.key(b"i", (hash >> (64 - self.p)) as u32), field)
    }

    /// The bucket of a band, and the rest of the band.
    fn split(&self, band: u32) -> (u32, u32) {
        let mixed = u64::from(fmix32(band));
        let rest_bits = 32 - self.p;
        ((mixed >> rest_bits) as u32, (mixed & ((1 << rest_bits) - 1)) as u32)
    }

    /// The sets that contain a document, and its member in each.
    fn members(&self, hash: SimHash, number: u32) -> [(Vec<u8>, Vec<u8>); 4] {
        let mut band = 0;
        wide_bands(hash).map(|value| {
            let (bucket, rest) = self.split(value);
            let member = u64::from(rest) << 32 | u64::from(number);
            band += 1;
            (self.bucket(band - 1, bucket), member.to_string().into_bytes())
        })
    }
}

/// The number of bits at which a bucket has 64 to 128 documents.
fn bits(design_size: u64) -> u32 {
    (design_size / 64).checked_ilog2().unwrap_or(0).clamp(1, 24)
}

fn wide_bands(hash: SimHash) -> [u32; 4] {
    std::array::from_fn(|band| (hash.0 >> (96 - 32 * band)) as u32)
}

fn read_row(row: &[u8]) -> Option<Row> {
    let (hash, id) = row.split_first_chunk::<16>()?;
    let id = match id.len() {
        0 => None,
        _ => Some(u64::from_be_bytes(id.try_into().ok()?)),
    };
    Some((SimHash(u128::from_be_bytes(*hash)), id))
}

fn meta_key(language: Language) -> Vec<u8> {
    format!("sh:{{{language}}}:meta").into_bytes()
}

fn next_key(language: Language) -> Vec<u8> {
    format!("sh:{{{language}}}:next").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tag: HashTag, p: u32) -> Names {
        Names { language: Language::parse("hi").expect("a language"), tag, p }
    }

    #[test]
    fn buckets_are_made_for_64_to_128_documents() {
        assert_eq!([0, 1, 127, 128, 255, 256].map(bits), [1, 1, 1, 1, 1, 2]);
        for design_size in [1000, 131_072, 1_000_000, 4_170_000, 15_896_966] {
            let bucket = design_size >> bits(design_size);
            assert!((64..=128).contains(&bucket), "{design_size}: {bucket}");
        }
        assert_eq!((bits(4_170_000), bits(200_000)), (15, 11));
        assert_eq!(bits(u64::MAX), 24);
    }

    #[test]
    fn the_tag_is_what_stands_in_braces() {
        let text = |tag| String::from_utf8(names(tag, 13).bucket(2, 0x3f)).expect("UTF-8");
        assert_eq!(text(HashTag::Language), "sh:{HINDI}:2:3f");
        assert_eq!(text(HashTag::Band), "sh:{HINDI:2}:3f");
        assert_eq!(text(HashTag::Bucket), "sh:{HINDI:2:3f}");
    }

    #[test]
    fn a_band_is_its_bucket_and_what_is_left() {
        for p in [1, 13, 24] {
            let names = names(HashTag::Language, p);
            for band in [0, 1, 0xffff, 0xdead_beef, u32::MAX] {
                let (bucket, rest) = names.split(band);
                assert!(u64::from(bucket) < 1 << p);
                assert_eq!(u64::from(bucket) << (32 - p) | u64::from(rest), u64::from(fmix32(band)));
                // A member is a positive 64-bit number, because the server packs only such numbers.
                assert!(u64::from(rest) << 32 | 0xffff_ffff <= i64::MAX as u64);
            }
        }
    }

    #[test]
    fn a_row_has_24_bytes_or_16() {
        let mut row = 7_u128.to_be_bytes().to_vec();
        assert_eq!(read_row(&row), Some((SimHash(7), None)));
        row.extend(9_u64.to_be_bytes());
        assert_eq!(read_row(&row), Some((SimHash(7), Some(9))));
        for wrong in [0, 15, 17, 23] {
            assert_eq!(read_row(&row[..wrong]), None);
        }
        row.push(0);
        assert_eq!(read_row(&row), None);
    }
}
