//! Commits of a job: at intervals all changes are written, as of one moment at which no page is half settled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use huntsman_store::{Batch, Store};
use tokio::sync::Mutex;

use super::gate::Gate;
use super::persisted_hosts::PersistedHosts;
use crate::context::{Context, Message};
use crate::error::Result;
use crate::frontier::DiskFrontier;
use crate::job::Persist;
use crate::settings::seconds;
use crate::simulated::blocking;

/// Interval of the check whether the changes are too many to wait for the commit interval.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The parts whose state is committed, and the conditions for a commit.
pub(crate) struct Commits {
    store: Arc<dyn Store>,
    frontier: DiskFrontier,
    parts: Vec<Box<dyn Persist>>,
    pub(crate) hosts: PersistedHosts,
    pub(crate) gate: Gate,
    /// Only one commit runs at a time, even if its caller was cancelled.
    commit_lock: Arc<Mutex<()>>,
    /// Items of a page were handed over but not acknowledged: some pipelines may have written them although the page
    /// is not settled.
    is_stopped: AtomicBool,
}

fn part_key(name: &str) -> Vec<u8> {
    [b"p/", name.as_bytes()].concat()
}

/// The prefix of the keys of a part's entries. A name contains no NUL: it is a word, or includes the path of a file.
fn entries_key(name: &str) -> Vec<u8> {
    [b"e/", name.as_bytes(), b"\0"].concat()
}

/// Passes the stored entries to a part.
pub(crate) fn load_entries(store: &dyn Store, part: &dyn Persist, name: &str) -> Result<()> {
    let prefix = entries_key(name);
    let mut failed = None;
    store.scan(&prefix, &mut |key, value| {
        failed = part.load_entry(&key[prefix.len()..], value).err();
        failed.is_none()
    })?;
    failed.map_or(Ok(()), Err)
}

impl Commits {
    /// Passes to every part its stored state.
    pub(crate) fn load(
        store: Arc<dyn Store>,
        frontier: DiskFrontier,
        mut parts: Vec<Box<dyn Persist>>,
    ) -> Result<Self> {
        let hosts = PersistedHosts::default();
        parts.push(Box::new(hosts.clone()));
        for part in &parts {
            let name = part.name();
            let state = store.get(&part_key(&name))?;
            part.load(state.as_deref())
                .and_then(|()| load_entries(&*store, &**part, &name))
                .map_err(|error| error.context(format!("resuming: {name}")))?;
        }
        let (gate, is_stopped) = (Gate::default(), AtomicBool::new(false));
        Ok(Self { store, frontier, parts, hosts, gate, commit_lock: Arc::default(), is_stopped })
    }

    /// Stops all commits. Files of pipelines are ahead of the settled pages; the next run truncates them to the
    /// lengths in the last commit. The crawl ends with the error of the pipelines.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
    }

    /// Writes all changes. Files that the parts refer to are made durable before the store is written. After a commit
    /// that failed, every further one fails with the same error.
    pub(crate) async fn commit(self: &Arc<Self>) -> Result<()> {
        let one = Arc::clone(&self.commit_lock).lock_owned().await;
        let (commit, others) = {
            let _closed = self.gate.close().await;
            if self.is_stopped.load(Ordering::Acquire) {
                return Ok(());
            }
            // A part may already have dropped what a commit that failed still refers to, so none is asked again.
            self.frontier.check()?;
            let others = self.changes().inspect_err(|error| self.frontier.fail(error))?;
            (self.frontier.prepare(), others)
        };
        let this = Arc::clone(self);
        blocking(move || {
            let written = this.sync().inspect_err(|error| this.frontier.fail(error));
            let written = written.and_then(|()| this.frontier.write(commit, others));
            // The job must be free for the next crawl when the last commit has ended, so the store is given up first.
            drop(this);
            drop(one);
            written
        })
        .await?
    }

    /// The changed states of all parts.
    fn changes(&self) -> Result<Batch> {
        let mut changes = Batch::new();
        for part in &self.parts {
            let name = part.name();
            for (key, value) in part.save_entries()? {
                let key = [entries_key(&name), key].concat();
                match value {
                    Some(value) => changes.put(key, value),
                    None => changes.delete(key),
                }
            }
            if let Some(state) = part.save()? {
                changes.put(part_key(&name), state);
            }
        }
        Ok(changes)
    }

    /// Waits until the current commit is written.
    pub(crate) async fn written(&self) {
        drop(self.commit_lock.lock().await);
    }

    fn sync(&self) -> Result<()> {
        self.parts.iter().try_for_each(|part| {
            part.sync().map_err(|error| error.context(format!("syncing: {}", part.name())))
        })
    }

    /// Commits at intervals until it is aborted; a commit that fails ends the crawl.
    pub(crate) async fn run(self: Arc<Self>, cx: Context) {
        let interval = seconds(cx.settings().job_commit_interval).max(CHECK_INTERVAL);
        let mut last = tokio::time::Instant::now();
        loop {
            tokio::time::sleep(CHECK_INTERVAL.min(interval)).await;
            if last.elapsed() < interval && !self.frontier.is_commit_due() {
                continue;
            }
            if let Err(error) = self.commit().await {
                cx.tell(Message::Fatal(error.context("saving the state of the crawl")));
                return;
            }
            last = tokio::time::Instant::now();
        }
    }
}

