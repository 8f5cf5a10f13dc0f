//! `huntsman pdf-text`: prints the text of one PDF file, in a process of its own that may fail.

// For tests: attempts operations that the sandbox must prevent.
#[allow(clippy::disallowed_methods)]
mod attempts;

use std::io::{self, Read, Write};

use huntsman::sweep::pdf_child;

use crate::exit::{Exit, Failure, Outcome};

pub(crate) fn run(attempts: bool, facts: bool) -> Outcome {
    pdf_child::limit();
    let mut pdf = Vec::new();
    io::stdin().lock().read_to_end(&mut pdf)?;
    if attempts {
        io::stdout().write_all(attempts::tell(&String::from_utf8_lossy(&pdf)).as_bytes())?;
        return Ok(Exit::Done);
    }
    let write = |output| {
        if facts { pdf_child::write_facts(&pdf, output) } else { pdf_child::write_text(&pdf, output) }
    };
    write(io::stdout().lock()).map_err(|error| Failure::crawl(error.to_string()))?;
    Ok(Exit::Done)
}
