//! The rules as tables: one row per clause.

use std::time::{Duration, UNIX_EPOCH};

use http::StatusCode;
use huntsman_crawler::Timestamp;
use url::Url;

use super::*;

use crate::http_cache::HttpCacheSettings;

const NOW: i64 = 1_700_000_000;

/// Headers of a row: `;` between them, and a signed number for a date is seconds from now.
fn headers(row: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in row.split(';').map(str::trim).filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ").expect("a row has names and values");
        let dated = ["date", "expires", "last-modified"].contains(&name);
        let value = match value.parse::<i64>() {
            Ok(offset) if dated && value != "0" => {
                let time = UNIX_EPOCH + Duration::from_secs(u64::try_from(NOW + offset).unwrap());
                httpdate::fmt_http_date(time)
            }
            _ => value.to_owned(),
        };
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_str(&value).unwrap());
    }
    headers
}

fn request(row: &str) -> Request {
    let mut request = Request::parse("http://h/").unwrap();
    request.headers = headers(row);
    request
}

fn response(status: u16, row: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    let mut response = Response::new(Url::parse("http://h/").unwrap(), status, "x");
    response.headers = headers(row);
    response
}

/// Stored ten seconds ago.
fn entry(status: u16, row: &str) -> Entry {
    let request = Request::parse("http://h/").unwrap();
    Entry::of(&request, &response(status, row), Timestamp(u64::try_from(NOW - 10).unwrap() * 1_000_000))
}

#[test]
fn what_is_stored() {
    let rules = Freshness::default();
    let always = Freshness { always_store: true, ..Freshness::default() };
    for (status, row, stored, stored_always) in [
        (200, "", false, true),
        (200, "cache-control: no-store, max-age=60", false, false),
        (200, "cache-control: NO-STORE", false, false),
        (200, "cache-control: max-age=60", true, true),
        (200, "cache-control: max-age=0", true, true),
        (200, "cache-control: s-maxage=60", false, true),
        (200, "cache-control: private, max-age=60", true, true),
        (404, "cache-control: max-age=60", true, true),
        (200, "expires: +60", true, true),
        (200, "expires: 0", true, true),
        (302, "expires: +60", true, true),
        (300, "", true, true),
        (301, "", true, true),
        (308, "", true, true),
        (302, "", false, true),
        (307, "", false, true),
        (200, "etag: \"a\"", true, true),
        (203, "last-modified: -60", true, true),
        (401, "etag: \"a\"", true, true),
        (404, "etag: \"a\"", false, true),
        (304, "etag: \"a\"; cache-control: max-age=60", false, false),
        (200, "vary: *; cache-control: max-age=60", false, false),
        (200, "vary: accept-language, *; etag: \"a\"", false, false),
        (200, "vary: cookie; etag: \"a\"", true, true),
    ] {
        assert_eq!(rules.may_store(&response(status, row)), stored, "{status} {row}");
        assert_eq!(always.may_store(&response(status, row)), stored_always, "always: {status} {row}");
    }
}

#[test]
fn what_requests_say_of_storing() {
    assert!(Freshness::applies_to(&request("")));
    assert!(Freshness::applies_to(&request("cache-control: no-cache")));
    assert!(!Freshness::applies_to(&request("cache-control: no-store")));
    let mut post = request("");
    post.method = Method::POST;
    assert!(!Freshness::applies_to(&post));
}

