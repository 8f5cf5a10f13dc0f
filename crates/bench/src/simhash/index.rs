//! The cost of an index of many documents: memory, building, queries, insertions during queries, opening.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use huntsman::detect::near::{DiskIndex, Document, Identity, Language, MemoryIndex, NearIndex};
use huntsman::detect::simhash::{Features, SimHash};
use huntsman_cli::OrFailure;
use huntsman_cli::exit::{Failure, Outcome};
use huntsman_cli::process::peak_rss;
use huntsman_cli::render::{count, say};
use serde::{Deserialize, Serialize};

use super::args::SimhashArgs;
use super::documents::{Documents, Spread, hindi};
use super::scratch;
use crate::clock::{Times, Watch, reset_peak_rss};
use crate::sheet::{Sheet, figure, mebibytes};

/// Indexes of the same number of documents.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Indexes {
    pub(super) documents: u64,
    pub(super) indexes: Vec<Index>,
}

/// An index for one k, of fingerprints with one distribution of bits.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Index {
    pub(super) k: u32,
    /// `even` or `texts`.
    pub(super) spread: String,
    pub(super) memory: Memory,
    pub(super) queries: Vec<Queries>,
    /// Number of documents that were compared per query.
    pub(super) candidates_per_query: f64,
    /// Number of queries that compared with all documents, because their buckets would have given too many
    /// candidates.
    pub(super) heavy_buckets: u64,
    pub(super) scan: Scan,
    pub(super) pairs: Pairs,
    pub(super) inserts: Vec<Inserts>,
    pub(super) disk: Disk,
}

/// Building an index in memory at once. The times do not include generating the documents.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Memory {
    pub(super) build_s: f64,
    pub(super) build_core_s: f64,
    /// As reported by the index.
    pub(super) bytes_per_document: f64,
    /// The parts of the index.
    pub(super) parts: BTreeMap<String, f64>,
    /// The peak resident size of the process while building, including memory that earlier indexes left in its
    /// allocator.
    pub(super) peak_rss_bytes: Option<u64>,
}

/// Queries of one kind.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Queries {
    /// `misses`: fingerprints that are not stored; `hits`: stored fingerprints with up to k bits changed; `misses,
    /// Hindi`: all queries in the largest language.
    pub(super) name: String,
    /// Single queries.
    pub(super) times: Times,
    /// Microseconds of processor time per query, in batches of 1,000.
    pub(super) batch_core_us: f64,
    /// Documents found per query.
    pub(super) found: f64,
}

/// The same queries, answered by comparing with all documents.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Scan {
    pub(super) queries: usize,
    /// Number of documents that the full comparison finds.
    pub(super) found: usize,
    /// Share of these documents that the index finds.
    pub(super) recall: f64,
    pub(super) ms_per_query: f64,
    /// Best of five rounds in the largest language.
    pub(super) hindi_ms_per_query: f64,
    pub(super) hindi_documents: u64,
}

/// All pairs within k bits.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Pairs {
    pub(super) count: u64,
    pub(super) core_s: f64,
}

/// Inserting a fifth more documents in batches while another thread sends queries.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Inserts {
    pub(super) name: String,
    pub(super) documents: usize,
    pub(super) documents_per_s: f64,
    pub(super) core_us_each: f64,
    /// Times of batches of 1,000; the largest is the longest pause.
    pub(super) batches: Times,
    /// Times of the queries during the insertions.
    pub(super) queries: Times,
    /// Seconds until the parts are merged.
    pub(super) settle_s: f64,
}

/// The index in a directory.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Disk {
    /// Seconds including the generation of the documents and the final flush.
    pub(super) build_s: f64,
    pub(super) build_core_s: f64,
    pub(super) open_s: f64,
    pub(super) open_core_s: f64,
    pub(super) log_bytes: u64,
    /// Insertions in batches of 1,000.
    pub(super) inserts_per_s: f64,
    pub(super) insert_core_us: f64,
}

/// Seeds of the random streams, for documents, for queries and for additions.
const DOCUMENTS: u64 = 0;
const CHANGES: u64 = 1 << 40;
const MISSES: u64 = 2 << 40;
const ADDED: u64 = 3 << 40;

/// An index and its parameters.
#[derive(Debug)]
struct Setup {
    seed: u64,
    documents: u64,
    identity: Identity,
    spread: Spread,
}

