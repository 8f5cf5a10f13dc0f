//! The output of a simulated crawl: items and records, in files whose positions are stored in its job.

use std::fmt;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use huntsman_crawler::{
    ConcurrentPipeline, Context, Error, Event, FetchErrorKind, Observer, OnItem, Persist, Pipeline, Request,
    Result,
};

use super::disk::Mounted;
use super::environment::Environment;
use super::seeded_random::{SeededRandom, hash};

pub(super) const ITEMS: &str = "items";
pub(super) const RECORDS: &str = "records";

/// A file of lines whose position is stored in the job.
#[derive(Clone)]
pub(super) struct Lines {
    name: &'static str,
    disk: Mounted,
    written: Arc<AtomicUsize>,
    syncs: bool,
    failure: Arc<Mutex<Option<String>>>,
}

impl Lines {
    pub(super) fn new(name: &'static str, disk: Mounted, syncs: bool) -> Self {
        Self { name, disk, written: Arc::default(), syncs, failure: Arc::default() }
    }

    fn append(&self, lines: Vec<String>) -> Result<()> {
        let appended = self.disk.append(self.name, lines).and_then(|()| self.disk.length(self.name));
        match appended {
            Ok(length) => {
                self.written.store(length, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
                Err(error.into())
            }
        }
    }

    /// The key of the position in the store.
    pub(super) fn key(name: &str) -> Vec<u8> {
        format!("p/lines {name}").into_bytes()
    }

    pub(super) fn position(state: Option<&[u8]>) -> usize {
        state.and_then(|state| std::str::from_utf8(state).ok()?.parse().ok()).unwrap_or(0)
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Persist for Lines {
    fn name(&self) -> String {
        format!("lines {}", self.name)
    }

    fn load(&self, state: Option<&[u8]>) -> Result<()> {
        let position = Self::position(state);
        if !self.disk.truncate(self.name, position)? {
            return Err(Error::msg(format!("{} is shorter than the job says", self.name)));
        }
        self.written.store(position, Ordering::Relaxed);
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        if let Some(failure) = &*self.failure.lock().unwrap_or_else(PoisonError::into_inner) {
            return Err(Error::msg(failure.clone()));
        }
        if self.syncs {
            self.disk.sync(self.name)?;
        }
        Ok(Some(self.written.load(Ordering::Relaxed).to_string().into_bytes()))
    }
}

/// What happens to an item; it is the same in every life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Kept,
    Dropped,
    Error,
    Panic,
    /// The item is kept after the first pipeline has downloaded something.
    Download,
}

impl Fate {
    pub(super) fn is_kept(self) -> bool {
        matches!(self, Self::Kept | Self::Download)
    }

    pub(super) fn of(item: &str) -> Self {
        match hash(7, item.as_bytes()) % 23 {
            0 => Self::Dropped,
            1 => Self::Error,
            2 => Self::Panic,
            3 | 4 => Self::Download,
            _ => Self::Kept,
        }
    }
}

/// The first pipeline, which has many items at once: it waits for each as long as the item wants, and downloads what it names.
pub(super) struct Waiting {
    pub(super) slowness: u64,
}

impl ConcurrentPipeline<String> for Waiting {
    async fn process_item(&self, item: String, cx: &Context) -> Result<OnItem<String>> {
        let wait = hash(11, item.as_bytes()) % (4 * self.slowness + 1);
        if wait > 0 {
            tokio::time::sleep(Duration::from_millis(wait)).await;
        }
        if Fate::of(&item) == Fate::Download
            && let Ok(request) = Request::parse(item.split('!').next().unwrap_or_default())
            && let Err(error) = cx.download(request).await
            && error.kind() == FetchErrorKind::Cancelled
        {
            // The item is processed in the next life. Any other result does not matter.
            return Err(error.into());
        }
        Ok(OnItem::Keep(item))
    }
}

/// The last pipeline, which writes items.
pub(super) struct ItemSink {
    lines: Lines,
    waiting: Vec<String>,
    dice: SeededRandom,
    slowness: u64,
}

impl ItemSink {
    pub(super) fn new(lines: Lines, dice: SeededRandom, slowness: u64) -> Self {
        Self { lines, waiting: Vec::new(), dice, slowness }
    }

    async fn pass(&mut self) {
        let time = self.dice.millis(self.slowness);
        if time > Duration::ZERO {
            tokio::time::sleep(time).await;
        }
    }
}

impl Pipeline<String> for ItemSink {
    async fn process_item(&mut self, item: String, _: &Context) -> Result<OnItem<String>> {
        match Fate::of(&item) {
            Fate::Kept | Fate::Download => {}
            Fate::Dropped => return Ok(OnItem::Drop("fate".into())),
            Fate::Error => return Err(Error::msg("as the item wants it")),
            Fate::Panic => resume_unwind(Box::new("as the item wants it")),
        }
        self.pass().await;
        self.waiting.push(item.clone());
        Ok(OnItem::Keep(item))
    }

    async fn flush(&mut self) -> Result<()> {
        self.pass().await;
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() { Ok(()) } else { self.lines.append(waiting) }
    }

    async fn close(&mut self) -> Result<()> {
        self.flush().await
    }
}

/// Writes a record of every request that ended, and reports every event to the world.
pub(super) struct Watcher {
    pub(super) lines: Lines,
    pub(super) environment: Environment,
}

impl Watcher {
    fn record(&self, line: String) {
        // An error cannot be returned to the engine here; the next commit fails instead.
        let _ = self.lines.append(vec![line]);
    }
}

impl Observer for Watcher {
    fn event(&self, event: &Event<'_>) {
        let told = match event {
            Event::PageDelivered { request, items, .. } => {
                format!("delivered {} {} {items}", request.requested_url(), request.url)
            }
            Event::RequestDropped(dropped) => format!("dropped {} {}", dropped.url, dropped.reason),
            Event::RequestRefused(dropped) => {
                self.environment.refused(dropped.url.clone());
                format!("refused {} {}", dropped.url, dropped.reason)
            }
            Event::RequestScheduled { request } => format!("scheduled {}", request.url),
            Event::RequestLeftDownloader { request, error } => {
                format!("left {} {:?}", request.url, error.map(huntsman_crawler::FetchError::kind))
            }
            Event::ResponseReceived { request, response } => {
                format!("received {} {}", request.url, response.status)
            }
            Event::SpiderOpened { resumed } => format!("opened {resumed}"),
            Event::SpiderClosed { reason } => format!("closed {reason}"),
            Event::ItemError { .. } => "item error".to_owned(),
            Event::ItemScraped => "item".to_owned(),
            Event::SpiderIdle => "idle".to_owned(),
            _ => return,
        };
        if matches!(event, Event::PageDelivered { .. } | Event::RequestDropped(_)) {
            self.record(told.clone());
        }
        self.environment.step(|| told);
    }
}
