//! `huntsman-bench warc`: what reading archives costs.
//!
//! Each way of reading goes once over all files, on one core. A megabyte is a million bytes of records without their compression.

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueHint};
use huntsman::warc::{Archives, Captures, Check, WarcReader, index_file};
use huntsman_cli::exit::{Exit, Failure, Outcome};
use huntsman_cli::process::cpu_seconds;
use huntsman_cli::render::say;

/// Flags of `warc`.
#[derive(Debug, Args)]
pub(crate) struct WarcArgs {
    /// WARC files, folders with such files, and patterns, such as what `huntsman bench crawl --warc DIR` writes.
    #[arg(value_name = "FILE|DIR", value_hint = ValueHint::AnyPath, required = true)]
    files: Vec<PathBuf>,
}

pub(crate) fn run(args: &WarcArgs) -> Outcome {
    if cfg!(debug_assertions) {
        say("this is a debug build: its times say little; measure with cargo build --release");
    }
    let archives = Archives::named(&args.files).map_err(|error| Failure::usage(error.to_string()))?;
    let files = archives.files();
    let failed = |error: &dyn std::fmt::Display| Failure::crawl(error.to_string());
    let (mut records, mut unpacked, mut packed) = (0_u64, 0_u64, 0_u64);
    for file in files {
        packed += file.length()?;
    }
    println!("                  seconds  CPU s    MB/s");
    let read = measured(|| {
        for file in files {
            let mut reader = WarcReader::new(file.open()?);
            while reader.next_head().map_err(|error| failed(&error))?.is_some() {
                records += 1;
                reader
                    .each_part(|part| {
                        unpacked += part.len() as u64;
                        true
                    })
                    .map_err(|error| failed(&error))?;
            }
        }
        Ok(())
    })?;
    let show = |name: &str, (seconds, cpu): (f64, f64)| {
        println!("{name:<17} {seconds:>7.2} {cpu:>6.2} {:>7.0}", unpacked as f64 / 1e6 / cpu.max(1e-9));
    };
    show("read", read);
    show(
        "check digests",
        measured(|| {
            let mut check = Check::default();
            for file in files {
                check.file("", &mut WarcReader::new(file.open()?)).map_err(|error| failed(&error))?;
            }
            Ok(())
        })?,
    );
    show(
        "captures",
        measured(|| Captures::read(&archives, |_, _| {}).map(drop).map_err(|error| failed(&error)))?,
    );
    show(
        "index",
        measured(|| {
            for file in files {
                let mut reader = WarcReader::new(file.open()?);
                index_file(&mut reader, "a", drop).map_err(|error| failed(&error))?;
            }
            Ok(())
        })?,
    );
    println!(
        "{records} records, {:.0} MB in {:.0} MB of files; {} build",
        unpacked as f64 / 1e6,
        packed as f64 / 1e6,
        crate::BUILD
    );
    Ok(Exit::Done)
}

/// The seconds of some work, and those of the processor.
fn measured(work: impl FnOnce() -> Outcome<()>) -> Outcome<(f64, f64)> {
    let (start, before) = (Instant::now(), cpu_seconds());
    work()?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu = cpu_seconds().zip(before).map_or(seconds, |(after, before)| after - before);
    Ok((seconds, cpu))
}
