//! The file of the results of a sweep, which continues after a kill.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use huntsman_crawler::terminal::escape;
use huntsman_crawler::{Error, Persist, Result, Timestamp};
use huntsman_middleware::sinks::FilePosition;
use huntsman_output::markup::address;
use maud::html;
use serde::Deserialize;
use serde_json::json;

use super::candidates::Subject;
use super::checked::Checked;
use super::comparison::{Compared, Comparison};
use super::report::{PairFile, Rank, ShownPairs};
use super::side_by_side::pair;

/// Writes the results of each article to a file, all its lines at once: a JSON object for each pair of the article and a
/// source ([`Compared::json`] with `article`, `rank`, `of`, `unified_confidence`, `possible_miss` and `checked_at`). Cheap
/// to clone; clones share the file.
///
/// In a job, register it with the builder: `builder.persist(findings)`. The job commits the position in the file together
/// with the list of waiting articles, so a resumed run finds the results of exactly the articles that it does not check
/// again.
#[derive(Clone)]
pub struct Findings(Arc<Mutex<Inner>>);

struct Inner {
    path: PathBuf,
    file: File,
    written: u64,
    position: FilePosition,
    pairs: PathBuf,
    shown: ShownPairs,
    done: HashSet<String>,
    /// Errors of candidate sources that were already reported.
    reported: HashSet<String>,
    /// Gets a message about a failed query.
    warn: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Maximum number of such messages.
const MAX_REPORTED: usize = 20;

/// The fields that tell to which article a line belongs, and how many lines the article has.
#[derive(Deserialize)]
struct Line {
    article: String,
    of: usize,
}

impl Findings {
    /// Opens a file of results, or creates it, and creates the folder `pairs` for pairs of texts side by side. The file
    /// counts as empty until the job says how far it was written. `warn` gets each error of a query once, at most 20.
    ///
    /// # Errors
    /// The file or the folder cannot be written.
    pub fn open(results: &Path, pairs: &Path, warn: Arc<dyn Fn(&str) + Send + Sync>) -> Result<Self> {
        let failed = |error: io::Error| Error::from(error).context(shown(results));
        huntsman_files::create_dir_all(pairs).map_err(failed)?;
        let file = huntsman_files::open_append(results).map_err(failed)?;
        let position = FilePosition::new(results)?;
        Ok(Self(Arc::new(Mutex::new(Inner {
            path: results.to_owned(),
            file,
            written: 0,
            position,
            pairs: pairs.to_owned(),
            shown: ShownPairs::default(),
            done: HashSet::new(),
            reported: HashSet::new(),
            warn,
        }))))
    }

    /// Whether an earlier run wrote the results of an article, by its URL.
    pub fn is_done(&self, article: &str) -> bool {
        self.inner().done.contains(article)
    }

    /// Writes the results of an article, and both texts of each suspicious pair that the report would show if the sweep ended now.
    ///
    /// # Errors
    /// The disk is full or gone.
    pub fn write(&self, subject: &Subject, checked: Checked) -> Result<()> {
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
        let (done, end) = whole_articles(&inner.path)?;
        inner.written = inner.file.metadata()?.len();
        if end != inner.written {
            return Err(Error::msg(format!(
                "{}: its last article is not whole; `huntsman verify` tells more, --fresh starts anew",
                inner.path.display()
            )));
        }
        let shown_pairs = ShownPairs::of(&inner.path);
        inner.shown = shown_pairs.map_err(|error| Error::from(error).context(shown(&inner.path)))?;
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
            let message = format!("{by}: {error}");
            if self.reported.len() < MAX_REPORTED && self.reported.insert(message.clone()) {
                (self.warn)(&message);
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
        for compared in comparison.sources.iter().filter(|compared| compared.is_flagged()) {
            let score = compared.evidence().map_or(0.0, |evidence| evidence.score.value());
            if !self.shown.add(Rank::of(compared.source.confidence.value(), score)) {
                continue;
            }
            self.keep_pair(&article, comparison.article.text(), compared)?;
        }
        if let Err(error) = self.file.write_all(&lines) {
            // The file may end with half an article, so no position behind it may be committed.
            self.position.fail();
            return Err(Error::from(error).context(format!("writing {}", file_name(&self.path))));
        }
        self.written += lines.len() as u64;
        self.position.set(self.written);
        Ok(())
    }

    /// Stores two texts side by side for the report.
    fn keep_pair(&self, article: &str, text: &str, compared: &Compared) -> Result<()> {
        let pair_file = PairFile::of(article, &compared.name);
        let heading = html! { (address(article)) " and " (address(&compared.name)) };
        let html = pair(pair_file.number(), &heading, text, compared).into_string();
        let path = self.pairs.join(pair_file.name());
        let written = huntsman_files::write(&path, html);
        written.map_err(|error| Error::from(error).context(format!("writing {}", path.display())))
    }
}

impl fmt::Debug for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Findings").field("path", &self.inner().path).finish_non_exhaustive()
    }
}

