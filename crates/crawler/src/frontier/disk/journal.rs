//! The journal: the changes of the queue in order. A checkpoint is a journal that starts from an empty state.
//!
//! One commit appends one row. Requests that were added and removed between two commits leave no trace in it.

use std::sync::Arc;

use hashbrown::HashMap;

use super::super::queue::QueuePosition;
use super::row::{damaged, take};
use crate::error::Result;
use crate::host::HostKey;
use crate::request::Fingerprint;

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// A request is in memory, queued or leased.
    Add(Arc<[u8]>),
    /// The request with this sequence is no longer in memory: it is done, or was spilled.
    Gone(u64),
    /// Fingerprints were added to the seen set.
    Seen(Vec<u128>),
    /// Requests of a host are in a segment on disk.
    Segment(Segment),
    /// Requests of a segment were loaded into memory: all before this index.
    Loaded { id: u64, until: u32 },
    /// All seen fingerprints that were not in a run yet are now in this run.
    Run(u64),
    /// The highest sequence, segment and run so far.
    Counters { sequence: u64, segment: u64, run: u64 },
}

/// Spilled requests of one host, in the order of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) id: u64,
    pub(super) host: HostKey,
    pub(super) count: u32,
    /// Index of the next request; earlier ones are in memory or done.
    pub(super) next: u32,
    /// The place of the request at `next`.
    pub(super) first: QueuePosition,
}

/// The changes since the last commit.
#[derive(Debug, Default)]
pub(super) struct Journal {
    ops: Vec<Option<Op>>,
    /// Positions of added requests that were not removed since.
    fresh: HashMap<u64, usize, foldhash::fast::RandomState>,
    bytes: usize,
}

impl Journal {
    /// Records that a request was added.
    pub(super) fn add(&mut self, sequence: u64, row: Arc<[u8]>) {
        self.bytes += row.len();
        self.fresh.insert(sequence, self.ops.len());
        self.ops.push(Some(Op::Add(row)));
    }

    /// Records that a request left the memory.
    pub(super) fn gone(&mut self, sequence: u64) {
        match self.fresh.remove(&sequence).and_then(|at| self.ops.get_mut(at)) {
            Some(op) => {
                if let Some(Op::Add(row)) = op.take() {
                    self.bytes -= row.len();
                }
            }
            None => {
                self.bytes += 9;
                self.ops.push(Some(Op::Gone(sequence)));
            }
        }
    }

    /// Records that a fingerprint was seen.
    pub(super) fn seen(&mut self, fingerprint: Fingerprint) {
        self.bytes += 16;
        match self.ops.last_mut() {
            Some(Some(Op::Seen(all))) => all.push(fingerprint.0),
            _ => self.ops.push(Some(Op::Seen(vec![fingerprint.0]))),
        }
    }

    pub(super) fn push(&mut self, op: Op) {
        self.bytes += 64;
        self.ops.push(Some(op));
    }

    /// Approximate number of bytes that the next commit writes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn take(&mut self) -> impl Iterator<Item = Op> + use<> {
        let taken = std::mem::take(self);
        taken.ops.into_iter().flatten()
    }
}

/// Appends the encoding of a step.
pub(super) fn encode(op: &Op, out: &mut Vec<u8>) {
    match op {
        Op::Add(row) => {
            out.push(1);
            put_bytes(row, out);
        }
        Op::Gone(sequence) => {
            out.push(2);
            out.extend_from_slice(&sequence.to_le_bytes());
        }
        Op::Seen(all) => {
            out.push(3);
            out.extend_from_slice(&length(all.len()));
            all.iter().for_each(|fingerprint| out.extend_from_slice(&fingerprint.to_le_bytes()));
        }
        Op::Segment(segment) => {
            out.push(4);
            out.extend_from_slice(&segment.id.to_le_bytes());
            out.extend_from_slice(&segment.count.to_le_bytes());
            out.extend_from_slice(&segment.next.to_le_bytes());
            out.extend_from_slice(&segment.first.priority.0.to_le_bytes());
            out.push(u8::from(segment.first.is_start));
            out.extend_from_slice(&segment.first.score.to_le_bytes());
            out.extend_from_slice(&segment.first.sequence.to_le_bytes());
            put_bytes(segment.host.as_str().as_bytes(), out);
        }
        Op::Loaded { id, until } => {
            out.push(5);
            out.extend_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&until.to_le_bytes());
        }
        Op::Run(id) => {
            out.push(6);
            out.extend_from_slice(&id.to_le_bytes());
        }
        Op::Counters { sequence, segment, run } => {
            out.push(7);
            for number in [sequence, segment, run] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
    }
}

