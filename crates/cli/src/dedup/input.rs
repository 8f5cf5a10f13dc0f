//! Where documents come from.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::record::{Body, Raw, Where};
use crate::exit::{Failure, Outcome};
use crate::render::escape;

/// One of the things that are read.
#[derive(Debug, PartialEq)]
pub(crate) enum Source {
    /// JSON lines on stdin.
    Stdin,
    /// A file of JSON lines, or one document.
    File(PathBuf),
    /// A folder of either.
    Folder(PathBuf),
}

/// The sources that were named. Those that are not there are told before anything is done.
pub(crate) fn sources(inputs: &[String]) -> Outcome<Vec<Source>> {
    let source = |input: &String| {
        if input == "-" {
            return Ok(Source::Stdin);
        }
        if input.starts_with("s3://") {
            return Err(Failure::usage(format!(
                "{}: this build does not read s3://; copy it to a folder, or pipe it into `-`",
                escape(input)
            )));
        }
        let path = PathBuf::from(input);
        let there = fs::metadata(&path);
        match there {
            Ok(found) if found.is_dir() => Ok(Source::Folder(path)),
            Ok(_) => Ok(Source::File(path)),
            Err(error) => Err(Failure::usage(format!("{}: {error}", escape(input)))),
        }
    };
    inputs.iter().map(source).collect()
}

/// Takes documents; says whether to go on.
pub(crate) type Each<'a> = &'a mut dyn FnMut(Raw) -> ControlFlow<()>;

/// Reads all documents of a source in order: files of a folder by name, lines as they stand.
///
/// # Errors
/// What cannot be read at all, after all that can be read was given.
pub(crate) fn read(source: &Source, max_document: u64, each: Each<'_>) -> Result<ControlFlow<()>, String> {
    match source {
        Source::Stdin => lines(io::stdin().lock(), &"stdin".into(), max_document, each),
        Source::File(path) => match document_kind(path) {
            Some(is_html) => {
                let name = path.file_name().unwrap_or_default();
                Ok(whole(path, name.to_str(), is_html, max_document, each))
            }
            None => file(path, max_document, each),
        },
        Source::Folder(folder) => {
            let mut failures = Vec::new();
            let flow = walk(folder, folder, max_document, each, &mut failures);
            if failures.is_empty() { Ok(flow) } else { Err(failures.join("; ")) }
        }
    }
}

/// Whether a file is a document by its name, and HTML.
fn document_kind(path: &Path) -> Option<bool> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    match extension.as_str() {
        "txt" => Some(false),
        "html" | "htm" | "xhtml" => Some(true),
        _ => None,
    }
}

fn is_lines(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    [".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson"].iter().any(|end| name.ends_with(end))
}

/// Links to folders are not followed: they may lead in circles.
fn walk(
    root: &Path,
    folder: &Path,
    max_document: u64,
    each: Each<'_>,
    failures: &mut Vec<String>,
) -> ControlFlow<()> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = match entries {
        Ok(entries) => entries,
        Err(error) => {
            failures.push(format!("{}: {error}", shown(folder)));
            return ControlFlow::Continue(());
        }
    };
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(root, &path, max_document, each, failures)?;
        } else if let Some(is_html) = document_kind(&path) {
            let relative =
                path.strip_prefix(root).unwrap_or(&path).to_str().map(|path| path.replace('\\', "/"));
            whole(&path, relative.as_deref(), is_html, max_document, each)?;
        } else if is_lines(&path) {
            match file(&path, max_document, each) {
                Ok(flow) => flow?,
                Err(failure) => failures.push(failure),
            }
        }
    }
    ControlFlow::Continue(())
}

/// A file that is a document; it costs no more than itself if it cannot be read.
fn whole(path: &Path, id: Option<&str>, is_html: bool, max_document: u64, each: Each<'_>) -> ControlFlow<()> {
    let body = match (id, bytes_of(path, max_document)) {
        (None, _) => Body::Unreadable("the name is not UTF-8, and so no id; rename the file".to_owned()),
        (_, Err(message)) => Body::Unreadable(message),
        (Some(id), Ok(bytes)) => Body::File { path: id.to_owned(), is_html, bytes },
    };
    each(Raw { place: Where { source: shown(path), line: None }, body })
}

fn bytes_of(path: &Path, max_document: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(max_document + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > max_document { Err(too_long(max_document)) } else { Ok(bytes) }
}

fn file(path: &Path, max_document: u64, each: Each<'_>) -> Result<ControlFlow<()>, String> {
    let name = shown(path);
    let file = File::open(path).map_err(|error| format!("{name}: {error}"))?;
    lines(BufReader::with_capacity(1 << 16, file), &name, max_document, each)
}

fn shown(path: &Path) -> Arc<str> {
    path.to_string_lossy().into()
}

fn too_long(max_document: u64) -> String {
    format!("longer than {max_document} bytes; raise --max-document if that is right")
}

/// Lines, packed or not: the first bytes tell.
fn lines(
    mut reader: impl BufRead,
    name: &Arc<str>,
    max_document: u64,
    each: Each<'_>,
) -> Result<ControlFlow<()>, String> {
    let head = reader.fill_buf().map_err(|error| format!("{name}: {error}"))?;
    if head.starts_with(b"\x1f\x8b") {
        let unpacked = flate2::bufread::MultiGzDecoder::new(reader);
        plain_lines(BufReader::with_capacity(1 << 16, unpacked), name, max_document, each)
    } else if head.starts_with(b"\x28\xb5\x2f\xfd") {
        let unpacked = zstd::Decoder::with_buffer(reader).map_err(|error| format!("{name}: {error}"))?;
        plain_lines(BufReader::with_capacity(1 << 16, unpacked), name, max_document, each)
    } else {
        plain_lines(reader, name, max_document, each)
    }
}

fn plain_lines(
    mut reader: impl BufRead,
    name: &Arc<str>,
    max_document: u64,
    each: Each<'_>,
) -> Result<ControlFlow<()>, String> {
    let mut number = 0;
    loop {
        let mut line = Vec::new();
        number += 1;
        let broken = |error: io::Error| {
            format!("{name}:{number}: {error}; what stands before it was read, what is behind it is lost")
        };
        if (&mut reader).take(max_document + 1).read_until(b'\n', &mut line).map_err(broken)? == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        let place = Where { source: Arc::clone(name), line: Some(number) };
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() as u64 > max_document {
            drop(line);
            reader.skip_until(b'\n').map_err(broken)?;
            let body = Body::Unreadable(too_long(max_document));
            if each(Raw { place, body }).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            continue;
        }
        if number == 1 && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        if each(Raw { place, body: Body::Line(line) }).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
}
