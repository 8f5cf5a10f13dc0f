//! Which proxy is used next, and which are out of order: a model without network and clock.

use std::collections::HashMap;
use std::time::Duration;

use huntsman_crawler::{Fingerprint, Timestamp};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::ProxyChoice;
use super::list::Listed;

/// Number of requests that a proxy may fail while another one succeeds with them, without a success of its own in between, before it is out.
const MAX_STRIKES: u8 = 3;
/// Number of requests whose failures are remembered. If there are more, most of them will not come again soon, and all are forgotten.
const MAX_SUSPECTED: usize = 10_000;

/// The rules of a pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HealthRules {
    /// How long a proxy is out after its first failure; doubled with each further one.
    pub(crate) backoff: Duration,
    pub(crate) max_backoff: Duration,
    /// How long requests wait if all proxies are out.
    pub(crate) max_wait: Duration,
}

/// A proxy that was chosen for a request. It is told back with the result of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) index: usize,
    /// How often the proxy was out before: results of requests that were sent before that say nothing new.
    epoch: u32,
}

/// The answer to the question for a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Use(Chosen),
    /// All proxies are out; one is tried again at this time.
    Wait(Timestamp),
    /// All proxies have been out for too long; the reason in a sentence.
    Exhausted(String),
}

/// A proxy and its health.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) listed: Listed,
    pub(crate) requests: u64,
    pub(crate) failures: u64,
    pub(crate) last_error: Option<String>,
    /// Failures in a row; 0 means that the proxy works, as far as is known.
    level: u32,
    /// When a proxy that is out is tried again.
    until: Timestamp,
    epoch: u32,
    strikes: u8,
    /// The credit of the smooth weighted round robin.
    credit: i64,
}

impl Member {
    pub(crate) fn is_out(&self) -> bool {
        self.level > 0
    }

    /// Whether it may get a request: it works, or it is time to try it again.
    fn is_due(&self, now: Timestamp) -> bool {
        self.level == 0 || self.until <= now
    }
}

/// The proxies of a pool and their health.
#[derive(Debug)]
pub(crate) struct Health {
    pub(crate) members: Vec<Member>,
    rules: HealthRules,
    all_out_since: Option<Timestamp>,
    last_failed: Option<usize>,
    /// The proxies that failed requests which have not succeeded yet.
    suspects: HashMap<Fingerprint, Vec<usize>>,
}

impl Health {
    pub(crate) fn new(listed: Vec<Listed>, rules: HealthRules) -> Self {
        let member = |listed| Member {
            listed,
            requests: 0,
            failures: 0,
            last_error: None,
            level: 0,
            until: Timestamp(0),
            epoch: 0,
            strikes: 0,
            credit: 0,
        };
        Self {
            members: listed.into_iter().map(member).collect(),
            rules,
            all_out_since: None,
            last_failed: None,
            suspects: HashMap::new(),
        }
    }

    /// Chooses a proxy for a request. A proxy that failed the same request before is only chosen if there is no other.
    pub(crate) fn choose(
        &mut self,
        by: ProxyChoice,
        host: &str,
        request: Fingerprint,
        now: Timestamp,
    ) -> Choice {
        let failed = self.suspects.get(&request).map_or(&[][..], Vec::as_slice);
        let due = |index: &usize| self.members[*index].is_due(now);
        let mut able: Vec<usize> = (0..self.members.len()).filter(due).collect();
        if able.iter().any(|index| !failed.contains(index)) {
            able.retain(|index| !failed.contains(index));
        }
        if able.is_empty() {
            return self.none(now);
        }
        let index = match by {
            ProxyChoice::Host => self.of_host(host, &able),
            ProxyChoice::Request => self.in_turn(&able),
        };
        Choice::Use(self.take(index, now))
    }

    /// Chooses the proxy of a session. If it is out and others are not, it is used all the same: the session decides what to do then.
    pub(crate) fn choose_fixed(&mut self, index: usize, now: Timestamp) -> Choice {
        match self.members.iter().all(|member| !member.is_due(now)) {
            true => self.none(now),
            false => Choice::Use(self.take(index, now)),
        }
    }