/// Reads the next step.
pub(super) fn decode(rest: &mut &[u8]) -> Result<Op> {
    Ok(match u8::from_le_bytes(take(rest)?) {
        1 => Op::Add(take_bytes(rest)?.into()),
        2 => Op::Gone(u64::from_le_bytes(take(rest)?)),
        3 => {
            let count = u32::from_le_bytes(take(rest)?) as usize;
            // The stored number alone must not decide how much memory is allocated.
            let mut all = Vec::with_capacity(count.min(rest.len() / 16));
            for _ in 0..count {
                all.push(u128::from_le_bytes(take(rest)?));
            }
            Op::Seen(all)
        }
        4 => {
            let id = u64::from_le_bytes(take(rest)?);
            let count = u32::from_le_bytes(take(rest)?);
            let next = u32::from_le_bytes(take(rest)?);
            if next > count {
                return Err(damaged());
            }
            let first = QueuePosition {
                priority: std::cmp::Reverse(i32::from_le_bytes(take(rest)?)),
                is_start: u8::from_le_bytes(take(rest)?) != 0,
                score: u64::from_le_bytes(take(rest)?),
                sequence: u64::from_le_bytes(take(rest)?),
            };
            let name = std::str::from_utf8(take_bytes(rest)?).map_err(|_| damaged())?;
            Op::Segment(Segment { id, host: HostKey::new(name), count, next, first })
        }
        5 => Op::Loaded { id: u64::from_le_bytes(take(rest)?), until: u32::from_le_bytes(take(rest)?) },
        6 => Op::Run(u64::from_le_bytes(take(rest)?)),
        7 => Op::Counters {
            sequence: u64::from_le_bytes(take(rest)?),
            segment: u64::from_le_bytes(take(rest)?),
            run: u64::from_le_bytes(take(rest)?),
        },
        _ => return Err(damaged()),
    })
}

fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).expect("a step is far smaller than 4 GiB").to_le_bytes()
}

/// Appends bytes preceded by their length.
pub(super) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&length(bytes.len()));
    out.extend_from_slice(bytes);
}

/// Reads the output of [`put_bytes`].
pub(super) fn take_bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8]> {
    let length = u32::from_le_bytes(take(rest)?) as usize;
    let (bytes, tail) = rest.split_at_checked(length).ok_or_else(damaged)?;
    *rest = tail;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_as_they_were_written() {
        let first = QueuePosition { is_start: true, score: 7, sequence: 9, ..QueuePosition::FIRST };
        let segment = Segment { id: 3, host: HostKey::new("a.example"), count: 5, next: 2, first };
        let ops = [
            Op::Add([1, 2, 3][..].into()),
            Op::Gone(u64::MAX),
            Op::Seen(vec![1, u128::MAX]),
            Op::Segment(segment),
            Op::Loaded { id: 3, until: 4 },
            Op::Run(8),
            Op::Counters { sequence: 1, segment: 2, run: 3 },
        ];
        let mut bytes = Vec::new();
        ops.iter().for_each(|op| encode(op, &mut bytes));
        let mut rest = &bytes[..];
        for op in &ops {
            assert_eq!(decode(&mut rest).unwrap(), *op);
        }
        assert!(rest.is_empty());
        // Every truncated prefix is an error, never a panic.
        for end in 0..bytes.len() {
            let mut rest = &bytes[..end];
            while !rest.is_empty() {
                if decode(&mut rest).is_err() {
                    break;
                }
            }
        }
        assert!(decode(&mut &[9u8, 0, 0][..]).is_err());
        assert!(decode(&mut &[3u8, 255, 255, 255, 255, 0][..]).is_err());
    }

    #[test]
    fn requests_that_were_queued_and_taken_before_a_commit_leave_no_trace() {
        let mut journal = Journal::default();
        journal.add(1, [1][..].into());
        journal.add(2, [2][..].into());
        journal.gone(1);
        journal.gone(7);
        assert_eq!(journal.take().collect::<Vec<_>>(), [Op::Add([2][..].into()), Op::Gone(7)]);
        journal.gone(2);
        assert_eq!(journal.take().collect::<Vec<_>>(), [Op::Gone(2)]);
    }
}
