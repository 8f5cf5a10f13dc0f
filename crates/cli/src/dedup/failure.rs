//! Maps errors of `huntsman-dedup` to exit codes and messages that name the command's flags; also shows its warnings.

use std::path::Path;

use huntsman::dedup::{Error, Source, Warning, Warnings};
use huntsman::detect::near::{IndexError, IndexErrorKind};

use crate::exit::{Exit, Failure, Outcome};
use crate::progress::Screen;
use crate::render::{Style, counted, escape};

/// Turns errors of documents and of indexes into failures of the command.
pub trait OrFailure<T> {
    /// The value, or the failure.
    ///
    /// # Errors
    /// The failure, with the exit code, the flag that is at fault, and what to do.
    fn or_failure(self) -> Outcome<T>;
}

impl<T> OrFailure<T> for Result<T, Error> {
    fn or_failure(self) -> Outcome<T> {
        self.map_err(of_documents)
    }
}

impl<T> OrFailure<T> for Result<T, IndexError> {
    fn or_failure(self) -> Outcome<T> {
        self.map_err(|error| failure(&error))
    }
}

fn of_documents(error: Error) -> Failure {
    let shown = |path: &Path| escape(&path.to_string_lossy()).into_owned();
    if let Error::Output(error) = error {
        return error.into();
    }
    match &error {
        Error::Input { name, message } => Failure::usage(format!("{}: {message}", escape(name))),
        Error::Unavailable { name, message } => Failure::crawl(format!("{}: {message}", escape(name))),
        Error::Manifest { path, message } => {
            Failure::usage(format!("--ids {}: {}", shown(path), escape(message)))
        }
        Error::Query { message } => Failure::usage(format!("--ids-sql: {}", escape(message))),
        Error::Flags { path, message } => Failure::usage(format!("--flags {}: {message}", shown(path))),
        Error::FlagsLocked { path } => Failure::crawl(format!(
            "--flags {}: another process writes it; wait for its end, or name another file",
            shown(path)
        )),
        Error::NoIndex { path } => Failure::usage(format!(
            "--index {}: there is no index; `huntsman dedup add` and `build` make one",
            shown(path)
        )),
        Error::Index(error) => failure(error),
        other => Failure::crawl(escape(&other.to_string()).into_owned()),
    }
}

/// The failure of the command for an error of an index, with advice.
pub(crate) fn failure(error: &IndexError) -> Failure {
    let (exit, advice) = match error.kind() {
        IndexErrorKind::Input | IndexErrorKind::Identity => (Exit::Usage, ""),
        IndexErrorKind::Locked => (Exit::Crawl, "; wait for its end, then run the same command again"),
        IndexErrorKind::Unavailable => {
            (Exit::Crawl, "; nothing is lost: run the same command again when the server is back")
        }
        IndexErrorKind::Full => (Exit::Crawl, "; nothing is lost: run the same command again then"),
        _ => (Exit::Crawl, ""),
    };
    Failure { exit, message: format!("index {error}{advice}"), is_broken_pipe: false }
}

/// The named sources. A source that does not exist is reported before anything is done.
pub(crate) fn sources(inputs: &[String]) -> Outcome<Vec<Source>> {
    inputs.iter().map(|input| Source::find(input).or_failure()).collect()
}

/// Shows a message as a warning, above the progress line.
pub(crate) fn show(screen: &Screen, message: &str) {
    screen.line(&format!("{} {}\n", Style::stderr().yellow("warning:"), escape(message)));
}

/// A receiver of warnings that shows them on the screen.
pub(crate) fn told(screen: &Screen) -> Warnings {
    let screen = screen.clone();
    Warnings::new(move |warning| match warning {
        Warning::ForeignFlags { path, lines } => {
            let lines = counted(*lines, "line");
            show(
                &screen,
                &format!("{}: {lines} are not flags; they stay, and are not counted", path.display()),
            );
        }
        other => show(&screen, &other.to_string()),
    })
}
