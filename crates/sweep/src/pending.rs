//! Articles that were found and not yet checked, stored in a folder.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use huntsman_crawler::{Change, Error, Persist, Result};
use xxhash_rust::xxh3::xxh3_128;

use super::candidates::Subject;

/// Articles in files, each until it is checked, so that a crawl need not wait for a check, and a kill loses none.
///
/// A job records which of them wait. A resumed crawl therefore checks the articles of exactly the pages that it does
/// not fetch again, except those whose results are already written: a file is removed only after the commit that
/// removes its article from the waiting ones.
#[derive(Clone, Debug)]
pub(crate) struct Pending(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    job: Option<Mutex<InJob>>,
}

/// The state that is saved in the job.
#[derive(Debug, Default)]
struct InJob {
    /// Those that waited when the last run ended.
    waiting: HashSet<u128>,
    /// Changes since the last commit: whether an article waits or no longer does.
    changed: BTreeMap<u128, bool>,
    /// Articles that no longer wait as of the last commit, which is on disk when the next one begins.
    leaving: Vec<u128>,
}

/// The place of articles that wait in a job. Register it with the builder: `builder.persist(part)`.
#[derive(Clone, Debug)]
pub struct PendingArticles(pub(super) Pending);

/// Maximum size of the JSON of an article; its text comes from a page of up to 2 MiB.
const MOST: usize = 64 << 20;
const LEVEL: i32 = 1;
const END: &str = "article";

impl Pending {
    /// Opens a folder, which is created if it is missing. In a job, [`Persist`] tells which articles wait; otherwise
    /// all articles in the folder do.
    pub(crate) fn open(folder: PathBuf, is_in_job: bool) -> Result<Self> {
        huntsman_files::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
        Ok(Self(Arc::new(Inner { folder, job: is_in_job.then(Mutex::default) })))
    }

    fn job(&self) -> Option<MutexGuard<'_, InJob>> {
        self.0.job.as_ref().map(|job| job.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stores an article atomically and durably.
    pub(crate) fn keep(&self, article: &Subject) -> Result<()> {
        let name = name(article);
        let path = self.path(name);
        let packed = zstd::bulk::compress(&serde_json::to_vec(article)?, LEVEL)?;
        huntsman_files::write(&path, packed).map_err(|error| failed(&path, error))?;
        if let Some(mut job) = self.job() {
            job.changed.insert(name, true);
        }
        Ok(())
    }

    /// Removes an article that was checked and whose results were taken.
    pub(crate) fn done(&self, article: &Subject) -> Result<()> {
        let name = name(article);
        if let Some(mut job) = self.job() {
            job.changed.insert(name, false);
            return Ok(());
        }
        self.remove(name)
    }

    /// The articles of an earlier run, in no order. A missing or damaged file is an error, because its article would be
    /// lost.
    pub(crate) fn all(&self) -> Result<Vec<Subject>> {
        let mut stored = self.stored()?;
        if let Some(job) = self.job() {
            // Stale files belong to pages that are fetched again, or to articles that were checked.
            let (waiting, stale): (Vec<_>, Vec<_>) =
                stored.into_iter().partition(|name| job.waiting.contains(name));
            stale.into_iter().try_for_each(|name| self.remove(name))?;
            if waiting.len() < job.waiting.len() {
                let missing = job.waiting.len() - waiting.len();
                return Err(Error::msg(format!(
                    "{missing} of {} articles that wait for their check are missing in {}; `huntsman verify` tells more, --fresh starts anew",
                    job.waiting.len(),
                    self.0.folder.display()
                )));
            }
            stored = waiting;
        }
        stored.into_iter().map(|name| self.read(name)).collect()
    }

    fn stored(&self) -> Result<Vec<u128>> {
        let folder = &self.0.folder;
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).map_err(|error| failed(folder, error))? {
            let name = entry?.file_name();
            let name = name.to_str().and_then(|name| name.strip_suffix(END)?.strip_suffix('.'));
            names.extend(name.and_then(|name| u128::from_str_radix(name, 16).ok()));
        }
        Ok(names)
    }

    fn read(&self, name: u128) -> Result<Subject> {
        let path = self.path(name);
        let packed = fs::read(&path).map_err(|error| failed(&path, error))?;
        let json = zstd::bulk::decompress(&packed, MOST).map_err(|error| failed(&path, error))?;
        Ok(serde_json::from_slice(&json)?)
    }

    fn remove(&self, name: u128) -> Result<()> {
        let path = self.path(name);
        match huntsman_files::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(&path, error)),
            _ => Ok(()),
        }
    }

    fn path(&self, name: u128) -> PathBuf {
        self.0.folder.join(format!("{name:032x}.{END}"))
    }
}

