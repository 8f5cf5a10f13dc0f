//! The name of a piece of work in a queue that several processes share.

use std::fmt;
use std::str::FromStr;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// The name of one request in the queue of all processes, and whose turn it is in.
///
/// A shared frontier leaves it in the extensions of a request that it leases, and it goes into all records of that request: a request whose
/// process died is done by another one, and the records of both have the same name. The one with the epoch in which the request was settled
/// counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work {
    /// The part of the queue.
    pub partition: u32,
    /// The number of the request in it.
    pub sequence: u64,
    /// Grows whenever another process takes the part of the queue.
    pub epoch: u64,
}

impl Work {
    /// The name without the epoch: `17/4096`.
    pub fn name(&self) -> WorkName {
        WorkName { partition: self.partition, sequence: self.sequence }
    }
}

/// In records: the fields `work` and `epoch`.
impl Serialize for Work {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut fields = to.serialize_struct("Work", 2)?;
        fields.serialize_field("work", &self.name().to_string())?;
        fields.serialize_field("epoch", &self.epoch)?;
        fields.end()
    }
}

/// In the extensions of a leased request: it is the target of a redirect, and turned out to be known only after it had taken the place of the
/// redirected request. It is not fetched; the engine records it as it records a refused redirect ([`Pushed::refused`](super::Pushed::refused)).
///
/// A shared frontier cannot always refuse at once, because another part of the queue knows the target.
#[derive(Clone, Copy, Debug)]
pub struct KnownTarget;

/// The name of a [`Work`], the same on each node. Written as partition and number: `17/4096`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkName {
    /// The part of the queue.
    pub partition: u32,
    /// The number of the request in it.
    pub sequence: u64,
}

impl fmt::Display for WorkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.partition, self.sequence)
    }
}

impl FromStr for WorkName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (partition, sequence) = text.split_once('/').ok_or(())?;
        Ok(Self {
            partition: partition.parse().map_err(|_| ())?,
            sequence: sequence.parse().map_err(|_| ())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_written() {
        let work = Work { partition: 17, sequence: 4_096, epoch: 3 };
        assert_eq!(serde_json::to_string(&work).unwrap(), r#"{"work":"17/4096","epoch":3}"#);
        assert_eq!("17/4096".parse(), Ok(work.name()));
        for wrong in ["", "17", "17/", "/1", "a/1", "4294967296/1", "1/2/3"] {
            assert_eq!(wrong.parse::<WorkName>(), Err(()), "{wrong}");
        }
    }
}
