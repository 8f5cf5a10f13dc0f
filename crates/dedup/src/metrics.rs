//! The metrics of a run for Prometheus: counters and histograms per language, and the size of the index.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use huntsman_detect::near::IndexStats;

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
const LANGUAGES: usize = 200;
const REST: &str = "(rest)";

/// The size of the index is looked up at most this often.
const FRESH: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, Default)]
struct Histogram {
    counts: [u64; CLASSES.len() + 1],
    sum: f64,
}

impl Histogram {
    fn observe(&mut self, took: Duration, times: u64) {
        let seconds = took.as_secs_f64();
        let class = CLASSES.iter().position(|end| seconds <= *end).unwrap_or(CLASSES.len());
        self.counts[class] += times;
        self.sum += seconds * times as f64;
    }

    fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[derive(Debug, Default)]
struct OfLanguage {
    processed: u64,
    flagged: u64,
    skipped: BTreeMap<&'static str, u64>,
    stages: [Histogram; Stage::ALL.len()],
}

/// The metrics that are updated during a run.
#[derive(Debug, Default)]
pub struct Telemetry {
    languages: Mutex<BTreeMap<String, OfLanguage>>,
    index: Mutex<Option<Arc<Index>>>,
    known: Mutex<Option<(Instant, Now)>>,
}

#[derive(Clone, Debug, Default)]
struct Now {
    index: Option<IndexStats>,
    server_memory: Option<u64>,
}

impl Telemetry {
    fn with<T>(&self, name: &str, change: impl FnOnce(&mut OfLanguage) -> T) -> T {
        let mut languages = self.languages.lock().expect("no thread panics with it");
        let name = if languages.contains_key(name) || languages.len() < LANGUAGES { name } else { REST };
        if !languages.contains_key(name) {
            languages.insert(name.to_owned(), OfLanguage::default());
        }
        change(languages.get_mut(name).expect("it was inserted"))
    }

    /// Counts documents that were read and fingerprinted; `fetch` is the reading time of each.
    pub(crate) fn fingerprinted(&self, stories: &[Story], fetch: Duration) {
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
    pub(crate) fn took<'a>(&self, stage: Stage, took: Duration, documents: impl Iterator<Item = &'a Story>) {
        let mut numbers = BTreeMap::<_, u64>::new();
        documents.for_each(|story| *numbers.entry(story.document.language).or_default() += 1);
        let all: u64 = numbers.values().sum();
        for (language, number) in numbers {
            let each = took.div_f64(all as f64);
            self.with(language.as_str(), |of| of.stages[stage as usize].observe(each, number));
        }
    }

    /// Counts a flagged document.
    pub(crate) fn flagged(&self, story: &Story) {
        self.with(story.document.language.as_str(), |of| of.flagged += 1);
    }

    /// Counts a skipped document. If a document could not be read, its language is not known, and `story` is `None`.
    pub fn skipped(&self, story: Option<&Story>, reason: &'static str) {
        let language = story.map_or("", |story| story.document.language.as_str());
        self.with(language, |of| *of.skipped.entry(reason).or_default() += 1);
    }

    /// Sets the index whose size is reported from now on.
    pub fn set_index(&self, index: &Arc<Index>) {
        *self.index.lock().expect("no thread panics with it") = Some(Arc::clone(index));
    }

    /// The size of the index now, or some seconds ago. Blocks on the server of the index.
    fn now(&self) -> Now {
        let index = self.index.lock().expect("no thread panics with it").clone();
        let Some(index) = index else { return Now::default() };
        let mut known = self.known.lock().expect("no thread panics with it");
        match &*known {
            Some((when, now)) if when.elapsed() < FRESH => now.clone(),
            _ => {
                let now = Now { index: index.near().stats().ok(), server_memory: index.server_memory() };
                *known = Some((Instant::now(), now.clone()));
                now
            }
        }
    }

