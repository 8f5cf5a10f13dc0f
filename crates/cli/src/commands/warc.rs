//! `huntsman warc`: lists, prints, checks, indexes and packs the records of WARC files.

mod args;
mod capture;
mod pack;

use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use huntsman::warc::{Archive, Archives, CdxjIndex, Check, HttpHead, ReadError, WarcReader};
use serde_json::json;

use crate::exit::{Exit, Failure, Outcome};
use crate::render::{counted, escape, escape_json, say, warn};

pub(crate) use args::WarcCommand;

/// Bytes of a block in which its HTTP head is looked for.
const HEAD: u64 = 64 << 10;

pub(crate) fn run(what: WarcCommand) -> Outcome {
    match what {
        WarcCommand::Ls { files, json } => ls(&files, json),
        WarcCommand::Get(args) => capture::get(&args),
        WarcCommand::Check { files } => check(&files),
        WarcCommand::Index { files, out } => index(&files, out.as_deref()),
        WarcCommand::Pack(args) => pack::pack(&args),
    }
}

/// The WARC files that are named, also those in WACZ files.
fn files_of(named: &[PathBuf]) -> Outcome<Vec<Archive>> {
    let archives = archives_of(named)?;
    Ok(archives.files().to_vec())
}

fn archives_of(named: &[PathBuf]) -> Outcome<Archives> {
    Archives::named(named).map_err(|error| {
        let message = escape(&error.to_string()).into_owned();
        if error.is_of_the_server() { Failure::crawl(message) } else { Failure::usage(message) }
    })
}

fn shown(path: &Path) -> String {
    escape(&path.to_string_lossy()).into_owned()
}

fn open(archive: &Archive) -> Outcome<WarcReader<Box<dyn Read + Send>>> {
    let bytes =
        archive.open().map_err(|error| Failure::usage(format!("{}: {error}", escape(archive.name()))))?;
    Ok(WarcReader::new(bytes))
}

/// Tells of damage, and fails for other errors.
fn tell(archive: &Archive, error: &ReadError, damaged: &mut u64) -> Outcome<()> {
    if !error.is_damage() {
        return Err(unread(archive, error));
    }
    *damaged += 1;
    warn(&format!("{}: {error}", escape(archive.name())));
    Ok(())
}

fn unread(archive: &Archive, error: &ReadError) -> Failure {
    Failure::crawl(format!("{}: {error}", escape(archive.name())))
}

fn exit_of(damaged: u64) -> Exit {
    if damaged == 0 { Exit::Done } else { Exit::Crawl }
}

fn ls(named: &[PathBuf], as_json: bool) -> Outcome {
    let mut out = BufWriter::new(io::stdout().lock());
    let (mut records, mut damaged) = (0u64, 0u64);
    let files = files_of(named)?;
    for file in &files {
        let mut reader = open(file)?;
        loop {
            match line_of(&mut reader, file, as_json) {
                Ok(Some(line)) => {
                    records += 1;
                    writeln!(out, "{line}")?;
                }
                Ok(None) => break,
                Err(error) => tell(file, &error, &mut damaged)?,
            }
        }
    }
    out.flush()?;
    say(&format!("{} in {}", counted(records, "record"), counted(files.len() as u64, "file")));
    Ok(exit_of(damaged))
}

fn line_of<R: Read>(
    reader: &mut WarcReader<R>,
    archive: &Archive,
    as_json: bool,
) -> Result<Option<String>, ReadError> {
    let Some(head) = reader.next_head()? else { return Ok(None) };
    let start = reader.block(HEAD)?.bytes;
    let Some(span) = reader.finish()? else { return Ok(None) };
    let is_http = head.get("Content-Type").is_some_and(|value| value.starts_with("application/http"));
    let http = if is_http { HttpHead::parse(&start) } else { None };
    let status = http.as_ref().and_then(HttpHead::status);
    let date = head.date().unwrap_or_default();
    Ok(Some(if as_json {
        let value = json!({
            "file": archive.name(),
            "offset": span.offset,
            "length": span.length,
            "type": head.kind(),
            "id": head.id(),
            "url": head.target(),
            "date": date,
            "status": status,
            "method": http.as_ref().and_then(HttpHead::method),
            "content_type": http.as_ref().and_then(|http| http.get("content-type")),
            "bytes": head.content_length(),
        });
        escape_json(&value.to_string()).into_owned()
    } else {
        let status = status.map_or_else(|| "-".to_owned(), |status| status.to_string());
        let what = head.target().or(head.get("WARC-Filename")).unwrap_or("-");
        let line = format!("{:>10}  {:<8}  {status:<3}  {date}  {what}", span.offset, head.kind());
        escape(&line).into_owned()
    }))
}

fn check(named: &[PathBuf]) -> Outcome {
    let mut check = Check::default();
    let files = files_of(named)?;
    for file in &files {
        check.file(file.name(), &mut open(file)?).map_err(|error| unread(file, &error))?;
    }
    check.finish();
    let mut out = BufWriter::new(io::stdout().lock());
    for finding in &check.findings {
        let kind = if finding.is_damage { "damaged" } else { "warning" };
        let line = format!("{kind}: {} at byte {}: {}", finding.file, finding.offset, finding.what);
        writeln!(out, "{}", escape(&line))?;
    }
    out.flush()?;
    let damaged = check.findings.iter().filter(|finding| finding.is_damage).count() as u64;
    let kinds: Vec<String> = check.records.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    say(&format!(
        "{} in {}, {} damaged",
        if kinds.is_empty() { "no records".to_owned() } else { escape(&kinds.join(", ")).into_owned() },
        counted(files.len() as u64, "file"),
        counted(damaged, "record")
    ));
    Ok(exit_of(damaged))
}

fn index(named: &[PathBuf], out: Option<&Path>) -> Outcome {
    let (mut index, mut damaged) = (CdxjIndex::default(), 0);
    for file in files_of(named)? {
        let found = index.add(&mut open(&file)?, file.file_name()).map_err(|error| unread(&file, &error))?;
        for error in found {
            tell(&file, &error, &mut damaged)?;
        }
    }
    let sorting = |error| Failure::crawl(format!("sorting the index: {error}"));
    let mut lines = index.lines().map_err(sorting)?;
    let mut write = |out: &mut dyn Write| lines.try_for_each(|line| writeln!(out, "{}", line?));
    match out {
        Some(path) => huntsman::files::replace(path, |file| write(file))
            .map_err(|error| Failure::usage(format!("{}: {error}", shown(path))))?,
        None => {
            let mut stdout = BufWriter::new(io::stdout().lock());
            write(&mut stdout)?;
            stdout.flush()?;
        }
    }
    Ok(exit_of(damaged))
}
