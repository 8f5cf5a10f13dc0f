//! A process of the browser with all that it started: its start, its bounds, and its end.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::connection::{Connection, Failure};
use crate::targets::Targets;
use crate::{Error, Settings, flags, processes, profiles};

/// Runs the browser with the pipes where it looks for them.
const SHELL: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#;
/// Time for a start, which on a busy machine reads much from the disk.
const START: Duration = Duration::from_secs(60);
/// Time in which a browser that was asked to end does so.
const GRACE: Duration = Duration::from_secs(5);
/// How often its memory is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// Pause between looks for processes that were killed.
const PAUSE: Duration = Duration::from_millis(10);
/// Bytes of its messages that an error may have.
const WORDS: usize = 2000;
/// Variables that it needs. Others may be secrets of the crawl.
const VARIABLES: [&str; 6] = ["PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "FONTCONFIG_PATH"];

/// A process of the browser with all that it started.
pub(crate) struct Process {
    pub(crate) connection: Connection,
    pub(crate) targets: Arc<Targets>,
    /// Contexts by the name of their session.
    pub(crate) sessions: tokio::sync::Mutex<HashMap<String, String>>,
    /// Cookies of the contexts of sessions that were told already.
    told: Mutex<HashMap<String, HashSet<(String, String)>>>,
    answers_within: Duration,
    bound: u64,
    group: i32,
    child: tokio::sync::Mutex<Option<Child>>,
    is_ended: AtomicBool,
    /// Whether it failed to answer.
    is_stuck: AtomicBool,
    profile: PathBuf,
    begun: AtomicUsize,
    pages: AtomicUsize,
    left: Notify,
    memory: AtomicU64,
    most_memory: AtomicU64,
    ticks: AtomicU64,
    tasks: Mutex<JoinSet<()>>,
}

impl Process {
    pub(crate) async fn start(
        program: &Path,
        settings: &Settings,
        profile: PathBuf,
        proxy: SocketAddr,
    ) -> Result<Arc<Self>, Error> {
        let failed = |reason: String| Error::Start { program: program.to_owned(), reason };
        let mut command = Command::new("sh");
        command.args(["-c", SHELL]).arg(program).args(flags::flags(settings, &profile, proxy));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env_clear().envs(VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.env("HOME", &profile).env("TMPDIR", &profile).current_dir(&profile);
        let spawned = command.process_group(0).kill_on_drop(true).spawn();
        let mut child = spawned.map_err(|error| failed(error.to_string()))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(failed("it has no pipes".to_owned()));
        };
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .ok_or_else(|| failed("it ended at once".to_owned()))?;
        let targets = Arc::new(Targets::default());
        let events = Arc::clone(&targets);
        let (connection, reading, writing) =
            Connection::new(stdout, stdin, move |event| events.on_event(&event));
        targets.connect(connection.clone());
        let words = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        tasks.spawn(reading);
        tasks.spawn(writing);
        tasks.spawn(listen(stderr, Arc::clone(&words)));
        let process = Arc::new(Self {
            connection,
            targets,
            sessions: tokio::sync::Mutex::default(),
            told: Mutex::default(),
            answers_within: settings.answers_within,
            bound: settings.memory,
            group,
            child: tokio::sync::Mutex::new(Some(child)),
            is_ended: AtomicBool::new(false),
            is_stuck: AtomicBool::new(false),
            profile,
            begun: AtomicUsize::new(0),
            pages: AtomicUsize::new(0),
            left: Notify::new(),
            memory: AtomicU64::new(0),
            most_memory: AtomicU64::new(0),
            ticks: AtomicU64::new(0),
            tasks: Mutex::new(tasks),
        });
        if let Err(reason) = process.greet(settings).await {
            let was_killed = process.was_killed().await;
            process.end().await;
            if was_killed {
                return Err(Error::crashed("it was killed while it started"));
            }
            let words = words.lock().unwrap_or_else(PoisonError::into_inner);
            let words = String::from_utf8_lossy(&words).trim().to_owned();
            if words.contains("No usable sandbox") || words.contains("without --no-sandbox") {
                return Err(Error::Sandbox { reason: words });
            }
            return Err(failed(if words.is_empty() { reason } else { format!("{reason}: {words}") }));
        }
        let watched = Arc::downgrade(&process);
        process.tasks.lock().unwrap_or_else(PoisonError::into_inner).spawn(watch(watched));
        Ok(process)
    }

    /// Waits until it answers, and asks to be told of each target before that runs.
    async fn greet(&self, settings: &Settings) -> Result<(), String> {
        let version = self.connection.call("", "Browser.getVersion", json!({}));
        let attached = self.connection.call("", "Target.setAutoAttach", attach_all(settings));
        let both = async { (version.await, attached.await) };
        match tokio::time::timeout(START, both).await {
            Ok((Ok(version), Ok(_))) => {
                tracing::debug!(
                    version = version["product"].as_str(),
                    process = self.group,
                    "a browser started"
                );
                Ok(())
            }
            Ok((Err(Failure::Refused(reason)), _) | (_, Err(Failure::Refused(reason)))) => Err(reason),
            Ok(_) => Err("it ended".to_owned()),
            Err(_) => Err(format!("no answer within {} s", START.as_secs())),
        }
    }

    /// Whether its pipe has ended because it was killed, by a user or by a system without memory. A browser that cannot run ends in other ways.
    async fn was_killed(&self) -> bool {
        let mut child = self.child.lock().await;
        let (true, Some(child)) = (self.connection.has_ended(), child.as_mut()) else { return false };
        let ended = tokio::time::timeout(GRACE, child.wait()).await;
        ended.is_ok_and(|status| status.is_ok_and(|status| status.signal() == Some(Signal::KILL.as_raw())))
    }

    /// Sends a command that the browser itself carries out, which it does at once. One that does not is stuck.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, Error> {
        match tokio::time::timeout(self.answers_within, self.connection.call("", method, params)).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(Failure::Refused(reason))) => Err(Error::crashed(format!("{method}: {reason}"))),
            Ok(Err(Failure::Ended)) => Err(Error::crashed("its process ended")),
            Err(_) => {
                self.is_stuck.store(true, Ordering::Relaxed);
                processes::kill_group(self.group);
                Err(Error::crashed(format!("{method}: no answer within {} s", self.answers_within.as_secs())))
            }
        }
    }

    /// Takes note of cookies of a session, each with its value; those that no page of it told before.
    pub(crate) fn new_cookies(
        &self,
        context: &str,
        cookies: &HashSet<(String, String)>,
    ) -> HashSet<(String, String)> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let before = told.insert(context.to_owned(), cookies.clone()).unwrap_or_default();
        cookies.difference(&before).cloned().collect()
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.connection.has_ended() || self.is_stuck.load(Ordering::Relaxed)
    }

    /// Whether it has so much memory that it should be given no more pages.
    pub(crate) fn is_full(&self) -> bool {
        self.begun() > 0 && self.memory() > self.bound / 4 * 3
    }

    pub(crate) fn is_unused(&self) -> bool {
        self.pages.load(Ordering::Relaxed) == 0
    }

    /// Returns when it has no page.
    pub(crate) async fn unused(&self) {
        loop {
            let left = self.left.notified();
            if self.is_unused() {
                return;
            }
            left.await;
        }
    }

    /// How many pages it was given.
    pub(crate) fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    /// Memory at the last look, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.memory.load(Ordering::Relaxed)
    }

    pub(crate) fn most_memory(&self) -> u64 {
        self.most_memory.load(Ordering::Relaxed)
    }

    /// Processor time of all processes at the last look.
    pub(crate) fn cpu(&self) -> Duration {
        Duration::from_millis(self.ticks.load(Ordering::Relaxed) * 10)
    }

    /// Ends it and all that it started, waits for that, and removes its profile.
    pub(crate) async fn end(&self) {
        let mut child = self.child.lock().await;
        let Some(mut child) = child.take() else { return };
        self.note(&processes::members(self.group));
        if !self.is_dead() {
            let _asked = self.connection.call("", "Browser.close", json!({}));
            let _late = tokio::time::timeout(GRACE, child.wait()).await;
        }
        processes::kill_group(self.group);
        self.is_ended.store(true, Ordering::Relaxed);
        if let Err(error) = child.wait().await {
            tracing::warn!(%error, "waiting for the browser");
        }
        let until = tokio::time::Instant::now() + GRACE;
        while !processes::members(self.group).is_empty() && tokio::time::Instant::now() < until {
            tokio::time::sleep(PAUSE).await;
        }
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.shutdown().await;
        profiles::remove(&self.profile);
        self.memory.store(0, Ordering::Relaxed);
    }

    /// Takes note of what its processes take; their memory in bytes.
    fn note(&self, members: &[processes::Member]) -> u64 {
        let memory = processes::memory(members);
        self.memory.store(memory, Ordering::Relaxed);
        self.most_memory.fetch_max(memory, Ordering::Relaxed);
        // Of a process that ends while another looks, the time is that of its parent only a little later.
        self.ticks.fetch_max(members.iter().map(|member| member.ticks).sum(), Ordering::Relaxed);
        memory
    }

    /// Looks at its memory, and ends the largest page if there is too much.
    fn look(&self) {
        let members = processes::members(self.group);
        let memory = self.note(&members);
        if memory > self.bound {
            let largest = members.iter().filter(|member| member.has_pages()).max_by_key(|member| member.own);
            tracing::debug!(memory, bound = self.bound, ?largest, "the browser has too much memory");
            if let Some(largest) = largest {
                largest.kill();
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.is_ended.load(Ordering::Relaxed) {
            processes::kill_group(self.group);
        }
    }
}

/// What asks to be told of targets, and that each waits before it runs.
pub(crate) fn auto_attach() -> Value {
    json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true})
}