    /// All metrics in the text format of Prometheus, version 0.0.4. May send a request to the server of the index, and blocks on it.
    pub fn text(&self) -> String {
        let now = self.now();
        let mut out = String::new();
        let languages = self.languages.lock().expect("no thread panics with it");
        let mut counter = |name: &str, help: &str, of: &dyn Fn(&OfLanguage) -> Vec<(String, u64)>| {
            head(&mut out, name, help, "counter");
            for (language, counts) in languages.iter() {
                for (labels, value) in of(counts) {
                    let _ = writeln!(out, "{name}{{lang=\"{language}\"{labels}}} {value}");
                }
            }
        };
        counter("huntsman_docs_processed_total", "Documents that were read and fingerprinted.", &|of| {
            vec![(String::new(), of.processed)]
        });
        counter("huntsman_docs_flagged_total", "Documents that were flagged as near-duplicates.", &|of| {
            vec![(String::new(), of.flagged)]
        });
        counter("huntsman_docs_skipped_total", "Documents that were skipped, by reason.", &|of| {
            of.skipped.iter().map(|(reason, n)| (format!(",reason=\"{reason}\""), *n)).collect()
        });
        head(&mut out, "huntsman_stage_seconds", "Time per document and stage.", "histogram");
        for (language, of) in languages.iter() {
            for (stage, histogram) in Stage::ALL.iter().zip(&of.stages) {
                if histogram.count() > 0 {
                    let labels = format!("lang=\"{language}\",stage=\"{}\"", stage.name());
                    histogram_text(&mut out, &labels, histogram);
                }
            }
        }
        drop(languages);
        now.text(&mut out);
        out
    }
}

impl Now {
    fn text(&self, out: &mut String) {
        if let Some(bytes) = self.server_memory {
            head(
                out,
                "huntsman_redis_used_memory_bytes",
                "Memory that the Redis server uses in all.",
                "gauge",
            );
            let _ = writeln!(out, "huntsman_redis_used_memory_bytes {bytes}");
        }
        let Some(stats) = &self.index else { return };
        head(out, "huntsman_index_docs", "Documents in the index.", "gauge");
        for (language, of) in &stats.languages {
            let _ = writeln!(out, "huntsman_index_docs{{lang=\"{language}\"}} {}", of.documents);
        }
        head(out, "huntsman_index_bytes", "Bytes of the index, by what they are for.", "gauge");
        for (language, of) in &stats.languages {
            for (part, bytes) in &of.bytes {
                let _ = writeln!(out, "huntsman_index_bytes{{lang=\"{language}\",part=\"{part}\"}} {bytes}");
            }
        }
        for (part, bytes) in &stats.bytes {
            let _ = writeln!(out, "huntsman_index_bytes{{lang=\"\",part=\"{part}\"}} {bytes}");
        }
        head(out, "huntsman_heavy_bucket_total", "Queries that compared all documents.", "counter");
        let _ = writeln!(out, "huntsman_heavy_bucket_total {}", stats.heavy_buckets);
        head(out, "huntsman_candidates_per_query", "Documents that a query compared.", "histogram");
        for (end, count) in stats.candidates.buckets() {
            let _ = writeln!(out, "huntsman_candidates_per_query_bucket{{le=\"{end}\"}} {count}");
        }
        let (queries, sum) = (stats.candidates.queries(), stats.candidates.sum());
        let _ = writeln!(
            out,
            "huntsman_candidates_per_query_bucket{{le=\"+Inf\"}} {queries}\n\
             huntsman_candidates_per_query_sum {sum}\n\
             huntsman_candidates_per_query_count {queries}"
        );
    }
}

fn head(out: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn histogram_text(out: &mut String, labels: &str, histogram: &Histogram) {
    let mut below = 0;
    for (end, count) in CLASSES.iter().zip(histogram.counts) {
        below += count;
        let _ = writeln!(out, "huntsman_stage_seconds_bucket{{{labels},le=\"{end}\"}} {below}");
    }
    let (count, sum) = (histogram.count(), histogram.sum);
    let _ = writeln!(
        out,
        "huntsman_stage_seconds_bucket{{{labels},le=\"+Inf\"}} {count}\n\
         huntsman_stage_seconds_sum{{{labels}}} {sum}\n\
         huntsman_stage_seconds_count{{{labels}}} {count}"
    );
}
