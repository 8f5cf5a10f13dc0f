//! One thread that keeps the leases of this node's partitions, takes partitions that nobody owns, has requests moved between partitions,
//! and finds out whether the crawl is at its end.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use huntsman_crawler::{FrontierLink, HostKey, Timestamp};
use huntsman_redis::{Error, Reply};
use tokio::sync::oneshot;

use crate::clock::ServerClock;
use crate::convert::Items;
use crate::frontier::{Shared, all_hosts};
use crate::nodes::{self, Node, Told, micros};
use crate::partition::Owned;
use crate::script::{BEAT, CLAIM, COUNT, Call, RELEASE, RESTORE, Runner};

/// The hosts that the queue has at the start, with the numbers of their requests.
type Opened = Result<Vec<(HostKey, u64)>, Error>;

/// What the keeper is asked to do.
#[derive(Debug)]
pub(crate) enum Kick {
    /// Take partitions, return this node's leases to the queue, and list the hosts.
    Open(oneshot::Sender<Opened>),
    /// Look at everything.
    Round,
    /// Move requests to other partitions.
    Moves,
    /// Give everything back and end.
    End,
}

#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) shared: Arc<Shared>,
    pub(crate) runner: Runner,
    kicks: Receiver<Kick>,
    /// Whether the engine has opened the frontier: before, nothing is claimed.
    is_open: bool,
    /// What the operator wanted in the last round.
    control: String,
    /// The versions of all partitions, if nothing was left to do in the last sweep.
    swept: Option<Vec<u64>>,
    /// Since when nothing succeeds, and the last error.
    failing: Option<(Instant, Error)>,
    /// When the requests that were done were last counted, and how many they were.
    counted: (Instant, u64),
    /// The partition from which on partitions are claimed next.
    next_claim: u32,
    /// Nodes that were heard of in the last round.
    live: Vec<Node>,
}

/// A node starts no request in this share of its lease.
const MARGIN: u32 = 5;
/// In this share of its lease, which is a second of the usual fifteen, no request is in flight.
const LAST_MARGIN: u32 = 15;
/// Rounds in the time of a lease.
const ROUNDS: u32 = 30;

impl Keeper {
    /// Enters the node in the list of its job.
    pub(crate) fn enter(shared: Arc<Shared>, runner: Runner, kicks: Receiver<Kick>) -> Result<Self, Error> {
        let next_claim = rand::random::<u32>() % shared.partitions.count();
        let mut keeper = Self {
            shared,
            runner,
            kicks,
            is_open: false,
            control: String::new(),
            swept: None,
            failing: None,
            counted: (Instant::now(), 0),
            next_claim,
            live: Vec::new(),
        };
        keeper.renew_entry()?;
        Ok(keeper)
    }

