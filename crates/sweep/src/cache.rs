//! Caches results of checks for some days.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use huntsman_crawler::{Error, Result};
use huntsman_middleware::StoredKind;
use huntsman_store::{Backend, Batch, Durability, JobDirectory, Store};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::candidates::{CandidateSource, Subject};
use super::checked::Checked;
use super::plan::CheckPlan;

/// Results of checks, by the text of the article and the options of the check: an edit gives another key.
///
/// A result has URLs, numbers and positions, never texts. It is kept for three days, as in the reference's web tool. It
/// is used only if its best source, fetched and compared again, still has the same confidence (within 0.0001), and,
/// where all sources are wanted, if none was skipped. Results with late sources or failed queries are not kept. Older
/// results are deleted with each write.
///
/// A result takes a few hundred bytes for each source.
#[derive(Debug)]
pub struct CheckCache {
    store: Arc<dyn Store>,
    life: Duration,
}

/// How long results are kept.
const LIFE: Duration = Duration::from_secs(3 * 24 * 60 * 60);
/// The version of the format, the first byte of a value. Compressed JSON follows.
const FORMAT: u8 = 1;
const LEVEL: i32 = 3;
/// Maximum size of the JSON of a result, in bytes.
const MOST: usize = 32 << 20;
/// Maximum number of results that are deleted with one write.
const PURGE: usize = 256;
/// Confidences that differ by less are equal.
pub(crate) const SAME_CONFIDENCE: f64 = 0.0001;

/// The key of a check's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key([u8; 32]);

#[derive(Serialize, Deserialize)]
struct Row {
    at: SystemTime,
    checked: Checked,
}

impl Key {
    pub(crate) fn of(subject: &Subject, sources: &[Arc<dyn CandidateSource>], plan: &CheckPlan) -> Self {
        let mut hash = Sha256::new();
        let mut add = |part: &[u8]| {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        };
        let options = &plan.options;
        add(&[FORMAT]);
        if let Some(boilerplate) = &plan.boilerplate {
            add(&(boilerplate.len() as u64).to_le_bytes());
        }
        for number in [options.degree.get(), plan.max_queries, plan.max_sources, options.min_article] {
            add(&(number as u64).to_le_bytes());
        }
        for share in [options.min_confidence, options.include_threshold] {
            add(&share.to_bits().to_le_bytes());
        }
        let rules = plan.exclusions.iter().flat_map(|exclusions| exclusions.rules());
        for list in [
            sources.iter().map(|source| source.key()).collect::<Vec<_>>(),
            rules.map(str::to_owned).collect(),
            subject.mirror_hints.to_vec(),
            subject.links.clone(),
        ] {
            add(&(list.len() as u64).to_le_bytes());
            list.iter().for_each(|part| add(part.as_bytes()));
        }
        add(subject.url.as_deref().unwrap_or_default().as_bytes());
        add(subject.text.exact().as_bytes());
        add(subject.text.text().as_bytes());
        Self(hash.finalize().into())
    }

    fn row(self) -> Vec<u8> {
        [b"r", &self.0[..]].concat()
    }

    fn time(self, at: SystemTime) -> Vec<u8> {
        let micros = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros();
        // Micros of a clock fit until the year 586,000.
        [b"t", &u64::try_from(micros).unwrap_or(u64::MAX).to_be_bytes()[..], &self.0[..]].concat()
    }
}

impl Row {
    /// Reads a stored result; `None` if it has another format.
    fn read(value: &[u8]) -> Result<Option<Self>> {
        let Some((&FORMAT, packed)) = value.split_first() else { return Ok(None) };
        let json = zstd::bulk::decompress(packed, MOST)?;
        Ok(Some(serde_json::from_slice(&json)?))
    }
}

/// Whether a stored result can be read; one in another format is ignored.
fn is_whole(value: &[u8]) -> bool {
    Row::read(value).is_ok()
}

