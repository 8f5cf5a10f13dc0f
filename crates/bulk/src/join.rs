//! All pairs of near-duplicates among the rows of files.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use huntsman_detect::near::Language;
use huntsman_files::Replacement;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::compare::{Comparison, Found as Pair, Tally};
use crate::done::{DONE, write_json};
use crate::error::{Error, Result};
use crate::fold::{Folded, fold, rows_file};
use crate::ids::Ids;
use crate::input::{self, Found, Input, InputFile};
use crate::keys;
use crate::results;
use crate::room::{self, Room};
use crate::table::Form;
use crate::telemetry::Telemetry;

/// Memory that the program takes besides rows.
const OWN_MEMORY: u64 = 24 << 20;
/// The least memory that a join can be given.
const MIN_MEMORY: u64 = 64 << 20;
/// Bytes of a row in memory.
const ROW_IN_MEMORY: u64 = 32;
/// Fewer rows than this are one step, whatever the number of threads.
const SHARED_ROWS: u64 = 200_000;
/// Bytes of scratch files for each row of the input at most, without those of text ids.
const BYTES_PER_ROW: u64 = 120;

/// A join: which files, and how.
#[derive(Debug)]
pub struct Join {
    /// The rows.
    pub input: Input,
    /// Exported folders or files; only pairs between these and the input are found.
    pub against: Vec<PathBuf>,
    /// The greatest number of differing bits, 0 to 7.
    pub k: u32,
    /// The folder of the results.
    pub out: PathBuf,
    /// The folder in which one for scratch files is made; `temp` in that of the results if none is named.
    pub temp: Option<PathBuf>,
    /// Bytes of memory, at least 64 MiB.
    pub memory: u64,
    /// Threads that compare.
    pub threads: usize,
    /// The form of the results.
    pub form: Form,
    /// Whether what an earlier run left is removed first.
    pub fresh: bool,
    /// Told to end early, the join ends with [`Error::Stopped`].
    pub stop: Arc<AtomicBool>,
    /// The metrics of the join.
    pub telemetry: Arc<Telemetry>,
}

/// What a join is about. A killed one goes on only if this is the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    version: u32,
    pub(crate) files: Vec<InputFile>,
    against: Vec<InputFile>,
    pub(crate) columns: input::Columns,
    pub(crate) lang: Option<String>,
    k: u32,
    pub(crate) form: Form,
}

impl Request {
    /// How the files are read.
    pub(crate) fn input(&self) -> Input {
        let lang = self.lang.as_deref().and_then(|lang| Language::parse(lang).ok());
        Input { columns: self.columns.clone(), lang, ..Input::default() }
    }

    /// The files in the order in which their rows count: of an id with several, the last one.
    pub(crate) fn files_in_order(&self) -> impl Iterator<Item = &InputFile> {
        self.against.iter().chain(&self.files)
    }
}

/// What a join found, and what it did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct JoinReport {
    /// Rows of the input that have a fingerprint; of those of one id, one.
    pub rows: u64,
    /// Rows without a fingerprint, which were left out.
    pub without_fingerprint: u64,
    /// Rows whose id came again with another fingerprint; the last one counts.
    pub replaced: u64,
    /// Rows whose fingerprint an earlier id has, which are in `same`.
    pub folded: u64,
    /// Comparisons.
    pub candidates: u64,
    /// Pairs found.
    pub pairs: u64,
    /// Values of keys that more than 4,096 rows share.
    pub heavy_values: u64,
    /// The largest of them.
    pub heaviest: Vec<HeavyValue>,
    /// What was done for each key.
    pub keys: Vec<KeyReport>,
    /// Bytes of the input.
    pub input_bytes: u64,
    /// Bytes of the results.
    pub bytes: u64,
    /// Seconds until the rows were folded, of the run that did it.
    pub fold_seconds: f64,
}

/// A value of a key that many rows share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeavyValue {
    /// The language.
    pub lang: String,
    /// The number of the key.
    pub key: usize,
    /// How many rows share it.
    pub rows: u64,
    /// The id of one of them.
    pub id: String,
}

/// What was done for a key, of all languages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyReport {
    /// Comparisons.
    pub candidates: u64,
    /// Pairs that were found under this key.
    pub pairs: u64,
    /// Seconds of all threads.
    pub seconds: f64,
}