    /// The proxy with the best hash of its name and the host (rendezvous hashing): if a proxy is out, only its own hosts move, and they
    /// return to it.
    fn of_host(&self, host: &str, able: &[usize]) -> usize {
        let seed = xxh3_64(host.as_bytes());
        let cost = |index: usize| {
            let listed = &self.members[index].listed;
            let hash = xxh3_64_with_seed(listed.name.as_bytes(), seed);
            // A number between 0 and 1; its logarithm makes the shares of the proxies those of their weights.
            let share = ((hash >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
            -share.ln() / f64::from(listed.weight)
        };
        let best = able.iter().copied().min_by(|a, b| cost(*a).total_cmp(&cost(*b)));
        best.expect("the caller has at least one proxy")
    }

    /// The next one of a smooth weighted round robin, as nginx has it: weights 2 and 1 give A B A, not A A B.
    fn in_turn(&mut self, able: &[usize]) -> usize {
        let total: i64 = able.iter().map(|index| i64::from(self.members[*index].listed.weight)).sum();
        let mut best = able[0];
        for &index in able {
            let member = &mut self.members[index];
            member.credit += i64::from(member.listed.weight);
            if self.members[index].credit > self.members[best].credit {
                best = index;
            }
        }
        self.members[best].credit -= total;
        best
    }

    fn take(&mut self, index: usize, now: Timestamp) -> Chosen {
        let again = self.rules.backoff_of(self.members[index].level);
        let member = &mut self.members[index];
        member.requests += 1;
        if member.is_out() && member.is_due(now) {
            // Only this request tries it. If its result is never told, another one tries after the same time.
            member.until = now + again;
        }
        Chosen { index, epoch: member.epoch }
    }

    fn none(&mut self, now: Timestamp) -> Choice {
        let next = self.members.iter().map(|member| member.until).min().unwrap_or(now);
        let since = *self.all_out_since.get_or_insert(now);
        if now.since(since) < self.rules.max_wait {
            return Choice::Wait(next);
        }
        let last = self.last_failed.map(|index| &self.members[index]);
        let last = last.map_or_else(String::new, |member| {
            let error = member.last_error.as_deref().unwrap_or("unknown");
            format!("; the last failure was that of {}: {error}", member.listed.name)
        });
        Choice::Exhausted(format!(
            "none of the {} proxies works{last}; one is tried again in {:?}",
            self.members.len(),
            Duration::from_secs(next.since(now).as_secs() + 1)
        ))
    }

    /// A response came through a proxy. Returns the proxies that are out now, because they had failed the same request, and whether the proxy
    /// itself was out until now.
    pub(crate) fn succeeded(
        &mut self,
        chosen: Chosen,
        request: Fingerprint,
        now: Timestamp,
    ) -> (Vec<usize>, bool) {
        let suspects = self.suspects.remove(&request).unwrap_or_default();
        let member = &mut self.members[chosen.index];
        let mut is_back = false;
        if member.epoch == chosen.epoch {
            is_back = member.is_out();
            (member.level, member.strikes) = (0, 0);
            self.all_out_since = None;
        }
        let mut out = Vec::new();
        for index in suspects.into_iter().filter(|index| *index != chosen.index) {
            let member = &mut self.members[index];
            member.strikes += 1;
            if !member.is_out() && member.strikes >= MAX_STRIKES {
                self.put_out(index, now);
                out.push(index);
            }
        }
        (out, is_back)
    }

    /// A proxy failed, or the site behind it did. Nothing follows until another proxy succeeds with the same request.
    pub(crate) fn maybe_failed(&mut self, chosen: Chosen, request: Fingerprint, error: String) {
        self.note(chosen.index, error);
        self.suspect(request, chosen.index);
    }

    /// A proxy failed for certain. Returns how long it is out if it is out from now on, which is not so if that is known already.
    pub(crate) fn failed(
        &mut self,
        chosen: Chosen,
        request: Fingerprint,
        error: String,
        now: Timestamp,
    ) -> Option<Duration> {
        self.note(chosen.index, error);
        self.suspect(request, chosen.index);
        (self.members[chosen.index].epoch == chosen.epoch).then(|| self.put_out(chosen.index, now))
    }

    /// How many proxies failed a request so far.
    pub(crate) fn failures_of(&self, request: Fingerprint) -> usize {
        self.suspects.get(&request).map_or(0, Vec::len)
    }

    /// How long a proxy is out after its last failure.
    pub(crate) fn out_for(&self, index: usize) -> Duration {
        self.rules.backoff_of(self.members[index].level)
    }

    /// Whether a proxy may get a request now.
    pub(crate) fn is_usable(&self, index: usize, now: Timestamp) -> bool {
        self.members[index].is_due(now)
    }

    fn note(&mut self, index: usize, error: String) {
        let member = &mut self.members[index];
        member.failures += 1;
        member.last_error = Some(error);
        self.last_failed = Some(index);
    }

    fn suspect(&mut self, request: Fingerprint, index: usize) {
        if self.suspects.len() >= MAX_SUSPECTED && !self.suspects.contains_key(&request) {
            self.suspects.clear();
        }
        let failed = self.suspects.entry(request).or_default();
        if failed.len() < usize::from(u8::MAX) {
            failed.push(index);
        }
    }

    fn put_out(&mut self, index: usize, now: Timestamp) -> Duration {
        let member = &mut self.members[index];
        member.level = member.level.saturating_add(1);
        member.epoch = member.epoch.wrapping_add(1);
        member.strikes = 0;
        let wait = self.rules.backoff_of(member.level);
        member.until = now + wait;
        if self.members.iter().all(Member::is_out) {
            self.all_out_since.get_or_insert(now);
        }
        wait
    }
}

impl HealthRules {
    fn backoff_of(&self, level: u32) -> Duration {
        let doublings = level.saturating_sub(1).min(30);
        self.backoff.saturating_mul(1 << doublings).min(self.max_backoff)
    }
}

#[cfg(test)]
mod tests;
