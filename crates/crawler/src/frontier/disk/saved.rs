//! The queue of a job that no crawl is using: for reading it, and for removing a host.

use huntsman_store::{Batch, Store};

use super::row::{Row, damaged, take};
use super::{DiskLimits, Replay, Rows, State, segment_key};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::host::HostKey;
use crate::request::{Fingerprint, Request};

/// The key of the information about the last commit.
pub(super) const COMMIT: &[u8] = b"f/c";
/// Version of its format.
const VERSION: u8 = 1;

/// Information about a commit, for people. The queue itself does not need it, and earlier versions did not write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastCommit {
    pub(crate) at: Timestamp,
    /// Number of leased requests; the queue treats them like any other.
    pub(crate) leased: u64,
}

impl LastCommit {
    /// Version, time and number, little-endian.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&self.at.0.to_le_bytes());
        bytes.extend_from_slice(&self.leased.to_le_bytes());
        bytes
    }

    /// Reads the bytes; `None` if the format is not known to this version.
    fn from_bytes(mut bytes: &[u8]) -> Result<Option<Self>> {
        if u8::from_le_bytes(take(&mut bytes)?) != VERSION {
            return Ok(None);
        }
        let at = Timestamp(u64::from_le_bytes(take(&mut bytes)?));
        Ok(Some(Self { at, leased: u64::from_le_bytes(take(&mut bytes)?) }))
    }
}

/// A queue as of its last commit. It holds in memory what the crawl held there; requests on disk are read one segment
/// at a time.
#[derive(Debug)]
pub(crate) struct SavedQueue(State);

impl SavedQueue {
    /// Reads the journal of a store.
    pub(crate) fn of(store: &dyn Store) -> Result<Self> {
        Replay::of(store, DiskLimits::default()).map(Self)
    }

    /// The information about the last commit.
    pub(crate) fn last_commit(store: &dyn Store) -> Result<Option<LastCommit>> {
        store.get(COMMIT)?.map_or(Ok(None), |bytes| LastCommit::from_bytes(&bytes))
    }

    /// Number of queued requests.
    pub(crate) fn len(&self) -> u64 {
        self.0.queue.len()
    }

    /// Hosts and the numbers of their queued requests, by name.
    pub(crate) fn hosts(&self) -> Vec<(HostKey, u64)> {
        self.0.queue.hosts()
    }

    /// Number of seen fingerprints.
    pub(crate) fn seen(&self, store: &dyn Store) -> Result<u64> {
        self.0.known.len(store)
    }

    /// As [`Known::each`](super::Known::each).
    pub(crate) fn each_seen(
        &self,
        store: &dyn Store,
        visit: &mut dyn FnMut(Fingerprint) -> bool,
    ) -> Result<()> {
        self.0.known.each(store, visit)
    }

    /// Calls `visit` with the queued requests of a host until it returns `false`: first those in memory, then the
    /// segments by their first requests. Returns whether all were visited.
    pub(crate) fn each_of(
        &self,
        host: &HostKey,
        store: &dyn Store,
        visit: &mut dyn FnMut(Request) -> bool,
    ) -> Result<bool> {
        for row in self.0.queue.of_host(host) {
            if !visit(row.request(host)?) {
                return Ok(false);
            }
        }
        for segment in self.0.segments.by_host.get(host).into_iter().flat_map(|all| all.values()) {
            let bytes = store.get(&segment_key(segment.id))?.ok_or_else(damaged)?;
            for (_, row) in segment.clone().load(&bytes, segment.count)? {
                if !visit(Row::stored(&row).request(host)?) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Forgets the queued requests of a host. The returned batch removes them from the store: it is a checkpoint of
    /// all others.
    pub(crate) fn forget(&mut self, host: &HostKey) -> Batch {
        let state = &mut self.0;
        state.queue.remove_host(host);
        let segments = state.segments.by_host.remove(host).unwrap_or_default();
        state.segments.dead.extend(segments.into_values().map(|segment| segment.id));
        let (mut rows, mut batch) = (Rows::default(), Batch::new());
        state.renew(&mut rows, &mut batch);
        state.write_rows(rows, &mut batch);
        batch
    }
}