impl KeyReport {
    pub(crate) fn add(&mut self, other: &Self) {
        self.candidates += other.candidates;
        self.pairs += other.pairs;
        self.seconds += other.seconds;
    }
}

/// The last file of a join.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct JoinDone {
    pub(crate) request: Request,
    pub(crate) report: JoinReport,
    /// Whether ids are texts.
    pub(crate) are_texts: bool,
}

impl JoinDone {
    pub(crate) fn read(out: &Path) -> Result<Option<Self>> {
        let path = out.join(DONE);
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| Error::input(&path, error)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::reading(&path)(error)),
        }
    }
}

/// A step: a key of a language, or a range of the values of it.
#[derive(Clone, Copy, Debug)]
struct Step {
    language: usize,
    key: usize,
    part: u64,
    parts: u64,
}

/// What was done in a step.
#[derive(Debug, Serialize, Deserialize)]
struct StepReport {
    #[serde(flatten)]
    of_key: KeyReport,
    heavy_values: u64,
    heavy: Vec<(u64, u64)>,
}

impl StepReport {
    fn read(step: &Step, temp: &Path) -> Result<Self> {
        let path = step.file(temp, "json");
        let bytes = std::fs::read(&path).map_err(Error::reading(&path))?;
        serde_json::from_slice(&bytes).map_err(|error| Error::input(&path, error))
    }
}

impl Step {
    fn file(&self, temp: &Path, kind: &str) -> PathBuf {
        let Self { language, key, part, parts } = self;
        temp.join(format!("step-{language:05}-{key:02}-{part:06}-of-{parts}.{kind}"))
    }

    fn range(&self) -> std::ops::Range<u64> {
        let border = |part: u64| (part << 32) / self.parts;
        border(self.part)..border(self.part + 1)
    }
}

impl Join {
    /// A join with the defaults: k = 3, 4 GiB of memory, as many threads as processors, Parquet.
    pub fn new(input: Input, out: impl Into<PathBuf>) -> Self {
        Self {
            input,
            against: Vec::new(),
            k: 3,
            out: out.into(),
            temp: None,
            memory: 4 << 30,
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            form: Form::Parquet,
            fresh: false,
            stop: Arc::default(),
            telemetry: Arc::default(),
        }
    }

    /// The folder of scratch files, which is removed in the end: in one that the user named, it has a name of its own, by which the same
    /// join finds it again.
    fn temp(&self) -> PathBuf {
        let Some(named) = &self.temp else { return self.out.join("temp") };
        let out = std::path::absolute(&self.out).unwrap_or_else(|_| self.out.clone());
        named.join(format!("huntsman-join-{:016x}", xxh3_64(out.as_os_str().as_encoded_bytes())))
    }

    /// The room on the disk that the join needs for scratch files, besides what an earlier run left there.
    ///
    /// # Errors
    /// The input does not exist, or is not whole.
    pub fn room(&self) -> Result<Room> {
        let found = self.input.find()?;
        let others = Input { paths: self.against.clone(), ..self.input.clone() }.find()?;
        let is_done = JoinDone::read(&self.out)?.is_some() && !self.fresh;
        Ok(if is_done { Room { needed: 0, free: None } } else { self.room_for([&found, &others]) })
    }

    fn room_for(&self, found: [&Found; 2]) -> Room {
        let needed: u64 = found.iter().map(|found| found.rows * BYTES_PER_ROW + 2 * found.id_bytes).sum();
        let temp = std::path::absolute(self.temp()).unwrap_or_else(|_| self.temp());
        // Of a folder that is still to be made, the one above it tells.
        let free = temp.ancestors().find(|path| path.exists()).and_then(room::free_bytes);
        Room { needed: needed.saturating_sub(room::bytes_in(&temp)), free }
    }

