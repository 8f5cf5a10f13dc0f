//! An index of fingerprints: memory, building, asking, inserting, opening.
//!
//! `cargo bench -p huntsman-detect --bench near -- [DOCUMENTS] [K] [even|skewed] [DIRECTORY]`; 100,000 documents for k = 3 if nothing is
//! said. The documents are spread over ten languages, more than a quarter of them Hindi, and have random numbers of 16 digits for ids.
//! `skewed`: each bit is as often set as among texts whose words are spread as in a language.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use huntsman_detect::near::{DiskIndex, DocId, Document, Identity, Language, MemoryIndex, NearIndex};
use huntsman_detect::simhash::{Features, SimHash};
use huntsman_detect::words::Words;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Documents of each language, of 15,896,966 in all.
const LANGUAGES: [(&str, u64); 10] = [
    ("HINDI", 4_170_000),
    ("BENGALI", 2_100_000),
    ("ENGLISH", 1_826_966),
    ("TAMIL", 1_750_000),
    ("MARATHI", 1_600_000),
    ("MALAYALAM", 1_300_000),
    ("TELUGU", 1_200_000),
    ("GUJARATI", 1_100_000),
    ("ODIA", 500_000),
    ("PUNJABI", 350_000),
];

struct Counting {
    bytes: AtomicUsize,
    peak: AtomicUsize,
}

#[global_allocator]
static HEAP: Counting = Counting { bytes: AtomicUsize::new(0), peak: AtomicUsize::new(0) };

impl Counting {
    fn add(&self, size: usize) {
        let bytes = self.bytes.fetch_add(size, Ordering::Relaxed) + size;
        self.peak.fetch_max(bytes, Ordering::Relaxed);
    }
}

#[expect(unsafe_code, reason = "counting what is allocated takes an allocator")]
// SAFETY: all calls go to the system's allocator unchanged; counting has no influence on what is returned.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: as asked by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: as asked by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.bytes.fetch_sub(layout.size(), Ordering::Relaxed);
        self.add(size);
        // SAFETY: as asked by the caller.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.bytes.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as asked by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Documents as they come, the same for a seed.
struct Source {
    random: Xoshiro256PlusPlus,
    /// For each bit how many of 65,536 fingerprints have it; all random if there is none.
    shares: Option<Vec<u16>>,
    languages: Vec<(Language, u64)>,
    total: u64,
    /// Of how many documents one is near to an earlier one.
    copies: u64,
    last: u128,
}

impl Source {
    fn new(seed: u64, documents: u64, is_skewed: bool) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let shares = is_skewed.then(shares_of_texts);
        let all: u64 = LANGUAGES.iter().map(|(_, count)| count).sum();
        let language = |(name, count): (&str, u64)| {
            (
                Language::parse(name).unwrap(),
                (u128::from(count) * u128::from(documents) / u128::from(all)) as u64,
            )
        };
        let languages: Vec<_> = LANGUAGES.into_iter().map(language).collect();
        let total = languages.iter().map(|(_, count)| count).sum();
        Self { random, shares, languages, total, copies: 1000, last: 1 }
    }

    fn hash(&mut self) -> u128 {
        match &self.shares {
            None => self.random.random(),
            Some(shares) => {
                let bits = shares.iter().map(|share| u128::from(self.random.random::<u16>() < *share));
                bits.enumerate().fold(0, |hash, (at, bit)| hash | bit << at)
            }
        }
    }

    fn near(&mut self, hash: u128, most: u32) -> u128 {
        (0..self.random.random_range(0..=most))
            .fold(hash, |hash, _| hash ^ 1 << self.random.random_range(0..128))
    }

    fn next(&mut self) -> Document {
        let mut at = self.random.random_range(0..self.total);
        let language = self.languages.iter().find(|(_, count)| {
            let is_it = at < *count;
            at = at.saturating_sub(*count);
            is_it
        });
        let language = language.expect("it is below the sum").0;
        let hash = match self.random.random_range(0..self.copies) {
            0 => self.near(self.last, 5),
            _ => self.hash(),
        };
        self.last = hash;
        let id = DocId::Number(self.random.random_range(0..10_u64.pow(16)));
        Document { language, id, hash: SimHash(hash) }
    }
}

