//! Documents with their fingerprints, some at a time, in the order of the input.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use huntsman_detect::near::Language;
use huntsman_detect::simhash::Features;

use crate::error::Error;
use crate::input::{Broken, Source};
use crate::manifest::Manifest;
use crate::metrics::Telemetry;
use crate::record::{Bad, Body, Raw, Reader, Story};

/// Documents of a batch. More per call to a server cost little, and a batch is what a kill can make to be done again.
const DOCUMENTS: usize = 1_024;
/// Bytes of a batch, unless a single document is longer.
const BYTES: usize = 1 << 20;
/// How often it is looked whether the run is to end while nothing comes.
const TICK: Duration = Duration::from_millis(100);

/// Whether the run is to end early.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Lets the run end: what was read is finished.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is to end.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What documents are read, and how they are fingerprinted.
#[derive(Debug)]
pub struct Settings {
    /// Where they come from, one after the other.
    pub sources: Vec<Source>,
    /// Longest document in bytes, be it a line or a file (default 32 MiB); a longer one is a [`Bad`] one.
    pub max_document: u64,
    /// What texts are seen as.
    pub features: Features,
    /// The language of documents that name none, and how it is spelt (default: it is recognised from the text).
    pub lang: Option<(Language, Box<str>)>,
    /// Only these documents are read (default: all).
    pub manifest: Option<Arc<Manifest>>,
    /// Threads that fingerprint (default: as many as processors).
    pub workers: usize,
    /// What counts what is read.
    pub telemetry: Arc<Telemetry>,
    /// What ends the run early.
    pub stop: Stop,
}

impl Settings {
    /// All documents of these sources, with the defaults.
    pub fn new(sources: Vec<Source>, features: Features) -> Self {
        Self {
            sources,
            max_document: 32 << 20,
            features,
            lang: None,
            manifest: None,
            workers: thread::available_parallelism().map_or(1, std::num::NonZero::get),
            telemetry: Arc::default(),
            stop: Stop::default(),
        }
    }
}

/// Some documents.
#[derive(Debug, Default)]
pub struct Batch {
    /// Those with a fingerprint.
    pub stories: Vec<Story>,
    /// Those that could not be read.
    pub bad: Vec<Bad>,
    /// Sources that could not be read to their end.
    pub broken: Vec<Broken>,
}

/// What a worker gets: documents, what reading them took, and where they go.
struct Job {
    raws: Vec<Raw>,
    broken: Vec<Broken>,
    fetch: Duration,
    out: SyncSender<Batch>,
}

/// The batches of a run, in the order of the input. They are read ahead: two for each thread that fingerprints.
#[derive(Debug)]
pub struct Batches {
    queue: Receiver<Receiver<Batch>>,
    stop: Stop,
}

impl Batches {
    /// Starts to read.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(settings: Settings) -> Result<Self, Error> {
        let (jobs, taken) = sync_channel::<Job>(settings.workers);
        let (order, queue) = sync_channel(2 * settings.workers);
        let taken = Arc::new(Mutex::new(taken));
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let started = thread::Builder::new().name(name.to_owned()).spawn(work);
            started.map_err(|source| Error::Start { what: "a thread", source })
        };
        for _ in 0..settings.workers {
            let (taken, telemetry) = (Arc::clone(&taken), Arc::clone(&settings.telemetry));
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
        let (stop, list) = (settings.stop.clone(), settings.manifest);
        let producer = Producer { jobs, order, stop, list, max_document: settings.max_document };
        let sources = settings.sources;
        spawn("input", Box::new(move || producer.run(&sources)))?;
        Ok(Self { queue, stop: settings.stop })
    }
}

impl Iterator for Batches {
    type Item = Result<Batch, Error>;

    /// The next batch, as soon as it is fingerprinted.
    fn next(&mut self) -> Option<Self::Item> {
        let batch = loop {
            match self.queue.recv_timeout(TICK) {
                Ok(batch) => break batch,
                Err(RecvTimeoutError::Disconnected) => return None,
                // The thread that reads may wait for stdin for ever.
                Err(RecvTimeoutError::Timeout) if self.stop.get() => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        Some(batch.recv().map_err(|_| Error::Panicked))
    }
}

fn worked(
    reader: &mut Reader,
    raws: Vec<Raw>,
    broken: Vec<Broken>,
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
            let flow = source.read(self.list.as_ref(), self.max_document, &mut |read| {
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

    fn send(&self, raws: Vec<Raw>, broken: Vec<Broken>, fetch: Duration) -> ControlFlow<()> {
        if self.stop.get() {
            return ControlFlow::Break(());
        }
        let (out, batch) = sync_channel(1);
        // First its place in the order, then the work: so many are read ahead as the order has room for.
        let sent = self.order.send(batch).is_ok() && self.jobs.send(Job { raws, broken, fetch, out }).is_ok();
        if sent { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
