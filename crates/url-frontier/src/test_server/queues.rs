//! The queues of all jobs, and when they are served.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::message::{GetParams, Item, Stats, Status, UrlInfo};

/// A job and the name of a queue in it.
type Key = (String, String);

#[derive(Debug, Default)]
pub(crate) struct Queues {
    queues: HashMap<Key, Queue>,
    /// The order in which they have their turn.
    turns: VecDeque<Key>,
    longest_hold: u32,
}

#[derive(Debug, Default)]
struct Queue {
    /// URLs that are not done, by the time from which on they are served.
    scheduled: BTreeMap<(u64, String), UrlInfo>,
    /// When each known URL is served; `None` for one that is done.
    known: BTreeMap<String, Option<u64>>,
    /// Until when a URL is held.
    held: HashMap<String, u64>,
    delay: Option<u32>,
    blocked_until: u64,
    last_served: u64,
}

/// The delay of a queue that was told none, in seconds.
const DELAY: u32 = 1;
/// The hold of a caller that names none, in seconds.
const HOLD: u32 = 30;
/// The most bytes of a name.
const MAX_KEY: usize = 255;

impl Queue {
    fn held(&self, now: u64) -> usize {
        self.held.values().filter(|until| **until > now).count()
    }

    /// The URLs that are served now.
    fn serve(&mut self, asked: &GetParams, now: u64, keeps_pauses: bool) -> Vec<UrlInfo> {
        let most = if asked.max_urls_per_queue == 0 { usize::MAX } else { asked.max_urls_per_queue as usize };
        let is_early = self.last_served + u64::from(self.delay.unwrap_or(DELAY)) >= now;
        if self.blocked_until >= now || keeps_pauses && is_early || self.held(now) >= most {
            return Vec::new();
        }
        let hold = if asked.delay_requestable == 0 { HOLD } else { asked.delay_requestable };
        let due = self.scheduled.range(..=(now, String::from(char::MAX)));
        let free = due.filter(|((_, url), _)| self.held.get(url).is_none_or(|until| *until <= now));
        let served: Vec<UrlInfo> = free.take(most).map(|(_, info)| info.clone()).collect();
        for info in &served {
            self.held.insert(info.url.clone(), now + u64::from(hold));
        }
        if !served.is_empty() {
            self.last_served = now;
        }
        served
    }

    fn put(&mut self, info: UrlInfo, date: Option<u64>, is_found: bool) -> Status {
        let url = info.url.clone();
        if let Some(known) = self.known.get(&url) {
            if is_found {
                return Status::Skipped;
            }
            if let Some(date) = known {
                self.scheduled.remove(&(*date, url.clone()));
            }
            self.held.remove(&url);
        }
        if let Some(date) = date {
            self.scheduled.insert((date, url.clone()), info);
        }
        self.known.insert(url, date);
        Status::Ok
    }
}

impl Queues {
    /// Serves URLs of one queue or of those whose turn it is.
    pub(crate) fn serve(&mut self, asked: &GetParams, now: u64, keeps_pauses: bool) -> Vec<UrlInfo> {
        self.longest_hold = self.longest_hold.max(asked.delay_requestable);
        let job = asked.crawl_id.clone().unwrap_or_default();
        if !asked.key.is_empty() {
            let queue = self.queues.get_mut(&(job, asked.key.clone()));
            return queue.map(|queue| queue.serve(asked, now, keeps_pauses)).unwrap_or_default();
        }
        let mut left = if asked.max_queues == 0 { usize::MAX } else { asked.max_queues as usize };
        let mut all = Vec::new();
        for _ in 0..self.turns.len() {
            if left == 0 {
                break;
            }
            let Some(key) = self.turns.pop_front() else { break };
            if key.0 == job
                && let Some(queue) = self.queues.get_mut(&key)
            {
                let served = queue.serve(asked, now, keeps_pauses);
                left -= usize::from(!served.is_empty());
                all.extend(served);
            }
            self.turns.push_back(key);
        }
        all
    }

