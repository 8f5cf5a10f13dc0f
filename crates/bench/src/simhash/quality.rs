//! Which near-duplicates are found: the share of pairs within k bits, for each kind and strength of change and each feature set.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use huntsman::detect::simhash::{Features, SimHash};
use huntsman::detect::words::Words;
use huntsman_cli::exit::{Failure, Outcome};
use huntsman_cli::render::escape;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::args::SimhashArgs;
use super::edits::Edit;
use super::pairs::{self, Pair};
use crate::sheet::Sheet;
use crate::stories::Writer;

/// The shares of pairs found, and the distances of their fingerprints.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Quality {
    /// The file of pairs; `None` if they were generated.
    pub(super) file: Option<String>,
    pub(super) pairs: u64,
    pub(super) cells: Vec<Cell>,
}

/// One kind of pairs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Cell {
    pub(super) kind: String,
    pub(super) level: f64,
    /// The meaning of kind and level.
    pub(super) about: String,
    /// The length class of the texts in words, if there are classes.
    pub(super) len: Option<u64>,
    /// Whether one of the texts was made from the other.
    pub(super) dup: bool,
    pub(super) pairs: u64,
    /// Curves by feature set, in the order of [`Features::ALL`].
    pub(super) features: Vec<Curve>,
}

/// The distances of the fingerprints of pairs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Curve {
    pub(super) features: String,
    /// Shares within 0, 1, ... 7 bits, from 0 to 1.
    pub(super) within: Vec<f64>,
    /// Distances in bits: the minimum, the 10, 25, 50, 75 and 90 % quantiles, and the maximum.
    pub(super) quantiles: [u32; 7],
    /// Number of pairs in which a text has no words; they are never found.
    pub(super) without_words: u64,
}

const QUANTILES: [f64; 7] = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0];

/// Number of pairs by distance, for each feature set.
#[derive(Clone, Debug)]
struct Counts {
    pairs: u64,
    distances: [[u64; SimHash::BITS as usize + 1]; 4],
    without_words: [u64; 4],
}

impl Default for Counts {
    fn default() -> Self {
        Self { pairs: 0, distances: [[0; SimHash::BITS as usize + 1]; 4], without_words: [0; 4] }
    }
}

/// Kind, level (as bits), length class, and whether one text was made from the other.
type Key = (Arc<str>, u64, Option<u64>, bool);

/// The counts of one thread.
#[derive(Debug, Default)]
struct Tally {
    cells: HashMap<Key, Counts>,
    /// The last first text and its fingerprints.
    last: Option<(Arc<str>, [SimHash; 4])>,
}

fn fingerprints(text: &str) -> [SimHash; 4] {
    let words = Words::of(text);
    Features::ALL.map(|features| SimHash::with(features, &words))
}

impl Tally {
    fn add(&mut self, pair: &Pair) {
        let a = match &self.last {
            Some((text, hashes)) if Arc::ptr_eq(text, &pair.a) => *hashes,
            _ => {
                let hashes = fingerprints(&pair.a);
                self.last = Some((Arc::clone(&pair.a), hashes));
                hashes
            }
        };
        let b = fingerprints(&pair.b);
        let key = (Arc::clone(&pair.kind), pair.level.to_bits(), pair.len, pair.is_copy);
        let counts = self.cells.entry(key).or_default();
        counts.pairs += 1;
        for (at, (a, b)) in a.into_iter().zip(b).enumerate() {
            match a.0 == 0 || b.0 == 0 {
                true => counts.without_words[at] += 1,
                false => counts.distances[at][a.distance(b) as usize] += 1,
            }
        }
    }
}

impl Counts {
    fn merge(&mut self, other: &Self) {
        self.pairs += other.pairs;
        for at in 0..4 {
            self.without_words[at] += other.without_words[at];
            self.distances[at].iter_mut().zip(&other.distances[at]).for_each(|(sum, more)| *sum += more);
        }
    }

    fn curve(&self, at: usize) -> Curve {
        let distances = &self.distances[at];
        let measured: u64 = distances.iter().sum();
        // The distance that this number of pairs does not exceed.
        let reach = |rank: u64| {
            let mut sum = 0;
            let found = distances.iter().position(|count| {
                sum += count;
                sum >= rank
            });
            found.unwrap_or(0) as u32
        };
        let share = |k: usize| distances[..=k].iter().sum::<u64>() as f64 / self.pairs.max(1) as f64;
        Curve {
            features: Features::ALL[at].to_string(),
            within: (0..=7).map(share).collect(),
            quantiles: QUANTILES.map(|share| reach(((measured as f64 * share).ceil() as u64).max(1))),
            without_words: self.without_words[at],
        }
    }
}

