//! A line of a file of records, and the orders in which lines are sorted.

use huntsman_crawler::WorkName;
use huntsman_disk::{Entry, Fields, put_bytes, put_number};
use serde::Deserialize;
use serde_json::Value;

/// What is read of a line; everything else in it is only copied.
#[derive(Debug, Deserialize)]
pub(super) struct Head {
    settled: Option<Value>,
    work: Option<Value>,
    epoch: Option<Value>,
    url: Option<Value>,
    final_url: Option<Value>,
}

impl Head {
    /// The request that the line says to be settled, and the epoch.
    pub(super) fn settled(&self) -> Option<(WorkName, u64)> {
        self.named(self.settled.as_ref()?)
    }

    /// The request of which the line is a record, and the epoch.
    pub(super) fn work(&self) -> Option<(WorkName, u64)> {
        self.named(self.work.as_ref()?)
    }

    fn named(&self, name: &Value) -> Option<(WorkName, u64)> {
        Some((name.as_str()?.parse().ok()?, self.epoch.as_ref()?.as_u64()?))
    }

    /// The address of the record.
    pub(super) fn url(&self) -> Option<&str> {
        self.url.as_ref()?.as_str()
    }

    /// The addresses under which the content was asked for.
    pub(super) fn urls(&self) -> impl Iterator<Item = &str> {
        [&self.url, &self.final_url].into_iter().filter_map(|url| url.as_ref()?.as_str())
    }
}

/// A line of a request that has a name, in the order of names. Within a name, the lines of an epoch stand together, and what says that the
/// request was settled stands first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WorkLine {
    pub(super) work: WorkName,
    pub(super) epoch: u64,
    pub(super) kind: Kind,
    /// The number of the directory.
    pub(super) directory: usize,
    /// The whole line, without its end; empty if it only says that the request was settled.
    pub(super) text: Vec<u8>,
}

/// What a line of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// It says that the request was settled.
    Settled,
    /// It is a record of the file with this number.
    Record(usize),
}

impl Entry for WorkLine {
    fn heap_size(&self) -> usize {
        self.text.len()
    }

    fn put(&self, _: Option<&Self>, out: &mut Vec<u8>) {
        put_number(u64::from(self.work.partition), out);
        put_number(self.work.sequence, out);
        put_number(self.epoch, out);
        put_number(
            match self.kind {
                Kind::Settled => 0,
                Kind::Record(file) => file as u64 + 1,
            },
            out,
        );
        put_number(self.directory as u64, out);
        put_bytes(&self.text, out);
    }

    fn read(_: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
        let work = WorkName { partition: from.number_u32()?, sequence: from.number()? };
        let epoch = from.number()?;
        let kind = match from.number()? {
            0 => Kind::Settled,
            file => Kind::Record(usize::try_from(file - 1).ok()?),
        };
        let directory = usize::try_from(from.number()?).ok()?;
        Some(Self { work, epoch, kind, directory, text: from.bytes()?.to_owned() })
    }
}

/// An address that was refused before it entered the queue, or one that has a record: the latter have no line, and stand first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Refusal {
    pub(super) url: String,
    pub(super) text: Option<Vec<u8>>,
}

impl Entry for Refusal {
    fn heap_size(&self) -> usize {
        self.url.len() + self.text.as_ref().map_or(0, Vec::len)
    }

    fn put(&self, _: Option<&Self>, out: &mut Vec<u8>) {
        put_bytes(self.url.as_bytes(), out);
        // No line is empty.
        put_bytes(self.text.as_deref().unwrap_or_default(), out);
    }

    fn read(_: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
        let url = String::from_utf8(from.bytes()?.to_owned()).ok()?;
        let text = Some(from.bytes()?.to_owned()).filter(|text| !text.is_empty());
        Some(Self { url, text })
    }
}
