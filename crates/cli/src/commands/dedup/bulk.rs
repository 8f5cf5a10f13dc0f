//! `huntsman dedup export --parquet`, `join`, `cluster` and `sql`: near-duplicates among the fingerprints of files.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use huntsman::bulk::export::{self, Export, ExportError};
use huntsman::bulk::{self, Clustering, Error, Input, Join, JoinReport};
use huntsman::dedup::Index;
use huntsman::detect::near::Language;
use huntsman::files;
use huntsman::human_bytes;
use huntsman::signals::Signals;

use crate::dedup::{ClusterArgs, JoinArgs, SqlArgs, failure};
use crate::exit::{Exit, Failure, Outcome};
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

pub(super) fn join(args: &JoinArgs) -> Outcome {
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
    say(&format!(
        "needs up to {} of disk for scratch files",
        human_bytes(join.needed_bytes().map_err(|error| failed(&error))?)
    ));
    let _runtime = stop_at_signal(&join)?;
    let report = match join.run(&|line| say(line)) {
        Err(Error::Stopped) => {
            say("stopped; run the same command again to go on");
            return Ok(Exit::Interrupted);
        }
        ended => ended.map_err(|error| failed(&error))?,
    };
    tell(&report);
    if let Some(path) = &args.report {
        let json = serde_json::to_string(&report)? + "\n";
        files::write(path, json).map_err(|error| {
            Failure::crawl(format!("--report {}: {error}", escape(&path.to_string_lossy())))
        })?;
    }
    Ok(Exit::Done)
}

/// Ends the join early at a signal; what is whole stays for the next run.
fn stop_at_signal(join: &Join) -> Outcome<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::crawl(format!("starting the runtime: {error}")))?;
    let stop = Arc::clone(&join.stop);
    runtime.spawn(async move {
        Signals::listen().next().await;
        stop.store(true, Ordering::Relaxed);
    });
    Ok(runtime)
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
