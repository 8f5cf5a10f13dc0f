//! Exit codes of the command, and the error that carries one.

use std::fmt;
use std::io;
use std::process::ExitCode;

use huntsman_crawler::Error;

/// The exit codes of all commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The work is done, even if single pages failed.
    Done = 0,
    /// The crawl failed: for example, a seed cannot be fetched, a store is damaged, or the disk is full.
    Crawl = 1,
    /// The command line, a setting or a file named by it is wrong; nothing was done.
    Usage = 2,
    /// A limit stopped the crawl, and `--fail-on-limit` was given.
    Limit = 3,
    /// The crawl does not satisfy a rule of quality, such as the setting `min_items`.
    Quality = 10,
    /// A signal stopped the command.
    Interrupted = 130,
}

impl Exit {
    /// The worse of two exit codes, for a command that does several things: interrupted, wrong usage, failed, a rule of quality, a limit, done.
    pub fn or_worse(self, other: Self) -> Self {
        let badness = |exit: Self| match exit {
            Self::Done => 0,
            Self::Limit => 1,
            Self::Quality => 2,
            Self::Crawl => 3,
            Self::Usage => 4,
            Self::Interrupted => 5,
        };
        if badness(other) > badness(self) { other } else { self }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command failed: what went wrong, where, and what to do about it.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// The message that is printed on stderr.
    pub message: String,
    /// The reader of stdout closed it, having read enough: no message is printed.
    pub is_broken_pipe: bool,
}

/// Result of a command.
pub type Outcome<T = Exit> = Result<T, Failure>;

impl Failure {
    /// A failure because the input is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into(), is_broken_pipe: false }
    }

    /// A failure of the work itself.
    pub fn crawl(message: impl Into<String>) -> Self {
        Self { exit: Exit::Crawl, message: message.into(), is_broken_pipe: false }
    }

    /// Puts a description of the current step in front of the message.
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
