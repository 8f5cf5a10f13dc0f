//! stand-in
#![allow(missing_docs, missing_debug_implementations)]
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Mutex;

use super::*;
use crate::request::Fingerprint;

#[derive(Default)]
struct HostQueue {
    due: BTreeMap<(i32, bool), VecDeque<Request>>,
    delayed: BTreeMap<(Timestamp, u64), Request>,
}
impl HostQueue {
    fn len(&self) -> usize {
        self.due.values().map(VecDeque::len).sum::<usize>() + self.delayed.len()
    }
}
#[derive(Default)]
struct State {
    hosts: HashMap<HostKey, HostQueue>,
    seen: HashSet<Fingerprint>,
    leased: HashMap<LeaseId, Request>,
    next: u64,
    len: u64,
}
pub struct MemoryFrontier(Mutex<State>, Order);
impl MemoryFrontier {
    pub fn new(order: Order) -> Self {
        Self(Mutex::default(), order)
    }
}
impl State {
    fn add(&mut self, r: Request, front: bool, pushed: &mut Pushed) {
        let host = r.host();
        self.next += 1;
        let seq = self.next;
        let q = self.hosts.entry(host.clone()).or_default();
        if q.len() == 0 {
            pushed.woken.push(host);
        }
        self.len += 1;
        if let Some(at) = r.not_before {
            q.delayed.insert((at, seq), r);
        } else {
            let start = r.meta_flag("is_start_request");
            let d = q.due.entry((-r.priority, start)).or_default();
            if front && !start { d.push_front(r) } else { d.push_back(r) }
        }
    }
    fn push(&mut self, r: Request, order: Order, pushed: &mut Pushed) -> Option<Request> {
        if !r.unfiltered && !self.seen.insert(r.fingerprint()) {
            pushed.duplicates += 1;
            return Some(r);
        }
        pushed.accepted += 1;
        self.add(r, order == Order::Dfs, pushed);
        None
    }
}
impl Frontier for MemoryFrontier {
    async fn open(&self) -> Result<Vec<(HostKey, u64)>> {
        let s = self.0.lock().unwrap();
        Ok(s.hosts.iter().filter(|(_, q)| q.len() > 0).map(|(h, q)| (h.clone(), q.len() as u64)).collect())
    }
    async fn push(&self, batch: Vec<Request>) -> Result<Pushed> {
        let mut s = self.0.lock().unwrap();
        let mut pushed = Pushed::default();
        for r in batch {
            s.push(r, self.1, &mut pushed);
        }
        Ok(pushed)
    }
    async fn lease(&self, host: &HostKey, max: usize, now: Timestamp) -> Result<Leased> {
        let mut s = self.0.lock().unwrap();
        let State { hosts, leased, next, len, .. } = &mut *s;
        let mut out = Leased::default();
        let Some(q) = hosts.get_mut(host) else { return Ok(out) };
        while let Some(e) = q.delayed.first_entry() {
            if e.key().0 > now {
                break;
            }
            let r = e.remove();
            q.due.entry((-r.priority, r.meta_flag("is_start_request"))).or_default().push_back(r);
        }
        while out.leases.len() < max {
            let Some(mut e) = q.due.first_entry() else { break };
            let Some(r) = e.get_mut().pop_front() else {
                e.remove();
                continue;
            };
            if e.get().is_empty() {
                e.remove();
            }
            *next += 1;
            *len -= 1;
            leased.insert(LeaseId(*next), r.clone());
            out.leases.push(Lease { id: LeaseId(*next), request: r });
        }
        out.due = q.due.values().map(VecDeque::len).sum::<usize>() as u64;
        out.next_at = q.delayed.first_key_value().map(|(k, _)| k.0);
        Ok(out)
    }
    async fn settle(&self, batch: Vec<Settled>) -> Result<Pushed> {
        let mut s = self.0.lock().unwrap();
        let mut pushed = Pushed::default();
        for settled in batch {
            let r = s.leased.remove(&settled.lease);
            match settled.end {
                End::Done => {}
                End::Release => {
                    if let Some(r) = r {
                        s.add(r, true, &mut pushed);
                    }
                }
                End::Again(again) => {
                    if let Some(back) = s.push(*again, self.1, &mut pushed) {
                        pushed.refused.push(back);
                    }
                }
            }
            for child in settled.children {
                s.push(child, self.1, &mut pushed);
            }
        }
        Ok(pushed)
    }
    fn len(&self) -> u64 {
        self.0.lock().unwrap().len
    }
}
