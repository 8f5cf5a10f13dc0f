//! Stats per host in bounded memory: the busiest hosts by name, and all others together.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashbrown::HashMap;

use crate::fetch::FetchErrorKind;
use crate::host::HostKey;
use crate::report::HostReport;
use crate::schedule::SlotState;

mod latency;

use latency::Latencies;

/// Longest stored error message, in bytes.
const MAX_ERROR: usize = 200;
/// Number of hosts that are counted for each one that is reported, so that a host that becomes busy late can still
/// overtake those that were busy early.
const COUNTED_PER_REPORTED: usize = 4;

/// Counts requests, responses and latencies per host (`stats_top_hosts`).
///
/// Four times as many hosts are counted as are reported. When another host appears, the least busy one is merged into
/// the rest, and the new host inherits its rank (the Space-Saving sketch of Metwally, Agrawal and El Abbadi, 2005). A
/// host with more than a share of `1 / (4 * top)` of all requests is therefore always counted. Requests of a host
/// before it was counted remain in the rest; the sum over all reports is exact.
///
/// A host takes about half a kilobyte; recording takes a lock for a fraction of a microsecond.
#[derive(Debug)]
pub struct HostStats {
    top: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    hosts: HashMap<HostKey, Counts, foldhash::fast::RandomState>,
    rest: Counts,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    /// Number of requests, including those of hosts that this one replaced; the host with the lowest rank is merged
    /// first.
    rank: u64,
    requests: u64,
    statuses: BTreeMap<u16, u64>,
    failures: BTreeMap<&'static str, u64>,
    bytes: u64,
    latencies: Latencies,
    last_error: Option<String>,
}

/// Values for the report of a host that come from other parts of the crawl.
#[derive(Clone, Copy, Debug)]
pub struct HostSnapshot {
    /// Delay between starts that is in force.
    pub delay: Duration,
    /// Requests that are still queued.
    pub queued: u64,
    /// The state of its slot.
    pub state: SlotState,
}

impl HostStats {
    /// The name of the report that sums up all hosts without a report of their own.
    pub const REST: &'static str = "(rest)";

    /// Stats that report the `top` busiest hosts by name.
    pub fn new(top: usize) -> Self {
        Self { top, state: Mutex::default() }
    }

    /// Records a response: its status, the bytes of its body on the wire, and the time from sending the request to
    /// receiving the headers.
    pub fn record_response(&self, host: &HostKey, status: u16, bytes: u64, latency: Duration) {
        self.record(host, |counts| {
            *counts.statuses.entry(status).or_default() += 1;
            counts.bytes = counts.bytes.saturating_add(bytes);
            counts.latencies.record(latency);
        });
    }

    /// Records a download without a response.
    pub fn record_failure(&self, host: &HostKey, kind: FetchErrorKind, message: &str) {
        self.record(host, |counts| {
            *counts.failures.entry(kind.name()).or_default() += 1;
            let cut = message.floor_char_boundary(MAX_ERROR);
            counts.last_error = Some(message[..cut].to_owned());
        });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // If a panic interrupted an update, the counts are still usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, host: &HostKey, add: impl FnOnce(&mut Counts)) {
        let mut state = self.lock();
        let most = self.top.saturating_mul(COUNTED_PER_REPORTED);
        if most == 0 {
            state.rest.requests += 1;
            add(&mut state.rest);
            return;
        }
        if !state.hosts.contains_key(host) {
            let rank = if state.hosts.len() < most { 0 } else { state.fold_least() };
            state.hosts.insert(host.clone(), Counts { rank, ..Counts::default() });
        }
        if let Some(counts) = state.hosts.get_mut(host) {
            counts.rank += 1;
            counts.requests += 1;
            add(counts);
        }
    }

    /// A report for each of the busiest hosts, busiest first, and one for [`REST`](Self::REST) if other hosts had
    /// requests. `now` supplies the values that other parts of the crawl know.
    pub fn reports(&self, now: impl Fn(&HostKey) -> HostSnapshot) -> Vec<HostReport> {
        let state = self.lock();
        let mut hosts: Vec<(&HostKey, &Counts)> = state.hosts.iter().collect();
        hosts.sort_unstable_by(|(a, x), (b, y)| y.requests.cmp(&x.requests).then_with(|| a.cmp(b)));
        let mut rest = state.rest.clone();
        for (_, counts) in hosts.iter().skip(self.top) {
            rest.add(counts);
        }
        let own = hosts.into_iter().take(self.top).map(|(host, counts)| {
            let now = now(host);
            HostReport {
                delay_s: now.delay.as_secs_f64(),
                queued: now.queued,
                state: now.state.name(),
                ..counts.report(host.as_str())
            }
        });
        let mut reports: Vec<HostReport> = own.collect();
        if rest.requests > 0 {
            reports.push(rest.report(Self::REST));
        }
        reports
    }
}

