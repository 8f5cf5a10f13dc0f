//! Measures the cost of learning a page, of a prediction, of signatures and of the index. Run `cargo bench -p huntsman-detect --bench
//! maybedont`.

use std::hint::black_box;
use std::time::Instant;

use huntsman_detect::lsh::{LshIndex, LshParams, PackedIndex};
use huntsman_detect::maybedont::DupePredictor;
use huntsman_detect::minhash::{PERMUTATIONS, Signature};
use huntsman_detect::shingles::ShingleSet;

fn main() {
    let text = page_text(1, 500);
    let shingles = ShingleSet::of(&text);
    report("shingles of 500 words", 2_000, || drop(black_box(ShingleSet::of(black_box(&text)))));
    report("signature of 497 shingles", 2_000, || {
        black_box(Signature::of(black_box(shingles.hashes())));
    });
    let (one, two) = (Signature::of(&[1]), Signature::of(&[2]));
    report("similarity of two signatures", 1_000_000, || {
        black_box(black_box(&one).jaccard(black_box(&two)));
    });
    for pages in [1_000, 10_000, 100_000] {
        index(pages);
    }
    for pages in [1_000, 10_000] {
        predictor("a path each, and a session", pages, |n| format!("http://h.example/p/{}?sid={n}", n / 2));
        predictor("one path, three parameters", pages, |n| {
            format!("http://h.example/t?f={}&t={}&start={}", n % 7, n / 2, n % 2 * 15)
        });
        predictor("one path, a session each", pages, |n| format!("http://h.example/?sid={n}"));
    }
}

fn index(pages: u32) {
    let signatures: Vec<Signature> =
        (0..pages).map(|n| Signature::of(&[u64::from(n), u64::from(n) << 20 | 7])).collect();
    let mut index = PackedIndex::new(LshParams::optimal(0.9, PERMUTATIONS).unwrap()).unwrap();
    let start = Instant::now();
    for (id, signature) in (0..).zip(&signatures) {
        index.insert(id, signature);
    }
    let insert = start.elapsed().as_secs_f64() / f64::from(pages);
    let start = Instant::now();
    let mut found = Vec::new();
    for signature in &signatures {
        index.candidates_into(signature, &mut found);
        black_box(&found);
    }
    let query = start.elapsed().as_secs_f64() / f64::from(pages);
    println!(
        "index of {pages}: insert {:.2} us, candidates {:.2} us, {} bytes a signature",
        insert * 1e6,
        query * 1e6,
        index.size() / pages as usize
    );
}

/// Learns this many pages of 200 words, every second one a copy, and then predicts as many addresses.
fn predictor(what: &str, pages: u32, url: impl Fn(u32) -> String) {
    let mut predictor = DupePredictor::default();
    let texts: Vec<String> = (0..pages).map(|n| page_text(n / 2, 200)).collect();
    let urls: Vec<String> = (0..pages).map(&url).collect();
    let start = Instant::now();
    let mut last = 0.0;
    for (at, (url, text)) in urls.iter().zip(&texts).enumerate() {
        let before = Instant::now();
        predictor.update_model(url, text);
        if at >= urls.len() * 9 / 10 {
            last += before.elapsed().as_secs_f64();
        }
    }
    let learn = start.elapsed().as_secs_f64() / f64::from(pages);
    let start = Instant::now();
    for url in &urls {
        black_box(predictor.duplicate_probability(url));
    }
    let ask = start.elapsed().as_secs_f64() / f64::from(pages);
    let bare = urls[0].split('?').next().unwrap();
    let start = Instant::now();
    predictor.update_model(bare, "another text that nobody knows");
    let learn_bare = start.elapsed().as_secs_f64();
    let start = Instant::now();
    for _ in 0..20 {
        black_box(predictor.duplicate_probability(bare));
    }
    let ask_bare = start.elapsed().as_secs_f64() / 20.0;
    println!(
        "{what}, {pages} pages: learn {:.0} us (the last tenth {:.0} us), ask {:.1} us; without the query: learn {:.0} us, ask {:.1} us",
        learn * 1e6,
        last / f64::from(pages) * 10.0 * 1e6,
        ask * 1e6,
        learn_bare * 1e6,
        ask_bare * 1e6
    );
}

/// A text of this many words, different for each number.
fn page_text(number: u32, words: u32) -> String {
    let mut text = String::new();
    for word in 0..words {
        let mixed = (u64::from(number) << 32 | u64::from(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
        text.push_str(&format!("w{mixed}{}", if word % 20 == 19 { '\n' } else { ' ' }));
    }
    text
}

fn report(what: &str, rounds: u32, mut work: impl FnMut()) {
    let best = (0..5).fold(f64::INFINITY, |best, _| {
        let start = Instant::now();
        (0..rounds).for_each(|_| work());
        best.min(start.elapsed().as_secs_f64())
    });
    println!("{what}: {:.3} us", best / f64::from(rounds) * 1e6);
}
