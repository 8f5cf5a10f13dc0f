//! Pairs of texts for which it is known whether one was made from the other, from files or generated here.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use huntsman::dedup::{Body, RawDocument, ReadOptions, Source, SourceError};
use huntsman_cli::exit::{Failure, Outcome};
use huntsman_cli::render::escape;
use rand::seq::index;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Deserializer, Serialize};

use super::edits::{Around, Edit};
use crate::stories::{Story, Writer, text};

/// Two texts and the facts known about them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pair {
    /// The kind of change: a name of [`Edit`], `unrelated`, `template`, or any kind that a file names.
    pub(super) kind: Arc<str>,
    /// The strength of the change.
    pub(super) level: f64,
    /// The length class of the texts in words, if there are classes.
    pub(super) len: Option<u64>,
    /// Whether one was made from the other.
    pub(super) is_copy: bool,
    pub(super) a: Arc<str>,
    pub(super) b: String,
}

/// Number of pairs that are sent together.
const BATCH: usize = 64;
/// Maximum length of a line in a file.
const LINE: u64 = 64 << 20;

/// A line in a file of pairs.
#[derive(Deserialize)]
struct Line {
    a: String,
    b: String,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    level: Option<f64>,
    #[serde(default)]
    len: Option<u64>,
    #[serde(default = "is_copy", deserialize_with = "flag")]
    dup: bool,
}

fn is_copy() -> bool {
    true
}

/// A line as it is written.
#[derive(Serialize)]
struct Written<'a> {
    lang: &'a str,
    len: Option<u64>,
    kind: &'a str,
    level: f64,
    dup: u8,
    a: &'a str,
    b: &'a str,
}

/// Writes pairs in the format that [`of_file`] reads.
pub(super) fn write(pairs: &[Pair], lang: &str, file: &mut impl Write) -> io::Result<()> {
    for pair in pairs {
        let line = Written {
            lang,
            len: pair.len,
            kind: &pair.kind,
            level: pair.level,
            dup: u8::from(pair.is_copy),
            a: &pair.a,
            b: &pair.b,
        };
        serde_json::to_writer(&mut *file, &line)?;
        file.write_all(b"\n")?;
    }
    Ok(())
}

/// Reads `true`, `false`, 1 or 0.
fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Flag {
        Bool(bool),
        Number(u64),
    }
    match Flag::deserialize(from) {
        Ok(Flag::Bool(flag)) => Ok(flag),
        Ok(Flag::Number(number @ (0 | 1))) => Ok(number == 1),
        _ => Err(serde::de::Error::custom("dup is 1 or true for a copy, 0 or false for another text")),
    }
}

/// Reads the pairs of a file in batches, until `each` breaks. An invalid line is an error, because shares computed
/// from a part of a file would mislead.
pub(super) fn of_file(path: &Path, each: &mut dyn FnMut(Vec<Pair>) -> ControlFlow<()>) -> Outcome<()> {
    let shown = escape(&path.to_string_lossy()).into_owned();
    if !path.is_file() {
        return Err(Failure::usage(format!("--pairs {shown}: there is no such file")));
    }
    let (mut batch, mut wrong, mut is_any): (Vec<Pair>, Option<String>, bool) = (Vec::new(), None, false);
    let mut take = |raw: Result<RawDocument, SourceError>| {
        let (number, line) = match raw {
            Ok(RawDocument { position, body }) => (
                position.line.map(|line| format!(":{line}")).unwrap_or_default(),
                match body {
                    Body::Line(line) => {
                        serde_json::from_slice::<Line>(&line).map_err(|error| error.to_string())
                    }
                    Body::Unreadable(message) => Err(message),
                    Body::File { .. } | Body::Archived { .. } | Body::Fingerprint(_) | Body::LeftOut(_) => {
                        Err("it is not a file of JSON lines".to_owned())
                    }
                },
            ),
            Err(broken) => (String::new(), Err(broken.to_string())),
        };
        let line = match line {
            Ok(line) => line,
            Err(error) => {
                wrong = Some(format!("--pairs {shown}{number}: {}", escape(&error)));
                return ControlFlow::Break(());
            }
        };
        is_any = true;
        // Pairs with the same first text mostly follow each other.
        let a = match batch.last() {
            Some(last) if *last.a == *line.a => Arc::clone(&last.a),
            _ => line.a.into(),
        };
        let kind = line.kind.map_or_else(|| Arc::from("pair"), Arc::from);
        let level = line.level.unwrap_or(0.0);
        batch.push(Pair { kind, level, len: line.len, is_copy: line.dup, a, b: line.b });
        if batch.len() < BATCH { ControlFlow::Continue(()) } else { each(std::mem::take(&mut batch)) }
    };
    let options = ReadOptions { max_document: LINE, ..ReadOptions::default() };
    let flow = Source::File(path.to_owned()).read(&options, &mut take);
    if let Some(wrong) = wrong {
        let form = r#"a line has the form {"a": TEXT, "b": TEXT, "kind": NAME, "level": NUMBER, "len": WORDS, "dup": 1 or 0}"#;
        return Err(Failure::usage(format!("{wrong}; {form}")));
    }
    if !is_any {
        return Err(Failure::usage(format!("--pairs {shown}: there are no pairs in it")));
    }
    if flow.is_continue() && !batch.is_empty() {
        let _ = each(batch);
    }
    Ok(())
}

