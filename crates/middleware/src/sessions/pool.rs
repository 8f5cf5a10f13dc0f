//! Which session a request gets, and when sessions end: a model without network and clock.

use std::collections::HashMap;
use std::time::Duration;

use huntsman_crawler::Timestamp;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Number of hosts whose turn is remembered. If there are more, all begin again, which only makes their sessions less evenly used.
const MAX_HOSTS: usize = 10_000;
/// What a success takes from the errors of a session; an error adds one.
const FORGIVEN: f64 = 0.5;

/// The rules of a pool; 0 as a limit means that there is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolRules {
    pub(crate) size: usize,
    pub(crate) max_named: usize,
    pub(crate) max_uses: u64,
    pub(crate) max_age: Duration,
    pub(crate) max_errors: f64,
    /// Number of header sets that sessions take turns with.
    pub(crate) header_sets: usize,
    /// Whether a session has to be set up before it is used.
    pub(crate) needs_setup: bool,
}

/// One session, as it is stored in the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// When it began, in microseconds since 1970.
    pub(crate) created: u64,
    pub(crate) uses: u64,
    pub(crate) errors: f64,
    /// The name of its proxy in the pool of proxies.
    pub(crate) proxy: Option<String>,
    pub(crate) headers: usize,
    pub(crate) is_ready: bool,
    #[serde(skip)]
    is_setting_up: bool,
    /// When it was last used, by the clock of the pool.
    #[serde(skip)]
    used: u64,
}

/// What a request takes from its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loan {
    pub(crate) name: String,
    pub(crate) proxy: Option<String>,
    pub(crate) headers: usize,
}

/// The answer to a request that wants a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    Use(Loan),
    /// This request has to set the session up; then it asks again.
    SetUp(Loan),
    /// The session is being set up by another request.
    Wait,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retired {
    Blocked,
    Errors,
    Uses,
    Age,
    /// Its proxy is out of order, as are those of all other sessions, and a new session gets one that works.
    Proxy,
    /// It could not be set up.
    Setup,
    /// There were too many named sessions.
    Evicted,
    /// The spider asked for it.
    Asked,
}

impl Retired {
    /// The name in the stats.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Errors => "errors",
            Self::Uses => "uses",
            Self::Age => "age",
            Self::Proxy => "proxy",
            Self::Setup => "setup",
            Self::Evicted => "evicted",
            Self::Asked => "asked",
        }
    }
}

/// What happened to sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Created,
    Retired(String, Retired),
    ProxyChanged,
}

/// The proxies that sessions are given.
pub(crate) trait Proxies {
    /// Whether the pool of proxies has one of this name.
    fn has(&self, name: &str) -> bool;
    /// Whether a proxy works, or may be tried again.
    fn is_usable(&self, name: &str) -> bool;
    /// The proxy for a new session, by the number of sessions that each has: one that works, if any does.
    fn choose(&self, sessions_of: &dyn Fn(&str) -> usize) -> String;
}

/// The sessions of a crawl.
#[derive(Debug)]
pub(crate) struct Pool {
    rules: PoolRules,
    sessions: HashMap<String, Member>,
    /// The names of the sessions of the pool, which hosts go through in turn.
    slots: Vec<String>,
    /// The number of the next session.
    next: u64,
    /// The slot that is next for a host, by the hash of its name.
    turns: HashMap<u64, usize>,
    clock: u64,
    changes: Vec<Change>,
}

/// Whether this is the name of a session of the pool, and not one that a spider chose.
pub(crate) fn is_of_pool(name: &str) -> bool {
    name.starts_with('#')
}

impl Pool {
    pub(crate) fn new(rules: PoolRules) -> Self {
        Self {
            rules,
            sessions: HashMap::new(),
            slots: Vec::new(),
            next: 1,
            turns: HashMap::new(),
            clock: 0,
            changes: Vec::new(),
        }
    }

    /// Gives a request its session: the one that it wants, if that is possible, else one of the pool.
    pub(crate) fn grant(
        &mut self,
        wanted: Option<&str>,
        host: &str,
        now: Timestamp,
        proxies: Option<&dyn Proxies>,
    ) -> Grant {
        self.clock += 1;
        match wanted {
            Some(name) if !is_of_pool(name) => self.grant_named(name, now, proxies),
            Some(name) if self.is_open(name, now, proxies) => self.lend(name, proxies),
            _ => self.grant_any(host, now, proxies),
        }
    }

    /// Whether a session of the pool exists and may be used now, or after it was set up.
    fn is_open(&mut self, name: &str, now: Timestamp, proxies: Option<&dyn Proxies>) -> bool {
        let Some(session) = self.sessions.get(name) else { return false };
        match self.rules.end_of(session, now) {
            Some(why) => {
                self.retire(name, why);
                false
            }
            None => works(session, proxies),
        }
    }

