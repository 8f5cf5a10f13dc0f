//! Time of a fingerprint per 500 words. `cargo bench -p huntsman-detect --bench simhash`.

use std::hint::black_box;
use std::time::Instant;

use huntsman_detect::simhash::{Features, SimHash};
use huntsman_detect::words::Words;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const WORDS: usize = 500;

fn main() {
    // As in a language, the n-th frequent word has a share of about 1/n.
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let syllables = ["ta", "ren", "lo", "sim", "er", "ing", "ka", "p"];
    let word = |mut rank: usize| {
        let mut word = String::new();
        while rank > 0 {
            word.push_str(syllables[rank % 8]);
            rank /= 8;
        }
        word
    };
    let ranks = (0..WORDS).map(|_| 5000.0_f64.powf(rng.random_range(0.0..1.0)) as usize);
    let text = ranks.map(word).collect::<Vec<_>>().join(" ");
    let rounds = 1000;
    let mut words = Words::default();
    let micros = |work: &mut dyn FnMut()| {
        let best = (0..7).fold(f64::INFINITY, |best, _| {
            let start = Instant::now();
            (0..rounds).for_each(|_| work());
            best.min(start.elapsed().as_secs_f64())
        });
        best / f64::from(rounds) * 1e6
    };
    let whole = micros(&mut || {
        words.clear();
        words.extend(black_box(&text));
        black_box(SimHash::of(&words));
    });
    let rate = text.len() as f64 / whole;
    println!("text to fingerprint, {WORDS} words, {} bytes: {whole:.1} us, {rate:.0} MB/s", text.len());
    for features in Features::ALL {
        let time = micros(&mut || {
            black_box(SimHash::with(features, black_box(&words)));
        });
        println!("words to fingerprint, {WORDS} words, {features}: {time:.1} us");
    }
}
