//! A crawl without a network: requests in the order of their discovery, with a number of them in flight.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::Duration;

use super::super::{Attempt, Decision, Options, PageText, Predictor};
use super::case::CaseRequest;
use super::outcome::{Outcome, Times};
use crate::maybedont::{self, Gate, GateSettings, SettingsError};

/// Links are discovered this many requests before they are due.
const DISCOVERED_AHEAD: usize = 200;
/// The priority of a request that waits for a page in flight.
const HOLD_PRIORITY: i64 = 1_000;
/// The priority of a request that is skipped unless something contradicts that before the end.
const LAST_PRIORITY: i64 = 5_000;

/// A crawl without a network. It does not depend on time: the same requests and the same model give the same outcome.
#[derive(Clone, Copy, Debug)]
pub struct Simulation {
    /// The number of requests in flight when the next one is decided; with 0, every page is learnt before the next decision.
    pub in_flight: usize,
    /// The clock that measures calls of the model: wall time since some moment, or CPU time of the thread.
    pub clock: fn() -> Duration,
}

impl Simulation {
    /// A simulation with this many requests in flight and without a clock: all times of the outcome are 0.
    pub fn in_flight(in_flight: usize) -> Self {
        Self { in_flight, clock: || Duration::ZERO }
    }

    /// Sets the clock that measures calls of the model.
    pub fn clock(mut self, clock: fn() -> Duration) -> Self {
        self.clock = clock;
        self
    }

    /// Crawls with the [`Predictor`], as the crawler's middleware does: requests that are delayed, held or skipped are decided again after
    /// other requests.
    pub fn with_default(&self, requests: &[CaseRequest], options: Options) -> Outcome {
        let mut model = DefaultModel { predictor: Predictor::new(options), watch: Watch::new(self.clock) };
        let outcome = self.crawl(requests, &mut model);
        let totals = model.predictor.totals();
        let (learning, asking) = model.watch.times();
        let explored = totals.explored as usize;
        Outcome { explored, estimated_loss: totals.loss(), learning, asking, ..outcome }
    }

    /// Crawls with the [`Gate`], as MaybeDont 0.1.1 does: every request is decided once.
    ///
    /// # Errors
    /// A setting is out of range.
    pub fn with_reference(
        &self,
        requests: &[CaseRequest],
        settings: GateSettings,
    ) -> Result<Outcome, SettingsError> {
        let mut model =
            ReferenceModel { gate: Gate::new(settings)?, explored: 0, watch: Watch::new(self.clock) };
        let outcome = self.crawl(requests, &mut model);
        let (learning, asking) = model.watch.times();
        Ok(Outcome { explored: model.explored, learning, asking, ..outcome })
    }

    fn crawl(&self, requests: &[CaseRequest], model: &mut impl Model) -> Outcome {
        let mut seen = HashSet::new();
        let mut queue: BTreeMap<(i64, usize), &CaseRequest> = requests
            .iter()
            .enumerate()
            .filter(|(_, request)| seen.insert(request.url.as_str()))
            .map(|(at, request)| ((0, at), request))
            .collect();
        let contents: HashSet<u64> = queue.values().filter_map(|request| request.own()).collect();
        let copies = queue.values().filter(|request| !request.is_wall).count() - contents.len();
        let mut outcome =
            Outcome { requests: queue.len(), contents: contents.len(), copies, ..Outcome::default() };
        let mut undiscovered = requests.iter();
        let mut discovered = 0;
        let mut in_flight: VecDeque<&CaseRequest> = VecDeque::new();
        let mut got: HashSet<u64> = HashSet::new();
        let mut waits = false;
        loop {
            if (in_flight.len() > self.in_flight || queue.is_empty() || waits)
                && let Some(request) = in_flight.pop_front()
            {
                waits = false;
                model.learn(request);
                continue;
            }
            waits = false;
            while discovered < DISCOVERED_AHEAD + outcome.fetched + outcome.requests - queue.len()
                && let Some(request) = undiscovered.next()
            {
                model.discover(request);
                discovered += 1;
            }
            let Some(((priority, at), request)) = queue.pop_first() else { break };
            if priority >= LAST_PRIORITY && !in_flight.is_empty() {
                queue.insert((priority, at), request);
                waits = true;
                continue;
            }
            match model.decide(request, priority, !in_flight.is_empty()) {
                Action::Fetch => {
                    outcome.fetched += 1;
                    let is_new = request.own().is_none_or(|content| got.insert(content));
                    outcome.fetched_copies += usize::from(!is_new);
                    in_flight.push_back(request);
                }
                Action::Later(priority) => {
                    queue.insert((priority, at), request);
                }
                Action::Drop => outcome.skipped += 1,
            }
        }
        outcome.lost = contents.len() - got.len();
        outcome
    }
}

