//! What a crawl found, as it left it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use huntsman_crawler::{Error, Result};
use huntsman_output::{AUDITED, DROPS, JUDGING};
use serde::Deserialize;

use crate::earlier::{Earlier, each_line};
use crate::record::Record;
use crate::segment::{Entry, Kept, Refusal, each_entry};
use crate::site::Refused;
use huntsman_disk::{Scratch, Spool};

/// What a crawl found: its answers, and the URLs that it did not request.
#[derive(Debug)]
pub struct Found {
    pub(crate) segment: Spool,
    /// The file of requests that ended without a page; `None` if they are in the segment.
    drops: Option<PathBuf>,
    /// Codes whose facts it does not have.
    pub(crate) not_judged: BTreeSet<String>,
    /// Where files may be kept that nobody needs after the audit.
    pub(crate) scratch: Scratch,
}

impl Found {
    /// What a crawl wrote into this directory. Files that are needed while it is judged are in its folder `state`.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn open(directory: &Path) -> Result<Self> {
        let scratch = Scratch::at(directory.join(JUDGING));
        let segment = Spool::open(&directory.join(AUDITED), &scratch)?;
        Ok(Self { segment, drops: Some(directory.join(DROPS)), not_judged: BTreeSet::new(), scratch })
    }

    /// What the crawl of an earlier audit found, to be judged again, and whether that crawl ended by itself.
    ///
    /// # Errors
    /// The directory has no audit that has ended, or a file cannot be read or was changed.
    pub fn again(directory: &Path) -> Result<(Self, bool)> {
        let earlier = Earlier::open(directory)?;
        let found = Self::open(directory)?;
        if let Some(bytes) = earlier.segment_bytes().filter(|bytes| *bytes != found.segment.len()) {
            return Err(Error::msg(format!(
                "{} has {} bytes, but the audit had written {bytes}: it was changed since; restore it from a copy, or audit anew with --fresh",
                found.segment.name(),
                found.segment.len()
            )));
        }
        Ok((Self { not_judged: earlier.not_judged().clone(), ..found }, earlier.is_complete()))
    }

    /// What was kept without a directory.
    pub(crate) fn kept(kept: &Kept, scratch: &Scratch) -> Result<Self> {
        let segment = kept.take(Spool::new(scratch))?;
        Ok(Self { segment, drops: None, not_judged: BTreeSet::new(), scratch: scratch.clone() })
    }

    /// The URL of the first answer.
    ///
    /// # Errors
    /// The answers cannot be read.
    pub fn first_url(&self) -> Result<Option<String>> {
        let mut first: Option<Record> = None;
        each_entry(&self.segment, &mut |_, entry| {
            if let (None, Entry::Answer(parts)) = (&first, entry) {
                first = Some(parts.record()?);
            }
            Ok(())
        })?;
        Ok(first.map(|record| record.url))
    }

    /// Writes the answers into the directory of an audit, so that they can be [opened](Self::open) again.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(AUDITED);
        crate::tables::written(&path, |file| Ok(self.segment.copy(file)?))
    }

    /// Reads the URLs that were not requested, as far as they are in a file of their own.
    pub(crate) fn each_drop(&self, each: &mut dyn FnMut(Refusal) -> Result<()>) -> Result<()> {
        #[derive(Deserialize)]
        struct Line {
            url: String,
            reason: String,
            detail: Option<String>,
        }
        let Some(drops) = &self.drops else { return Ok(()) };
        each_line(drops, &mut |Line { url, reason, detail }| {
            each(Refusal { url, refused: Refused { reason, detail } })
        })
    }
}
