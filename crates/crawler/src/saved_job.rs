//! A job that no crawl works on: what it has, and what can be done to it between two runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use huntsman_store::{Backend, DEFAULT_CACHE_BYTES, Durability, JobDirectory, Store};

use crate::clock::Timestamp;
use crate::drop::{DropReason, Dropped};
use crate::error::{Error, Result};
use crate::event::{Event, Observer};
use crate::frontier::SavedQueue;
use crate::host::HostKey;
use crate::job::Persist;
use crate::request::{Fingerprint, Request};

/// The name under which a job keeps the counters of its crawl.
const STATS: &str = "stats";

/// Where the state of a [`Persist`] lies, as the commits of a crawl write it.
fn part_key(name: &str) -> Vec<u8> {
    [b"p/", name.as_bytes()].concat()
}

/// The state of a [`Job`](crate::Job) as its last commit left it.
///
/// Opening takes a second for ten million queued requests, and as much memory as the crawl had for its queue; what the crawl had
/// on disk stays there and is read piece by piece: going through 1.5 million requests took 118 MB in all. What was in flight at the last commit counts as queued, as it does for the
/// crawl that goes on.
#[derive(Debug)]
pub struct SavedJob {
    directory: JobDirectory,
    store: Arc<dyn Store>,
    queue: SavedQueue,
}

