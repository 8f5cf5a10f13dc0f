//! One node of a job: what it asks the server for, and what it tells the crawl.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use huntsman_crawler::{
    End, FrontierLink, HostKey, LeaseId, Pushed, Request, SavedPoliteness, Settled, SlotBy, Timestamp,
};
use tokio::sync::Notify;

use crate::error::Error;
use crate::held::{Held, Served};
use crate::item::Form;
use crate::link::Link;
use crate::message::{GetParams, KnownUrlItem, UrlInfo};

/// How long a page may take if the crawl sets no limit.
const DEADLINE: Duration = Duration::from_secs(30);
/// Requests in flight if the crawl sets no limit.
const CONCURRENCY: usize = 50;
/// The most URLs of a host that are taken at once if no delay is kept between them.
const AT_ONCE: u32 = 100;
/// The most URLs that one question may be answered with.
const ASKED: u32 = 4_000;
/// The first and the longest pause between two questions for URLs. Servers count whole seconds.
const POLL: (Duration, Duration) = (Duration::from_millis(200), Duration::from_millis(800));
/// The time of a URL that is given back: it is served before all others of its queue.
const FIRST: u64 = 1;

/// What the frontier and its tasks share.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) link: Link,
    form: RwLock<Form>,
    crawl: OnceLock<Crawl>,
    held: Mutex<Held>,
    /// Ends of blocks that the server was not told yet, in seconds; 0 ends a block.
    blocks: Mutex<HashMap<HostKey, u64>>,
    /// What has happened here, counted: what was asked of the server before may no longer hold.
    events: AtomicU64,
    /// Whether the engine had nothing to do when it was last asked.
    is_idle: AtomicBool,
    is_finished: AtomicBool,
    has_left: AtomicBool,
    /// Whether the server could not be reached in the end.
    is_lost: AtomicBool,
    /// The longest delay of a host that was asked, in seconds.
    longest_delay: AtomicU64,
    /// Ends the pause of the task that asks the server.
    pub(crate) kick: Notify,
}

/// The crawl that uses the frontier.
#[derive(Debug)]
struct Crawl {
    link: FrontierLink,
    deadline: Duration,
    /// How many URLs should wait here, so that the others are left to other nodes.
    enough: u32,
    /// Whether hosts have a delay of which nothing is learnt yet.
    has_delay: bool,
}

/// How many URLs should wait for this many requests in flight.
fn enough(concurrency: usize) -> u32 {
    u32::try_from(concurrency.saturating_mul(2)).unwrap_or(u32::MAX)
}

/// When a request is due, as the server counts time.
fn whole_seconds(at: Timestamp) -> u64 {
    at.0.div_ceil(1_000_000)
}

impl Node {
    pub(crate) fn new(link: Link) -> Self {
        let form = Form {
            job: link.job().to_owned(),
            fingerprinter: huntsman_crawler::Fingerprinter::default(),
            slot_by: SlotBy::Host,
        };
        Self {
            link,
            form: RwLock::new(form),
            crawl: OnceLock::new(),
            held: Mutex::default(),
            blocks: Mutex::default(),
            events: AtomicU64::new(0),
            is_idle: AtomicBool::new(false),
            is_finished: AtomicBool::new(false),
            has_left: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            longest_delay: AtomicU64::new(0),
            kick: Notify::new(),
        }
    }

