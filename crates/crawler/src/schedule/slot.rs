//! One slot: how it is asked now, how its host is, and what it has to start.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::autothrottle::{AutoThrottle, Latencies, Observation, next_delay};
use crate::clock::Timestamp;
use crate::host::HostKey;
use crate::settings::LatencyEstimate;

use super::learnt::Learnt;
use super::rules::{Own, Rules};

/// Waiting after a connection failure starts from at least this (HLT-2).
const MIN_BACKOFF: Duration = Duration::from_secs(1);
/// And never takes longer than this.
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// Sleeps in a row that an idle crawl waits out.
const PATIENT_SLEEPS: u8 = 3;
/// Slowness that a host has earned without AutoThrottle is forgotten below this.
const NO_SLOWNESS: Duration = Duration::from_millis(10);
/// Longest delay that can be asked for while the crawl runs.
const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// A failure that took this long was waiting for a timeout; the others come at once.
const SILENCE: Duration = Duration::from_secs(5);

/// No start yet.
const NEVER: (Timestamp, f32) = (Timestamp(0), -1.0);

/// Reason of [`super::Next::GiveUp`] after `host_max_cooldowns`.
pub(super) const HOST_DOWN: &str = "host_down";

/// What a slot shares with the tickets that were granted for it.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Counts how often the rules became stricter.
    pub(super) version: AtomicU32,
    /// When a request was sent last, in microseconds.
    pub(super) sent: AtomicU64,
}

/// What the frontier has for a slot, as far as it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    None,
    Due,
    /// Delayed work only, first due then.
    At(Timestamp),
}

/// What is known of a host, which decides who may use the last places of the crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Answered, and has not failed since.
    Proven = 0,
    /// Never asked, or not answered yet.
    New = 1,
    /// Its last request found nobody, or no answer for a long time.
    Failing = 2,
}

impl Trust {
    pub(super) const ALL: [Self; 3] = [Self::Proven, Self::New, Self::Failing];
}

/// In which index of the scheduler a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    None,
    /// May be granted a start; `active` is part of its key.
    Ready {
        trust: Trust,
        waiters: bool,
        active: u32,
    },
    /// May be granted a start from then on. `parked`: for another reason than the delay between starts.
    Waiting {
        at: Timestamp,
        parked: bool,
    },
    /// Has nothing to do, and is forgotten then.
    Idle(Timestamp),
}

/// The state of one slot.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) key: HostKey,
    /// Made with the first ticket.
    pub(super) shared: Option<Arc<Shared>>,
    pub(super) own: Option<Box<Own>>,
    /// Those who wait for a start, first come first served. Boxed: few slots have any.
    #[expect(clippy::box_collection, reason = "8 instead of 32 bytes in each of a million slots")]
    pub(super) waiters: Option<Box<VecDeque<u64>>>,
    pub(super) gave_up: Option<&'static str>,
    pub(super) place: Place,
    pub(super) work: Work,
    /// Counts the news of work, so that an older empty lease does not hide newer work.
    pub(super) wakes: u32,
    pub(super) active: u32,
    /// Counts granted starts.
    pub(super) granted: u32,
    /// Start and draw of the last grant, and of the one before for when that is given back.
    last: (Timestamp, f32),
    before: (Timestamp, f32),
    /// Delay as learnt from the answers; the crawl delay is applied on top of it.
    learnt_delay: Duration,
    /// Of answers that may change the delay; empty without AutoThrottle.
    latencies: Latencies,
    /// No start before this, by Retry-After or by wish.
    sleep_until: Timestamp,
    /// Sleeps that the host asked for since its last good answer.
    sleeps: u8,
    /// No start before this, because the host fails.
    backoff_until: Timestamp,
    failures: u32,
    cooldowns: u32,
    /// Tickets granted up to here are too old to count as another failure, or as another refusal: what was in flight
    /// together says one thing, not many.
    failed_at: u32,
    refused_at: u32,
    pub(super) is_down: bool,
    has_answered: bool,
    /// The last request held its place for long and brought nothing.
    is_silent: bool,
    pub(super) is_giving_up: bool,
    /// How the scheduler counts it at present: its trust if it is busy.
    pub(super) counted: Option<Trust>,
    pub(super) counted_active: u32,
    /// What was last noted for the job.
    pub(super) noted: Option<Learnt>,
}

