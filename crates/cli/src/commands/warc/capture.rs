//! `warc get`: the capture of a URL.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use huntsman::warc::{HttpHead, RecordHead, WarcReader, unchunked};
use huntsman::{DecodeLimits, decode_body};

use super::args::WarcGetArgs;
use super::{files_of, open, shown, tell};
use crate::exit::{Exit, Failure, Outcome};
use crate::render::{escape, escape_document};

/// Greatest length of a block that is printed, in bytes.
const MAX_BLOCK: u64 = 1 << 30;

/// A record with the answer for a URL.
struct Capture {
    head: RecordHead,
    block: Vec<u8>,
}

pub(super) fn get(args: &WarcGetArgs) -> Outcome {
    let (url, files) = args.files_and_url.split_last().expect("two are required");
    let wanted = huntsman::parse_web_url(url)?;
    let wanted = wanted[..url::Position::AfterQuery].to_owned();
    let at = args.at.as_deref().map(digits_of).transpose()?;
    let files = files_of(&files.iter().map(PathBuf::from).collect::<Vec<_>>())?;
    let found = find(&files, |head| {
        let is_capture = matches!(head.kind(), "response" | "resource" | "revisit");
        (is_capture && head.target() == Some(&wanted)).then(|| distance(head, at))
    })?;
    let Some(capture) = found else {
        return Err(Failure::crawl(format!("{}: no record of it is in these files", escape(url))));
    };
    let is_http = capture.head.get("Content-Type").is_some_and(|value| value.starts_with("application/http"));
    let http = if is_http { HttpHead::parse(&capture.block) } else { None };
    let start = http.as_ref().map_or(0, |http| http.length);
    let output = if args.headers {
        capture.block[..start].to_vec()
    } else if capture.head.kind() == "revisit" {
        body_of(&original(&files, &capture.head)?)
    } else {
        body_of(&capture)
    };
    let mut stdout = io::stdout().lock();
    if stdout.is_terminal() {
        stdout.write_all(escape_document(&String::from_utf8_lossy(&output)).as_bytes())?;
    } else {
        stdout.write_all(&output)?;
    }
    stdout.flush()?;
    Ok(Exit::Done)
}

/// The record to which a revisit refers.
fn original(files: &[PathBuf], revisit: &RecordHead) -> Outcome<Capture> {
    let (id, url, date) = (
        revisit.get("WARC-Refers-To"),
        revisit.get("WARC-Refers-To-Target-URI"),
        revisit.get("WARC-Refers-To-Date"),
    );
    let found = find(files, |head| {
        let is_named = (id.is_some() && head.id() == id)
            || (url.is_some() && head.target() == url && head.date() == date);
        (is_named && matches!(head.kind(), "response" | "resource")).then_some(0)
    })?;
    found.ok_or_else(|| {
        let of = url.or(id).unwrap_or_default();
        Failure::crawl(format!(
            "the body is in an earlier record, of {}, which is not in these files",
            escape(of)
        ))
    })
}

/// The record for which `rank` gives the smallest number; the last one of several.
fn find(files: &[PathBuf], rank: impl Fn(&RecordHead) -> Option<i64>) -> Outcome<Option<Capture>> {
    let mut best: Option<(i64, Capture)> = None;
    let mut damaged = 0;
    for path in files {
        let mut reader = open(path)?;
        loop {
            match next(&mut reader, |head| {
                rank(head).filter(|rank| best.as_ref().is_none_or(|(best, _)| rank <= best))
            }) {
                Ok(Some(Some(found))) => best = Some(found),
                Ok(Some(None)) => {}
                Ok(None) => break,
                Err(error) => tell(path, &error, &mut damaged)
                    .map_err(|failure| failure.context(format!("reading {}", shown(path))))?,
            }
        }
    }
    Ok(best.map(|(_, capture)| capture))
}

type Next = Option<Option<(i64, Capture)>>;

fn next(
    reader: &mut WarcReader<File>,
    rank: impl Fn(&RecordHead) -> Option<i64>,
) -> Result<Next, huntsman::warc::ReadError> {
    let Some(head) = reader.next_head()? else { return Ok(None) };
    let Some(rank) = rank(&head) else { return Ok(Some(None)) };
    let block = reader.block(MAX_BLOCK)?.bytes;
    Ok(Some(Some((rank, Capture { head, block }))))
}

/// The body without its transfer and content codings, as far as it has those that are told.
fn body_of(capture: &Capture) -> Vec<u8> {
    let Some(http) = HttpHead::parse(&capture.block) else { return capture.block.clone() };
    let body = &capture.block[http.length..];
    let is_chunked = http.get("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
    let body = if is_chunked { unchunked(body).unwrap_or_else(|| body.to_vec()) } else { body.to_vec() };
    let mut headers = HeaderMap::new();
    for (name, value) in http.headers() {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value))
            && name == header::CONTENT_ENCODING
        {
            headers.append(name, value);
        }
    }
    // The body comes from a server, so it may unpack to any size.
    let limits = DecodeLimits::of(&huntsman::Settings::default());
    match decode_body(&headers, &body, limits) {
        Ok(Some(decoded)) if !decoded.unknown => decoded.body.into(),
        _ => body,
    }
}

/// A time as 14 digits.
fn digits_of(time: &str) -> Outcome<i64> {
    let digits: String =
        time.chars().filter(char::is_ascii_digit).chain(std::iter::repeat('0')).take(14).collect();
    let is_time = time.chars().filter(char::is_ascii_digit).count() >= 4
        && time.chars().all(|c| c.is_ascii_digit() || "-:.TZtz ".contains(c));
    match digits.parse() {
        Ok(digits) if is_time => Ok(digits),
        _ => Err(Failure::usage(format!(
            "--at {}: name a time of 14 digits, or one such as 2026-01-31T12:00:00Z",
            escape(time)
        ))),
    }
}

/// How far a record is from the time that is wanted; without one the last record is the nearest.
fn distance(head: &RecordHead, at: Option<i64>) -> i64 {
    let date = digits_of(head.date().unwrap_or("0000")).unwrap_or(0);
    match at {
        Some(at) => (date - at).abs(),
        None => -date,
    }
}
