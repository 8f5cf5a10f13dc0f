//! The counts of a run, and its report.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::batch::Batch;
use crate::record::is_unknown;

/// The counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Documents that were read and fingerprinted.
    pub processed: u64,
    /// Documents for which a flag was written.
    pub flagged: u64,
    /// Documents without any word.
    pub skipped_short: u64,
    /// Documents that could not be read, and sources that could not be read to their end.
    pub errors: u64,
    /// Documents with fewer words than the least number for a flag.
    pub short: u64,
    /// Documents that were indexed already with the same fingerprint.
    pub unchanged: u64,
    /// Documents that replaced another text with the same id.
    pub replaced: u64,
    /// Documents whose language could not be recognised.
    pub unknown_language: u64,
    /// Records of archives that are no documents, by reason: `status`, `media_type`, `revisit`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<&'static str, u64>,
    /// Sources that could not be read to their end.
    #[serde(skip)]
    pub broken: u64,
}

/// The report of a run for machines, as JSON in this order.
#[derive(Clone, Debug, Serialize)]
pub struct RunReport<'a> {
    /// The counts of the run.
    #[serde(flatten)]
    pub counts: &'a Counts,
    /// Seconds from the start to the end.
    pub elapsed_s: f64,
    /// Processor time of the process in seconds.
    pub cpu_s: Option<f64>,
    /// Largest resident size of the process.
    pub peak_rss_bytes: Option<u64>,
    /// Number of documents in the index.
    pub documents: Option<u64>,
    /// Size of the index.
    pub index_bytes: Option<u64>,
    /// How the run ended: see [`Counts::finish_reason`].
    pub finish_reason: &'static str,
    /// Why the run failed, if it did.
    pub failure: Option<&'a str>,
    /// Version of the program.
    pub version: &'static str,
}

impl Counts {
    /// How a run ended: `failed`, `interrupted`, `input_broken` if a source could not be read to its end, or `finished`.
    pub fn finish_reason(&self, is_failed: bool, is_stopped: bool) -> &'static str {
        match () {
            () if is_failed => "failed",
            () if is_stopped => "interrupted",
            () if self.broken > 0 => "input_broken",
            () => "finished",
        }
    }

    /// Adds the counts of a batch that was read.
    pub fn read(&mut self, batch: &Batch) {
        self.errors += (batch.rejected.len() + batch.source_errors.len()) as u64;
        self.broken += batch.source_errors.len() as u64;
        self.processed += batch.stories.len() as u64;
        for (why, number) in &batch.left_out {
            *self.left_out.entry(why).or_default() += number;
        }
        self.unknown_language += batch.stories.iter().filter(|story| is_unknown(story)).count() as u64;
    }
}
