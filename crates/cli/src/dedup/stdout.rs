//! Lines on stdout.

use std::io::{self, IsTerminal, Write};

use crate::render::escape_json;

/// Writes whole lines of JSON to stdout, with control characters escaped if stdout is a terminal.
#[derive(Debug)]
pub(crate) struct Stdout {
    is_terminal: bool,
}

impl Stdout {
    pub(crate) fn new() -> Self {
        Self { is_terminal: io::stdout().is_terminal() }
    }
}

impl Write for Stdout {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let mut stdout = io::stdout().lock();
        match self.is_terminal {
            true => stdout.write_all(escape_json(&String::from_utf8_lossy(lines)).as_bytes())?,
            false => stdout.write_all(lines)?,
        }
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().lock().flush()
    }
}
