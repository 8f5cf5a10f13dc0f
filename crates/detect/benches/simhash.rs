//! Time of a fingerprint per 500 words. `cargo bench -p huntsman-detect --bench simhash [-- FILE...]`: of texts in files, too.

use std::hint::black_box;

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
    let mut words = Words::default();
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
    for file in std::env::args().skip(1).filter(|argument| !argument.starts_with("--")) {
        let text = std::fs::read_to_string(&file).expect("a file of UTF-8");
        let whole = micros(&mut || {
            words.clear();
            words.extend(black_box(&text));
            black_box(SimHash::of(&words));
        });
        let only_words = micros(&mut || {
            words.clear();
            words.extend(black_box(&text));
        });
        let (bytes, rate) = (text.len(), |time: f64| text.len() as f64 / time);
        let char5 = micros(&mut || {
            black_box(SimHash::with(Features::Char5, black_box(&words)));
        });
        println!(
            "{file}: {bytes} bytes, {} words, {:.1} MB/s, {:.1} MB/s to words alone, {:.1} MB/s from words by char5",
            words.len(),
            rate(whole),
            rate(only_words),
            rate(char5)
        );
    }
}

/// Microseconds of a processor that some work takes, the least of several rounds.
fn micros(work: &mut dyn FnMut()) -> f64 {
    let start = cpu();
    work();
    let rounds = (0.02 / (cpu() - start).max(1e-6)).clamp(1.0, 1000.0) as u32;
    let best = (0..9).fold(f64::INFINITY, |best, _| {
        let start = cpu();
        (0..rounds).for_each(|_| work());
        best.min(cpu() - start)
    });
    best / f64::from(rounds) * 1e6
}

/// What this thread has used of a processor, in seconds: on a machine with other work, what counts.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|text| text.parse::<f64>().ok());
    nanoseconds.map_or(f64::NAN, |nanoseconds| nanoseconds / 1e9)
}
