//! `huntsman pdf-text`: the text of one PDF file, in a process that may fail.

// It tries what is not to work.
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

/// Memory that the process may have: ten times what a book of 15 MiB takes.
const MEMORY: u64 = 1 << 30;
/// What it may write to, used or not. The allocator asks for 1 GiB at once; near the limit what ends a process in good order fails too, and
/// some wait for ever.
const RESERVED: u64 = 8 << 30;
/// Seconds of processor time, should nobody kill it.
const PROCESSOR: u64 = 60;
/// Seconds after which it ends itself, should it wait for something that never comes.
const TIME: Duration = Duration::from_secs(60);
/// How often memory is looked at: some 50 MB can be written to meanwhile.
const WATCH: Duration = Duration::from_millis(20);

pub(crate) fn run(attempts: bool) -> Outcome {
    limit();
    // What a panic prints is read by nobody, and to look up the names of functions in the memory that is left may fail again, which
    // waits for itself for ever.
    panic::set_hook(Box::new(|_| {}));
    let mut pdf = Vec::new();
    io::stdin().lock().read_to_end(&mut pdf)?;
    if attempts {
        io::stdout().write_all(attempts::tell(&String::from_utf8_lossy(&pdf)).as_bytes())?;
        return Ok(Exit::Done);
    }
    // The crate panics on much that is wrong with a file. What was printed until then is better than nothing.
    match panic::catch_unwind(|| print(&pdf)) {
        Ok(Ok(())) => Ok(Exit::Done),
        Ok(Err(error)) => Err(Failure::crawl(error.to_string())),
        Err(_) => Err(Failure::crawl("the file cannot be read")),
    }
}

/// Prints the text as it is found.
fn print(pdf: &[u8]) -> Result<(), OutputError> {
    let mut document = Document::load_mem(pdf)?;
    if document.is_encrypted() {
        // Files that may be read by everybody have the empty password.
        document.decrypt("")?;
    }
    pdf_extract::output_doc(&document, &mut Columns::new(BufWriter::new(io::stdout().lock())))
}

/// Limits memory and time, and gives up everything else.
fn limit() {
    // While there are files.
    let mut memory = Resident::open();
    sandbox::give_up_files();
    let (send, started) = mpsc::channel();
    // Without it, whoever started the process ends it in time.
    let watch = thread::Builder::new().spawn(move || {
        let start = Instant::now();
        let _ = send.send(());
        let mut is_small = || memory.as_mut().and_then(Resident::bytes).is_none_or(|bytes| bytes < MEMORY);
        while start.elapsed() < TIME && is_small() {
            thread::sleep(WATCH);
        }
        // In no order, as that may take memory or wait.
        process::abort();
    });
    if watch.is_ok() {
        // No thread can begin behind what follows.
        let _ = started.recv();
    }
    limit_resources();
    sandbox::give_up_the_rest();
}

#[cfg(unix)]
fn limit_resources() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    for (resource, most) in [(Resource::Data, RESERVED), (Resource::Cpu, PROCESSOR), (Resource::Core, 0)] {
        // Where it cannot be limited, the one who started it ends it in time all the same.
        let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    }
}

#[cfg(not(unix))]
fn limit_resources() {}
