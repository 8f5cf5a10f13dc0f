//! What a check of links accepts, leaves out and remembers.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use huntsman_crawler::{Error, Result, Settings, check_time};
use huntsman_middleware::{LinkSettings, UrlPattern};
use url::Url;

/// Ranges of status codes: `200-299`, `2xx`, `404`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusRanges(Vec<RangeInclusive<u16>>);

impl StatusRanges {
    /// Reads ranges, which may also be written as in Rust (`200..=299`).
    ///
    /// # Errors
    /// A part is no range of status codes; the error names it.
    pub fn parse(parts: &[String]) -> Result<Self> {
        let ranges =
            parts.iter().flat_map(|part| part.split(',')).map(str::trim).filter(|part| !part.is_empty());
        ranges.map(range).collect::<Result<_>>().map(Self)
    }

    /// Whether a status is in one of the ranges.
    pub fn has(&self, status: u16) -> bool {
        self.0.iter().any(|range| range.contains(&status))
    }
}

fn range(part: &str) -> Result<RangeInclusive<u16>> {
    let wrong = || {
        Error::usage(format!("\"{part}\": use status codes and ranges of them, such as 200-299, 2xx or 404"))
    };
    let code = |text: &str| {
        let is_code = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|code| is_code && (100..=999).contains(code)).ok_or_else(wrong)
    };
    if let Some(class) = part.strip_suffix("xx") {
        let first: u16 = code(&format!("{class}00"))?;
        return Ok(first..=first + 99);
    }
    let (first, last) = part.split_once("..=").or_else(|| part.split_once('-')).unwrap_or((part, part));
    let range = code(first)?..=code(last)?;
    if range.is_empty() { Err(wrong()) } else { Ok(range) }
}

/// What is accepted of some URLs.
#[derive(Debug)]
struct HostRule {
    urls: UrlPattern,
    accept: Option<StatusRanges>,
    skip: bool,
}

/// What a [`LinkCheck`](super::LinkCheck) accepts, leaves out and remembers.
#[derive(Debug)]
pub struct LinkOptions {
    accept: StatusRanges,
    exclude: Vec<UrlPattern>,
    rules: Vec<HostRule>,
    /// Whether fragments have to lead to an id or a heading.
    pub(crate) fragments: bool,
    /// Whether e-mail addresses are judged by their form.
    pub(crate) mail: bool,
    pub(crate) max_age: Duration,
    pub(crate) base: Option<Url>,
    pub(crate) root: Option<PathBuf>,
    pub(crate) cache: Option<PathBuf>,
}

impl LinkOptions {
    /// The options that the settings `links_...` name.
    ///
    /// # Errors
    /// A range or a pattern is not valid; the error names it.
    pub fn from_settings(settings: &Settings) -> Result<Self> {
        let own: LinkSettings = settings.of()?;
        check_time("links_max_age", own.links_max_age)?;
        let pattern = |text: &String| {
            UrlPattern::parse(text).map_err(|error| Error::usage(format!("setting links_exclude: {error}")))
        };
        let rule = |rule: &huntsman_middleware::LinkRule| -> Result<HostRule> {
            Ok(HostRule {
                urls: UrlPattern::parse(&rule.url)
                    .map_err(|error| Error::usage(format!("setting links_rules: {error}")))?,
                accept: (!rule.accept.is_empty()).then(|| StatusRanges::parse(&rule.accept)).transpose()?,
                skip: rule.skip,
            })
        };
        Ok(Self {
            accept: StatusRanges::parse(&own.links_accept)
                .map_err(|error| Error::usage(format!("setting links_accept: {error}")))?,
            exclude: own.links_exclude.iter().map(pattern).collect::<Result<_>>()?,
            rules: own.links_rules.iter().map(rule).collect::<Result<_>>()?,
            fragments: own.links_fragments,
            mail: own.links_mail,
            max_age: Duration::from_secs_f64(own.links_max_age),
            base: None,
            root: None,
            cache: None,
        })
    }

    /// Resolves relative addresses of files and of standard input by this URL, and not to files.
    pub fn base(mut self, base: Option<Url>) -> Self {
        self.base = base;
        self
    }

    /// Names the folder that addresses with a leading slash begin at.
    pub fn root_dir(mut self, root: Option<PathBuf>) -> Self {
        self.root = root;
        self
    }

    /// Keeps good answers in this file, so that they are not asked for again before the setting `links_max_age` has passed.
    pub fn cache(mut self, file: Option<PathBuf>) -> Self {
        self.cache = file;
        self
    }

    /// Whether a URL is left out.
    pub(crate) fn is_excluded(&self, url: &Url) -> bool {
        let is_skipped = self.rules.iter().find(|rule| rule.urls.matches(url)).is_some_and(|rule| rule.skip);
        is_skipped || self.exclude.iter().any(|pattern| pattern.matches(url))
    }

    /// Whether a status is a good answer of a URL. The first rule that matches the URL decides.
    pub(crate) fn accepts(&self, url: &Url, status: u16) -> bool {
        let own = self.rules.iter().find(|rule| rule.urls.matches(url)).and_then(|rule| rule.accept.as_ref());
        own.unwrap_or(&self.accept).has(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(text: &str) -> Result<StatusRanges> {
        StatusRanges::parse(&[text.to_owned()])
    }

    #[test]
    fn status_codes_are_written_in_several_ways() {
        let all = ranges("200-204, 3xx,404 ,500..=502").unwrap();
        for (status, is_there) in
            [(199, false), (204, true), (205, false), (399, true), (404, true), (502, true), (503, false)]
        {
            assert_eq!(all.has(status), is_there, "{status}");
        }
    }

    #[test]
    fn what_is_no_range_is_named() {
        for wrong in ["20", "2x", "abc", "299-200", "1000", "-200", "200-"] {
            let error = ranges(wrong).unwrap_err().to_string();
            assert!(error.contains(wrong) && error.contains("200-299"), "{wrong}: {error}");
        }
    }
}