/// For each bit how many of 65,536 texts of 300 words have it, by those of a sample, the n-th frequent word having a share of about 1/n.
fn shares_of_texts() -> Vec<u16> {
    const TEXTS: u32 = 4000;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
    let mut counts = vec![0_u32; 128];
    for _ in 0..TEXTS {
        let word = |_| format!("w{}", 50_000.0_f64.powf(random.random_range(0.0..1.0)) as usize);
        let text: Vec<String> = (0..300).map(word).collect();
        let hash = SimHash::of(&Words::of(&text.join(" "))).0;
        counts.iter_mut().enumerate().for_each(|(bit, count)| *count += (hash >> bit & 1) as u32);
    }
    counts.into_iter().map(|count| (count * 65_535 / TEXTS) as u16).collect()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let number =
        |at: usize| arguments.get(at).map(|text| text.replace(['_', ','], "").parse().expect("a number"));
    // Without being asked for, as by `cargo test --benches`, only to see that it runs.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let documents: u64 = number(0).unwrap_or(if is_bench { 100_000 } else { 3000 });
    let k = number(1).unwrap_or(3) as u32;
    let is_skewed = arguments.get(2).is_some_and(|spread| spread == "skewed");
    let directory = arguments.get(3).map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = directory.join(format!("near-bench-{}", std::process::id()));
    println!("{documents} documents, k = {k}, {}", if is_skewed { "skewed" } else { "even" });
    let identity = Identity::new(k, Features::default()).expect("k is at most 7");

    on_disk(documents, identity, is_skewed, &directory);
    let index = build(documents, identity, is_skewed);
    ask(&index, documents, is_skewed, k);
    scan(&index, documents, is_skewed, k);
    all_pairs(&index);
    insert_while_asking(&index, documents, is_skewed, k);
}

fn seconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}

/// What this thread has used of a processor, in seconds: on a machine with other work, what counts.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|text| text.parse::<f64>().ok());
    nanoseconds.map_or(f64::NAN, |nanoseconds| nanoseconds / 1e9)
}

/// The most memory that the process had so far.
fn peak_rss() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: Option<f64> = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    kib.map_or("?".into(), |kib| format!("{:.0} MiB", kib / 1024.0))
}

fn on_disk(documents: u64, identity: Identity, is_skewed: bool, directory: &PathBuf) {
    let mut source = Source::new(1, documents, is_skewed);
    let (start, cpu_start) = (Instant::now(), cpu());
    let index = DiskIndex::build(directory, identity, (0..documents).map(|_| source.next())).expect("build");
    index.flush().expect("flush");
    println!("disk: build and flush {:.2} s, {:.2} s of a core", seconds(start), cpu() - cpu_start);
    drop(index);
    let (start, cpu_start) = (Instant::now(), cpu());
    let index = DiskIndex::open(directory, identity).expect("open");
    let stats = index.stats().expect("stats");
    println!(
        "disk: open {:.2} s, {:.2} s of a core, {} documents, log {} MiB, peak RSS so far {}",
        seconds(start),
        cpu() - cpu_start,
        stats.documents(),
        stats.bytes["log"] >> 20,
        peak_rss()
    );
    let new: Vec<Document> = (0..(documents / 10).max(1000)).map(|_| source.next()).collect();
    let (start, cpu_start) = (Instant::now(), cpu());
    new.chunks(1000).for_each(|batch| index.insert(batch).expect("insert"));
    println!(
        "disk: insert {:.0} documents/s, {:.2} us of a core each, in batches of 1000",
        new.len() as f64 / seconds(start),
        (cpu() - cpu_start) / new.len() as f64 * 1e6
    );
    drop(index);
    std::fs::remove_dir_all(directory).expect("remove the directory of the bench");
}

