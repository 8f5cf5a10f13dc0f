//! A job: what a crawl keeps on disk to go on after its end, a stop or a crash.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use huntsman_files as files;
use huntsman_store::{Backend, JobDirectory, Store};

use crate::error::{Error, Result};

/// The directory in which the state of a crawl lives: queue, seen set, stats, and what parts of the crawl keep there by
/// [`Persist`]. One process at a time.
///
/// Given to [`CrawlerBuilder::job`](crate::CrawlerBuilder::job), the crawl goes on where the last one on the directory
/// ended, however that ended. Every `job_commit_interval` seconds one atomic batch is written: pages settled, their links,
/// the positions of feeds and all state stand as of one moment. After a crash the pages since the last commit are fetched
/// again, and nothing is lost or doubled in feeds that keep their position in the job.
#[derive(Debug)]
pub struct Job {
    store: Arc<dyn Store>,
    /// `None` on a store of one's own.
    directory: Option<JobDirectory>,
    is_new: bool,
}

impl Job {
    /// Opens the state of a job, or begins one. The parent of the directory must exist.
    ///
    /// # Errors
    /// Another process works on it, it is damaged, of another backend, or of a newer version; the error says what to do.
    pub fn open(path: impl AsRef<Path>, backend: Backend) -> Result<Self> {
        let path: PathBuf = path.as_ref().to_owned();
        let directory = JobDirectory::open(&path, backend)
            .map_err(|error| Error::from(error).context("opening the state of the crawl"))?;
        Ok(Self { store: directory.store(), is_new: directory.is_new(), directory: Some(directory) })
    }

    /// A job over a store of one's own: a backend that this program does not have, or one that fails on purpose. What keeps
    /// other processes away from it is up to the caller.
    ///
    /// # Errors
    /// The store fails.
    pub fn on(store: Arc<dyn Store>) -> Result<Self> {
        let mut is_new = true;
        store.scan(b"", &mut |_, _| {
            is_new = false;
            false
        })?;
        Ok(Self { store, directory: None, is_new })
    }

    /// Whether nothing was stored in it before.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// Gives room back, and the directory to others.
    pub(crate) fn close(self) -> Result<()> {
        let Self { store, directory, .. } = self;
        // The directory gives room back if nobody else has its store.
        drop(store);
        directory.map_or(Ok(()), |directory| Ok(directory.close()?))
    }
}

/// A part of a crawl whose state lives in its job: cookie jars, the position of a feed, the model of a plugin.
///
/// Registered with [`CrawlerBuilder::persist`](crate::CrawlerBuilder::persist). Without a job nothing is called.
pub trait Persist: Send + Sync + 'static {
    /// The key of the state within the job: unique, and the same in every run.
    fn name(&self) -> String;

    /// Takes the state that an earlier run saved; `None` in a new job. Called before anything opens.
    ///
    /// # Errors
    /// The state cannot be used; the crawl does not start.
    fn load(&self, state: Option<&[u8]>) -> Result<()>;

    /// The state of this moment, in which no page is half settled; `None` if it did not change since the last call. Called
    /// at every commit while the crawl waits, so it must be quick.
    ///
    /// # Errors
    /// The state cannot be had; the crawl ends.
    fn save(&self) -> Result<Option<Vec<u8>>>;

    /// Makes durable what the last [`save`](Self::save) speaks of and keeps elsewhere, as the file of a feed: after a power
    /// cut the job must not know of what is lost. Called after every `save`, before the commit is written, from a thread that
    /// may block; the crawl goes on meanwhile. Nothing by default.
    ///
    /// # Errors
    /// It cannot be made durable; nothing is committed, and the crawl ends.
    fn sync(&self) -> Result<()> {
        Ok(())
    }

    /// Takes one entry that an earlier run saved by [`save_entries`](Self::save_entries), after [`load`](Self::load). None by
    /// default.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    fn load_entry(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let _ = (key, value);
        Ok(())
    }

    /// State of many parts, of which only those are written that changed since the last call: key and new value, `None` for
    /// one that is gone. None by default. Called as [`save`](Self::save).
    ///
    /// # Errors
    /// As [`save`](Self::save).
    fn save_entries(&self) -> Result<Vec<Change>> {
        Ok(Vec::new())
    }
}

/// Key and new value of an entry of a [`Persist`]; `None` if it is gone.
pub type Change = (Vec<u8>, Option<Vec<u8>>);

impl<T: Persist + ?Sized> Persist for Arc<T> {
    fn name(&self) -> String {
        (**self).name()
    }

    fn load(&self, state: Option<&[u8]>) -> Result<()> {
        (**self).load(state)
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        (**self).save()
    }

    fn sync(&self) -> Result<()> {
        (**self).sync()
    }

    fn load_entry(&self, key: &[u8], value: &[u8]) -> Result<()> {
        (**self).load_entry(key, value)
    }

    fn save_entries(&self) -> Result<Vec<Change>> {
        (**self).save_entries()
    }
}

/// A file, with what errors call it.
type Named = (String, Weak<File>);

/// Files of pipelines: durable before a commit that settles the pages of what is in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct DurableFiles(Arc<Mutex<Vec<Named>>>);

impl DurableFiles {
    pub(crate) fn add(&self, name: String, file: &Arc<File>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((name, Arc::downgrade(file)));
    }

    /// The files that are still written, with their names.
    fn open(&self) -> Vec<(String, Arc<File>)> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|(_, file)| file.strong_count() > 0);
        files.iter().filter_map(|(name, file)| Some((name.clone(), file.upgrade()?))).collect()
    }
}

impl Persist for DurableFiles {
    fn name(&self) -> String {
        "files".to_owned()
    }

    fn load(&self, _: Option<&[u8]>) -> Result<()> {
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn sync(&self) -> Result<()> {
        self.open()
            .into_iter()
            .try_for_each(|(name, file)| files::sync(&file).map_err(|cause| Error::from(cause).context(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_synced_as_long_as_they_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let kept = DurableFiles::default();
        let open: Vec<_> =
            (0..3).map(|n| Arc::new(files::create_new(folder.path().join(n.to_string())).unwrap())).collect();
        open.iter().for_each(|file| kept.add("a file".to_owned(), file));
        kept.clone().sync().unwrap();
        assert_eq!(kept.open().len(), 3);
        drop(open);
        assert_eq!(kept.open().len(), 0);
        kept.sync().unwrap();
    }
}