pub(super) fn run(args: &SimhashArgs) -> Outcome<Indexes> {
    let directory = scratch(args)?;
    let mut indexes = Vec::new();
    for k in &args.k {
        for spread in [Spread::Even, Spread::texts(args.seed)] {
            let identity = Identity::new(*k, Features::default()).or_failure()?;
            let setup = Setup { seed: args.seed, documents: args.documents, identity, spread };
            let what = format!("{} documents, k = {k}, bits {}", count(args.documents), setup.spread.name());
            say(&format!("index: {what}"));
            indexes.push(setup.run(directory.path()).map_err(|error| error.context(what))?);
        }
    }
    Ok(Indexes { documents: args.documents, indexes })
}

impl Setup {
    fn stream(&self, part: u64) -> Documents {
        Documents::new(self.seed.wrapping_add(part), &self.spread)
    }

    fn documents(&self) -> impl Iterator<Item = Document> {
        self.stream(DOCUMENTS).take(self.documents as usize)
    }

    fn run(&self, directory: &Path) -> Outcome<Index> {
        let (index, memory) = self.build()?;
        let queries = self.ask(&index)?;
        let stats = index.stats().or_failure()?;
        let candidates_per_query = stats.candidates.sum() as f64 / stats.candidates.queries().max(1) as f64;
        let scan = self.scan(&index)?;
        let pairs = pairs(&index);
        let inserts = self.insert_while_asking(&index)?;
        drop(index);
        let disk = self.on_disk(&directory.join("index"))?;
        Ok(Index {
            k: self.identity.k(),
            spread: self.spread.name().to_owned(),
            memory,
            queries,
            candidates_per_query,
            heavy_buckets: stats.heavy_buckets,
            scan,
            pairs,
            inserts,
            disk,
        })
    }

    fn build(&self) -> Outcome<(MemoryIndex, Memory)> {
        let watch = Watch::start();
        self.documents().for_each(|document| drop(std::hint::black_box(document)));
        let (making, making_core) = (watch.seconds(), watch.core_seconds());
        reset_peak_rss();
        let watch = Watch::start();
        let index = MemoryIndex::build(self.identity, self.documents()).or_failure()?;
        let (build_s, build_core_s) = (watch.seconds() - making, watch.core_seconds() - making_core);
        let peak_rss_bytes = peak_rss();
        index.settle();
        let per_document = |bytes: f64| bytes / self.documents as f64;
        let stats = index.stats().or_failure()?;
        let mut parts: BTreeMap<String, f64> = BTreeMap::new();
        for (part, bytes) in stats.languages.values().flat_map(|language| &language.bytes) {
            *parts.entry((*part).to_owned()).or_default() += per_document(*bytes as f64);
        }
        let memory = Memory {
            build_s: build_s.max(0.0),
            build_core_s: build_core_s.max(0.0),
            bytes_per_document: per_document(stats.total_bytes() as f64),
            parts,
            peak_rss_bytes,
        };
        Ok((index, memory))
    }

    /// Stored fingerprints from all over the index, with up to `bits` bits changed.
    fn hits(&self, number: usize, bits: u32) -> Vec<(Language, SimHash)> {
        let mut other = self.stream(CHANGES);
        let step = (self.documents as usize / number).max(1);
        let some = self.documents().step_by(step).take(number);
        some.map(|document| (document.language, other.near(document.hash, bits))).collect()
    }

    fn misses(&self, number: usize) -> Vec<(Language, SimHash)> {
        let some = self.stream(MISSES).take(number);
        some.map(|document| (document.language, document.hash)).collect()
    }

    fn ask(&self, index: &MemoryIndex) -> Outcome<Vec<Queries>> {
        let k = self.identity.k();
        let number = if k <= 3 { 200_000 } else { 20_000 }.min(self.documents as usize);
        let (hits, misses) = (self.hits(number, k), self.misses(number));
        let of_hindi: Vec<_> = misses.iter().map(|query| (hindi(), query.1)).collect();
        let mut all = Vec::new();
        for (name, queries) in [("misses", &misses), ("hits", &hits), ("misses, Hindi", &of_hindi)] {
            let (mut found, mut times) = (0, Vec::with_capacity(queries.len()));
            for query in queries {
                let start = Instant::now();
                let near = index.near(std::slice::from_ref(query)).or_failure()?;
                times.push(start.elapsed());
                found += near[0].len();
            }
            let watch = Watch::start();
            for queries in queries.chunks(1_000) {
                std::hint::black_box(index.near(queries).or_failure()?);
            }
            let each = 1.0 / queries.len() as f64;
            all.push(Queries {
                name: name.to_owned(),
                times: Times::of(times),
                batch_core_us: watch.core_seconds() * 1e6 * each,
                found: found as f64 * each,
            });
        }
        Ok(all)
    }