/// Fingerprints the pairs of `source` on all processors.
fn tally(
    source: impl FnOnce(&mut dyn FnMut(Vec<Pair>) -> ControlFlow<()>) -> Outcome<()>,
) -> Outcome<HashMap<Key, Counts>> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel::<Vec<Pair>>(2 * workers);
        let receiver = Arc::new(Mutex::new(receiver));
        let work = || {
            let receiver = Arc::clone(&receiver);
            move || {
                let mut tally = Tally::default();
                loop {
                    let batch = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(batch) = batch else { return tally.cells };
                    batch.iter().for_each(|pair| tally.add(pair));
                }
            }
        };
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work())).collect();
        // The threads end when the last receiver is dropped.
        drop(receiver);
        let read = source(&mut |batch| match sender.send(batch) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        });
        drop(sender);
        let mut all: HashMap<Key, Counts> = HashMap::new();
        for thread in threads {
            let cells = thread.join().map_err(|_| Failure::crawl("a thread that fingerprints ended"))?;
            cells.iter().for_each(|(key, counts)| all.entry(key.clone()).or_default().merge(counts));
        }
        read.map(|()| all)
    })
}

pub(super) fn run(args: &SimhashArgs) -> Outcome<Quality> {
    let counts = match &args.pairs {
        Some(path) => tally(|each| pairs::of_file(path, each))?,
        None => {
            let writers = Writer::all()?;
            let each_language = (args.stories as usize).div_ceil(writers.len());
            let mut file = match &args.write_pairs {
                Some(path) => {
                    let file = File::create(path).map_err(|error| writing(path, &error))?;
                    Some((path, BufWriter::new(file)))
                }
                None => None,
            };
            tally(|each| {
                for (number, writer) in writers.iter().enumerate() {
                    let seed = args.seed.wrapping_add((number as u64) << 32);
                    let (mut random, mut written) = (Xoshiro256PlusPlus::seed_from_u64(seed), Ok(()));
                    let mut each = |batch: Vec<Pair>| {
                        if let Some((path, file)) = &mut file {
                            let wrote = pairs::write(&batch, &writer.lang, file);
                            written = wrote.map_err(|error| writing(path, &error));
                        }
                        if written.is_ok() { each(batch) } else { ControlFlow::Break(()) }
                    };
                    let words = args.words as usize;
                    let flow = pairs::of_stories(writer, each_language, words, &mut random, &mut each);
                    written?;
                    if flow.is_break() {
                        break;
                    }
                }
                match file {
                    Some((path, mut file)) => file.flush().map_err(|error| writing(path, &error)),
                    None => Ok(()),
                }
            })?
        }
    };
    Ok(Quality::of(args.pairs.as_deref(), counts))
}

fn writing(path: &Path, error: &io::Error) -> Failure {
    Failure::crawl(format!("--write-pairs {}: {error}", escape(&path.to_string_lossy())))
}

impl Quality {
    fn of(file: Option<&Path>, counts: HashMap<Key, Counts>) -> Self {
        let cell = |((kind, level, len, dup), counts): (Key, Counts)| Cell {
            about: about(&kind, f64::from_bits(level)),
            kind: kind.to_string(),
            level: f64::from_bits(level),
            len,
            dup,
            pairs: counts.pairs,
            features: (0..4).map(|at| counts.curve(at)).collect(),
        };
        let mut cells: Vec<Cell> = counts.into_iter().map(cell).collect();
        let rank = |kind: &str| Edit::ALL.iter().position(|edit| edit.name() == kind);
        cells.sort_by(|a, b| {
            let key = |cell: &Cell| (!cell.dup, cell.len, rank(&cell.kind).unwrap_or(Edit::ALL.len()));
            let order = key(a).cmp(&key(b)).then_with(|| a.kind.cmp(&b.kind));
            order.then_with(|| a.level.total_cmp(&b.level))
        });
        let pairs = cells.iter().map(|cell| cell.pairs).sum();
        Self { file: file.map(|file| file.to_string_lossy().into_owned()), pairs, cells }
    }

    pub(super) fn sheets(&self) -> Vec<Sheet> {
        let of = match &self.file {
            Some(file) => format!("{} pairs of {file}", self.pairs),
            None => format!("{} pairs of stories in ten languages", self.pairs),
        };
        let head = |first: &[&str]| {
            let names = Features::ALL.iter().map(Features::to_string);
            first.iter().map(|name| (*name).to_owned()).chain(names).collect::<Vec<_>>()
        };
        let mut shares = Sheet::new(
            format!("Share found in % with k = 3 / k = 7, {of}"),
            head(&["what was done", "words", "pairs"]),
        );
        let mut distances = Sheet::new(
            "Bits between the fingerprints: the distance that 10 / 50 / 90 % of the pairs do not exceed",
            head(&["what was done", "words", "pairs"]),
        );
        for cell in &self.cells {
            let first = || {
                let words = cell.len.map_or_else(|| "-".to_owned(), |len| len.to_string());
                [cell.about.clone(), words, cell.pairs.to_string()].into_iter()
            };
            let found =
                |curve: &Curve| format!("{} / {}", percent(curve.within[3]), percent(curve.within[7]));
            shares.row(first().chain(cell.features.iter().map(found)));
            let bits = |curve: &Curve| {
                let [_, low, _, middle, _, high, _] = curve.quantiles;
                format!("{low} / {middle} / {high}")
            };
            distances.row(first().chain(cell.features.iter().map(bits)));
        }
        vec![shares, distances]
    }

