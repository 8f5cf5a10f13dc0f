//! `sweep.jsonl`: what a sweep found, and going on where a killed one ended.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use huntsman::detect::copyvio::{Band, Verdict};
use huntsman::middleware::copyvio::{Checked, Subject};
use huntsman::{Error, Result, Timestamp};
use serde::Deserialize;
use serde_json::json;

use super::report::Pair;
use crate::copyvio::{Compared, Comparison, pair};
use crate::exit::{Failure, Outcome};
use crate::html_report::address;
use crate::output::{OutputDir, SWEEP};
use crate::render::{escape, warn};

/// Writes what came of each article: its lines in one piece, so that a kill leaves whole articles and at most one that is torn.
#[derive(Debug)]
pub(super) struct Findings {
    file: File,
    pairs: PathBuf,
    done: Arc<HashSet<String>>,
    /// Troubles of those who look for sources that were told.
    told: HashSet<String>,
}

/// Troubles that are told at most.
const TOLD: usize = 20;

/// What tells whose line it is, and whether all of them are there.
#[derive(Deserialize)]
struct Line {
    article: String,
    of: usize,
}

impl Findings {
    /// Goes on with the file of a directory, or begins it.
    ///
    /// # Errors
    /// It cannot be read or written, a line in it is damaged, or the crawl that goes on there is no sweep.
    pub(super) fn open(directory: &OutputDir) -> Outcome<Self> {
        let path = directory.file(SWEEP);
        let failed =
            |error: io::Error| Failure::crawl(format!("{}: {error}", escape(&path.to_string_lossy())));
        if directory.resumes() && !path.exists() {
            return Err(Failure::usage(format!(
                "{} holds an unfinished crawl that is no sweep; name another directory with --out, or start anew with --fresh",
                escape(&directory.path().to_string_lossy())
            )));
        }
        let (done, end) = if path.exists() { whole(&path)? } else { (HashSet::new(), 0) };
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(failed)?;
        // What is torn is found again: that article waits still.
        file.set_len(end).map_err(failed)?;
        let pairs = directory.pairs();
        fs::create_dir_all(&pairs).map_err(failed)?;
        Ok(Self { file, pairs, done: Arc::new(done), told: HashSet::new() })
    }

    /// The articles of earlier runs.
    pub(super) fn done(&self) -> Arc<HashSet<String>> {
        Arc::clone(&self.done)
    }

    /// Writes what came of an article.
    ///
    /// # Errors
    /// The disk is full or gone.
    pub(super) fn write(&mut self, subject: &Subject, checked: Checked) -> Result<()> {
        for (by, error) in &checked.errors {
            let trouble = format!("{}: {}", escape(by), escape(error));
            if self.told.len() < TOLD && self.told.insert(trouble.clone()) {
                warn(&trouble);
            }
        }
        let article = subject.url.clone().unwrap_or_default();
        if self.done.contains(&article) {
            // Killed between its lines and the end of its waiting.
            return Ok(());
        }
        let possible_miss = checked.possible_miss;
        let comparison = Comparison::of_check(article.clone(), subject, checked);
        let of = comparison.sources.len();
        let mut lines = Vec::new();
        for (at, compared) in comparison.sources.iter().enumerate() {
            let mut line = json!({"article": article, "rank": at + 1, "of": of});
            if let (Some(line), serde_json::Value::Object(fields)) = (line.as_object_mut(), compared.json()) {
                line.extend(fields);
            }
            line["unified_confidence"] =
                json!(comparison.result.unified.map(|confidence| confidence.value()));
            line["possible_miss"] = json!(possible_miss);
            line["checked_at"] = json!(Timestamp::wall().to_rfc3339());
            serde_json::to_writer(&mut lines, &line)?;
            lines.push(b'\n');
        }
        for compared in comparison.sources.iter().filter(|compared| is_flagged(compared)) {
            self.keep_pair(&article, comparison.article.text(), compared)?;
        }
        let written = self.file.write_all(&lines);
        written.map_err(|error| Error::from(error).context(format!("writing {SWEEP}")))
    }

    /// Keeps two texts beside each other for the report.
    fn keep_pair(&self, article: &str, text: &str, compared: &Compared) -> Result<()> {
        let pair_of = Pair::of(article, &compared.name);
        let mut html = String::new();
        let heading = format!("{} and {}", address(article), address(&compared.name));
        pair(&mut html, pair_of.number(), &heading, text, compared);
        let path = self.pairs.join(pair_of.file());
        let written = fs::write(&path, html);
        written.map_err(|error| Error::from(error).context(format!("writing {}", path.display())))
    }
}

fn is_flagged(compared: &Compared) -> bool {
    compared.source.confidence.band() != Band::None
        || compared.evidence().is_some_and(|evidence| evidence.verdict != Verdict::None)
}

/// The articles of which all lines are there, and where the last of them ends.
fn whole(path: &Path) -> Outcome<(HashSet<String>, u64)> {
    let name = escape(&path.to_string_lossy()).into_owned();
    let failed = |error: &dyn std::fmt::Display| Failure::crawl(format!("reading {name}: {error}"));
    let mut reader = BufReader::new(File::open(path).map_err(|error| failed(&error))?);
    let (mut done, mut end, mut at) = (HashSet::new(), 0, 0);
    let mut current: Option<(String, usize)> = None;
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(|error| failed(&error))?;
        if read == 0 || !line.ends_with(b"\n") {
            break;
        }
        at += read as u64;
        let parsed: Line = serde_json::from_slice(&line)
            .map_err(|error| failed(&format!("line {number} is damaged ({error}); --fresh starts anew")))?;
        let count = match &current {
            Some((article, count)) if *article == parsed.article => count + 1,
            _ => 1,
        };
        if count >= parsed.of {
            done.insert(parsed.article);
            (current, end) = (None, at);
        } else {
            current = Some((parsed.article, count));
        }
    }
    Ok((done, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_articles_are_done_and_a_torn_one_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sweep.jsonl");
        let line =
            |article: &str, of: usize| format!("{}\n", json!({"article": article, "of": of, "x": "y"}));
        let kept = [line("a", 2), line("a", 2), line("b", 1)].concat();
        for torn in ["", "{\"article\": \"c\", \"o", &line("c", 3), &[line("c", 2), "{".to_owned()].concat()]
        {
            fs::write(&path, format!("{kept}{torn}")).unwrap();
            let (done, end) = whole(&path).unwrap();
            assert_eq!(done, ["a", "b"].map(str::to_owned).into());
            assert_eq!(end, kept.len() as u64, "{torn}");
        }
        fs::write(&path, format!("{kept}nonsense\n{kept}")).unwrap();
        assert!(whole(&path).unwrap_err().message.contains("line 4"));
    }
}
