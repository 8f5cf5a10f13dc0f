//! A frontier that is too simple to be wrong: one list, scanned and sorted every time.

use std::collections::{BTreeMap, BTreeSet};

use huntsman_crawler::{End, Fingerprint, HostKey, Order, Request, Timestamp, meta};

#[derive(Clone, Debug)]
struct Entry {
    request: Request,
    host: HostKey,
    rank: Rank,
    /// The time until which the request is delayed.
    at: Option<Timestamp>,
}

#[derive(Debug)]
pub(super) struct Model {
    order: Order,
    queue: Vec<Entry>,
    leased: BTreeMap<u64, Entry>,
    seen: BTreeSet<Fingerprint>,
    sequence: u64,
    leases: u64,
}

#[derive(Debug, Default)]
pub(super) struct Expected {
    pub(super) accepted: u64,
    pub(super) duplicates: u64,
    pub(super) refused: Vec<Request>,
}

/// Leased requests with the model's names of their leases, the number of further due requests, and the time of the
/// first delayed one.
pub(super) type ModelLease = (Vec<(u64, Request)>, u64, Option<Timestamp>);

impl Model {
    pub(super) fn new(order: Order) -> Self {
        Self {
            order,
            queue: Vec::new(),
            leased: BTreeMap::new(),
            seen: BTreeSet::new(),
            sequence: 0,
            leases: 0,
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.queue.len() as u64
    }

    /// When the first work of each host is due.
    pub(super) fn earliest(&self) -> BTreeMap<HostKey, Timestamp> {
        let mut earliest = BTreeMap::new();
        for entry in &self.queue {
            let at = entry.at.unwrap_or(Timestamp(0));
            let known = earliest.entry(entry.host.clone()).or_insert(at);
            *known = at.min(*known);
        }
        earliest
    }

    pub(super) fn counts(&self) -> BTreeMap<HostKey, u64> {
        let mut counts = BTreeMap::new();
        for entry in &self.queue {
            *counts.entry(entry.host.clone()).or_insert(0) += 1;
        }
        counts
    }

    fn offer(&mut self, request: Request) -> Option<Request> {
        if !request.unfiltered && !self.seen.insert(request.fingerprint()) {
            return Some(request);
        }
        self.sequence += 1;
        let at = request.not_before;
        let (host, rank) = (request.host(), rank(&request, self.sequence, self.order));
        self.queue.push(Entry { request, host, rank, at });
        None
    }

    pub(super) fn push(&mut self, requests: Vec<Request>, expected: &mut Expected) {
        for request in requests {
            match self.offer(request) {
                None => expected.accepted += 1,
                Some(_) => expected.duplicates += 1,
            }
        }
    }

    pub(super) fn lease(&mut self, host: &HostKey, max: usize, now: Timestamp) -> ModelLease {
        for entry in &mut self.queue {
            if entry.host == *host && entry.at.is_some_and(|at| at <= now) {
                entry.at = None;
            }
        }
        self.queue.sort_by(|a, b| a.rank.partial_cmp(&b.rank).expect("scores are numbers"));
        let mut handed = Vec::new();
        while handed.len() < max {
            let first = self.queue.iter().position(|e| e.host == *host && e.at.is_none());
            let Some(first) = first else { break };
            let entry = self.queue.remove(first);
            self.leases += 1;
            handed.push((self.leases, entry.request.clone()));
            self.leased.insert(self.leases, entry);
        }
        let of_host = || self.queue.iter().filter(|entry| entry.host == *host);
        let due = of_host().filter(|entry| entry.at.is_none()).count() as u64;
        (handed, due, of_host().filter_map(|entry| entry.at).min())
    }

    pub(super) fn settle(&mut self, lease: u64, end: End, children: Vec<Request>, expected: &mut Expected) {
        if let Some(entry) = self.leased.remove(&lease) {
            match end {
                End::Done => {}
                End::Release => self.queue.push(entry),
                End::Reschedule(request) => match self.offer(*request) {
                    None => expected.accepted += 1,
                    Some(known) => expected.refused.push(known),
                },
            }
        }
        self.push(children, expected);
    }
}

/// The sort key of requests, lowest first: priority, start request, score, order of arrival.
type Rank = (i64, bool, f64, i128);

fn rank(request: &Request, sequence: u64, order: Order) -> Rank {
    let is_start = request.depth == 0 && request.meta_flag(meta::IS_START_REQUEST);
    let score = match order {
        Order::BestFirst => -request.meta_value(meta::SCORE).unwrap_or(0.0),
        Order::Bfs | Order::Dfs => 0.0,
    };
    let sequence = i128::from(sequence);
    let sequence = if order == Order::Dfs && !is_start { -sequence } else { sequence };
    (-i64::from(request.priority), is_start, score, sequence)
}
