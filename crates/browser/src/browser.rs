//! A browser: processes that are started when they are needed, and replaced.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Semaphore};

use crate::page;
use crate::process::{Lease, Process};
use crate::profiles::{self, Profiles};
use crate::proxy::Proxy;
use crate::{Error, Network, Rendered, Rendering, Settings, executable};

/// A browser without a network. It is cheap to clone; a process is started at the first page.
///
/// Call [`Browser::close`] at the end: it waits until all processes are gone. One that is dropped kills them.
#[derive(Clone)]
pub struct Browser {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    program: PathBuf,
    permits: Semaphore,
    running: Mutex<Running>,
    is_closed: AtomicBool,
    counts: Counts,
}

/// What exists while a browser runs.
#[derive(Default)]
struct Running {
    /// The process that gets the next page.
    current: Option<Arc<Process>>,
    /// Processes that get no more pages.
    retired: Vec<Arc<Process>>,
    proxy: Option<Proxy>,
    profiles: Option<Profiles>,
}

#[derive(Default)]
struct Counts {
    pages: AtomicU64,
    crashes: AtomicU64,
    starts: AtomicU64,
    refused_direct: AtomicU64,
    refused_connections: AtomicU64,
    most_memory: AtomicU64,
    /// Processor time of processes that have ended, in milliseconds.
    cpu: AtomicU64,
}

/// What a browser did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Pages that were begun.
    pub pages: u64,
    /// Pages that ended because the browser, or their process, crashed or was killed.
    pub crashes: u64,
    /// Processes that were started after the first.
    pub restarts: u64,
    /// Connections past HTTP that pages wanted.
    pub refused_direct: u64,
    /// Connections that no interception saw, and that the proxy refused. Those of [`Stats::refused_direct`] are among them.
    pub refused_connections: u64,
    /// Memory of all processes now, in bytes.
    pub memory: u64,
    /// The most memory that a process with its pages had, in bytes.
    pub most_memory: u64,
    /// Processor time of all processes.
    pub cpu: Duration,
}

impl Browser {
    /// Finds the program, and removes what browsers of programs that are gone left behind. No process is started.
    ///
    /// # Errors
    /// There is no browser, or it cannot have its sandbox here.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let program = executable::find(&settings)?;
        profiles::remove_left(settings.folder.as_deref());
        let permits = Semaphore::new(settings.pages.clamp(1, Semaphore::MAX_PERMITS));
        let (running, is_closed, counts) = (Mutex::default(), AtomicBool::new(false), Counts::default());
        Ok(Self { inner: Arc::new(Inner { settings, program, permits, running, is_closed, counts }) })
    }

    /// Renders a page. All that it asks for comes from `network`.
    ///
    /// It waits for its turn if as many pages as the settings allow are open. If it is dropped, the page is closed.
    ///
    /// # Errors
    /// The page has no document, a step failed, or the browser crashed.
    pub async fn render(
        &self,
        url: &str,
        rendering: &Rendering,
        network: Arc<dyn Network>,
    ) -> Result<Rendered, Error> {
        let inner = &self.inner;
        let is_web = url.starts_with("http://") || url.starts_with("https://");
        if !is_web {
            return Err(Error::Invalid { reason: format!("only pages of the web are rendered, not {url}") });
        }
        let _permit = inner.permits.acquire().await.map_err(|_closed| Error::Closed)?;
        let count_crash = |error: &Error| {
            if error.is_crash() {
                inner.counts.crashes.fetch_add(1, Ordering::Relaxed);
            }
        };
        let lease = inner.lease().await.inspect_err(count_crash)?;
        inner.counts.pages.fetch_add(1, Ordering::Relaxed);
        let rendered = page::render(&lease, &inner.settings, url, rendering, network).await;
        match &rendered {
            Ok(rendered) => {
                inner.counts.refused_direct.fetch_add(rendered.refused_direct.into(), Ordering::Relaxed);
            }
            Err(error) => count_crash(error),
        }
        drop(lease);
        inner.end_retired().await;
        rendered
    }

    /// Ends all processes, waits for them, and removes their folders. Pages that are open end with an error.
    pub async fn close(&self) {
        let inner = &self.inner;
        inner.is_closed.store(true, Ordering::Relaxed);
        inner.permits.close();
        let mut running = inner.running.lock().await;
        let retired = std::mem::take(&mut running.retired);
        for process in running.current.take().into_iter().chain(retired) {
            inner.end(&process).await;
        }
        inner.note_proxy(&running);
        running.proxy = None;
        running.profiles = None;
        // A browser whose program was killed just before this one began has ended by now.
        profiles::remove_left(inner.settings.folder.as_deref());
    }

    /// What it did so far.
    pub async fn stats(&self) -> Stats {
        let inner = &self.inner;
        let running = inner.running.lock().await;
        inner.note_proxy(&running);
        let processes = running.current.iter().chain(&running.retired);
        let cpu: Duration = processes.clone().map(|process| process.cpu()).sum();
        let memory = processes
            .map(|process| {
                inner.counts.most_memory.fetch_max(process.most_memory(), Ordering::Relaxed);
                process.memory()
            })
            .sum();
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Stats {
            pages: count(&inner.counts.pages),
            crashes: count(&inner.counts.crashes),
            restarts: count(&inner.counts.starts).saturating_sub(1),
            refused_direct: count(&inner.counts.refused_direct),
            refused_connections: count(&inner.counts.refused_connections),
            memory,
            most_memory: count(&inner.counts.most_memory),
            cpu: cpu + Duration::from_millis(count(&inner.counts.cpu)),
        }
    }
}

