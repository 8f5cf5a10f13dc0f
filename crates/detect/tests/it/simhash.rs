//! Tests of the fingerprint against its definition and its purpose, on random texts.

use std::collections::HashMap;

use huntsman_detect::simhash::{Features, SimHash};
use huntsman_detect::words::Words;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use xxhash_rust::xxh3::xxh3_128;

type Rng = Xoshiro256PlusPlus;

/// The random generator of a case; a failing test shows its seed.
fn rng(seed: u64) -> Rng {
    println!("seed {seed}");
    Rng::seed_from_u64(seed)
}

/// A text of words of one language, of which few are frequent; `subject` selects the text's own rare words.
fn text(rng: &mut Rng, subject: u64, words: usize) -> Vec<String> {
    let word = |rng: &mut Rng| {
        // The n-th frequent word has a share of about 1/n.
        let rank = (5000.0_f64.powf(rng.random_range(0.0..1.0))) as u64;
        if rank < 100 { format!("w{rank}") } else { format!("w{rank}s{subject}") }
    };
    (0..words).map(|_| word(rng)).collect()
}

fn hash(features: Features, words: &[String]) -> SimHash {
    SimHash::with(features, &Words::of(&words.join(" ")))
}

/// The definition of the fingerprint: signed sums over distinct features.
fn naive(features: Features, words: &[&str]) -> SimHash {
    let joined: Vec<char> = words.join(" ").chars().collect();
    let list: Vec<String> = match features {
        Features::WordsLog | Features::WordsTf => words.iter().map(|w| (*w).to_owned()).collect(),
        Features::Char5 => joined.windows(5).map(String::from_iter).collect(),
        Features::Words3 => words.windows(3).map(|run| run.join("\u{1}")).collect(),
    };
    let mut counts = HashMap::<String, u32>::new();
    for feature in list {
        *counts.entry(feature).or_default() += 1;
    }
    let mut sums = [0_i64; 128];
    for (feature, count) in counts {
        let weight = match features {
            Features::WordsLog => (16.0 * (1.0 + f64::from(count).ln())).round() as i64,
            Features::Words3 => 1,
            Features::Char5 | Features::WordsTf => i64::from(count),
        };
        let hash = xxh3_128(feature.as_bytes());
        for (bit, sum) in sums.iter_mut().enumerate() {
            *sum += if hash >> bit & 1 == 1 { weight } else { -weight };
        }
    }
    SimHash(sums.iter().enumerate().fold(0, |hash, (bit, sum)| hash | u128::from(*sum > 0) << bit))
}

#[test]
fn the_fingerprint_is_its_definition() {
    for seed in 0..200 {
        let mut rng = rng(seed);
        let length = rng.random_range(0..150);
        let mut words = text(&mut rng, seed % 3, length);
        // Some words are of other scripts, with characters of two to four bytes.
        for word in &mut words {
            match rng.random_range(0..10) {
                0 => word.push('é'),
                1 => *word = "प्रारंभ".to_owned(),
                2 => word.push('𝔸'),
                _ => {}
            }
        }
        let words = Words::of(&words.join(" "));
        let list: Vec<&str> = words.iter().collect();
        for features in Features::ALL {
            assert_eq!(SimHash::with(features, &words), naive(features, &list), "{features} {list:?}");
        }
        assert_eq!(SimHash::of(&words), naive(Features::WordsLog, &list));
    }
}

#[test]
fn the_order_of_words_and_the_layout_do_not_matter() {
    for seed in 0..100 {
        let mut rng = rng(seed);
        let length = rng.random_range(1..400);
        let mut words = text(&mut rng, 0, length);
        let before = Features::ALL.map(|features| hash(features, &words));
        let layout = words.join(" \n\u{a0}\t").to_uppercase();
        assert_eq!(Features::ALL.map(|features| SimHash::with(features, &Words::of(&layout))), before);
        words.shuffle(&mut rng);
        for features in [Features::WordsLog, Features::WordsTf] {
            let at = Features::ALL.iter().position(|f| *f == features).unwrap();
            assert_eq!(hash(features, &words), before[at], "{features}");
        }
    }
}

#[test]
fn small_edits_make_small_distances() {
    // Texts of 1000 words: with one word replaced, with up to 50 replaced, and with all replaced.
    let (mut near, mut sums) = ([0; 4], [[0; 3]; 4]);
    let texts = 24;
    for seed in 0..texts {
        let mut rng = rng(seed);
        let words = text(&mut rng, seed, 1000);
        let other = text(&mut rng, seed + 1, 1000);
        let edited = [1, 50].map(|edits| {
            let mut edited = words.clone();
            for _ in 0..edits {
                let at = rng.random_range(0..edited.len());
                edited[at] = format!("new{}", rng.random_range(0..1_000_000));
            }
            edited
        });
        for (at, features) in Features::ALL.into_iter().enumerate() {
            let first = hash(features, &words);
            let distances = [&edited[0], &edited[1], &other].map(|text| first.distance(hash(features, text)));
            assert!(distances[0] < 12, "{features}: {distances:?}");
            near[at] += u32::from(distances[0] <= 7);
            for (sum, distance) in sums[at].iter_mut().zip(distances) {
                *sum += distance;
            }
        }
    }
    println!("within 7 bits, of {texts}: {near:?}; sums of distances: {sums:?}");
    assert!(near.iter().all(|near| *near >= texts as u32 * 9 / 10), "{near:?}");
    for (features, [one, many, other]) in Features::ALL.into_iter().zip(sums) {
        assert!(one < many && many < other, "{features}: {one} {many} {other}");
    }
    // The default set must tell two subjects of one language apart.
    assert!(sums[0][2] / texts as u32 > 20, "{sums:?}");
}

#[test]
fn a_text_without_features_has_no_fingerprint() {
    for features in Features::ALL {
        for text in ["", " \n", "!?…", "\u{200d}"] {
            assert_eq!(SimHash::with(features, &Words::of(text)), SimHash(0), "{features} {text:?}");
        }
    }
    assert_eq!(SimHash::with(Features::Words3, &Words::of("two words")), SimHash(0));
    assert_eq!(SimHash::with(Features::Char5, &Words::of("four")), SimHash(0));
    assert_ne!(SimHash::of(&Words::of("one")), SimHash(0));
}
