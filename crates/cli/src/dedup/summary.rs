//! The results of a run: the line on stderr, and `--report`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use huntsman::dedup::{Batch, Counts, Index, RejectedDocument, RunReport, Telemetry};
use huntsman::files::{self, Output};
use huntsman::human_bytes;
use serde_json::{Value, json};

use super::failure::show;
use crate::exit::{Exit, Failure, Outcome};
use crate::process;
use crate::progress::Screen;
use crate::render::{count, counted, duration, escape};

/// Number of input errors that are shown; all are counted.
const SHOWN: u64 = 20;

/// The counts of a run.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) counts: Counts,
    started: Instant,
    screen: Screen,
    errors_file: Option<BufWriter<File>>,
    documents: Option<u64>,
    index_bytes: Option<u64>,
}

impl Summary {
    /// A summary with all counts at zero.
    ///
    /// # Errors
    /// The file for input errors cannot be created.
    pub(crate) fn new(screen: Screen, errors: Option<&Path>) -> Outcome<Self> {
        let errors_file = match errors {
            Some(path) => Some(BufWriter::new(files::open_empty(path).map_err(|error| {
                Failure::usage(format!("--errors {}: {error}", escape(&path.to_string_lossy())))
            })?)),
            None => None,
        };
        Ok(Self {
            counts: Counts::default(),
            started: Instant::now(),
            screen,
            errors_file,
            documents: None,
            index_bytes: None,
        })
    }

    /// Counts a batch that was read, and reports the errors in it.
    pub(crate) fn read(&mut self, batch: &Batch, telemetry: &Telemetry) -> Outcome<()> {
        let before = self.counts.errors;
        for (bad, number) in batch.rejected.iter().zip(before + 1..) {
            telemetry.record_skipped(None, "error");
            self.bad(bad, number)?;
        }
        for broken in &batch.source_errors {
            let broken = broken.to_string();
            self.warn(&broken);
            self.note(&json!({"source": broken}))?;
        }
        self.counts.read(batch);
        Ok(())
    }

    fn bad(&mut self, bad: &RejectedDocument, number: u64) -> Outcome<()> {
        if number <= SHOWN {
            self.warn(&bad.to_string());
        } else if number == SHOWN + 1 {
            self.warn("more documents that cannot be read are counted and not shown; see --errors FILE");
        }
        let (source, line) = (&*bad.position.source, bad.position.line);
        self.note(&json!({"source": source, "line": line, "error": bad.message}))
    }

    fn note(&mut self, what: &Value) -> Outcome<()> {
        match &mut self.errors_file {
            Some(file) => Ok(writeln!(file, "{what}")?),
            None => Ok(()),
        }
    }

    fn warn(&self, message: &str) {
        show(&self.screen, message);
    }

    /// Updates the progress line.
    pub(crate) fn progress(&self) {
        if self.screen.has_progress() {
            self.screen.status(&self.line());
        }
    }

    fn line(&self) -> String {
        let seconds = self.started.elapsed().as_secs_f64();
        format!(
            "processed {}, flagged {}, skipped_short {}, errors {} in {} ({}/s)",
            count(self.counts.processed),
            count(self.counts.flagged),
            count(self.counts.skipped_short),
            count(self.counts.errors),
            duration(seconds),
            count((self.counts.processed as f64 / seconds.max(1e-3)) as u64),
        )
    }

    /// Queries the index for its size.
    pub(crate) fn ask(&mut self, index: &Index) {
        if let Ok(stats) = index.near().stats() {
            self.documents = Some(stats.documents());
            self.index_bytes = Some(stats.total_bytes());
        }
    }

    /// Prints the results, writes the report, and returns the exit code.
    ///
    /// # Errors
    /// The error of the run, or the report cannot be written.
    pub(crate) fn end(mut self, run: Outcome<()>, is_stopped: bool, report: Option<&Path>) -> Outcome {
        self.screen.clear();
        self.screen.line(&format!("{}\n", self.line()));
        let also: Vec<String> = [
            (self.counts.unchanged, "there already"),
            (self.counts.replaced, "in place of another text"),
            (self.counts.short, "too short to be flagged"),
            (self.counts.unknown_language, "of unknown language, under UND (use lang, or --lang)"),
        ]
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{} {what}", count(number)))
        .collect();
        if !also.is_empty() {
            self.screen.line(&format!("of these {}\n", also.join(", ")));
        }
        let left_out: Vec<String> = self
            .counts
            .left_out
            .iter()
            .map(|(why, number)| {
                let what = match *why {
                    "status" => "with another status than 200",
                    "media_type" => "neither HTML nor text",
                    "revisit" => "whose content is in another record",
                    "without_fingerprint" => "without a fingerprint",
                    other => other,
                };
                format!("{} {what}", count(*number))
            })
            .collect();
        if !left_out.is_empty() {
            self.screen.line(&format!("records left out: {}\n", left_out.join(", ")));
        }
        if let (Some(documents), Some(bytes)) = (self.documents, self.index_bytes) {
            let (documents, bytes) = (counted(documents, "document"), human_bytes(bytes));
            self.screen.line(&format!("index: {documents}, {bytes}\n"));
        }
        if let Some(file) = &mut self.errors_file {
            let written = file.flush().and_then(|()| files::sync(file.get_ref()));
            written.map_err(|error| Failure::crawl(format!("writing the file of --errors: {error}")))?;
        }
        let failure = run.as_ref().err().map(|failure| failure.message.clone());
        if let Some(path) = report {
            let json = serde_json::to_string(&self.report(failure.as_deref(), is_stopped))? + "\n";
            let written = Output::new(path).and_then(|mut file| {
                file.write_all(json.as_bytes())?;
                file.finish()
            });
            written.map_err(|error| {
                Failure::crawl(format!("--report {}: {error}", escape(&path.to_string_lossy())))
            })?;
        }
        run?;
        if is_stopped {
            self.screen.line("stopped; run the same command again to go on\n");
            return Ok(Exit::Interrupted);
        }
        if self.counts.broken > 0 {
            return Err(Failure::crawl(format!(
                "{} could not be read to the end; the rest is done",
                counted(self.counts.broken, "input")
            )));
        }
        Ok(Exit::Done)
    }

    fn report<'a>(&'a self, failure: Option<&'a str>, is_stopped: bool) -> RunReport<'a> {
        RunReport {
            counts: &self.counts,
            elapsed_s: self.started.elapsed().as_secs_f64(),
            cpu_s: process::cpu_seconds(),
            peak_rss_bytes: process::peak_rss(),
            documents: self.documents,
            index_bytes: self.index_bytes,
            finish_reason: self.counts.finish_reason(failure.is_some(), is_stopped),
            failure,
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}
