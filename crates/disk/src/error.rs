//! The error of the crate: what was being done to which file, and the cause.

use std::fmt;
use std::io;

/// A `Result` with [`Error`] as the default error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A file cannot be read or written, or is damaged. The message names the file and says what to do.
#[derive(Debug)]
pub struct Error {
    message: String,
    cause: Option<io::Error>,
}

impl Error {
    /// An error with a message, which names the file and says what to do.
    pub fn msg(message: impl Into<String>) -> Self {
        Self { message: message.into(), cause: None }
    }

    /// An error of the system while something was being done.
    pub fn io(doing: impl Into<String>, cause: io::Error) -> Self {
        Self { message: doing.into(), cause: Some(cause) }
    }

    /// The error of the system that is the cause.
    pub fn cause(&self) -> Option<&io::Error> {
        self.cause.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.cause.as_ref().map_or(Ok(()), |cause| write!(f, ": {cause}"))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}
