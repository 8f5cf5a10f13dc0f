//! The metrics of a run for Prometheus: counters and histograms per language, and the size of the index.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use huntsman_detect::near::IndexStats;
use huntsman_metrics::{Families, Histogram, Kind};

use crate::index::Index;
use crate::record::Story;

/// A stage of processing a document, whose time is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Reading and decompressing.
    Fetch,
    /// Extracting the text of HTML.
    Extract,
    /// Computing words, language and fingerprint.
    Hash,
    /// Querying the index for near-duplicates.
    Query,
    /// Inserting into the index.
    Insert,
    /// Writing the flag.
    Persist,
}

impl Stage {
    const ALL: [Stage; 6] =
        [Stage::Fetch, Stage::Extract, Stage::Hash, Stage::Query, Stage::Insert, Stage::Persist];

    fn name(self) -> &'static str {
        match self {
            Stage::Fetch => "fetch",
            Stage::Extract => "extract",
            Stage::Hash => "hash",
            Stage::Query => "query",
            Stage::Insert => "insert",
            Stage::Persist => "persist",
        }
    }
}

/// Upper bounds of the buckets of the duration histograms, in seconds.
const CLASSES: [f64; 15] =
    [1e-6, 5e-6, 1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];

/// Languages with metrics of their own; all others share one. The input names its languages and could name a million.
const MAX_LANGUAGES: usize = 200;
const REST: &str = "(rest)";

/// The size of the index is looked up at most this often.
const SNAPSHOT_LIFETIME: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct LanguageMetrics {
    processed: u64,
    flagged: u64,
    skipped: BTreeMap<&'static str, u64>,
    stages: [Histogram; Stage::ALL.len()],
}

impl Default for LanguageMetrics {
    fn default() -> Self {
        let stages = Stage::ALL.map(|_| Histogram::new(&CLASSES));
        Self { processed: 0, flagged: 0, skipped: BTreeMap::new(), stages }
    }
}

/// The metrics that are updated during a run.
#[derive(Debug, Default)]
pub struct Telemetry {
    languages: Mutex<BTreeMap<String, LanguageMetrics>>,
    index: Mutex<Option<Arc<Index>>>,
    known: Mutex<Option<(Instant, IndexSnapshot)>>,
}

#[derive(Clone, Debug, Default)]
struct IndexSnapshot {
    index: Option<IndexStats>,
    server_memory: Option<u64>,
}

impl Telemetry {
    fn with<T>(&self, name: &str, change: impl FnOnce(&mut LanguageMetrics) -> T) -> T {
        let mut languages = self.languages.lock().expect("no thread panics with it");
        let name = if languages.contains_key(name) || languages.len() < MAX_LANGUAGES { name } else { REST };
        if !languages.contains_key(name) {
            languages.insert(name.to_owned(), LanguageMetrics::default());
        }
        change(languages.get_mut(name).expect("it was inserted"))
    }

    /// Counts documents that were read and fingerprinted; `fetch` is the reading time of each.
    pub(crate) fn record_fingerprints(&self, stories: &[Story], fetch: Duration) {
        for same in stories.chunk_by(|a, b| a.document.language == b.document.language) {
            self.with(same[0].document.language.as_str(), |of| {
                of.processed += same.len() as u64;
                of.stages[Stage::Fetch as usize].observe(fetch, same.len() as u64);
                for story in same {
                    let [extract, hash] = story.took;
                    if !extract.is_zero() {
                        of.stages[Stage::Extract as usize].observe(extract, 1);
                    }
                    if !hash.is_zero() {
                        of.stages[Stage::Hash as usize].observe(hash, 1);
                    }
                }
            });
        }
    }