impl State {
    /// Merges the least busy host into the rest and returns its rank. This scans a few hundred entries.
    fn fold_least(&mut self) -> u64 {
        let least = self.hosts.iter().min_by_key(|(_, counts)| counts.rank).map(|(host, _)| host.clone());
        let Some(counts) = least.and_then(|host| self.hosts.remove(&host)) else { return 0 };
        self.rest.add(&counts);
        counts.rank
    }
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.bytes = self.bytes.saturating_add(other.bytes);
        for (status, n) in &other.statuses {
            *self.statuses.entry(*status).or_default() += n;
        }
        for (kind, n) in &other.failures {
            *self.failures.entry(kind).or_default() += n;
        }
        self.latencies.add(&other.latencies);
        if other.last_error.is_some() {
            self.last_error.clone_from(&other.last_error);
        }
    }

    fn report(&self, host: &str) -> HostReport {
        HostReport {
            host: host.to_owned(),
            requests: self.requests,
            statuses: self.statuses.clone(),
            failures: self.failures.clone(),
            bytes: self.bytes,
            latency_ms: [0.5, 0.95, 0.99].map(|share| self.latencies.quantile_ms(share)),
            delay_s: 0.0,
            queued: 0,
            state: SlotState::Active.name(),
            last_error: self.last_error.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: HostSnapshot =
        HostSnapshot { delay: Duration::from_secs(2), queued: 5, state: SlotState::Active };

    fn host(name: &str) -> HostKey {
        HostKey::new(name)
    }

    #[test]
    fn a_report_has_what_was_recorded() {
        let stats = HostStats::new(10);
        for ms in 1..=100 {
            stats.record_response(&host("a"), 200, 1_000, Duration::from_millis(ms));
        }
        stats.record_response(&host("a"), 404, 10, Duration::from_secs(1));
        stats.record_failure(&host("a"), FetchErrorKind::Connect, "refused");
        stats.record_failure(&host("a"), FetchErrorKind::Dns, &"ü".repeat(500));
        stats.record_response(&host("b"), 200, 1, Duration::ZERO);
        let reports = stats.reports(|_| NOW);
        assert_eq!(reports.len(), 2);
        let report = &reports[0];
        assert_eq!((report.host.as_str(), report.requests, report.bytes), ("a", 103, 100_010));
        assert_eq!(report.statuses, BTreeMap::from([(200, 100), (404, 1)]));
        assert_eq!(report.failures, BTreeMap::from([("connect", 1), ("dns", 1)]));
        assert_eq!(report.last_error.as_ref().map(String::len), Some(200));
        assert_eq!((report.delay_s, report.queued, report.state), (2.0, 5, "active"));
        let [p50, p95, p99] = report.latency_ms;
        assert!((45.0..56.0).contains(&p50) && (86.0..106.0).contains(&p95), "{:?}", report.latency_ms);
        assert!(p99 >= p95);
    }

    #[test]
    fn the_busiest_hosts_are_found_among_many_and_nothing_is_lost() {
        let stats = HostStats::new(3);
        // Three busy hosts, one of which appears late, among a great many hosts with one request each.
        let mut requests = 0u64;
        for n in 0..100_000u32 {
            let name = match n % 10 {
                0 | 1 => "busy0".to_owned(),
                2 | 3 => "busy1".to_owned(),
                4 | 5 if n > 50_000 => "late".to_owned(),
                _ => format!("h{n}"),
            };
            stats.record_response(&host(&name), 200, 1, Duration::from_millis(1));
            requests += 1;
        }
        let reports = stats.reports(|_| NOW);
        let names: Vec<&str> = reports.iter().map(|report| report.host.as_str()).collect();
        assert_eq!(names, ["busy0", "busy1", "late", HostStats::REST]);
        assert_eq!(reports[0].requests, 20_000);
        assert_eq!(reports.iter().map(|report| report.requests).sum::<u64>(), requests);
        assert_eq!(reports.iter().map(|report| report.bytes).sum::<u64>(), requests);
        assert!(stats.lock().hosts.len() <= 12);
    }

    #[test]
    fn without_hosts_of_their_own_all_are_the_rest() {
        let stats = HostStats::new(0);
        assert!(stats.reports(|_| NOW).is_empty());
        stats.record_response(&host("a"), 200, 1, Duration::ZERO);
        let reports = stats.reports(|_| NOW);
        assert_eq!((reports.len(), reports[0].host.as_str()), (1, HostStats::REST));
    }
}
