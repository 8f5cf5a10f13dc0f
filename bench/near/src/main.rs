//! The index of near-duplicates beside gaoya's `SimHashIndex` of four blocks: memory, time, and what each finds.
//!
//! `cargo run --release --manifest-path bench/near/Cargo.toml [-- DOCUMENTS]`

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use gaoya::simhash::SimHashIndex;
use huntsman_detect::near::{DocId, Document, Identity, Language, MemoryIndex, NearIndex};
use huntsman_detect::simhash::SimHash;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

struct Counting(AtomicUsize);

#[global_allocator]
static HEAP: Counting = Counting(AtomicUsize::new(0));

// SAFETY: all calls go to the system's allocator unchanged; counting has no influence on what is returned.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.0.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as asked by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.0.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as asked by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// What this thread has used of a processor, in seconds: on a machine with other work, what counts.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|text| text.parse::<f64>().ok());
    nanoseconds.map_or(f64::NAN, |nanoseconds| nanoseconds / 1e9)
}

/// What something gives, the seconds that it took, the bytes that it left.
fn measured<T>(work: impl FnOnce() -> T) -> (T, f64, usize) {
    let (bytes, start) = (HEAP.0.load(Ordering::Relaxed), cpu());
    let result = work();
    let time = cpu() - start;
    (result, time, HEAP.0.load(Ordering::Relaxed).saturating_sub(bytes))
}

fn main() {
    let count: usize = std::env::args().nth(1).map_or(1_000_000, |count| count.parse().expect("a number"));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let documents: Vec<(u64, u128)> =
        (0..count).map(|_| (random.random_range(0..10_u64.pow(16)), random.random())).collect();
    let flipped = |random: &mut Xoshiro256PlusPlus, hash: u128, bits: u32| {
        let mut flips = 0_u128;
        while flips.count_ones() < bits {
            flips |= 1 << random.random_range(0..128);
        }
        hash ^ flips
    };
    let language = Language::parse("hi").expect("a name");

    let (index, time, bytes) = measured(|| {
        let of =
            |(id, hash): &(u64, u128)| Document { language, id: DocId::Number(*id), hash: SimHash(*hash) };
        MemoryIndex::build(Identity::default(), documents.iter().map(of)).expect("build")
    });
    println!(
        "huntsman, built at once: {:.1} B a document, {:.2} us each",
        bytes as f64 / count as f64,
        time * 1e6 / count as f64
    );
    let (inserted, time, _) = measured(|| {
        let index = MemoryIndex::new(Identity::default());
        for documents in documents.chunks(1000) {
            let of = |(id, hash): &(u64, u128)| Document {
                language,
                id: DocId::Number(*id),
                hash: SimHash(*hash),
            };
            index.insert(&documents.iter().map(of).collect::<Vec<_>>()).expect("insert");
        }
        index
    });
    println!("huntsman, inserted: {:.2} us each", time * 1e6 / count as f64);
    drop(inserted);
    let (rival, time, bytes) = measured(|| {
        let mut rival = SimHashIndex::<u128, u64>::new(4, 3);
        documents.iter().for_each(|(id, hash)| rival.insert(*id, *hash));
        rival
    });
    println!(
        "gaoya, inserted: {:.1} B a document, {:.2} us each",
        bytes as f64 / count as f64,
        time * 1e6 / count as f64
    );

    let misses: Vec<u128> = (0..200_000).map(|_| random.random()).collect();
    for round in 0..2 {
        let (_, ours, _) = measured(|| {
            for query in &misses {
                black_box(index.near(&[(language, SimHash(*query))]).expect("near"));
            }
        });
        let (_, theirs, _) = measured(|| misses.iter().for_each(|query| drop(black_box(rival.query(query)))));
        let each = |time: f64| time * 1e6 / misses.len() as f64;
        println!("misses, round {round}: huntsman {:.2} us, gaoya {:.2} us", each(ours), each(theirs));
    }
    for distance in 0..=3 {
        let queries: Vec<(u64, u128)> = (0..20_000)
            .map(|_| {
                let (id, hash) = documents[random.random_range(0..count)];
                (id, flipped(&mut random, hash, distance))
            })
            .collect();
        let (ours, our_time, _) = measured(|| {
            let found = |(id, query): &(u64, u128)| {
                let near = index.near(&[(language, SimHash(*query))]).expect("near");
                near[0].iter().any(|near| near.id == DocId::Number(*id))
            };
            queries.iter().filter(|query| found(query)).count()
        });
        let (theirs, their_time, _) =
            measured(|| queries.iter().filter(|(id, query)| rival.query(query).contains(id)).count());
        let (share, each) =
            (|found: usize| found as f64 * 100.0 / 20_000.0, |time: f64| time * 1e6 / 20_000.0);
        println!(
            "distance {distance}: huntsman finds {:.2} % in {:.2} us, gaoya {:.2} % in {:.2} us",
            share(ours),
            each(our_time),
            share(theirs),
            each(their_time)
        );
    }
}