    fn grant_named(&mut self, name: &str, now: Timestamp, proxies: Option<&dyn Proxies>) -> Grant {
        if !self.sessions.contains_key(name) {
            self.make_room();
            self.create(name.to_owned(), now, proxies);
        }
        // A named session is an identity that the spider chose: it goes on with another proxy.
        if let Some(session) = self.sessions.get(name)
            && !works(session, proxies)
            && let Some(proxies) = proxies
        {
            let other = self.proxy_for_new(proxies);
            if proxies.is_usable(&other) {
                self.sessions.get_mut(name).expect("it was found right before").proxy = Some(other);
                self.changes.push(Change::ProxyChanged);
            }
        }
        self.lend(name, proxies)
    }

    /// Ends the named session that was not used for longest, if there are as many as are allowed.
    fn make_room(&mut self) {
        let named = self.sessions.len() - self.slots.len();
        if named < self.rules.max_named {
            return;
        }
        let idle =
            self.sessions.values().filter(|session| !is_of_pool(&session.name) && !session.is_setting_up);
        if let Some(name) = idle.min_by_key(|session| session.used).map(|session| session.name.clone()) {
            self.retire(&name, Retired::Evicted);
        }
    }

    fn grant_any(&mut self, host: &str, now: Timestamp, proxies: Option<&dyn Proxies>) -> Grant {
        if self.slots.len() < self.rules.size {
            let name = self.create_next(now, proxies);
            self.slots.push(name.clone());
            return self.lend(&name, proxies);
        }
        let key = xxh3_64(host.as_bytes());
        // Hosts begin at different sessions, so that hosts with few requests do not all use the first.
        let first = match self.turns.get(&key) {
            Some(turn) => turn % self.slots.len(),
            None => usize::try_from(key % self.slots.len() as u64).unwrap_or(0),
        };
        let mut is_waiting = false;
        for step in 0..self.slots.len() {
            let slot = (first + step) % self.slots.len();
            let session = &self.sessions[&self.slots[slot]];
            if let Some(why) = self.rules.end_of(session, now) {
                self.replace(slot, why, now, proxies);
            } else if session.is_setting_up {
                is_waiting = true;
                continue;
            } else if !works(session, proxies) {
                continue;
            }
            return self.lend_slot(key, slot, proxies);
        }
        if is_waiting {
            return Grant::Wait;
        }
        // The proxies of all sessions are out. A new session gets one that works; if none does, the request waits for one with the old session.
        if let Some(proxies) = proxies
            && proxies.is_usable(&self.proxy_for_new(proxies))
        {
            self.replace(first, Retired::Proxy, now, Some(proxies));
        }
        self.lend_slot(key, first, proxies)
    }

    fn lend_slot(&mut self, host: u64, slot: usize, proxies: Option<&dyn Proxies>) -> Grant {
        if self.turns.len() >= MAX_HOSTS && !self.turns.contains_key(&host) {
            self.turns.clear();
        }
        self.turns.insert(host, slot + 1);
        let name = self.slots[slot].clone();
        self.lend(&name, proxies)
    }

    fn lend(&mut self, name: &str, proxies: Option<&dyn Proxies>) -> Grant {
        // A job that is resumed with other proxies.
        let lost = proxies.filter(|proxies| {
            let session = self.sessions.get(name).expect("the caller has looked it up");
            session.proxy.as_deref().is_none_or(|proxy| !proxies.has(proxy))
        });
        let replacement = lost.map(|proxies| self.proxy_for_new(proxies));
        let session = self.sessions.get_mut(name).expect("the caller has looked it up");
        if replacement.is_some() {
            session.proxy = replacement;
        }
        session.used = self.clock;
        if session.is_setting_up {
            return Grant::Wait;
        }
        let proxy = session.proxy.clone().filter(|_| proxies.is_some());
        let loan = Loan { name: session.name.clone(), proxy, headers: session.headers };
        if self.rules.needs_setup && !session.is_ready {
            session.is_setting_up = true;
            return Grant::SetUp(loan);
        }
        session.is_ready = true;
        session.uses += 1;
        Grant::Use(loan)
    }

    fn replace(&mut self, slot: usize, why: Retired, now: Timestamp, proxies: Option<&dyn Proxies>) {
        let old = self.slots[slot].clone();
        self.sessions.remove(&old);
        self.changes.push(Change::Retired(old, why));
        self.slots[slot] = self.create_next(now, proxies);
    }

    fn create_next(&mut self, now: Timestamp, proxies: Option<&dyn Proxies>) -> String {
        let name = format!("#{}", self.next);
        self.create(name.clone(), now, proxies);
        name
    }

