//! One slot: the rules for its requests, the state of its host, and the starts that it has to grant.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::autothrottle::{AutoThrottle, Latencies, Observation, next_delay};
use crate::clock::Timestamp;
use crate::host::HostKey;
use crate::settings::LatencyEstimate;

use super::rules::{Rules, SlotRules};
use super::saved_politeness::SavedPoliteness;

/// The shortest wait after a connection failure.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
/// The longest wait after a connection failure.
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// Number of consecutive sleeps that an otherwise idle crawl waits for.
const PATIENT_SLEEPS: u8 = 3;
/// Without AutoThrottle, a learnt delay below this is forgotten.
const NO_SLOWNESS: Duration = Duration::from_millis(10);
/// Longest delay that can be set while the crawl runs.
const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// A failure that took at least this long was a timeout; other failures come at once.
const SILENCE: Duration = Duration::from_secs(5);

/// Stands for "no start yet".
const NEVER: (Timestamp, f32) = (Timestamp(0), -1.0);

/// Reason of [`super::Next::GiveUp`] after `host_max_cooldowns`.
pub(super) const HOST_DOWN: &str = "host_down";

/// State that a slot shares with the tickets that were granted for it.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Counts how often the rules became stricter.
    pub(super) version: AtomicU32,
    /// Time at which the last request was sent, in microseconds.
    pub(super) sent: AtomicU64,
}

/// The requests that the frontier has for a slot, as far as they were reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    None,
    Due,
    /// There are only delayed requests; the first is due at this time.
    At(Timestamp),
}

/// The reliability of a host, which decides whether its requests may use the last free places of the crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// The host answered, and has not failed since.
    Proven = 0,
    /// The host was never asked, or has not answered yet.
    New = 1,
    /// The last request to the host failed to connect, or got no response for a long time.
    Failing = 2,
}

impl Trust {
    pub(super) const ALL: [Self; 3] = [Self::Proven, Self::New, Self::Failing];
}

/// The index of the scheduler that a slot is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    None,
    /// May be granted a start. `active` is part of the key.
    Ready {
        trust: Trust,
        waiters: bool,
        active: u32,
    },
    /// May be granted a start from this time on. `parked` means that it waits for another reason than the delay
    /// between starts.
    Waiting {
        at: Timestamp,
        parked: bool,
    },
    /// Has nothing to do, and is forgotten at this time.
    Idle(Timestamp),
}

/// The state of one slot.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) key: HostKey,
    /// Created with the first ticket.
    pub(super) shared: Option<Arc<Shared>>,
    pub(super) own: Option<Box<SlotRules>>,
    /// Waiters for a start, first come first served. Boxed, because few slots have any.
    #[expect(clippy::box_collection, reason = "8 instead of 32 bytes in each of a million slots")]
    pub(super) waiters: Option<Box<VecDeque<u64>>>,
    pub(super) gave_up: Option<&'static str>,
    pub(super) place: Place,
    pub(super) work: Work,
    /// Counts the calls that report new requests, so that the result of an older, empty lease does not hide them.
    pub(super) wakes: u32,
    pub(super) active: u32,
    /// Counts granted starts.
    pub(super) granted: u32,
    /// Time and random draw of the last grant, and of the one before in case the last is refunded.
    last: (Timestamp, f32),
    before: (Timestamp, f32),
    /// Delay learnt from the responses; the crawl delay is applied on top of it.
    learnt_delay: Duration,
    /// Latencies of responses that may change the delay; empty without AutoThrottle.
    latencies: Latencies,
    /// No start before this time, because of Retry-After or a call.
    sleep_until: Timestamp,
    /// Number of sleeps that the host asked for since its last good response.
    sleeps: u8,
    /// No start before this time, because the host fails.
    backoff_until: Timestamp,
    failures: u32,
    cooldowns: u32,
    /// Tickets up to this number were granted too early to count as another failure or refusal: requests that were in
    /// flight together are evidence of one problem, not of several.
    failed_at: u32,
    refused_at: u32,
    pub(super) is_down: bool,
    has_answered: bool,
    /// Whether the last request held its place for a long time without a response.
    is_silent: bool,
    pub(super) is_giving_up: bool,
    /// How the scheduler currently counts the slot: by its trust if it is busy.
    pub(super) counted: Option<Trust>,
    pub(super) counted_active: u32,
    /// What was last recorded for the job.
    pub(super) saved: Option<Box<SavedPoliteness>>,
}

