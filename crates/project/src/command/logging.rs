//! The log of a command, written so that it does not tear the progress line.

use huntsman_crawler::Settings;
use huntsman_crawler::logging::{Log, LogCount};

use super::exit::Outcome;
use super::progress::Screen;

/// Starts the log as the settings say. It must be called once, before anything logs.
///
/// # Errors
/// `log_level` or `log_format` are not understood, or `log_file` cannot be opened.
pub fn start(settings: &Settings, screen: &Screen) -> Outcome<LogCount> {
    let screen = screen.clone();
    Ok(Log::new().lines_to(move |line| screen.line(line)).start(settings)?.count)
}
