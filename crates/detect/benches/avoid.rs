//! Measures the cost of the model of duplicate URLs. Run `cargo bench -p huntsman-detect --bench avoid`.
//!
//! The goals: learning a page of 500 words takes 0.3 ms (median), a decision takes 50 us (99th percentile), and a page takes at most 1.2 KB
//! at 100,000 pages, including 10,000 session ids on one path.
//!
//! With `-- --stdin default` or `--stdin reference` it reads pages from stdin (one per line: URL and blocks of text, separated by tabs),
//! learns them with that model, and prints a line of JSON: see `bench/avoid_dup`.

use std::io::BufRead;
use std::time::{Duration, Instant};

use huntsman_detect::avoid::evaluation::Times;
use huntsman_detect::avoid::{Options, PageText, Predictor};
use huntsman_detect::maybedont::{DupePredictor, PredictorSettings};
use huntsman_detect::shingles::{ShingleSet, TooCommon};
use serde_json::{Value, json};
use url::Url;

/// Words per page.
const WORDS: usize = 500;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let Some(at) = words.iter().position(|word| word == "--stdin") {
        return match words.get(at + 1).map(String::as_str) {
            Some("default") => from_stdin("Huntsman", &mut Ours(Predictor::new(Options::default()))),
            Some("reference") => from_stdin("Huntsman, reference mode", &mut Reference::WarmUp(Vec::new())),
            _ => panic!("--stdin default, or --stdin reference"),
        };
    }
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

/// A model that learns and decides.
trait Model {
    fn discover(&mut self, _: &Url) {}
    fn ask(&self, url: &Url);
    fn learn(&mut self, url: &Url, blocks: &[&str]);
}

struct Ours(Predictor);

impl Model for Ours {
    fn discover(&mut self, url: &Url) {
        self.0.discover("h.example", url, None);
    }

    fn ask(&self, url: &Url) {
        std::hint::black_box(self.0.explain("h.example", url));
    }

    fn learn(&mut self, url: &Url, blocks: &[&str]) {
        self.0.learn("h.example", url, PageText::of((0..).zip(blocks.iter().copied())));
    }
}

/// Like MaybeDont's middleware: the shingles that are too common are taken from the first pages, which are then learnt.
enum Reference {
    WarmUp(Vec<(Url, String)>),
    Open(Box<DupePredictor>),
}

const WARM_UP: usize = 300;

impl Model for Reference {
    fn ask(&self, url: &Url) {
        if let Self::Open(predictor) = self {
            std::hint::black_box(predictor.duplicate_probability(url.as_str()));
        }
    }

    fn learn(&mut self, url: &Url, blocks: &[&str]) {
        let text = blocks.join("\n");
        let queue = match self {
            Self::Open(predictor) => {
                predictor.update_model(url.as_str(), &text);
                return;
            }
            Self::WarmUp(queue) => queue,
        };
        queue.push((url.clone(), text));
        if queue.len() == WARM_UP {
            let shingles: Vec<ShingleSet> = queue.iter().map(|(_, text)| ShingleSet::of(text)).collect();
            let common = TooCommon::among(&shingles);
            let mut predictor =
                DupePredictor::new(PredictorSettings::default(), common).expect("the defaults");
            for (url, text) in queue {
                predictor.update_model(url.as_str(), text);
            }
            *self = Self::Open(Box::new(predictor));
        }
    }
}

fn from_stdin(name: &str, model: &mut impl Model) {
    let before = resident_bytes();
    let (mut learning, mut asking) = (Vec::new(), Vec::new());
    let timed = |times: &mut Vec<Duration>, call: &mut dyn FnMut()| {
        let start = thread_clock();
        call();
        times.push(thread_clock().saturating_sub(start));
    };
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("stdin can be read");
        let mut columns = line.split('\t');
        let url = Url::parse(columns.next().unwrap_or_default()).expect("each line begins with a URL");
        let blocks: Vec<&str> = columns.collect();
        model.discover(&url);
        timed(&mut asking, &mut || model.ask(&url));
        timed(&mut learning, &mut || model.learn(&url, &blocks));
    }
    let bytes = resident_bytes().saturating_sub(before);
    let pages = learning.len();
    let url = Url::parse("http://h.example/in?id=5").expect("a URL");
    let (mut asked, mut learned) = (Vec::new(), Vec::new());
    (0..20).for_each(|_| timed(&mut asked, &mut || model.ask(&url)));
    timed(&mut learned, &mut || model.learn(&url, &["a text that nobody knows, of more than four words"]));
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let (learn, ask) = (Times::of(learning), Times::of(asking));
    let times = |times: Times| -> Value { json!({"median": us(times.median), "p99": us(times.p99)}) };
    println!(
        "{}",
        json!({
            "model": name,
            "pages": pages,
            "learn_us": times(learn),
            "ask_us": times(ask),
            "bytes_per_page": bytes as f64 / pages.max(1) as f64,
            "without_session_us": {"learn": us(Times::of(learned).median), "ask": us(Times::of(asked).median)},
        })
    );
}

/// The CPU time of this thread; if the system does not report it, the time since the first call.
fn thread_clock() -> Duration {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
    #[cfg(not(unix))]
    {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }
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

/// Resident bytes of this process; 0 if the system does not report them.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("");
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or(0) * 1_024
}
