//! The results of checking a directory, printed alike for all kinds of directories. The checks themselves are in the
//! libraries, beside the formats.

mod near_index;
mod output;
mod stored;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

pub use output::ArticleReader;

use crate::render::{Style, count, escape};

/// The result of checking a directory.
#[derive(Debug)]
pub struct Verdict {
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
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// The byte offset at which the damage begins, if it is known.
    pub at: Option<u64>,
    /// What is missing or different.
    pub what: String,
    /// What to do about it.
    pub help: String,
}

impl Verdict {
    /// A verdict without counts and problems about a directory; `kind` says what the directory is.
    pub fn new(kind: &'static str, path: &Path) -> Self {
        Self { kind, path: path.to_owned(), counts: Vec::new(), notes: Vec::new(), problems: Vec::new() }
    }

    /// Adds the number of things of a name, such as pages.
    pub fn count(&mut self, name: &'static str, number: u64) {
        self.counts.push((name, number));
    }

    /// Adds a remark that is no damage.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Adds damage.
    pub fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Whether the directory has no damage.
    pub fn is_whole(&self) -> bool {
        self.problems.is_empty()
    }

    /// The verdict as one JSON object.
    pub fn json(&self) -> Value {
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

    /// The verdict as lines for people.
    pub fn text(&self, style: Style) -> String {
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
