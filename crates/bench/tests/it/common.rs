//! Drives the real binary.

use std::path::Path;
use std::process::Command;

use huntsman_testkit::command::command;
pub(crate) use huntsman_testkit::command::{Said, run};

/// The command in this working directory.
pub(crate) fn huntsman_bench(directory: &Path) -> Command {
    command(env!("CARGO_BIN_EXE_huntsman-bench"), directory)
}