    /// Stores an item.
    pub(crate) fn put(&mut self, item: Item, now: u64) -> Status {
        let (info, date, is_found) = match item {
            Item::Discovered(found) => (found.info, Some(now), true),
            Item::Known(known) => {
                let date = known.refetchable_from_date;
                (known.info, (date > 0).then_some(date), false)
            }
        };
        let Some(info) = info.filter(|info| !info.key.is_empty() && info.key.len() <= MAX_KEY) else {
            return Status::Skipped;
        };
        let key = (info.crawl_id.clone(), info.key.clone());
        if !self.queues.contains_key(&key) {
            self.turns.push_back(key.clone());
        }
        self.queues.entry(key).or_default().put(info, date, is_found)
    }

    /// Sets the delay of a queue, if there is one.
    pub(crate) fn set_delay(&mut self, job: String, key: String, delay: u32) {
        if let Some(queue) = self.queues.get_mut(&(job, key)) {
            queue.delay = Some(delay);
        }
    }

    /// Blocks a queue, if there is one.
    pub(crate) fn block(&mut self, job: String, key: String, until: u64) {
        if let Some(queue) = self.queues.get_mut(&(job, key)) {
            queue.blocked_until = until;
        }
    }

    /// Forgets what a restart forgets.
    pub(crate) fn forget(&mut self) {
        for queue in self.queues.values_mut() {
            queue.held.clear();
            (queue.delay, queue.blocked_until, queue.last_served) = (None, 0, 0);
        }
    }

