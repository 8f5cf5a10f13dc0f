//! `huntsman completions`: a completion script for a shell.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::{Exit, Outcome};

pub(crate) fn run(shell: Shell) -> Outcome {
    // The script is generated in memory first: the generator panics if its writer fails, and the reader may close
    // stdout early.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "huntsman", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(Exit::Done)
}
