//! `warc get`: the capture of a URL.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use huntsman::warc::{CaptureKey, Captures, HttpHead, Moment};

use super::archives_of;
use super::args::WarcGetArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::render::{escape, escape_document, warn};

/// Greatest length of a body that is printed, in bytes.
const MAX_BODY: u64 = 1 << 30;

pub(super) fn get(args: &WarcGetArgs) -> Outcome {
    let (url, files) = args.files_and_url.split_last().expect("one is required");
    if files.is_empty() && args.index.is_none() {
        return Err(Failure::usage("name files or folders before the URL, or an index by --index"));
    }
    let key = CaptureKey::of_url(&huntsman::parse_web_url(url)?);
    let at = args.at.as_deref().map(moment).transpose()?;
    let named: Vec<PathBuf> = files.iter().map(PathBuf::from).chain(args.index.clone()).collect();
    let archives = archives_of(&named)?;
    let captures = Captures::read(&archives, |file, damage| warn(&format!("{}: {damage}", escape(file))));
    let failed = |error: &dyn std::fmt::Display| Failure::crawl(escape(&error.to_string()).into_owned());
    let captures = captures.map_err(|error| failed(&error))?;
    let Some(capture) = captures.nearest(key, at) else {
        return Err(Failure::crawl(format!("{}: no record of it is in these files", escape(url))));
    };
    let answer = captures.answer(capture, MAX_BODY).map_err(|error| failed(&error))?;
    let output = match (args.headers, answer.payload.http()) {
        (true, Some(http)) => head_of(http),
        (true, None) => Vec::new(),
        // A body whose coding is damaged or not known is printed as it is.
        (false, _) => match answer.payload.decoded(MAX_BODY) {
            Ok(body) => body.into_owned(),
            Err(_) => answer.payload.into_body(),
        },
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

fn head_of(http: &HttpHead) -> Vec<u8> {
    let mut head = format!("{}\r\n", http.start_line);
    for (name, value) in http.headers() {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}

fn moment(text: &str) -> Outcome<Moment> {
    Moment::parse(text).ok_or_else(|| {
        let what = "name a time of up to 14 digits, or one such as 2026-01-31T12:00:00Z";
        Failure::usage(format!("--at {}: {what}", escape(text)))
    })
}
