//! `huntsman-bench store`: the cost of the job stores on this machine and its disk.
//!
//! Every backend gets the same entries in the same batches: keys like those of a queue, and values that hardly
//! compress. Then the entries are read in random order and scanned, and the directory is reopened.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::{Args, ValueHint};
use huntsman::Backend;
use huntsman::store::{Batch, Durability, JobDirectory, MemoryStore, Store};
use huntsman_cli::exit::{Exit, Failure, Outcome};
use huntsman_cli::render::{count, say};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use crate::BUILD;
use crate::clock::Times;
use crate::sheet::{FormArgs, Sheet, figure};

/// Flags of `store`.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Only these stores [default: all of this build].
    #[arg(long, value_name = "STORE", value_delimiter = ',', value_parser = ["memory", "redb", "sled"])]
    pub(crate) only: Vec<String>,

    /// Entries of each store.
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) entries: u64,

    /// Bytes of a value.
    #[arg(long, value_name = "BYTES", default_value_t = 200, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub(crate) value_bytes: u64,

    /// Entries that are written at once.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) batch: u64,

    /// Directory on the disk that is measured [default: that of temporary files].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,

    /// Where all random numbers begin.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    #[command(flatten)]
    pub(crate) form: FormArgs,
}

/// Number of batches that are also written so that they survive a power cut.
const FULL: usize = 20;
/// Number of entries that are read one by one.
const READS: usize = 100_000;

/// The cost of a backend.
#[derive(Debug, Serialize)]
struct Cost {
    backend: &'static str,
    entries: u64,
    bytes: u64,
    /// Batches that survive a killed process, and a few that survive a power cut.
    writes_per_s: f64,
    batch: Times,
    batch_full: Times,
    /// Reading existing and missing entries in random order, and scanning all entries.
    read: Times,
    miss: Times,
    scanned_per_s: f64,
    /// Size on disk after closing; `None` in memory.
    disk_bytes: Option<u64>,
    reopen_s: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    build: &'static str,
    seed: u64,
    stores: Vec<Cost>,
}

pub(crate) fn run(args: &StoreArgs) -> Outcome {
    if cfg!(debug_assertions) {
        say("this is a debug build: its times say little; measure with cargo build --release");
    }
    let mut stores = Vec::new();
    for backend in Backend::ALL.into_iter().filter(|backend| backend.is_compiled_in()) {
        if args.only.is_empty() || args.only.iter().any(|name| name == backend.name()) {
            say(&format!("{backend}: {} entries", count(args.entries)));
            stores.push(measure(backend, args)?);
        }
    }
    let report = Report { version: env!("CARGO_PKG_VERSION"), build: BUILD, seed: args.seed, stores };
    args.form.print(&report, &[sheet(args, &report.stores)], args.seed)?;
    Ok(Exit::Done)
}

