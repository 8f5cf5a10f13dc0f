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
#[cfg(feature = "cluster")]
mod cluster;
mod commands;
mod copyvio;
mod declared;
mod dedup;
mod job;
mod panics;
mod reachable;
mod serve;
mod server;
mod sink;
mod spider;
mod sweep;
mod templates;
mod text_index;

use huntsman::output;
use huntsman::project::command;
use huntsman::project::command::{directory, logging, metrics};

pub use huntsman::project::command::{exit, process, progress, redis_server, render};

/// A page makes hundreds of small allocations on one thread and frees some on another; with the system's allocator
/// these would take a sixth of the processor time of a crawl.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub use commands::crawl;
pub use copyvio::pdf_reader;
pub use dedup::OrFailure;

use crate::exit::Outcome;

/// The settings of a command.
mod config {
    pub(crate) use huntsman::project::command::Config;
}

/// Runs `huntsman` with the arguments of this process.
pub fn huntsman() -> ExitCode {
    start(commands::run)
}

/// Sets up the process, parses its arguments, runs `work`, and prints the error on stderr if it fails. What panics is told where it matters.
pub fn start<C: Parser>(work: impl FnOnce(C) -> Outcome) -> ExitCode {
    panics::keep_quiet();
    command::start(work)
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
