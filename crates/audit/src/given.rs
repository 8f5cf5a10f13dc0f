//! Pages that are judged without a crawl: those of a file of JSON lines, or of an archive.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use huntsman_crawler::terminal::escape;
use huntsman_crawler::{Error, Page, Request, Response, Result, Settings, log};
use huntsman_html::ScanOptions;
use huntsman_warc::{Answer, Archives, CaptureKey, Captures, WarcReader, is_archive_name, is_wacz_name};
use serde::Deserialize;
use url::Url;

use crate::answer_record::record_of;
use crate::facts;
use crate::found::Found;
use crate::record::Answered;
use crate::rule::RuleSet;
use crate::segment::Kept;
use crate::spider::Judge;
use huntsman_disk::{Scratch, Spool};

/// A line of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    url: String,
    #[serde(default = "ok")]
    status: u16,
    headers: Option<BTreeMap<String, Values>>,
    #[serde(default)]
    html: String,
    elapsed_ms: Option<f64>,
}

/// The value of a header, or its values.
#[derive(Deserialize)]
#[serde(untagged)]
enum Values {
    One(String),
    Several(Vec<String>),
}

fn ok() -> u16 {
    200
}

/// Reads the pages of a file, and judges each of them alone.
pub(crate) fn read(path: &Path, settings: &Settings, rules: &RuleSet) -> Result<Found> {
    let judge = Judge::from_settings(settings, rules.clone())?;
    let scratch = Scratch::temporary();
    let kept = Kept::new(Spool::new(&scratch))?;
    let mut number = 0_u64;
    let mut lacks_headers = false;
    let mut judge_page = |page: &Page| {
        let mut answered = Answered::from(record_of(page));
        if answered.record.redirect.is_none() {
            let is_html = judge.judged(page, &mut answered, &|_| false);
            let _ = !is_html && judge.add_document(page, &mut answered);
        }
        judge.add_custom(page, &mut answered.record);
        number += 1;
        kept.answer(&answered)
    };
    let name = path.to_string_lossy();
    if is_archive_name(&name) || is_wacz_name(&name) {
        archived(path, settings.download_maxsize, &mut judge_page)?;
    } else {
        crate::earlier::each_line(path, &mut |given: Given| {
            lacks_headers |= given.headers.is_none();
            judge_page(&given.page()?)
        })?;
    }
    if number == 0 {
        return Err(Error::usage(format!("{} has no pages", path.display())));
    }
    let mut found = Found::kept(&kept, &scratch)?;
    let mut lacks: Vec<&[&str]> = vec![
        facts::OF_EXTERNAL,
        facts::OF_RESOURCES,
        facts::OF_SITEMAPS,
        facts::OF_LISTS,
        facts::OF_REQUESTS,
        facts::OF_WIRE,
    ];
    if lacks_headers {
        lacks.push(facts::OF_HEADERS);
    }
    found.not_judged.extend(lacks.into_iter().flatten().map(|code| (*code).to_owned()));
    Ok(found)
}

/// Passes on the last capture of each URL of an archive, in the order of their first records. robots.txt is no page.
fn archived(path: &Path, limit: u64, each: &mut dyn FnMut(&Page) -> Result<()>) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| Error::usage(escape(&error.to_string()).into_owned());
    let archives = Archives::named(&[path]).map_err(|error| failed(&error))?;
    let told =
        |file: &str, damage: &_| log::warn!("{}: {damage}; the rest of the file is used", escape(file));
    let captures = Captures::read(&archives, told).map_err(|error| failed(&error))?;
    let limit = if limit == 0 { u64::MAX } else { limit };
    let mut seen = HashSet::new();
    for file in archives.files() {
        let mut reader = WarcReader::new(file.open()?);
        loop {
            let head = match reader.next_head() {
                Ok(Some(head)) => head,
                Ok(None) => break,
                // It was told when the captures were read.
                Err(error) if error.is_damage() => continue,
                Err(error) => return Err(failed(&error)),
            };
            let is_answer = matches!(head.kind(), "response" | "revisit");
            let url = head.target().filter(|_| is_answer).and_then(|url| Url::parse(url).ok());
            let Some(url) = url.filter(|url| matches!(url.scheme(), "http" | "https")) else { continue };
            let key = CaptureKey::of_url(&url);
            if url.path() == "/robots.txt" || !seen.insert(key) {
                continue;
            }
            let Some(capture) = captures.nearest(key, None) else { continue };
            match captures.answer(capture, limit) {
                Ok(answer) => each(&page_of(url, &answer, limit))?,
                Err(error) => log::warn!("{}; the page is left out", escape(&error.to_string())),
            }
        }
    }
    Ok(())
}

fn page_of(url: Url, answer: &Answer, limit: u64) -> Page {
    let payload = &answer.payload;
    let status = payload.status().and_then(|status| StatusCode::from_u16(status).ok());
    // A body whose coding is not known is no text.
    let body = payload.decoded(limit).unwrap_or_default().into_owned();
    let mut response = Response::new(url.clone(), status.unwrap_or(StatusCode::OK), body);
    for (name, value) in payload.headers().filter(|(name, _)| !name.eq_ignore_ascii_case("content-encoding"))
    {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers.append(name, value);
        }
    }
    page(url, response)
}

/// A page with all that is judged of it.
fn page(url: Url, response: Response) -> Page {
    let options = ScanOptions { text: true, resources: true, audit: true, ..ScanOptions::links_only() };
    Page::with_options(Request::get(url), response, options)
}

impl Given {
    fn page(self) -> Result<Page> {
        let wrong = |what: String| Error::usage(format!("{}: {what}", self.url.escape_debug()));
        let url = Url::parse(&self.url).map_err(|error| wrong(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("is no http or https URL".to_owned()));
        }
        let status = StatusCode::from_u16(self.status).map_err(|error| wrong(error.to_string()))?;
        let mut headers = HeaderMap::new();
        for (name, values) in self.headers.into_iter().flatten() {
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
                Error::usage(format!("{url}: \"{}\" is no name of a header", name.escape_debug()))
            })?;
            let values = match values {
                Values::One(value) => vec![value],
                Values::Several(values) => values,
            };
            for value in values.iter().filter_map(|value| HeaderValue::from_str(value).ok()) {
                headers.append(key.clone(), value);
            }
        }
        let mut response = Response::new(url.clone(), status, self.html);
        response.headers = headers;
        response.timings.ttfb = huntsman_crawler::seconds(self.elapsed_ms.unwrap_or(0.0) / 1_000.0);
        Ok(page(url, response))
    }
}
