//! Reads the text of PDF files in a separate process.

use std::ffi::OsString;
use std::fmt;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

/// Reads the text of PDF files.
pub trait PdfText: fmt::Debug + Send + Sync {
    /// The text of a file, page after page. Blocks.
    ///
    /// # Errors
    /// The reason why there is no text.
    fn text(&self, pdf: &[u8]) -> Result<String, PdfError>;
}

/// Why a PDF file has no text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PdfError {
    /// The reader could not be started.
    NotStarted(String),
    /// The reader did not finish in time.
    Late(Duration),
    /// The reader gave up: the file is damaged, encrypted, or asks for more memory than it may have.
    Failed,
    /// The file has no text, as with scanned pages.
    NoText,
}

/// Reads PDF files with a program that gets the file on stdin and prints the text, in UTF-8.
///
/// Readers of PDF fail in ways that error handling cannot catch: they take all memory, never end, or abort. In a
/// separate process that only costs a process, which is killed. The program should limit its own memory and give up
/// access to files and sockets (`huntsman pdf-text` does). Of the environment it gets only `PATH`, so that a malicious
/// file that takes over its reader finds no tokens there.
///
/// The order of the text is that of the file's instructions, so columns stay apart if the program that wrote the file
/// wrote them one after the other, as most do. At most two files are read at once in this process; others wait. A word
/// that was hyphenated at the end of a line is joined.
#[derive(Clone, Debug)]
pub struct PdfProcess {
    program: PathBuf,
    args: Vec<OsString>,
    timeout: Duration,
    max_text: u64,
}

impl PdfProcess {
    /// Reads files with a program and its arguments, within 20 seconds and 20 MiB of text per file.
    pub fn new(program: impl Into<PathBuf>, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self { program: program.into(), args, timeout: Duration::from_secs(20), max_text: 20 << 20 }
    }

    /// Sets the time limit per file.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum bytes of text that are read; the rest is left out.
    pub fn max_text(mut self, bytes: u64) -> Self {
        self.max_text = bytes;
        self
    }

    fn run(&self, mut child: Child, pdf: &[u8]) -> Result<Vec<u8>, PdfError> {
        let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(PdfError::NotStarted("it has no stdin or stdout".to_owned()));
        };
        let (send, receive) = mpsc::channel();
        let max_text = self.max_text;
        let reader = thread::spawn(move || {
            let mut text = Vec::new();
            let read = stdout.take(max_text).read_to_end(&mut text);
            let _ = send.send(read.map(|_| text));
        });
        let ended = thread::scope(|scope| {
            // Ends at the latest when the process does.
            scope.spawn(move || stdin.write_all(pdf));
            let ended = receive.recv_timeout(self.timeout);
            if ended.is_err() {
                let _ = child.kill();
            }
            ended
        });
        let text = match ended {
            Ok(Ok(text)) => text,
            Ok(Err(_)) => Vec::new(),
            Err(_) => {
                let _ = (child.wait(), reader.join());
                return Err(PdfError::Late(self.timeout));
            }
        };
        let is_whole = (text.len() as u64) < self.max_text;
        if !is_whole {
            let _ = child.kill();
        }
        let is_done = child.wait().is_ok_and(|status| status.success());
        let _ = reader.join();
        // Text that was read before an error is better than none, as in the reference.
        if is_done || !text.is_empty() { Ok(text) } else { Err(PdfError::Failed) }
    }
}

/// Number of files that this process reads at once. The program limits the memory for each, a GiB for `huntsman
/// pdf-text`.
const AT_ONCE: usize = 2;

/// Number of files that are being read now.
static READING: Mutex<usize> = Mutex::new(0);
static DONE: Condvar = Condvar::new();

/// The permission to read a file, until it is dropped.
struct ReadPermit;

impl ReadPermit {
    fn take() -> Self {
        let reading = READING.lock().unwrap_or_else(PoisonError::into_inner);
        let free = DONE.wait_while(reading, |reading| *reading >= AT_ONCE);
        *free.unwrap_or_else(PoisonError::into_inner) += 1;
        Self
    }
}

