//! The first answers of a site, in memory: rules and reports read the answers some thirty times, and most sites have few.

use std::sync::Arc;

use huntsman_crawler::Result;
use huntsman_disk::List;

use super::answers::{Known, Stored};
use crate::record::Record;
use crate::segment::Locator;

/// An answer in memory.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) record: Arc<Record>,
    /// Links of the page within the site, and to other sites.
    pub(super) links: (u32, u32),
    /// Where its references are, if it has any.
    pub(super) references: Option<Locator>,
}

impl Held {
    pub(super) fn of(stored: &Stored<'_>, is_start: bool) -> Result<Self> {
        let mut record = stored.record()?;
        // The crawl may have begun with another request for the same URL.
        record.is_start = is_start;
        let references = stored.has_references.then_some(stored.locator);
        Ok(Self { record: Arc::new(record), links: stored.links, references })
    }
}

/// The answers of the first URLs.
#[derive(Debug, Default)]
pub(super) struct Remembered(Vec<Option<Held>>);

impl Remembered {
    /// The first answers, as many as take about this number of bytes.
    pub(super) fn of(answers: &List<Known>, room: usize, is_start: impl Fn(u32) -> bool) -> Result<Self> {
        let (mut held, mut bytes) = (Vec::new(), 0);
        let mut cursor = answers.cursor();
        while let Some(known) = cursor.next()? {
            if known.is_refusal {
                continue;
            }
            let (stored, place) = (known.stored()?, known.number as usize);
            // In memory a record takes more than in its file: texts have a length and a capacity.
            bytes += size_of::<Record>()
                + 2 * stored.length()
                + (place + 1 - held.len()) * size_of::<Option<Held>>();
            if bytes > room {
                break;
            }
            held.resize(place, None);
            held.push(Some(Held::of(&stored, is_start(known.number))?));
        }
        Ok(Self(held))
    }

    /// The number of the first URL whose answer is on disk only.
    pub(super) fn end(&self) -> u32 {
        self.0.len() as u32
    }

    /// The answer of a URL before [`end`](Self::end); `None` if it has none.
    pub(super) fn get(&self, number: u32) -> Option<&Held> {
        self.0.get(number as usize)?.as_ref()
    }
}
