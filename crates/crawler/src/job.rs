//! A job: the state that a crawl keeps on disk, so that it can be resumed after its end, a stop or a crash.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use huntsman_files as files;
use huntsman_store::{Backend, JobDirectory, Store};

use crate::error::{Error, Result};

/// The directory that holds the state of a crawl: queue, seen set, stats, and the state of components that implement
/// [`Persist`]. Only one process may use it at a time.
///
/// With [`CrawlerBuilder::job`](crate::CrawlerBuilder::job) the crawl continues where the last crawl in the directory
/// ended, however that crawl ended. Every `job_commit_interval` seconds one atomic batch is written: settled pages,
/// their links, the positions of feeds and all state are consistent with each other. After a crash the pages since
/// the last commit are fetched again; nothing is lost or duplicated in feeds that keep their position in the job.
#[derive(Debug)]
pub struct Job {
    store: Arc<dyn Store>,
    /// `None` if the caller supplied the store.
    directory: Option<JobDirectory>,
    is_new: bool,
}

impl Job {
    /// Opens the state of a job, or creates a new one. The parent of the directory must exist.
    ///
    /// # Errors
    /// Another process uses the job, or it is damaged, belongs to another backend, or was written by a newer version.
    /// The error says what to do.
    pub fn open(path: impl AsRef<Path>, backend: Backend) -> Result<Self> {
        let path: PathBuf = path.as_ref().to_owned();
        let directory = JobDirectory::open(&path, backend)
            .map_err(|error| Error::from(error).context("opening the state of the crawl"))?;
        Ok(Self { store: directory.store(), is_new: directory.is_new(), directory: Some(directory) })
    }

    /// A job in a store that the caller supplies: for a backend that this program does not have, or for one that
    /// fails on purpose. The caller must keep other processes away from it.
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

    /// Whether the job is new, that is, nothing was stored in it before.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// Compacts the store and releases the directory.
    pub(crate) fn close(self) -> Result<()> {
        let Self { store, directory, .. } = self;
        // The directory compacts the store unless it is used elsewhere.
        drop(store);
        directory.map_or(Ok(()), |directory| Ok(directory.close()?))
    }
}

/// A part of a crawl whose state is stored in the job: cookie jars, the position of a feed, the model of a component.
///
/// Register it with [`CrawlerBuilder::persist`](crate::CrawlerBuilder::persist). Without a job no method is called.
pub trait Persist: Send + Sync + 'static {
    /// The key of the state within the job: unique, and the same in every run.
    fn name(&self) -> String;

    /// Receives the state that an earlier run saved; `None` in a new job. Called before anything is opened.
    ///
    /// # Errors
    /// The state cannot be used; the crawl does not start.
    fn load(&self, state: Option<&[u8]>) -> Result<()>;

    /// Returns the current state, at a moment when no page is half settled; `None` if it has not changed since the
    /// last call. Called at every commit while the crawl waits, so it must be quick. When it is called again, the commit
    /// before is written; after one that failed, it is not called any more.
    ///
    /// # Errors
    /// The state cannot be obtained; nothing is committed, and the crawl ends.
    fn save(&self) -> Result<Option<Vec<u8>>>;

    /// Makes durable everything outside the job that the last [`save`](Self::save) refers to, such as the file of a
    /// feed; otherwise the job could refer to data that a power cut destroyed. Called after every `save`, before the
    /// commit is written, on a thread that may block; the crawl continues meanwhile. Does nothing by default.
    ///
    /// # Errors
    /// The data cannot be made durable; nothing is committed, and the crawl ends.
    fn sync(&self) -> Result<()> {
        Ok(())
    }

    /// Receives one entry that an earlier run saved with [`save_entries`](Self::save_entries); called after
    /// [`load`](Self::load). Does nothing by default.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    fn load_entry(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let _ = (key, value);
        Ok(())
    }

    /// Returns the changed entries of a state that consists of many parts: key and new value of each entry that
    /// changed since the last call, `None` as the value of a removed entry. Returns none by default. Called like
    /// [`save`](Self::save).
    ///
    /// # Errors
    /// As [`save`](Self::save).
    fn save_entries(&self) -> Result<Vec<Change>> {
        Ok(Vec::new())
    }
}

/// Key and new value of an entry of a [`Persist`]; the value is `None` if the entry was removed.
pub type Change = (Vec<u8>, Option<Vec<u8>>);

/// A pointer persists what it points to.
macro_rules! persist_by_pointer {
    ($($pointer:ident),*) => {$(
        impl<T: Persist + ?Sized> Persist for $pointer<T> {
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
    )*};
}

persist_by_pointer!(Arc, Box);

/// A file, and its name for error messages.
type NamedFile = (String, Weak<File>);

/// Files of pipelines. They are made durable before a commit settles the pages whose items they contain.
#[derive(Clone, Debug, Default)]
pub(crate) struct DurableFiles(Arc<Mutex<Vec<NamedFile>>>);

impl DurableFiles {
    pub(crate) fn add(&self, name: String, file: &Arc<File>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((name, Arc::downgrade(file)));
    }

    /// The files that are still in use, with their names.
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