impl Drop for ReadPermit {
    fn drop(&mut self) {
        *READING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        DONE.notify_one();
    }
}

impl PdfText for PdfProcess {
    fn text(&self, pdf: &[u8]) -> Result<String, PdfError> {
        let _permit = ReadPermit::take();
        let mut command = Command::new(&self.program);
        command.args(&self.args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        let child = command
            .spawn()
            .map_err(|error| PdfError::NotStarted(format!("{}: {error}", self.program.display())))?;
        let text = self.run(child, pdf)?;
        let text = joined(&String::from_utf8_lossy(&text));
        if text.trim().is_empty() { Err(PdfError::NoText) } else { Ok(text) }
    }
}

/// Joins words that were hyphenated at the end of a line: a letter and a hyphen before the break, a small letter after
/// it.
fn joined(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let stem = line.trim_end().strip_suffix(['-', '\u{ad}', '\u{2010}']);
        let next = lines.peek().and_then(|next| next.trim_start().chars().next());
        match stem {
            Some(stem) if stem.ends_with(char::is_alphabetic) && next.is_some_and(char::is_lowercase) => {
                out.push_str(stem);
                // The rest of the word is at the beginning of the next line.
                if let Some(next) = lines.peek_mut() {
                    *next = next.trim_start();
                }
            }
            _ => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

impl fmt::Display for PdfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PdfError::NotStarted(why) => write!(f, "the reader of PDF files could not be started: {why}"),
            PdfError::Late(time) => write!(f, "the PDF file was not read within {} s", time.as_secs_f64()),
            PdfError::Failed => f.write_str("the PDF file cannot be read: damaged, encrypted or too large"),
            PdfError::NoText => f.write_str("the PDF file has no text (scanned pages?)"),
        }
    }
}

impl std::error::Error for PdfError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parted_words_are_put_together_and_other_hyphens_stay() {
        let text = "a car-\npet of well-\n  known names, the X-\nRay and 3-\nfold -\nlist\nend-";
        assert_eq!(joined(text), "a carpet of wellknown names, the X-\nRay and 3-\nfold -\nlist\nend-\n");
    }

    #[cfg(unix)]
    #[test]
    fn a_reader_that_hangs_fails_or_floods_costs_itself_alone() {
        let shell = |script: &str| PdfProcess::new("sh", ["-c", script]).timeout(Duration::from_millis(300));
        assert_eq!(shell("cat").text(b"hello"), Ok("hello\n".to_owned()));
        assert_eq!(
            shell("exec sleep 60").text(&[0; 1 << 20]),
            Err(PdfError::Late(Duration::from_millis(300)))
        );
        assert_eq!(shell("exit 3").text(b"x"), Err(PdfError::Failed));
        assert_eq!(shell("kill -ABRT $$").text(b"x"), Err(PdfError::Failed));
        assert_eq!(shell("cat > /dev/null").text(b"x"), Err(PdfError::NoText));
        assert_eq!(shell("echo start; kill -ABRT $$").text(b"x"), Ok("start\n".to_owned()));
        let flood = shell("exec yes").max_text(1_000).timeout(Duration::from_secs(20)).text(b"x");
        assert_eq!(flood.map(|text| text.len()), Ok(1_000));
        let missing = PdfProcess::new("/nothing/there", [""]).text(b"x");
        assert!(matches!(missing, Err(PdfError::NotStarted(_))), "{missing:?}");
    }

    #[test]
    fn at_most_two_files_are_read_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let script = format!("cd {}; touch $$; ls | wc -l; sleep 0.05; rm $$", directory.path().display());
        let reader = PdfProcess::new("sh", ["-c", &script]);
        let most = thread::scope(|scope| {
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(|| reader.text(b"x").unwrap())).collect();
            threads.into_iter().map(|done| done.join().unwrap().trim().parse::<usize>().unwrap()).max()
        });
        assert!(most <= Some(2), "{most:?}");
    }
}
