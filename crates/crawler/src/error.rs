//! The error of the crate: an opaque type with a message for people and the cause.

use std::error::Error as StdError;
use std::fmt;

use tokio::task::JoinError;

use crate::secrets::redacted;

/// A `Result` with [`Error`] as the default error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

type Cause = Box<dyn StdError + Send + Sync + 'static>;

/// An error of a crawl, of a component, or of user code.
///
/// Every standard error converts into it with `?`, so callbacks can use any library. For that reason it does not
/// implement `std::error::Error` itself; [`Error::into_boxed`] converts it into a type that does.
pub struct Error(Box<Inner>);

struct Inner {
    message: Option<String>,
    cause: Option<Cause>,
    usage: bool,
}

impl Error {
    /// An error with a message, which should name the operation, its object, and what to do about it.
    pub fn msg(message: impl Into<String>) -> Self {
        Self(Box::new(Inner { message: Some(message.into()), cause: None, usage: false }))
    }

    /// An error of the caller's input (a setting, a URL, a flag) rather than of the crawl.
    pub fn usage(message: impl Into<String>) -> Self {
        Self(Box::new(Inner { message: Some(message.into()), cause: None, usage: true }))
    }

    /// Prepends a description of the operation that failed.
    pub fn context(self, doing: impl Into<String>) -> Self {
        let usage = self.0.usage;
        Self(Box::new(Inner { message: Some(doing.into()), cause: Some(self.into_boxed()), usage }))
    }

    /// Whether the caller's input is at fault.
    pub fn is_usage(&self) -> bool {
        self.0.usage
    }

    /// The cause, if it is of this type.
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        let mut cause: Option<&(dyn StdError + 'static)> = self.0.cause.as_deref().map(|c| c as _);
        while let Some(error) = cause {
            if let Some(found) = error.downcast_ref::<E>() {
                return Some(found);
            }
            cause = error.source();
        }
        None
    }

    /// The error as a boxed standard error.
    pub fn into_boxed(self) -> Box<dyn StdError + Send + Sync + 'static> {
        Box::new(Boxed(self))
    }

    pub(crate) fn invalid_url(url: &str, cause: &url::ParseError) -> Self {
        let shown: String = redacted(url).chars().take(200).flat_map(char::escape_debug).collect();
        Self::usage(format!(
            "invalid URL \"{shown}\": {cause}; expected an absolute URL such as https://example.org/"
        ))
    }

    pub(crate) fn stored_request(field: &str, what: &str) -> Self {
        Self::msg(format!("reading a stored request: {field}: {what}"))
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(cause: E) -> Self {
        Self(Box::new(Inner { message: None, cause: Some(Box::new(cause)), usage: false }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = String::new();
        if let Some(message) = &self.0.message {
            f.write_str(message)?;
            told.clone_from(message);
        }
        let mut cause: Option<&(dyn StdError + 'static)> = self.0.cause.as_deref().map(|c| c as _);
        while let Some(error) = cause {
            let text = message_of(error);
            // Some errors already include the text of their cause.
            if !told.ends_with(&text) {
                write!(f, "{}{text}", if told.is_empty() { "" } else { ": " })?;
                told = text;
            }
            // A wrapped [`Error`] has already printed its chain of causes.
            cause = if error.is::<Boxed>() { None } else { error.source() };
        }
        Ok(())
    }
}

/// The text of an error. For a task that panicked it says only that, because the panic message is about the inside of
/// a library.
fn message_of(error: &(dyn StdError + 'static)) -> String {
    match error.downcast_ref::<JoinError>() {
        Some(ended) if ended.is_panic() => "its task panicked".to_owned(),
        _ => error.to_string(),
    }
}

/// Prints the same text as `Display`, so that `fn main() -> Result<()>` prints a readable message.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

struct Boxed(Error);

impl fmt::Display for Boxed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Boxed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl StdError for Boxed {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.0.cause.as_deref().map(|c| c as _)
    }
}

/// The message of a panic.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Telling(std::io::Error);

    impl fmt::Display for Telling {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "making a file: {}", self.0)
        }
    }

    impl StdError for Telling {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            Some(&self.0)
        }
    }

    #[tokio::test]
    async fn the_text_of_a_panic_is_not_shown() {
        let ended = tokio::spawn(async { panic!("index 7 is odd") }).await.unwrap_err();
        assert!(ended.to_string().contains("index 7"));
        let error = Error::from(ended).context("writing the job");
        assert_eq!(error.to_string(), "writing the job: its task panicked");
    }

    #[test]
    fn each_cause_is_printed_once() {
        let error =
            Error::from(Telling(std::io::Error::other("no room"))).context("a.txt").context("the job");
        assert_eq!(error.to_string(), "the job: a.txt: making a file: no room");
        assert_eq!(Error::from(std::io::Error::other("no room")).to_string(), "no room");
        assert_eq!(
            Error::msg("no room").context("no room on the disk").to_string(),
            "no room on the disk: no room"
        );
        assert!(error.downcast_ref::<std::io::Error>().is_some());
    }
}
