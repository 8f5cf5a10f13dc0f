//! A crawl of a recorded site, with the predictor that the crawler uses.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::super::tie::Tie;
use super::super::{Attempt, Decision, Options, Predictor};
use super::recording::{Answer, Learnable, Recording};
use super::replayed::{Cause, Duplicate, Loss, Replayed};
use super::seeded_random::SeededRandom;

/// The order in which discovered URLs are fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Breadth-first: the oldest first.
    #[default]
    Breadth,
    /// Any, by the seed.
    Random,
    /// Depth-first: the newest first.
    Depth,
}

impl Order {
    /// All orders.
    pub const ALL: [Self; 3] = [Self::Breadth, Self::Random, Self::Depth];

    /// The name in commands: `bfs`, `random`, `dfs`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Breadth => "bfs",
            Self::Random => "random",
            Self::Depth => "dfs",
        }
    }

    /// The place in the queue of the URL with this number.
    pub(super) fn place(self, number: i64, dice: &mut SeededRandom) -> i64 {
        match self {
            Self::Breadth => number,
            Self::Depth => -number,
            Self::Random => (dice.below(1 << 40) << 22) as i64 | (number & 0x3F_FFFF),
        }
    }
}

/// A crawl of a recorded site without a network. It does not depend on time: the same recording and settings give the same result.
///
/// It follows links of the list only. Answers land in the order of the requests. The predictor is used as the crawler's middleware uses it:
/// a request is delayed behind others, held until an answer lands, skipped until nothing else is left, and then dropped or sent.
#[derive(Clone, Copy, Debug)]
pub struct Replay {
    /// The order of requests.
    pub order: Order,
    /// The number of requests in flight: the next one is decided while so many others, less one, are not yet learnt.
    pub in_flight: usize,
    /// The options of the predictor; its seed decides the random order, too.
    pub options: Options,
}

/// Requests in the order in which they are due: regular ones, delayed ones by probability, skipped ones that have no rank yet, and skipped ones
/// by rank.
type Queue = BTreeMap<(u32, i64), u32>;
const REGULAR: u32 = 0;
const DELAYED: u32 = 1;
const SKIPPED: u32 = 200;
const RANKED: u32 = 201;

struct Crawl<'a> {
    recording: &'a Recording,
    order: Order,
    predictor: Predictor,
    dice: SeededRandom,
    queue: Queue,
    /// Held requests: they are asked for again when an answer lands.
    held: Vec<((u32, i64), u32)>,
    next: i64,
    seen: HashSet<u32>,
    in_flight: VecDeque<Sent>,
    fetched: Vec<u32>,
    /// The answers that landed, by page: how many had landed before.
    landed: HashMap<u32, usize>,
    /// By the number of a page, its number in the model.
    learnt: HashMap<u32, u32>,
    /// By content, the first page that was sent for.
    first_of: HashMap<u32, u32>,
    duplicates: Vec<Duplicate>,
    dropped: HashMap<u32, String>,
    /// The levels of the queue at which delayed pages wait.
    level: HashMap<u32, u32>,
}

/// A request in flight.
struct Sent {
    page: u32,
    /// Why the request was sent, as far as that is known before its answer.
    cause: Option<Cause>,
    /// The number of answers that had landed when it was sent.
    landed: usize,
}

impl Replay {
    /// A breadth-first crawl with 16 requests in flight.
    pub fn with(options: Options) -> Self {
        Self { order: Order::Breadth, in_flight: 16, options }
    }

    /// Crawls.
    pub fn run(&self, recording: &Recording) -> Replayed {
        let mut crawl = Crawl {
            recording,
            order: self.order,
            predictor: Predictor::new(self.options),
            dice: SeededRandom::new(self.options.seed),
            queue: Queue::new(),
            held: Vec::new(),
            next: 0,
            seen: HashSet::new(),
            in_flight: VecDeque::new(),
            fetched: Vec::new(),
            landed: HashMap::new(),
            learnt: HashMap::new(),
            first_of: HashMap::new(),
            duplicates: Vec::new(),
            dropped: HashMap::new(),
            level: HashMap::new(),
        };
        crawl.discover_start();
        loop {
            let has_room = crawl.in_flight.len() < self.in_flight.max(1);
            let is_last = crawl.queue.first_key_value().is_some_and(|((level, _), _)| *level >= SKIPPED);
            let is_due = !crawl.queue.is_empty() && (!is_last || crawl.in_flight.is_empty());
            if has_room && is_due {
                crawl.decide_next();
            } else if let Some(sent) = crawl.in_flight.pop_front() {
                crawl.land(&sent);
            } else if crawl.queue.is_empty() && crawl.held.is_empty() {
                break;
            } else {
                crawl.release_held();
            }
        }
        crawl.result()
    }
}

