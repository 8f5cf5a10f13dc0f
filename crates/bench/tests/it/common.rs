//! Drives the real binary.

use std::path::Path;
use std::process::{Command, Stdio};

/// The command, with an empty environment and working directory as far as the tests are concerned.
pub(crate) fn huntsman_bench(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_huntsman-bench"));
    let ours = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HUNTSMAN_"));
    for (name, _) in ours {
        command.env_remove(name);
    }
    command.current_dir(directory).stdin(Stdio::null()).env("NO_COLOR", "1");
    // This makes a panic visible in the output even if it is caught.
    command.env("RUST_BACKTRACE", "0");
    command
}

/// The output of a finished command.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the command to its end.
pub(crate) fn run(command: &mut Command) -> Said {
    let output = command.output().expect("the binary runs");
    let said = Said {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    };
    assert!(!said.stderr.contains("panicked"), "{}", said.stderr);
    said
}
