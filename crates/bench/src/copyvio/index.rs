//! The cost of an index of windows, and whether it finds everything that it promises.

use std::time::{Duration, Instant};

use huntsman::detect::copyvio::{Document, WindowIndex};
use huntsman_cli::exit::Outcome;
use huntsman_cli::process::thread_clock;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use super::args::CopyvioArgs;
use crate::clock::{Times, Watch};
use crate::sheet::{Sheet, figure};

/// Number of words in a text.
const WORDS: usize = 1_000;
/// One of this many texts has a run of words of an earlier one.
const COPIES: usize = 100;

/// An index of texts of 1,000 words.
#[derive(Debug, Serialize)]
pub(super) struct Index {
    texts: usize,
    /// Length of a shared run of words that is always found.
    run: usize,
    windows_per_text: f64,
    bytes_per_text: f64,
    bytes_per_window: f64,
    /// Microseconds of processor time per text: to split it into words, and to add it to the index.
    read_us: f64,
    add_us: f64,
    /// The longest addition, which included a merge of parts.
    longest_add_ms: f64,
    compact_s: f64,
    /// Queries before the index was compacted, and after it.
    query: Times,
    query_compact: Times,
    /// Number of copied runs of exactly the promised length, and how many of them were found.
    copies: usize,
    copies_found: usize,
    /// Average number of texts found per query, without the text itself and the one that it shares a run with.
    others_per_query: f64,
}

pub(super) fn run(args: &CopyvioArgs, texts: u64) -> Outcome<Index> {
    let texts = usize::try_from(texts).unwrap_or(usize::MAX);
    let mut index = WindowIndex::default();
    let run = index.run();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(args.seed);
    // Texts are generated twice from their seeds, and not kept in memory.
    let seeds: Vec<u64> = (0..texts).map(|_| random.random()).collect();
    let source_of = |at: usize| (at % COPIES == COPIES - 1).then(|| seeds[at] as usize % at);
    let text = |at: usize| {
        let mut words = words(seeds[at]);
        if let Some(source) = source_of(at) {
            let copied = self::words(seeds[source]);
            let (from, to) =
                (seeds[at] as usize / 7 % (WORDS - run), seeds[at] as usize / 11 % (WORDS - run));
            words[to..to + run].clone_from_slice(&copied[from..from + run]);
        }
        words.join(" ")
    };
    let (mut read, mut added, mut longest) = (0.0, 0.0, Duration::ZERO);
    for at in 0..texts {
        let text = text(at);
        let watch = Watch::start();
        let document = Document::new(&text);
        read += watch.core_seconds();
        let watch = thread_clock();
        index.add(at as u32, &document);
        let took = thread_clock().saturating_sub(watch);
        added += took.as_secs_f64();
        longest = longest.max(took);
    }
    let queries: Vec<usize> = (0..texts).filter(|at| source_of(*at).is_some()).take(2_000).collect();
    let (mut found, mut others) = (0, 0);
    let mut ask = |index: &WindowIndex| {
        let mut times = Vec::with_capacity(queries.len());
        (found, others) = (0, 0);
        for at in &queries {
            let text = text(*at);
            let document = Document::new(&text);
            let start = Instant::now();
            let candidates = index.candidates(&document, 1).texts;
            times.push(start.elapsed());
            let source = source_of(*at).expect("only such texts ask") as u32;
            found += usize::from(candidates.iter().any(|candidate| candidate.id == source));
            let is_other = |id: u32| id != source && id != *at as u32;
            others += candidates.iter().filter(|candidate| is_other(candidate.id)).count();
        }
        Times::of(times)
    };
    let query = ask(&index);
    let watch = Watch::start();
    index.compact();
    let compact_s = watch.core_seconds();
    let query_compact = ask(&index);
    let (windows, bytes) = (index.windows() as f64, index.bytes() as f64);
    let per_text = |sum: f64| sum / texts as f64;
    Ok(Index {
        texts,
        run,
        windows_per_text: per_text(windows),
        bytes_per_text: per_text(bytes),
        bytes_per_window: bytes / windows.max(1.0),
        read_us: per_text(read) * 1e6,
        add_us: per_text(added) * 1e6,
        longest_add_ms: longest.as_secs_f64() * 1e3,
        compact_s,
        query,
        query_compact,
        copies: queries.len(),
        copies_found: found,
        others_per_query: others as f64 / queries.len().max(1) as f64,
    })
}

/// Random words; as in a language, the n-th most frequent one has a share of about 1/n.
pub(super) fn words(seed: u64) -> Vec<String> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut word = || format!("w{}", 50_000.0_f64.powf(random.random_range(0.0..1.0)) as usize);
    (0..WORDS).map(|_| word()).collect()
}

pub(super) fn sheet(indexes: &[Index]) -> Sheet {
    let head = [
        "",
        "windows a text",
        "bytes a text",
        "bytes a window",
        "add us",
        "query us p50",
        "p99",
        "compact: p50",
        "p99",
        "runs found",
    ];
    let mut sheet = Sheet::new("Index of windows, texts of 1,000 words", head);
    for index in indexes {
        let figures = [
            index.windows_per_text,
            index.bytes_per_text,
            index.bytes_per_window,
            index.add_us,
            index.query.p50_us,
            index.query.p99_us,
            index.query_compact.p50_us,
            index.query_compact.p99_us,
        ];
        let first = format!("{} texts", index.texts);
        let found = format!("{} of {}", index.copies_found, index.copies);
        sheet.row([first].into_iter().chain(figures.map(figure)).chain([found]));
    }
    let last = indexes.last();
    sheet.note(format!(
        "A run is {} words that a text has of another. To find the words of a text takes {} us more; the longest addition took {} ms, in which \
         parts were merged.",
        last.map_or(0, |index| index.run),
        last.map_or_else(String::new, |index| figure(index.read_us)),
        last.map_or_else(String::new, |index| figure(index.longest_add_ms)),
    ))
}