impl Crawl<'_> {
    fn discover_start(&mut self) {
        let start = self.recording.start;
        let url = &self.recording.pages[start as usize].url;
        self.predictor.discover(&self.recording.site, url, None);
        self.seen.insert(start);
        self.send(start, None);
    }

    fn enqueue(&mut self, page: u32) {
        self.next += 1;
        let at = self.order.place(self.next, &mut self.dice);
        self.queue.insert((REGULAR, at), page);
    }

    fn decide_next(&mut self) {
        let Some((key, page)) = self.queue.pop_first() else { return };
        let recorded = &self.recording.pages[page as usize];
        let (site, url) = (&self.recording.site, &recorded.url);
        if key.0 == SKIPPED {
            self.queue.insert((RANKED + self.predictor.rank(site, url), key.1), page);
            return;
        }
        let attempt = if key.0 >= RANKED { Attempt::Last } else { Attempt::Regular };
        let is_warm = self.predictor.totals().learnt >= u64::from(self.predictor.options().warmup);
        let cause = match self.predictor.decide(site, url, attempt) {
            Decision::Drop(reason) => {
                self.dropped.insert(page, reason.to_string());
                return;
            }
            Decision::Skip(_) => {
                self.queue.insert((SKIPPED, key.1), page);
                return;
            }
            Decision::Delay { probability } => {
                let level = DELAYED + (probability * 100.0) as u32;
                if self.level.get(&page).is_none_or(|before| level > before + 2) {
                    self.level.insert(page, level);
                    let rank = i64::from(self.predictor.rank(site, url));
                    self.queue.insert((level, rank << u32::BITS | i64::from(page)), page);
                    return;
                }
                None
            }
            Decision::Hold if !self.in_flight.is_empty() => {
                self.held.push((key, page));
                return;
            }
            Decision::Explore(_) => Some(Cause::Exploration),
            Decision::Hold | Decision::Fetch => None,
        };
        let cause = cause.or((!is_warm).then_some(Cause::WarmUp));
        self.send(page, cause);
    }

    fn send(&mut self, page: u32, cause: Option<Cause>) {
        let recorded = &self.recording.pages[page as usize];
        self.predictor.request_started(&self.recording.site, &recorded.url);
        self.fetched.push(page);
        self.in_flight.push_back(Sent { page, cause, landed: self.landed.len() });
    }

    fn release_held(&mut self) {
        for (key, page) in std::mem::take(&mut self.held) {
            self.queue.insert(key, page);
        }
    }

    fn land(&mut self, sent: &Sent) {
        let recorded = &self.recording.pages[sent.page as usize];
        let site = &self.recording.site;
        self.predictor.request_finished(site, &recorded.url);
        self.landed.insert(sent.page, self.landed.len());
        match &recorded.answer {
            Answer::Page(page) => {
                let ties = self.predictor.ties(site, &recorded.url);
                self.learn(sent.page, page);
                self.attribute(sent, &ties);
            }
            Answer::Redirect { to, page } => {
                self.predictor.redirect(site, &recorded.url, to);
                // The target of a redirect is not judged.
                if let Some(target) = *page
                    && !self.fetched.contains(&target)
                {
                    self.seen.insert(target);
                    self.queue.retain(|_, queued| *queued != target);
                    self.held.retain(|(_, queued)| *queued != target);
                    self.send(target, None);
                }
            }
            Answer::Other => {}
        }
        self.release_held();
    }

    fn learn(&mut self, number: u32, page: &Learnable) {
        let recording = self.recording;
        let (site, url) = (&recording.site, &recording.pages[number as usize].url);
        let learnt = self.predictor.learn(site, url, page.text.clone());
        self.learnt.insert(number, learnt);
        if let Some(named) = &page.canonical {
            self.predictor.claim(site, learnt, url, named);
        }
        for to in &page.links {
            let url = &recording.pages[*to as usize].url;
            let mut contexts = page.places.contexts(url, learnt);
            if self.seen.insert(*to) {
                self.predictor.discover(site, url, contexts.next());
                self.enqueue(*to);
            }
            for context in contexts {
                self.predictor.link(site, url, context);
            }
        }
        self.predictor.refuse_others(site, learnt, &page.places);
    }

    /// Finds out why a page was fetched whose content had been fetched before.
    fn attribute(&mut self, sent: &Sent, ties: &[Tie]) {
        let recording = self.recording;
        let Some(content) = recording.truth.content(recording.pages[sent.page as usize].row) else { return };
        let first = *self.first_of.entry(content).or_insert(sent.page);
        if first == sent.page {
            return;
        }
        let site = &recording.site;
        let own = self.learnt[&sent.page];
        let is_equal = |page: u32| self.predictor.shows_the_same(site, page, own);
        let equal = |page: &u32| {
            let row = recording.pages[*page as usize].row;
            *page != sent.page && recording.truth.content(row) == Some(content) && is_equal(self.learnt[page])
        };
        let best = ties
            .iter()
            .filter(|tie| tie.pages.iter().any(|page| is_equal(*page)))
            .max_by(|a, b| a.probability.total_cmp(&b.probability));
        let cause = match (sent.cause, best) {
            (Some(cause), _) => cause,
            _ if !self.predictor.has_content(site, own) => Cause::NoText,
            _ if !self.learnt.keys().any(equal) => Cause::NotEqual,
            (None, None) => Cause::NotTied,
            (None, Some(tie)) if tie.passes || self.landed[&first] >= sent.landed => Cause::InFlight,
            (None, Some(tie)) if tie.evidence.nodup > 0.05 => Cause::Mixed,
            (None, Some(_)) => Cause::LittleEvidence,
        };
        let url = recording.pages[sent.page as usize].url.to_string();
        let like = recording.pages[first as usize].url.to_string();
        let rule = best.map(|tie| tie.to_string()).unwrap_or_default();
        self.duplicates.push(Duplicate { cause, url, like, rule });
    }

    /// A page that was fetched and that the model takes for the same as one that was not.
    fn taken_for(&mut self, number: u32) -> Option<String> {
        let recording = self.recording;
        let recorded = &recording.pages[number as usize];
        let Answer::Page(page) = &recorded.answer else { return None };
        let learnt = self.predictor.learn(&recording.site, &recorded.url, page.text.clone());
        let is_same = |page: &u32| self.predictor.shows_the_same(&recording.site, self.learnt[page], learnt);
        let fetched = self.fetched.iter().filter(|page| self.learnt.contains_key(*page));
        let same = fetched.copied().find(is_same)?;
        Some(recording.pages[same as usize].url.to_string())
    }

    fn result(mut self) -> Replayed {
        let (fetched, dropped) = (std::mem::take(&mut self.fetched), std::mem::take(&mut self.dropped));
        let lost = lost(self.recording, &fetched, &dropped);
        self.fetched = fetched;
        let lost = lost.into_iter().map(|(page, loss)| Loss { taken_for: self.taken_for(page), ..loss });
        let lost = lost.collect();
        let totals = self.predictor.totals();
        Replayed {
            explored: totals.explored as usize,
            duplicates: self.duplicates,
            estimated_loss: totals.loss(),
            pages_learnt: totals.learnt as usize,
            ..Replayed::of(self.recording, &self.fetched, dropped.len(), lost)
        }
    }
}

