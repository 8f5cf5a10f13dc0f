//! Compares with values that earwigbot 0.4.1 gave (with mwparserfromhell 0.7.2, nltk 3.10.4, lxml 6.1.3).
//!
//! The project's own copy is in `tests/data/oracles/copyvio`; `HUNTSMAN_ORACLES=DIR` reads `DIR/copyvio` instead: every file there whose
//! name begins with the data's name (`chains*.json`, ...) or whose first case has its fields. Unknown fields are ignored.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use huntsman_detect::copyvio::{
    Chain, Check, CheckOptions, Confidence, Degree, ExclusionList, Exclusions, QueryLimits, Source,
    SourceStatus, Wikitext, Windows, cut_sentences, for_each_word, highlight_html, html_text,
    html_text_and_addresses, mirror_hints, pick_queries, plain_text, sort_sources,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Judges the cases of all files with this name.
fn cases<T: DeserializeOwned>(test: &str, name: &str, judge: impl Fn(&T) -> Result<(), String>) {
    let folder = match std::env::var_os("HUNTSMAN_ORACLES") {
        Some(dir) => PathBuf::from(dir),
        None => PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/oracles")),
    }
    .join("copyvio");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    let (mut replayed, mut count) = (0, 0);
    let mut wrong = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        // A file with a single case has an object instead of the list.
        let list = match &value["cases"] {
            Value::Array(list) => list.clone(),
            case => vec![case.clone()],
        };
        let is_named = file.file_name().unwrap().to_string_lossy().starts_with(name);
        let fits = list.first().is_some_and(|case| serde_json::from_value::<T>(case.clone()).is_ok());
        if !is_named && !fits {
            continue;
        }
        replayed += 1;
        for (number, case) in list.into_iter().enumerate() {
            let place = format!("{}, case {number} {}", file.display(), case["id"]);
            let case: T = serde_json::from_value(case).unwrap_or_else(|e| panic!("{place}: {e}"));
            count += 1;
            if let Err(error) = judge(&case) {
                wrong.push(format!("{place}: {error}"));
            }
        }
    }
    println!("{test}: {replayed} files, {count} cases");
    assert!(count > 0, "no {name}*.json in {}", folder.display());
    assert!(wrong.is_empty(), "{} of {count} cases wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[allow(clippy::needless_pass_by_value, reason = "what is found is made for the call")]
fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}\n   is {found:?}\n  not {expected:?}")) }
}

fn near(what: &str, found: f64, expected: f64, tolerance: f64) -> Result<(), String> {
    let is_near = (found - expected).abs() <= tolerance;
    if is_near { Ok(()) } else { Err(format!("{what} is {found}, not {expected}")) }
}

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for_each_word(text, |word| words.push(word.to_owned()));
    words
}

#[derive(Deserialize)]
struct ChainCase {
    degree: usize,
    article: String,
    source: String,
    article_size: usize,
    source_size: usize,
    delta_size: usize,
    article_distinct: usize,
    source_distinct: usize,
    delta_distinct: usize,
    confidence: Option<f64>,
    article_words: Option<Vec<String>>,
    source_words: Option<Vec<String>>,
}

#[test]
fn copyvio_oracle_chains() {
    cases("copyvio_oracle_chains", "chains", |case: &ChainCase| {
        for (text, expected) in [(&case.article, &case.article_words), (&case.source, &case.source_words)] {
            if let Some(expected) = expected {
                equal("words", &words(text), expected)?;
            }
        }
        let degree = Degree::new(case.degree).map_err(|e| e.to_string())?;
        let article = Chain::of(&case.article, degree);
        let windows = Windows::of(&case.source, degree);
        let source = Chain::from(&windows);
        equal("article size", article.size(), case.article_size)?;
        equal("article distinct", article.distinct(), case.article_distinct)?;
        equal("source size", (windows.size(), source.size()), (case.source_size, case.source_size))?;
        equal("source distinct", source.distinct(), case.source_distinct)?;
        let delta = article.delta(&windows);
        equal("delta", (delta.size, delta.distinct), (case.delta_size, case.delta_distinct))?;
        equal("delta of chains", article.delta_of_chain(&source), delta)?;
        let confidence = Confidence::of(article.size(), delta.size).exact();
        // Where the reference divides by zero, its confidence is missing.
        near("confidence", confidence, case.confidence.unwrap_or(0.0), 1e-9)
    });
}

