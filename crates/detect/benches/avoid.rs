//! Cost of the model of duplicate URLs. `cargo bench -p huntsman-detect --bench avoid`.
//!
//! The goals: a page of 500 words is learnt in 0.3 ms (median), a question is answered in 50 us (99th percentile), and a
//! page takes at most 1.5 KB at 100,000 pages, 10,000 session ids on one path included.

use std::time::Instant;

use huntsman_detect::avoid::{Options, PageText, Predictor};
use url::Url;

/// Words of a page.
const WORDS: usize = 500;

fn main() {
    println!("pages | learn us: median, p99 | ask us: median, p99 | KB a page");
    for pages in [1_000, 10_000, 100_000] {
        run(pages);
    }
}

fn run(pages: usize) {
    let before = resident_bytes();
    let mut predictor = Predictor::new(Options::default());
    let (mut learning, mut asking) = (Vec::with_capacity(pages), Vec::with_capacity(pages));
    for n in 0..pages {
        // Every second page is a copy; the first 10,000 copies have a session id on one path.
        let id = n / 2;
        let url = match n % 2 {
            0 => format!("http://h.example/section/{}/article?id={id}&page=1", id % 40),
            _ if n < 20_000 => format!("http://h.example/in?id={id}&sid={:016x}", n * 0x9E37_79B9),
            _ => format!("http://h.example/section/{}/article?id={id}&page=1&from={}", id % 40, n % 500),
        };
        let url = Url::parse(&url).expect("a URL");
        let text = page(id as u64);
        predictor.discover("h.example", &url, None);
        let start = Instant::now();
        let believed = predictor.explain("h.example", &url);
        asking.push(start.elapsed().as_secs_f64() * 1e6);
        std::hint::black_box(believed);
        let start = Instant::now();
        predictor.learn("h.example", &url, text);
        learning.push(start.elapsed().as_secs_f64() * 1e6);
    }
    let bytes = resident_bytes().saturating_sub(before);
    learning.sort_by(f64::total_cmp);
    asking.sort_by(f64::total_cmp);
    let at = |times: &[f64], share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{pages} | {:.0}, {:.0} | {:.1}, {:.1} | {:.2}",
        at(&learning, 0.5),
        at(&learning, 0.99),
        at(&asking, 0.5),
        at(&asking, 0.99),
        bytes as f64 / 1_024.0 / pages as f64
    );
}

fn page(content: u64) -> PageText {
    let mut state = content.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut words = String::new();
    for _ in 0..WORDS {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        words += &format!("w{} ", (state >> 33) % 30_000);
    }
    PageText::of([(1, "The site of examples"), (2, words.as_str()), (3, "All rights reserved")])
}

/// Resident bytes of this process; 0 where the system does not tell.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("");
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or(0) * 1_024
}
