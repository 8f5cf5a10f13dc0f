//! All languages of an index in memory, and the threads that merge their parts.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::thread::{self, JoinHandle};

use super::document::{DocId, Document, NearMatch};
use super::error::{IndexError, IndexErrorKind};
use super::identity::Identity;
use super::index::{CandidateCounts, IndexStats};
use super::language::Language;
use super::partition::{Change, Partition, Snapshot};
use super::rows::Rows;
use super::work::Work;
use crate::simhash::SimHash;

/// Documents of a batch that are looked up, logged and added in one step.
pub(super) const DOCUMENTS_AT_ONCE: usize = 2048;

/// Documents that are compared while a lock is held once: about 0.1 ms, or one query if that takes longer.
const COMPARED_AT_ONCE: u64 = 1 << 15;

/// The fixed cost of a query, expressed in comparisons.
const COMPARED_PER_QUERY: u64 = 500;

/// Ids that are looked up while a lock is held once.
const IDS_AT_ONCE: usize = 64;

/// The most languages of an index; each takes about a kilobyte before its first document.
const MAX_LANGUAGES: usize = 1 << 16;

/// The most rows of a merge by the second merging thread, so that full deltas do not wait for a merge of millions.
const SMALL_MERGE: usize = 1 << 20;

/// The log to which changes are written before they are made.
pub(super) trait Journal {
    /// Writes changes, grouped by language; all of them or none.
    fn append(&self, changes: &[(Language, Vec<Change<'_>>)]) -> Result<(), IndexError>;
}

/// The journal of an index that is in memory only.
pub(super) struct NoJournal;

impl Journal for NoJournal {
    fn append(&self, _: &[(Language, Vec<Change<'_>>)]) -> Result<(), IndexError> {
        Ok(())
    }
}

/// An index in memory.
pub(super) struct Engine {
    identity: Identity,
    languages: RwLock<BTreeMap<Language, Arc<Partition>>>,
    max_candidates: AtomicUsize,
    counters: Counters,
    mergers: OnceLock<Mergers>,
}

#[derive(Default)]
struct Counters {
    /// Counts of queries, by class.
    queries: [AtomicU64; CandidateCounts::CLASSES],
    candidates: AtomicU64,
    heavy: AtomicU64,
}

/// Two threads that merge, started with the first full delta.
struct Mergers {
    stop: Arc<AtomicBool>,
    /// One channel per thread, with one message for each full delta of 65,535 rows.
    wake: Vec<Sender<Arc<Partition>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Engine {
    pub(super) fn new(identity: Identity) -> Self {
        Self {
            identity,
            languages: RwLock::default(),
            max_candidates: AtomicUsize::new(DEFAULT_MAX_CANDIDATES),
            counters: Counters::default(),
            mergers: OnceLock::new(),
        }
    }

    /// An engine with initial documents. The languages are built one after the other, so that only one of them needs memory for both forms
    /// at a time.
    pub(super) fn with_rows(identity: Identity, rows: BTreeMap<Language, Rows>) -> Self {
        let engine = Self::new(identity);
        for (language, rows) in rows {
            let partition = Partition::with_rows(language, engine.identity.k(), rows);
            engine.write_languages().insert(language, Arc::new(partition));
        }
        engine
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn set_max_candidates(&self, max_candidates: usize) {
        self.max_candidates.store(max_candidates, Ordering::Relaxed);
    }

    fn write_languages(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<Language, Arc<Partition>>> {
        self.languages.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_languages(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<Language, Arc<Partition>>> {
        self.languages.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn partition(&self, language: &Language) -> Option<Arc<Partition>> {
        self.read_languages().get(language).cloned()
    }

    fn partitions(&self) -> Vec<Arc<Partition>> {
        self.read_languages().values().cloned().collect()
    }

    fn make_partition(&self, language: Language) -> Result<Arc<Partition>, IndexError> {
        if let Some(partition) = self.partition(&language) {
            return Ok(partition);
        }
        let mut languages = self.write_languages();
        check_languages(languages.len())?;
        let partition = languages
            .entry(language)
            .or_insert_with(|| Arc::new(Partition::new(language, self.identity.k())));
        Ok(Arc::clone(partition))
    }

    pub(super) fn near(&self, queries: &[(Language, SimHash)]) -> Vec<Vec<NearMatch>> {
        self.answer(queries, false)
    }

    /// The same as [`near`](Self::near), by comparing with every document.
    pub(super) fn scan(&self, queries: &[(Language, SimHash)]) -> Vec<Vec<NearMatch>> {
        self.answer(queries, true)
    }

    fn answer(&self, queries: &[(Language, SimHash)], by_scan: bool) -> Vec<Vec<NearMatch>> {
        let k = self.identity.k();
        let mut work = Work::new(self.max_candidates.load(Ordering::Relaxed));
        let mut answers = Vec::with_capacity(queries.len());
        for queries in queries.chunk_by(|a, b| a.0 == b.0) {
            let partition = self.partition(&queries[0].0);
            let Some(partition) = partition else {
                answers.extend(queries.iter().map(|_| Vec::new()));
                continue;
            };
            let (mut view, mut compared) = (partition.view(), 0);
            for (_, hash) in queries {
                if compared > COMPARED_AT_ONCE {
                    // Inserters take turns with queries: the read lock is released now and then, so that an insertion can go ahead.
                    drop(view);
                    (view, compared) = (partition.view(), 0);
                }
                answers.push(match by_scan {
                    _ if *hash == SimHash::default() => Vec::new(),
                    true => view.scan(*hash, k, &mut work),
                    false => view.near(*hash, k, &mut work),
                });
                let (candidates, is_heavy) = work.next();
                compared += candidates + COMPARED_PER_QUERY;
                if !by_scan {
                    self.counters.record(candidates, is_heavy);
                }
            }
        }
        answers
    }

    pub(super) fn get(&self, language: &Language, ids: &[DocId]) -> Vec<Option<SimHash>> {
        let Some(partition) = self.partition(language) else { return vec![None; ids.len()] };
        let chunks = ids.chunks(IDS_AT_ONCE);
        chunks
            .flat_map(|ids| {
                let view = partition.view();
                ids.iter().map(|id| view.get(id)).collect::<Vec<_>>()
            })
            .collect()
    }

    pub(super) fn insert(&self, documents: &[Document], journal: &dyn Journal) -> Result<(), IndexError> {
        documents.iter().try_for_each(|document| document.id.check())?;
        for documents in documents.chunks(DOCUMENTS_AT_ONCE) {
            let documents = last_of_each(documents);
            let mut languages = Vec::new();
            for documents in documents.chunk_by(|a, b| a.language == b.language) {
                languages.push((self.make_partition(documents[0].language)?, documents));
            }
            self.change(&languages, journal)?;
        }
        Ok(())
    }

    /// Changes the documents of some languages, from [`last_of_each`], to what is given.
    fn change(
        &self,
        languages: &[(Arc<Partition>, &[&Document])],
        journal: &dyn Journal,
    ) -> Result<(), IndexError> {
        // Every thread locks the languages in the order of their names, so there is no deadlock.
        let writers: Vec<_> = languages.iter().map(|(partition, _)| partition.writer()).collect();
        let mut changes = Vec::with_capacity(languages.len());
        for ((partition, documents), writer) in languages.iter().zip(&writers) {
            let documents = documents.iter().map(|document| ((&document.id).into(), document.hash));
            changes.push((partition.language(), partition.changes(writer, documents)));
        }
        if changes.iter().all(|(_, changes)| changes.is_empty()) {
            return Ok(());
        }
        journal.append(&changes)?;
        for (((partition, _), writer), (_, changes)) in languages.iter().zip(&writers).zip(&changes) {
            if partition.apply(writer, changes) {
                self.merge(partition);
            }
        }
        Ok(())
    }

    pub(super) fn remove(
        &self,
        language: &Language,
        ids: &[DocId],
        journal: &dyn Journal,
    ) -> Result<usize, IndexError> {
        let Some(partition) = self.partition(language) else { return Ok(0) };
        let mut removed = 0;
        for ids in ids.chunks(DOCUMENTS_AT_ONCE) {
            let mut sorted: Vec<&DocId> = ids.iter().collect();
            sorted.sort_unstable();
            sorted.dedup();
            let writer = partition.writer();
            let changes =
                partition.changes(&writer, sorted.into_iter().map(|id| (id.into(), SimHash::default())));
            if changes.is_empty() {
                continue;
            }
            removed += changes.len();
            let changes = [(*language, changes)];
            journal.append(&changes)?;
            partition.apply(&writer, &changes[0].1);
            drop(writer);
            self.merge(&partition);
        }
        Ok(removed)
    }

    /// A snapshot of each language, each at its own moment.
    pub(super) fn snapshots(&self) -> impl Iterator<Item = (Language, Snapshot)> {
        self.partitions().into_iter().map(|partition| (partition.language(), partition.snapshot()))
    }

    pub(super) fn for_each(&self, each: &mut dyn FnMut(&Document) -> ControlFlow<()>) {
        for (language, snapshot) in self.snapshots() {
            let mut documents =
                snapshot.documents().map(|(id, hash)| Document { language, id: id.into(), hash });
            if documents.any(|document| each(&document).is_break()) {
                return;
            }
        }
    }

    pub(super) fn stats(&self) -> IndexStats {
        let partitions = self.partitions();
        let languages = partitions.iter().map(|partition| (partition.language(), partition.stats()));
        IndexStats {
            languages: languages.filter(|(_, stats)| stats.documents > 0).collect(),
            bytes: BTreeMap::new(),
            heavy_buckets: self.counters.heavy.load(Ordering::Relaxed),
            candidates: self.counters.get(),
        }
    }

    /// Asks the merging threads to look at a language.
    fn merge(&self, partition: &Arc<Partition>) {
        let mergers = self.mergers.get_or_init(Mergers::start);
        for wake in &mergers.wake {
            // If the thread is gone, it has panicked; the index works without it.
            let _ = wake.send(Arc::clone(partition));
        }
        if mergers.threads.is_empty() {
            while partition.merge(usize::MAX, &mergers.stop) {}
        }
    }

    /// Waits until there is nothing to merge. For tests and measurements.
    pub(super) fn settle(&self) {
        for partition in self.partitions() {
            partition.settle();
        }
    }
}

/// Documents by language and id, only the last one of each id.
pub(super) fn last_of_each(documents: &[Document]) -> Vec<&Document> {
    let mut sorted: Vec<&Document> = documents.iter().collect();
    // The sort is stable, so the last document of an id is the one that came last.
    sorted.sort_by(|a, b| a.language.cmp(&b.language).then_with(|| a.id.cmp(&b.id)));
    let same = sorted.chunk_by(|a, b| a.language == b.language && a.id == b.id);
    same.map(|same| same[same.len() - 1]).collect()
}

/// Checks that there is room for another language.
pub(super) fn check_languages(count: usize) -> Result<(), IndexError> {
    if count < MAX_LANGUAGES {
        return Ok(());
    }
    let message = format!("there are {count} languages already, and there is no room for more");
    Err(IndexError::new(IndexErrorKind::Input, message))
}

/// A query compares at most this many candidates one by one; with more, it scans all documents.
const DEFAULT_MAX_CANDIDATES: usize = 100_000;

impl Counters {
    fn record(&self, candidates: u64, is_heavy: bool) {
        self.queries[CandidateCounts::class(candidates)].fetch_add(1, Ordering::Relaxed);
        self.candidates.fetch_add(candidates, Ordering::Relaxed);
        if is_heavy {
            self.heavy.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn get(&self) -> CandidateCounts {
        let mut counts = CandidateCounts::default();
        for (class, queries) in self.queries.iter().enumerate() {
            counts.add(class, queries.load(Ordering::Relaxed), 0);
        }
        counts.add(0, 0, self.candidates.load(Ordering::Relaxed));
        counts
    }
}

impl Mergers {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (mut wake, mut threads) = (Vec::new(), Vec::new());
        for limit in [usize::MAX, SMALL_MERGE] {
            let (sender, woken) = mpsc::channel::<Arc<Partition>>();
            let stop = Arc::clone(&stop);
            let merge = move || {
                while let Ok(partition) = woken.recv() {
                    while partition.merge(limit, &stop) {}
                }
            };
            // If no thread can be started, inserters merge themselves.
            if let Ok(thread) = thread::Builder::new().name("near-merge".into()).spawn(merge) {
                wake.push(sender);
                threads.push(thread);
            }
        }
        Self { stop, wake, threads }
    }
}

impl Drop for Mergers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake.clear();
        for thread in self.threads.drain(..) {
            // A merge that panicked has left the parts unchanged.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("identity", &self.identity)
            .field("languages", &self.read_languages().len())
            .finish_non_exhaustive()
    }
}