fn measure(backend: Backend, args: &StoreArgs) -> Outcome<Cost> {
    let failed = |error: io::Error| Failure::crawl(format!("{backend}: {error}"));
    let place = match &args.dir {
        Some(dir) => tempfile::tempdir_in(dir),
        None => tempfile::tempdir(),
    };
    let place = place.map_err(failed)?;
    let path = place.path().join("store");
    let (directory, store): (Option<JobDirectory>, Arc<dyn Store>) = match backend {
        Backend::Memory => (None, Arc::new(MemoryStore::default())),
        _ => {
            let directory = JobDirectory::open(&path, backend).map_err(huntsman::Error::from)?;
            let store = directory.store();
            (Some(directory), store)
        }
    };
    let mut random = Xoshiro256PlusPlus::seed_from_u64(args.seed);
    let entries: Vec<u64> = (0..args.entries).map(|_| random.random()).collect();
    let mut value = vec![0; args.value_bytes as usize];
    let (mut batches, mut bytes) = (Vec::new(), 0);
    let start = Instant::now();
    for entries in entries.chunks(args.batch as usize) {
        let mut batch = Batch::new();
        for entry in entries {
            random.fill(value.as_mut_slice());
            batch.put(key(*entry), value.as_slice());
        }
        bytes += batch.bytes() as u64;
        let start = Instant::now();
        store.write(&batch, Durability::Process).map_err(huntsman::Error::from)?;
        batches.push(start.elapsed());
    }
    let writes_per_s = args.entries as f64 / start.elapsed().as_secs_f64();
    let mut full = Vec::new();
    for number in 0..FULL {
        let mut batch = Batch::new();
        batch.put(format!("full{number}"), value.as_slice());
        let start = Instant::now();
        store.write(&batch, Durability::Full).map_err(huntsman::Error::from)?;
        full.push(start.elapsed());
    }
    let mut read = |is_there: bool| -> Outcome<Times> {
        let mut times = Vec::with_capacity(READS);
        for _ in 0..READS.min(entries.len()) {
            let entry = entries[random.random_range(0..entries.len())];
            let key = if is_there { key(entry) } else { key(!entry) };
            let start = Instant::now();
            let found = store.get(&key).map_err(huntsman::Error::from)?;
            times.push(start.elapsed());
            if found.is_some() != is_there {
                return Err(Failure::crawl(format!("{backend}: an entry is not as it was written")));
            }
        }
        Ok(Times::of(times))
    };
    let (read, miss) = (read(true)?, read(false)?);
    let start = Instant::now();
    let mut seen = 0_u64;
    store
        .scan(b"q", &mut |_, _| {
            seen += 1;
            true
        })
        .map_err(huntsman::Error::from)?;
    if seen != args.entries {
        return Err(Failure::crawl(format!("{backend}: {seen} entries instead of {}", args.entries)));
    }
    let scanned_per_s = seen as f64 / start.elapsed().as_secs_f64();
    drop(store);
    let (mut disk_bytes, mut reopen_s) = (None, None);
    if let Some(directory) = directory {
        directory.close().map_err(huntsman::Error::from)?;
        disk_bytes = Some(bytes_in(&path).map_err(failed)?);
        let start = Instant::now();
        let directory = JobDirectory::open(&path, backend).map_err(huntsman::Error::from)?;
        let there = directory.store().get(&key(entries[0])).map_err(huntsman::Error::from)?;
        reopen_s = Some(start.elapsed().as_secs_f64());
        if there.is_none() {
            return Err(Failure::crawl(format!("{backend}: an entry is gone after opening it anew")));
        }
    }
    Ok(Cost {
        backend: backend.name(),
        entries: args.entries,
        bytes,
        writes_per_s,
        batch: Times::of(batches),
        batch_full: Times::of(full),
        read,
        miss,
        scanned_per_s,
        disk_bytes,
        reopen_s,
    })
}

fn key(entry: u64) -> [u8; 9] {
    let mut key = [b'q'; 9];
    key[1..].copy_from_slice(&entry.to_be_bytes());
    key
}

fn bytes_in(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        bytes += if meta.is_dir() { bytes_in(&entry.path())? } else { meta.len() };
    }
    Ok(bytes)
}

fn sheet(args: &StoreArgs, stores: &[Cost]) -> Sheet {
    let head = [
        "",
        "writes/s",
        "batch ms p50",
        "p99",
        "durable ms p50",
        "read us p50",
        "p99",
        "miss us p50",
        "scanned/s",
        "disk bytes/byte",
        "reopen s",
    ];
    let title = format!(
        "Stores: {} entries of {} bytes in batches of {}",
        count(args.entries),
        args.value_bytes,
        count(args.batch)
    );
    let mut sheet = Sheet::new(title, head);
    for cost in stores {
        let optional = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), figure);
        sheet.row([
            cost.backend.to_owned(),
            count(cost.writes_per_s as u64),
            figure(cost.batch.p50_us / 1e3),
            figure(cost.batch.p99_us / 1e3),
            figure(cost.batch_full.p50_us / 1e3),
            figure(cost.read.p50_us),
            figure(cost.read.p99_us),
            figure(cost.miss.p50_us),
            count(cost.scanned_per_s as u64),
            optional(cost.disk_bytes.map(|disk| disk as f64 / cost.bytes.max(1) as f64)),
            optional(cost.reopen_s),
        ]);
    }
    sheet.note("a batch survives a killed process, a durable one a power cut; disk bytes after closing, for each byte of keys and values")
}
