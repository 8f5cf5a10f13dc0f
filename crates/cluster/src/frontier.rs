//! The frontier of one node.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use huntsman_crawler::{
    End, Frontier, FrontierLink, HostKey, HostNote, KnownTarget, Lease, LeaseId, Leased, Order, OwnedSince,
    Pushed, Request, Result, SavedPoliteness, Settled, SlotBy, StoredRequest, Timestamp, Work,
};
use huntsman_redis::{Error, ErrorKind};
use tokio::sync::oneshot;

use crate::clock::ServerClock;
use crate::convert::Items;
use crate::job::Job;
use crate::keeper::{Keeper, Kick};
use crate::keys::{LAST, packed, packed_redirect, partition_of, unmarked};
use crate::nodes::micros;
use crate::notes::Learnt;
use crate::partition::{Access, Partitions};
use crate::pump::Pump;
use crate::script::{Call, HOSTS, LEASE, PEEK, PUSH, Runner, SETTLE, TURN, damaged};
use crate::settings::{ClusterSettings, Durability};
use crate::watch::Watch;

/// A [`Frontier`] in a Redis server, which any number of nodes share; see the [page of the crate](crate).
///
/// When it is dropped it [leaves](Self::leave), and logs a warning of what it could not give back.
#[derive(Debug)]
pub struct SharedFrontier {
    shared: Arc<Shared>,
    pump: Pump,
    kicks: Sender<Kick>,
    /// Says how the keeper has ended; `None` if this node has left.
    ended: Option<Mutex<Receiver<Result<(), Error>>>>,
    /// Grows with each answer of the server.
    waited: Arc<AtomicU64>,
    _watch: Watch,
}

/// What the frontier and its keeper share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: ClusterSettings,
    pub(crate) job: Job,
    /// The name of this run, which no other has.
    pub(crate) token: String,
    pub(crate) partitions: Partitions,
    pub(crate) link: OnceLock<FrontierLink>,
    /// What was learnt about hosts and is not stored yet.
    pub(crate) learnt: Mutex<Learnt>,
    /// How the clock of the server stands to that of the crawl.
    pub(crate) clock: Mutex<ServerClock>,
    /// Whether the crawl has ended and told the last start of each host.
    pub(crate) has_left: AtomicBool,
    /// When the last beat was sent that the server has answered.
    pub(crate) beaten: Mutex<Instant>,
    /// Whether the engine had nothing to do when it was last asked.
    pub(crate) is_idle: AtomicBool,
    pub(crate) is_finished: AtomicBool,
    last_lease: AtomicU64,
    last_call: AtomicU64,
}

/// The most requests that one call queues: a script keeps the server from all other work.
const BATCH: usize = 500;
/// The most calls that one call tells to be replied.
const REPLIED: usize = 64;
/// How long a host stays marked after another node has asked it, in microseconds; longer for a long delay.
const MARKED: u64 = 60_000_000;
/// Hosts that one call lists.
const PAGE: u64 = 1_000;
/// Hosts of a partition among which the longest queues are looked for.
const LOOKED_AT: u64 = 5_000;

impl Shared {
    /// The partition of a host.
    pub(crate) fn partition(&self, host: &HostKey) -> u32 {
        partition_of(host, self.partitions.count())
    }

    /// A call of a script on a partition, with the token and an epoch.
    pub(crate) fn fenced(
        &self,
        script: &'static std::sync::LazyLock<crate::script::Script>,
        partition: u32,
        epoch: &str,
    ) -> Call {
        self.plain(script, partition).arg(self.token.as_str()).arg(epoch)
    }

    /// A call of a script on a partition.
    pub(crate) fn plain(
        &self,
        script: &'static std::sync::LazyLock<crate::script::Script>,
        partition: u32,
    ) -> Call {
        Call::new(script, self.job.keys.own(partition))
    }

