//! Time and memory of comparing texts by their windows, beside maps of strings. `cargo bench -p huntsman-detect --bench copyvio`.
//!
//! `COPYVIO_WORDS` sets the words per text (5,000), `COPYVIO_ROUNDS` how often each step is done (50).

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;

use huntsman_detect::copyvio::{Article, Chain, Confidence, Degree, Document, Windows, for_each_word};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Text in which, as in a language, the n-th frequent word has a share of about 1/n.
fn text(rng: &mut Xoshiro256PlusPlus, words: usize) -> String {
    let syllables = ["ta", "ren", "lo", "sim", "er", "ing", "ka", "p"];
    let mut text = String::new();
    for at in 0..words {
        let mut rank = 20_000.0_f64.powf(rng.random_range(0.0..1.0)) as usize;
        let is_first = at % 12 == 0;
        let mut upper = is_first;
        while rank > 0 {
            let syllable = syllables[rank % 8];
            text.push_str(&if std::mem::take(&mut upper) {
                syllable.to_uppercase()
            } else {
                syllable.to_owned()
            });
            rank /= 8;
        }
        text.push_str(if at % 12 == 11 { ".\n" } else { " " });
    }
    text
}

type Naive = HashMap<Vec<Option<String>>, usize>;

fn naive(text: &str) -> Naive {
    let mut words = vec![None; 4];
    for_each_word(text, |word| words.push(Some(word.to_owned())));
    words.extend(vec![Some(String::new()); 4]);
    let mut chain = Naive::new();
    words.windows(5).for_each(|window| *chain.entry(window.to_vec()).or_default() += 1);
    chain
}

fn main() {
    let (words, rounds) = (setting("COPYVIO_WORDS", 5_000), setting("COPYVIO_ROUNDS", 50));
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let article = text(&mut rng, words);
    // A third of the source is the article's.
    let third: String = article.split_inclusive(' ').take(words / 3).collect();
    let source = third + &text(&mut rng, words - words / 3);
    // The best of single rounds: others work on the machine as well.
    let micros = |name: &str, rounds: usize, work: &mut dyn FnMut()| {
        let time = (0..5 * rounds).fold(f64::INFINITY, |best, _| {
            let start = Instant::now();
            work();
            best.min(start.elapsed().as_secs_f64())
        });
        println!("{name}: {:.1} us", time * 1e6);
        time
    };
    println!("{words} words each, {} and {} bytes", article.len(), source.len());
    let degree = Degree::default();
    let chain = Chain::of(&article, degree);
    let windows = Windows::of(&source, degree);
    let delta = chain.delta(&windows);
    println!("{delta:?}, {}", Confidence::of(chain.size(), delta.size));
    println!("memory: {:.1} bytes per window of a chain", chain.bytes() as f64 / chain.size() as f64);
    micros("words of one text", rounds, &mut || {
        let mut count = 0;
        for_each_word(black_box(&source), |word| count += word.len());
        black_box(count);
    });
    micros("windows of one text", rounds, &mut || {
        black_box(Windows::of(black_box(&source), degree));
    });
    micros("chain from windows", rounds, &mut || {
        black_box(Chain::from(black_box(&windows)));
    });
    micros("source against a prepared article, after hashing", rounds, &mut || {
        black_box(chain.delta(black_box(&windows)));
    });
    let whole = micros("two texts to a confidence", rounds, &mut || {
        let chain = Chain::of(black_box(&article), degree);
        let delta = chain.delta(&Windows::of(black_box(&source), degree));
        black_box(Confidence::of(chain.size(), delta.size));
    });
    micros("words with places of one text", rounds, &mut || {
        black_box(Document::new(black_box(&source)).words());
    });
    let prepared = Article::new(Document::new(&article));
    let document = Document::new(&source);
    micros("evidence of a source against a prepared article", rounds, &mut || {
        black_box(prepared.compare(black_box(&document)));
    });
    let rounds = rounds.div_ceil(10);
    let strings = micros("the same with maps of strings", rounds, &mut || {
        let (a, b) = (naive(black_box(&article)), naive(black_box(&source)));
        let delta: usize =
            a.iter().map(|(window, count)| b.get(window).map_or(0, |other| (*count).min(*other))).sum();
        black_box(Confidence::of(a.values().sum(), delta));
    });
    println!("{:.1} times as fast", strings / whole);
}
