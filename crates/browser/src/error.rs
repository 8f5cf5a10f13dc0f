//! Why a page was not rendered.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a page was not rendered, or no browser could be set up.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// No browser is installed, or none is at the path of the settings.
    NotFound {
        /// The path of the settings, if there is one.
        path: Option<PathBuf>,
    },
    /// The browser cannot have its sandbox here.
    Sandbox {
        /// What stands in the way.
        reason: String,
    },
    /// The browser does not start, without having been killed.
    Start {
        /// The program.
        program: PathBuf,
        /// What it wrote, or what the system said.
        reason: String,
    },
    /// The browser or the process of the page ended, or does not answer. The page may be rendered again.
    Crashed {
        /// What was seen of it.
        reason: String,
    },
    /// A step of the page failed.
    Step {
        /// Its number, from 1 on.
        number: usize,
        /// Why.
        reason: String,
    },
    /// There is no page at this address: its document was refused, is a download, or has no content.
    NoDocument {
        /// The reason of the refusal, or how the browser calls it.
        reason: String,
    },
    /// The time of the page was over before there was a document.
    Timeout {
        /// The limit.
        after: Duration,
    },
    /// What was asked for makes no sense, such as a selector that is none.
    Invalid {
        /// What is wrong.
        reason: String,
    },
    /// The browser was closed.
    Closed,
    /// A folder or a socket that it needs cannot be made.
    Io {
        /// What was being done.
        doing: &'static str,
        /// The cause.
        source: io::Error,
    },
}

impl Error {
    /// Whether the fault is that of the browser, so that the page may be tried again.
    pub fn is_crash(&self) -> bool {
        matches!(self, Self::Crashed { .. })
    }

    pub(crate) fn crashed(reason: impl Into<String>) -> Self {
        Self::Crashed { reason: reason.into() }
    }

    pub(crate) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { path: Some(path) } => {
                write!(f, "there is no browser at {}; the Debian package chromium-headless-shell or chromium has one", path.display())
            }
            Self::NotFound { path: None } => {
                f.write_str("no browser is installed; install the Debian package chromium-headless-shell or chromium, or name the path of one")
            }
            Self::Sandbox { reason } => {
                write!(f, "the browser cannot have its sandbox: {reason}; run as another user, or switch the sandbox off if you trust the pages")
            }
            Self::Start { program, reason } => write!(f, "{} does not start: {reason}", program.display()),
            Self::Crashed { reason } => write!(f, "the browser crashed: {reason}"),
            Self::Step { number, reason } => write!(f, "step {number}: {reason}"),
            Self::NoDocument { reason } => write!(f, "there is no document: {reason}"),
            Self::Timeout { after } => write!(f, "there was no document within {} s", after.as_secs_f64()),
            Self::Invalid { reason } => f.write_str(reason),
            Self::Closed => f.write_str("the browser was closed"),
            Self::Io { doing, .. } => write!(f, "{doing}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
