//! Documents with their fingerprints, in batches, in the order of the input.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use huntsman_detect::near::Language;
use huntsman_detect::simhash::Features;

use crate::archive::ArchiveId;
use crate::error::Error;
use crate::input::{ReadOptions, Source, SourceError};
use crate::manifest::Manifest;
use crate::metrics::Telemetry;
use crate::record::{Body, RawDocument, Reader, RejectedDocument, Story};

/// Documents per batch. More of them per call to a server would save little, and a whole batch may have to be done again if the run is
/// killed.
const DOCUMENTS: usize = 1_024;
/// Bytes per batch at most, unless a single document is longer.
const BYTES: usize = 1 << 20;
/// How often the run checks whether it was told to stop while no input arrives.
const TICK: Duration = Duration::from_millis(100);

/// A flag that tells the run to end early. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Tells the run to end. Documents that were read already are still processed.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the run was told to end.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Which documents are read, and how they are fingerprinted.
#[derive(Debug)]
pub struct Settings {
    /// The sources of the documents, read one after the other.
    pub sources: Vec<Source>,
    /// Longest document in bytes, whether a line or a file (default 32 MiB). A longer one becomes a [`RejectedDocument`].
    pub max_document: u64,
    /// The features of a text that its fingerprint is made of.
    pub features: Features,
    /// The language of documents that name none, and its spelling (default: it is recognised from the text).
    pub lang: Option<(Language, Box<str>)>,
    /// Only these documents are read (default: all).
    pub manifest: Option<Arc<Manifest>>,
    /// The ids of documents in WARC files (default: their URLs).
    pub archive_id: ArchiveId,
    /// Number of threads that compute fingerprints (default: the number of processors).
    pub workers: usize,
    /// The metrics of reading and fingerprinting.
    pub telemetry: Arc<Telemetry>,
    /// The flag that ends the run early.
    pub stop: Stop,
}

impl Settings {
    /// Settings for all documents of these sources, with the defaults.
    pub fn new(sources: Vec<Source>, features: Features) -> Self {
        Self {
            sources,
            max_document: 32 << 20,
            features,
            lang: None,
            manifest: None,
            archive_id: ArchiveId::default(),
            workers: thread::available_parallelism().map_or(1, std::num::NonZero::get),
            telemetry: Arc::default(),
            stop: Stop::default(),
        }
    }
}

/// A number of consecutive documents of the input.
#[derive(Debug, Default)]
pub struct Batch {
    /// The documents that have a fingerprint.
    pub stories: Vec<Story>,
    /// The documents that could not be read.
    pub rejected: Vec<RejectedDocument>,
    /// Sources that could not be read to their end.
    pub source_errors: Vec<SourceError>,
    /// Numbers of records of archives that are no documents, by the reason of [`Body::LeftOut`].
    pub left_out: BTreeMap<&'static str, u64>,
}

/// The job of a worker: the documents, the time that reading them took, and the channel for the result.
struct Job {
    raws: Vec<RawDocument>,
    source_errors: Vec<SourceError>,
    fetch: Duration,
    out: SyncSender<Batch>,
}

/// The batches of a run, in the order of the input. Two batches for each fingerprinting thread are read ahead.
#[derive(Debug)]
pub struct Batches {
    queue: Receiver<Receiver<Batch>>,
    stop: Stop,
}

impl Batches {
    /// Starts the threads that read and fingerprint.
    ///
    /// # Errors
    /// A thread cannot be started.
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
                    // The receiver is gone if the run failed meanwhile.
                    let _ = job.out.send(read_documents(
                        &mut reader,
                        job.raws,
                        job.source_errors,
                        job.fetch,
                        &telemetry,
                    ));
                }
            };
            spawn("fingerprints", Box::new(work))?;
        }
        let (stop, list) = (settings.stop.clone(), settings.manifest);
        let (max_document, archive_id) = (settings.max_document, settings.archive_id);
        let producer = Producer { jobs, order, stop, list, max_document, archive_id };
        let sources = settings.sources;
        spawn("input", Box::new(move || producer.run(&sources)))?;
        Ok(Self { queue, stop: settings.stop })
    }
}

impl Iterator for Batches {
    type Item = Result<Batch, Error>;

    /// Waits for the next batch to be fingerprinted and returns it.
    fn next(&mut self) -> Option<Self::Item> {
        let batch = loop {
            match self.queue.recv_timeout(TICK) {
                Ok(batch) => break batch,
                Err(RecvTimeoutError::Disconnected) => return None,
                // The reading thread may block on stdin for ever, so it is not waited for.
                Err(RecvTimeoutError::Timeout) if self.stop.get() => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        Some(batch.recv().map_err(|_| Error::Panicked))
    }
}

fn read_documents(
    reader: &mut Reader,
    raws: Vec<RawDocument>,
    source_errors: Vec<SourceError>,
    fetch: Duration,
    telemetry: &Telemetry,
) -> Batch {
    let each = fetch / u32::try_from(raws.len()).unwrap_or(u32::MAX).max(1);
    let mut batch = Batch { source_errors, ..Batch::default() };
    for raw in raws {
        if let Body::LeftOut(why) = raw.body {
            *batch.left_out.entry(why).or_default() += 1;
            continue;
        }
        match reader.read(raw) {
            Ok(Some(story)) => batch.stories.push(story),
            Ok(None) => {}
            Err(bad) => batch.rejected.push(bad),
        }
    }
    telemetry.record_fingerprints(&batch.stories, each);
    batch
}

struct Producer {
    jobs: SyncSender<Job>,
    order: SyncSender<Receiver<Batch>>,
    stop: Stop,
    list: Option<Arc<Manifest>>,
    max_document: u64,
    archive_id: ArchiveId,
}

impl Producer {
    fn run(self, sources: &[Source]) {
        let (mut raws, mut bytes, mut since) = (Vec::new(), 0, Instant::now());
        let (list, max_document) = (self.list.as_ref(), self.max_document);
        let options = ReadOptions { list, max_document, archive_id: self.archive_id };
        for source in sources {
            let flow = source.read(&options, &mut |read| {
                let mut source_errors = Vec::new();
                match read {
                    Ok(raw) => {
                        bytes += match &raw.body {
                            Body::Line(body)
                            | Body::File { bytes: body, .. }
                            | Body::Archived { bytes: body, .. } => body.len(),
                            Body::Fingerprint(_) | Body::LeftOut(_) | Body::Unreadable(_) => 0,
                        };
                        raws.push(raw);
                    }
                    // The failure is reported at once, because the source after it may take hours.
                    Err(failure) => source_errors.push(failure),
                }
                if source_errors.is_empty() && raws.len() < DOCUMENTS && bytes < BYTES {
                    return ControlFlow::Continue(());
                }
                bytes = 0;
                let sent = self.send(std::mem::take(&mut raws), source_errors, since.elapsed());
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

    fn send(
        &self,
        raws: Vec<RawDocument>,
        source_errors: Vec<SourceError>,
        fetch: Duration,
    ) -> ControlFlow<()> {
        if self.stop.get() {
            return ControlFlow::Break(());
        }
        let (out, batch) = sync_channel(1);
        // The batch takes its place in the order before its job is queued, so the capacity of the order limits how many batches are read
        // ahead.
        let sent =
            self.order.send(batch).is_ok() && self.jobs.send(Job { raws, source_errors, fetch, out }).is_ok();
        if sent { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