fn build(documents: u64, identity: Identity, is_skewed: bool) -> MemoryIndex {
    let mut source = Source::new(1, documents, is_skewed);
    let start = cpu();
    (0..documents).for_each(|_| drop(std::hint::black_box(source.next())));
    let generating = cpu() - start;
    let mut source = Source::new(1, documents, is_skewed);
    let before = HEAP.bytes.load(Ordering::Relaxed);
    HEAP.peak.store(before, Ordering::Relaxed);
    let (start, cpu_start) = (Instant::now(), cpu());
    let index = MemoryIndex::build(identity, (0..documents).map(|_| source.next())).expect("build");
    let building = seconds(start) - generating;
    let of_a_core = cpu() - cpu_start - generating;
    let per_document = |bytes: usize| (bytes as f64 - before as f64) / documents as f64;
    println!(
        "memory: build {building:.2} s, {of_a_core:.2} s of a core ({generating:.2} s of generating left out), {:.1} B a document, at most {:.1} while building, peak RSS so far {}",
        per_document(HEAP.bytes.load(Ordering::Relaxed)),
        per_document(HEAP.peak.load(Ordering::Relaxed)),
        peak_rss()
    );
    let stats = index.stats().expect("stats");
    for part in ["hashes", "ids", "bands", "delta"] {
        let bytes: u64 = stats.languages.values().map(|language| language.bytes[part]).sum();
        print!("  {part} {:.2} B", bytes as f64 / documents as f64);
    }
    println!();
    index
}

fn quantiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    if times.is_empty() {
        return "none".into();
    }
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    format!("p50 {:.2} us, p99 {:.2} us, p99.9 {:.2} us, max {:.1} us", at(0.5), at(0.99), at(0.999), at(1.0))
}

/// Fingerprints that are there, with up to k bits changed.
fn hits(count: usize, documents: u64, is_skewed: bool, k: u32) -> Vec<(Language, SimHash)> {
    let mut source = Source::new(1, documents, is_skewed);
    let mut other = Source::new(2, documents, is_skewed);
    let step = (documents as usize / count).max(1);
    let found = (0..documents as usize).filter_map(|n| {
        let document = source.next();
        (n % step == 0).then(|| (document.language, SimHash(other.near(document.hash.0, k))))
    });
    found.take(count).collect()
}

fn misses(count: usize, documents: u64, is_skewed: bool) -> Vec<(Language, SimHash)> {
    let mut source = Source::new(3, documents, is_skewed);
    // The same shares of bits as those of the documents.
    source.shares = Source::new(1, documents, is_skewed).shares;
    let query = |document: Document| (document.language, document.hash);
    (0..count).map(|_| query(source.next())).collect()
}

fn ask(index: &MemoryIndex, documents: u64, is_skewed: bool, k: u32) {
    let count = if k <= 3 { 200_000 } else { 20_000 }.min(documents as usize);
    let hindi = Language::parse("hi").unwrap();
    let of_hindi = |queries: &[(Language, SimHash)]| queries.iter().map(|query| (hindi, query.1)).collect();
    let (hits, misses) = (hits(count, documents, is_skewed, k), misses(count, documents, is_skewed));
    let hindi_misses: Vec<_> = of_hindi(&misses);
    for (name, queries) in [("misses", &misses), ("hits", &hits), ("misses, Hindi", &hindi_misses)] {
        let mut found = 0;
        let times = queries.iter().map(|query| {
            let start = Instant::now();
            found += index.near(std::slice::from_ref(query)).expect("near")[0].len();
            start.elapsed()
        });
        let times = quantiles(times.collect());
        let start = cpu();
        for queries in queries.chunks(1000) {
            std::hint::black_box(index.near(queries).expect("near"));
        }
        let each = (cpu() - start) / queries.len() as f64 * 1e6;
        println!(
            "{name}: {times}; in batches {each:.2} us of a core each; {:.2} found",
            found as f64 / queries.len() as f64
        );
    }
    let counts = index.stats().expect("stats").candidates;
    println!("candidates: {:.1} a query", counts.sum() as f64 / counts.queries() as f64);
}

