//! The output directory: who may write into it, what state the crawl in it is in, and leaving nothing half-made behind.
//!
//! Looking ([`Plan::of`]) and making ([`Use::create`]) are two steps: everything that can be wrong with a command is
//! found between them, so a command that never crawled leaves no directory.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use huntsman::Backend;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::exit::{Failure, Outcome};
use crate::render::{counted, escape};

/// Records of pages.
pub(crate) const PAGES: &str = "pages.jsonl";
/// Records of requests that ended without a page.
pub(crate) const DROPS: &str = "drops.jsonl";
/// The report of the crawl.
pub(crate) const REPORT: &str = "report.json";
/// What AvoidDup learnt.
pub(crate) const RULES: &str = "rules.json";
/// Settings that take URLs for one, as AvoidDup learnt them.
pub(crate) const CANONICAL: &str = "canonical.toml";
/// The report for people, of `demo`.
pub(crate) const HTML_REPORT: &str = "report.html";
/// What a sweep found: an article with a source a line.
pub(crate) const SWEEP: &str = "sweep.jsonl";
/// The same for people.
pub(crate) const SWEEP_REPORT: &str = "sweep.html";
/// What later runs need to know.
const STATE: &str = "state";
const STATUS: &str = "state/crawl.json";
const LOCK: &str = "state/lock";
/// Queue, seen set, positions of files and all else that a crawl goes on with.
const JOB: &str = "state/job";
/// Pairs of texts for the report of a sweep.
const PAIRS: &str = "state/pairs";
/// Articles of a sweep that wait for their check.
const ARTICLES: &str = "state/articles";
/// Folders that a crawl makes.
const OWN_FOLDERS: [&str; 3] = [JOB, PAIRS, ARTICLES];

/// Files that a crawl makes, and that `--fresh` deletes. Nothing else in the directory is ever touched.
const OWN_FILES: [&str; 10] =
    [PAGES, DROPS, REPORT, HTML_REPORT, RULES, CANONICAL, SWEEP, SWEEP_REPORT, STATUS, LOCK];

/// Version of `state/crawl.json`.
const FORMAT: u32 = 1;

/// How far the crawl of a directory came, in `state/crawl.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Status {
    format: u32,
    /// Version of the program that wrote it.
    version: String,
    pub(crate) state: State,
    /// Where the queue lives.
    store: String,
    /// The first start URL.
    pub(crate) seed_url: String,
    pub(crate) started: String,
    pub(crate) finish_reason: Option<String>,
    pages: u64,
}

/// What a later run may do with the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// The crawl runs, or was killed.
    Running,
    /// It was stopped before its end.
    Interrupted,
    /// It ended by itself or by a limit.
    Finished,
    /// It never delivered a page: the next run starts anew.
    Failed,
}

/// What is to be done with a directory, before anything is done.
#[derive(Debug)]
pub(crate) enum Plan {
    /// To be made or used.
    Use(Use),
    /// The crawl in it is finished; the sentence says so.
    Finished(String),
}

/// A directory that a crawl may use.
#[derive(Debug)]
pub(crate) struct Use {
    path: PathBuf,
    clean: bool,
    /// The crawl in it goes on.
    resumes: bool,
}

/// A directory that belongs to this crawl.
#[derive(Debug)]
pub(crate) struct OutputDir {
    path: PathBuf,
    /// Directories that did not exist before, outermost first.
    made: Vec<PathBuf>,
    resumes: bool,
    status: Status,
    /// Held until the end: a second crawl refuses the directory meanwhile.
    lock: File,
}

/// The directory that a crawl (or what else it is) from this URL gets when none is named.
pub(crate) fn default_dir(seed: &Url, what: &str) -> PathBuf {
    let host = seed.host_str().unwrap_or("site");
    let word = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' };
    let name: String = host.trim_matches(['[', ']', '.']).chars().map(word).take(200).collect();
    PathBuf::from(format!("{name}-{what}"))
}

fn shown(path: &Path) -> String {
    escape(&path.to_string_lossy()).into_owned()
}