    /// The index must find what the comparison with all documents finds.
    fn scan(&self, index: &MemoryIndex) -> Outcome<Scan> {
        let sample = if self.documents > 1_000_000 { 300 } else { 1_000 };
        // Some of these are just too far away to be found.
        let mut queries = self.hits(sample, self.identity.k() + 1);
        queries.extend(self.misses(sample));
        let watch = Watch::start();
        let scanned = index.scan(&queries);
        let ms_per_query = watch.seconds() / queries.len() as f64 * 1e3;
        let found = index.near(&queries).or_failure()?;
        let (of_scan, of_index): (usize, usize) =
            (scanned.iter().map(Vec::len).sum(), found.iter().map(Vec::len).sum());
        if found != scanned {
            return Err(Failure::crawl(format!(
                "the index finds {of_index} documents where comparing all finds {of_scan}, and not the same: this is a bug"
            )));
        }
        let of_hindi: Vec<_> = queries.iter().take(200).map(|query| (hindi(), query.1)).collect();
        let best = (0..5).fold(f64::INFINITY, |best, _| {
            let watch = Watch::start();
            std::hint::black_box(index.scan(&of_hindi));
            best.min(watch.seconds() / of_hindi.len() as f64 * 1e3)
        });
        let stats = index.stats().or_failure()?;
        Ok(Scan {
            queries: queries.len(),
            found: of_scan,
            recall: of_index as f64 / of_scan.max(1) as f64,
            ms_per_query,
            hindi_ms_per_query: best,
            hindi_documents: stats.languages.get(&hindi()).map_or(0, |hindi| hindi.documents),
        })
    }

    fn insert_while_asking(&self, index: &MemoryIndex) -> Outcome<Vec<Inserts>> {
        let mut source = self.stream(ADDED);
        let queries = self.misses(10_000.min(self.documents as usize));
        let mut all = Vec::new();
        for (name, is_all_hindi) in [("all languages", false), ("Hindi", true)] {
            let new: Vec<Document> = source
                .by_ref()
                .take((self.documents / 5) as usize)
                .map(|document| match is_all_hindi {
                    true => Document { language: hindi(), ..document },
                    false => document,
                })
                .collect();
            all.push(insert_while_asking(index, name, &new, &queries)?);
        }
        Ok(all)
    }

    fn on_disk(&self, directory: &Path) -> Outcome<Disk> {
        let watch = Watch::start();
        let index = DiskIndex::build(directory, self.identity, self.documents()).or_failure()?;
        index.flush().or_failure()?;
        let (build_s, build_core_s) = (watch.seconds(), watch.core_seconds());
        drop(index);
        let watch = Watch::start();
        let index = DiskIndex::open(directory, self.identity).or_failure()?;
        let (open_s, open_core_s) = (watch.seconds(), watch.core_seconds());
        let stats = index.stats().or_failure()?;
        let new: Vec<Document> = self.stream(ADDED).take((self.documents / 10).max(1_000) as usize).collect();
        let watch = Watch::start();
        new.chunks(1_000).try_for_each(|batch| index.insert(batch)).or_failure()?;
        let disk = Disk {
            build_s,
            build_core_s,
            open_s,
            open_core_s,
            log_bytes: stats.bytes.get("log").copied().unwrap_or(0),
            inserts_per_s: new.len() as f64 / watch.seconds(),
            insert_core_us: watch.core_seconds() / new.len() as f64 * 1e6,
        };
        drop(index);
        std::fs::remove_dir_all(directory)?;
        Ok(disk)
    }
}

fn pairs(index: &MemoryIndex) -> Pairs {
    let watch = Watch::start();
    let mut count = 0;
    index.pairs(&mut |_| {
        count += 1;
        ControlFlow::Continue(())
    });
    Pairs { count, core_s: watch.core_seconds() }
}

