//! `huntsman pdf-text`: the text of one PDF file, in a process that may fail.

use std::io::{self, Read, Write};

use crate::exit::{Exit, Failure, Outcome};

/// Memory that the process may write to: ten times what a book of 15 MiB takes. (Its address space says nothing: the allocator reserves
/// much of it.)
const MEMORY: u64 = 1 << 30;
/// Seconds of processor time, should nobody kill it.
const PROCESSOR: u64 = 60;

pub(crate) fn run() -> Outcome {
    limit();
    let mut pdf = Vec::new();
    io::stdin().lock().read_to_end(&mut pdf)?;
    // The crate panics on much that is wrong with a file.
    let text = std::panic::catch_unwind(|| pdf_extract::extract_text_from_mem(&pdf));
    match text {
        Ok(Ok(text)) => {
            io::stdout().lock().write_all(text.as_bytes())?;
            Ok(Exit::Done)
        }
        Ok(Err(error)) => Err(Failure::crawl(error.to_string())),
        Err(_) => Err(Failure::crawl("the file cannot be read")),
    }
}

#[cfg(unix)]
fn limit() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    for (resource, most) in [(Resource::Data, MEMORY), (Resource::Cpu, PROCESSOR), (Resource::Core, 0)] {
        // Where it cannot be limited, the one who started it ends it in time all the same.
        let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    }
}

#[cfg(not(unix))]
fn limit() {}