    /// Share within k bits of the pairs of a kind and level, words-log.
    #[cfg(test)]
    fn within(&self, kind: &str, level: f64, k: usize) -> f64 {
        let cell = self.cells.iter().find(|cell| cell.kind == kind && cell.level == level);
        cell.expect("there are such pairs").features[0].within[k]
    }
}

/// Formats a percentage as `0`, `0.3`, `12` or `100`; a share above zero is never shown as `0`.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let is_rounded_away = percent > 0.0 && percent < 0.5 || (99.5..100.0).contains(&percent);
    if is_rounded_away { format!("{percent:.1}") } else { format!("{percent:.0}") }
}

/// Describes the change for people.
fn about(kind: &str, level: f64) -> String {
    let words = |noun: &str| format!("{level} {noun}{}", if level == 1.0 { "" } else { "s" });
    let share = (level * 1e6).round() / 1e4;
    let edit = Edit::ALL.into_iter().find(|edit| edit.name() == kind);
    match (edit, kind) {
        (Some(Edit::Copy), _) => "nothing".to_owned(),
        (Some(Edit::Layout), _) => "other white space".to_owned(),
        (Some(Edit::CasePunct), _) => "capital letters, no punctuation".to_owned(),
        (Some(Edit::Words), _) => format!("{} replaced", words("word")),
        (Some(Edit::Typo), _) => format!("a typo in {share} % of the words"),
        (Some(Edit::Replace), _) => format!("{share} % of the words replaced"),
        (Some(Edit::Delete), _) => format!("{share} % of the words left out"),
        (Some(Edit::Add), _) => format!("{share} % of text added"),
        (Some(Edit::Truncate), _) => format!("the last {share} % cut off"),
        (Some(Edit::Chrome), _) => format!("{} of navigation around it", words("word")),
        (Some(Edit::Reorder), _) => "paragraphs in another order".to_owned(),
        (Some(Edit::Rename), _) => "a name replaced everywhere".to_owned(),
        (None, "unrelated") => "unrelated texts".to_owned(),
        (None, "template") => format!("unrelated, behind the same {}", words("word")),
        (None, _) if level == 0.0 => kind.to_owned(),
        (None, _) => format!("{kind} {level}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(kind: &str, is_copy: bool, a: &str, b: &str) -> Pair {
        Pair { kind: kind.into(), level: 1.0, len: None, is_copy, a: a.into(), b: b.to_owned() }
    }

    #[test]
    fn pairs_are_counted_by_kind_and_distance() {
        let text = "words that stand in a text, and so on, and some more of them";
        let given = vec![
            pair("same", true, text, &text.to_uppercase()),
            pair("same", true, text, "quite another one with no word in it"),
            pair("same", true, text, "- - -"),
            pair("unrelated", false, text, text),
        ];
        let counts = tally(|each| {
            let _ = each(given);
            Ok(())
        });
        let quality = Quality::of(None, counts.unwrap());
        assert_eq!((quality.pairs, quality.cells.len()), (4, 2));
        let cell = &quality.cells[0];
        assert_eq!((cell.kind.as_str(), cell.dup, cell.pairs), ("same", true, 3));
        for curve in &cell.features {
            assert_eq!(curve.within[0], 1.0 / 3.0);
            assert_eq!(curve.without_words, 1);
            assert_eq!(curve.quantiles[0], 0);
            assert!(curve.quantiles[6] > 20, "{curve:?}");
        }
        assert_eq!(quality.within("unrelated", 1.0, 3), 1.0);
    }

    #[test]
    fn shares_that_are_not_quite_all_or_nothing_do_not_look_like_it() {
        assert_eq!([0.0, 0.003, 0.5, 0.996, 1.0].map(percent), ["0", "0.3", "50", "99.6", "100"]);
    }

    #[test]
    fn kinds_are_named_in_words() {
        assert_eq!(about("kwords", 1.0), "1 word replaced");
        assert_eq!(about("kwords", 5.0), "5 words replaced");
        assert_eq!(about("typo", 0.002), "a typo in 0.2 % of the words");
        assert_eq!(about("addpara", 0.25), "25 % of text added");
        assert_eq!(about("my-kind", 0.5), "my-kind 0.5");
    }
}