fn shown(path: &Path) -> String {
    escape(&path.to_string_lossy()).into_owned()
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| shown(path), |name| escape(&name.to_string_lossy()).into_owned())
}

/// The articles of a file of results whose lines are complete, and the offset in bytes at which the last of them ends.
///
/// # Errors
/// The file cannot be read, or a complete line of it is damaged; the error names the line.
pub fn whole_articles(path: &Path) -> Result<(HashSet<String>, u64)> {
    let name = shown(path);
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

    use super::*;

    #[test]
    fn complete_articles_count_as_done_and_torn_ones_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sweep.jsonl");
        let line =
            |article: &str, of: usize| format!("{}\n", json!({"article": article, "of": of, "x": "y"}));
        let kept = [line("a", 2), line("a", 2), line("b", 1)].concat();
        for torn in ["", "{\"article\": \"c\", \"o", &line("c", 3), &[line("c", 2), "{".to_owned()].concat()]
        {
            fs::write(&path, format!("{kept}{torn}")).unwrap();
            let (done, end) = whole_articles(&path).unwrap();
            assert_eq!(done, ["a", "b"].map(str::to_owned).into());
            assert_eq!(end, kept.len() as u64, "{torn}");
        }
        fs::write(&path, format!("{kept}nonsense\n{kept}")).unwrap();
        assert!(whole_articles(&path).unwrap_err().to_string().contains("line 4"));
    }

    #[test]
    fn what_the_job_does_not_know_is_cut_off_and_its_articles_are_not_done() {
        let dir = tempfile::tempdir().unwrap();
        let line = |article: &str, of: usize| {
            let evidence = json!({"score": 0.0, "verdict": "none", "coverage": 0.0, "longest_run": 0.0});
            let fields = json!({"article": article, "of": of, "source": "s", "status": "compared", "confidence": 0.0,
                "band": "none", "evidence": evidence});
            format!("{fields}\n")
        };
        let (known, unknown) = (line("a", 1), [line("b", 2), line("b", 2), line("c", 3)].concat());
        let path = dir.path().join("sweep.jsonl");
        let open = || Findings::open(&path, &dir.path().join("pairs"), Arc::new(|_: &str| {})).unwrap();
        // The state at the last commit before a kill.
        let findings = open();
        findings.load(None).unwrap();
        findings.inner().file.write_all(known.as_bytes()).unwrap();
        findings.inner().position.set(known.len() as u64);
        let state = findings.save().unwrap().unwrap();
        findings.inner().file.write_all(unknown.as_bytes()).unwrap();
        drop(findings);
        let findings = open();
        findings.load(Some(&state)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), known);
        assert!(findings.is_done("a") && !findings.is_done("b") && !findings.is_done("c"));
        // If the job has no position yet, the file starts from the beginning.
        let findings = open();
        findings.load(None).unwrap();
        assert!(fs::read(&path).unwrap().is_empty() && !findings.is_done("a"));
    }
}
