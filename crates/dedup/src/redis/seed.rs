//! The seed layout: eight bands in plain sets of ids, as in the first deployments.
//!
//! ```text
//! SADD <LANG>:<b>:<VVVV> <id>            b = 0..7, VVVV = the band in upper-case hexadecimal digits
//! HSET simhashes:<LANG> <id> <32 digits>
//! HSET simhashes-meta <LANG> <features>  written by this program only; languages that others began have none
//! ```
//!
//! An id is written unchanged. A text that looks like a number gets a quotation mark before it, so that it is read back as a text.

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::client::{Batch, Client, Reply};
use super::latest::{distinct, latest};
use super::sample::Sample;
use super::server::Server;
use super::tally::Tally;
use huntsman_detect::near::{DocId, Document, Identity, IndexError, IndexStats, Language, NearMatch};
use huntsman_detect::simhash::{Features, SimHash};

#[derive(Debug)]
pub(super) struct Seed {
    server: Server,
    identity: Identity,
    /// The languages whose features were checked.
    checked: Mutex<BTreeSet<Language>>,
    /// Held while writing, so that only one call at a time reads the current hashes and replaces them.
    writing: Mutex<()>,
    tally: Tally,
}

const META: &[u8] = b"simhashes-meta";
/// Queries that are sent in one batch; each returns some 500 ids.
const QUERIES: usize = 64;
/// Documents that are written in one batch, with nine commands each.
const DOCUMENTS: usize = 512;
/// Ids whose hashes are fetched with one command.
const IDS: usize = 1024;
/// Bytes of commands that are sent in one batch.
const PIPELINE: usize = 1 << 20;

/// The languages of the first deployments, which stored no list of them.
const KNOWN: [&str; 10] =
    ["HINDI", "BENGALI", "MARATHI", "TAMIL", "MALAYALAM", "TELUGU", "GUJARATI", "ODIA", "PUNJABI", "ENGLISH"];