/// The same for the browser itself, which tells of pages and of all that belongs to none, such as shared workers.
fn attach_all(settings: &Settings) -> Value {
    #[cfg(test)]
    if settings.attaches_pages_only {
        let mut pages_only = auto_attach();
        pages_only["filter"] = json!([{"type": "page"}]);
        return pages_only;
    }
    let _ = settings;
    auto_attach()
}

async fn listen(mut stderr: impl AsyncRead + Unpin, words: Arc<Mutex<Vec<u8>>>) {
    let mut piece = [0; WORDS];
    while let Ok(length @ 1..) = stderr.read(&mut piece).await {
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        words.extend_from_slice(&piece[..length]);
        let too_many = words.len().saturating_sub(WORDS);
        words.drain(..too_many);
    }
}

async fn watch(process: Weak<Process>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(process) = process.upgrade() else { return };
        // Reading `/proc` is quick, but not where others wait.
        if tokio::task::spawn_blocking(move || process.look()).await.is_err() {
            return;
        }
    }
}

/// A place for a page in a process.
pub(crate) struct Lease {
    pub(crate) process: Arc<Process>,
}

impl Lease {
    pub(crate) fn new(process: &Arc<Process>) -> Self {
        process.begun.fetch_add(1, Ordering::Relaxed);
        process.pages.fetch_add(1, Ordering::Relaxed);
        Self { process: Arc::clone(process) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.process.pages.fetch_sub(1, Ordering::Relaxed);
        self.process.left.notify_waiters();
    }
}
