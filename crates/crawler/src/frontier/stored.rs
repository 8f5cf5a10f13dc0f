//! A queued request in the form that a frontier outside of the process stores.

use super::Order;
use super::queue::QueuePosition;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::host::HostKey;
use crate::request::{Fingerprint, Request};

/// Version of the bytes.
const VERSION: u8 = 1;

/// A request with what a queue must know of it, so that the queue need not read the request itself.
///
/// Within a host, requests leave in the order of [`rank`](Self::rank), and requests of equal rank in the order in which they arrived, or in
/// its reverse with [`is_latest_first`](Self::is_latest_first).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRequest {
    /// The slot.
    pub host: HostKey,
    /// Decides whether the request is known, unless it is unfiltered.
    pub fingerprint: Fingerprint,
    /// Whether the duplicate filter is neither asked nor told.
    pub is_unfiltered: bool,
    /// Priority, start requests, and score as bytes that sort as requests leave.
    pub rank: [u8; Self::RANK],
    /// Whether the one that arrived last leaves first.
    pub is_latest_first: bool,
    /// Before this time the request does not leave.
    pub not_before: Option<Timestamp>,
    /// The request itself, which [`request`](Self::request) reads: a version, the fingerprint, and JSON.
    pub bytes: Vec<u8>,
}

impl StoredRequest {
    /// Length of a rank.
    pub const RANK: usize = 13;

    /// The stored form of a request whose slot and fingerprint are assigned. Typed values (`extensions`) are left out.
    pub fn new(request: &Request, order: Order) -> Self {
        let fingerprint = request.fingerprint();
        let position = QueuePosition::of(request, order, 0);
        let mut rank = [0; Self::RANK];
        // The highest priority comes first; the difference of two numbers of 32 bits, of which the first is the largest, has 32 bits.
        let below = i32::MAX.abs_diff(position.priority.0);
        rank[..4].copy_from_slice(&below.to_be_bytes());
        rank[4] = u8::from(position.is_start);
        rank[5..].copy_from_slice(&position.score.to_be_bytes());
        let mut bytes = Vec::with_capacity(80 + request.url.as_str().len());
        bytes.push(VERSION);
        bytes.extend_from_slice(&fingerprint.0.to_be_bytes());
        request.write_json(&mut bytes);
        Self {
            host: request.host(),
            fingerprint,
            is_unfiltered: request.unfiltered,
            rank,
            is_latest_first: position.sequence != 0,
            not_before: request.not_before,
            bytes,
        }
    }

    /// Reads a request of a host from its bytes, with slot and fingerprint assigned.
    ///
    /// # Errors
    /// Another version of the program wrote the bytes, or they are damaged.
    pub fn request(bytes: &[u8], host: &HostKey) -> Result<Request> {
        let damaged = || Error::msg(format!("a stored request of {host} cannot be read"));
        let (version, rest) = bytes.split_first().ok_or_else(damaged)?;
        if *version != VERSION {
            return Err(Error::msg(format!(
                "a stored request of {host} has form {version}, and this version reads {VERSION}: crawl on with the version that wrote it"
            )));
        }
        let (fingerprint, json) = rest.split_first_chunk::<16>().ok_or_else(damaged)?;
        let value = serde_json::from_slice(json).map_err(|_| damaged())?;
        let mut request = Request::from_json(value)?;
        request.assign_slot(host.clone());
        request.assign_fingerprint(Fingerprint(u128::from_be_bytes(*fingerprint)));
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta;

    fn stored(priority: i32, score: f64) -> StoredRequest {
        let request = Request::parse("http://a.example/x").unwrap().priority(priority).meta("score", score);
        StoredRequest::new(&request, Order::BestFirst)
    }

    #[test]
    fn ranks_sort_as_requests_leave() {
        let start = Request::parse("http://a.example/").unwrap().with_meta(meta::IS_START_REQUEST, true);
        let ranks = [
            stored(i32::MAX, 0.0),
            stored(1, -5.0),
            stored(0, 1e300),
            stored(0, 0.5),
            stored(0, -0.5),
            StoredRequest::new(&start, Order::BestFirst),
            stored(-1, 9.0),
            stored(i32::MIN, 9.0),
        ]
        .map(|stored| stored.rank);
        assert!(ranks.is_sorted(), "{ranks:?}");
    }

    #[test]
    fn only_found_requests_of_a_depth_first_crawl_leave_latest_first() {
        let start = Request::parse("http://a.example/").unwrap().with_meta(meta::IS_START_REQUEST, true);
        let found = Request::parse("http://a.example/x").unwrap();
        let is = |request: &Request, order| StoredRequest::new(request, order).is_latest_first;
        assert!(is(&found, Order::Dfs) && !is(&start, Order::Dfs) && !is(&found, Order::Bfs));
    }

    #[test]
    fn damaged_bytes_and_those_of_another_version_are_told() {
        let mut stored = stored(0, 0.0);
        let read = |bytes: &[u8]| StoredRequest::request(bytes, &stored.host);
        assert!(read(&stored.bytes).is_ok());
        for end in [0, 1, 16, 17, stored.bytes.len() - 1] {
            assert!(read(&stored.bytes[..end]).is_err(), "{end}");
        }
        stored.bytes[0] = 9;
        let error = StoredRequest::request(&stored.bytes, &stored.host).unwrap_err().to_string();
        assert!(error.contains("form 9"), "{error}");
    }
}