impl Seed {
    pub(super) fn open(server: Server, identity: Identity) -> Result<Self, IndexError> {
        let seed = Self {
            server,
            identity,
            checked: Mutex::default(),
            writing: Mutex::default(),
            tally: Tally::default(),
        };
        for (language, features) in seed.recorded()? {
            seed.check(language, &features)?;
            seed.checked().insert(language);
        }
        Ok(seed)
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    fn checked(&self) -> MutexGuard<'_, BTreeSet<Language>> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The languages whose features were recorded, with the features.
    fn recorded(&self) -> Result<Vec<(Language, String)>, IndexError> {
        let reply = self.server.client().call(&[b"HGETALL", META])?;
        let wrong = || self.server.damaged(META, "something else than names of languages and features");
        let values = reply.into_values().ok_or_else(wrong)?;
        let text = |value: &Option<Vec<u8>>| String::from_utf8(value.clone().unwrap_or_default()).ok();
        values
            .chunks_exact(2)
            .map(|pair| {
                let language = text(&pair[0]).and_then(|name| Language::parse(&name).ok());
                Some((language?, text(&pair[1])?))
            })
            .collect::<Option<Vec<_>>>()
            .ok_or_else(wrong)
    }

    fn check(&self, language: Language, recorded: &str) -> Result<(), IndexError> {
        let features: Features = recorded.parse().map_err(|_| {
            let what = format!("the features {recorded} for {language}");
            self.server.damaged(META, &what)
        })?;
        // Eight bands serve every k.
        Identity::new(self.identity.k(), features)
            .and_then(|made| made.check(&self.identity))
            .map_err(|error| error.at(self.server.settings().address()))
    }

    /// Checks that a language has our features, and records these if the language is new.
    fn touch(&self, client: &mut Client, language: Language, writes: bool) -> Result<(), IndexError> {
        if self.checked().contains(&language) {
            return Ok(());
        }
        let (name, features) = (language.as_str().as_bytes(), self.identity.features().name());
        let mut batch = Batch::new();
        batch.push(&[b"HGET", META, name]);
        batch.push(&[b"EXISTS", &hashes_key(language)]);
        let replies = client.run(&batch)?;
        if let Reply::Bytes(recorded) = &replies[0] {
            self.check(language, &String::from_utf8_lossy(recorded))?;
        } else if replies[1] == Reply::Number(0) {
            if !writes {
                return Ok(());
            }
            client.call(&[b"HSETNX", META, name, features.as_bytes()])?;
            if let Reply::Bytes(recorded) = client.call(&[b"HGET", META, name])? {
                self.check(language, &String::from_utf8_lossy(&recorded))?;
            }
        } else {
            tracing::warn!(%language, features, "the index does not say which features it is made of: taken for those asked for");
        }
        self.checked().insert(language);
        Ok(())
    }

    pub(super) fn near(&self, queries: &[(Language, SimHash)]) -> Result<Vec<Vec<NearMatch>>, IndexError> {
        let mut client = self.server.client();
        let languages: BTreeSet<Language> = queries.iter().map(|(language, _)| *language).collect();
        for language in languages {
            self.touch(&mut client, language, false)?;
        }
        let mut found = Vec::with_capacity(queries.len());
        for queries in queries.chunks(QUERIES) {
            self.near_some(&mut client, queries, &mut found)?;
        }
        Ok(found)
    }

    fn near_some(
        &self,
        client: &mut Client,
        queries: &[(Language, SimHash)],
        found: &mut Vec<Vec<NearMatch>>,
    ) -> Result<(), IndexError> {
        let mut batch = Batch::new();
        // For each query, the number of its replies.
        let mut answers = Vec::with_capacity(queries.len());
        for (language, hash) in queries {
            let keys = band_keys(*language, *hash);
            if hash.0 == 0 {
                answers.push(0);
            } else if self.server.is_cluster() {
                // In a cluster, one command must not name keys of several slots.
                keys.iter().for_each(|key| batch.push(&[b"SMEMBERS", key]));
                answers.push(keys.len());
            } else {
                let mut command: Vec<&[u8]> = vec![b"SUNION"];
                command.extend(keys.iter().map(|key| key.as_slice()));
                batch.push(&command);
                answers.push(1);
            }
        }
        let mut replies = client.run(&batch)?.into_iter();
        let mut candidates: Vec<Vec<Vec<u8>>> = Vec::with_capacity(queries.len());
        for ((language, hash), answers) in queries.iter().zip(answers) {
            let mut ids = Vec::new();
            for reply in replies.by_ref().take(answers) {
                let members = reply.into_values().ok_or_else(|| {
                    self.server.damaged(&band_keys(*language, *hash)[0], "something else than a set")
                })?;
                ids.extend(members.into_iter().flatten());
            }
            if answers > 1 {
                ids.sort_unstable();
                ids.dedup();
            }
            candidates.push(ids);
        }
        self.tally.record(candidates.iter().map(Vec::len));

        let mut near: Vec<Vec<NearMatch>> = (0..queries.len()).map(|_| Vec::new()).collect();
        let mut batch = Batch::new();
        let mut asked: Vec<(usize, &[Vec<u8>])> = Vec::new();
        for (query, ids) in candidates.iter().enumerate() {
            for ids in ids.chunks(IDS) {
                push_hmget(&mut batch, queries[query].0, ids);
                asked.push((query, ids));
                if batch.bytes() >= PIPELINE {
                    self.compare(client, queries, &batch, &asked, &mut near)?;
                    batch = Batch::new();
                    asked.clear();
                }
            }
        }
        self.compare(client, queries, &batch, &asked, &mut near)?;
        for mut near in near {
            near.sort_by(NearMatch::order);
            found.push(near);
        }
        Ok(())
    }

    /// Fetches hashes, and keeps the documents within k bits.
    fn compare(
        &self,
        client: &mut Client,
        queries: &[(Language, SimHash)],
        batch: &Batch,
        asked: &[(usize, &[Vec<u8>])],
        near: &mut [Vec<NearMatch>],
    ) -> Result<(), IndexError> {
        if batch.is_empty() {
            return Ok(());
        }
        for ((query, ids), reply) in asked.iter().zip(client.run(batch)?) {
            let (language, hash) = queries[*query];
            for (id, value) in ids.iter().zip(self.hashes(language, reply)?) {
                // An id without a hash belongs to a writer that was stopped halfway or is still writing.
                let Some(other) = value else { continue };
                let distance = hash.distance(other);
                if distance <= self.identity.k() {
                    near[*query].push(NearMatch { id: read_id(id), distance });
                }
            }
        }
        Ok(())
    }

    /// The hashes in a reply to `HMGET`. An invalid value counts as missing, and so does 0, which carries no information.
    fn hashes(&self, language: Language, reply: Reply) -> Result<Vec<Option<SimHash>>, IndexError> {
        let wrong = || self.server.damaged(&hashes_key(language), "something else than a hash");
        let values = reply.into_values().ok_or_else(wrong)?;
        Ok(values.into_iter().map(|value| read_hash(&value?)).collect())
    }

    pub(super) fn get(&self, language: Language, ids: &[DocId]) -> Result<Vec<Option<SimHash>>, IndexError> {
        let mut client = self.server.client();
        let ids: Vec<Vec<u8>> = ids.iter().map(write_id).collect();
        let mut hashes = Vec::with_capacity(ids.len());
        for ids in ids.chunks(IDS) {
            hashes.extend(self.stored(&mut client, language, ids)?);
        }
        Ok(hashes)
    }

    fn stored(
        &self,
        client: &mut Client,
        language: Language,
        ids: &[Vec<u8>],
    ) -> Result<Vec<Option<SimHash>>, IndexError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut batch = Batch::new();
        push_hmget(&mut batch, language, ids);
        let reply = client.run(&batch)?.remove(0);
        self.hashes(language, reply)
    }

