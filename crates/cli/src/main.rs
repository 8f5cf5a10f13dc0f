//! The `huntsman` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    huntsman_cli::huntsman()
}