    /// Works until the frontier is dropped; returns why it could not give everything back to the other nodes.
    pub(crate) fn run(mut self) -> Result<(), Error> {
        let mut due = Instant::now();
        loop {
            // A round that is due goes before all kicks, however many there are, because the leases depend on it.
            let wait = due.saturating_duration_since(Instant::now());
            let kick = match self.kicks.recv_timeout(wait) {
                Ok(Kick::Moves) if wait.is_zero() => Kick::Round,
                Ok(kick) => kick,
                Err(RecvTimeoutError::Timeout) => Kick::Round,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let done = match kick {
                Kick::End => break,
                Kick::Open(reply) => {
                    let opened = self.open();
                    // The engine may be gone.
                    let _ = reply.send(opened);
                    continue;
                }
                Kick::Moves => self.move_outboxes(),
                Kick::Round => {
                    due = Instant::now() + self.shared.settings.lease / ROUNDS;
                    self.round()
                }
            };
            self.judge(done);
        }
        match self.failing.take() {
            // Nothing has succeeded lately, so nothing more is tried: the leases end by themselves.
            Some((_, error)) => Err(error),
            None => self.give_back(),
        }
    }

    /// Ends the crawl if the server does not answer for too long.
    fn judge(&mut self, done: Result<(), Error>) {
        let Err(error) = done else {
            self.failing = None;
            return;
        };
        let since = self.failing.as_ref().map_or_else(Instant::now, |(since, _)| *since);
        self.failing = Some((since, error.clone()));
        let is_over = since.elapsed() >= self.shared.settings.server.retry_patience();
        tracing::warn!(%error, "the shared queue");
        if let Some(link) = self.shared.link.get()
            && (is_over || error.kind() != huntsman_redis::ErrorKind::Unavailable)
        {
            link.failed(huntsman_crawler::Error::from(error).context("the shared queue"));
        }
    }

    fn open(&mut self) -> Opened {
        self.is_open = true;
        self.round()?;
        let mut hosts = Vec::new();
        for partition in self.shared.partitions.owned() {
            let Some(epoch) = self.shared.partitions.get(partition).epoch() else { continue };
            if self.restore(partition, &epoch)?.is_some() {
                let listed = all_hosts(&self.shared, &mut self.runner, partition)?;
                hosts.extend(listed.into_iter().map(|(host, queued, _)| (host, queued)));
            }
        }
        hosts.sort_unstable();
        Ok(hosts)
    }

    fn round(&mut self) -> Result<(), Error> {
        self.beat()?;
        self.renew_entry()?;
        if self.is_open {
            self.balance()?;
        }
        self.move_outboxes()?;
        self.store_learnt()?;
        self.tell_stats();
        self.watch_progress()?;
        self.sweep()
    }

    /// The states of all partitions: their versions, and the sums of what is queued, leased and in outboxes, and of what is settled.
    fn count(&mut self) -> Result<(Vec<u64>, u64, u64), Error> {
        let all = 0..self.shared.partitions.count();
        let calls: Vec<Call> = all.map(|partition| self.shared.plain(&COUNT, partition)).collect();
        let (mut versions, mut work, mut settled) = (Vec::new(), 0, 0);
        for reply in self.runner.run(&calls)? {
            let mut items = Items::of(reply.unwrap_or(Reply::Nil), "the state of a partition")?;
            versions.push(items.count()?);
            work += items.count()? + items.count()? + items.count()?;
            settled += items.count()?;
        }
        Ok((versions, work, settled))
    }

    /// Tells the engine now and then whether any node has done pages.
    fn watch_progress(&mut self) -> Result<(), Error> {
        let (last, before) = self.counted;
        if self.live.len() < 2 || last.elapsed() < self.shared.settings.lease / 3 {
            return Ok(());
        }
        let (_, _, settled) = self.count()?;
        self.counted = (Instant::now(), settled);
        if let Some(link) = self.shared.link.get()
            && settled > before
        {
            link.progressed();
        }
        Ok(())
    }

    /// Sets the stats of the moment.
    fn tell_stats(&self) {
        let Some(link) = self.shared.link.get() else { return };
        let owned = self.shared.partitions.owned();
        let outbox: u64 = owned
            .iter()
            .filter_map(|partition| self.shared.partitions.get(*partition).with(|owned| owned.outbox))
            .sum();
        link.stats().set("cluster/partitions_owned", owned.len());
        link.stats().set("cluster/outbox_len", outbox);
        link.stats().set("cluster/script_seconds", self.runner.seconds());
    }

    /// Renews the entry of the node, and does what the operator wants.
    fn renew_entry(&mut self) -> Result<(), Error> {
        let told = Told {
            is_busy: !self.shared.is_idle.load(Ordering::Acquire),
            partitions: self.shared.partitions.owned().len(),
        };
        let Shared { settings, job, token, .. } = &*self.shared;
        let now = || self.shared.link.get().map(FrontierLink::now);
        let before = now();
        let roll = nodes::enter(settings, job, token, told, &mut self.runner)?;
        if let (Some(before), Some(after)) = (before, now()) {
            *self.shared.clock.lock().unwrap_or_else(PoisonError::into_inner) =
                ServerClock::read(before, Timestamp(roll.now), after);
        }
        self.live = roll.nodes;
        if let Some(link) = self.shared.link.get()
            && roll.control != self.control
        {
            match roll.control.as_str() {
                "pause" => link.pause(),
                "stop" => link.stop("cluster_stop"),
                _ => link.resume(),
            }
            self.control = roll.control;
        }
        Ok(())
    }

    /// Renews the leases of own partitions, and hears which hosts others have woken.
    fn beat(&mut self) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        let owned: Vec<(u32, Owned)> = shared
            .partitions
            .owned()
            .into_iter()
            .filter_map(|partition| {
                Some((partition, shared.partitions.get(partition).with(|owned| owned.clone())?))
            })
            .collect();
        let lease = micros(shared.settings.lease);
        let call = |(partition, owned): &(u32, Owned)| {
            let call = shared.fenced(&BEAT, *partition, &owned.epoch).number(lease);
            call.number(owned.woken).number(owned.marks)
        };
        let calls: Vec<Call> = owned.iter().map(call).collect();
        // The lease counts from before the beat was sent.
        let sent = Instant::now();
        let mut woken = Vec::new();
        for ((partition, Owned { epoch, safe_until, .. }), answer) in
            owned.iter().zip(self.runner.run(&calls)?)
        {
            let Some(reply) = answer else {
                shared.lost(*partition, epoch);
                continue;
            };
            let was_late = *safe_until <= Instant::now();
            self.beaten(*partition, reply, sent, &mut woken)?;
            if was_late {
                // The engine was refused leases for a while, and waits to be told of the hosts again.
                let hosts = all_hosts(&shared, &mut self.runner, *partition)?;
                woken.extend(hosts.into_iter().map(|(host, _, _)| host));
            }
        }

        *shared.beaten.lock().unwrap_or_else(PoisonError::into_inner) = sent;
        self.tell_woken(woken);
        Ok(())
    }