    /// Notes that another node may own a partition.
    pub(crate) fn lost(&self, partition: u32, epoch: &str) {
        if !self.partitions.lose(partition, epoch) {
            return;
        }
        tracing::warn!(
            partition,
            "the lease of a partition has ended, and another node may work on its hosts"
        );
        self.count("cluster/fenced_total");
        self.tell_lost(partition);
    }

    /// Tells the engine that the hosts of a partition are no longer this node's.
    pub(crate) fn tell_lost(&self, partition: u32) {
        if let Some(link) = self.link.get() {
            let count = self.partitions.count();
            link.lost(move |host| partition_of(host, count) == partition);
        }
    }

    pub(crate) fn clock(&self) -> ServerClock {
        *self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells how long the server has not answered a beat, or a beat is not due yet.
    pub(crate) fn tell_lag(&self) {
        if let Some(link) = self.link.get() {
            let beaten = *self.beaten.lock().unwrap_or_else(PoisonError::into_inner);
            link.stats().set("cluster/beat_lag_seconds", beaten.elapsed().as_secs_f64());
        }
    }

    /// Adds one to a counter of the crawl.
    pub(crate) fn count(&self, key: &str) {
        if let Some(link) = self.link.get() {
            link.stats().inc(key);
        }
    }
}

impl SharedFrontier {
    /// Connects to the server, makes the job if there is none, and enters this node. It blocks for as long as the server takes.
    ///
    /// # Errors
    /// The server cannot be reached or would lose the queue, the job was made otherwise, or the name of the node is in use.
    pub fn join(settings: ClusterSettings, order: Order) -> Result<Self, Error> {
        // The job says what its durability is.
        let mut runner = Runner::connect(&settings.server, Durability::Ack)?;
        let job = Job::enter(&settings, order, &mut runner)?;
        let shared = Arc::new(Shared {
            token: format!("{:032x}", rand::random::<u128>()),
            partitions: Partitions::new(job.partitions),
            link: OnceLock::new(),
            learnt: Mutex::default(),
            clock: Mutex::default(),
            has_left: AtomicBool::new(false),
            beaten: Mutex::new(Instant::now()),
            is_idle: AtomicBool::new(false),
            is_finished: AtomicBool::new(false),
            last_lease: AtomicU64::new(1),
            last_call: AtomicU64::new(1),
            settings,
            job,
        });
        let failed = |error: std::io::Error| Error::new(ErrorKind::Io, format!("starting a thread: {error}"));
        let pump = Pump::start(runner.sibling()).map_err(failed)?;
        let (kicks, received) = std::sync::mpsc::channel();
        let waited = runner.waited();
        let keeper = Keeper::enter(Arc::clone(&shared), runner, received)?;
        let (ends, ended) = std::sync::mpsc::channel();
        let work = move || {
            // The frontier may have stopped waiting.
            let _ = ends.send(keeper.run());
        };
        std::thread::Builder::new().name("frontier-keeper".to_owned()).spawn(work).map_err(failed)?;
        let watch = Watch::start(Arc::clone(&shared)).map_err(failed)?;
        Ok(Self { shared, pump, kicks, ended: Some(Mutex::new(ended)), waited, _watch: watch })
    }

    /// The number of partitions that this node owns.
    pub fn partitions_owned(&self) -> usize {
        self.shared.partitions.owned().len()
    }

    fn kick(&self, kick: Kick) {
        // A keeper that has ended has told why.
        let _ = self.kicks.send(kick);
    }

    fn packed(&self, request: &Request) -> Vec<u8> {
        packed(request, self.shared.job.order, self.shared.job.seen_bits)
    }

