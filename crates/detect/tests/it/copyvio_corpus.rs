//! Measures the verdict on labelled answers, and checks the reference's numbers on them.
//!
//! `HUNTSMAN_ANSWERS=DIR` names a copy of the Corpus of Plagiarised Short Answers (Clough and Stevenson, 2011), or of a part of it:
//! `file_information.csv` (File, Task, Category), `texts/` in UTF-8, and optionally `earwig_scores.json`. The texts have no licence and are
//! not part of this project; without them these tests measure nothing.

use std::path::PathBuf;

use huntsman_detect::copyvio::{Article, Band, Chain, Confidence, Degree, Document, Verdict, Windows};
use serde::Deserialize;

fn folder() -> PathBuf {
    std::env::var_os("HUNTSMAN_ANSWERS").expect("HUNTSMAN_ANSWERS names the corpus").into()
}

fn text(file: &str) -> String {
    let path = folder().join("texts").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// File, task and category of every answer.
fn answers() -> Vec<(String, String, String)> {
    let table = std::fs::read_to_string(folder().join("file_information.csv")).unwrap();
    let rows =
        table.lines().skip(1).map(|line| line.trim().split(',').map(str::to_owned).collect::<Vec<_>>());
    rows.filter(|row| row.len() == 3 && row[2] != "orig")
        .map(|row| row.into_iter().collect())
        .map(triple)
        .collect()
}

fn triple(row: Vec<String>) -> (String, String, String) {
    let [file, task, category] = <[String; 3]>::try_from(row).expect("three columns");
    (file, task, category)
}

/// The share of pairs of a copied and an original answer in which the copied one has the higher score; ties count half.
fn auc(copied: &[f64], own: &[f64]) -> f64 {
    let wins = copied.iter().flat_map(|c| {
        own.iter().map(move |o| {
            if c > o {
                1.0
            } else if c == o {
                0.5
            } else {
                0.0
            }
        })
    });
    wins.sum::<f64>() / (copied.len() * own.len()) as f64
}

#[test]
#[ignore = "needs the corpus: HUNTSMAN_ANSWERS=DIR"]
fn copyvio_corpus_verdicts_find_copied_answers() {
    let mut scores = [Vec::new(), Vec::new()];
    let mut flagged = [0, 0];
    let mut of_category = std::collections::BTreeMap::<String, [usize; 4]>::new();
    let mut reference = [Vec::new(), Vec::new()];
    let mut foreign = Vec::new();
    for (file, task, category) in answers() {
        let answer = text(&file);
        let article = Article::new(Document::new(&answer));
        let original = text(&format!("orig_task{task}.txt"));
        let evidence = article.compare(&Document::new(&original));
        let is_own = category == "non";
        let counts = of_category.entry(category).or_default();
        counts[evidence.verdict as usize] += 1;
        counts[3] += 1;
        flagged[usize::from(is_own)] += usize::from(evidence.verdict != Verdict::None);
        scores[usize::from(is_own)].push(evidence.score.value());
        let chain = Chain::of(&answer, Degree::default());
        let shared = chain.delta(&Windows::of(&original, Degree::default())).size;
        reference[usize::from(is_own)].push(Confidence::of(chain.size(), shared).exact());
        for other in ["a", "b", "c", "d", "e"].into_iter().filter(|other| *other != task) {
            let original = text(&format!("orig_task{other}.txt"));
            foreign.push(article.compare(&Document::new(&original)).score.value());
        }
    }
    let [copied, own] = &scores;
    let precision = flagged[0] as f64 / (flagged[0] + flagged[1]).max(1) as f64;
    let recall = flagged[0] as f64 / copied.len() as f64;
    println!(
        "{} copied, {} own; verdict none, possible, likely, of all: {of_category:?}",
        copied.len(),
        own.len()
    );
    println!("precision {precision:.3}, recall {recall:.3}, AUC {:.4}", auc(copied, own));
    let found = |band| reference[0].iter().filter(|c| **c >= band).count();
    println!(
        "the reference: AUC {:.4}, recall at {} {:.3}, at {} {:.3}",
        auc(&reference[0], &reference[1]),
        Band::POSSIBLE,
        found(Band::POSSIBLE) as f64 / copied.len() as f64,
        Band::SUSPECTED,
        found(Band::SUSPECTED) as f64 / copied.len() as f64,
    );
    println!(
        "highest score against another task's original: {:.3}",
        foreign.iter().copied().fold(0.0, f64::max)
    );
    assert!(precision >= 0.95, "{precision}");
    assert!(recall >= 0.85, "{recall}");
    assert!(foreign.iter().all(|score| *score < Verdict::POSSIBLE));
}

#[derive(Deserialize)]
struct Row {
    file: String,
    source: String,
    degree: usize,
    article_size: usize,
    source_size: usize,
    delta_size: usize,
    confidence: f64,
}

#[test]
#[ignore = "needs the corpus: HUNTSMAN_ANSWERS=DIR"]
fn copyvio_corpus_has_the_references_numbers() {
    let rows = std::fs::read_to_string(folder().join("earwig_scores.json")).unwrap();
    let rows: Vec<Row> = serde_json::from_str(&rows).unwrap();
    for row in &rows {
        let degree = Degree::new(row.degree).unwrap();
        let article = Chain::of(&text(&row.file), degree);
        let source = Windows::of(&text(&row.source), degree);
        let shared = article.delta(&source).size;
        let sizes = (article.size(), source.size(), shared);
        assert_eq!(sizes, (row.article_size, row.source_size, row.delta_size), "{} {}", row.file, row.source);
        let confidence = Confidence::of(article.size(), shared).exact();
        assert!((confidence - row.confidence).abs() <= 1e-9, "{} {}: {confidence}", row.file, row.source);
    }
    println!("{} comparisons", rows.len());
    assert!(!rows.is_empty());
}