    fn beaten(
        &self,
        partition: u32,
        reply: Reply,
        sent: Instant,
        woken: &mut Vec<HostKey>,
    ) -> Result<(), Error> {
        let mut items = Items::of(reply, "the reply to a beat")?;
        let (version, queued, leased, outbox) =
            (items.count()?, items.count()?, items.count()?, items.count()?);
        let by_others = items.texts()?;
        let versions = by_others.iter().skip(1).step_by(2).filter_map(|version| version.parse::<u64>().ok());
        // Hosts of the last version may be missing in a list that is full.
        let is_full = by_others.len() >= 4_000;
        let seen = versions.max().map(|last| if is_full { last - 1 } else { last });
        woken.extend(by_others.iter().step_by(2).map(|name| HostKey::new(name)));
        let (marks, marked) = marked(&mut items)?;
        let (safe_until, flights_until) = self.until(sent);
        self.shared.partitions.get(partition).with(|owned| {
            (owned.marks, owned.marked) = (marks, marked);
            (owned.safe_until, owned.flights_until) = (safe_until, flights_until);
            (owned.leased, owned.outbox) = (leased, outbox);
            owned.woken = seen.unwrap_or(owned.woken);
        });
        self.shared.partitions.counted(partition, version, queued);
        if queued + leased > 0 {
            self.shared.is_idle.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Until when requests may be started, and be in flight, with a lease that was asked for at `sent`.
    fn until(&self, sent: Instant) -> (Instant, Instant) {
        let lease = self.shared.settings.lease;
        (sent + lease - lease / MARGIN, sent + lease - lease / LAST_MARGIN)
    }

    /// Tells the engine of hosts, if there are any.
    pub(crate) fn tell_woken(&self, hosts: Vec<HostKey>) {
        if let Some(link) = self.shared.link.get().filter(|_| !hosts.is_empty()) {
            link.woken(hosts);
        }
    }

    /// Takes partitions that nobody owns up to this node's share, and gives some away beyond it.
    fn balance(&mut self) -> Result<(), Error> {
        self.release_drained()?;
        let count = self.shared.partitions.count();
        let share = (count as usize).div_ceil(self.live.len().max(1));
        let kept = self.shared.partitions.kept();
        if kept > share {
            self.drain(given_away(kept - share));
            return Ok(());
        }
        let wanted = share - kept;
        let owned = self.shared.partitions.owned();
        let others =
            (0..count).map(|at| (self.next_claim + at) % count).filter(|other| !owned.contains(other));
        let tried: Vec<u32> = others.take(wanted).collect();
        if let Some(last) = tried.last() {
            self.next_claim = (last + 1) % count;
        }
        let (lease, node) = (micros(self.shared.settings.lease), self.shared.settings.node.as_str());
        let call = |partition: &u32| {
            self.shared.plain(&CLAIM, *partition).arg(self.shared.token.as_str()).number(lease).arg(node)
        };
        let calls: Vec<Call> = tried.iter().map(call).collect();
        let sent = Instant::now();
        for (partition, answer) in tried.into_iter().zip(self.runner.run(&calls)?) {
            let mut items = Items::of(answer.unwrap_or(Reply::Nil), "the reply to a claim")?;
            let epoch = items.number()?;
            // A negative number means that another node owns it.
            if epoch > 0 {
                let starts_are_told = items.count()? > 0;
                self.gain(partition, epoch.to_string(), sent, starts_are_told)?;
            }
        }
        Ok(())
    }

    /// Takes over a partition that was claimed. Unless the last owner has told them, it is not known when requests were last sent to its hosts.
    fn gain(
        &mut self,
        partition: u32,
        epoch: String,
        sent: Instant,
        starts_are_told: bool,
    ) -> Result<(), Error> {
        let Some((version, queued)) = self.restore(partition, &epoch)? else { return Ok(()) };
        let mut hosts = all_hosts(&self.shared, &mut self.runner, partition)?;
        let clock = self.shared.clock();
        for pace in hosts.iter_mut().filter_map(|(_, _, pace)| pace.as_mut()) {
            *pace = clock.to_own(*pace);
            if !starts_are_told {
                pace.last_start = Timestamp(0);
            }
        }
        self.read_notes(partition)?;
        // Other nodes may ask some of the hosts.
        let heard = self.shared.fenced(&BEAT, partition, &epoch).number(micros(self.shared.settings.lease));
        let Some(reply) = self.runner.run(&[heard.number(0).number(0)])?.remove(0) else { return Ok(()) };
        let mut items = Items::of(reply, "the reply to a beat")?;
        for _ in 0..4 {
            items.count()?;
        }
        items.texts()?;
        let (marks, marked) = marked(&mut items)?;
        let since = self.shared.link.get().map_or(Timestamp(0), |link| link.now());
        let (safe_until, flights_until) = self.until(sent);
        let owned = Owned {
            epoch,
            since,
            safe_until,
            flights_until,
            is_draining: false,
            is_leaving: false,
            marked,
            marks,
            woken: 0,
            leased: 0,
            // The next beat tells how many there are.
            outbox: 0,
            replied: Vec::new(),
        };
        self.shared.partitions.gain(partition, owned, version, queued);
        if queued > 0 {
            self.shared.is_idle.store(false, Ordering::Release);
        }
        self.shared.count("cluster/takeovers_total");
        if let Some(link) = self.shared.link.get() {
            let count = self.shared.partitions.count();
            let hosts = hosts.into_iter().map(|(host, _, pace)| (host, pace)).collect();
            link.adopted(hosts, move |host| crate::keys::partition_of(host, count) == partition);
        }
        Ok(())
    }

    /// Returns leased requests of an own partition to the queue. Returns version and number of queued requests, or `None` if another node
    /// may own it.
    fn restore(&mut self, partition: u32, epoch: &str) -> Result<Option<(u64, u64)>, Error> {
        let mut restored = 0;
        loop {
            let call = self.shared.fenced(&RESTORE, partition, epoch);
            let Some(reply) = self.runner.run(&[call])?.remove(0) else {
                self.shared.lost(partition, epoch);
                return Ok(None);
            };
            let mut items = Items::of(reply, "the reply to a restore")?;
            let (left, version, queued) = (items.count()?, items.count()?, items.count()?);
            restored += items.number()?;
            if left == 0 {
                self.shared.partitions.counted(partition, version, queued);
                if let Some(link) = self.shared.link.get().filter(|_| restored > 0) {
                    link.stats().add("cluster/refetched_total", restored);
                }
                return Ok(Some((version, queued)));
            }
        }
    }

    /// Leases nothing more of some partitions, those with the fewest requests in flight first.
    fn drain(&self, most: usize) {
        let leased = |partition: u32| {
            let part = self.shared.partitions.get(partition);
            Some((part.with(|owned| (!owned.is_draining).then_some(owned.leased))??, partition))
        };
        let mut kept: Vec<(u64, u32)> =
            self.shared.partitions.owned().into_iter().filter_map(leased).collect();
        kept.sort_unstable();
        for (_, partition) in kept.into_iter().take(most) {
            self.shared.partitions.get(partition).with(|owned| owned.is_draining = true);
        }
    }

    /// Gives partitions away in which nothing is in flight any more.
    fn release_drained(&mut self) -> Result<(), Error> {
        let drained = |partition: u32| {
            let part = self.shared.partitions.get(partition);
            let epoch =
                part.with(|owned| (owned.is_draining && owned.leased == 0).then(|| owned.epoch.clone()))??;
            Some((partition, epoch))
        };
        let drained: Vec<(u32, String)> =
            self.shared.partitions.owned().into_iter().filter_map(drained).collect();
        if drained.is_empty() {
            return Ok(());
        }
        for (partition, _) in &drained {
            self.shared.partitions.get(*partition).with(|owned| owned.is_leaving = true);
        }
        let starts_are_told =
            self.ask_what_is_known(drained.iter().map(|(partition, _)| *partition).collect());
        self.store_learnt()?;
        self.release(&drained, false, starts_are_told)?;
        // What is still owned has work again.
        for (partition, _) in &drained {
            self.shared.partitions.get(*partition).with(|owned| owned.is_leaving = false);
        }
        Ok(())
    }

    /// Has the engine tell what the next owner of partitions should know; returns whether it did so in time. If not, the next owner waits
    /// somewhat longer before its first requests.
    fn ask_what_is_known(&self, partitions: Vec<u32>) -> bool {
        let Some(link) = self.shared.link.get() else { return false };
        let (told, is_told) = mpsc::channel();
        let count = self.shared.partitions.count();
        let is_left = move |host: &HostKey| partitions.contains(&crate::keys::partition_of(host, count));
        // The keeper may have stopped waiting.
        link.leaving(is_left, move || {
            let _ = told.send(());
        });
        is_told.recv_timeout(self.shared.settings.lease / ROUNDS).is_ok()
    }

    /// Gives partitions back; unless `even_leased`, only those without leases. `starts_are_told` if it is stored when each of their hosts got
    /// its last request.
    fn release(
        &mut self,
        owned: &[(u32, String)],
        even_leased: bool,
        starts_are_told: bool,
    ) -> Result<(), Error> {
        let call = |(partition, epoch): &(u32, String)| {
            let call = self.shared.fenced(&RELEASE, *partition, epoch).number(u64::from(even_leased));
            call.number(u64::from(starts_are_told))
        };
        let calls: Vec<Call> = owned.iter().map(call).collect();
        for ((partition, epoch), answer) in owned.iter().zip(self.runner.run(&calls)?) {
            if answer.is_some_and(|reply| reply.number() == Some(1))
                && self.shared.partitions.lose(*partition, epoch)
            {
                self.shared.tell_lost(*partition);
            }
        }
        Ok(())
    }

    /// Finds out whether the crawl is at its end: nothing is queued, leased or in an outbox, and no partition has changed since the last
    /// look at all of them.
    fn sweep(&mut self) -> Result<(), Error> {
        let own = self.shared.settings.node.as_str();
        let others_work = self.live.iter().any(|node| node.is_busy && node.name != own);
        // The engine asks when it has nothing to do. A beat that was sent before may say later that there is work, and the engine would
        // never ask again.
        if !self.shared.is_idle.load(Ordering::Acquire)
            && self.shared.partitions.has_no_work()
            && let Some(link) = self.shared.link.get()
        {
            link.woken(Vec::new());
        }
        if others_work || !self.shared.is_idle.load(Ordering::Acquire) {
            self.swept = None;
            return Ok(());
        }
        let (versions, work, _) = self.count()?;
        let is_finished = work == 0 && self.swept.as_ref() == Some(&versions);
        self.swept = (work == 0).then_some(versions);
        let was_finished = self.shared.is_finished.swap(is_finished, Ordering::AcqRel);
        if let Some(link) = self.shared.link.get()
            && is_finished
            && !was_finished
        {
            // The engine asks again.
            link.woken(Vec::new());
        }
        Ok(())
    }

    /// Gives everything back to the other nodes.
    fn give_back(&mut self) -> Result<(), Error> {
        self.store_learnt()?;
        self.move_outboxes()?;
        let epoch = |partition: u32| Some((partition, self.shared.partitions.get(partition).epoch()?));
        let owned: Vec<(u32, String)> =
            self.shared.partitions.owned().into_iter().filter_map(epoch).collect();
        self.release(&owned, true, self.shared.has_left.load(Ordering::Acquire))?;
        let Shared { settings, job, token, .. } = &*self.shared;
        nodes::leave(settings, job, token, &mut self.runner)
    }
}

/// The number of the last mark, and the marked hosts, in the reply to a beat.
fn marked(items: &mut Items) -> Result<(u64, HashSet<HostKey>), Error> {
    let marks = items.count()?;
    Ok((marks, items.texts()?.iter().map(|name| HostKey::new(name)).collect()))
}

/// How many of the partitions that are too many for this node are given away in a round: a quarter, so that nodes that come and go do not
/// move everything. One at a time would leave a new node without work for minutes: half of 1,024 partitions take 256 s then, and 10 s so.
fn given_away(too_many: usize) -> usize {
    too_many.div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_node_has_its_share_after_few_rounds() {
        let rounds = |mut too_many: usize| {
            let mut rounds = 0;
            while too_many > 0 {
                too_many -= given_away(too_many);
                rounds += 1;
            }
            rounds
        };
        // Half of the partitions of a usual job and of a large one; thirty rounds are the time of a lease.
        assert_eq!((rounds(32), rounds(512)), (10, 20));
    }
}