impl CheckCache {
    /// Opens a folder of results, or creates it. Only one process at a time may use it.
    ///
    /// # Errors
    /// Another process uses it, it is damaged or something else, or the disk fails.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let backend = JobDirectory::backend_of(path)?.unwrap_or(Backend::Redb);
        let directory = JobDirectory::open_with_cache(path, backend, 8 << 20)?;
        Ok(Self::new(directory.store()))
    }

    /// Results in a store, under keys that begin with `r` and `t`.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, life: LIFE }
    }

    /// Sets how long results are kept instead of three days.
    #[must_use]
    pub fn life(mut self, life: Duration) -> Self {
        self.life = life;
        self
    }

    /// The kind of store that a cache is, for [`StoredCheck`](huntsman_middleware::StoredCheck).
    pub const STORED: StoredKind = StoredKind {
        name: "results of checks",
        records: Some("results"),
        help: "remove the directory: checks are done again",
        begins: |key| key.starts_with(b"r"),
        reads: |key, value| key.starts_with(b"r").then(|| is_whole(value)),
    };

    pub(crate) fn get(&self, key: Key, now: SystemTime) -> Result<Option<Checked>> {
        let Some(value) = self.store.get(&key.row())? else { return Ok(None) };
        let Some(Row { at, mut checked }) = Row::read(&value)? else { return Ok(None) };
        checked.cached = Some(at);
        Ok(now.duration_since(at).is_ok_and(|age| age < self.life).then_some(checked))
    }

    pub(crate) fn put(&self, key: Key, checked: &Checked, now: SystemTime) -> Result<()> {
        let json = serde_json::to_vec(&Row { at: now, checked: checked.clone() })?;
        if json.len() > MOST {
            return Ok(());
        }
        let mut batch = Batch::new();
        self.purge(&mut batch, now)?;
        batch.put(key.time(now), []);
        batch.put(key.row(), [&[FORMAT], &zstd::bulk::compress(&json, LEVEL)?[..]].concat());
        Ok(self.store.write(&batch, Durability::Process)?)
    }

    fn purge(&self, batch: &mut Batch, now: SystemTime) -> Result<()> {
        let Some(end) = now.checked_sub(self.life) else { return Ok(()) };
        let mut old = Vec::new();
        let end = Key([0; 32]).time(end)[..9].to_vec();
        self.store.scan(b"t", &mut |time, _| {
            let is_old = time.len() == 41 && time[..9] < end[..];
            if is_old {
                old.push(time.to_vec());
            }
            is_old && old.len() < PURGE
        })?;
        for time in old {
            let key = Key(time[9..].try_into().map_err(|_| {
                Error::msg("a time of the results is damaged; remove the directory: checks are done again")
            })?);
            // A newer result has its own time.
            if !matches!(self.get(key, now), Ok(Some(_))) {
                batch.delete(key.row());
            }
            batch.delete(time);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use huntsman_detect::copyvio::{Check, CheckOptions, Text};
    use huntsman_store::MemoryStore;

    use super::super::candidates::{GivenUrls, Links};
    use super::*;

    fn key(text: &str, sources: &[Arc<dyn CandidateSource>], plan: &CheckPlan) -> Key {
        Key::of(&Subject::new(Text::new(text)), sources, plan)
    }

    fn checked() -> Checked {
        let mut check = Check::new("one two three", CheckOptions::compare());
        check.compare("http://a.example/", "one two three four");
        check.record_excluded("http://b.example/", "b.example");
        Checked::of(check.finish())
    }

    #[test]
    fn an_edit_other_sources_and_another_plan_are_other_checks() {
        let links: Arc<dyn CandidateSource> = Arc::new(Links);
        let given = |url: &str| -> Arc<dyn CandidateSource> { Arc::new(GivenUrls::new([url])) };
        let plan = CheckPlan::default();
        let mut longer = CheckPlan::default();
        longer.options.min_confidence = 0.9;
        let keys = [
            key("text", std::slice::from_ref(&links), &plan),
            key("text.", std::slice::from_ref(&links), &plan),
            key("text", &[], &plan),
            key("text", &[given("http://a.example/")], &plan),
            key("text", &[given("http://b.example/")], &plan),
            key("text", std::slice::from_ref(&links), &longer),
        ];
        for (at, one) in keys.iter().enumerate() {
            assert!(keys[..at].iter().all(|other| other != one), "{at}");
        }
        assert_eq!(keys[0], key("text", &[links], &plan));
    }

    #[test]
    fn a_result_is_kept_for_its_life_and_deleted_with_a_later_write() {
        let store = Arc::new(MemoryStore::default());
        let cache = CheckCache::new(Arc::clone(&store) as _).life(Duration::from_secs(100));
        let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds);
        let [one, two] = ["one", "two"].map(|text| key(text, &[], &CheckPlan::default()));
        cache.put(one, &checked(), at(0)).unwrap();
        let kept = cache.get(one, at(99)).unwrap().unwrap();
        assert_eq!((&kept.result, kept.cached), (&checked().result, Some(at(0))));
        assert!(cache.get(one, at(100)).unwrap().is_none() && cache.get(two, at(0)).unwrap().is_none());
        // Being written again, it outlives its first time.
        cache.put(one, &checked(), at(60)).unwrap();
        cache.put(two, &checked(), at(130)).unwrap();
        assert!(cache.get(one, at(150)).unwrap().is_some());
        cache.put(two, &checked(), at(161)).unwrap();
        let mut rows = 0;
        store
            .scan(b"r", &mut |_, _| {
                rows += 1;
                true
            })
            .unwrap();
        assert_eq!(rows, 1, "the first is gone");
    }

    #[test]
    fn no_text_is_stored() {
        let store = Arc::new(MemoryStore::default());
        let cache = CheckCache::new(Arc::clone(&store) as _);
        cache.put(key("one two three", &[], &CheckPlan::default()), &checked(), SystemTime::now()).unwrap();
        store
            .scan(b"r", &mut |_, value| {
                let json = zstd::bulk::decompress(&value[1..], MOST).unwrap();
                assert!(!String::from_utf8(json).unwrap().contains("three"));
                true
            })
            .unwrap();
    }
}