#[test]
fn copyvio_oracle_confidence() {
    cases("copyvio_oracle_confidence", "confidence", |(article, delta, expected): &(usize, usize, f64)| {
        near(&format!("C({article}, {delta})"), Confidence::of(*article, *delta).exact(), *expected, 1e-12)
    });
}

#[derive(Deserialize)]
struct UnionCase {
    degree: usize,
    include_threshold: f64,
    article: String,
    sources: Vec<String>,
    article_size: usize,
    per_source: Vec<PerSource>,
    included: Vec<usize>,
    union_size: Option<usize>,
    union_delta_size: Option<usize>,
    unified_confidence: Option<f64>,
}

#[derive(Deserialize)]
struct PerSource {
    source_size: usize,
    delta_size: usize,
    confidence: f64,
}

#[test]
fn copyvio_oracle_union() {
    cases("copyvio_oracle_union", "union", |case: &UnionCase| {
        let degree = Degree::new(case.degree).map_err(|e| e.to_string())?;
        let options =
            CheckOptions { degree, include_threshold: case.include_threshold, ..CheckOptions::compare() };
        let mut check = Check::new(&case.article, options);
        equal("article size", check.article().size(), case.article_size)?;
        for (number, (text, expected)) in case.sources.iter().zip(&case.per_source).enumerate() {
            let source = check.compare(number.to_string(), text);
            equal("source", (source.size, source.shared), (expected.source_size, expected.delta_size))?;
            near("confidence", source.confidence.exact(), expected.confidence, 1e-9)?;
        }
        let result = check.finish();
        let mut included: Vec<usize> = result.included().map(|source| source.url.parse().unwrap()).collect();
        included.sort();
        equal("included", &included, &case.included)?;
        let parts: Vec<Windows> = included.iter().map(|at| Windows::of(&case.sources[*at], degree)).collect();
        if let Some(union) = Chain::union(&parts) {
            equal("union", Some(union.size()), case.union_size)?;
            let shared = Chain::of(&case.article, degree).delta_of_chain(&union).size;
            equal("delta of the union", Some(shared), case.union_delta_size)?;
        }
        equal("unified", result.unified.is_some(), case.unified_confidence.is_some())?;
        match (result.unified, case.unified_confidence) {
            (Some(found), Some(expected)) => near("unified", found.exact(), expected, 1e-9),
            _ => Ok(()),
        }
    });
}

#[derive(Deserialize)]
struct SortCase {
    input: Vec<SortInput>,
    order: Vec<String>,
}

#[derive(Deserialize)]
struct SortInput {
    url: String,
    confidence: f64,
    excluded: bool,
    skipped: bool,
    source_size: usize,
}

#[test]
fn copyvio_oracle_sort() {
    cases("copyvio_oracle_sort", "sort", |case: &SortCase| {
        let mut sources = Vec::new();
        for input in &case.input {
            let status = match (input.excluded, input.skipped) {
                (true, _) => SourceStatus::Excluded("a rule".to_owned()),
                (false, true) => SourceStatus::Skipped,
                (false, false) => SourceStatus::Compared,
            };
            let confidence = with_value(input.confidence);
            sources.push(Source {
                url: input.url.clone(),
                confidence,
                status,
                size: input.source_size,
                shared: 0,
            });
        }
        sort_sources(&mut sources);
        equal("order", sources.into_iter().map(|source| source.url).collect(), case.order.clone())
    });
}

/// The confidence nearest to this value that some sizes give.
fn with_value(value: f64) -> Confidence {
    let article = 10_000_000;
    let (mut low, mut high) = (0, article);
    while low < high {
        let middle = (low + high) / 2;
        if Confidence::of(article, middle).exact() < value { low = middle + 1 } else { high = middle }
    }
    Confidence::of(article, low)
}

#[derive(Deserialize)]
struct WikiCase {
    wikitext: String,
    stripped: String,
    links: Vec<String>,
    splitter_sentences: Vec<String>,
    query_sentences: Vec<String>,
    chunks: BTreeMap<String, Vec<String>>,
}

#[test]
fn copyvio_oracle_wikitext() {
    cases("copyvio_oracle_wikitext", "wikitext", |case: &WikiCase| {
        let page = Wikitext::new(&case.wikitext);
        equal("text", &page.text(), &case.stripped)?;
        equal("links", page.links(), case.links.iter().map(|link| &**link).collect())?;
        let queries = cut_sentences(case.splitter_sentences.iter().map(|s| &**s), QueryLimits::default());
        equal("queries", &queries, &case.query_sentences)?;
        for (max, expected) in &case.chunks {
            equal(&format!("{max} chunks"), &pick_queries(queries.clone(), max.parse().unwrap()), expected)?;
        }
        Ok(())
    });
}