impl SavedJob {
    /// Opens a job to be read, beside others that read it; a crawl cannot go on meanwhile. Nothing is made.
    ///
    /// # Errors
    /// There is none, a crawl works on it, it is damaged, or of a newer version.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        Self::of(JobDirectory::open_read_only(path, DEFAULT_CACHE_BYTES))
    }

    /// Opens a job to be changed, alone.
    ///
    /// # Errors
    /// As [`SavedJob::read`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::of(match JobDirectory::backend_of(path) {
            Ok(Some(backend)) => JobDirectory::open(path, backend),
            // Tells that there is none.
            Ok(None) => JobDirectory::open_read_only(path, DEFAULT_CACHE_BYTES),
            Err(error) => Err(error),
        })
    }

    fn of(directory: std::result::Result<JobDirectory, huntsman_store::StoreError>) -> Result<Self> {
        let doing = "opening the state of the crawl";
        let directory = directory.map_err(|error| Error::from(error).context(doing))?;
        let store = directory.store();
        // Other things lie in directories of the same make; the keys of a job are paths.
        let mut is_job = true;
        store.scan(b"", &mut |key, _| {
            is_job = key.get(1) == Some(&b'/');
            false
        })?;
        if !is_job {
            let message = format!("{}: it is no state of a crawl", directory.path().display());
            return Err(Error::usage(message).context(doing));
        }
        let queue = SavedQueue::of(&*store).map_err(|error| error.context(doing))?;
        Ok(Self { directory, store, queue })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// What keeps it.
    pub fn backend(&self) -> Backend {
        self.directory.backend()
    }

    /// The format of its directory.
    pub fn format(&self) -> u32 {
        self.directory.format()
    }

    /// Requests that are queued, those that were in flight at the last commit included.
    pub fn queued(&self) -> u64 {
        self.queue.len()
    }

    /// Requests that were in flight at the last commit; `None` if an earlier version wrote it.
    ///
    /// # Errors
    /// The disk fails, or what is stored is damaged.
    pub fn in_flight(&self) -> Result<Option<u64>> {
        Ok(SavedQueue::last_commit(&*self.store)?.map(|commit| commit.leased))
    }

    /// When the last commit was written, by the clock of its machine; `None` if an earlier version wrote it.
    ///
    /// # Errors
    /// As [`SavedJob::in_flight`].
    pub fn last_commit(&self) -> Result<Option<Timestamp>> {
        Ok(SavedQueue::last_commit(&*self.store)?.map(|commit| commit.at))
    }

    /// The hosts that have something queued, with how much, by name. A host is a politeness slot ([`HostKey`]), so it may be a
    /// registrable domain or an address.
    pub fn hosts(&self) -> Vec<(HostKey, u64)> {
        self.queue.hosts()
    }

    /// Requests that were seen: every one that ever entered the queue, but those that asked not to be filtered.
    ///
    /// # Errors
    /// As [`SavedJob::in_flight`].
    pub fn seen(&self) -> Result<u64> {
        self.queue.seen(&*self.store)
    }

    /// The counters of the crawl, over all of its runs.
    ///
    /// # Errors
    /// As [`SavedJob::in_flight`].
    pub fn stats(&self) -> Result<BTreeMap<String, i64>> {
        Ok(match self.part(STATS)? {
            Some(state) => serde_json::from_slice(&state)?,
            None => BTreeMap::new(),
        })
    }

    /// The state that a [`Persist`] of this name saved.
    ///
    /// # Errors
    /// As [`SavedJob::in_flight`].
    pub fn part(&self, name: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.store.get(&part_key(name))?)
    }

    /// Calls `visit` with the queued requests until it answers `false`: host by host by name, or of one host. Within a host they
    /// come in the order of the queue, but for what lies on disk, which comes last, by blocks of some hundred.
    ///
    /// Reads some hundred requests at a time, however many there are.
    ///
    /// # Errors
    /// As [`SavedJob::in_flight`].
    pub fn each_queued(
        &self,
        host: Option<&HostKey>,
        mut visit: impl FnMut(&HostKey, Request) -> bool,
    ) -> Result<()> {
        let hosts = match host {
            Some(host) => vec![host.clone()],
            None => self.hosts().into_iter().map(|(host, _)| host).collect(),
        };
        for host in hosts {
            if !self.queue.each_of(&host, &*self.store, &mut |request| visit(&host, request))? {
                break;
            }
        }
        Ok(())
    }

    /// Calls `visit` with all that was seen, in no order, until it answers `false`. Fingerprints are all that is kept of it:
    /// the 128-bit hash of method, URL in canonical form, and body.
    ///
    /// # Errors
    /// As [`SavedJob::in_flight`].
    pub fn each_seen(&self, mut visit: impl FnMut(Fingerprint) -> bool) -> Result<()> {
        self.queue.each_seen(&*self.store, &mut visit)
    }

    /// Takes all requests of a host out of the queue; answers with how many there were.
    ///
    /// Each is told to `log` as a drop, skipped with the reason `dropped_by_user`, before one commit takes it out, so that
    /// every request that was queued has its record whatever happens between; `log` is loaded and saved with the state that
    /// it has in the job, as in a crawl, but without entries. They stay seen: the crawl that goes on does not queue them again.
    ///
    /// # Errors
    /// The job was opened to be read only, the disk fails or is full: the queue is as it was.
    pub fn drop_host(&mut self, host: &HostKey, log: &(impl Observer + Persist)) -> Result<u64> {
        let name = log.name();
        log.load(self.part(&name)?.as_deref())?;
        let at = Timestamp::wall();
        let mut dropped = 0u64;
        let tell = &mut |request: Request| {
            let why = DropReason::skipped("dropped_by_user");
            log.event(&Event::RequestDropped(&Dropped::new(&request, "job", why, at)));
            dropped += 1;
            true
        };
        self.queue.each_of(host, &*self.store, tell)?;
        if dropped == 0 {
            return Ok(0);
        }
        let state = log.save()?;
        let mut stats = self.stats()?;
        let count = i64::try_from(dropped).unwrap_or(i64::MAX);
        for key in ["drops/skipped", "drops/skipped/dropped_by_user", "scheduler/dequeued"] {
            let counter = stats.entry(key.to_owned()).or_default();
            *counter = counter.saturating_add(count);
        }
        let mut batch = self.queue.forget(host);
        batch.put(part_key(STATS), serde_json::to_vec(&stats)?);
        if let Some(state) = state {
            batch.put(part_key(&name), state);
        }
        log.sync()?;
        if let Err(error) = self.store.write(&batch, Durability::Full) {
            // The store has what it had.
            self.queue = SavedQueue::of(&*self.store)?;
            return Err(Error::from(error).context("writing the queue"));
        }
        Ok(dropped)
    }

    /// Closes it, and gives room back to the disk if that is quick.
    ///
    /// # Errors
    /// The disk fails; what was written is there.
    pub fn close(self) -> Result<()> {
        let Self { directory, store, queue } = self;
        drop((store, queue));
        Ok(directory.close()?)
    }
}
