//! Start URLs as a user gives them: in a list, then in a file or on stdin. They are checked as far as possible before a crawl begins.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use bytes::Bytes;
use url::Url;

use crate::error::{Error, Result};
use crate::request::Request;
use crate::secrets::redacted;
use crate::start::{CsvColumn, Start};
use crate::terminal::escape;

/// Files up to this size are checked entirely before the crawl starts. In larger files and on stdin, lines that are
/// not URLs are found while crawling.
const CHECKED_WHOLE: u64 = 16 << 20;

/// Maximum number of bytes on stdin before the first URL.
const MAX_PREAMBLE: u64 = 1 << 20;

/// The start URLs of a crawl, as a user gives them: a list, and a file or stdin with one URL per line.
///
/// Blank lines and lines that begin with `#` are skipped. A file of up to 16 MiB is checked entirely; in larger files and on stdin, lines
/// that are not URLs are found while crawling.
#[derive(Debug)]
pub struct StartUrls {
    /// The first start URL, which names the crawl.
    pub first: Url,
    /// URLs of the list.
    given: Vec<Url>,
    start: Start,
    /// Whether the list has all start URLs, because there is no file.
    pub is_complete: bool,
}

impl StartUrls {
    /// Reads the start URLs of a list, then those of a file; `-` reads stdin.
    ///
    /// # Errors
    /// A URL cannot be crawled, the file cannot be read, or there is no start URL at all.
    pub fn of(urls: &[String], file: Option<&Path>) -> Result<Self> {
        let read = |path: &Path| if path == Path::new("-") { from_stdin() } else { from_file(path) };
        Self::with(urls, file.map(read).transpose()?)
    }

    /// Like [`of`](Self::of), with a CSV file whose column has the URLs ([`Start::csv`]).
    ///
    /// # Errors
    /// As for `of`; or there is no such column.
    pub fn of_csv(urls: &[String], file: &Path, column: &CsvColumn) -> Result<Self> {
        let listed = if file == Path::new("-") { csv_of_stdin(column) } else { csv_of_file(file, column) };
        Self::with(urls, Some(listed?))
    }

    fn with(urls: &[String], listed: Option<(Url, Start)>) -> Result<Self> {
        let given = urls.iter().map(|text| parse_web_url(text)).collect::<Result<Vec<Url>>>()?;
        let requests = given.clone().into_iter().map(|url| Ok(Request::get(url)));
        let Some((first, listed)) = listed else {
            let first = given
                .first()
                .cloned()
                .ok_or_else(|| Error::usage("no start URL: give <URL> or --seeds FILE"))?;
            return Ok(Self { first, given, start: Start::new(requests), is_complete: true });
        };
        let first = given.first().cloned().unwrap_or(first);
        Ok(Self { first, given, start: Start::new(requests.chain(listed)), is_complete: false })
    }

    /// Start URLs from a source of one's own, of which this URL is the first.
    pub fn listed(first: Url, start: Start) -> Self {
        Self { given: vec![first.clone()], first, start, is_complete: false }
    }

    /// No start URLs: a crawl that begins otherwise, with sitemaps for example, of which this URL is the first.
    pub fn none(first: Url) -> Self {
        Self { given: vec![first.clone()], first, start: Start::none(), is_complete: true }
    }

    /// The start URLs of the list.
    pub fn given(&self) -> &[Url] {
        &self.given
    }

    /// The start URLs as a source for the engine.
    pub fn into_start(self) -> Start {
        self.start
    }
}

/// Parses a URL that can be crawled: absolute, http or https, with a host. Its fragment is dropped.
///
/// # Errors
/// The text is no such URL.
pub fn parse_web_url(text: &str) -> Result<Url> {
    let mut url = Request::parse(text)?.url;
    url.set_fragment(None);
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Error::usage(format!(
            "cannot crawl \"{}\": only http and https URLs are fetched",
            escape(&redacted(text.trim()))
        )));
    }
    Ok(url)
}