impl CaseRequest {
    /// The content; `None` if the response is a wall.
    fn own(&self) -> Option<u64> {
        (!self.is_wall).then_some(self.content)
    }
}

enum Action {
    Fetch,
    Later(i64),
    Drop,
}

trait Model {
    fn discover(&mut self, request: &CaseRequest);
    fn decide(&mut self, request: &CaseRequest, priority: i64, others_in_flight: bool) -> Action;
    fn learn(&mut self, request: &CaseRequest);
}

struct DefaultModel {
    predictor: Predictor,
    watch: Watch,
}

impl Model for DefaultModel {
    fn discover(&mut self, request: &CaseRequest) {
        self.predictor.discover(request.site(), &request.url, None);
    }

    fn decide(&mut self, request: &CaseRequest, priority: i64, others_in_flight: bool) -> Action {
        let (predictor, site, url) = (&mut self.predictor, request.site(), &request.url);
        let attempt = if priority >= LAST_PRIORITY { Attempt::Last } else { Attempt::Regular };
        let decision = self.watch.asking(|| predictor.decide(site, url, attempt));
        match decision {
            Decision::Drop(_) => return Action::Drop,
            Decision::Skip(_) => return Action::Later(LAST_PRIORITY),
            Decision::Delay { probability } if priority < (probability * 50.0) as i64 => {
                return Action::Later((probability * 50.0) as i64);
            }
            Decision::Hold if priority < HOLD_PRIORITY && others_in_flight => {
                return Action::Later(HOLD_PRIORITY);
            }
            Decision::Delay { .. } | Decision::Hold | Decision::Explore(_) | Decision::Fetch => {}
        }
        predictor.request_started(site, url);
        Action::Fetch
    }

    fn learn(&mut self, request: &CaseRequest) {
        let (predictor, site, url) = (&mut self.predictor, request.site(), &request.url);
        predictor.request_finished(site, url);
        let blocks = request.blocks();
        self.watch.learning(|| {
            let text = PageText::of(blocks.iter().map(|(position, text)| (*position, text.as_str())));
            predictor.learn(site, url, text);
        });
    }
}

struct ReferenceModel {
    gate: Gate,
    explored: usize,
    watch: Watch,
}

impl Model for ReferenceModel {
    fn discover(&mut self, _: &CaseRequest) {}

    fn decide(&mut self, request: &CaseRequest, _: i64, _: bool) -> Action {
        let (gate, url) = (&self.gate, request.url.as_str());
        match self.watch.asking(|| gate.decide(url)) {
            maybedont::Decision::Skip { .. } => Action::Drop,
            maybedont::Decision::Fetch { explored, .. } => {
                self.explored += usize::from(explored);
                Action::Fetch
            }
        }
    }

    fn learn(&mut self, request: &CaseRequest) {
        let lines: Vec<String> = request.blocks().into_iter().map(|(_, text)| text).collect();
        let (gate, url, text) = (&mut self.gate, request.url.as_str(), lines.join("\n"));
        self.watch.learning(|| gate.learn(url, &text));
    }
}

/// Measures the duration of calls.
struct Watch {
    clock: fn() -> Duration,
    learning: Vec<Duration>,
    asking: Vec<Duration>,
}

impl Watch {
    fn new(clock: fn() -> Duration) -> Self {
        Self { clock, learning: Vec::new(), asking: Vec::new() }
    }

    fn learning(&mut self, call: impl FnOnce()) {
        let before = (self.clock)();
        call();
        self.learning.push((self.clock)().saturating_sub(before));
    }

    fn asking<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let before = (self.clock)();
        let answer = call();
        self.asking.push((self.clock)().saturating_sub(before));
        answer
    }

    fn times(self) -> (Times, Times) {
        (Times::of(self.learning), Times::of(self.asking))
    }
}