    /// Records the time that a stage took for all of these documents together; each document gets an equal share.
    pub(crate) fn record_duration<'a>(
        &self,
        stage: Stage,
        took: Duration,
        documents: impl Iterator<Item = &'a Story>,
    ) {
        let mut numbers = BTreeMap::<_, u64>::new();
        documents.for_each(|story| *numbers.entry(story.document.language).or_default() += 1);
        let all: u64 = numbers.values().sum();
        for (language, number) in numbers {
            let each = took.div_f64(all as f64);
            self.with(language.as_str(), |of| of.stages[stage as usize].observe(each, number));
        }
    }

    /// Counts a flagged document.
    pub(crate) fn record_flagged(&self, story: &Story) {
        self.with(story.document.language.as_str(), |of| of.flagged += 1);
    }

    /// Counts a skipped document. If a document could not be read, its language is not known, and `story` is `None`.
    pub fn record_skipped(&self, story: Option<&Story>, reason: &'static str) {
        let language = story.map_or("", |story| story.document.language.as_str());
        self.with(language, |of| *of.skipped.entry(reason).or_default() += 1);
    }

    /// Sets the index whose size is reported from now on.
    pub fn set_index(&self, index: &Arc<Index>) {
        *self.index.lock().expect("no thread panics with it") = Some(Arc::clone(index));
    }

    /// The size of the index now, or some seconds ago. Blocks on the server of the index.
    fn now(&self) -> IndexSnapshot {
        let index = self.index.lock().expect("no thread panics with it").clone();
        let Some(index) = index else { return IndexSnapshot::default() };
        let mut known = self.known.lock().expect("no thread panics with it");
        match &*known {
            Some((when, now)) if when.elapsed() < SNAPSHOT_LIFETIME => now.clone(),
            _ => {
                let now =
                    IndexSnapshot { index: index.near().stats().ok(), server_memory: index.server_memory() };
                *known = Some((Instant::now(), now.clone()));
                now
            }
        }
    }

    /// All metrics of the run at this moment. May send a request to the server of the index, and blocks on it.
    pub fn families(&self) -> Families {
        let now = self.now();
        let mut all = Families::default();
        let languages = self.languages.lock().expect("no thread panics with it");
        let lang = |language: &str| ("lang", language.to_owned());
        let processed = languages.iter().map(|(language, of)| (vec![lang(language)], of.processed));
        let help = "Documents that were read and fingerprinted.";
        all.family("huntsman_docs_processed_total", help, Kind::Counter, processed);
        let flagged = languages.iter().map(|(language, of)| (vec![lang(language)], of.flagged));
        let help = "Documents that were flagged as near-duplicates.";
        all.family("huntsman_docs_flagged_total", help, Kind::Counter, flagged);
        let skipped = languages.iter().flat_map(|(language, of)| {
            of.skipped
                .iter()
                .map(move |(reason, n)| (vec![lang(language), ("reason", (*reason).to_owned())], *n))
        });
        let help = "Documents that were skipped, by reason.";
        all.family("huntsman_docs_skipped_total", help, Kind::Counter, skipped);
        let stages = languages.iter().flat_map(|(language, of)| {
            let stages = Stage::ALL.iter().zip(&of.stages).filter(|(_, histogram)| histogram.count() > 0);
            stages.map(move |(stage, histogram)| {
                (vec![lang(language), ("stage", stage.name().to_owned())], histogram.clone())
            })
        });
        all.histograms("huntsman_stage_seconds", "Time per document and stage.", stages);
        drop(languages);
        now.add_to(&mut all);
        all
    }
}

impl IndexSnapshot {
    fn add_to(&self, all: &mut Families) {
        if let Some(bytes) = self.server_memory {
            let help = "Memory that the Redis server uses in all.";
            all.single("huntsman_redis_used_memory_bytes", help, Kind::Gauge, bytes);
        }
        let Some(stats) = &self.index else { return };
        let documents =
            stats.languages.iter().map(|(language, of)| (vec![("lang", language.to_string())], of.documents));
        all.family("huntsman_index_docs", "Documents in the index.", Kind::Gauge, documents);
        let labels = |language: String, part: &str| vec![("lang", language), ("part", part.to_owned())];
        let of_languages = stats.languages.iter().flat_map(|(language, of)| {
            of.bytes.iter().map(move |(part, bytes)| (labels(language.to_string(), part), *bytes))
        });
        let of_all = stats.bytes.iter().map(|(part, bytes)| (labels(String::new(), part), *bytes));
        let help = "Bytes of the index, by what they are for.";
        all.family("huntsman_index_bytes", help, Kind::Gauge, of_languages.chain(of_all));
        let help = "Queries that compared all documents.";
        all.single("huntsman_heavy_bucket_total", help, Kind::Counter, stats.heavy_buckets);
        let compared = &stats.candidates;
        let below = compared.buckets().map(|(end, count)| (end as f64, count));
        let histogram = Histogram::of_cumulative(below, compared.queries(), compared.sum() as f64);
        let help = "Documents that a query compared.";
        all.histograms("huntsman_candidates_per_query", help, [(Vec::new(), histogram)]);
    }
}
