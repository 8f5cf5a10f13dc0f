//! How fast two texts are compared, relative to an implementation with maps of strings.

use std::collections::HashMap;
use std::hint::black_box;
use std::path::Path;

use huntsman::detect::copyvio::{Article, Chain, Confidence, Degree, Document, Windows, for_each_word};
use huntsman_cli::exit::{Failure, Outcome};
use huntsman_cli::render::escape;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use super::args::CopyvioArgs;
use super::cases::english;
use crate::clock::least_seconds;
use crate::sheet::{Sheet, figure};

/// The cost of comparing two texts. Times are microseconds of processor time, the minimum of several rounds.
#[derive(Debug, Serialize)]
pub(super) struct Speed {
    /// Number of words in the article and in the source, as the reference counts them.
    words: [usize; 2],
    bytes: [usize; 2],
    shared_windows: usize,
    confidence: f64,
    /// Memory of a chain per window.
    bytes_per_window: f64,
    steps: Vec<Step>,
    /// The time with maps of strings divided by ours.
    strings_ratio: f64,
}

#[derive(Debug, Serialize)]
struct Step {
    name: &'static str,
    us: f64,
}

/// Steps that the documentation makes promises about, and that are compared with others.
const PREPARED: &str = "source against a prepared article, after hashing";
const WHOLE: &str = "two texts to a confidence";
const STRINGS: &str = "two texts to a confidence, with maps of strings";

pub(super) fn run(args: &CopyvioArgs) -> Outcome<Speed> {
    let (article, source) = match (&args.article, &args.source) {
        (Some(article), Some(source)) => (file("--article", article)?, file("--source", source)?),
        _ => texts(args)?,
    };
    let degree = Degree::default();
    let chain = Chain::of(&article, degree);
    let windows = Windows::of(&source, degree);
    let prepared = Article::new(Document::new(&article));
    let document = Document::new(&source);
    let shared = chain.delta(&windows).size;
    let mut steps = Vec::new();
    let mut step = |name, work: &mut dyn FnMut()| {
        let us = least_seconds(work) * 1e6;
        steps.push(Step { name, us });
        us
    };
    step("words of a text", &mut || {
        let mut count = 0;
        for_each_word(black_box(&source), |word| count += word.len());
        black_box(count);
    });
    step("words to windows, hashed", &mut || {
        black_box(Windows::of(black_box(&source), degree));
    });
    step("windows to a prepared article", &mut || {
        black_box(Chain::from(black_box(&windows)));
    });
    step(PREPARED, &mut || {
        black_box(chain.delta(black_box(&windows)));
    });
    let whole = step(WHOLE, &mut || {
        let chain = Chain::of(black_box(&article), degree);
        let delta = chain.delta(&Windows::of(black_box(&source), degree));
        black_box(Confidence::of(chain.size(), delta.size));
    });
    let strings = step(STRINGS, &mut || {
        let (a, b) = (with_strings(black_box(&article)), with_strings(black_box(&source)));
        let shared = |(window, count): (&Vec<Option<String>>, &usize)| {
            b.get(window).map_or(0, |other| (*count).min(*other))
        };
        black_box(Confidence::of(a.values().sum(), a.iter().map(shared).sum()));
    });
    step("words with their places, for evidence", &mut || {
        black_box(Document::new(black_box(&source)).words());
    });
    step("evidence of a source against a prepared article", &mut || {
        black_box(prepared.compare(black_box(&document)));
    });
    let words = |text: &str| {
        let mut words = 0;
        for_each_word(text, |_| words += 1);
        words
    };
    Ok(Speed {
        words: [words(&article), words(&source)],
        bytes: [article.len(), source.len()],
        shared_windows: shared,
        confidence: Confidence::of(chain.size(), shared).value(),
        bytes_per_window: chain.bytes() as f64 / chain.size().max(1) as f64,
        steps,
        strings_ratio: strings / whole,
    })
}

fn file(flag: &str, path: &Path) -> Outcome<String> {
    let text = std::fs::read_to_string(path);
    text.map_err(|error| Failure::usage(format!("{flag} {}: {error}", escape(&path.to_string_lossy()))))
}

/// An article, and a source that begins with the first third of the article's words.
fn texts(args: &CopyvioArgs) -> Outcome<(String, String)> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(args.seed);
    let (writer, words) = (english()?, args.words as usize);
    let article = writer.story(&mut random, words).text();
    let own = writer.story(&mut random, words - words / 3).text();
    let third: Vec<&str> = article.split_whitespace().take(words / 3).collect();
    let source = format!("{}\n\n{own}", third.join(" "));
    Ok((article, source))
}

/// A chain as the reference implements it.
fn with_strings(text: &str) -> HashMap<Vec<Option<String>>, usize> {
    let mut words = vec![None; 4];
    for_each_word(text, |word| words.push(Some(word.to_owned())));
    words.extend(vec![Some(String::new()); 4]);
    let mut chain = HashMap::new();
    words.windows(5).for_each(|window| *chain.entry(window.to_vec()).or_default() += 1);
    chain
}

impl Speed {
    pub(super) fn sheet(&self) -> Sheet {
        let title = format!("{} words beside {}: microseconds on one core", self.words[0], self.words[1]);
        let mut sheet = Sheet::new(title, ["step", "us"]);
        self.steps.iter().for_each(|step| sheet.row([step.name.to_owned(), figure(step.us)]));
        sheet.note(format!(
            "{} windows are shared: C {:.3}. A prepared article takes {:.1} bytes for each of its windows. With maps of strings it takes {} times \
             as long.",
            self.shared_windows,
            self.confidence,
            self.bytes_per_window,
            figure(self.strings_ratio)
        ))
    }
}