impl Plan {
    /// Looks at a directory; changes nothing.
    ///
    /// # Errors
    /// It is no directory, another process crawls into it, it holds something that this run may not overwrite, or a crawl that
    /// another store is needed to go on with.
    pub(crate) fn of(path: &Path, fresh: bool, store: Backend) -> Outcome<Self> {
        match fs::metadata(path) {
            Ok(meta) if !meta.is_dir() => {
                return Err(Failure::usage(format!("--out {}: it is a file; name a directory", shown(path))));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self::Use(Use { path: path.to_owned(), clean: false, resumes: false }));
            }
            Err(error) => return Err(Failure::usage(format!("--out {}: {error}", shown(path)))),
        }
        if is_locked(path) {
            return Err(in_use(path));
        }
        let clean = |clean| Ok(Self::Use(Use { path: path.to_owned(), clean, resumes: false }));
        if fresh {
            return clean(true);
        }
        let status = match fs::read(path.join(STATUS)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match OWN_FILES.iter().find(|name| path.join(name).exists()) {
                    None => clean(false),
                    Some(name) => Err(Failure::usage(format!(
                        "{} holds a {name} without the state of its crawl; \
                         name another directory with --out, or overwrite it with --fresh",
                        shown(path)
                    ))),
                };
            }
            Err(error) => {
                return Err(Failure::crawl(format!("reading {}: {error}", shown(&path.join(STATUS)))));
            }
        };
        let status: Status = serde_json::from_slice(&status).map_err(|error| {
            Failure::crawl(format!(
                "the state in {} is damaged ({error}); --fresh deletes it and starts anew",
                shown(&path.join(STATUS))
            ))
        })?;
        match status.state {
            State::Finished => Ok(Self::Finished(format!(
                "{} holds a finished crawl of {}: {}, ended as {}. Nothing to do; --fresh crawls anew.",
                shown(path),
                escape(&status.seed_url),
                counted(status.pages, "page"),
                escape(status.finish_reason.as_deref().unwrap_or("finished"))
            ))),
            State::Failed => clean(true),
            State::Running | State::Interrupted
                if status.store != Backend::Memory.name() && status.store != store.name() =>
            {
                Err(Failure::usage(format!(
                    "{} holds an unfinished crawl with --store {}; go on with that, or start anew with --fresh",
                    shown(path),
                    escape(&status.store)
                )))
            }
            State::Running | State::Interrupted if status.store != Backend::Memory.name() => {
                Ok(Self::Use(Use { path: path.to_owned(), clean: false, resumes: true }))
            }
            State::Running | State::Interrupted => Err(Failure::usage(format!(
                "{} holds an unfinished crawl whose queue was in memory and is gone, so it cannot go on; \
                 --fresh deletes its files and starts anew",
                shown(path)
            ))),
        }
    }
}

impl Use {
    /// Makes the directory and takes it.
    ///
    /// # Errors
    /// It cannot be written. What was made is taken away again.
    pub(crate) fn create(self, seed: &Url, started: String, store: Backend) -> Outcome<OutputDir> {
        let state = self.path.join(STATE);
        let made: Vec<PathBuf> = {
            let missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
            let mut made: Vec<_> = state.ancestors().take_while(missing).map(Path::to_owned).collect();
            made.reverse();
            made
        };
        let writing = |error: io::Error| {
            remove_made(&made);
            Failure::usage(format!("--out {}: cannot be written: {error}", shown(&self.path)))
        };
        fs::create_dir_all(&state).map_err(writing)?;
        let lock =
            OpenOptions::new().create(true).append(true).open(self.path.join(LOCK)).map_err(writing)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(&self.path)),
            // A file system without locks: two crawls in one directory are then up to the user.
            Err(TryLockError::Error(_)) => {}
        }
        if self.clean {
            for name in OWN_FILES.iter().filter(|name| **name != LOCK) {
                match fs::remove_file(self.path.join(name)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(writing(error)),
                    _ => {}
                }
            }
            for name in OWN_FOLDERS {
                match fs::remove_dir_all(self.path.join(name)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(writing(error)),
                    _ => {}
                }
            }
        }
        let status = Status {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            state: State::Running,
            store: store.name().to_owned(),
            seed_url: seed.to_string(),
            started,
            finish_reason: None,
            pages: 0,
        };
        let (path, resumes) = (self.path.clone(), self.resumes);
        let dir = OutputDir { path, made: made.clone(), resumes, status, lock };
        match dir.write_status() {
            Ok(()) => Ok(dir),
            Err(error) => {
                dir.discard();
                Err(Failure::usage(format!("--out {}: cannot be written: {error}", shown(&self.path))))
            }
        }
    }
}

impl OutputDir {
    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes the report, and how the crawl ended.
    ///
    /// # Errors
    /// The disk is full or gone.
    pub(crate) fn finish(&mut self, state: State, reason: &str, pages: u64, report: &[u8]) -> io::Result<()> {
        write_atomically(&self.file(REPORT), report)?;
        self.status.state = state;
        self.status.finish_reason = Some(reason.to_owned());
        self.status.pages = pages;
        self.write_status()
    }