    fn create(&mut self, name: String, now: Timestamp, proxies: Option<&dyn Proxies>) {
        let proxy = proxies.map(|proxies| self.proxy_for_new(proxies));
        let number = usize::try_from(self.next).unwrap_or(usize::MAX) - 1;
        self.next += 1;
        let session = Member {
            name: name.clone(),
            created: now.0,
            uses: 0,
            errors: 0.0,
            proxy,
            headers: number % self.rules.header_sets.max(1),
            is_ready: false,
            is_setting_up: false,
            used: self.clock,
        };
        self.sessions.insert(name, session);
        self.changes.push(Change::Created);
    }

    fn proxy_for_new(&self, proxies: &dyn Proxies) -> String {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for proxy in self.sessions.values().filter_map(|session| session.proxy.as_deref()) {
            *counts.entry(proxy).or_default() += 1;
        }
        proxies.choose(&|name| counts.get(name).copied().unwrap_or(0))
    }

    /// Ends a session. Returns whether it was there.
    pub(crate) fn retire(&mut self, name: &str, why: Retired) -> bool {
        if self.sessions.remove(name).is_none() {
            return false;
        }
        self.slots.retain(|slot| slot != name);
        self.changes.push(Change::Retired(name.to_owned(), why));
        true
    }

    /// A request of the session got a good response.
    pub(crate) fn good(&mut self, name: &str) {
        if let Some(session) = self.sessions.get_mut(name) {
            session.errors = (session.errors - FORGIVEN).max(0.0);
        }
    }

    /// A request of the session failed. Returns whether the session ended for that.
    pub(crate) fn bad(&mut self, name: &str) -> bool {
        let Some(session) = self.sessions.get_mut(name) else { return false };
        session.errors += 1.0;
        let is_over = self.rules.max_errors > 0.0 && session.errors >= self.rules.max_errors;
        is_over && self.retire(name, Retired::Errors)
    }

    /// The end of setting a session up. One that could not be set up is retired; one whose request was dropped meanwhile is set up by another.
    pub(crate) fn set_up(&mut self, name: &str, end: SetupEnd) {
        let Some(session) = self.sessions.get_mut(name) else { return };
        session.is_setting_up = false;
        session.is_ready = end == SetupEnd::Ready;
        if end == SetupEnd::Failed {
            self.retire(name, Retired::Setup);
        }
    }

    /// Whether there is a session of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.sessions.contains_key(name)
    }

    /// The sessions, those of the pool first, in the order in which they began.
    pub(crate) fn members(&self) -> Vec<Member> {
        let mut all: Vec<Member> = self.sessions.values().cloned().collect();
        all.sort_by(|a, b| {
            let key = |member: &Member| (!is_of_pool(&member.name), member.created);
            key(a).cmp(&key(b)).then_with(|| (a.name.len(), &a.name).cmp(&(b.name.len(), &b.name)))
        });
        all
    }

    /// What happened since the last call.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// The state for the job.
    pub(crate) fn saved(&self) -> SavedPool {
        SavedPool { next: self.next, sessions: self.members() }
    }

    /// Goes on with the sessions of an earlier run. Those that the rules have no room for are given up; their names are returned.
    pub(crate) fn resume(&mut self, saved: SavedPool) -> Vec<String> {
        self.next = saved.next.max(1);
        let mut cut = Vec::new();
        for mut session in saved.sessions {
            let named = self.sessions.len() - self.slots.len();
            let (taken, room) = match is_of_pool(&session.name) {
                true => (self.slots.len(), self.rules.size),
                false => (named, self.rules.max_named),
            };
            if taken >= room {
                cut.push(session.name);
                continue;
            }
            session.headers %= self.rules.header_sets.max(1);
            if is_of_pool(&session.name) {
                self.slots.push(session.name.clone());
            }
            self.sessions.insert(session.name.clone(), session);
        }
        cut
    }
}

/// How the setting up of a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetupEnd {
    Ready,
    Failed,
    /// The request that did it was dropped.
    Interrupted,
}

/// The sessions of a job.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SavedPool {
    next: u64,
    sessions: Vec<Member>,
}

impl PoolRules {
    /// Why a session of the pool must not be used any more.
    fn end_of(&self, session: &Member, now: Timestamp) -> Option<Retired> {
        if session.is_setting_up {
            return None;
        }
        if self.max_uses > 0 && session.uses >= self.max_uses {
            return Some(Retired::Uses);
        }
        let is_old = !self.max_age.is_zero() && now.since(Timestamp(session.created)) >= self.max_age;
        is_old.then_some(Retired::Age)
    }
}

/// Whether the proxy of a session works, if it has one.
fn works(session: &Member, proxies: Option<&dyn Proxies>) -> bool {
    match (proxies, &session.proxy) {
        (Some(proxies), Some(proxy)) => !proxies.has(proxy) || proxies.is_usable(proxy),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