#[derive(Deserialize)]
struct HtmlCase {
    html: String,
    mirror_hints: Option<Vec<String>>,
    parsed: Option<String>,
    excluded: bool,
}

#[test]
fn copyvio_oracle_html() {
    cases("copyvio_oracle_html", "html", |case: &HtmlCase| {
        let (_, addresses) = html_text_and_addresses(&case.html);
        let mirror = addresses.mirror(case.mirror_hints.as_deref().unwrap_or_default());
        equal("excluded", mirror.is_some(), case.excluded)?;
        if let Some(expected) = &case.parsed {
            let text = html_text(&case.html);
            equal("words", words(&text), words(expected))?;
            equal("text", &text, expected)?;
        }
        Ok(())
    });
}

#[derive(Deserialize)]
struct RawCase {
    r#type: String,
    base64: String,
    parsed: String,
}

#[test]
fn copyvio_oracle_raw() {
    cases("copyvio_oracle_raw", "raw", |case: &RawCase| {
        // The reference joins the lines of a PDF, which is a defect that is not reproduced.
        if case.r#type != "text" {
            return Ok(());
        }
        let bytes = BASE64_STANDARD.decode(&case.base64).expect("the oracle's bytes are base64");
        equal("text", &plain_text(&bytes, None), &case.parsed)
    });
}

#[derive(Deserialize)]
struct ExclusionCase {
    rules: Vec<String>,
    checks: Vec<ExclusionCheck>,
    page_parsing: Vec<PageParsing>,
    mirror_hints: Vec<MirrorHints>,
}

#[derive(Deserialize)]
struct ExclusionCheck {
    url: String,
    excluded: bool,
}

#[derive(Deserialize)]
struct PageParsing {
    page: String,
    wikitext: String,
    entries: Vec<String>,
}

#[derive(Deserialize)]
struct MirrorHints {
    domain: String,
    script_path: String,
    page_path: String,
    hints: Vec<String>,
}

#[test]
fn copyvio_oracle_exclusions() {
    cases("copyvio_oracle_exclusions", "exclusions", |case: &ExclusionCase| {
        let (exclusions, _) = Exclusions::new(&case.rules);
        // In the reference, `*.host/path` matches only URLs with an empty path. For such rules, its expected answers are those of the rule
        // without a path if the URL has none, and "no match" if it has one.
        let (others, _) = Exclusions::new(case.rules.iter().filter(|rule| !is_host_and_path(rule)));
        for check in &case.checks {
            let found = exclusions.rule_for(&check.url);
            if found.is_some_and(is_host_and_path) || found.is_none() && check.excluded {
                let host = check.url.split('/').nth(2).unwrap_or_default();
                let is_known = case.rules.iter().any(|rule| {
                    is_host_and_path(rule) && host.ends_with(rule[2..].split('/').next().unwrap_or_default())
                });
                equal(&format!("{} is a known difference", check.url), is_known, true)?;
                continue;
            }
            equal(&check.url, others.rule_for(&check.url).is_some(), check.excluded)?;
        }
        for page in &case.page_parsing {
            let mut expected = page.entries.clone();
            expected.sort();
            equal(&page.page, ExclusionList::of_page(&page.page).rules(&page.wikitext), expected)?;
        }
        for case in &case.mirror_hints {
            let mut found = mirror_hints(&case.domain, &case.script_path, &case.page_path);
            let mut expected = case.hints.clone();
            found.sort();
            expected.sort();
            equal(&case.domain, found, expected)?;
        }
        Ok(())
    });
}

fn is_host_and_path(rule: impl AsRef<str>) -> bool {
    rule.as_ref().starts_with("*.") && rule.as_ref().contains('/')
}

#[derive(Deserialize)]
struct HighlightCase {
    article: String,
    source: String,
    degree: usize,
    article_html: String,
    source_html: String,
}

#[test]
fn copyvio_oracle_highlight() {
    cases("copyvio_oracle_highlight", "highlight", |case: &HighlightCase| {
        let degree = Degree::new(case.degree).map_err(|e| e.to_string())?;
        let article = highlight_html(&case.article, &Chain::of(&case.source, degree));
        equal("article", &article, &case.article_html)?;
        let source = highlight_html(&case.source, &Chain::of(&case.article, degree));
        equal("source", &source, &case.source_html)
    });
}