impl Persist for PendingArticles {
    fn name(&self) -> String {
        "copyvio/pending".to_owned()
    }

    fn load(&self, _: Option<&[u8]>) -> Result<()> {
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn load_entry(&self, key: &[u8], _: &[u8]) -> Result<()> {
        let name = key.try_into().map(u128::from_be_bytes);
        let name = name.map_err(|_| {
            Error::msg("the job's list of articles that wait for their check is damaged; --fresh starts anew")
        })?;
        if let Some(mut job) = self.0.job() {
            job.waiting.insert(name);
        }
        Ok(())
    }

    fn save_entries(&self) -> Result<Vec<Change>> {
        let Some(mut job) = self.0.job() else { return Ok(Vec::new()) };
        // When a commit begins, the one before is on disk: commits do not overlap, and none follows one that failed.
        std::mem::take(&mut job.leaving).into_iter().try_for_each(|name| self.0.remove(name))?;
        let changed = std::mem::take(&mut job.changed);
        job.leaving.extend(changed.iter().filter(|(_, waits)| !**waits).map(|(name, _)| *name));
        let entry = |(name, waits): (u128, bool)| (name.to_be_bytes().to_vec(), waits.then(Vec::new));
        Ok(changed.into_iter().map(entry).collect())
    }
}

fn name(article: &Subject) -> u128 {
    xxh3_128(article.url.as_deref().unwrap_or(article.text.exact()).as_bytes())
}

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::from(error).context(format!("articles that wait for their check, {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use huntsman_detect::copyvio::Text;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn article(number: usize) -> Subject {
        let mut subject = Subject::new(Text::new(format!("article {number}")));
        subject.url = Some(format!("http://h/{number}"));
        subject
    }

    /// What a job keeps of it.
    type Job = BTreeMap<Vec<u8>, Vec<u8>>;

    fn opened(folder: &Path, job: &Job) -> (Pending, PendingArticles) {
        let pending = Pending::open(folder.to_owned(), true).unwrap();
        let part = PendingArticles(pending.clone());
        part.load(None).unwrap();
        job.iter().for_each(|(key, value)| part.load_entry(key, value).unwrap());
        (pending, part)
    }

    #[test]
    fn after_a_kill_at_any_moment_those_wait_that_waited_at_the_last_commit() {
        let seed: u64 = rand::random();
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let folder = tempfile::tempdir().unwrap();
        let (mut job, mut committed) = (Job::new(), BTreeSet::new());
        let mut next = 0;
        for run in 0..60 {
            let (pending, part) = opened(folder.path(), &job);
            let urls = |all: Vec<Subject>| all.into_iter().filter_map(|one| one.url).collect::<BTreeSet<_>>();
            let mut waiting = urls(pending.all().unwrap());
            assert_eq!(waiting, committed, "run {run}");
            for _ in 0..rng.random_range(0..40) {
                match rng.random_range(0..5) {
                    0 | 1 => {
                        pending.keep(&article(next)).unwrap();
                        waiting.insert(format!("http://h/{next}"));
                        next += 1;
                    }
                    2 | 3 => {
                        let Some(url) = waiting.pop_first() else { continue };
                        let number = url.rsplit('/').next().unwrap().parse().unwrap();
                        pending.done(&article(number)).unwrap();
                    }
                    // A kill may come before the commit is written, or after it.
                    _ => {
                        let changes = part.save_entries().unwrap();
                        if rng.random_range(0..4) == 0 {
                            break;
                        }
                        for (key, value) in changes {
                            match value {
                                Some(value) => drop(job.insert(key, value)),
                                None => drop(job.remove(&key)),
                            }
                        }
                        committed.clone_from(&waiting);
                    }
                }
            }
        }
        assert!(next > 100, "{next}");
    }

    #[test]
    fn an_article_whose_file_is_gone_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let (pending, part) = opened(folder.path(), &Job::new());
        pending.keep(&article(1)).unwrap();
        let job: Job = part.save_entries().unwrap().into_iter().filter_map(|(k, v)| Some((k, v?))).collect();
        fs::remove_file(pending.path(name(&article(1)))).unwrap();
        let error = opened(folder.path(), &job).0.all().unwrap_err().to_string();
        assert!(error.contains("1 of 1 articles") && error.contains("huntsman verify"), "{error}");
    }

    #[test]
    fn without_a_job_all_that_are_there_wait() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Pending::open(folder.path().to_owned(), false).unwrap();
        let pending = open();
        (0..3).for_each(|number| pending.keep(&article(number)).unwrap());
        pending.done(&article(1)).unwrap();
        assert_eq!(open().all().unwrap().len(), 2);
    }
}
