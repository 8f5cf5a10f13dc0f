//! `huntsman cache`: lists and reads the entries of an HTTP cache.

mod args;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use huntsman::files::Replacement;
use huntsman::middleware::{CacheUsage, HttpCacheDirectory, StoredResponse, UrlPattern, WarcExport};
use huntsman::{DecodeLimits, Timestamp, decode_body, human_bytes};
use serde_json::{Map, Value, json};
use url::Url;

use crate::exit::{Exit, Failure, Outcome};
use crate::render::{Style, counted, escape, escape_document, escape_json, say, warn};

pub(crate) use args::CacheCommand;

use args::CacheGetArgs;

pub(crate) fn run(what: CacheCommand) -> Outcome {
    match what {
        CacheCommand::Ls { dir, pattern, json } => ls(&dir, pattern.as_deref(), json),
        CacheCommand::Get(args) => get(&args),
        CacheCommand::Rm { dir, url, older_than, .. } => rm(&dir, url.as_deref(), older_than),
        CacheCommand::ExportWarc { dir, pattern, out } => export_warc(&dir, pattern.as_deref(), &out),
    }
}

/// A directory without a cache is reported as a usage error: the user named the wrong one.
fn require(dir: &Path) -> Outcome<()> {
    if dir.join("format.json").is_file() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{}: there is no HTTP cache; name the directory of the setting httpcache_dir",
        escape(&dir.to_string_lossy())
    )))
}

fn read(dir: &Path) -> Outcome<HttpCacheDirectory> {
    require(dir)?;
    Ok(HttpCacheDirectory::read(dir)?)
}

fn pattern_of(pattern: Option<&str>) -> Outcome<impl Fn(&StoredResponse) -> bool> {
    let pattern = pattern.map(UrlPattern::parse).transpose()?;
    Ok(move |response: &StoredResponse| {
        pattern.as_ref().is_none_or(|pattern| pattern.matches(response.url()))
    })
}

/// Calls `visit` with the responses that match, until it fails. Returns the number of damaged ones.
fn for_each(
    cache: &HttpCacheDirectory,
    matches: impl Fn(&StoredResponse) -> bool,
    mut visit: impl FnMut(&StoredResponse) -> io::Result<()>,
) -> Outcome<u64> {
    let (mut damaged, mut result) = (0, Ok(()));
    cache.each(|response| {
        match response {
            None => damaged += 1,
            Some(response) if matches(&response) => result = visit(&response),
            Some(_) => {}
        }
        result.is_ok()
    })?;
    result?;
    Ok(damaged)
}

fn warn_of_damaged(damaged: u64) {
    if damaged > 0 {
        warn(&format!(
            "{} cannot be read; a crawl fetches and stores them again",
            counted(damaged, "damaged response")
        ));
    }
}

fn summary(usage: CacheUsage) -> String {
    format!("{}, {}", counted(usage.responses, "response"), human_bytes(usage.bytes))
}

fn ls(dir: &Path, pattern: Option<&str>, as_json: bool) -> Outcome {
    let matches = pattern_of(pattern)?;
    let cache = read(dir)?;
    let style = Style::stdout();
    let mut out = BufWriter::new(io::stdout().lock());
    let mut shown = CacheUsage::default();
    let damaged = for_each(&cache, matches, |response| {
        shown.responses += 1;
        shown.bytes += response.stored_bytes();
        if as_json {
            writeln!(out, "{}", escape_json(&json_of(response).to_string()))
        } else {
            out.write_all(line_of(response, style).as_bytes())
        }
    })?;
    out.flush()?;
    let all = cache.usage()?;
    let of_all =
        if shown.responses == all.responses { String::new() } else { format!(" of {}", summary(all)) };
    say(&format!("{}{of_all}", summary(shown)));
    warn_of_damaged(damaged);
    Ok(Exit::Done)
}

fn content_type(response: &StoredResponse) -> Option<String> {
    let value = response.headers().get(http::header::CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn json_of(response: &StoredResponse) -> Value {
    let varies: Map<String, Value> =
        response.varies_by().iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    json!({
        "url": response.url().as_str(),
        "method": response.method().map(http::Method::as_str),
        "status": response.status().as_u16(),
        "content_type": content_type(response),
        "stored": response.stored().to_rfc3339(),
        "used": response.used().map(Timestamp::to_rfc3339),
        "bytes": response.body_length(),
        "stored_bytes": response.stored_bytes(),
        "varies_by": varies,
        "key": response.key(),
    })
}

/// The columns have fixed widths, because the rows are not all known when the first one is printed.
fn line_of(response: &StoredResponse, style: Style) -> String {
    let stored = response.stored().to_rfc3339();
    let stored = stored.split('.').next().unwrap_or_default();
    let method = response.method().map_or("?", http::Method::as_str);
    let size = human_bytes(response.body_length());
    let varies: Vec<String> = response
        .varies_by()
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.as_deref().unwrap_or("-")))
        .collect();
    let varies = if varies.is_empty() {
        String::new()
    } else {
        style.dim(&format!("  [{}]", escape(&varies.join("; "))))
    };
    let status = response.status().as_u16();
    format!("{stored}Z  {status}  {size:>9}  {method:<4}  {}{varies}\n", escape(response.url().as_str()))
}

