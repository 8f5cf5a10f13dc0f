//! Documents with their fingerprints, some at a time, in the order of the input.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use huntsman::detect::near::Language;
use huntsman::detect::simhash::Features;

use super::input::{self, Source};
use super::manifest::Manifest;
use super::metrics::Telemetry;
use super::record::{Bad, Body, Raw, Reader, Story};
use crate::exit::{Failure, Outcome};

/// Documents of a batch. More per call to a server cost little, and a batch is what a kill can make to be done again.
const DOCUMENTS: usize = 1_024;
/// Bytes of a batch, unless a single document is longer.
const BYTES: usize = 1 << 20;
/// How often it is looked whether the run is to end while nothing comes.
const TICK: Duration = Duration::from_millis(100);

/// Whether the run is to end early.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What documents are read, and how they are fingerprinted.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) sources: Vec<Source>,
    pub(crate) max_document: u64,
    pub(crate) features: Features,
    pub(crate) lang: Option<(Language, Box<str>)>,
    pub(crate) manifest: Option<Arc<Manifest>>,
    pub(crate) workers: usize,
}

/// Some documents.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) stories: Vec<Story>,
    pub(crate) bad: Vec<Bad>,
    /// Sources that could not be read to their end.
    pub(crate) broken: Vec<String>,
}

/// What a worker gets: documents, what reading them took, and where they go.
struct Job {
    raws: Vec<Raw>,
    broken: Vec<String>,
    fetch: Duration,
    out: SyncSender<Batch>,
}

/// The batches of a run. They are read ahead, but only so many as there are workers, twice.
#[derive(Debug)]
pub(crate) struct Batches {
    queue: Receiver<Receiver<Batch>>,
    stop: Stop,
}

impl Batches {
    /// Starts to read.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(settings: Settings, telemetry: &Arc<Telemetry>, stop: &Stop) -> Outcome<Self> {
        let (jobs, taken) = sync_channel::<Job>(settings.workers);
        let (order, queue) = sync_channel(2 * settings.workers);
        let taken = Arc::new(Mutex::new(taken));
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let started = thread::Builder::new().name(name.to_owned()).spawn(work);
            started.map_err(|error| Failure::crawl(format!("starting a thread: {error}")))
        };
        for _ in 0..settings.workers {
            let (taken, telemetry) = (Arc::clone(&taken), Arc::clone(telemetry));
            let mut reader = Reader::new(settings.features, settings.lang.clone(), settings.manifest.clone());
            let work = move || {
                loop {
                    let job = taken.lock().expect("no thread panics with it").recv();
                    let Ok(job) = job else { return };
                    // Nobody waits for it if the run failed meanwhile.
                    let _ = job.out.send(worked(&mut reader, job.raws, job.broken, job.fetch, &telemetry));
                }
            };
            spawn("fingerprints", Box::new(work))?;
        }
        let (stop_of, list) = (stop.clone(), settings.manifest);
        let producer = Producer { jobs, order, stop: stop_of, list, max_document: settings.max_document };
        let sources = settings.sources;
        spawn("input", Box::new(move || producer.run(&sources)))?;
        Ok(Self { queue, stop: stop.clone() })
    }

    /// The next batch; none at the end.
    ///
    /// # Errors
    /// A worker ended before its work was done.
    pub(crate) fn next(&mut self) -> Outcome<Option<Batch>> {
        let batch = loop {
            match self.queue.recv_timeout(TICK) {
                Ok(batch) => break batch,
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                // Who reads may wait for stdin for ever.
                Err(RecvTimeoutError::Timeout) if self.stop.get() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        let lost = |_| Failure::crawl("a thread that fingerprints ended in a panic; please report it");
        batch.recv().map(Some).map_err(lost)
    }
}

fn worked(
    reader: &mut Reader,
    raws: Vec<Raw>,
    broken: Vec<String>,
    fetch: Duration,
    telemetry: &Telemetry,
) -> Batch {
    let each = fetch / u32::try_from(raws.len()).unwrap_or(u32::MAX).max(1);
    let mut batch = Batch { broken, ..Batch::default() };
    for raw in raws {
        match reader.read(raw) {
            Ok(Some(story)) => batch.stories.push(story),
            Ok(None) => {}
            Err(bad) => batch.bad.push(bad),
        }
    }
    telemetry.fingerprinted(&batch.stories, each);
    batch
}

struct Producer {
    jobs: SyncSender<Job>,
    order: SyncSender<Receiver<Batch>>,
    stop: Stop,
    list: Option<Arc<Manifest>>,
    max_document: u64,
}

impl Producer {
    fn run(self, sources: &[Source]) {
        let (mut raws, mut bytes, mut since) = (Vec::new(), 0, Instant::now());
        for source in sources {
            let flow = input::read(source, self.list.as_ref(), self.max_document, &mut |read| {
                let mut broken = Vec::new();
                match read {
                    Ok(raw) => {
                        bytes += match &raw.body {
                            Body::Line(body) | Body::File { bytes: body, .. } => body.len(),
                            Body::Unreadable(_) => 0,
                        };
                        raws.push(raw);
                    }
                    // At once: what comes after it may take hours.
                    Err(failure) => broken.push(failure),
                }
                if broken.is_empty() && raws.len() < DOCUMENTS && bytes < BYTES {
                    return ControlFlow::Continue(());
                }
                bytes = 0;
                let sent = self.send(std::mem::take(&mut raws), broken, since.elapsed());
                since = Instant::now();
                sent
            });
            if flow.is_break() {
                return;
            }
        }
        if !raws.is_empty() {
            let _ = self.send(raws, Vec::new(), since.elapsed());
        }
    }

    fn send(&self, raws: Vec<Raw>, broken: Vec<String>, fetch: Duration) -> ControlFlow<()> {
        if self.stop.get() {
            return ControlFlow::Break(());
        }
        let (out, batch) = sync_channel(1);
        // First its place in the order, then the work: so many are read ahead as the order has room for.
        let sent = self.order.send(batch).is_ok() && self.jobs.send(Job { raws, broken, fetch, out }).is_ok();
        if sent { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
