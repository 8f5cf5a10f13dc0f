//! The counts of a run.

use crate::batch::Batch;
use crate::record::is_unknown;

/// The counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// Sources that could not be read to their end.
    pub broken: u64,
}

impl Counts {
    /// Adds the counts of a batch that was read.
    pub fn read(&mut self, batch: &Batch) {
        self.errors += (batch.bad.len() + batch.broken.len()) as u64;
        self.broken += batch.broken.len() as u64;
        self.processed += batch.stories.len() as u64;
        self.unknown_language += batch.stories.iter().filter(|story| is_unknown(story)).count() as u64;
    }
}
