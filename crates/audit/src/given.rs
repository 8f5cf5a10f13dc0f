//! Pages that are judged without a crawl: those of a file of JSON lines.

use std::collections::BTreeMap;
use std::path::Path;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use huntsman_crawler::{Error, Page, Request, Response, Result, Settings};
use huntsman_html::ScanOptions;
use huntsman_middleware::AuditSettings;
use serde::Deserialize;
use url::Url;

use crate::answer_record::record_of;
use crate::facts;
use crate::found::Found;
use crate::record::Answered;
use crate::rule::RuleSet;
use crate::segment::Kept;
use crate::spider::{Judge, judged};
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
    let limits: AuditSettings = settings.of()?;
    let judge = Judge::from_settings(settings, rules.clone())?;
    let scratch = Scratch::temporary();
    let kept = Kept::new(Spool::new(&scratch))?;
    let mut number = 0_u64;
    let mut lacks_headers = false;
    crate::earlier::each_line(path, &mut |given: Given| {
        lacks_headers |= given.headers.is_none();
        let page = given.page()?;
        let mut answered = Answered::from(record_of(&page));
        if answered.record.redirect.is_none() {
            let is_html = judged(&page, &mut answered, &limits, rules);
            let _ = !is_html && judge.add_document(&page, &mut answered);
        }
        judge.add_custom(&page, &mut answered.record);
        number += 1;
        kept.answer(&answered)
    })?;
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
        let options = ScanOptions { text: true, resources: true, audit: true, ..ScanOptions::links_only() };
        Ok(Page::with_options(Request::get(url), response, options))
    }
}
