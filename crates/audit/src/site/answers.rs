//! What is kept of each answer, by the number of its URL.

use huntsman_crawler::{Error, Result};

use crate::record::Record;
use crate::segment::{Judged, Locator, Refusal};
use crate::site::Refused;
use huntsman_disk::{Entry, Fields, Numbered, put_bytes, put_number};

/// What is known of a URL: an answer, or why it was not requested.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Known {
    pub(crate) number: u32,
    pub(crate) is_refusal: bool,
    bytes: Vec<u8>,
}

/// The parts of an answer.
#[derive(Debug)]
pub(crate) struct Stored<'a> {
    /// Where its references are.
    pub(crate) locator: Locator,
    /// Links of the page within the site, and to other sites.
    pub(crate) links: (u32, u32),
    pub(crate) has_references: bool,
    record: &'a [u8],
    judged: &'a [u8],
}

impl Known {
    /// An answer. `record` and `judged` are as they stand in the segment.
    pub(crate) fn answer(
        number: u32,
        locator: Locator,
        (links, has_references): ((u32, u32), bool),
        [record, judged]: [&[u8]; 2],
    ) -> Self {
        let mut bytes = Vec::with_capacity(record.len() + judged.len() + 24);
        for field in [locator.frame, locator.entry.into(), links.0.into(), links.1.into()] {
            put_number(field, &mut bytes);
        }
        bytes.push(has_references.into());
        put_bytes(record, &mut bytes);
        bytes.extend_from_slice(judged);
        Self { number, is_refusal: false, bytes }
    }

    /// A URL that was not requested.
    pub(crate) fn refusal(number: u32, refusal: &Refusal) -> Result<Self> {
        Ok(Self { number, is_refusal: true, bytes: serde_json::to_vec(refusal)? })
    }

    /// The answer; an error if it is none.
    pub(crate) fn stored(&self) -> Result<Stored<'_>> {
        let parts = || {
            let mut fields = Fields::new(&self.bytes);
            let locator = Locator { frame: fields.number()?, entry: fields.number_u32()? };
            let links = (fields.number_u32()?, fields.number_u32()?);
            let has_references = fields.byte()? == 1;
            let record = fields.bytes()?;
            Some(Stored { locator, links, has_references, record, judged: fields.rest() })
        };
        parts().filter(|_| !self.is_refusal).ok_or_else(|| Error::msg("reading an answer: it is none"))
    }

    pub(crate) fn refused(&self) -> Result<Refused> {
        Ok(serde_json::from_slice::<Refusal>(&self.bytes)?.refused)
    }
}

impl Stored<'_> {
    /// Bytes of the record as it is stored.
    pub(crate) fn length(&self) -> usize {
        self.record.len()
    }

    pub(crate) fn record(&self) -> Result<Record> {
        serde_json::from_slice(self.record).map_err(|error| Error::from(error).context("reading a record"))
    }

    pub(crate) fn judged(&self) -> Result<Judged> {
        if self.judged.is_empty() {
            return Ok(Judged::default());
        }
        serde_json::from_slice(self.judged).map_err(|error| Error::from(error).context("reading findings"))
    }
}

impl Entry for Known {
    fn heap_size(&self) -> usize {
        self.bytes.len() + 16
    }

    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        put_number(u64::from(self.number - before.map_or(0, |before| before.number)), out);
        out.push(u8::from(self.is_refusal));
        put_bytes(&self.bytes, out);
    }

    fn read(before: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
        let number = before.map_or(0, |before| before.number).checked_add(from.number_u32()?)?;
        Some(Self { number, is_refusal: from.byte()? == 1, bytes: from.bytes()?.to_vec() })
    }
}

impl Numbered for Known {
    fn number(&self) -> u32 {
        self.number
    }
}
