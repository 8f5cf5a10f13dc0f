//! A job that no crawl is using: its contents, and changes to it between two runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use huntsman_store::{Backend, DEFAULT_CACHE_BYTES, Durability, JobDirectory, Store};

use crate::clock::Timestamp;
use crate::drop::{DropReason, Dropped};
use crate::engine::load_entries;
use crate::error::{Error, Result};
use crate::event::{Event, Observer};
use crate::frontier::SavedQueue;
use crate::host::HostKey;
use crate::job::Persist;
use crate::request::{Fingerprint, Request};

/// The name under which a job stores the counters of its crawl.
const STATS: &str = "stats";

/// The key of the state of a [`Persist`] in the store.
fn part_key(name: &str) -> Vec<u8> {
    [b"p/", name.as_bytes()].concat()
}

/// The state of a [`Job`](crate::Job) as of its last commit.
///
/// Opening takes a second for ten million queued requests, and as much memory as the crawl had for its queue. The
/// part of the queue that the crawl kept on disk stays there and is read in pieces: reading all of 1.5 million
/// requests took 118 MB in total. Requests that were in flight at the last commit count as queued, as they do when
/// the crawl is resumed.
#[derive(Debug)]
pub struct SavedJob {
    directory: JobDirectory,
    store: Arc<dyn Store>,
    queue: SavedQueue,
}

impl SavedJob {
    /// Opens a job for reading. Several readers may have it open, but no crawl can use it meanwhile. Nothing is
    /// created.
    ///
    /// # Errors
    /// There is no job, a crawl is using it, it is damaged, or it was written by a newer version.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        Self::of(JobDirectory::open_read_only(path, DEFAULT_CACHE_BYTES))
    }

    /// Opens a job for changes, exclusively.
    ///
    /// # Errors
    /// As [`SavedJob::read`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::of(match JobDirectory::backend_of(path) {
            Ok(Some(backend)) => JobDirectory::open(path, backend),
            // This call returns the error that there is no job.
            Ok(None) => JobDirectory::open_read_only(path, DEFAULT_CACHE_BYTES),
            Err(error) => Err(error),
        })
    }

    fn of(directory: std::result::Result<JobDirectory, huntsman_store::StoreError>) -> Result<Self> {
        let doing = "opening the state of the crawl";
        let directory = directory.map_err(|error| Error::from(error).context(doing))?;
        let store = directory.store();
        // Other data is stored in directories of the same format.
        let mut is_job = true;
        store.scan(b"", &mut |key, _| {
            is_job = Self::is_key(key);
            false
        })?;
        if !is_job {
            let message = format!("{}: this is not the state of a crawl", directory.path().display());
            return Err(Error::usage(message).context(doing));
        }
        let queue = SavedQueue::of(&*store).map_err(|error| error.context(doing))?;
        Ok(Self { directory, store, queue })
    }

    /// Whether an entry of a store with this key belongs to a job. The keys of a job are paths in three folders; keys of other data may
    /// be arbitrary bytes after their first one.
    pub fn is_key(key: &[u8]) -> bool {
        matches!(key, [b'e' | b'f' | b'p', b'/', ..])
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The backend that stores it.
    pub fn backend(&self) -> Backend {
        self.directory.backend()
    }

    /// The format of its directory.
    pub fn format(&self) -> u32 {
        self.directory.format()
    }

    /// Number of queued requests, including those that were in flight at the last commit.
    pub fn queued(&self) -> u64 {
        self.queue.len()
    }

    /// Number of requests that were in flight at the last commit; `None` if an earlier version wrote the job.
    ///
    /// # Errors
    /// The disk fails, or the stored data is damaged.
    pub fn in_flight(&self) -> Result<Option<u64>> {
        Ok(SavedQueue::last_commit(&*self.store)?.map(|commit| commit.leased))
    }

    /// Time of the last commit, by the clock of the machine that wrote it; `None` if an earlier version wrote the
    /// job.
    ///
    /// # Errors
    /// As [`SavedJob::in_flight`].
    pub fn last_commit(&self) -> Result<Option<Timestamp>> {
        Ok(SavedQueue::last_commit(&*self.store)?.map(|commit| commit.at))
    }

    /// The hosts with queued requests, and their numbers, in order of the hosts' names. A host is a politeness slot
    /// ([`HostKey`]), so it may be a registrable domain or an address.
    pub fn hosts(&self) -> Vec<(HostKey, u64)> {
        self.queue.hosts()
    }

    /// Number of seen requests: all requests that ever entered the queue, except unfiltered ones.
    ///
    /// # Errors
    /// As [`SavedJob::in_flight`].
    pub fn seen(&self) -> Result<u64> {
        self.queue.seen(&*self.store)
    }

    /// The counters of the crawl, summed over all of its runs.
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

    /// Gives a part its state and its entries, as at the start of a crawl that goes on.
    ///
    /// # Errors
    /// As [`SavedJob::in_flight`], or the part cannot use its state.
    pub fn load(&self, part: &impl Persist) -> Result<()> {
        let name = part.name();
        part.load(self.part(&name)?.as_deref())?;
        load_entries(&*self.store, part, &name)
    }

    /// Calls `visit` with the queued requests until it returns `false`: of all hosts in order of their names, or of
    /// one host. The requests of a host come in the order of the queue, except those on disk, which come last, in
    /// blocks of some hundred.
    ///
    /// Only some hundred requests are read at a time, however many there are.
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

    /// Calls `visit` with all seen fingerprints, in no particular order, until it returns `false`. Only fingerprints
    /// are stored: the 128-bit hash of method, canonical URL and body.
    ///
    /// # Errors
    /// As [`SavedJob::in_flight`].
    pub fn each_seen(&self, mut visit: impl FnMut(Fingerprint) -> bool) -> Result<()> {
        self.queue.each_seen(&*self.store, &mut visit)
    }

    /// Removes all requests of a host from the queue. Returns their number.
    ///
    /// Each request is first reported to `log` as a drop, skipped with the reason `dropped_by_user`, and then one
    /// commit removes them all, so that every removed request has a record even if the process ends in between. `log`
    /// is loaded and saved with its state in the job, as in a crawl, but without entries. The requests remain seen: a
    /// resumed crawl does not queue them again.
    ///
    /// # Errors
    /// The job was opened for reading only, or the disk fails or is full; the queue is then unchanged.
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
            // The store still has its former contents.
            self.queue = SavedQueue::of(&*self.store)?;
            return Err(Error::from(error).context("writing the queue"));
        }
        Ok(dropped)
    }

    /// Closes the job, and compacts its store if that is quick.
    ///
    /// # Errors
    /// The disk fails; data that was written before is kept.
    pub fn close(self) -> Result<()> {
        let Self { directory, store, queue } = self;
        drop((store, queue));
        Ok(directory.close()?)
    }
}
