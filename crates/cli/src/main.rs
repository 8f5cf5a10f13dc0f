//! The `huntsman` command.

// Files are written by `huntsman::files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

use std::process::ExitCode;

use clap::Parser;

mod args;
mod avoid_dup;
mod commands;
mod config;
mod copyvio;
mod dedup;
mod exit;
mod html_report;
mod job;
mod logging;
mod markup;
mod metrics;
mod output;
mod panics;
mod process;
mod progress;
mod prometheus;
mod reachable;
mod render;
mod report;
#[cfg(feature = "pdf")]
mod sandbox;
mod seeds;
mod serve;
mod server;
mod signals;
mod sink;
mod sites;
mod spider;
mod sweep;
mod text_index;
mod verify;

/// A page makes hundreds of small allocations on one thread and frees some on another: the allocator of the system takes
/// a sixth of the processor time of a crawl.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    panics::keep_quiet();
    process::begin();
    process::prepare();
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // A reader that went away is no reason to complain.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(exit::Exit::Usage as u8));
        }
    };
    match panics::caught(|| commands::run(cli)) {
        Ok(exit) => exit.into(),
        Err(failure) if failure.is_broken_pipe => exit::Exit::Done.into(),
        Err(failure) => {
            render::say(&format!(
                "{} {}",
                render::Style::stderr().red("error:"),
                render::escape_document(&failure.message)
            ));
            failure.exit.into()
        }
    }
}