    fn of<'a>(&'a self, job: &'a str) -> impl Iterator<Item = (&'a str, &'a Queue)> {
        let queues = self.queues.iter().filter(move |((of, _), _)| of == job);
        queues.map(|((_, key), queue)| (key.as_str(), queue))
    }

    /// The numbers of a job.
    pub(crate) fn stats(&self, job: &str, now: u64) -> Stats {
        let mut stats = Stats { crawl_id: job.to_owned(), ..Stats::default() };
        let (mut done, mut active) = (0, 0);
        for (_, queue) in self.of(job) {
            let queued = queue.scheduled.len() as u64;
            stats.size += queued;
            stats.in_process += u32::try_from(queue.held(now)).unwrap_or(u32::MAX);
            stats.number_of_queues += 1;
            done += queue.known.len() as u64 - queued;
            active += u64::from(queued > 0);
        }
        stats.counts.insert("completed".to_owned(), done);
        stats.counts.insert("active_queues".to_owned(), active);
        stats
    }

    pub(crate) fn queued(&self, job: &str) -> BTreeMap<String, u64> {
        self.of(job)
            .flat_map(|(_, queue)| queue.scheduled.keys())
            .map(|(date, url)| (url.clone(), *date))
            .collect()
    }

    pub(crate) fn waiting(&self, job: &str, now: u64) -> u64 {
        self.of(job).map(|(_, queue)| (queue.scheduled.len() - queue.held(now)) as u64).sum()
    }

    pub(crate) fn completed(&self, job: &str) -> Vec<String> {
        let known = self.of(job).flat_map(|(_, queue)| &queue.known);
        let mut done: Vec<String> =
            known.filter(|(_, date)| date.is_none()).map(|(url, _)| url.clone()).collect();
        done.sort_unstable();
        done
    }

    pub(crate) fn metadata(&self, job: &str, url: &str) -> Vec<String> {
        let mut infos = self.of(job).flat_map(|(_, queue)| queue.scheduled.values());
        infos
            .find(|info| info.url == url)
            .map(|info| info.metadata.keys().cloned().collect())
            .unwrap_or_default()
    }

    pub(crate) fn delays(&self, job: &str) -> BTreeMap<String, u32> {
        self.of(job).filter_map(|(key, queue)| Some((key.to_owned(), queue.delay?))).collect()
    }

    pub(crate) fn blocks(&self, job: &str) -> BTreeMap<String, u64> {
        let blocked = self.of(job).filter(|(_, queue)| queue.blocked_until > 0);
        blocked.map(|(key, queue)| (key.to_owned(), queue.blocked_until)).collect()
    }

    pub(crate) fn longest_hold(&self) -> u32 {
        self.longest_hold
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{DiscoveredUrlItem, KnownUrlItem};

    fn info(url: &str) -> UrlInfo {
        UrlInfo { url: url.to_owned(), key: "a".to_owned(), crawl_id: "c".to_owned(), ..UrlInfo::default() }
    }

    fn found(queues: &mut Queues, url: &str, now: u64) -> Status {
        queues.put(Item::Discovered(DiscoveredUrlItem { info: Some(info(url)) }), now)
    }

    fn known(queues: &mut Queues, url: &str, date: u64) -> Status {
        let known = KnownUrlItem { info: Some(info(url)), refetchable_from_date: date };
        queues.put(Item::Known(known), 0)
    }

    fn serve(queues: &mut Queues, most: u32, now: u64) -> Vec<String> {
        let asked = GetParams {
            max_urls_per_queue: most,
            delay_requestable: 60,
            crawl_id: Some("c".to_owned()),
            ..GetParams::default()
        };
        queues.serve(&asked, now, true).into_iter().map(|info| info.url).collect()
    }

    #[test]
    fn a_url_is_held_until_its_time_is_over_or_it_is_done() {
        let mut queues = Queues::default();
        assert_eq!(found(&mut queues, "1", 10), Status::Ok);
        assert_eq!(found(&mut queues, "1", 10), Status::Skipped);
        assert_eq!(serve(&mut queues, 9, 10), ["1"]);
        assert!(serve(&mut queues, 9, 69).is_empty());
        assert_eq!(serve(&mut queues, 9, 70), ["1"]);
        assert_eq!(queues.stats("c", 70).in_process, 1);
        assert_eq!(known(&mut queues, "1", 0), Status::Ok);
        assert!(serve(&mut queues, 9, 500).is_empty());
        assert_eq!(found(&mut queues, "1", 500), Status::Skipped, "it stays known");
        assert!(queues.stats("c", 500).is_done());
    }

    #[test]
    fn a_queue_is_served_after_its_delay_and_the_rest_of_the_second() {
        let mut queues = Queues::default();
        for url in ["1", "2", "3", "4"] {
            found(&mut queues, url, 10);
        }
        assert_eq!(serve(&mut queues, 9, 10).len(), 4);
        known(&mut queues, "1", 5);
        assert!(serve(&mut queues, 9, 11).is_empty(), "the usual delay is a second");
        assert_eq!(serve(&mut queues, 9, 12), ["1"]);
        queues.set_delay("c".to_owned(), "a".to_owned(), 3);
        known(&mut queues, "1", 5);
        assert!(serve(&mut queues, 9, 15).is_empty());
        assert_eq!(serve(&mut queues, 9, 16), ["1"]);
        queues.block("c".to_owned(), "a".to_owned(), 30);
        known(&mut queues, "1", 5);
        assert!(serve(&mut queues, 9, 30).is_empty());
        assert_eq!(serve(&mut queues, 9, 31), ["1"]);
    }

    #[test]
    fn a_queue_is_not_served_while_as_much_of_it_is_held_as_is_asked_for() {
        let mut queues = Queues::default();
        for url in ["1", "2", "3"] {
            found(&mut queues, url, 10);
        }
        assert_eq!(serve(&mut queues, 2, 10), ["1", "2"]);
        assert!(serve(&mut queues, 2, 20).is_empty());
        known(&mut queues, "1", 0);
        assert_eq!(serve(&mut queues, 2, 20), ["3"]);
    }

    #[test]
    fn urls_leave_by_their_time_and_jobs_and_queues_do_not_mix() {
        let mut queues = Queues::default();
        found(&mut queues, "2", 11);
        found(&mut queues, "3", 10);
        known(&mut queues, "1", 12);
        known(&mut queues, "9", 99);
        let other = UrlInfo { crawl_id: "other".to_owned(), ..info("x") };
        queues.put(Item::Discovered(DiscoveredUrlItem { info: Some(other) }), 1);
        assert_eq!(serve(&mut queues, 9, 20), ["3", "2", "1"]);
        assert_eq!(queues.queued("other").len(), 1);
        queues.forget();
        assert_eq!(serve(&mut queues, 9, 20), ["3", "2", "1"], "a restart forgets what is held");
    }
}
