//! How the command ends: exit codes, and the error that carries one.

use std::fmt;
use std::io;
use std::process::ExitCode;

use huntsman::Error;

/// The exit codes of all commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The work is done, whatever single pages did.
    Done = 0,
    /// The crawl failed: a seed that cannot be fetched, a store that is damaged, a full disk.
    Crawl = 1,
    /// The command line, a setting or a file that it names is wrong; nothing was done.
    Usage = 2,
    /// Stopped by a limit, and `--fail-on-limit` was given.
    Limit = 3,
    /// Stopped by a signal.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command could not do its work: what, where, and what to do about it.
#[derive(Debug)]
pub struct Failure {
    /// How the command ends.
    pub exit: Exit,
    /// What is told on stderr.
    pub message: String,
    /// The reader of stdout went away: it had enough, and there is nothing to complain about.
    pub is_broken_pipe: bool,
}

/// Result of a command.
pub type Outcome<T = Exit> = Result<T, Failure>;

impl Failure {
    /// The input is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into(), is_broken_pipe: false }
    }

    /// The work failed.
    pub fn crawl(message: impl Into<String>) -> Self {
        Self { exit: Exit::Crawl, message: message.into(), is_broken_pipe: false }
    }

    /// Puts what was being done in front.
    pub fn context(mut self, doing: impl fmt::Display) -> Self {
        self.message = format!("{doing}: {}", self.message);
        self
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = if error.is_usage() { Exit::Usage } else { Exit::Crawl };
        Self { exit, message: error.to_string(), is_broken_pipe: false }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let is_broken_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        Self { exit: Exit::Crawl, message: error.to_string(), is_broken_pipe }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::from(io::Error::from(error))
    }
}
