//! `huntsman pdf-text`: prints the text of one PDF file, in a process of its own that may fail.

// For tests: attempts operations that the sandbox must prevent.
#[allow(clippy::disallowed_methods)]
mod attempts;
mod columns;

use std::io::{self, BufWriter, Read, Write};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{panic, process, thread};

use pdf_extract::{Document, OutputError};

use self::columns::Columns;

use crate::exit::{Exit, Failure, Outcome};
use crate::process::Resident;
use crate::sandbox;

/// Limit on resident memory: ten times what a book of 15 MiB takes.
const MEMORY: u64 = 1 << 30;
/// Limit on the address space, used or not. The allocator asks for 1 GiB at once; close to the limit even the calls
/// that end a process in good order can fail, and some of them wait for ever.
const RESERVED: u64 = 8 << 30;
/// Limit on processor time in seconds, in case the parent does not kill the process.
const PROCESSOR: u64 = 60;
/// Time after which the process ends itself, in case it waits for something that never happens.
const TIME: Duration = Duration::from_secs(60);
/// Interval between checks of the memory: the process can touch some 50 MB in between.
const WATCH: Duration = Duration::from_millis(20);

pub(crate) fn run(attempts: bool) -> Outcome {
    limit();
    // Nobody reads what a panic prints. Looking up function names in the remaining memory may fail again, and then
    // the process waits for itself for ever.
    panic::set_hook(Box::new(|_| {}));
    let mut pdf = Vec::new();
    io::stdin().lock().read_to_end(&mut pdf)?;
    if attempts {
        io::stdout().write_all(attempts::tell(&String::from_utf8_lossy(&pdf)).as_bytes())?;
        return Ok(Exit::Done);
    }
    // The crate panics on many malformed files. The text that was printed until then is better than none.
    match panic::catch_unwind(|| print(&pdf)) {
        Ok(Ok(())) => Ok(Exit::Done),
        Ok(Err(error)) => Err(Failure::crawl(error.to_string())),
        Err(_) => Err(Failure::crawl("the file cannot be read")),
    }
}

/// Prints the text while it is being extracted.
fn print(pdf: &[u8]) -> Result<(), OutputError> {
    let mut document = Document::load_mem(pdf)?;
    if document.is_encrypted() {
        // Files that everybody may read are encrypted with the empty password.
        document.decrypt("")?;
    }
    pdf_extract::output_doc(&document, &mut Columns::new(BufWriter::new(io::stdout().lock())))
}

/// Limits memory and time, then gives up all privileges.
fn limit() {
    // This has to be opened while files can still be opened.
    let mut memory = Resident::open();
    sandbox::give_up_files();
    let (send, started) = mpsc::channel();
    // Without this thread, the parent process ends this one in time.
    let watch = thread::Builder::new().spawn(move || {
        let start = Instant::now();
        let _ = send.send(());
        let mut is_small = || memory.as_mut().and_then(Resident::bytes).is_none_or(|bytes| bytes < MEMORY);
        while start.elapsed() < TIME && is_small() {
            thread::sleep(WATCH);
        }
        // `abort` runs no cleanup, which could need memory or wait.
        process::abort();
    });
    if watch.is_ok() {
        // No thread can be started after the steps below.
        let _ = started.recv();
    }
    limit_resources();
    sandbox::give_up_the_rest();
}

#[cfg(unix)]
fn limit_resources() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    for (resource, most) in [(Resource::Data, RESERVED), (Resource::Cpu, PROCESSOR), (Resource::Core, 0)] {
        // If the limit cannot be set, the parent process ends this one in time all the same.
        let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    }
}

#[cfg(not(unix))]
fn limit_resources() {}
