//! Messages of the command, and text for people.

use std::io::{self, Write};

pub use huntsman_output::render::{
    Style, Table, count, counted, duration, escape, escape_document, escape_json, shorten,
};

/// Prints a message of the command itself on stderr. If stderr is gone, the message is lost.
pub fn say(message: &str) {
    let _ = writeln!(io::stderr(), "{message}");
}

/// Prints a warning on stderr.
pub fn warn(message: &str) {
    say(&format!("{} {}", Style::stderr().yellow("warning:"), escape(message)));
}
