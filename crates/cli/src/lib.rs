//! The command `huntsman`: flags, terminal, files.
//!
//! The command is a library of its own so that `huntsman-bench` can run commands and print in the same way. To crawl
//! from a program, use the crate `huntsman`, on which this one is built. Only items that the benches need are public.
//!
//! ```
//! use huntsman_cli::render::{Table, count};
//!
//! let mut table = Table::right(&[1]);
//! table.row(["pages", &count(12_345)]);
//! assert_eq!(table.lines(""), "pages  12 345\n");
//! ```

// Files are written with `huntsman::files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

mod args;
mod commands;
mod config;
mod copyvio;
mod declared;
mod dedup;
mod directory;
pub mod exit;
mod job;
mod logging;
mod metrics;
mod panics;
pub mod process;
pub mod progress;
mod reachable;
pub mod render;
mod serve;
mod server;
mod signals;
mod sink;
mod spider;
mod sweep;
mod text_index;

use huntsman::output;

/// A page makes hundreds of small allocations on one thread and frees some on another; with the system's allocator
/// these would take a sixth of the processor time of a crawl.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub use commands::crawl;
pub use copyvio::pdf_reader;

use crate::exit::{Exit, Outcome};

/// Runs `huntsman` with the arguments of this process.
pub fn huntsman() -> ExitCode {
    start(commands::run)
}

/// Sets up the process, parses its arguments, runs `work`, and prints the error on stderr if it fails.
pub fn start<C: Parser>(work: impl FnOnce(C) -> Outcome) -> ExitCode {
    panics::keep_quiet();
    process::begin();
    process::prepare();
    let cli = match C::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // If the reader of the output went away, there is nothing to report.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage as u8));
        }
    };
    match panics::caught(|| work(cli)) {
        Ok(exit) => exit.into(),
        Err(failure) if failure.is_broken_pipe => Exit::Done.into(),
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

/// Runs a command of `huntsman` in a process that [`start`] set up. Wrong arguments end the process, as they end the
/// command.
///
/// # Errors
/// The command could not do its work.
pub fn command(arguments: Vec<OsString>) -> Outcome {
    match args::Cli::try_parse_from([OsString::from("huntsman")].into_iter().chain(arguments)) {
        Ok(cli) => commands::run(cli),
        Err(error) => error.exit(),
    }
}
