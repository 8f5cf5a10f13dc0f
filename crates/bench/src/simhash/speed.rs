//! How fast fingerprints of texts are computed.

use std::hint::black_box;
use std::path::Path;

use huntsman::detect::simhash::{Features, SimHash};
use huntsman::detect::words::Words;
use huntsman_cli::exit::{Failure, Outcome};
use huntsman_cli::render::escape;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::args::SimhashArgs;
use crate::clock::least_seconds;
use crate::sheet::{Sheet, figure};
use crate::stories::Writer;

/// Speeds in megabytes of UTF-8 a second, on one core.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Speed {
    pub(super) texts: Vec<Text>,
}

/// The speeds for some texts.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Text {
    pub(super) name: String,
    pub(super) bytes: usize,
    pub(super) words: usize,
    /// From text to words.
    pub(super) words_mb_s: f64,
    /// From text to fingerprint, by feature set in the order of [`Features::ALL`].
    pub(super) fingerprint_mb_s: Vec<f64>,
}

/// Number of stories in each language.
const STORIES: usize = 10;

pub(super) fn run(args: &SimhashArgs) -> Outcome<Speed> {
    let files = args.text.iter().map(|path| file(path)).collect::<Outcome<Vec<_>>>()?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(args.seed);
    let (mut latin, mut indic) = (Vec::new(), Vec::new());
    for writer in Writer::all()? {
        let stories = (0..STORIES).map(|_| writer.story(&mut random, args.words as usize).text());
        if writer.lang == "en" { latin.extend(stories) } else { indic.extend(stories) }
    }
    let name = |script: &str| format!("{script}, stories of {} words", args.words);
    let mut texts = vec![measure(name("English"), &latin), measure(name("nine Indic languages"), &indic)];
    for (path, text) in args.text.iter().zip(files) {
        texts.push(measure(path.to_string_lossy().into_owned(), &[text]));
    }
    Ok(Speed { texts })
}

fn file(path: &Path) -> Outcome<String> {
    let text = std::fs::read_to_string(path);
    text.map_err(|error| Failure::usage(format!("--text {}: {error}", escape(&path.to_string_lossy()))))
}

fn measure(name: String, texts: &[String]) -> Text {
    let bytes: usize = texts.iter().map(String::len).sum();
    let mut words = Words::default();
    let mut count = 0;
    let words_s = least_seconds(&mut || {
        count = 0;
        for text in texts {
            words.clear();
            words.extend(black_box(text));
            count += words.len();
        }
    });
    let rate = |seconds: f64| bytes as f64 / 1e6 / seconds;
    let fingerprint = |features| {
        let mut words = Words::default();
        rate(least_seconds(&mut || {
            for text in texts {
                words.clear();
                words.extend(black_box(text));
                black_box(SimHash::with(features, &words));
            }
        }))
    };
    let fingerprint_mb_s = Features::ALL.into_iter().map(fingerprint).collect();
    Text { name, bytes, words: count, words_mb_s: rate(words_s), fingerprint_mb_s }
}

impl Speed {
    pub(super) fn sheets(&self) -> Vec<Sheet> {
        let names = Features::ALL.iter().map(|features| format!("to {features}"));
        let head = ["text", "bytes", "words alone"].map(str::to_owned).into_iter().chain(names);
        let mut sheet = Sheet::new("Text to fingerprint: MB of UTF-8 a second on one core", head);
        for text in &self.texts {
            let rates = text.fingerprint_mb_s.iter().map(|rate| figure(*rate));
            let first = [text.name.clone(), text.bytes.to_string(), figure(text.words_mb_s)];
            sheet.row(first.into_iter().chain(rates));
        }
        vec![sheet]
    }
}
