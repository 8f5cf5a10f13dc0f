//! One file per command.

mod completions;
mod settings;
mod version;

use crate::args::{Cli, Command};
use crate::exit::{Failure, Outcome};

/// Runs the command that was given.
pub(crate) fn run(cli: Cli) -> Outcome {
    match cli.command {
        Command::Settings(args) => settings::run(&args),
        Command::Version { verbose } => version::run(verbose),
        Command::Completions { shell } => completions::run(shell),
        _ => Err(Failure::usage("not in this build")),
    }
}