    /// Writes a further file.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        write_atomically(&self.file(name), content)
    }

    /// Where the queue and the rest of the state live.
    pub(crate) fn job(&self) -> PathBuf {
        self.path.join(JOB)
    }

    /// Where pairs of texts are kept for the report of a sweep.
    pub(crate) fn pairs(&self) -> PathBuf {
        self.path.join(PAIRS)
    }

    /// Where articles of a sweep wait for their check.
    pub(crate) fn articles(&self) -> PathBuf {
        self.path.join(ARTICLES)
    }

    /// Whether the crawl in it goes on.
    pub(crate) fn resumes(&self) -> bool {
        self.resumes
    }

    /// Takes the directory away again: the crawl did not start. One that was to go on stays as it was.
    pub(crate) fn discard(mut self) {
        if self.resumes {
            self.status.state = State::Interrupted;
            let _ = self.write_status();
            return;
        }
        for name in OWN_FOLDERS {
            let _ = fs::remove_dir_all(self.path.join(name));
        }
        for name in OWN_FILES {
            let _ = fs::remove_file(self.path.join(name));
        }
        remove_made(&self.made);
        drop(self.lock);
    }

    fn write_status(&self) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(&self.status)?;
        text.push(b'\n');
        write_atomically(&self.path.join(STATUS), &text)
    }
}

/// The state of a crawl on disk, found from any of the directories that have it.
#[derive(Debug)]
pub(crate) struct Found {
    /// The directory with the records, if it is known.
    pub(crate) out: Option<PathBuf>,
    /// Queue, seen set and the rest.
    pub(crate) job: PathBuf,
}

impl Found {
    /// In a directory that was given to `--out`, in the `state` in it, or in a job of a program.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn of(dir: &Path) -> Outcome<Self> {
        const FORMAT_FILE: &str = "format.json";
        let is_job = |path: &Path| path.join(FORMAT_FILE).is_file();
        if is_job(&dir.join(JOB)) {
            return Ok(Self { out: Some(dir.to_owned()), job: dir.join(JOB) });
        }
        let in_state = dir.join("job");
        let job = match () {
            () if is_job(&in_state) => in_state,
            () if is_job(dir) => dir.to_owned(),
            () => return Err(Self::missing(dir)),
        };
        // The directory above may be known by what it has only: `.` and links have no parent in their names.
        let out = job.canonicalize().ok().and_then(|job| Some(job.parent()?.parent()?.to_owned()));
        Ok(Self { out: out.filter(|out| is_job(&out.join(JOB)) && out.join(STATUS).is_file()), job })
    }

    fn missing(dir: &Path) -> Failure {
        let status = fs::read(dir.join(STATUS)).or_else(|_| fs::read(dir.join("crawl.json")));
        let status = status.ok().and_then(|bytes| serde_json::from_slice::<Status>(&bytes).ok());
        match status {
            Some(status) if status.store == Backend::Memory.name() => Failure::usage(format!(
                "{}: its crawl had the queue in memory, so nothing of it is left; --store redb keeps it",
                shown(dir)
            )),
            _ => Failure::usage(format!(
                "{}: there is no state of a crawl; name a directory that was given to --out, or the state in it",
                shown(dir)
            )),
        }
    }

    /// How far the crawl came by its own words; nothing for a job of a program.
    ///
    /// # Errors
    /// The file is damaged.
    pub(crate) fn status(&self) -> Outcome<Option<Status>> {
        let Some(out) = &self.out else { return Ok(None) };
        let path = out.join(STATUS);
        let damaged =
            |error: &dyn std::fmt::Display| Failure::crawl(format!("reading {}: {error}", shown(&path)));
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| damaged(&error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(damaged(&error)),
        }
    }
}

/// An output directory in which nobody crawls until this is dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    _lock: File,
}

impl Hold {
    /// Takes a directory.
    ///
    /// # Errors
    /// A crawl has it, or it cannot be written.
    pub(crate) fn of(out: &Path) -> Outcome<Self> {
        let lock = OpenOptions::new().create(true).append(true).open(out.join(LOCK))?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => Err(Failure::crawl(format!(
                "another huntsman crawls into {}; wait until it ends",
                shown(out)
            ))),
            // As for crawls: a file system without locks.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Self { _lock: lock }),
        }
    }
}

/// Innermost first; a directory that is not empty stays.
fn remove_made(made: &[PathBuf]) {
    for path in made.iter().rev() {
        let _ = fs::remove_dir(path);
    }
}

