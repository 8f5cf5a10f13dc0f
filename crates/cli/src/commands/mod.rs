//! One file per command.

mod bench;
// What a bench writes is made up, and most of it is thrown away.
#[allow(clippy::disallowed_methods)]
mod bench_avoid_dup;
mod bench_copyvio;
#[allow(clippy::disallowed_methods)]
mod bench_simhash;
mod bench_store;
#[allow(clippy::disallowed_methods)]
pub(crate) mod bench_tools;
mod cache;
mod completions;
mod copyvio;
mod crawl;
mod dedup;
mod demo;
mod fetch;
mod job;
#[cfg(feature = "pdf")]
mod pdf_text;
mod robots;
mod serve;
mod settings;
mod sweep;
mod verify;
mod version;

use std::future::Future;

use crate::args::{Bench, Cli, Command};
use crate::exit::{Failure, Outcome};

/// Runs the command that was given.
pub(crate) fn run(cli: Cli) -> Outcome {
    match cli.command {
        Command::Crawl(args) => on_runtime(crawl::run(*args)),
        Command::Fetch(args) => on_runtime(fetch::run(args)),
        Command::Robots(args) => on_runtime(robots::run(args)),
        Command::Cache { what } => cache::run(what),
        Command::Copyvio { what } => on_runtime(copyvio::run(what)),
        Command::Dedup { what } => dedup::run(*what),
        Command::Job { what } => job::run(what),
        Command::Serve(args) => on_runtime(serve::run(*args)),
        Command::Sweep(args) => on_runtime(sweep::run(*args)),
        Command::Settings(args) => settings::run(&args),
        Command::Demo(args) => on_runtime(demo::run(args)),
        Command::Bench { what: Bench::Crawl(args) } => on_runtime(bench::crawl(args)),
        Command::Bench { what: Bench::AvoidDup(args) } => bench_avoid_dup::run(*args),
        Command::Bench { what: Bench::Simhash(args) } => bench_simhash::run(&args),
        Command::Bench { what: Bench::Copyvio(args) } => bench_copyvio::run(&args),
        Command::Bench { what: Bench::Store(args) } => bench_store::run(&args),
        Command::BenchServer(site) => on_runtime(bench::server(site)),
        Command::BenchSources(args) => on_runtime(bench_copyvio::sources(args)),
        #[cfg(feature = "pdf")]
        Command::PdfText { attempts } => pdf_text::run(attempts),
        Command::Verify(args) => verify::run(&args),
        Command::Version { verbose } => version::run(verbose),
        Command::Completions { shell } => completions::run(shell),
    }
}

fn on_runtime<T>(work: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::crawl(format!("starting the runtime: {error}")))?;
    let outcome = runtime.block_on(work);
    // A thread that waits for stdin would hold the exit up for ever.
    runtime.shutdown_background();
    outcome
}