impl Slot {
    pub(super) fn new(key: HostKey, own: Option<Box<SlotRules>>, rules: &Rules) -> Self {
        let mut slot = Self {
            key,
            shared: None,
            own,
            waiters: None,
            gave_up: None,
            place: Place::None,
            work: Work::None,
            wakes: 0,
            active: 0,
            granted: 0,
            last: NEVER,
            before: NEVER,
            learnt_delay: Duration::ZERO,
            latencies: Latencies::default(),
            sleep_until: Timestamp(0),
            sleeps: 0,
            backoff_until: Timestamp(0),
            failures: 0,
            cooldowns: 0,
            failed_at: 0,
            refused_at: 0,
            is_down: false,
            has_answered: false,
            is_silent: false,
            is_giving_up: false,
            counted: None,
            counted_active: 0,
            saved: None,
        };
        slot.learnt_delay = slot.first_delay(rules);
        slot
    }

    fn first_delay(&self, rules: &Rules) -> Duration {
        match self.throttle(rules) {
            Some(throttle) => throttle.first_delay(None),
            None => self.base_delay(rules),
        }
    }

    /// What was learnt from the responses of the host, if it differs from the settings. Other processes that share the hosts need to know
    /// more than the next run of this one: that has robots.txt, and failures are a new chance.
    pub(super) fn saved_politeness(
        &self,
        rules: &Rules,
        is_shared: bool,
        now: Timestamp,
    ) -> Option<SavedPoliteness> {
        let until = if is_shared { self.asleep_until() } else { self.sleep_until };
        let sleep_until = if until > now { until } else { Timestamp(0) };
        let crawl_delay = self.crawl_delay().filter(|_| is_shared).unwrap_or_default();
        let is_new = self.learnt_delay == self.first_delay(rules)
            && sleep_until == Timestamp(0)
            && crawl_delay.is_zero();
        let politeness =
            SavedPoliteness { delay: self.learnt_delay, sleep_until, crawl_delay, ..<_>::default() };
        (!is_new).then_some(politeness)
    }

    /// What the next process that works on the host should know, with the time of the last start; `None` if that is nothing.
    pub(super) fn left_politeness(&self, rules: &Rules, now: Timestamp) -> Option<SavedPoliteness> {
        let learnt = self.saved_politeness(rules, true, now);
        let Some(last_start) = self.last_start() else { return learnt };
        let unchanged = SavedPoliteness { delay: self.learnt_delay, ..<_>::default() };
        Some(SavedPoliteness { last_start, ..learnt.unwrap_or(unchanged) })
    }

    /// When a request was last started or sent, if ever.
    fn last_start(&self) -> Option<Timestamp> {
        let sent = self.shared.as_ref().map_or(0, |shared| shared.sent.load(Ordering::Acquire));
        if self.last == NEVER && sent == 0 {
            return None;
        }
        Some(self.last.0.max(Timestamp(sent)))
    }

    /// Restores what an earlier run learnt, within the current settings.
    pub(super) fn restore(&mut self, rules: &Rules, politeness: SavedPoliteness) {
        let base = self.base_delay(rules);
        self.learnt_delay = politeness.delay.min(rules.max_delay.max(base)).max(base);
        self.sleep_until = politeness.sleep_until;
        if !politeness.crawl_delay.is_zero() {
            self.set_crawl_delay(rules, politeness.crawl_delay);
        }
        self.saved = Some(Box::new(SavedPoliteness { last_start: Timestamp(0), ..politeness }));
    }