    /// Finds all pairs within k bits of one language, each once, and writes them to `pairs` in the folder of the results: language, the two
    /// ids in order, and the distance. Rows whose fingerprint an earlier id has are in `same`, with that id; pairs hold between first ids.
    ///
    /// The result depends on the input only, not on the limits. Killed at any time, the same request goes on with the last whole step; if
    /// it had ended, its report is read. `said` is called with lines about the progress.
    ///
    /// # Errors
    /// The input is not whole or of other features, the folder has the result of another request, or the disk fails.
    pub fn run(&self, said: &(dyn Fn(&str) + Sync)) -> Result<JoinReport> {
        if self.memory < MIN_MEMORY {
            let message = format!("--memory: at least {} bytes are needed", MIN_MEMORY);
            return Err(Error::Input { name: "join".to_owned(), message });
        }
        let found = self.input.find()?;
        let others =
            Input { paths: self.against.clone(), features: found.features, ..self.input.clone() }.find()?;
        let request = Request {
            version: 1,
            files: found.files.clone(),
            against: others.files.clone(),
            columns: self.input.columns.clone(),
            lang: self.input.lang.map(|lang| lang.as_str().to_owned()),
            k: self.k,
            form: self.form,
        };
        if let Some(done) = self.begin(&request)? {
            self.telemetry.end(&done.report);
            return Ok(done.report);
        }
        self.found(&found, &others, request, said).map_err(|error| match error.no_room() {
            Some(_) => {
                let missing = self.room_for([&found, &others]).missing().max(room::LEAST_MISSING);
                Error::Full { missing, source: Box::new(error) }
            }
            None => error,
        })
    }

    /// Joins the files that were found.
    fn found(
        &self,
        found: &Found,
        others: &Found,
        request: Request,
        said: &(dyn Fn(&str) + Sync),
    ) -> Result<JoinReport> {
        let (temp, started) = (self.temp(), Instant::now());
        let folded = match Folded::read(&temp) {
            Some(folded) => folded,
            None => fold(&self.input, [found, others], &temp, (self.budget() / 5) as usize)?,
        };
        said(&format!("{} rows, {} different fingerprints", folded.documents(), folded.rows()));
        let mut report = JoinReport {
            rows: folded.documents(),
            without_fingerprint: folded.without,
            replaced: folded.replaced,
            folded: folded.documents() - folded.rows(),
            input_bytes: found.bytes() + others.bytes(),
            fold_seconds: started.elapsed().as_secs_f64(),
            ..JoinReport::default()
        };
        let steps = self.steps(&folded);
        self.telemetry.begin(&report, steps.len(), keys::keys(self.k).len());
        self.compare(&steps, &temp, said)?;
        self.sum(&steps, &temp, &folded, &mut report)?;
        let pairs: Vec<PathBuf> = steps.iter().map(|step| step.file(&temp, "pairs")).collect();
        report.bytes =
            results::write(&self.out, self.form, &temp, &folded, &pairs, (self.budget() / 5) as usize)?;
        write_json(
            &self.out.join(DONE),
            &JoinDone { request, report: report.clone(), are_texts: folded.are_texts },
        )?;
        huntsman_files::remove_dir_all(&temp).map_err(Error::writing(&temp))?;
        self.telemetry.end(&report);
        Ok(report)
    }

    fn budget(&self) -> u64 {
        self.memory - OWN_MEMORY
    }

    /// Makes the folders; returns what an earlier run of the same request ended with.
    fn begin(&self, request: &Request) -> Result<Option<JoinDone>> {
        let temp = self.temp();
        if self.fresh {
            for path in [self.out.join(DONE), self.out.join("pairs"), self.out.join("same"), temp.clone()] {
                huntsman_files::remove_any(&path).map_err(Error::writing(&path))?;
            }
        }
        let other = |path: &Path| {
            let message = "has the result of another join, or of other input; name another folder, or begin anew with --fresh";
            Error::input(path, message)
        };
        if let Some(done) = JoinDone::read(&self.out)? {
            if done.request != *request {
                return Err(other(&self.out));
            }
            // It was killed while it removed them.
            huntsman_files::remove_any(&temp).map_err(Error::writing(&temp))?;
            return Ok(Some(done));
        }
        huntsman_files::create_dir_all(&temp).map_err(Error::writing(&temp))?;
        let path = temp.join("request.json");
        match std::fs::read(&path) {
            Ok(bytes) => match serde_json::from_slice::<Request>(&bytes) {
                Ok(earlier) if earlier == *request => Ok(None),
                _ => Err(other(&temp)),
            },
            Err(_) => write_json(&path, request).map(|()| None),
        }
    }

    /// The most rows that a thread keeps in memory.
    fn limit(&self) -> u64 {
        self.budget() * 3 / 4 / self.threads.max(1) as u64 / ROW_IN_MEMORY
    }