/// The contents that were never fetched, each with the number of a page that has it, and why that was not fetched.
pub(super) fn lost(
    recording: &Recording,
    fetched: &[u32],
    dropped: &HashMap<u32, String>,
) -> Vec<(u32, Loss)> {
    let truth = &recording.truth;
    let content = |page: u32| truth.content(recording.pages[page as usize].row);
    let have: HashSet<u32> = fetched.iter().filter_map(|page| content(*page)).collect();
    let mut lost: BTreeMap<u32, (u32, Option<String>)> = BTreeMap::new();
    for number in 0..recording.pages.len() as u32 {
        let Some(content) = content(number).filter(|content| !have.contains(content)) else { continue };
        let rule = dropped.get(&number).cloned();
        let is_nearer = |(_, known): &(u32, Option<String>)| known.is_none() && rule.is_some();
        if lost.get(&content).is_none_or(is_nearer) {
            lost.insert(content, (number, rule));
        }
    }
    let loss = |(number, rule): (u32, Option<String>)| {
        let through = if rule.is_none() { skipped_before(recording, number, dropped) } else { None };
        let url = recording.pages[number as usize].url.to_string();
        (number, Loss { url, rule, through, taken_for: None })
    };
    lost.into_values().map(loss).collect()
}

/// A skipped page that leads to a page which was not found, perhaps by way of others that were not found.
fn skipped_before(
    recording: &Recording,
    page: u32,
    dropped: &HashMap<u32, String>,
) -> Option<(String, String)> {
    let (mut reached, mut next) = (HashSet::from([page]), 0);
    let mut queue = vec![page];
    while let Some(to) = queue.get(next).copied() {
        next += 1;
        for (from, recorded) in (0..).zip(&recording.pages) {
            let leads = match &recorded.answer {
                Answer::Page(page) => page.links.contains(&to),
                Answer::Redirect { page, .. } => *page == Some(to),
                Answer::Other => false,
            };
            if !leads || !reached.insert(from) {
                continue;
            }
            if let Some(rule) = dropped.get(&from) {
                return Some((recorded.url.to_string(), rule.clone()));
            }
            queue.push(from);
        }
    }
    None
}
