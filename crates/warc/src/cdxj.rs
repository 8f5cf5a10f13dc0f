//! Lines of a CDXJ index: where the capture of each URL is, in the form that players of archives read.

mod sorted;

use std::fmt::Write as _;
use std::io::Read;

use crate::digest::DigestKind;
use crate::error::ReadError;
use crate::head::RecordHead;
use crate::message::HttpHead;
use crate::posted::Posted;
use crate::reader::{Span, WarcReader};
use crate::surt::surt;

pub use sorted::CdxjIndex;

/// Bytes of a block that are kept for its head.
const KEPT: usize = 256 << 10;
/// Bytes of a request that are kept: if there are more, JSON is no whole JSON, and has no part in the key.
const KEPT_OF_REQUEST: usize = 16 << 20;

/// A record that may have a line.
struct Entry {
    head: RecordHead,
    http: Option<HttpHead>,
    /// The first bytes of the block.
    start: Vec<u8>,
    payload_digest: String,
    span: Span,
}

/// Passes the lines of a file to `line`, in the order of the records and without line ends. An index has the lines
/// of all files, sorted by bytes: [`CdxjIndex`].
///
/// Responses, revisits and resources have lines. A response to POST or PUT has the method and the body of its request in its key, by the
/// guideline of the IIPC. Returns what is damaged in the file.
///
/// # Errors
/// The file is of another format, or cannot be read.
pub fn index_file<R: Read>(
    reader: &mut WarcReader<R>,
    file_name: &str,
    mut line: impl FnMut(String),
) -> Result<Vec<ReadError>, ReadError> {
    let mut damaged = Vec::new();
    let mut before: Option<Entry> = None;
    loop {
        match next_entry(reader) {
            Ok(Some(entry)) => {
                let request = before.as_ref().and_then(|before| request_of(before, &entry));
                match (request, before.take()) {
                    (Some(true), Some(before)) => line(entry_line(&entry, Some(&before), file_name)),
                    (Some(false), Some(before)) => line(entry_line(&before, Some(&entry), file_name)),
                    (_, previous) => {
                        if let Some(previous) = previous {
                            unpaired(&previous, file_name, &mut line);
                        }
                        before = Some(entry);
                    }
                }
            }
            Ok(None) => break,
            Err(error) if error.is_damage() => damaged.push(error),
            Err(error) => return Err(error),
        }
    }
    if let Some(previous) = before {
        unpaired(&previous, file_name, &mut line);
    }
    Ok(damaged)
}

fn unpaired(entry: &Entry, file_name: &str, line: &mut impl FnMut(String)) {
    let is_about_others = entry.head.get("Content-Type") == Some("application/warc-fields");
    let has_line = match entry.head.kind() {
        "response" | "revisit" => true,
        "resource" | "metadata" => !is_about_others,
        _ => false,
    };
    if has_line {
        line(entry_line(entry, None, file_name));
    }
}

/// Whether two records that follow each other are a request and its response (true), or the other way round (false).
fn request_of(first: &Entry, second: &Entry) -> Option<bool> {
    let belongs = first.head.target() == second.head.target()
        && first.head.id().is_some()
        && second.head.get("WARC-Concurrent-To") == first.head.id();
    match (first.head.kind(), second.head.kind()) {
        ("request", "response") if belongs => Some(true),
        ("response", "request") if belongs => Some(false),
        _ => None,
    }
}

fn next_entry<R: Read>(reader: &mut WarcReader<R>) -> Result<Option<Entry>, ReadError> {
    let Some(head) = reader.next_head()? else { return Ok(None) };
    let is_http = head.get("Content-Type").is_some_and(|value| value.starts_with("application/http"))
        && head.target().is_some_and(|url| url.starts_with("http:") || url.starts_with("https:"));
    let told = head.get("WARC-Payload-Digest").map(str::to_owned);
    let kept = if head.kind() == "request" { KEPT_OF_REQUEST } else { KEPT };
    let mut start = Vec::new();
    let mut http: Option<Option<HttpHead>> = None;
    let mut hasher = told.is_none().then(|| crate::Hasher::new(DigestKind::Sha1));
    reader.each_part(|part| {
        let room = kept.saturating_sub(start.len());
        start.extend_from_slice(&part[..part.len().min(room)]);
        if let Some(hasher) = &mut hasher {
            match http {
                Some(_) => hasher.update(part),
                // The head is in what was read so far, or it is longer than heads are.
                None if start.len() >= KEPT || ends_head(&start) || !is_http => {
                    let parsed = if is_http { HttpHead::parse(&start) } else { None };
                    let length = parsed.as_ref().map_or(0, |http| http.length);
                    hasher.update(&start[length..]);
                    hasher.update(&part[part.len().min(room)..]);
                    http = Some(parsed);
                }
                None => {}
            }
        }
        true
    })?;
    let http = http.flatten().or_else(|| if is_http { HttpHead::parse(&start) } else { None });
    let Some(span) = reader.finish()? else { return Ok(None) };
    let payload_digest =
        told.unwrap_or_else(|| hasher.map_or_else(String::new, |hasher| hasher.finish().to_string()));
    Ok(Some(Entry { head, http, start, payload_digest, span }))
}

fn ends_head(start: &[u8]) -> bool {
    start.windows(4).any(|end| end == b"\r\n\r\n") || start.windows(2).any(|end| end == b"\n\n")
}

fn entry_line(entry: &Entry, request: Option<&Entry>, file_name: &str) -> String {
    let url = entry.head.target().unwrap_or_default();
    let posted = request.and_then(|request| {
        let http = request.http.as_ref()?;
        Posted::of(http, request.start.get(http.length..).unwrap_or_default(), url)
    });
    let key = match &posted {
        Some(posted) => surt(&posted.url),
        None => surt(url),
    };
    let timestamp = timestamp(entry.head.date().unwrap_or_default());
    let mut fields = vec![("url", url.to_owned())];
    fields.extend(mime(entry).map(|mime| ("mime", mime)));
    if matches!(entry.head.kind(), "response" | "revisit") {
        let status = entry.http.as_ref().and_then(|http| http.start_line.split_ascii_whitespace().nth(1));
        fields.extend(status.map(|status| ("status", status.to_owned())));
    }
    fields.push(("digest", entry.payload_digest.clone()));
    fields.push(("length", entry.span.length.to_string()));
    fields.push(("offset", entry.span.offset.to_string()));
    fields.push(("filename", file_name.to_owned()));
    let mut fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("\"{name}\": {}", json_text(value))).collect();
    if let Some(posted) = posted {
        let body = posted.query.map_or_else(|| "null".to_owned(), |query| json_text(&query));
        fields.push(format!("\"requestBody\": {body}, \"method\": {}", json_text(&posted.method)));
    }
    format!("{key} {timestamp} {{{}}}", fields.join(", "))
}

fn mime(entry: &Entry) -> Option<String> {
    let value = match entry.head.kind() {
        "revisit" => return Some("warc/revisit".to_owned()),
        "response" => entry.http.as_ref()?.get("content-type")?,
        _ => entry.head.get("Content-Type")?,
    };
    let end = value.find(|c: char| c == ';' || c.is_whitespace()).unwrap_or(value.len());
    Some(value[..end].to_owned())
}

/// The first 14 digits of a date.
fn timestamp(date: &str) -> String {
    date.chars().filter(char::is_ascii_digit).take(14).collect()
}

/// A text as JSON, in ASCII.
fn json_text(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}").expect("a text can be written to");
                }
            }
        }
    }
    out.push('"');
    out
}
