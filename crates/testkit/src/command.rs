//! A command of the workspace, run as a process whose environment does not change its behaviour.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The output of a command that has ended.
#[derive(Debug)]
pub struct Said {
    /// The exit code; `None` if a signal ended the command.
    pub code: Option<i32>,
    /// The standard output.
    pub stdout: String,
    /// The standard error.
    pub stderr: String,
}

/// The program in this working directory, without standard input and without variables that begin with `HUNTSMAN_`.
///
/// In an integration test its path is `env!("CARGO_BIN_EXE_NAME")`.
pub fn command(program: impl AsRef<Path>, directory: &Path) -> Command {
    let mut command = Command::new(program.as_ref());
    let ours = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HUNTSMAN_"));
    for (name, _) in ours {
        command.env_remove(name);
    }
    command.current_dir(directory).stdin(Stdio::null()).env("NO_COLOR", "1");
    // This makes a panic visible in the output even if it is caught.
    command.env("RUST_BACKTRACE", "0");
    command
}

/// Runs the command to its end.
///
/// # Panics
/// The command cannot be started, or [`said`] panics.
pub fn run(command: &mut Command) -> Said {
    said(command.output().expect("the program can be started"))
}

/// What a command wrote until its end.
///
/// # Panics
/// The output is not UTF-8, or tells of a panic of the command.
pub fn said(output: Output) -> Said {
    let said = Said {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    };
    assert!(!said.stderr.contains("panicked"), "{}", said.stderr);
    said
}