    /// Connects the node with the crawl that uses it.
    pub(crate) fn attach(&self, link: FrontierLink) -> huntsman_crawler::Result<()> {
        {
            let mut form = self.form.write().unwrap_or_else(PoisonError::into_inner);
            form.fingerprinter = link.fingerprinter()?;
            form.slot_by = link.slot_by();
        }
        let deadline = link.page_deadline().unwrap_or(DEADLINE);
        let has_delay = !link.download_delay().is_zero();
        let enough = enough(link.concurrency().unwrap_or(CONCURRENCY));
        // One crawl has one frontier, so it is attached once.
        let _ = self.crawl.set(Crawl { link, deadline, enough, has_delay });
        Ok(())
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn form(&self) -> Form {
        self.form.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn deadline(&self) -> Duration {
        self.crawl.get().map_or(DEADLINE, |crawl| crawl.deadline)
    }

    fn now(&self) -> Timestamp {
        self.crawl.get().map_or_else(Timestamp::wall, |crawl| crawl.link.now())
    }

    /// How many URLs of a host are taken at once. With a delay it is one: as long as it is held, the server serves no other node of the same
    /// mind.
    fn at_once(&self) -> u32 {
        if self.keeps_delays() { 1 } else { self.enough().min(AT_ONCE) }
    }

    fn enough(&self) -> u32 {
        self.crawl.get().map_or_else(|| enough(CONCURRENCY), |crawl| crawl.enough)
    }

    /// Counts what makes older answers of the server void.
    fn changed(&self) {
        self.events.fetch_add(1, Ordering::AcqRel);
        self.is_idle.store(false, Ordering::Release);
        self.is_finished.store(false, Ordering::Release);
    }

    fn count(&self, key: &str) {
        if let Some(crawl) = self.crawl.get() {
            crawl.link.stats().inc(key);
        }
    }

    /// A question for URLs, and when it is too late to begin with one of them.
    ///
    /// They are held for twice the time of a page, so that one may begin for as long as it may take. A host with a longer delay waits for it
    /// after it was served, and perhaps for half of it again.
    fn question(&self, key: &str, queues: u32) -> (GetParams, Instant) {
        let deadline = self.deadline();
        let delay = Duration::from_secs(self.longest_delay.load(Ordering::Acquire));
        let hold = deadline.saturating_mul(2).max(deadline.saturating_add(delay.saturating_mul(2)));
        // A whole number of seconds, at least one; a conversion of a number with a fraction is capped at the limits.
        let hold = hold.as_secs_f64().ceil().max(1.0) as u32;
        let asked = GetParams {
            max_urls_per_queue: self.at_once(),
            max_queues: queues,
            key: key.to_owned(),
            delay_requestable: hold,
            crawl_id: Some(self.link.job().to_owned()),
        };
        (asked, Instant::now() + Duration::from_secs(u64::from(hold)).saturating_sub(deadline))
    }

    /// Keeps URLs that were served, until a time. Returns the hosts that had none and have some now, and the URLs that cannot be asked for.
    fn keep(&self, served: Vec<UrlInfo>, until: Instant) -> (Vec<HostKey>, Vec<KnownUrlItem>) {
        if !served.is_empty() {
            self.changed();
        }
        let form = self.form();
        let (mut hosts, mut bad) = (Vec::new(), Vec::new());
        for info in served {
            match form.request(&info) {
                Ok(request) => {
                    let host = request.host();
                    let mut held = self.held();
                    if held.waiting_of(&host) == 0 {
                        hosts.push(host.clone());
                    }
                    held.add(host, Served { info, request, until });
                }
                Err(why) => {
                    tracing::warn!(url = %info.url, "a URL of another crawler is left out: {why}");
                    self.count("url_frontier/bad_urls_total");
                    bad.push(KnownUrlItem {
                        info: Some(form.without_request(&info)),
                        refetchable_from_date: 0,
                    });
                }
            }
        }
        let held = self.held();
        hosts.retain(|host| held.waiting_of(host) > 0);
        drop(held);
        (hosts, bad)
    }

    /// Tells the crawl of hosts that were served. Another node may have sent a request to them a moment ago.
    fn tell(&self, hosts: Vec<HostKey>) {
        if let (Some(crawl), false) = (self.crawl.get(), hosts.is_empty()) {
            let hosts: Vec<_> = hosts.into_iter().map(|host| (host, None)).collect();
            crawl.link.adopted(hosts, |_| false);
        }
    }

    /// Asks for URLs of any host. Returns whether some were served.
    async fn ask(&self) -> Result<bool, Error> {
        let waiting = {
            let mut held = self.held();
            held.forget_all_late(Instant::now());
            held.count()
        };
        if waiting >= u64::from(self.enough()) || self.has_left.load(Ordering::Acquire) {
            return Ok(false);
        }
        let queues = self.enough().min(ASKED / self.at_once());
        let (asked, until) = self.question("", queues);
        let served = self.link.get_urls(&asked).await?;
        let is_served = !served.is_empty();
        let (hosts, bad) = self.keep(served, until);
        self.tell(hosts);
        if !bad.is_empty() {
            self.link.put_known(bad).await?;
        }
        Ok(is_served)
    }

    /// Asks for URLs of one host, unless the server is away. What was served may be leased at once if no delay has to be kept; otherwise the
    /// crawl is told.
    pub(crate) async fn ask_for(&self, host: &HostKey) {
        if self.has_left.load(Ordering::Acquire) {
            return;
        }
        let key = self.held().key_of(host).map_or_else(|| host.as_str().to_owned(), str::to_owned);
        let (asked, until) = self.question(&key, 1);
        let Some(served) = self.link.get_urls_now(&asked).await else { return };
        let (hosts, bad) = self.keep(served, until);
        if self.keeps_delays() {
            self.tell(hosts);
        }
        // A failure is found again by the task that asks for all hosts, for which these URLs are served again.
        if !bad.is_empty() && self.link.put_known(bad).await.is_err() {
            tracing::debug!("a bad URL stays in the queue");
        }
    }

    /// Whether a host that was just served waits for its delay.
    pub(crate) fn keeps_delays(&self) -> bool {
        self.crawl.get().is_some_and(|crawl| crawl.has_delay)
    }

    /// Asks the server again and again for URLs, and whether the crawl is at its end.
    pub(crate) async fn work(&self) {
        let mut pause = POLL.0;
        loop {
            match self.round().await {
                Ok(true) => pause = POLL.0,
                Ok(false) => pause = (pause * 2).min(POLL.1),
                Err(error) => {
                    self.is_lost.store(true, Ordering::Release);
                    if let Some(crawl) = self.crawl.get() {
                        crawl.link.failed(error.into());
                    }
                    return;
                }
            }
            tokio::select! {
                () = self.kick.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn round(&self) -> Result<bool, Error> {
        self.tell_blocks().await?;
        let is_served = self.ask().await?;
        if self.is_idle.load(Ordering::Acquire) && !self.is_finished.load(Ordering::Acquire) {
            let before = self.events.load(Ordering::Acquire);
            let is_done = self.link.stats().await?.is_done();
            if is_done && self.held().is_empty() && self.events.load(Ordering::Acquire) == before {
                self.is_finished.store(true, Ordering::Release);
                if let Some(crawl) = self.crawl.get() {
                    crawl.link.woken(Vec::new());
                }
            }
        }
        Ok(is_served)
    }

    async fn tell_blocks(&self) -> Result<(), Error> {
        let blocks = std::mem::take(&mut *self.blocks.lock().unwrap_or_else(PoisonError::into_inner));
        for (host, until) in blocks {
            let key = self.held().key_of(&host).map_or_else(|| host.as_str().to_owned(), str::to_owned);
            self.link.block_until(&key, until).await?;
        }
        Ok(())
    }

    /// Notes what was learnt about hosts: one that wants to be left alone is blocked in the server.
    pub(crate) fn learnt(&self, hosts: Vec<(HostKey, Option<SavedPoliteness>)>) {
        let now = self.now();
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        for (host, politeness) in hosts {
            let until = politeness.map(|politeness| politeness.sleep_until).filter(|until| *until > now);
            blocks.insert(host, until.map_or(0, whole_seconds));
        }
        drop(blocks);
        self.kick.notify_one();
    }

    /// Tells the server the delay of a host that is about to be asked, if it has changed.
    pub(crate) async fn turn(&self, host: &HostKey, delay: Duration) -> Result<(), Error> {
        let Some(key) = self.held().key_of(host).map(str::to_owned) else {
            // A download at a host of which this node holds nothing: its queue is not known here.
            return Ok(());
        };
        self.longest_delay.fetch_max(delay.as_secs_f64().ceil() as u64, Ordering::AcqRel);
        let seconds = delay.saturating_mul(self.at_once()).as_secs_f64().ceil();
        self.link.set_delay(&key, seconds as u32).await
    }

    /// Whether the server has nothing left for this job, as far as it is known.
    pub(crate) fn is_finished(&self) -> bool {
        if !self.is_idle.swap(true, Ordering::AcqRel) {
            self.kick.notify_one();
        }
        self.is_finished.load(Ordering::Acquire)
    }

    pub(crate) fn lease(&self, host: &HostKey, max: usize) -> Vec<(u64, Request)> {
        let leases = self.held().lease(host, max, Instant::now());
        if !leases.is_empty() {
            self.changed();
        }
        leases
    }

    /// Stores requests that were found. Of those that are new, the ones that are delayed get their times.
    async fn found(&self, requests: Vec<Request>, pushed: &mut Pushed) -> Result<Vec<Request>, Error> {
        let form = self.form();
        let (mut kept, mut infos) = (Vec::new(), Vec::new());
        for request in requests {
            let info = match request.unfiltered {
                true => Err("it is unfiltered, and a URLFrontier server has each URL once".to_owned()),
                false => form.info(&request),
            };
            match info {
                Ok(info) => {
                    kept.push(request);
                    infos.push(info);
                }
                Err(why) => pushed.unfit.push((request, why)),
            }
        }
        if infos.is_empty() {
            return Ok(Vec::new());
        }
        self.changed();
        let are_new = self.link.put_found(infos.clone()).await?;
        let (mut delayed, mut known) = (Vec::new(), Vec::new());
        for ((request, info), is_new) in kept.into_iter().zip(infos).zip(are_new) {
            if !is_new {
                known.push(request);
                continue;
            }
            pushed.accepted += 1;
            match request.not_before.filter(|at| *at > self.now()) {
                Some(at) => {
                    delayed.push(KnownUrlItem { info: Some(info), refetchable_from_date: whole_seconds(at) });
                }
                None => self.wake(request.host(), pushed),
            }
        }
        if !delayed.is_empty() {
            self.link.put_known(delayed).await?;
        }
        Ok(known)
    }

    fn wake(&self, host: HostKey, pushed: &mut Pushed) {
        if self.held().waiting_of(&host) == 0 && !pushed.woken.contains(&host) {
            pushed.woken.push(host);
        }
    }

    pub(crate) async fn push(&self, requests: Vec<Request>) -> Result<Pushed, Error> {
        let mut pushed = Pushed::default();
        pushed.duplicates = self.found(requests, &mut pushed).await?.len() as u64;
        Ok(pushed)
    }

    /// Ends leases: what was found is stored first, then the pages are done.
    pub(crate) async fn settle(&self, batch: Vec<Settled>) -> Result<Pushed, Error> {
        let mut pushed = Pushed::default();
        let (mut children, mut ends) = (Vec::new(), Vec::new());
        for settled in batch {
            children.extend(settled.children);
            ends.push((settled.lease, settled.host, settled.end));
        }
        pushed.duplicates = self.found(children, &mut pushed).await?.len() as u64;
        let form = self.form();
        let (mut known, mut ended) = (Vec::new(), Vec::new());
        for (LeaseId(lease), host, end) in ends {
            let Some(info) = self.held().leased(lease).map(|served| served.info.clone()) else { continue };
            let mut date = 0;
            let mut updated = form.without_request(&info);
            match end {
                End::Release => {
                    if self.held().release(lease, &host) && !pushed.woken.contains(&host) {
                        pushed.woken.push(host);
                    }
                    continue;
                }
                End::Done => {}
                End::Reschedule(request) => match form.info(&request) {
                    // The same URL again: it keeps its place in the table of the server, and gets a time.
                    Ok(again) if self.is_again(&form, &info, &again) => {
                        // One that waits for nothing may be served in this second.
                        date = request.not_before.map_or(self.now().0 / 1_000_000, whole_seconds).max(FIRST);
                        updated.metadata.extend(again.metadata);
                        pushed.accepted += 1;
                        self.wake(host, &mut pushed);
                    }
                    _ => {
                        let refused = self.found(vec![*request], &mut pushed).await?;
                        pushed.refused.extend(refused);
                    }
                },
            }
            known.push(KnownUrlItem { info: Some(updated), refetchable_from_date: date });
            ended.push(lease);
        }
        if !known.is_empty() {
            self.changed();
            {
                // A retry may be served again before the reply of the server is here.
                let mut held = self.held();
                ended.into_iter().for_each(|lease| held.end(lease));
            }
            self.link.put_known(known).await?;
        }
        Ok(pushed)
    }

    /// Whether a request is the one that was served. Of another crawler's, the canonical form of the URL counts.
    fn is_again(&self, form: &Form, served: &UrlInfo, request: &UrlInfo) -> bool {
        if served.url == request.url {
            return true;
        }
        form.request(served).is_ok_and(|asked| form.url(&asked) == request.url)
    }

    pub(crate) fn leave(&self) {
        self.has_left.store(true, Ordering::Release);
    }

    /// Gives back what waits here, once the crawl has ended, and tells the last blocks. A server that could not be reached serves it again when its time is over.
    pub(crate) async fn give_back(&self) -> Result<(), Error> {
        if !self.has_left.load(Ordering::Acquire) || self.is_lost.load(Ordering::Acquire) {
            return Ok(());
        }
        self.tell_blocks().await?;
        let waiting = self.held().take_waiting();
        let given_back: Vec<_> = waiting
            .into_iter()
            .map(|info| KnownUrlItem { info: Some(info), refetchable_from_date: FIRST })
            .collect();
        if given_back.is_empty() { Ok(()) } else { self.link.put_known(given_back).await }
    }
}