    /// Begins with what another process learnt. Unless that process has told when it last sent a request, it may have done so just now.
    pub(super) fn adopt(&mut self, rules: &Rules, politeness: Option<SavedPoliteness>, now: Timestamp) {
        let told = politeness.map(|politeness| politeness.last_start).filter(|at| *at > Timestamp(0));
        if let Some(politeness) = politeness {
            self.restore(rules, politeness);
        }
        let last = told.map_or(now, |at| at.min(now));
        self.shared.get_or_insert_default().sent.fetch_max(last.0, Ordering::AcqRel);
    }

    fn base_delay(&self, rules: &Rules) -> Duration {
        self.own.as_ref().and_then(|own| own.delay).unwrap_or(rules.delay)
    }

    fn throttle(&self, rules: &Rules) -> Option<AutoThrottle> {
        rules.throttle.map(|throttle| AutoThrottle { min_delay: self.base_delay(rules), ..throttle })
    }

    fn crawl_delay(&self) -> Option<Duration> {
        self.own.as_ref().and_then(|own| own.crawl_delay)
    }

    /// The delay between starts that is in force.
    pub(super) fn delay(&self) -> Duration {
        self.learnt_delay.max(self.crawl_delay().unwrap_or_default())
    }

    /// The limit of requests in flight: one while a crawl delay is in force, and one until a host that failed has
    /// answered again.
    pub(super) fn concurrency(&self, rules: &Rules) -> u32 {
        if self.crawl_delay().is_some() || self.failures > 0 {
            return 1;
        }
        self.own.as_ref().and_then(|own| own.concurrency).unwrap_or(rules.concurrency)
    }

    /// The time at which the delay allows the next start.
    fn next_start(&self, rules: &Rules) -> Timestamp {
        let Some(last) = self.last_start() else { return Timestamp(0) };
        let delay = self.delay();
        let jitter = self.own.as_ref().and_then(|own| own.jitter).unwrap_or(rules.jitter);
        // The extra time is added, so that rounding cannot make the gap shorter than the delay.
        let extra = delay.mul_f64(jitter * f64::from(self.last.1.max(0.0)));
        after(last, delay.saturating_add(extra))
    }

    pub(super) fn has_waiters(&self) -> bool {
        self.waiters.as_ref().is_some_and(|waiters| !waiters.is_empty())
    }

    /// Whether the slot has requests to start or in flight.
    pub(super) fn is_busy(&self) -> bool {
        self.active > 0 || (self.gave_up.is_none() && (self.has_waiters() || self.work != Work::None))
    }

    pub(super) fn trust(&self) -> Trust {
        match self.has_answered {
            _ if self.failures > 0 || self.is_silent => Trust::Failing,
            true => Trust::Proven,
            false => Trust::New,
        }
    }

    /// The index where the slot belongs at `now`. `linger` is how long an idle slot is kept beyond its delay.
    pub(super) fn place(&self, rules: &Rules, now: Timestamp, linger: Duration) -> Place {
        if self.is_giving_up {
            return Place::None;
        }
        let waiters = self.has_waiters();
        let want = match self.work {
            _ if self.gave_up.is_some() => None,
            _ if waiters => Some(Timestamp(0)),
            Work::None => None,
            Work::Due => Some(Timestamp(0)),
            Work::At(at) => Some(at),
        };
        let Some(want) = want else {
            if self.active > 0 {
                return Place::None;
            }
            let linger = linger.saturating_add(self.delay());
            // A slot that is already idle keeps its time.
            let until = if let Place::Idle(until) = self.place { until } else { after(now, linger) };
            return Place::Idle(until.max(self.next_start(rules)).max(self.asleep_until()));
        };
        if self.active >= self.concurrency(rules) {
            return Place::None;
        }
        let start = self.next_start(rules);
        let other = want.max(self.asleep_until());
        let at = start.max(other);
        if at <= now {
            Place::Ready { trust: self.trust(), waiters, active: self.active }
        } else {
            Place::Waiting { at, parked: other >= start && !self.is_worth_waiting(want) }
        }
    }