impl Inner {
    /// A place for a page in a process that works; one is started if there is none.
    async fn lease(&self) -> Result<Lease, Error> {
        loop {
            let mut running = self.running.lock().await;
            if self.is_closed.load(Ordering::Relaxed) {
                return Err(Error::Closed);
            }
            let Some(process) = running.current.take() else {
                running.current = Some(self.start(&mut running).await?);
                continue;
            };
            if process.is_dead() {
                self.end(&process).await;
            } else if process.is_full() {
                let used = Arc::clone(&process);
                running.retired.push(process);
                drop(running);
                // Two browsers at once would have twice the memory.
                used.unused().await;
                self.end_retired().await;
            } else if process.begun() >= self.settings.pages_per_browser.max(1) {
                running.retired.push(process);
            } else {
                let lease = Lease::new(&process);
                running.current = Some(process);
                return Ok(lease);
            }
        }
    }

    async fn start(&self, running: &mut Running) -> Result<Arc<Process>, Error> {
        if running.proxy.is_none() {
            running.proxy = Some(Proxy::open().await?);
        }
        if running.profiles.is_none() {
            running.profiles = Some(Profiles::make(self.settings.folder.as_deref())?);
        }
        let (Some(proxy), Some(profiles)) = (&running.proxy, &running.profiles) else {
            return Err(Error::Closed);
        };
        self.counts.starts.fetch_add(1, Ordering::Relaxed);
        Process::start(&self.program, &self.settings, profiles.next()?, proxy.address).await
    }

    /// Ends retired processes without pages.
    async fn end_retired(&self) {
        let mut running = self.running.lock().await;
        let (unused, used) =
            std::mem::take(&mut running.retired).into_iter().partition(|p| p.is_unused() || p.is_dead());
        running.retired = used;
        drop(running);
        let unused: Vec<Arc<Process>> = unused;
        for process in unused {
            self.end(&process).await;
        }
    }

    async fn end(&self, process: &Process) {
        process.end().await;
        self.counts.most_memory.fetch_max(process.most_memory(), Ordering::Relaxed);
        let cpu = u64::try_from(process.cpu().as_millis()).unwrap_or(u64::MAX);
        self.counts.cpu.fetch_add(cpu, Ordering::Relaxed);
    }

    fn note_proxy(&self, running: &Running) {
        if let Some(proxy) = &running.proxy {
            self.counts.refused_connections.store(proxy.refused(), Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Browser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Browser").field("program", &self.inner.program).finish_non_exhaustive()
    }
}