    /// Pushes at most one batch to each partition.
    async fn push_round(&self, batches: Vec<(u32, Vec<Vec<u8>>)>, pushed: &mut Pushed) -> Result<(), Error> {
        let shared = &self.shared;
        let mut calls = Vec::with_capacity(batches.len());
        // The turns are taken in the order of the partitions, and kept until the replies are there.
        let mut turns = Vec::with_capacity(batches.len());
        for (partition, batch) in &batches {
            let part = shared.partitions.get(*partition);
            let mut last = part.pushed.lock().await;
            // The owner learns from the reply which hosts are woken. The owner of a partition that is
            // being claimed learns it from its first beat.
            let owner = part.epoch().map_or("", |_| shared.token.as_str());
            let mut call = shared.plain(&PUSH, *partition).arg(shared.token.as_str()).arg(owner);
            for request in batch {
                *last += 1;
                call = call.number(*last).arg(request.as_slice());
            }
            calls.push(call);
            turns.push(last);
        }
        let replies = self.pump.run(calls).await?;
        for ((partition, _), reply) in batches.iter().zip(replies) {
            let mut items = Items::of(reply.unwrap_or(huntsman_redis::Reply::Nil), "the reply to a push")?;
            pushed.accepted += items.count()?;
            pushed.duplicates += items.count()?;
            let (version, queued) = (items.count()?, items.count()?);
            shared.partitions.counted(*partition, version, queued);
            if shared.partitions.get(*partition).epoch().is_some() {
                add_hosts(&mut pushed.woken, items.texts()?);
            }
        }
        Ok(())
    }

    /// Ends leases of one partition.
    async fn settle_in(&self, partition: u32, batch: Vec<Settled>, pushed: &mut Pushed) -> Result<(), Error> {
        let shared = &self.shared;
        let part = shared.partitions.get(partition);
        // The leases of a partition that another node may own are void: their pages are fetched again.
        let Some(epoch) = part.epoch() else {
            shared.count("cluster/void_settles_total");
            pushed.void += batch.len() as u64;
            return Ok(());
        };
        let leases = batch.len() as u64;
        let number = shared.last_call.fetch_add(1, Ordering::Relaxed);
        let replied: Vec<u64> = part
            .with(|owned| {
                let count = owned.replied.len().min(REPLIED);
                owned.replied.drain(..count).collect()
            })
            .unwrap_or_default();
        let mut call = shared.fenced(&SETTLE, partition, &epoch).number(number).number(replied.len() as u64);
        for number in replied {
            call = call.number(number);
        }
        let mut replacements = Vec::with_capacity(batch.len());
        for Settled { lease, end, children, .. } in batch {
            call = call.number(lease.0);
            let mut replacement = None;
            call = match end {
                End::Done => call.arg("D"),
                End::Release => call.arg("L"),
                End::Reschedule(request) => {
                    let call = self.replacement(call.arg("R"), partition, &request);
                    replacement = Some(request);
                    call
                }
            };
            replacements.push(replacement);
            call = call.number(children.len() as u64);
            for child in &children {
                call = self.request(call, partition, child);
            }
        }
        let Some(reply) = self.pump.call(call).await? else {
            shared.count("cluster/void_settles_total");
            shared.lost(partition, &epoch);
            pushed.void += leases;
            return Ok(());
        };
        let mut items = Items::of(reply, "the reply to a settle")?;
        pushed.accepted += items.count()?;
        pushed.duplicates += items.count()?;
        let (version, queued) = (items.count()?, items.count()?);
        add_hosts(&mut pushed.woken, items.texts()?);
        let refused = items.numbers()?;
        let outbox = items.count()?;
        pushed.void += items.count()?;
        for at in refused {
            let request = usize::try_from(at).ok().and_then(|at| replacements.get_mut(at)?.take());
            pushed.refused.extend(request.map(|request| *request));
        }
        shared.partitions.counted(partition, version, queued);
        part.with(|owned| {
            owned.replied.push(number);
            owned.outbox = outbox;
        });
        if outbox > 0 {
            self.kick(Kick::Moves);
        }
        Ok(())
    }