fn scan(index: &MemoryIndex, documents: u64, is_skewed: bool, k: u32) {
    let sample = if documents > 1_000_000 { 300 } else { 1000 };
    let mut queries = hits(sample, documents, is_skewed, k + 1);
    queries.extend(misses(sample, documents, is_skewed));
    let start = Instant::now();
    let scanned = index.scan(&queries);
    let took = seconds(start) / queries.len() as f64 * 1e3;
    assert_eq!(index.near(&queries).expect("near"), scanned, "the index finds what a scan finds");
    let found: usize = scanned.iter().map(Vec::len).sum();
    let hindi = Language::parse("hi").unwrap();
    let of_hindi: Vec<_> = queries.iter().take(200).map(|query| (hindi, query.1)).collect();
    let best = (0..5).fold(f64::INFINITY, |best, _| {
        let start = Instant::now();
        std::hint::black_box(index.scan(&of_hindi));
        best.min(seconds(start) / of_hindi.len() as f64 * 1e3)
    });
    let rows = index.stats().expect("stats").languages[&hindi].documents;
    println!(
        "recall: {} queries find the {found} that a scan finds; a scan takes {took:.3} ms, {best:.3} ms for the {rows} of Hindi",
        queries.len()
    );
}

fn all_pairs(index: &MemoryIndex) {
    let start = cpu();
    let mut count = 0_u64;
    index.pairs(&mut |_| {
        count += 1;
        ControlFlow::Continue(())
    });
    println!("pairs: {count} in {:.2} s of a core", cpu() - start);
}

fn insert_while_asking(index: &MemoryIndex, documents: u64, is_skewed: bool, k: u32) {
    const BATCH: usize = 1000;
    let mut source = Source::new(4, documents, is_skewed);
    let hindi = Language::parse("hi").unwrap();
    for (name, all_hindi) in [("all languages", false), ("Hindi", true)] {
        let new: Vec<Document> = (0..documents / 5)
            .map(|_| {
                let document = source.next();
                Document { language: if all_hindi { hindi } else { document.language }, ..document }
            })
            .collect();
        let queries = misses(10_000.min(documents as usize), documents, is_skewed);
        let has_ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let (mut asked, mut times) = (0_usize, Vec::new());
                while !has_ended.load(Ordering::Relaxed) {
                    let start = Instant::now();
                    std::hint::black_box(index.near(&queries[asked % queries.len()..][..1]).expect("near"));
                    times.push(start.elapsed());
                    asked += 1;
                    // A service that is not at its limit: 50 us between queries.
                    std::thread::sleep(Duration::from_micros(50));
                }
                times
            });
            let mut times = Vec::new();
            let (start, cpu_start) = (Instant::now(), cpu());
            for batch in new.chunks(BATCH) {
                let start = Instant::now();
                index.insert(batch).expect("insert");
                times.push(start.elapsed());
            }
            let rate = new.len() as f64 / seconds(start);
            let cpu_each = (cpu() - cpu_start) / new.len() as f64 * 1e6;
            has_ended.store(true, Ordering::Relaxed);
            println!(
                "insert while asking, {name}: {rate:.0} documents/s, {cpu_each:.2} us of a core each; a batch of {BATCH}: {}",
                quantiles(times)
            );
            println!("  queries meanwhile: {}", quantiles(asking.join().expect("who asks ends")));
        });
        let start = Instant::now();
        index.settle();
        let stats = index.stats().expect("stats");
        println!(
            "  {:.2} s until all is merged, {:.1} B a document, peak RSS so far {}, k = {k}",
            seconds(start),
            stats.total_bytes() as f64 / stats.documents() as f64,
            peak_rss()
        );
    }
}