impl Slot {
    pub(super) fn new(key: HostKey, own: Option<Box<Own>>, rules: &Rules) -> Self {
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
            noted: None,
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

    /// What the answers of the host taught, if it is more than what the settings say.
    pub(super) fn learnt(&self, rules: &Rules, now: Timestamp) -> Option<Learnt> {
        let sleep_until = if self.sleep_until > now { self.sleep_until } else { Timestamp(0) };
        let is_new = self.learnt_delay == self.first_delay(rules) && sleep_until == Timestamp(0);
        (!is_new).then_some(Learnt { delay: self.learnt_delay, sleep_until })
    }

    /// Goes on with what an earlier run learnt, within the present settings.
    pub(super) fn restore(&mut self, rules: &Rules, learnt: Learnt) {
        let base = self.base_delay(rules);
        self.learnt_delay = learnt.delay.min(rules.max_delay.max(base)).max(base);
        self.sleep_until = learnt.sleep_until;
        self.noted = Some(learnt);
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

    /// Requests in flight that are allowed now: one with a crawl delay (B3), and one until a host that failed has
    /// answered again.
    pub(super) fn concurrency(&self, rules: &Rules) -> u32 {
        if self.crawl_delay().is_some() || self.failures > 0 {
            return 1;
        }
        self.own.as_ref().and_then(|own| own.concurrency).unwrap_or(rules.concurrency)
    }

    /// When the delay allows the next start.
    fn next_start(&self, rules: &Rules) -> Timestamp {
        let sent = self.shared.as_ref().map_or(0, |shared| shared.sent.load(Ordering::Acquire));
        if self.last == NEVER && sent == 0 {
            return Timestamp(0);
        }
        let last = self.last.0.max(Timestamp(sent));
        let delay = self.delay();
        let jitter = self.own.as_ref().and_then(|own| own.jitter).unwrap_or(rules.jitter);
        // Added, so that no rounding makes the gap shorter than the delay.
        let extra = delay.mul_f64(jitter * f64::from(self.last.1.max(0.0)));
        after(last, delay.saturating_add(extra))
    }

    pub(super) fn has_waiters(&self) -> bool {
        self.waiters.as_ref().is_some_and(|waiters| !waiters.is_empty())
    }

    /// Whether there is anything to start or in flight.
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

    /// Where the slot belongs at `now`. `linger`: how long an idle slot is kept beyond its delay.
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
            // An idle slot stays as old as it is.
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

    /// Whether what holds the slot back is a `Retry-After` of a host that answers: its end is known and capped, and the host
    /// is not at fault. One that asks for it again and again without a good answer between is parked like any other.
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

    /// Counts one start; the answer is the number of the ticket.
    pub(super) fn grant(&mut self, rules: &Rules, now: Timestamp) -> u32 {
        self.active += 1;
        self.granted = self.granted.wrapping_add(1);
        self.before = self.last;
        self.last = (now, rules.draw(&self.key, self.granted));
        self.granted
    }

    /// Takes a start back, as if it had not been; only while it is the last one.
    pub(super) fn refund(&mut self, ticket: u32) {
        if ticket == self.granted {
            self.last = self.before;
        }
    }

    /// Voids the tickets that are out.
    pub(super) fn bump(&mut self) {
        if self.active > 0
            && let Some(shared) = &self.shared
        {
            shared.version.fetch_add(1, Ordering::Release);
        }
    }

    /// An answer of any status: the host is there.
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
        // The back-off is over: while a host fails it has one request at a time, and that one waited for it.
        self.is_down = false;

        let is_refusal = matches!(seen.status, 429 | 503);
        // Sixteen refusals that were in flight together would else double the delay sixteen times.
        let is_news = ticket.wrapping_sub(self.refused_at) as i32 > 0;
        // One address that asks for years must not park its host, not even for the longest time that is believed: a
        // refusal makes the host slower, and that is all that is taken from it.
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
                self.bump();
            }
        }
        if let Some(wait) = asked {
            self.sleeps = self.sleeps.saturating_add(u8::from(is_news));
            self.sleep(after(now, wait));
        } else if seen.status < 400 {
            self.sleeps = 0;
        }
    }

    /// The delay after an answer when AutoThrottle is off: only refusals make it longer, and good answers take half of
    /// that away again.
    fn without_throttle(&self, rules: &Rules, seen: Observation, is_refusal: bool) -> Duration {
        let base = self.base_delay(rules);
        if is_refusal {
            let throttle = AutoThrottle {
                start_delay: base,
                max_delay: rules.max_delay.max(base),
                target_concurrency: 1.0,
                min_delay: base,
            };
            // A Retry-After puts the slot to sleep; without AutoThrottle it says nothing about the delays after that.
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

    /// No answer came, after a place was taken for so long.
    pub(super) fn held(&mut self, time: Duration) {
        self.is_silent |= time >= SILENCE;
    }

    /// A connection-level failure (HLT-2, HLT-3). Answers with a reason if the host is given up.
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
        self.bump();
        None
    }

    /// No start before `until`.
    pub(super) fn sleep(&mut self, until: Timestamp) {
        if until > self.sleep_until {
            self.sleep_until = until;
            self.bump();
        }
    }

    fn own_mut(&mut self) -> &mut Own {
        let own = self.own.get_or_insert_default();
        own.is_learnt = true;
        own
    }

    /// A crawl delay only ever rises, because the authorities of one host (ports, schemes) share a slot; zero lifts it.
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
            self.bump();
        }
    }

    /// Another base delay: what the answers taught is forgotten.
    pub(super) fn set_delay(&mut self, delay: Duration) {
        let before = self.delay();
        let delay = delay.min(YEAR);
        self.own_mut().delay = Some(delay);
        self.learnt_delay = delay;
        if self.delay() > before {
            self.bump();
        }
    }

    pub(super) fn set_concurrency(&mut self, rules: &Rules, concurrency: u32) {
        let before = self.concurrency(rules);
        self.own_mut().concurrency = Some(concurrency);
        if self.concurrency(rules) < before {
            self.bump();
        }
    }
}

fn without_latency(seen: Observation) -> Observation {
    Observation { latency: Duration::ZERO, ..seen }
}

/// `at + wait`, rounded up to whole microseconds: a wait is never shorter than asked for.
fn after(at: Timestamp, wait: Duration) -> Timestamp {
    let micros = u64::try_from(wait.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX);
    Timestamp(at.0.saturating_add(micros))
}