    pub(super) fn insert(&self, documents: &[Document]) -> Result<(), IndexError> {
        let languages = latest(documents)?;
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut client = self.server.client();
        for (language, documents) in languages {
            self.touch(&mut client, language, true)?;
            for documents in documents.chunks(DOCUMENTS) {
                let ids: Vec<Vec<u8>> = documents.iter().map(|(id, _)| write_id(id)).collect();
                let old = self.stored(&mut client, language, &ids)?;
                let new = documents.iter().map(|(_, hash)| Some(*hash).filter(|hash| hash.0 != 0));
                self.replace(&mut client, language, &ids, &old, &new.collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }

    pub(super) fn remove(&self, language: Language, ids: &[DocId]) -> Result<usize, IndexError> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut client = self.server.client();
        let mut removed = 0;
        for ids in distinct(ids).chunks(DOCUMENTS) {
            let ids: Vec<Vec<u8>> = ids.iter().map(|id| write_id(id)).collect();
            let old = self.stored(&mut client, language, &ids)?;
            removed += old.iter().flatten().count();
            self.replace(&mut client, language, &ids, &old, &vec![None; ids.len()])?;
        }
        Ok(removed)
    }

    /// Replaces old hashes with new ones.
    ///
    /// First the new bands are added, then the hash is written, then the old bands are removed. So at each moment a document is found by
    /// its hash, and if the process stops in between, the worst that remains is an id in a set where it is not needed. Bands that the old
    /// and the new hash have in common are written again, which repairs what an earlier stop left out.
    fn replace(
        &self,
        client: &mut Client,
        language: Language,
        ids: &[Vec<u8>],
        old: &[Option<SimHash>],
        new: &[Option<SimHash>],
    ) -> Result<(), IndexError> {
        let (mut add, mut write, mut remove) = (Batch::new(), Batch::new(), Batch::new());
        let key = hashes_key(language);
        let digits: Vec<String> = new.iter().map(|new| new.unwrap_or_default().to_string()).collect();
        let mut set: Vec<&[u8]> = vec![b"HSET", &key];
        let mut gone: Vec<&[u8]> = vec![b"HDEL", &key];
        for (at, id) in ids.iter().enumerate() {
            let old_keys = old[at].map_or(Vec::new(), |old| band_keys(language, old));
            let new_keys = new[at].map_or(Vec::new(), |new| band_keys(language, new));
            new_keys.iter().for_each(|key| add.push(&[b"SADD", key, id]));
            for key in old_keys.iter().filter(|key| !new_keys.contains(key)) {
                remove.push(&[b"SREM", key, id]);
            }
            match new[at] {
                Some(_) => set.extend([id.as_slice(), digits[at].as_bytes()]),
                None => gone.push(id),
            }
        }
        [set, gone].iter().filter(|command| command.len() > 2).for_each(|command| write.push(command));
        client.run_in_order(vec![add, write, remove])
    }

    pub(super) fn stats(&self) -> Result<IndexStats, IndexError> {
        let mut stats = IndexStats::default();
        let mut client = self.server.client();
        for language in self.languages(&mut client)? {
            let key = hashes_key(language);
            let documents = client.call(&[b"HLEN", &key])?.number().unwrap_or(0).max(0).cast_unsigned();
            if documents == 0 {
                continue;
            }
            let part = stats.languages.entry(language).or_default();
            part.documents = documents;
            let mut sample = Sample::new(8 << 16);
            while let Some(at) = sample.next() {
                let (band, value) = (at >> 16, at & 0xffff);
                sample.push(format!("{language}:{band}:{value:04X}").as_bytes());
            }
            if let Some(bytes) = sample.bytes(&mut client)? {
                part.bytes.insert("bands", bytes);
            }
            let mut batch = Batch::new();
            batch.push_keyed(&[b"MEMORY", b"USAGE", &key, b"SAMPLES", b"100"], &key);
            if let Some(bytes) = client.answers(&batch)?.remove(0).number() {
                part.bytes.insert("hashes", bytes.max(0).cast_unsigned());
            }
        }
        self.tally.write_to(&mut stats);
        Ok(stats)
    }

    fn languages(&self, client: &mut Client) -> Result<Vec<Language>, IndexError> {
        let mut languages: Vec<Language> =
            KNOWN.iter().map(|name| Language::parse(name).expect("a name of a language")).collect();
        languages.extend(self.recorded()?.into_iter().map(|(language, _)| language));
        languages.sort_unstable();
        languages.dedup();
        let mut batch = Batch::new();
        languages.iter().for_each(|language| batch.push(&[b"EXISTS", &hashes_key(*language)]));
        let mut exists = client.run(&batch)?.into_iter().map(|reply| reply == Reply::Number(1));
        languages.retain(|_| exists.next() == Some(true));
        Ok(languages)
    }

    pub(super) fn for_each(
        &self,
        each: &mut dyn FnMut(&Document) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        let languages = self.languages(&mut self.server.client())?;
        for language in languages {
            let key = hashes_key(language);
            let mut cursor = b"0".to_vec();
            // A scan may return keys twice if the server moves them meanwhile. For each document 16 bytes are kept, not its id.
            let mut seen = HashSet::new();
            loop {
                let reply = self.server.client().call(&[b"HSCAN", &key, &cursor, b"COUNT", b"1000"])?;
                let wrong = || self.server.damaged(&key, "something else than a hash");
                let mut parts = reply.into_list().ok_or_else(wrong)?.into_iter();
                let (Some(Reply::Bytes(next)), Some(list)) = (parts.next(), parts.next()) else {
                    return Err(wrong());
                };
                let values: Vec<Vec<u8>> =
                    list.into_values().ok_or_else(wrong)?.into_iter().flatten().collect();
                for pair in values.chunks_exact(2) {
                    let Some(hash) = read_hash(&pair[1]) else { continue };
                    if !seen.insert(xxhash_rust::xxh3::xxh3_128(&pair[0])) {
                        continue;
                    }
                    let document = Document { language, id: read_id(&pair[0]), hash };
                    if each(&document).is_break() {
                        return Ok(());
                    }
                }
                if next == b"0" {
                    break;
                }
                cursor = next;
            }
        }
        Ok(())
    }
}

fn hashes_key(language: Language) -> Vec<u8> {
    format!("simhashes:{language}").into_bytes()
}

fn band_keys(language: Language, hash: SimHash) -> Vec<Vec<u8>> {
    let bands = hash.bands();
    bands.iter().enumerate().map(|(at, band)| format!("{language}:{at}:{band:04X}").into_bytes()).collect()
}

/// Adds a request for the hashes of ids.
fn push_hmget(batch: &mut Batch, language: Language, ids: &[Vec<u8>]) {
    let key = hashes_key(language);
    let mut parts: Vec<&[u8]> = vec![b"HMGET", &key];
    parts.extend(ids.iter().map(Vec::as_slice));
    batch.push(&parts);
}

fn read_hash(value: &[u8]) -> Option<SimHash> {
    let hash: SimHash = std::str::from_utf8(value).ok()?.parse().ok()?;
    (hash.0 != 0).then_some(hash)
}

/// The number that a text of digits stands for, if the text is the canonical form of the number.
fn canonical_number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn write_id(id: &DocId) -> Vec<u8> {
    match id {
        DocId::Number(number) => number.to_string().into_bytes(),
        DocId::Text(text) if canonical_number(text.trim_start_matches('"')).is_some() => {
            format!("\"{text}").into_bytes()
        }
        DocId::Text(text) => text.as_bytes().to_vec(),
    }
}

/// The id in a set. If another program wrote bytes that are not UTF-8, they become U+FFFD.
fn read_id(bytes: &[u8]) -> DocId {
    let text = String::from_utf8_lossy(bytes);
    if let Some(number) = canonical_number(&text) {
        return DocId::Number(number);
    }
    match text.strip_prefix('"') {
        Some(inner) if canonical_number(inner.trim_start_matches('"')).is_some() => inner.into(),
        _ => (*text).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_as_they_were() {
        for (id, written) in [
            (DocId::Number(0), "0"),
            (DocId::Number(u64::MAX), "18446744073709551615"),
            ("5".into(), "\"5"),
            ("\"5".into(), "\"\"5"),
            ("18446744073709551616".into(), "18446744073709551616"),
            ("007".into(), "007"),
            ("+5".into(), "+5"),
            ("-5".into(), "-5"),
            ("".into(), ""),
            ("\"".into(), "\""),
            ("\"a".into(), "\"a"),
            ("https://a.example/?ü".into(), "https://a.example/?ü"),
        ] {
            assert_eq!(String::from_utf8(write_id(&id)).expect("UTF-8"), written);
            assert_eq!(read_id(written.as_bytes()), id);
        }
    }

    #[test]
    fn keys_are_those_of_the_first_deployments() {
        let hash: SimHash = "00ffABCD000000000000000000001234".parse().expect("a fingerprint");
        let language = Language::parse("hi").expect("a language");
        let keys: Vec<String> =
            band_keys(language, hash).into_iter().map(|key| String::from_utf8(key).expect("UTF-8")).collect();
        assert_eq!((keys[0].as_str(), keys[1].as_str()), ("HINDI:0:00FF", "HINDI:1:ABCD"));
        assert_eq!((keys[7].as_str(), keys.len()), ("HINDI:7:1234", 8));
        assert_eq!(hashes_key(language), b"simhashes:HINDI");
    }
}
