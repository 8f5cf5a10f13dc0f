//! A crawl of a recorded site with MaybeDont's rules.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::recording::{Answer, Recording};
use super::replay::{Order, Replay, lost};
use super::replayed::Replayed;
use super::seeded_random::SeededRandom;
use crate::maybedont::{Decision, Gate, GateSettings};

struct ReferenceCrawl<'a> {
    recording: &'a Recording,
    order: Order,
    gate: Gate,
    dice: SeededRandom,
    queue: BTreeMap<i64, u32>,
    next: i64,
    seen: HashSet<u32>,
    in_flight: VecDeque<u32>,
    fetched: Vec<u32>,
    dropped: HashMap<u32, String>,
    explored: usize,
    learnt: usize,
}

impl Replay {
    /// Crawls in the same order, with as many requests in flight, with the [`Gate`], as MaybeDont 0.1.1 does: every request is decided once.
    /// The seed is that of the options. The gate learns the visible text of pages; in a crawl it also has that of scripts.
    ///
    /// # Panics
    /// The recording was read without texts.
    pub fn run_reference(&self, recording: &Recording) -> Replayed {
        assert!(recording.has_texts, "a recording for MaybeDont's rules is read with `read_with_texts`");
        let seed = self.options.seed;
        let start = recording.start;
        let mut crawl = ReferenceCrawl {
            recording,
            order: self.order,
            gate: Gate::new(GateSettings { seed, ..GateSettings::default() })
                .expect("the defaults are in range"),
            dice: SeededRandom::new(seed),
            queue: BTreeMap::new(),
            next: 0,
            seen: HashSet::from([start]),
            in_flight: VecDeque::new(),
            fetched: Vec::new(),
            dropped: HashMap::new(),
            explored: 0,
            learnt: 0,
        };
        crawl.send(start);
        loop {
            let has_room = crawl.in_flight.len() < self.in_flight.max(1);
            if has_room && let Some((_, page)) = crawl.queue.pop_first() {
                crawl.decide(page);
            } else if let Some(page) = crawl.in_flight.pop_front() {
                crawl.land(page);
            } else {
                break;
            }
        }
        let lost = lost(recording, &crawl.fetched, &crawl.dropped).into_iter().map(|(_, loss)| loss);
        Replayed {
            explored: crawl.explored,
            pages_learnt: crawl.learnt,
            ..Replayed::of(recording, &crawl.fetched, crawl.dropped.len(), lost.collect())
        }
    }
}

impl ReferenceCrawl<'_> {
    fn send(&mut self, page: u32) {
        self.fetched.push(page);
        self.in_flight.push_back(page);
    }

    fn decide(&mut self, page: u32) {
        match self.gate.decide(self.recording.pages[page as usize].url.as_str()) {
            Decision::Skip { reason, .. } => {
                self.dropped.insert(page, reason);
            }
            Decision::Fetch { explored, .. } => {
                self.explored += usize::from(explored);
                self.send(page);
            }
        }
    }

    fn land(&mut self, page: u32) {
        let recording = self.recording;
        let recorded = &recording.pages[page as usize];
        match &recorded.answer {
            Answer::Page(page) => {
                self.gate.learn(recorded.url.as_str(), &page.visible);
                self.learnt += 1;
                for to in &page.links {
                    if self.seen.insert(*to) {
                        self.next += 1;
                        self.queue.insert(self.order.place(self.next, &mut self.dice), *to);
                    }
                }
            }
            Answer::Redirect { page: Some(target), .. } if !self.fetched.contains(target) => {
                // The target of a redirect is not judged.
                self.seen.insert(*target);
                self.queue.retain(|_, queued| queued != target);
                self.send(*target);
            }
            Answer::Redirect { .. } | Answer::Other => {}
        }
    }
}