    /// Whether the slot waits for a `Retry-After` of a host that answers: the wait has a known, limited end, and the
    /// host is not at fault. A host that asks for it repeatedly without a good response in between is parked like any
    /// other.
    fn is_worth_waiting(&self, want: Timestamp) -> bool {
        self.sleep_until > want && self.sleep_until > self.backoff_until && self.sleeps <= PATIENT_SLEEPS
    }

    fn asleep_until(&self) -> Timestamp {
        self.sleep_until.max(self.backoff_until)
    }

    /// The end of the sleep, if the slot sleeps.
    pub(super) fn sleeps_until(&self, now: Timestamp) -> Option<Timestamp> {
        Some(self.asleep_until()).filter(|&until| until > now)
    }

    /// Counts one start and returns the number of its ticket.
    pub(super) fn grant(&mut self, rules: &Rules, now: Timestamp) -> u32 {
        self.active += 1;
        self.granted = self.granted.wrapping_add(1);
        self.before = self.last;
        self.last = (now, rules.draw(&self.key, self.granted));
        self.granted
    }

    /// Undoes a start, if it is still the last one.
    pub(super) fn refund(&mut self, ticket: u32) {
        if ticket == self.granted {
            self.last = self.before;
        }
    }

    /// Voids the tickets that were granted.
    pub(super) fn void_tickets(&mut self) {
        if self.active > 0
            && let Some(shared) = &self.shared
        {
            shared.version.fetch_add(1, Ordering::Release);
        }
    }

    /// Handles a response of any status, which shows that the host is reachable.
    pub(super) fn answered(
        &mut self,
        rules: &Rules,
        ticket: u32,
        seen: Observation,
        adjust_delay: bool,
        now: Timestamp,
    ) {
        self.has_answered = true;
        self.is_silent = false;
        self.failures = 0;
        self.cooldowns = 0;
        // The back-off is over: while a host fails it has one request at a time, and this response is for that
        // request.
        self.is_down = false;

        let is_refusal = matches!(seen.status, 429 | 503);
        // Otherwise sixteen refusals that were in flight together would double the delay sixteen times.
        let is_news = ticket.wrapping_sub(self.refused_at) as i32 > 0;
        // One URL that asks for years must not park its host, not even for the longest time that is accepted. Such a
        // refusal only makes the host slower.
        let is_heeded = is_refusal || (300..400).contains(&seen.status);
        let asked = seen.retry_after.filter(|wait| is_heeded && *wait <= rules.retry_after_max);
        let seen = Observation { retry_after: asked, ..seen };
        let before = self.delay();
        let throttle = self.throttle(rules);
        let estimated = match rules.estimate {
            LatencyEstimate::Last => seen,
            LatencyEstimate::Median => {
                if throttle.is_some() && adjust_delay {
                    self.latencies.push(seen.latency);
                }
                Observation { latency: self.latencies.median(), ..seen }
            }
        };
        self.learnt_delay = if is_refusal && !is_news {
            self.learnt_delay
        } else if let Some(throttle) = throttle {
            match (is_refusal, adjust_delay) {
                (_, true) => next_delay(&throttle, before, estimated, self.crawl_delay()),
                (true, false) => next_delay(&throttle, before, without_latency(seen), self.crawl_delay()),
                (false, false) => self.learnt_delay,
            }
        } else {
            self.without_throttle(rules, seen, is_refusal)
        };
        if is_refusal {
            self.refused_at = self.granted;
            if self.delay() > before {
                self.void_tickets();
            }
        }
        if let Some(wait) = asked {
            self.sleeps = self.sleeps.saturating_add(u8::from(is_news));
            self.sleep(after(now, wait));
        } else if seen.status < 400 {
            self.sleeps = 0;
        }
    }

