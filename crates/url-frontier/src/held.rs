//! The URLs that the server has served to this node: those that wait for their turn, and those that are fetched.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

use huntsman_crawler::{HostKey, Request};

use crate::message::UrlInfo;

/// A URL that this node holds.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) info: UrlInfo,
    pub(crate) request: Request,
    /// When it is too late to begin: the server may serve it again before the page is done.
    pub(crate) until: Instant,
}

/// What this node holds.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// URLs that wait, in the order in which they were served.
    waiting: HashMap<HostKey, BTreeMap<u64, Served>>,
    /// URLs that are fetched, by lease, with their places.
    leased: HashMap<u64, (u64, Served)>,
    /// Queue and URL of all of them.
    urls: HashSet<(String, String)>,
    count: u64,
    last_place: u64,
    last_lease: u64,
}

fn name(info: &UrlInfo) -> (String, String) {
    (info.key.clone(), info.url.clone())
}

impl Held {
    /// Adds a URL that was served. One that is held already was served again, because the server has forgotten that it was served or the
    /// page takes longer than its hold.
    pub(crate) fn add(&mut self, host: HostKey, served: Served) {
        if !self.urls.insert(name(&served.info)) {
            let waits =
                |other: &&mut Served| other.info.url == served.info.url && other.info.key == served.info.key;
            if let Some(known) = self.waiting.get_mut(&host).and_then(|queue| queue.values_mut().find(waits))
            {
                known.until = served.until;
            }
            return;
        }
        self.last_place += 1;
        self.count += 1;
        self.waiting.entry(host).or_default().insert(self.last_place, served);
    }

    /// Leases URLs of a host that may still begin; the others are forgotten, as the server serves them again.
    pub(crate) fn lease(&mut self, host: &HostKey, max: usize, now: Instant) -> Vec<(u64, Request)> {
        self.forget_late(host, now);
        let mut leases = Vec::new();
        while leases.len() < max {
            let Some((place, served)) = self.waiting.get_mut(host).and_then(BTreeMap::pop_first) else {
                break;
            };
            self.last_lease += 1;
            self.count -= 1;
            leases.push((self.last_lease, served.request.clone()));
            self.leased.insert(self.last_lease, (place, served));
        }
        self.forget_empty(host);
        leases
    }

    fn forget_late(&mut self, host: &HostKey, now: Instant) {
        let Some(queue) = self.waiting.get_mut(host) else { return };
        let late: Vec<Served> =
            queue.extract_if(.., |_, served| served.until <= now).map(|(_, late)| late).collect();
        self.count -= late.len() as u64;
        for served in late {
            self.urls.remove(&name(&served.info));
        }
        self.forget_empty(host);
    }

    fn forget_empty(&mut self, host: &HostKey) {
        if self.waiting.get(host).is_some_and(BTreeMap::is_empty) {
            self.waiting.remove(host);
        }
    }

    /// Forgets all URLs that are too late to begin.
    pub(crate) fn forget_all_late(&mut self, now: Instant) {
        let hosts: Vec<HostKey> = self.waiting.keys().cloned().collect();
        hosts.iter().for_each(|host| self.forget_late(host, now));
    }

    /// A URL that is fetched.
    pub(crate) fn leased(&self, lease: u64) -> Option<&Served> {
        self.leased.get(&lease).map(|(_, served)| served)
    }

    /// Ends a lease.
    pub(crate) fn end(&mut self, lease: u64) {
        if let Some((_, served)) = self.leased.remove(&lease) {
            self.urls.remove(&name(&served.info));
        }
    }

    /// Puts the URL of a lease back in its place. Returns whether it is the first one of its host.
    pub(crate) fn release(&mut self, lease: u64, host: &HostKey) -> bool {
        let Some((place, served)) = self.leased.remove(&lease) else { return false };
        let queue = self.waiting.entry(host.clone()).or_default();
        let is_first = queue.is_empty();
        queue.insert(place, served);
        self.count += 1;
        is_first
    }

    /// Takes all URLs that wait.
    pub(crate) fn take_waiting(&mut self) -> Vec<UrlInfo> {
        self.count = 0;
        let all: Vec<UrlInfo> = std::mem::take(&mut self.waiting)
            .into_values()
            .flatten()
            .map(|(_, served)| served.info)
            .collect();
        for info in &all {
            self.urls.remove(&name(info));
        }
        all
    }

    /// The queue in the server that a host of this node is served from, if it holds a URL of it.
    pub(crate) fn key_of(&self, host: &HostKey) -> Option<&str> {
        let waits = self.waiting.get(host).and_then(|queue| queue.values().next());
        let fetched =
            || self.leased.values().map(|(_, served)| served).find(|served| served.request.host() == *host);
        Some(&waits.or_else(fetched)?.info.key)
    }

    /// How many URLs of a host wait.
    pub(crate) fn waiting_of(&self, host: &HostKey) -> u64 {
        self.waiting.get(host).map_or(0, |queue| queue.len() as u64)
    }

    /// The hosts of which URLs wait, and how many.
    pub(crate) fn hosts(&self) -> Vec<(HostKey, u64)> {
        self.waiting.iter().map(|(host, queue)| (host.clone(), queue.len() as u64)).collect()
    }

    /// The next requests of a host.
    pub(crate) fn peek(&self, host: &HostKey, most: usize) -> Vec<Request> {
        let queue = self.waiting.get(host).into_iter().flat_map(BTreeMap::values);
        queue.take(most).map(|served| served.request.clone()).collect()
    }

    /// How many URLs wait.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Whether this node holds no URL.
    pub(crate) fn is_empty(&self) -> bool {
        self.urls.is_empty()
    }
}
