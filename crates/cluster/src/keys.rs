//! Names of keys, and requests as the scripts read them.

use huntsman_crawler::{HostKey, Order, Request, StoredRequest};
use xxhash_rust::xxh3::xxh3_64;

/// The largest time that the scripts count exactly, in microseconds; it is in the year 2255.
pub(crate) const LAST: u64 = (1 << 53) - 1;

/// The keys of a job.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    job: String,
}

impl Keys {
    pub(crate) fn new(job: &str) -> Self {
        Self { job: job.to_owned() }
    }

    pub(crate) fn meta(&self) -> String {
        format!("hm:{{{}}}:meta", self.job)
    }

    pub(crate) fn nodes(&self) -> String {
        format!("hm:{{{}}}:nodes", self.job)
    }

    /// The hash of a partition, from whose name scripts make the names of its other keys.
    pub(crate) fn own(&self, partition: u32) -> String {
        format!("hm:{{{}.{partition}}}:own", self.job)
    }

    /// What components noted about hosts of a partition.
    pub(crate) fn notes(&self, partition: u32) -> String {
        format!("hm:{{{}.{partition}}}:notes", self.job)
    }
}

/// The partition of a host.
pub(crate) fn partition_of(host: &HostKey, partitions: u32) -> u32 {
    // The remainder is less than the divisor.
    (xxh3_64(host.as_str().as_bytes()) % u64::from(partitions)) as u32
}

const UNFILTERED: u8 = 1;
const LATEST_FIRST: u8 = 2;
const DELAYED: u8 = 4;
/// The target of a redirect from another partition.
const REDIRECTED: u8 = 8;
/// Stands in a queue before a request that was known when it arrived; no stored request begins with it.
const KNOWN: u8 = 255;

/// A request for the scripts that took the place of one in another partition. If it is known it is queued all the same, and marked.
pub(crate) fn packed_redirect(request: &Request, order: Order, seen_bits: u32) -> Vec<u8> {
    let mut packed = packed(request, order, seen_bits);
    packed[0] |= REDIRECTED;
    packed
}

/// Whether a request in a queue was known when it arrived, and the stored request itself.
pub(crate) fn unmarked(row: &[u8]) -> (bool, &[u8]) {
    match row.split_first() {
        Some((&KNOWN, rest)) => (true, rest),
        _ => (false, row),
    }
}

/// A request for the scripts: flags, number of the set of known requests, fingerprint in that set, rank, time, host, and the request.
pub(crate) fn packed(request: &Request, order: Order, seen_bits: u32) -> Vec<u8> {
    let stored = StoredRequest::new(request, order);
    let flags = [
        (UNFILTERED, stored.is_unfiltered),
        (LATEST_FIRST, stored.is_latest_first),
        (DELAYED, stored.not_before.is_some()),
    ];
    let flags = flags.iter().filter(|(_, is_set)| *is_set).fold(0, |all, (flag, _)| all | flag);
    // The sets are small, and hold whole numbers, so that the server keeps them as sorted arrays.
    let bucket = (stored.fingerprint.0 >> 96) as u32 & ((1 << seen_bits) - 1);
    let print = (stored.fingerprint.0 as u64).cast_signed().to_string();
    let due = stored.not_before.map_or(0, |at| at.0.min(LAST));
    let host = stored.host.as_str().as_bytes();
    let mut out = Vec::with_capacity(64 + host.len() + stored.bytes.len());
    out.push(flags);
    out.extend_from_slice(&bucket.to_be_bytes());
    out.push(u8::try_from(print.len()).expect("a number has at most twenty digits"));
    out.extend_from_slice(print.as_bytes());
    out.extend_from_slice(&stored.rank);
    out.extend_from_slice(&due.to_be_bytes());
    for part in [host, &stored.bytes] {
        out.extend_from_slice(
            &u32::try_from(part.len()).expect("a request is far smaller than 4 GB").to_be_bytes(),
        );
        out.extend_from_slice(part);
    }
    out
}