    /// The delay after a response if AutoThrottle is off: only refusals make it longer, and good responses remove
    /// half of the excess.
    fn without_throttle(&self, rules: &Rules, seen: Observation, is_refusal: bool) -> Duration {
        let base = self.base_delay(rules);
        if is_refusal {
            let throttle = AutoThrottle {
                start_delay: base,
                max_delay: rules.max_delay.max(base),
                target_concurrency: 1.0,
                min_delay: base,
            };
            // Retry-After puts the slot to sleep; without AutoThrottle it does not affect later delays.
            let seen = Observation { latency: Duration::ZERO, retry_after: None, ..seen };
            return next_delay(&throttle, self.delay(), seen, self.crawl_delay());
        }
        let slowness = self.learnt_delay.saturating_sub(base);
        if seen.status >= 400 {
            self.learnt_delay
        } else if slowness < NO_SLOWNESS {
            base
        } else {
            base + slowness / 2
        }
    }

    /// Handles a request without a response that held its place for this time.
    pub(super) fn timed_out(&mut self, time: Duration) {
        self.is_silent |= time >= SILENCE;
    }

    /// Handles a connection-level failure: repeated failures lengthen the back-off, then take the host down. Returns
    /// a reason if the host is given up.
    pub(super) fn failed(&mut self, rules: &Rules, ticket: u32, now: Timestamp) -> Option<&'static str> {
        if ticket.wrapping_sub(self.failed_at) as i32 <= 0 {
            return None;
        }
        self.failed_at = self.granted;
        self.failures = self.failures.saturating_add(1);
        if rules.max_failures.is_some_and(|max| self.failures >= max) {
            if self.cooldowns >= rules.max_cooldowns {
                return Some(HOST_DOWN);
            }
            self.cooldowns += 1;
            self.is_down = true;
            self.backoff_until = after(now, rules.cooldown);
        } else if self.failures > 1 {
            let doubled = 1u32.checked_shl(self.failures - 1).unwrap_or(u32::MAX);
            let wait = self.delay().max(MIN_BACKOFF).saturating_mul(doubled).min(MAX_BACKOFF);
            self.backoff_until = after(now, wait);
        }
        self.void_tickets();
        None
    }

    /// Allows no start before `until`.
    pub(super) fn sleep(&mut self, until: Timestamp) {
        if until > self.sleep_until {
            self.sleep_until = until;
            self.void_tickets();
        }
    }

    fn own_mut(&mut self) -> &mut SlotRules {
        let own = self.own.get_or_insert_default();
        own.is_learnt = true;
        own
    }

    /// Sets the crawl delay. It can only be raised, because the authorities of one host (ports, schemes) share a
    /// slot; zero removes it.
    pub(super) fn set_crawl_delay(&mut self, rules: &Rules, delay: Duration) {
        let before = (self.delay(), self.concurrency(rules));
        if delay.is_zero() {
            if self.crawl_delay().is_some() {
                self.own_mut().crawl_delay = None;
            }
            return;
        }
        let delay = delay.min(YEAR);
        if self.crawl_delay().is_some_and(|old| old >= delay) {
            return;
        }
        self.own_mut().crawl_delay = Some(delay);
        if self.delay() > before.0 || self.concurrency(rules) < before.1 {
            self.void_tickets();
        }
    }

    /// Sets another base delay, and forgets what was learnt from responses.
    pub(super) fn set_delay(&mut self, delay: Duration) {
        let before = self.delay();
        let delay = delay.min(YEAR);
        self.own_mut().delay = Some(delay);
        self.learnt_delay = delay;
        if self.delay() > before {
            self.void_tickets();
        }
    }

    pub(super) fn set_concurrency(&mut self, rules: &Rules, concurrency: u32) {
        let before = self.concurrency(rules);
        self.own_mut().concurrency = Some(concurrency);
        if self.concurrency(rules) < before {
            self.void_tickets();
        }
    }
}

fn without_latency(seen: Observation) -> Observation {
    Observation { latency: Duration::ZERO, ..seen }
}

/// `at + wait`, rounded up to whole microseconds, so that a wait is never too short.
fn after(at: Timestamp, wait: Duration) -> Timestamp {
    let micros = u64::try_from(wait.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX);
    Timestamp(at.0.saturating_add(micros))
}