impl std::fmt::Debug for Commits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Commits").field("store", &self.store).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex as StdMutex, OnceLock, mpsc};

    use futures_util::FutureExt;
    use huntsman_store::{Durability, MemoryStore, StoreError};

    use super::*;
    use crate::error::Error;
    use crate::frontier::{DiskLimits, Order};
    use crate::request::Request;

    /// The events in their order.
    type Record = Arc<StdMutex<Vec<&'static str>>>;

    #[derive(Debug)]
    struct Recorded(MemoryStore, Record);

    impl Store for Recorded {
        fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
            self.0.get(key)
        }

        fn scan(&self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
            self.0.scan(prefix, visit)
        }

        fn write(&self, batch: &Batch, durability: Durability) -> Result<(), StoreError> {
            self.1.lock().unwrap().push("write");
            self.0.write(batch, durability)
        }
    }

    /// The call of a part that fails.
    #[derive(Clone, Copy, PartialEq)]
    enum Fails {
        Never,
        Save,
        Sync,
    }

    /// A part that tells, when the commits are dropped, whether one of them is still under way.
    struct Watching {
        commit_lock: OnceLock<Arc<Mutex<()>>>,
        tell: mpsc::Sender<bool>,
    }

    impl Persist for Arc<Watching> {
        fn name(&self) -> String {
            "watching".to_owned()
        }

        fn load(&self, _: Option<&[u8]>) -> Result<()> {
            Ok(())
        }

        fn save(&self) -> Result<Option<Vec<u8>>> {
            Ok(Some(vec![1]))
        }
    }

    impl Drop for Watching {
        fn drop(&mut self) {
            let is_under_way = self.commit_lock.get().is_some_and(|lock| lock.try_lock().is_err());
            self.tell.send(is_under_way).ok();
        }
    }

    /// A part with a file whose length is stored in the job.
    struct Part {
        record: Record,
        fails: Fails,
        /// Lets the test check whether pages can be settled meanwhile.
        commits: OnceLock<Arc<Commits>>,
    }

    impl Persist for Arc<Part> {
        fn name(&self) -> String {
            "file/pages.jsonl".to_owned()
        }

        fn load(&self, _: Option<&[u8]>) -> Result<()> {
            Ok(())
        }

        fn save(&self) -> Result<Option<Vec<u8>>> {
            self.record.lock().unwrap().push("save");
            if self.fails == Fails::Save { Err(Error::msg("the disk is gone")) } else { Ok(Some(vec![1])) }
        }

        fn sync(&self) -> Result<()> {
            let is_open =
                self.commits.get().is_some_and(|commits| commits.gate.enter().now_or_never().is_some());
            self.record.lock().unwrap().push(if is_open { "sync" } else { "sync behind the gate" });
            if self.fails == Fails::Sync { Err(Error::msg("the disk is gone")) } else { Ok(()) }
        }
    }

    /// The commits of a job with one part.
    fn commits_of(store: Arc<dyn Store>, part: Box<dyn Persist>) -> (Arc<Commits>, DiskFrontier) {
        let (order, limits) = (Order::Bfs, DiskLimits::default());
        let frontier =
            DiskFrontier::open_for_job(Arc::clone(&store), order, limits, Durability::Full).unwrap();
        (Arc::new(Commits::load(store, frontier.clone(), vec![part]).unwrap()), frontier)
    }

    fn commits(fails: Fails) -> (Arc<Commits>, Record, DiskFrontier) {
        let record = Record::default();
        let store: Arc<dyn Store> = Arc::new(Recorded(MemoryStore::new(), Arc::clone(&record)));
        let part = Arc::new(Part { record: Arc::clone(&record), fails, commits: OnceLock::new() });
        let (commits, frontier) = commits_of(store, Box::new(Arc::clone(&part)));
        part.commits.set(Arc::clone(&commits)).ok();
        (commits, record, frontier)
    }

    #[tokio::test]
    async fn files_are_synced_before_the_store_knows_of_them_while_pages_are_settled() {
        let (commits, record, _) = commits(Fails::Never);
        for _ in 0..2 {
            commits.commit().await.unwrap();
            assert_eq!(std::mem::take(&mut *record.lock().unwrap()), ["save", "sync", "write"]);
        }
    }

    #[tokio::test]
    async fn after_a_commit_that_failed_nothing_is_committed_and_no_part_is_asked_again() {
        use crate::frontier::Frontier;
        for (fails, calls) in [(Fails::Save, &["save"][..]), (Fails::Sync, &["save", "sync"])] {
            let (commits, record, frontier) = commits(fails);
            for _ in 0..2 {
                let error = commits.commit().await.unwrap_err().to_string();
                assert!(error.contains("the disk is gone"), "{error}");
                assert_eq!(*record.lock().unwrap(), calls);
            }
            let request = Request::get("http://example.org/".parse::<url::Url>().unwrap());
            assert!(frontier.push(vec![request]).await.is_err(), "the queue has a gap");
        }
    }

    #[tokio::test]
    async fn a_cancelled_commit_gives_up_the_job_before_it_ends() {
        let (tell, told) = mpsc::channel();
        let watching = Arc::new(Watching { commit_lock: OnceLock::new(), tell });
        let (commits, _) = commits_of(Arc::new(MemoryStore::new()), Box::new(Arc::clone(&watching)));
        watching.commit_lock.set(Arc::clone(&commits.commit_lock)).unwrap();
        drop(watching);
        assert!(commits.commit().now_or_never().is_none(), "it is written on another thread");
        drop(commits);
        assert!(told.recv().unwrap(), "until then, the next commit and the end of the crawl wait");
    }

    #[tokio::test]
    async fn what_cannot_be_synced_is_named() {
        let error = commits(Fails::Sync).0.commit().await.unwrap_err().to_string();
        assert!(error.contains("file/pages.jsonl") && error.contains("the disk is gone"), "{error}");
    }
}