    fn steps(&self, folded: &Folded) -> Vec<Step> {
        let mut steps = Vec::new();
        for (language, of) in folded.languages.iter().enumerate() {
            for key in 0..keys::keys(self.k).len() {
                // The values are spread unevenly.
                let fit = of.rows.div_ceil((self.limit() * 9 / 10).max(1)).max(1);
                let parts =
                    if of.rows < SHARED_ROWS { fit } else { fit.next_multiple_of(self.threads as u64) };
                steps.extend((0..parts).map(|part| Step { language, key, part, parts }));
            }
        }
        steps
    }

    fn compare(&self, steps: &[Step], temp: &Path, said: &(dyn Fn(&str) + Sync)) -> Result<()> {
        let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
        let work = || {
            while let Some(step) = steps.get(next.fetch_add(1, Ordering::Relaxed)) {
                if failed.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
                    break;
                }
                if let Err(error) = self.step(step, temp) {
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    break;
                }
                said(&format!("step {} of {}", step.key + 1, keys::keys(self.k).len()));
            }
        };
        let threads = self.threads.clamp(1, steps.len().max(1));
        let panicked = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            threads.into_iter().map(std::thread::ScopedJoinHandle::join).filter(Result::is_err).count()
        });
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None if panicked > 0 => Err(Error::Panicked),
            None => Ok(()),
        }
    }

    /// Does a step, unless an earlier run did. The file of its pairs is the last one that it writes.
    fn step(&self, step: &Step, temp: &Path) -> Result<()> {
        let path = step.file(temp, "pairs");
        if path.exists() {
            let of = StepReport::read(step, temp)?;
            self.telemetry.add(step.key, &of.of_key, of.heavy_values);
            return Ok(());
        }
        let (started, masks) = (Instant::now(), keys::keys(self.k));
        let comparison = Comparison {
            file: &rows_file(temp, step.language),
            limit: self.limit() as usize,
            k: self.k,
            parts: keys::parts(masks[step.key], self.k),
            keys: &masks,
            key: step.key,
            across: !self.against.is_empty(),
            stop: &self.stop,
        };
        let mut to =
            BufWriter::with_capacity(1 << 16, Replacement::new(&path).map_err(Error::writing(&path))?);
        let mut tally = Tally::default();
        comparison.run(step.range(), &mut tally, &mut |Pair { a, b, distance }| {
            let mut bytes = [0; results::PAIR_BYTES];
            bytes[..8].copy_from_slice(&a.to_le_bytes());
            bytes[8..16].copy_from_slice(&b.to_le_bytes());
            bytes[16] = distance as u8;
            to.write_all(&bytes).map_err(Error::writing(&path))
        })?;
        let report = StepReport {
            of_key: KeyReport {
                candidates: tally.candidates,
                pairs: tally.pairs,
                seconds: started.elapsed().as_secs_f64(),
            },
            heavy_values: tally.heavy_values,
            heavy: tally.heavy,
        };
        write_json(&step.file(temp, "json"), &report)?;
        let to = to.into_inner().map_err(|error| Error::writing(&path)(error.into_error()))?;
        to.finish().map_err(Error::writing(&path))?;
        self.telemetry.add(step.key, &report.of_key, report.heavy_values);
        Ok(())
    }

    fn sum(&self, steps: &[Step], temp: &Path, folded: &Folded, report: &mut JoinReport) -> Result<()> {
        let mut ids = Ids::open(temp, folded.are_texts)?;
        report.keys = vec![KeyReport::default(); keys::keys(self.k).len()];
        let mut heavy = Vec::new();
        for step in steps {
            let of = StepReport::read(step, temp)?;
            report.keys[step.key].add(&of.of_key);
            report.candidates += of.of_key.candidates;
            report.pairs += of.of_key.pairs;
            report.heavy_values += of.heavy_values;
            heavy.extend(of.heavy.iter().map(|(rows, number)| (*rows, *step, *number)));
        }
        heavy.sort_by_key(|(rows, step, number)| (std::cmp::Reverse(*rows), step.key, *number));
        for (rows, step, number) in heavy.into_iter().take(10) {
            let id = match ids.id(number)? {
                crate::row::Id::Number(number) => number.to_string(),
                crate::row::Id::Text(text) => text.into(),
            };
            let lang = folded.languages[step.language].name.clone();
            report.heaviest.push(HeavyValue { lang, key: step.key, rows, id });
        }
        Ok(())
    }
}