    /// Adds a request, with its partition if that is another one.
    fn request(&self, call: Call, partition: u32, request: &Request) -> Call {
        let target = self.shared.partition(&request.host());
        let call = if target == partition { call.arg("") } else { call.number(u64::from(target)) };
        call.arg(self.packed(request))
    }

    /// Adds a request that takes the place of a leased one. Of one for another partition it is known only there whether it is new, so the
    /// reply cannot refuse it.
    fn replacement(&self, call: Call, partition: u32, request: &Request) -> Call {
        let target = self.shared.partition(&request.host());
        if target == partition {
            return self.request(call, partition, request);
        }
        let Job { order, seen_bits, .. } = self.shared.job;
        call.number(u64::from(target)).arg(packed_redirect(request, order, seen_bits))
    }
}

/// The number of an epoch, which only this program writes.
fn epoch_number(epoch: &str) -> Result<u64, Error> {
    epoch.parse().map_err(|_| damaged("the epoch of a partition"))
}

/// Adds hosts that are not listed yet.
fn add_hosts(hosts: &mut Vec<HostKey>, names: Vec<String>) {
    for name in names {
        let host = HostKey::new(&name);
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
}

impl Frontier for SharedFrontier {
    fn attach(&self, link: FrontierLink) -> Result<Option<OwnedSince>> {
        if link.slot_by() == SlotBy::Ip {
            return Err(huntsman_crawler::Error::usage(
                "slot_by ip cannot be used with a shared frontier, as each node would find addresses of its own: use host or \
                 registrable_domain",
            ));
        }
        // One crawl has one frontier, so it is attached once.
        let _ = self.shared.link.set(link);
        let shared = Arc::clone(&self.shared);
        Ok(Some(Box::new(move |host| {
            shared.partitions.get(shared.partition(host)).with(|owned| owned.since)
        })))
    }

    async fn open(&self) -> Result<Vec<(HostKey, u64)>> {
        let (reply, replied) = oneshot::channel();
        self.kick(Kick::Open(reply));
        let ended = |_| Error::new(ErrorKind::Io, "the thread that keeps the leases of the queue has ended");
        Ok(replied.await.map_err(ended)??)
    }

    async fn push(&self, batch: Vec<Request>) -> Result<Pushed> {
        let mut by_partition: BTreeMap<u32, Vec<Vec<u8>>> = BTreeMap::new();
        for request in &batch {
            let partition = self.shared.partition(&request.host());
            by_partition.entry(partition).or_default().push(self.packed(request));
        }
        let mut pushed = Pushed::default();
        while !by_partition.is_empty() {
            let mut round = Vec::with_capacity(by_partition.len());
            for (partition, requests) in &mut by_partition {
                let rest = requests.split_off(requests.len().min(BATCH));
                round.push((*partition, std::mem::replace(requests, rest)));
            }
            by_partition.retain(|_, requests| !requests.is_empty());
            self.push_round(round, &mut pushed).await?;
        }
        Ok(pushed)
    }

    async fn lease(&self, host: &HostKey, max: usize, now: Timestamp) -> Result<Leased> {
        let shared = &self.shared;
        let partition = shared.partition(host);
        let Some(epoch) = shared.partitions.get(partition).working() else { return Ok(Leased::default()) };
        let max = max as u64;
        let first = shared.last_lease.fetch_add(max, Ordering::Relaxed);
        let call = shared.fenced(&LEASE, partition, &epoch).arg(host.as_str());
        let call = call.number(first).number(max).number(now.0.min(LAST));
        let Some(reply) = self.pump.call(call).await? else {
            shared.lost(partition, &epoch);
            return Ok(Leased::default());
        };
        let mut items = Items::of(reply, "the reply to a lease")?;
        let (version, queued, due) = (items.count()?, items.count()?, items.count()?);
        // The score of a sorted set is a number with a fraction.
        let next_at = items.text()?.parse::<f64>().ok().map(|at| Timestamp(at as u64));
        shared.partitions.counted(partition, version, queued);
        let mut leases = Vec::new();
        for (id, bytes) in (first..).zip(items.strings()?) {
            let (sequence, bytes) =
                bytes.split_first_chunk().ok_or_else(|| damaged("the reply to a lease"))?;
            let (is_known, bytes) = unmarked(bytes);
            let mut request = StoredRequest::request(bytes, host)?;
            if is_known {
                request.extensions.insert(KnownTarget);
            }
            let sequence = u64::from_be_bytes(*sequence);
            request.extensions.insert(Work { partition, sequence, epoch: epoch_number(&epoch)? });
            leases.push(Lease { id: LeaseId(id), request });
        }
        Ok(Leased { leases, due, next_at })
    }

    async fn settle(&self, batch: Vec<Settled>) -> Result<Pushed> {
        let mut by_partition: BTreeMap<u32, Vec<Settled>> = BTreeMap::new();
        for settled in batch {
            by_partition.entry(self.shared.partition(&settled.host)).or_default().push(settled);
        }
        let mut pushed = Pushed::default();
        for (partition, batch) in by_partition {
            self.settle_in(partition, batch, &mut pushed).await?;
        }
        Ok(pushed)
    }

    fn len(&self) -> u64 {
        self.shared.partitions.queued()
    }

    async fn longest_queues(&self, most: usize) -> Result<Vec<(HostKey, u64)>> {
        let calls = self
            .shared
            .partitions
            .owned()
            .into_iter()
            .map(|partition| self.shared.plain(&HOSTS, partition).number(0).number(LOOKED_AT - 1));
        let mut hosts = Vec::new();
        for reply in self.pump.run(calls.collect()).await?.into_iter().flatten() {
            hosts.extend(listed(reply)?.into_iter().map(|(host, queued, _)| (host, queued)));
        }
        hosts.sort_unstable_by(|(a, m), (b, n)| n.cmp(m).then_with(|| a.cmp(b)));
        hosts.truncate(most);
        Ok(hosts)
    }

    async fn queued_of(&self, host: &HostKey) -> Result<u64> {
        Ok(self.look(host, 0).await?.0)
    }

    async fn peek(&self, host: &HostKey, most: usize) -> Result<Vec<Request>> {
        let (_, rows) = self.look(host, most).await?;
        rows.iter().map(|bytes| StoredRequest::request(unmarked(bytes).1, host)).collect()
    }

    async fn claim(&self, host: &HostKey) -> Result<bool> {
        Ok(self.shared.partitions.get(self.shared.partition(host)).working().is_some())
    }

    async fn turn(&self, host: &HostKey, delay: Duration) -> Result<()> {
        let shared = &self.shared;
        let partition = shared.partition(host);
        let part = shared.partitions.get(partition);
        let micros = micros(delay);
        let kept = MARKED.max(micros.saturating_mul(4));
        let mut is_counted = false;
        loop {
            let token = match part.access(host) {
                Access::Alone => return Ok(()),
                Access::Marked => shared.token.as_str(),
                Access::Foreign => "",
            };
            if token.is_empty() && !std::mem::replace(&mut is_counted, true) {
                shared.count("cluster/borrowed_total");
            }
            let call =
                shared.plain(&TURN, partition).arg(token).arg(host.as_str()).number(micros).number(kept);
            let reply = self.pump.call(call).await?.and_then(|reply| reply.number());
            match reply.map(u64::try_from) {
                Some(Ok(0)) => return Ok(()),
                Some(Ok(wait)) => tokio::time::sleep(Duration::from_micros(wait)).await,
                _ => return Err(damaged("the turn at a host").into()),
            }
        }
    }

    fn is_finished(&self) -> bool {
        if !self.shared.is_idle.swap(true, Ordering::AcqRel) {
            self.kick(Kick::Round);
        }
        self.shared.is_finished.load(Ordering::Acquire)
    }

    fn learnt(&self, hosts: Vec<(HostKey, Option<SavedPoliteness>)>) {
        self.shared.learnt().paces.extend(hosts);
    }

    fn note(&self, notes: Vec<HostNote>) {
        self.shared.learnt().note(notes);
    }

    fn left(&self) {
        self.shared.has_left.store(true, Ordering::Release);
    }

    fn is_durable(&self) -> bool {
        true
    }
}

impl SharedFrontier {
    /// The length of a queue, and its next requests.
    async fn look(&self, host: &HostKey, most: usize) -> Result<(u64, Vec<Vec<u8>>), Error> {
        let call =
            self.shared.plain(&PEEK, self.shared.partition(host)).arg(host.as_str()).number(most as u64);
        let reply = self.pump.call(call).await?.unwrap_or(huntsman_redis::Reply::Nil);
        let mut items = Items::of(reply, "the queue of a host")?;
        Ok((items.count()?, items.strings()?))
    }
}

impl SharedFrontier {
    /// Gives the partitions of this node, and what it has learnt of their hosts, to the other nodes. It blocks as long as the server answers;
    /// for one that does not, it waits as long as [`ClusterSettings::handover`] says.
    ///
    /// # Errors
    /// Something could not be given back: the error says how many partitions, and why. Other nodes take them when the leases end.
    pub fn leave(mut self) -> Result<(), Error> {
        self.give_back()
    }

    fn give_back(&mut self) -> Result<(), Error> {
        let Some(ended) = self.ended.take() else { return Ok(()) };
        let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.kick(Kick::End);
        let settings = &self.shared.settings;
        let error = loop {
            let before = self.waited.load(Ordering::Relaxed);
            match ended.recv_timeout(settings.handover) {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => break error,
                // A panic of the keeper was told on its thread.
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) if self.waited.load(Ordering::Relaxed) > before => {}
                // The keeper ends by itself when its patience is over.
                Err(RecvTimeoutError::Timeout) => {
                    let message =
                        format!("the server has not answered for {} s", settings.handover.as_secs_f64());
                    break Error::new(ErrorKind::Unavailable, message);
                }
            }
        };
        let message = format!(
            "{} partitions of the node {:?}, and what it has just learnt of their hosts, were not given back: {}; other nodes take them \
             when the leases end, in at most {} s",
            self.partitions_owned(),
            settings.node,
            error.message(),
            settings.lease.as_secs_f64()
        );
        Err(Error::new(error.kind(), message).at(settings.address()).with_source(error))
    }
}

impl Drop for SharedFrontier {
    fn drop(&mut self) {
        if let Err(error) = self.give_back() {
            tracing::warn!(%error, "leaving the shared queue");
        }
    }
}

/// A host with queued requests: how many, and what was learnt of its pace.
pub(crate) type ListedHost = (HostKey, u64, Option<SavedPoliteness>);

/// The hosts in a reply.
pub(crate) fn listed(reply: huntsman_redis::Reply) -> Result<Vec<ListedHost>, Error> {
    let mut items = Items::of(reply, "the list of hosts")?;
    let mut hosts = Vec::new();
    while !items.is_empty() {
        let (host, queued, pace) = (items.text()?, items.count()?, items.bytes()?);
        hosts.push((HostKey::new(&host), queued, SavedPoliteness::from_bytes(&pace)));
    }
    Ok(hosts)
}

/// Reads all hosts of a partition.
pub(crate) fn all_hosts(
    shared: &Shared,
    runner: &mut Runner,
    partition: u32,
) -> Result<Vec<ListedHost>, Error> {
    let mut hosts = Vec::new();
    loop {
        let first = hosts.len() as u64;
        let call = shared.plain(&HOSTS, partition).number(first).number(first + PAGE - 1);
        let page = listed(runner.call(call)?)?;
        let is_last = (page.len() as u64) < PAGE;
        hosts.extend(page);
        if is_last {
            return Ok(hosts);
        }
    }
}