fn insert_while_asking(
    index: &MemoryIndex,
    name: &str,
    new: &[Document],
    queries: &[(Language, SimHash)],
) -> Outcome<Inserts> {
    let has_ended = AtomicBool::new(false);
    let (inserted, of_queries) = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut times = Vec::new();
            for query in queries.iter().cycle() {
                let start = Instant::now();
                std::hint::black_box(index.near(std::slice::from_ref(query)).or_failure()?);
                times.push(start.elapsed());
                // The pause stands for a service that is not at its limit.
                std::thread::sleep(Duration::from_micros(50));
                if has_ended.load(Ordering::Relaxed) {
                    break;
                }
            }
            Outcome::Ok(times)
        });
        let (mut times, watch) = (Vec::with_capacity(new.len() / 1_000 + 1), Watch::start());
        let inserted = new.chunks(1_000).try_for_each(|batch| {
            let start = Instant::now();
            let inserted = index.insert(batch);
            times.push(start.elapsed());
            inserted
        });
        let (seconds, core_seconds) = (watch.seconds(), watch.core_seconds());
        has_ended.store(true, Ordering::Relaxed);
        let asked = asking.join().map_err(|_| Failure::crawl("the thread that asks ended"));
        (inserted.map(|()| (times, seconds, core_seconds)), asked.and_then(|asked| asked))
    });
    let ((batches, seconds, core_seconds), of_queries) = (inserted.or_failure()?, of_queries?);
    let watch = Watch::start();
    index.settle();
    Ok(Inserts {
        name: name.to_owned(),
        documents: new.len(),
        documents_per_s: new.len() as f64 / seconds,
        core_us_each: core_seconds / new.len().max(1) as f64 * 1e6,
        batches: Times::of(batches),
        queries: Times::of(of_queries),
        settle_s: watch.seconds(),
    })
}

impl Indexes {
    pub(super) fn sheets(&self) -> Vec<Sheet> {
        let documents = count(self.documents);
        let name = |index: &Index| {
            let bits = if index.spread == "even" { "even bits" } else { "bits as of texts" };
            format!("k = {}, {bits}", index.k)
        };
        let mut memory = Sheet::new(
            format!("Index of {documents} documents: memory and building"),
            ["index", "B a document", "peak RSS", "build s", "core s", "all pairs", "core s"],
        );
        let mut disk = Sheet::new(
            format!("Index of {documents} documents in a directory"),
            ["index", "build s", "open s", "open core s", "log B a document", "inserts/s", "core us each"],
        );
        let mut asked = Sheet::new(
            format!("Queries among {documents} documents, microseconds"),
            ["index", "p50", "p99", "p99.9", "longest", "in batches", "found each"],
        )
        .note("In batches of 1,000: microseconds of a core. Hits have up to k bits changed.");
        let mut scanned = Sheet::new(
            "The same answers as comparing with every document",
            [
                "index",
                "queries",
                "found",
                "recall",
                "candidates",
                "scan ms",
                "scan of Hindi ms",
                "of documents",
            ],
        );
        let mut inserted = Sheet::new(
            "A fifth more inserted, in batches of 1,000, while another thread asks",
            [
                "index",
                "documents/s",
                "core us each",
                "batch p50 us",
                "p99",
                "longest pause ms",
                "query p50 us",
                "p99",
                "longest",
            ],
        );
        for index in &self.indexes {
            let (of, name) = (&index.memory, name(index));
            memory.row([
                name.clone(),
                figure(of.bytes_per_document),
                mebibytes(of.peak_rss_bytes),
                figure(of.build_s),
                figure(of.build_core_s),
                count(index.pairs.count),
                figure(index.pairs.core_s),
            ]);
            let of = &index.disk;
            disk.row([
                name.clone(),
                figure(of.build_s),
                figure(of.open_s),
                figure(of.open_core_s),
                figure(of.log_bytes as f64 / self.documents as f64),
                count(of.inserts_per_s as u64),
                figure(of.insert_core_us),
            ]);
            for queries in &index.queries {
                let times = queries.times;
                asked.row([
                    format!("{name}: {}", queries.name),
                    figure(times.p50_us),
                    figure(times.p99_us),
                    figure(times.p999_us),
                    figure(times.max_us),
                    figure(queries.batch_core_us),
                    figure(queries.found),
                ]);
            }
            let of = &index.scan;
            scanned.row([
                name.clone(),
                of.queries.to_string(),
                of.found.to_string(),
                format!("{} %", of.recall * 100.0),
                figure(index.candidates_per_query),
                figure(of.ms_per_query),
                figure(of.hindi_ms_per_query),
                count(of.hindi_documents),
            ]);
            for of in &index.inserts {
                inserted.row([
                    format!("{name}: {}", of.name),
                    count(of.documents_per_s as u64),
                    figure(of.core_us_each),
                    figure(of.batches.p50_us),
                    figure(of.batches.p99_us),
                    figure(of.batches.max_us / 1e3),
                    figure(of.queries.p50_us),
                    figure(of.queries.p99_us),
                    figure(of.queries.max_us),
                ]);
            }
        }
        vec![memory, asked, scanned, inserted, disk]
    }
}
