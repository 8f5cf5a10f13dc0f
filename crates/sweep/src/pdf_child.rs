//! The process that reads one PDF file, which may fail without harm to the process that started it.
//!
//! Readers of PDF fail in ways that error handling cannot catch: they take all memory, never end, or abort. A program
//! therefore starts a child for each file ([`PdfProcess`](crate::PdfProcess)); the child calls [`limit`], reads the
//! file from stdin, and prints its text with [`write_text`]. Any executable may be the child, such as the program
//! itself with a hidden argument.
//!
//! ```no_run
//! use std::io::{Read, stdin, stdout};
//!
//! use huntsman_sweep::pdf_child;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! pdf_child::limit();
//! let mut pdf = Vec::new();
//! stdin().lock().read_to_end(&mut pdf)?;
//! pdf_child::write_text(&pdf, stdout().lock())?;
//! # Ok(()) }
//! ```

mod columns;
mod facts;
mod sandbox;

use std::io::{BufWriter, Write};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fmt, panic, process, thread};

use huntsman_output::process::Resident;
use pdf_extract::{Document, OutputError};

use self::columns::Columns;

/// Limit on resident memory in bytes: ten times what a book of 15 MiB takes.
const MEMORY: u64 = 1 << 30;
/// Limit on the address space in bytes, used or not. An allocator may ask for 1 GiB at once; close to the limit even
/// the calls that end a process in good order can fail, and some of them wait forever.
const RESERVED: u64 = 8 << 30;
/// Limit on processor time in seconds, in case the parent does not kill the process.
const PROCESSOR: u64 = 60;
/// Time after which the process ends itself, in case it waits for something that never happens.
const TIME: Duration = Duration::from_secs(60);
/// Interval between checks of the memory: the process can touch some 50 MB in between.
const WATCH: Duration = Duration::from_millis(20);

/// Why the text of a PDF file could not be written: the file is damaged or encrypted, or the output failed.
#[derive(Debug)]
pub struct PdfTextError(String);

impl fmt::Display for PdfTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PdfTextError {}

/// The parts of the sandbox that this system does not support, by name, such as `Landlock`. Empty if it supports all.
pub fn missing_protections() -> Vec<&'static str> {
    sandbox::missing()
}

/// Limits this process for the rest of its life, and gives up its privileges.
///
/// Call it first, in a process that does nothing but read one PDF file. Afterwards the process can read and write the
/// files that are open, and compute: it can open no file and no socket, start no program and no thread (on Linux with
/// Landlock and seccomp; elsewhere as far as the system supports it). It aborts if it uses more than 1 GiB of memory or
/// takes longer than 60 s. Panics print nothing from now on.
pub fn limit() {
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
    // Nobody reads the message of a panic. Looking up function names in the remaining memory may fail again, and then
    // the process would wait for itself forever.
    panic::set_hook(Box::new(|_| {}));
}

/// Writes the text of a PDF file page after page, in UTF-8, while it is extracted: what was written before an error
/// remains. Prose in columns is written column by column, even if the file has the lines across columns.
///
/// # Errors
/// The file is damaged, or encrypted with a password; or the output fails. The library panics on many malformed files:
/// such a panic is an error as well.
pub fn write_text(pdf: &[u8], output: impl Write) -> Result<(), PdfTextError> {
    // The output is not used after a panic, except that the text so far is flushed.
    let extracted = panic::catch_unwind(panic::AssertUnwindSafe(|| extract(pdf, output)));
    match extracted {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(PdfTextError(error.to_string())),
        Err(_) => Err(PdfTextError("the file cannot be read".to_owned())),
    }
}

/// Writes the title of a PDF file and the addresses of its links, each in a line of its own, an empty line, and its text as [`write_text`] does. A
/// [`PdfFacts`](crate::PdfFacts) reads it.
///
/// # Errors
/// As for [`write_text`]; what was written before the error remains.
pub fn write_facts(pdf: &[u8], mut output: impl Write) -> Result<(), PdfTextError> {
    let found = panic::catch_unwind(|| load(pdf).map(|document| facts::of(&document)));
    let lines = match found {
        Ok(Ok(lines)) => lines,
        Ok(Err(error)) => return Err(PdfTextError(error.to_string())),
        Err(_) => Vec::new(),
    };
    let written =
        lines.iter().try_for_each(|line| writeln!(output, "{line}")).and_then(|()| writeln!(output));
    written.map_err(|error| PdfTextError(error.to_string()))?;
    write_text(pdf, output)
}

fn extract(pdf: &[u8], output: impl Write) -> Result<(), OutputError> {
    let document = load(pdf)?;
    pdf_extract::output_doc(&document, &mut Columns::new(BufWriter::new(output)))
}

fn load(pdf: &[u8]) -> Result<Document, OutputError> {
    let mut document = Document::load_mem(pdf)?;
    if document.is_encrypted() {
        // Files that everybody may read are encrypted with the empty password.
        document.decrypt("")?;
    }
    Ok(document)
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
