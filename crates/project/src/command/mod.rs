//! What the commands of a program are made of: exit codes, flags for settings, the log, signals, progress, metrics, and a crawl that is
//! run with all of them.
//!
//! `huntsman` itself stands on this module, as does every [`Project`](crate::Project). A program with commands of its own can use it in the
//! same way: [`start`] sets up the process, parses the arguments and turns the outcome into an exit code.

pub mod attended;
pub mod bench;
pub mod control;
pub mod dashboard;
pub mod directory;
pub mod exit;
pub mod flags;
pub mod jobs;
pub mod logging;
pub mod metrics;
pub mod panics;
pub mod process;
pub mod progress;
pub mod reachable;
pub mod redis_server;
pub mod render;
pub mod settings;
pub mod shell;
pub mod signals;
pub mod stdout;
pub mod values;

mod config;

use std::future::Future;
use std::process::ExitCode;

use clap::Parser;

use exit::{Exit, Failure, Outcome};

pub use config::{Config, log_settings};

/// Sets up the process, parses its arguments, runs `work`, and prints the error on stderr if it fails.
pub fn start<C: Parser>(work: impl FnOnce(C) -> Outcome) -> ExitCode {
    begin();
    match C::try_parse() {
        Ok(cli) => ended(panics::caught(|| work(cli))).into(),
        Err(error) => ExitCode::from(told(&error)),
    }
}

/// Sets up the process of a command: see [`process::prepare`]. It must be called before everything else.
pub fn begin() {
    process::begin();
    process::prepare();
}

/// Prints what is wrong with the arguments, or the help that they ask for, and returns the exit code.
pub fn told(error: &clap::Error) -> u8 {
    // If the reader of the output went away, there is nothing to report.
    let _ = error.print();
    u8::try_from(error.exit_code()).unwrap_or(Exit::Usage as u8)
}

/// The exit code of a command that has ended; if it failed, the reason is printed on stderr.
pub fn ended(outcome: Outcome) -> Exit {
    match outcome {
        Ok(exit) => exit,
        Err(failure) if failure.is_broken_pipe => Exit::Done,
        Err(failure) => {
            render::say(&format!(
                "{} {}",
                render::Style::stderr().red("error:"),
                render::escape_document(&failure.message)
            ));
            failure.exit
        }
    }
}

/// Runs the work of a command on a runtime with a thread for each processor.
///
/// # Errors
/// Those of the work, or the runtime cannot be started.
pub fn on_runtime<T>(work: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::crawl(format!("starting the runtime: {error}")))?;
    let outcome = runtime.block_on(work);
    // A thread that is blocked reading stdin would delay the exit for ever.
    runtime.shutdown_background();
    outcome
}