#[test]
fn what_is_fresh() {
    let rules = Freshness::default();
    for (asked, status, row, fresh) in [
        // No information on freshness: never fresh.
        ("", 200, "date: -1", false),
        // no-cache on either side.
        ("", 200, "date: -1; cache-control: no-cache, max-age=60", false),
        ("cache-control: no-cache", 200, "date: -1; cache-control: max-age=60", false),
        // max-age from the date, or from the time of storing.
        ("", 200, "date: -59; cache-control: max-age=60", true),
        ("", 200, "date: -60; cache-control: max-age=60", false),
        ("", 200, "cache-control: max-age=11", true),
        ("", 200, "cache-control: max-age=10", false),
        ("", 200, "date: -59; cache-control: public; cache-control: max-age=\"60\"", true),
        // A date in the future is no negative age.
        ("", 200, "date: +500; cache-control: max-age=1", true),
        // Unreadable values are 0.
        ("", 200, "date: -1; cache-control: max-age=soon; expires: +60", false),
        ("", 200, "date: -1; cache-control: max-age=-5", false),
        ("", 200, "date: -1; cache-control: max-age", false),
        ("", 200, "date: -1; cache-control: max-age=99999999999999999999999999", true),
        // The first of two counts.
        ("", 200, "date: -30; cache-control: max-age=20, max-age=60", false),
        // max-age wins over Expires, Expires over Last-Modified.
        ("", 200, "date: -5; cache-control: max-age=1; expires: +60", false),
        ("", 200, "date: -5; cache-control: max-age=60; expires: -60", true),
        ("", 200, "date: -5; expires: -1; last-modified: -100000", false),
        // Expires minus Date.
        ("", 200, "date: -50; expires: +1", true),
        ("", 200, "date: -50; expires: +0", false),
        ("", 200, "date: -5; expires: 0", false),
        ("", 200, "date: -5; expires: tomorrow; last-modified: -100000", false),
        // A tenth of its age at the time of the response.
        ("", 200, "date: -99; last-modified: -1099", true),
        ("", 200, "date: -100; last-modified: -1100", false),
        ("", 200, "date: -5; last-modified: +60", false),
        ("", 200, "date: -5; last-modified: last week", false),
        // A year for permanent redirects.
        ("", 301, "date: -31535999", true),
        ("", 308, "date: -31536000", false),
        ("", 300, "date: -5", true),
        ("", 302, "date: -5", false),
        // Age as told, if that is more.
        ("", 200, "date: -5; age: 60; cache-control: max-age=60", false),
        ("", 200, "date: -5; age: 59; cache-control: max-age=60", true),
        ("", 200, "date: -59; age: 1; cache-control: max-age=60", true),
        ("", 200, "date: -5; age: old; cache-control: max-age=60", true),
        // The request's max-age lowers the lifetime and never raises it.
        ("cache-control: max-age=0", 200, "date: -1; cache-control: max-age=60", false),
        ("cache-control: max-age=31", 200, "date: -30; cache-control: max-age=60", true),
        ("cache-control: max-age=30", 200, "date: -30; cache-control: max-age=60", false),
        ("cache-control: max-age=600", 200, "date: -60; cache-control: max-age=60", false),
        // max-stale lengthens it, but for must-revalidate.
        ("cache-control: max-stale", 200, "date: -600; cache-control: max-age=60", true),
        ("cache-control: max-stale=541", 200, "date: -600; cache-control: max-age=60", true),
        ("cache-control: max-stale=540", 200, "date: -600; cache-control: max-age=60", false),
        ("cache-control: max-stale=x", 200, "date: -600; cache-control: max-age=60", false),
        ("cache-control: max-stale", 200, "date: -600; cache-control: max-age=60, must-revalidate", false),
        ("cache-control: max-stale", 200, "date: -600; cache-control: no-cache", false),
        // Directives for shared caches.
        ("", 200, "date: -30; cache-control: max-age=60, s-maxage=0", true),
        ("", 200, "date: -30; cache-control: max-age=60, private", true),
        ("", 200, "date: -30; cache-control: s-maxage=60", false),
    ] {
        let now = NOW as f64;
        assert_eq!(
            rules.is_fresh(&request(asked), &entry(status, row), now),
            fresh,
            "{asked} | {status} {row}"
        );
    }
}

#[test]
fn directives_of_answers_can_be_ignored() {
    let mut settings = Settings::default();
    settings.change(|own: &mut HttpCacheSettings| {
        own.httpcache_ignore_response_cache_controls =
            ["No-Store", "no-cache", "must-revalidate"].map(str::to_owned).to_vec();
    });
    let rules = Freshness::from_settings(&settings);
    let row = "date: -5; cache-control: no-store, no-cache, must-revalidate, max-age=60";
    assert!(rules.may_store(&response(200, row)));
    assert!(rules.is_fresh(&request(""), &entry(200, row), NOW as f64));
    assert!(!rules.must_revalidate(&entry(200, row)));
    assert!(!rules.is_fresh(&request("cache-control: no-cache"), &entry(200, row), NOW as f64));
    assert!(Freshness::default().must_revalidate(&entry(200, row)));
}

#[test]
fn both_validators_are_sent() {
    let shown = |row: &str| -> Vec<String> {
        let found = validators(&headers(row));
        found.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
    };
    assert_eq!(shown("etag: W/\"a\""), ["if-none-match: W/\"a\""]);
    let changed = "Tue, 14 Nov 2023 22:13:20 GMT";
    let row = format!("last-modified: {changed}; etag: \"b\"");
    assert_eq!(shown(&row), ["if-none-match: \"b\"".to_owned(), format!("if-modified-since: {changed}")]);
    assert!(shown("date: -5").is_empty());
}

#[test]
fn a_304_renews_the_headers_but_not_those_of_the_body() {
    let mut stored =
        entry(200, "date: -500; age: 400; cache-control: max-age=60; content-type: text/html; x-a: 1");
    let not_modified =
        "date: -1; cache-control: max-age=90; content-length: 0; content-type: text/plain; x-b: 2";
    refresh(&mut stored, &headers(not_modified));
    let expected = "date: -1; cache-control: max-age=90; content-type: text/html; x-a: 1; x-b: 2";
    assert_eq!(stored.headers, headers(expected));
}

#[test]
fn the_varying_headers_are_a_set() {
    assert_eq!(
        varies_by(&headers("vary: Cookie, accept-Language; vary: cookie,,")),
        ["accept-language", "cookie"]
    );
    assert!(varies_by(&headers("date: -1")).is_empty());
}