/// Pairs of stories of one language: every kind and level of edits for each story of `words` words; unrelated pairs
/// of that length and of three times as many words; and different stories in the same navigation.
pub(super) fn of_stories(
    writer: &Writer,
    count: usize,
    words: usize,
    random: &mut Xoshiro256PlusPlus,
    each: &mut dyn FnMut(Vec<Pair>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let stories: Vec<Story> = (0..count).map(|_| writer.story(random, words)).collect();
    let texts: Vec<Arc<str>> = stories.iter().map(|story| story.text().into()).collect();
    for (at, story) in stories.iter().enumerate() {
        let others: Vec<&Story> = stories[..at].iter().chain(&stories[at + 1..]).collect();
        // The headlines of three other stories.
        let chrome: Vec<String> = index::sample(random, others.len(), 3.min(others.len()))
            .into_iter()
            .flat_map(|other| others[other].words().take(20).cloned())
            .collect();
        let around = Around { others: &others, chrome: &chrome };
        let pair = |kind: &str, level: f64, is_copy: bool, b: String| Pair {
            kind: kind.into(),
            level,
            len: Some(words as u64),
            is_copy,
            a: Arc::clone(&texts[at]),
            b,
        };
        let mut batch: Vec<Pair> = Vec::new();
        for edit in Edit::ALL {
            for level in edit.levels() {
                batch.push(pair(edit.name(), *level, true, edit.of(*level, story, &around, random)));
            }
        }
        let rest = texts[at + 1..].iter().take(10);
        batch.extend(rest.map(|other| pair("unrelated", 0.0, false, other.to_string())));
        each(batch)?;
        let in_chrome = |story: &Story| {
            let mut all = vec![chrome.clone()];
            all.extend(story.paragraphs.iter().cloned());
            text(&all)
        };
        let other = &stories[(at + 1) % stories.len()];
        let a = in_chrome(story).into();
        each(vec![Pair { a, ..pair("template", chrome.len() as f64, false, in_chrome(other)) }])?;
    }
    let long: Vec<Arc<str>> = (0..count).map(|_| writer.story(random, 3 * words).text().into()).collect();
    for (at, a) in long.iter().enumerate() {
        let pair = |b: &Arc<str>| Pair {
            kind: "unrelated".into(),
            level: 0.0,
            len: Some(3 * words as u64),
            is_copy: false,
            a: Arc::clone(a),
            b: b.to_string(),
        };
        each(long[at + 1..].iter().take(10).map(pair).collect())?;
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn pairs(text: &str) -> Result<Vec<Pair>, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pairs.jsonl");
        std::fs::write(&path, text).unwrap();
        let mut all = Vec::new();
        let read = of_file(&path, &mut |batch| {
            all.extend(batch);
            ControlFlow::Continue(())
        });
        read.map(|()| all).map_err(|failure| failure.message)
    }

    #[test]
    fn a_file_needs_two_texts_a_line_and_no_more() {
        let read = pairs(concat!(
            r#"{"a": "one", "b": "two"}"#,
            "\n\n",
            r#"{"pair": 7, "lang": "hi", "len": 100, "kind": "typo", "level": 0.01, "dup": 0, "a": "one", "b": "three"}"#,
        ))
        .unwrap();
        let first = Pair {
            kind: "pair".into(),
            level: 0.0,
            len: None,
            is_copy: true,
            a: "one".into(),
            b: "two".into(),
        };
        let second = Pair {
            kind: "typo".into(),
            level: 0.01,
            len: Some(100),
            is_copy: false,
            b: "three".into(),
            ..first.clone()
        };
        assert_eq!(read, [first, second]);
    }

    #[test]
    fn pairs_that_are_written_are_read_again() {
        let writer = &Writer::all().unwrap()[3];
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let (mut made, mut file) = (Vec::new(), Vec::new());
        let flow = of_stories(writer, 4, 60, &mut random, &mut |batch| {
            write(&batch, &writer.lang, &mut file).unwrap();
            made.extend(batch);
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
        assert_eq!(pairs(std::str::from_utf8(&file).unwrap()).unwrap(), made);
    }

    #[test]
    fn a_line_that_is_no_pair_is_reported_by_its_number() {
        let good = "{\"a\": \"\", \"b\": \"\"}\n".repeat(70);
        for (wrong, says) in [
            ("{\"a\": \"one\"}", "missing field `b`"),
            ("{\"a\": \"one\", \"b\": \"two\", \"dup\": 2}", "dup is 1 or true"),
            ("{\"a\": 1, \"b\": \"two\"}", "expected a string"),
            ("a,b", "expected value"),
        ] {
            let error = pairs(&format!("{good}{wrong}\n")).unwrap_err();
            assert!(error.contains(says) && error.contains("pairs.jsonl:71: "), "{error}");
            assert!(error.contains("a line has the form"), "{error}");
        }
        assert!(pairs("").unwrap_err().contains("there are no pairs in it"));
    }
}
