//! Compares with fingerprints from another implementation: texts with their words, fingerprints and bands.
//!
//! The project's own copy is in `tests/data/oracles/neardup`; `HUNTSMAN_ORACLES=DIR` reads `DIR/neardup` instead.

use std::collections::BTreeMap;
use std::path::PathBuf;

use huntsman_detect::simhash::SimHash;
use huntsman_detect::words::Words;
use serde::Deserialize;

#[derive(Deserialize)]
struct Vector {
    text: String,
    /// `word=count`, sorted.
    tokens: Vec<String>,
    simhash: String,
    bands8: Vec<String>,
}

#[test]
fn neardup_oracle_vectors() {
    let folder = match std::env::var_os("HUNTSMAN_ORACLES") {
        Some(dir) => PathBuf::from(dir),
        None => PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/oracles")),
    }
    .join("neardup");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with("vectors") && name.ends_with(".jsonl")
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no vectors*.jsonl in {}", folder.display());

    let mut count = 0;
    let mut wrong = Vec::new();
    for file in &files {
        let lines = std::fs::read_to_string(file).unwrap();
        for (number, line) in lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let place = format!("{}:{}", file.display(), number + 1);
            let vector: Vector = serde_json::from_str(line).unwrap_or_else(|e| panic!("{place}: {e}"));
            count += 1;
            let words = Words::of(&vector.text);
            let mut counts = BTreeMap::<&str, usize>::new();
            words.iter().for_each(|word| *counts.entry(word).or_default() += 1);
            let mut tokens: Vec<String> = counts.iter().map(|(word, n)| format!("{word}={n}")).collect();
            tokens.sort();
            let mut expected = vector.tokens;
            expected.sort();
            if tokens != expected {
                wrong.push(format!("{place}: words {tokens:?}, should be {expected:?}"));
            }
            let hash = SimHash::of(&words);
            if hash.to_string() != vector.simhash || vector.simhash.parse() != Ok(hash) {
                wrong.push(format!("{place}: {hash}, should be {}", vector.simhash));
            }
            let bands = hash.bands().map(|band| format!("{band:04X}"));
            if bands[..] != vector.bands8[..] {
                wrong.push(format!("{place}: bands {bands:?}, should be {:?}", vector.bands8));
            }
        }
    }
    println!("neardup_oracle_vectors: {} files, {count} cases", files.len());
    assert!(count > 0, "no cases in {}", folder.display());
    assert!(wrong.is_empty(), "{} wrong in {count} cases:\n{}", wrong.len(), wrong.join("\n"));
}
