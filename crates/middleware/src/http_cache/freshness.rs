//! The rules of RFC 9111 for storing and using a response in a private cache, without state or clock.
//!
//! `s-maxage` and `private` are for shared caches and are ignored.

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use huntsman_crawler::{Request, Response, Settings};

use super::entry::Entry;

use crate::http_cache::HttpCacheSettings;

/// A year in seconds, the longest lifetime (RFC 2616, 14.21).
const YEAR: f64 = 365.0 * 86_400.0;
/// Part of the age of the content for which a response is fresh if it has no explicit lifetime (RFC 9111, 4.2.2).
const HEURISTIC: f64 = 0.1;

/// The rules, with the exceptions of the settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Freshness {
    always_store: bool,
    /// Directives of responses that are ignored, in lower case.
    ignored: Vec<String>,
}

/// `Cache-Control` by directive; the first of a name counts.
#[derive(Debug, Default)]
struct Directives(Vec<(String, Option<String>)>);

impl Directives {
    fn of(headers: &HeaderMap, ignored: &[String]) -> Self {
        let mut found = Self::default();
        for value in headers.get_all(header::CACHE_CONTROL) {
            for part in String::from_utf8_lossy(value.as_bytes()).split(',') {
                let (name, value) = match part.split_once('=') {
                    Some((name, value)) => (name, Some(value.trim().trim_matches('"').to_owned())),
                    None => (part, None),
                };
                let name = name.trim().to_ascii_lowercase();
                if !name.is_empty() && !ignored.contains(&name) && !found.has(&name) {
                    found.0.push((name, value));
                }
            }
        }
        found
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// The seconds of a directive; an invalid number is 0, because an unreadable value must not make a response fresh.
    fn seconds(&self, name: &str) -> Option<f64> {
        let (_, value) = self.0.iter().find(|(known, _)| known == name)?;
        Some(value.as_deref().map_or(0.0, digits))
    }
}

/// A number of seconds; a negative or unreadable one is 0, and the maximum is a year.
fn digits(text: &str) -> f64 {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse::<f64>().unwrap_or(0.0).min(YEAR) } else { 0.0 }
}

/// Seconds since the epoch of a header with a date.
fn date(headers: &HeaderMap, name: HeaderName) -> Option<f64> {
    let time = httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok()?;
    Some(time.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs_f64())
}

impl Freshness {
    pub(crate) fn from_settings(settings: &Settings) -> Self {
        let own: HttpCacheSettings = settings.of_or_default();
        let ignored = &own.httpcache_ignore_response_cache_controls;
        Self {
            always_store: own.httpcache_always_store,
            ignored: ignored.iter().map(|name| name.trim().to_ascii_lowercase()).collect(),
        }
    }

    fn directives(&self, headers: &HeaderMap) -> Directives {
        Directives::of(headers, &self.ignored)
    }

    /// Whether the request permits its response to be stored, or taken from the store.
    pub(crate) fn applies_to(request: &Request) -> bool {
        matches!(request.method, Method::GET | Method::HEAD)
            && !Directives::of(&request.headers, &[]).has("no-store")
    }

    /// Whether a response may be stored.
    pub(crate) fn may_store(&self, response: &Response) -> bool {
        let headers = &response.headers;
        let directives = self.directives(headers);
        if directives.has("no-store") || response.status == 304 || varies_by_everything(headers) {
            return false;
        }
        self.always_store
            || directives.has("max-age")
            || headers.contains_key(header::EXPIRES)
            || match response.status.as_u16() {
                300 | 301 | 308 => true,
                200 | 203 | 401 => {
                    headers.contains_key(header::ETAG) || headers.contains_key(header::LAST_MODIFIED)
                }
                _ => false,
            }
    }

    /// Whether a stored response may be used for a request without revalidation, `now` being seconds since the epoch.
    pub(crate) fn is_fresh(&self, request: &Request, entry: &Entry, now: f64) -> bool {
        let answered = self.directives(&entry.headers);
        let asked = Directives::of(&request.headers, &[]);
        if answered.has("no-cache") || asked.has("no-cache") {
            return false;
        }
        let stored = entry.stored.0 as f64 / 1e6;
        let date = date(&entry.headers, header::DATE).unwrap_or(stored);
        let lifetime = self.lifetime(entry, &answered, date);
        let lifetime = asked.seconds("max-age").map_or(lifetime, |most| lifetime.min(most));
        let told = entry.headers.get(header::AGE).and_then(|age| age.to_str().ok());
        let age = (now - date).max(told.map_or(0.0, |age| digits(age.trim())));
        if age < lifetime {
            return true;
        }
        if !asked.has("max-stale") || answered.has("must-revalidate") {
            return false;
        }
        match asked.0.iter().find(|(name, _)| name == "max-stale") {
            // `max-stale` without a value accepts any staleness.
            Some((_, None)) => true,
            _ => age < lifetime + asked.seconds("max-stale").unwrap_or(0.0),
        }
    }

    /// Seconds after its date for which a response is fresh.
    fn lifetime(&self, entry: &Entry, answered: &Directives, date_of_answer: f64) -> f64 {
        let headers = &entry.headers;
        if let Some(seconds) = answered.seconds("max-age") {
            return seconds;
        }
        if headers.contains_key(header::EXPIRES) {
            // An unreadable date is in the past (RFC 9111, 5.3).
            return date(headers, header::EXPIRES).map_or(0.0, |end| (end - date_of_answer).max(0.0));
        }
        match date(headers, header::LAST_MODIFIED) {
            Some(changed) if changed <= date_of_answer => (date_of_answer - changed) * HEURISTIC,
            _ if matches!(entry.status.as_u16(), 300 | 301 | 308) => YEAR,
            _ => 0.0,
        }
    }

    /// Whether a stale response must not be used when the server cannot be reached.
    pub(crate) fn must_revalidate(&self, entry: &Entry) -> bool {
        self.directives(&entry.headers).has("must-revalidate")
    }
}

/// The request headers that revalidate a stored response.
pub(crate) fn validators(headers: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
    [(header::ETAG, header::IF_NONE_MATCH), (header::LAST_MODIFIED, header::IF_MODIFIED_SINCE)]
        .into_iter()
        .filter_map(|(have, ask)| Some((ask, headers.get(have)?.clone())))
        .collect()
}

/// Updates a stored response with the headers of a 304 (RFC 9111, 3.2); headers that describe the body stay.
pub(crate) fn refresh(entry: &mut Entry, not_modified: &HeaderMap) {
    const KEPT: [HeaderName; 6] = [
        header::CONTENT_ENCODING,
        header::CONTENT_LENGTH,
        header::CONTENT_RANGE,
        header::CONTENT_TYPE,
        header::CONNECTION,
        header::TRANSFER_ENCODING,
    ];
    // The age of the validated response is outdated; without a new date, the time of storing counts.
    entry.headers.remove(header::AGE);
    entry.headers.remove(header::DATE);
    for name in not_modified.keys().filter(|name| !KEPT.contains(name)) {
        entry.headers.remove(name);
        for value in not_modified.get_all(name) {
            entry.headers.append(name, value.clone());
        }
    }
}

/// The request headers by which a response varies, sorted, in lower case.
pub(crate) fn varies_by(headers: &HeaderMap) -> Vec<String> {
    let mut names: Vec<String> = headers
        .get_all(header::VARY)
        .iter()
        .flat_map(|value| {
            let value = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
            value.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>()
        })
        .filter(|name| !name.is_empty())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn varies_by_everything(headers: &HeaderMap) -> bool {
    varies_by(headers).iter().any(|name| name == "*")
}

#[cfg(test)]
mod tests;