fn get(args: &CacheGetArgs) -> Outcome {
    let url = huntsman::parse_web_url(&args.url)?;
    let method = match &args.method {
        Some(method) => Some(
            method
                .to_ascii_uppercase()
                .parse()
                .map_err(|_| Failure::usage(format!("--method {}: it is no method", escape(method))))?,
        ),
        None => None,
    };
    let cache = read(&args.dir)?;
    let found = cache.find(&url, method.as_ref())?;
    let at = usize::try_from(args.variant - 1).unwrap_or(usize::MAX);
    let Some(response) = found.get(at) else {
        let there = match found.len() {
            0 => String::new(),
            number => format!("; there are {number} responses for it"),
        };
        return Err(Failure::crawl(format!(
            "{} is not stored in {}{there}",
            escape(url.as_str()),
            escape(&args.dir.to_string_lossy())
        )));
    };
    if found.len() > 1 {
        say(&format!("{} of {} responses, newest first; --variant N chooses:", args.variant, found.len()));
        found.iter().for_each(|response| say(line_of(response, Style::stderr()).trim_end()));
    }
    let output = if args.headers { headers_of(response) } else { body_of(response, args.raw)? };
    let mut stdout = io::stdout().lock();
    if stdout.is_terminal() {
        stdout.write_all(escape_document(&String::from_utf8_lossy(&output)).as_bytes())?;
    } else {
        stdout.write_all(&output)?;
    }
    stdout.flush()?;
    Ok(Exit::Done)
}

fn headers_of(response: &StoredResponse) -> Vec<u8> {
    let status = response.status();
    let reason = status.canonical_reason().unwrap_or_default();
    let mut out = format!("{:?} {} {reason}\n", response.version(), status.as_u16()).into_bytes();
    for (name, value) in response.headers() {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.push(b'\n');
    }
    out
}

fn body_of(response: &StoredResponse, is_raw: bool) -> Outcome<Vec<u8>> {
    let body = response.body()?;
    if is_raw {
        return Ok(body.into());
    }
    // The body comes from a server, so it may unpack to any size.
    let limits = DecodeLimits::of(&huntsman::Settings::default());
    match decode_body(response.headers(), &body, limits) {
        Ok(Some(decoded)) if !decoded.unknown => Ok(decoded.body.into()),
        Ok(_) => Ok(body.into()),
        Err(error) => Err(Failure::crawl(format!(
            "the body cannot be decoded: {error}; --raw prints it as it was received"
        ))),
    }
}

fn rm(dir: &Path, url: Option<&str>, older_than: Option<Duration>) -> Outcome {
    let url: Option<Url> = url.map(huntsman::parse_web_url).transpose()?;
    require(dir)?;
    let mut cache = HttpCacheDirectory::open(dir)?;
    let now = Timestamp::wall();
    let removed = cache.remove(|response| match (response, &url, older_than) {
        (Some(response), Some(url), _) => response.is_of(url),
        (Some(response), None, Some(age)) => now.since(response.stored()) > age,
        // Damaged entries have neither a URL nor a time that can be trusted.
        (None, Some(_), _) | (None, _, Some(_)) => false,
        (_, None, None) => true,
    })?;
    let left = cache.usage()?;
    cache.close()?;
    match &url {
        Some(url) if removed.responses == 0 => Err(Failure::crawl(format!(
            "{} is not stored in {}",
            escape(url.as_str()),
            escape(&dir.to_string_lossy())
        ))),
        _ => {
            say(&format!("removed {}; {} left", summary(removed), summary(left)));
            Ok(Exit::Done)
        }
    }
}

fn export_warc(dir: &Path, pattern: Option<&str>, out: &Path) -> Outcome {
    let matches = pattern_of(pattern)?;
    let cache = read(dir)?;
    if out == Path::new("-") {
        let stdout = io::stdout();
        if stdout.is_terminal() {
            return Err(Failure::usage("--out -: a terminal shows no archives; name a file"));
        }
        return export(&cache, matches, BufWriter::new(stdout.lock()), "stdout").map(|_| Exit::Done);
    }
    let named =
        |error: &io::Error| Failure::usage(format!("--out {}: {error}", escape(&out.to_string_lossy())));
    if out.try_exists().map_err(|error| named(&error))? {
        return Err(Failure::usage(format!(
            "--out {}: the file exists; name another one",
            escape(&out.to_string_lossy())
        )));
    }
    let name = out.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // The file appears under its name only when it is complete.
    let mut file = Replacement::new(out).map_err(|error| named(&error))?;
    let written = export(&cache, matches, &mut file, &name).map(drop);
    let done = written.and_then(|()| Ok(file.finish()?));
    done.map_err(|failure| failure.context(format!("writing {}", escape(&out.to_string_lossy()))))?;
    Ok(Exit::Done)
}

fn export<W: Write>(
    cache: &HttpCacheDirectory,
    matches: impl Fn(&StoredResponse) -> bool,
    out: W,
    name: &str,
) -> Outcome<W> {
    let software = concat!("huntsman/", env!("CARGO_PKG_VERSION"));
    let fields = [("software", software), ("format", "WARC File Format 1.1")];
    let mut warc = WarcExport::new(out, name, Timestamp::wall(), &fields)?;
    let (mut written, mut others, mut unreadable) = (0u64, 0u64, 0u64);
    let damaged = for_each(cache, matches, |response| {
        let Ok(body) = response.body() else {
            unreadable += 1;
            return Ok(());
        };
        let count = if warc.response(response, &body)? { &mut written } else { &mut others };
        *count += 1;
        Ok(())
    })?;
    let out = warc.finish()?;
    let left_out = if others == 0 {
        String::new()
    } else {
        format!("; {} to other methods than GET left out", counted(others, "response"))
    };
    say(&format!("wrote {}{left_out}", counted(written, "response")));
    warn_of_damaged(damaged + unreadable);
    Ok(out)
}
