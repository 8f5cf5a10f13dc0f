//! The results of checking a directory, printed alike for all kinds of directories. The checks themselves are in the
//! libraries, beside the formats.

mod near_index;
mod output;
mod stored;
#[cfg(feature = "text-index")]
mod text_index;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::exit::{Exit, Outcome};
use crate::render::{Style, count, escape, escape_json};

/// The result of checking a directory.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// What the directory is.
    kind: &'static str,
    path: PathBuf,
    counts: Vec<(&'static str, u64)>,
    /// Remarks that are no damage.
    notes: Vec<String>,
    problems: Vec<Problem>,
}

/// Something that is missing or differs from what was written.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) file: PathBuf,
    /// The byte offset at which the damage begins, if it is known.
    pub(crate) at: Option<u64>,
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) help: String,
}

impl Verdict {
    pub(crate) fn new(kind: &'static str, path: &Path) -> Self {
        Self { kind, path: path.to_owned(), counts: Vec::new(), notes: Vec::new(), problems: Vec::new() }
    }

    pub(crate) fn count(&mut self, name: &'static str, number: u64) {
        self.counts.push((name, number));
    }

    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    pub(crate) fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Prints the result; the exit code says whether everything is intact.
    pub(crate) fn print(&self, as_json: bool) -> Outcome {
        let text = if as_json { format!("{}\n", escape_json(&self.json().to_string())) } else { self.text() };
        io::stdout().lock().write_all(text.as_bytes())?;
        Ok(if self.problems.is_empty() { Exit::Done } else { Exit::Crawl })
    }

    fn json(&self) -> Value {
        let counts: Map<String, Value> =
            self.counts.iter().map(|(name, number)| (name.replace(' ', "_"), json!(number))).collect();
        let problems: Vec<Value> = self
            .problems
            .iter()
            .map(|problem| {
                json!({
                    "file": problem.file.to_string_lossy(),
                    "at": problem.at,
                    "what": problem.what,
                    "help": problem.help,
                })
            })
            .collect();
        json!({
            "directory": self.path.to_string_lossy(),
            "kind": self.kind,
            "whole": self.problems.is_empty(),
            "counts": counts,
            "notes": self.notes,
            "problems": problems,
        })
    }

    fn text(&self) -> String {
        let style = Style::stdout();
        let state = match self.problems.is_empty() {
            true => style.green("whole"),
            false => style.red("damaged"),
        };
        let mut text = format!("{}: {}, {state}\n", escape(&self.path.to_string_lossy()), self.kind);
        for (name, number) in &self.counts {
            text.push_str(&format!("  {name}: {}\n", count(*number)));
        }
        for note in &self.notes {
            text.push_str(&format!("  note: {}\n", escape(note)));
        }
        for problem in &self.problems {
            let at = problem.at.map(|at| format!(" at byte {at}")).unwrap_or_default();
            let file = problem.file.to_string_lossy();
            text.push_str(&format!(
                "  {}{at}: {}; {}\n",
                escape(&file),
                escape(&problem.what),
                escape(&problem.help)
            ));
        }
        text
    }
}
