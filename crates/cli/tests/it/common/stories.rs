//! Generated stories in ten languages, some of them near to others.

use std::path::Path;

use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};

/// Languages with the first letter of their script and the number of letters.
const SCRIPTS: [(&str, u32, u32); 10] = [
    ("hi", 0x915, 35),
    ("bn", 0x995, 35),
    ("mr", 0x915, 35),
    ("ta", 0xb95, 12),
    ("ml", 0xd15, 35),
    ("te", 0xc15, 35),
    ("gu", 0xa95, 35),
    ("or", 0xb15, 35),
    ("pa", 0xa15, 35),
    ("en", 0x61, 26),
];

/// A random word.
fn word(random: &mut StdRng, first: u32, letters: u32) -> String {
    let length = random.random_range(3..8);
    (0..length).filter_map(|_| char::from_u32(first + random.random_range(0..letters))).collect()
}

/// Stories of a language, including copies with a few words changed.
pub(crate) fn stories(random: &mut StdRng, number: usize) -> Vec<Value> {
    let mut all = Vec::new();
    for (language, (lang, first, letters)) in SCRIPTS.into_iter().enumerate() {
        let vocabulary: Vec<String> = (0..400).map(|_| word(random, first, letters)).collect();
        let mut texts: Vec<Vec<String>> = Vec::new();
        for story in 0..number {
            let text = if story % 3 > 0 && !texts.is_empty() {
                let mut text = texts[random.random_range(0..texts.len())].clone();
                for _ in 0..random.random_range(0..4) {
                    let at = random.random_range(0..text.len());
                    text[at] = word(random, first, letters);
                }
                text
            } else {
                let length = random.random_range(60..600);
                (0..length).map(|_| vocabulary[random.random_range(0..vocabulary.len())].clone()).collect()
            };
            let id = language * 1_000 + story;
            let id = if story % 2 == 0 { json!(id) } else { json!(format!("story {id}")) };
            all.push(json!({"id": id, "lang": lang, "text": text.join(" ")}));
            texts.push(text);
        }
    }
    // Languages alternate, as in the stories of a day.
    let (rows, columns) = (SCRIPTS.len(), number);
    (0..rows * columns).map(|at| all[at % rows * columns + at / rows].clone()).collect()
}

/// Writes JSON lines.
pub(crate) fn write(path: &Path, lines: &[Value]) {
    let text: String = lines.iter().map(|line| line.to_string() + "\n").collect();
    std::fs::write(path, text).expect("the disk takes it");
}
