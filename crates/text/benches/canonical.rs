//! Measures the time of the canonical form per address, and of splitting a megabyte into words. Run `cargo bench -p huntsman-text`.

use std::hint::black_box;
use std::time::Instant;

use huntsman_text::urlparts::canonical_into;
use huntsman_text::words::Words;
use url::Url;

fn main() {
    for (what, text) in [
        ("plain path", "https://www.example.com/articles/2024/some-longer-title.html"),
        ("plain path, fragment", "https://www.example.com/articles/2024/some-longer-title.html#section-3"),
        ("sorted query", "https://forum.example.com/viewtopic.php?f=12&start=15&t=4711"),
        ("unsorted query", "https://forum.example.com/viewtopic.php?t=4711&f=12&start=15"),
        ("escapes in path", "https://en.example.org/wiki/%E2%82%AC_sign/%7Euser"),
        ("escapes in query", "https://example.org/s?q=caf%c3%a9+au%20lait&lang=fr"),
        ("2 kB, 100 pairs", &long()),
    ] {
        let url = Url::parse(text).unwrap();
        let mut out = String::with_capacity(4096);
        let rounds = 200_000;
        let best = best_of(|| {
            for _ in 0..rounds {
                out.clear();
                canonical_into(black_box(&url), &mut out);
                black_box(&out);
            }
        });
        println!("canonical_into, {what}: {:.0} ns", best / rounds as f64 * 1e9);
    }
    let mut words = Words::default();
    for (what, sentence) in [
        ("English", "The quick brown fox, having jumped over a lazy dog's back, ran away in 2024. "),
        ("German", "Der schnelle braune Fuchs überspringt, größer als sonst, den faulen Hund. "),
        ("Hindi", "तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर से कूदती है और जंगल में भाग जाती है। "),
    ] {
        let text = sentence.repeat(1_000_000 / sentence.len());
        let best = best_of(|| {
            words.clear();
            words.extend(black_box(&text));
        });
        println!("words and hashes, {what}: {:.0} MB/s", text.len() as f64 / best / 1e6);
    }
}

fn long() -> String {
    let pairs: Vec<String> = (0..100).map(|n| format!("name{}=some%20value", n * 37 % 100)).collect();
    format!("https://example.com/?{}", pairs.join("&"))
}

fn best_of(mut work: impl FnMut()) -> f64 {
    (0..7).fold(f64::INFINITY, |best, _| {
        let start = Instant::now();
        work();
        best.min(start.elapsed().as_secs_f64())
    })
}
