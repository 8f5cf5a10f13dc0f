//! Good answers of earlier checks, in a file of JSON lines.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::time::Duration;

use huntsman_crawler::{Error, Result, Timestamp};
use serde::{Deserialize, Serialize};

use super::answer::Answer;

/// Largest number of answers that are kept.
const MAX_ANSWERS: usize = 1_000_000;

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    /// RFC 3339.
    at: String,
    #[serde(flatten)]
    answer: Answer,
}

/// Answers by URL, with the time at which they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cache(HashMap<String, (Timestamp, Answer)>);

impl Cache {
    /// Reads the answers that are not older than `max_age`. A file that is not there is empty.
    ///
    /// # Errors
    /// The file cannot be read, or a line is no answer.
    pub(crate) fn read(file: &Path, max_age: Duration, now: Timestamp) -> Result<Self> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::usage(format!("the cache of links {}: {error}; delete it to begin anew", file.display()))
        };
        let opened = match std::fs::File::open(file) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(failed(&error)),
        };
        let mut answers = HashMap::new();
        for (number, line) in BufReader::new(opened).lines().enumerate() {
            let line = line.map_err(|error| failed(&error))?;
            let line: Line = serde_json::from_str(&line)
                .map_err(|error| failed(&format_args!("line {}: {error}", number + 1)))?;
            let at = Timestamp::from_rfc3339(&line.at)
                .ok_or_else(|| failed(&format_args!("line {}: \"{}\" is no time", number + 1, line.at)))?;
            if now.since(at) <= max_age && at <= now {
                answers.insert(line.answer.url.clone(), (at, line.answer));
            }
        }
        Ok(Self(answers))
    }

    /// The answer to a URL.
    pub(crate) fn get(&self, url: &str) -> Option<&Answer> {
        self.0.get(url).map(|(_, answer)| answer)
    }

    pub(crate) fn insert(&mut self, answer: Answer, at: Timestamp) {
        self.0.insert(answer.url.clone(), (at, answer));
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, file: &Path) -> Result<()> {
        let mut answers: Vec<&(Timestamp, Answer)> = self.0.values().collect();
        // The latest ones are kept.
        answers.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.url.cmp(&b.1.url)));
        huntsman_files::replace(file, |out| -> io::Result<()> {
            for (at, answer) in answers.into_iter().take(MAX_ANSWERS) {
                serde_json::to_writer(&mut *out, &Line { at: at.to_rfc3339(), answer: answer.clone() })?;
                out.write_all(b"\n")?;
            }
            Ok(())
        })
        .map_err(|error| Error::usage(format!("the cache of links {}: {error}", file.display())))
    }
}