fn is_locked(path: &Path) -> bool {
    let open = File::open(path.join(LOCK));
    open.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn in_use(path: &Path) -> Failure {
    Failure::crawl(format!(
        "another huntsman crawls into {}; wait for it, or name another directory with --out",
        shown(path)
    ))
}

/// The file is either as it was or complete: written beside it, made durable, then renamed.
pub(crate) fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    let beside = PathBuf::from(name);
    let write = || {
        let mut file = File::create(&beside)?;
        file.write_all(content)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&beside, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&beside)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed() -> Url {
        Url::parse("https://example.org/a").unwrap()
    }

    fn create(path: &Path, fresh: bool) -> Outcome<OutputDir> {
        match Plan::of(path, fresh, Backend::Memory)? {
            Plan::Use(plan) => plan.create(&seed(), "2026-11-21T00:00:00Z".into(), Backend::Memory),
            Plan::Finished(sentence) => panic!("{sentence}"),
        }
    }

    #[test]
    fn names_from_hosts_stay_in_the_working_directory() {
        let name = |url: &str| {
            default_dir(&Url::parse(url).unwrap(), "crawl").into_os_string().into_string().unwrap()
        };
        assert_eq!(name("https://Example.org:8443/x"), "example.org-crawl");
        assert_eq!(name("http://[::1]:80/"), "__1-crawl");
        assert_eq!(name("http://..../"), "-crawl");
        assert!(name(&format!("http://{}/", "a.".repeat(120))).len() <= 206);
    }

    #[test]
    fn looking_makes_nothing_and_discarding_leaves_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a/b");
        Plan::of(&path, false, Backend::Memory).unwrap();
        assert!(!temp.path().join("a").exists());
        let dir = create(&path, false).unwrap();
        fs::write(dir.file(PAGES), "").unwrap();
        dir.discard();
        assert!(!temp.path().join("a").exists());
    }

    #[test]
    fn discarding_keeps_what_was_there_before() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("notes.txt"), "mine").unwrap();
        create(temp.path(), false).unwrap().discard();
        assert!(temp.path().join("notes.txt").exists() && !temp.path().join(STATE).exists());
    }

    #[test]
    fn a_finished_crawl_says_so_and_fresh_starts_anew() {
        let temp = tempfile::tempdir().unwrap();
        let mut dir = create(temp.path(), false).unwrap();
        fs::write(dir.file(PAGES), "{}\n").unwrap();
        fs::write(dir.file("notes.txt"), "mine").unwrap();
        dir.finish(State::Finished, "finished", 1, b"{}\n").unwrap();
        drop(dir);
        let Plan::Finished(sentence) = Plan::of(temp.path(), false, Backend::Memory).unwrap() else {
            panic!()
        };
        assert!(sentence.contains("1 page,") && sentence.contains("--fresh"), "{sentence}");
        let dir = create(temp.path(), true).unwrap();
        assert!(!dir.file(PAGES).exists() && !dir.file(REPORT).exists() && dir.file("notes.txt").exists());
    }

    #[test]
    fn an_interrupted_crawl_in_memory_cannot_go_on() {
        let temp = tempfile::tempdir().unwrap();
        drop(create(temp.path(), false).unwrap());
        let failure = Plan::of(temp.path(), false, Backend::Memory).unwrap_err();
        assert!(failure.message.contains("--fresh"), "{}", failure.message);
        assert!(matches!(Plan::of(temp.path(), true, Backend::Memory), Ok(Plan::Use(_))));
    }

    #[test]
    fn a_crawl_that_failed_starts_anew_without_being_asked() {
        let temp = tempfile::tempdir().unwrap();
        create(temp.path(), false).unwrap().finish(State::Failed, "finished", 0, b"{}\n").unwrap();
        assert!(!create(temp.path(), false).unwrap().file(REPORT).exists());
    }

    #[test]
    fn a_second_crawl_refuses_the_directory() {
        let temp = tempfile::tempdir().unwrap();
        let _first = create(temp.path(), false).unwrap();
        for fresh in [false, true] {
            let failure = Plan::of(temp.path(), fresh, Backend::Memory).unwrap_err();
            assert!(failure.message.contains("another huntsman"), "{}", failure.message);
        }
    }

    #[test]
    fn files_of_unknown_origin_are_not_overwritten() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join(PAGES), "precious").unwrap();
        assert!(Plan::of(temp.path(), false, Backend::Memory).unwrap_err().message.contains(PAGES));
    }

    #[test]
    fn damaged_state_is_named_and_never_started_over_silently() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join(STATE)).unwrap();
        fs::write(temp.path().join(STATUS), "{\"format\":").unwrap();
        let failure = Plan::of(temp.path(), false, Backend::Memory).unwrap_err();
        assert!(
            failure.message.contains("damaged") && failure.message.contains("--fresh"),
            "{}",
            failure.message
        );
    }

    #[test]
    fn a_file_in_place_of_a_directory_is_refused() {
        let temp = tempfile::NamedTempFile::new().unwrap();
        assert!(Plan::of(temp.path(), true, Backend::Memory).unwrap_err().message.contains("it is a file"));
        let below = Plan::of(&temp.path().join("x"), false, Backend::Memory)
            .and_then(|_| create(&temp.path().join("x"), false));
        assert!(below.is_err());
    }
}
