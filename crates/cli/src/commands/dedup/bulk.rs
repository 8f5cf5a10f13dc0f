//! `huntsman dedup export --parquet`, `join`, `cluster` and `sql`: near-duplicates among the fingerprints of files.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use huntsman::bulk::export::{self, Export, ExportError};
use huntsman::bulk::{self, Clustering, Error, Input, Join, JoinReport, Room};
use huntsman::dedup::{Index, metrics_file};
use huntsman::detect::near::Language;
use huntsman::files;
use huntsman::human_bytes;
use huntsman::signals::Signals;
use serde::Serialize;

use crate::dedup::{ClusterArgs, JoinArgs, SqlArgs, at_the_end, failure, serve};
use crate::exit::{Exit, Failure, Outcome};
use crate::metrics;
use crate::process;
use crate::render::{count, counted, escape, say, warn};

fn failed(error: &Error) -> Failure {
    let message = escape(&error.to_string()).into_owned();
    if error.is_usage() { Failure::usage(message) } else { Failure::crawl(message) }
}

pub(super) fn export(index: &Index, folder: &Path, bands: bool, lang: Option<Language>) -> Outcome {
    let options = Export { bands, lang, ..Export::default() };
    let parts = export::export(index.near(), folder, &options).map_err(|error| match error {
        ExportError::Index(error) => failure(&error),
        ExportError::Files(error) => failed(&error),
    })?;
    let rows: u64 = parts.iter().map(|part| part.rows).sum();
    let bytes: u64 = parts.iter().map(|part| part.bytes).sum();
    let files = counted(parts.len() as u64, "file");
    say(&format!("exported {}, {}, {files}", counted(rows, "document"), human_bytes(bytes)));
    Ok(Exit::Done)
}

/// The report of a join for machines.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    join: &'a JoinReport,
    /// Seconds of this run.
    elapsed_s: f64,
    cpu_s: Option<f64>,
    peak_rss_bytes: Option<u64>,
}

pub(super) fn join(args: &JoinArgs) -> Outcome {
    let started = Instant::now();
    let lang = args.lang.as_deref().map(super::language).transpose()?;
    let columns = args.columns.clone().unwrap_or_default();
    let input = Input { paths: args.inputs.clone(), columns, lang, features: None };
    let mut join = Join::new(input, &args.out);
    (join.k, join.memory, join.form, join.fresh) = (args.k, args.memory, args.format, args.fresh);
    join.against.clone_from(&args.against);
    join.temp.clone_from(&args.temp);
    if let Some(threads) = args.threads {
        join.threads = threads.into();
    }
    tell_room(join.room().map_err(|error| failed(&error))?);
    let _runtime = attended(&join, args)?;
    let ended = join.run(&|line| say(line));
    if let Some(path) = &args.metrics_file {
        metrics_file::write(path, &at_the_end(join.telemetry.families()).text()).map_err(|error| {
            Failure::crawl(format!("--metrics-file {}: {error}", escape(&path.to_string_lossy())))
        })?;
    }
    let report = match ended {
        Err(Error::Stopped) => {
            say("stopped; run the same command again to go on");
            return Ok(Exit::Interrupted);
        }
        ended => ended.map_err(|error| failed(&error))?,
    };
    tell(&report);
    if let Some(path) = &args.report {
        let (elapsed_s, cpu_s) = (started.elapsed().as_secs_f64(), process::cpu_seconds());
        let written = Report { join: &report, elapsed_s, cpu_s, peak_rss_bytes: process::peak_rss() };
        let json = serde_json::to_string(&written)? + "\n";
        files::write(path, json).map_err(|error| {
            Failure::crawl(format!("--report {}: {error}", escape(&path.to_string_lossy())))
        })?;
    }
    Ok(Exit::Done)
}

/// A runtime that serves metrics and ends the join early at a signal; what is whole stays for the next run.
fn attended(join: &Join, args: &JoinArgs) -> Outcome<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::crawl(format!("starting the runtime: {error}")))?;
    if let Some(address) = args.metrics {
        let server = runtime.block_on(metrics::bind(address, args.metrics_public))?;
        say(&format!("metrics at http://{}/metrics", server.address()));
        let telemetry = Arc::clone(&join.telemetry);
        runtime.spawn(serve(move || telemetry.families(), server));
    }
    let stop = Arc::clone(&join.stop);
    runtime.spawn(async move {
        Signals::listen().next().await;
        stop.store(true, Ordering::Relaxed);
    });
    Ok(runtime)
}

fn tell_room(room: Room) {
    let free = room.free.map_or_else(String::new, |free| format!("; {} are free", human_bytes(free)));
    if room.needed > 0 {
        say(&format!("needs up to {} of disk for scratch files{free}", human_bytes(room.needed)));
    }
    if room.missing() > 0 {
        warn(&format!(
            "{} may be missing; --temp names a folder on another disk",
            human_bytes(room.missing())
        ));
    }
}

fn tell(report: &JoinReport) {
    if report.without_fingerprint > 0 {
        warn(&format!("{} without a fingerprint were left out", counted(report.without_fingerprint, "row")));
    }
    if report.replaced > 0 {
        warn(&format!(
            "{} had an id that came again with another fingerprint; the last one counts",
            counted(report.replaced, "row")
        ));
    }
    let rows = counted(report.rows, "row");
    say(&format!(
        "{rows}, {} folded, {} compared, {} found",
        count(report.folded),
        counted(report.candidates, "pair"),
        counted(report.pairs, "pair")
    ));
    for heavy in &report.heaviest {
        let (lang, id) = (escape(&heavy.lang), escape(&heavy.id));
        say(&format!(
            "{} of {lang} share key {}, such as {id}",
            counted(heavy.rows, "fingerprint"),
            heavy.key
        ));
    }
}

pub(super) fn cluster(args: &ClusterArgs) -> Outcome {
    let clustering = Clustering { link: args.link, keep: args.keep, order_by: args.order_by.clone() };
    let report = clustering.run(&args.folder).map_err(|error| failed(&error))?;
    if let (Some(column), 1..) = (&args.order_by, report.without_order) {
        let documents = counted(report.without_order, "document");
        warn(&format!("{documents} without {}; these come last in the order", escape(column)));
    }
    say(&format!("{} in {}", counted(report.documents, "document"), counted(report.clusters, "cluster")));
    Ok(Exit::Done)
}

pub(super) fn sql(args: &SqlArgs) -> Outcome {
    io::stdout().write_all(bulk::sql(args.dialect, args.k, &args.table, &args.id).as_bytes())?;
    Ok(Exit::Done)
}