fn line_url(line: &str) -> Option<&str> {
    Some(line.trim()).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The name of a file for messages, its first bytes, and the rest.
fn open(path: &Path) -> Result<(String, Vec<u8>, File)> {
    let shown = escape(&path.to_string_lossy()).into_owned();
    let reading = |error: io::Error| Error::usage(format!("reading the start URLs {shown}: {error}"));
    let mut file = File::open(path).map_err(reading)?;
    let mut text = Vec::new();
    (&mut file).take(CHECKED_WHOLE + 1).read_to_end(&mut text).map_err(reading)?;
    Ok((shown, text, file))
}

fn csv_of_file(path: &Path, column: &CsvColumn) -> Result<(Url, Start)> {
    let (shown, text, file) = open(path)?;
    let is_whole = text.len() as u64 <= CHECKED_WHOLE;
    let text = Bytes::from(text);
    let mut first = None;
    for request in Start::csv(Cursor::new(text.clone()), column.clone()) {
        match request.and_then(|request| parse_web_url(request.url.as_str())) {
            Ok(url) => drop(first.get_or_insert(url)),
            Err(error) if is_whole || first.is_none() => return Err(error.context(shown)),
            // The last row that was read may be cut; the crawl reads it whole.
            Err(_) => {}
        }
    }
    let first = first.ok_or_else(|| Error::usage(format!("{shown} has no start URL in that column")))?;
    Ok((first, Start::csv(Cursor::new(text).chain(file), column.clone())))
}

/// Reads stdin up to the first URL of a column; the rest is read while crawling.
fn csv_of_stdin(column: &CsvColumn) -> Result<(Url, Start)> {
    let (mut preamble, mut lines) = (Vec::new(), 0_u64);
    loop {
        let is_last = !read_line_of_stdin(&mut preamble)?;
        lines += 1;
        // Reading the beginning again only when it has doubled keeps the work linear.
        if !is_last && !lines.is_power_of_two() {
            continue;
        }
        let text = Bytes::from(preamble.clone());
        let first = match Start::csv(Cursor::new(text), column.clone()).next() {
            Some(Ok(request)) => {
                parse_web_url(request.url.as_str()).map_err(|error| error.context("stdin"))?
            }
            Some(Err(error)) if is_last => return Err(error.context("stdin")),
            None if is_last => return Err(Error::usage("stdin has no start URL in that column")),
            // The row may go on in the next line.
            Some(Err(_)) | None => continue,
        };
        return Ok((first, Start::csv(Cursor::new(preamble).chain(io::stdin()), column.clone())));
    }
}

/// Adds a line of stdin; whether there was one.
fn read_line_of_stdin(preamble: &mut Vec<u8>) -> Result<bool> {
    let room = MAX_PREAMBLE.saturating_sub(preamble.len() as u64);
    let read = io::stdin().lock().take(room).read_until(b'\n', preamble);
    let read = read.map_err(|error| Error::usage(format!("reading the start URLs from stdin: {error}")))?;
    Ok(read > 0)
}

fn from_file(path: &Path) -> Result<(Url, Start)> {
    let (shown, text, file) = open(path)?;
    let is_whole = text.len() as u64 <= CHECKED_WHOLE;
    let mut first = None;
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = String::from_utf8_lossy(line);
        let Some(line) = line_url(&line) else { continue };
        match parse_web_url(line) {
            Ok(url) => drop(first.get_or_insert(url)),
            Err(error) if is_whole => return Err(error.context(format!("{shown}, line {}", index + 1))),
            // The last line that was read may be cut; the crawl reads it whole.
            Err(_) => {}
        }
    }
    let first = first.ok_or_else(|| Error::usage(format!("{shown} has no start URL")))?;
    Ok((first, Start::lines(BufReader::new(Cursor::new(text).chain(file)))))
}

/// Reads stdin up to its first URL; the rest is read while crawling.
fn from_stdin() -> Result<(Url, Start)> {
    let mut preamble = Vec::new();
    loop {
        let start = preamble.len();
        if !read_line_of_stdin(&mut preamble)? {
            return Err(Error::usage("stdin has no start URL: give one a line"));
        }
        let line = String::from_utf8_lossy(&preamble[start..]).into_owned();
        if let Some(line) = line_url(&line) {
            let first = parse_web_url(line).map_err(|error| error.context("stdin"))?;
            return Ok((first, Start::lines(BufReader::new(Cursor::new(preamble).chain(io::stdin())))));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(content: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content.as_bytes()).unwrap();
        file
    }

    fn urls(seeds: StartUrls) -> Vec<String> {
        seeds.into_start().map(|request| request.unwrap().url.to_string()).collect()
    }

    #[test]
    fn urls_of_the_command_line_go_before_those_of_the_file() {
        let file = file("# comment\n\nhttp://b.example/\r\nhttp://c.example/\n");
        let seeds = StartUrls::of(&["http://a.example".into()], Some(file.path())).unwrap();
        assert_eq!(seeds.first.as_str(), "http://a.example/");
        assert_eq!(urls(seeds), ["http://a.example/", "http://b.example/", "http://c.example/"]);
        assert_eq!(StartUrls::of(&[], Some(file.path())).unwrap().first.as_str(), "http://b.example/");
    }

    #[test]
    fn a_column_of_csv_has_the_urls() {
        let file = file("name,page\nb,http://b.example/\nc,http://c.example/\n");
        let seeds = StartUrls::of_csv(&["http://a.example".into()], file.path(), &"page".into()).unwrap();
        assert_eq!(seeds.first.as_str(), "http://a.example/");
        assert_eq!(urls(seeds), ["http://a.example/", "http://b.example/", "http://c.example/"]);
        let seeds = StartUrls::of_csv(&[], file.path(), &2.into()).unwrap();
        assert_eq!(seeds.first.as_str(), "http://b.example/");
        let message = |column: CsvColumn| {
            let error = StartUrls::of_csv(&[], file.path(), &column).unwrap_err().to_string();
            assert!(error.contains(&*file.path().to_string_lossy()), "{error}");
            error
        };
        assert!(message("link".into()).contains("no column \"link\""));
        assert!(message(1.into()).contains("line 2"));
        assert!(message(3.into()).contains("column 3"));
    }

    #[test]
    fn what_cannot_be_crawled_is_named_with_its_place() {
        let message =
            |urls: &[String], file: Option<&Path>| StartUrls::of(urls, file).unwrap_err().to_string();
        assert!(message(&["example.org".into()], None).contains("example.org"));
        assert!(message(&["file:///etc/passwd".into()], None).contains("only http and https"));
        let bad = file("http://a.example/\nnot a url\n");
        assert!(message(&[], Some(bad.path())).contains("line 2"));
        assert!(message(&[], Some(file("# nothing\n").path())).contains("no start URL"));
        assert!(message(&[], Some(Path::new("/nonexistent/seeds"))).contains("/nonexistent/seeds"));
    }
}
