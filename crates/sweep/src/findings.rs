//! `sweep.jsonl`: the results of a sweep, with support for continuing after a kill.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use huntsman::detect::copyvio::{Band, Verdict};
use huntsman::middleware::sinks::FilePosition;
use huntsman::sweep::{Checked, Compared, Comparison, Subject};
use huntsman::{Error, Persist, Result, Timestamp};
use maud::html;
use serde::Deserialize;
use serde_json::json;

use super::report::Pair;
use crate::copyvio::pair;
use crate::exit::{Failure, Outcome};
use crate::markup::address;
use crate::output::{OutputDir, SWEEP};
use crate::render::{escape, warn};

/// Writes the results of each article, all its lines at once. The job commits the position in the file together with
/// the list of waiting articles, so a continued run finds the results of exactly the articles that it does not check
/// again.
#[derive(Clone, Debug)]
pub(super) struct Findings(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: File,
    written: u64,
    position: FilePosition,
    pairs: PathBuf,
    done: HashSet<String>,
    /// Errors of candidate sources that were already reported.
    told: HashSet<String>,
}

/// Maximum number of such errors that are reported.
const TOLD: usize = 20;

/// The fields that tell to which article a line belongs, and whether all its lines are there.
#[derive(Deserialize)]
struct Line {
    article: String,
    of: usize,
}

impl Findings {
    /// Opens the file of a directory. The file counts as empty until the job says how far it was written.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn open(directory: &OutputDir) -> Outcome<Self> {
        let path = directory.file(SWEEP);
        let failed =
            |error: io::Error| Failure::crawl(format!("{}: {error}", escape(&path.to_string_lossy())));
        let pairs = directory.pairs();
        huntsman::files::create_dir_all(&pairs).map_err(failed)?;
        let file = huntsman::files::open_append(&path).map_err(failed)?;
        let position = FilePosition::new(&path)?;
        let (done, told) = (HashSet::new(), HashSet::new());
        Ok(Self(Arc::new(Mutex::new(Inner { path, file, written: 0, position, pairs, done, told }))))
    }

    /// Whether an earlier run wrote the results of an article.
    pub(super) fn is_done(&self, article: &str) -> bool {
        self.inner().done.contains(article)
    }

    /// Writes the results of an article.
    ///
    /// # Errors
    /// The disk is full or gone.
    pub(super) fn write(&self, subject: &Subject, checked: Checked) -> Result<()> {
        self.inner().write(subject, checked)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Persist for Findings {
    fn name(&self) -> String {
        self.inner().position.name()
    }

    fn load(&self, state: Option<&[u8]>) -> Result<()> {
        let mut inner = self.inner();
        inner.position.load(state)?;
        let (done, end) = whole(&inner.path)?;
        inner.written = inner.file.metadata()?.len();
        if end != inner.written {
            return Err(Error::msg(format!(
                "{}: its last article is not whole; `huntsman verify` tells more, --fresh starts anew",
                inner.path.display()
            )));
        }
        inner.done = done;
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        self.inner().position.save()
    }

    fn sync(&self) -> Result<()> {
        let position = self.inner().position.clone();
        position.sync()
    }
}

impl Inner {
    fn write(&mut self, subject: &Subject, checked: Checked) -> Result<()> {
        for (by, error) in &checked.errors {
            let trouble = format!("{}: {}", escape(by), escape(error));
            if self.told.len() < TOLD && self.told.insert(trouble.clone()) {
                warn(&trouble);
            }
        }
        let article = subject.url.clone().unwrap_or_default();
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
        if let Err(error) = self.file.write_all(&lines) {
            // The file may end with half an article, so no position behind it may be committed.
            self.position.fail();
            return Err(Error::from(error).context(format!("writing {SWEEP}")));
        }
        self.written += lines.len() as u64;
        self.position.set(self.written);
        Ok(())
    }

    /// Stores two texts side by side for the report.
    fn keep_pair(&self, article: &str, text: &str, compared: &Compared) -> Result<()> {
        let pair_of = Pair::of(article, &compared.name);
        let heading = html! { (address(article)) " and " (address(&compared.name)) };
        let html = pair(pair_of.number(), &heading, text, compared).into_string();
        let path = self.pairs.join(pair_of.file());
        let written = huntsman::files::write(&path, html);
        written.map_err(|error| Error::from(error).context(format!("writing {}", path.display())))
    }
}

fn is_flagged(compared: &Compared) -> bool {
    compared.source.confidence.band() != Band::None
        || compared.evidence().is_some_and(|evidence| evidence.verdict != Verdict::None)
}

/// The articles whose lines are complete, and the offset at which the last of them ends.
pub(crate) fn whole(path: &Path) -> Result<(HashSet<String>, u64)> {
    let name = escape(&path.to_string_lossy()).into_owned();
    let failed = |error: &dyn std::fmt::Display| Error::msg(format!("reading {name}: {error}"));
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
        let parsed: Line = serde_json::from_slice(&line).map_err(|error| {
            let what =
                format!("line {number} is damaged ({error}); restore the file, or --fresh starts anew");
            failed(&what)
        })?;
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
    use std::fs;

    use huntsman::Backend;

    use super::*;
    use crate::output::{Plan, Run};

    #[test]
    fn whole_articles_are_done_and_what_is_torn_is_told_apart() {
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
        assert!(whole(&path).unwrap_err().to_string().contains("line 4"));
    }

    #[test]
    fn what_the_job_does_not_know_is_cut_off_and_its_articles_are_not_done() {
        let dir = tempfile::tempdir().unwrap();
        let line = |article: &str, of: usize| format!("{}\n", json!({"article": article, "of": of}));
        let (known, unknown) = (line("a", 1), [line("b", 2), line("b", 2), line("c", 3)].concat());
        let Plan::Use(plan) = Plan::of(dir.path(), false, Run::Sweep, Backend::Redb).unwrap() else {
            panic!()
        };
        let seed = url::Url::parse("https://example.org/").unwrap();
        let directory = plan.create(&seed, "2026-11-21T00:00:00Z".to_owned()).unwrap();
        let path = directory.file(SWEEP);
        // The state at the last commit before a kill.
        let findings = Findings::open(&directory).unwrap();
        findings.load(None).unwrap();
        findings.inner().file.write_all(known.as_bytes()).unwrap();
        findings.inner().position.set(known.len() as u64);
        let state = findings.save().unwrap().unwrap();
        findings.inner().file.write_all(unknown.as_bytes()).unwrap();
        drop(findings);
        let findings = Findings::open(&directory).unwrap();
        findings.load(Some(&state)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), known);
        assert!(findings.is_done("a") && !findings.is_done("b") && !findings.is_done("c"));
        // If the job has no position yet, the file starts from the beginning.
        let findings = Findings::open(&directory).unwrap();
        findings.load(None).unwrap();
        assert!(fs::read(&path).unwrap().is_empty() && !findings.is_done("a"));
    }
}
