//! What is kept of an answer, from its status, its headers and, where it is short, its body.

use std::time::{Duration, SystemTime};

use http::{Method, StatusCode, header};
use huntsman_crawler::{Page, PageKind, Response, meta};
use huntsman_middleware::redirect_target;
use url::Url;

use crate::feed;
use crate::page::without_fragment;
use crate::record::{Kind, Record, is_redirect};
use crate::rendering;
use crate::robots_files::RobotsFile;
use crate::spider::{MAX_DETAIL, kind_of};

/// The headers of pages that reports show.
pub(crate) const TOLD_HEADERS: [&str; 15] = [
    "cache-control",
    "content-encoding",
    "content-language",
    "content-security-policy",
    "content-type",
    "expires",
    "last-modified",
    "link",
    "referrer-policy",
    "server",
    "strict-transport-security",
    "vary",
    "x-content-type-options",
    "x-frame-options",
    "x-robots-tag",
];
/// The URL that was asked for, before any redirect.
pub(crate) fn asked_of(page: &Page) -> String {
    let asked = page.request().requested_url();
    asked.split('#').next().unwrap_or_default().to_owned()
}

/// The parts of a record that headers tell.
pub(crate) fn record_of(page: &Page) -> Record {
    let (request, response) = (page.request(), page.response());
    let headers = &response.headers;
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let is_head = request.method == Method::HEAD;
    let length = text(header::CONTENT_LENGTH).and_then(|length| length.trim().parse().ok());
    let target = is_redirect(response.status.as_u16()).then(|| redirect_of(page));
    let (redirect, detail) = match target.transpose() {
        Ok(target) => (target, None),
        Err(why) => (None, Some(why)),
    };
    let kind = kind_of(request);
    // A robots.txt that redirects is still that of its host, and so is its icon. A page whose scripts change its address is known by the first.
    let url = match kind {
        Kind::Robots | Kind::Icon => asked_of(page),
        _ if rendering::is_rendered(page) => asked_of(page),
        _ => without_fragment(page.url()),
    };
    let may_be_feed =
        kind == Kind::Feed || (kind == Kind::Page && matches!(page.kind(), PageKind::Xml | PageKind::Json));
    Record {
        url,
        kind,
        robots: (kind == Kind::Robots && response.status.is_success()).then(|| RobotsFile::of(page)),
        feed_fault: (may_be_feed && response.status == StatusCode::OK).then(|| feed::fault(page)).flatten(),
        is_start: request.meta_flag(meta::IS_START_REQUEST),
        is_head,
        robots_line: request.meta_text(meta::ROBOTS_LINE).map(str::to_owned),
        status: Some(response.status.as_u16()),
        redirect: redirect
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .map(|url| without_fragment(&url)),
        detail,
        is_cut_short: response.has_flag("dataloss") || response.has_flag("partial"),
        is_challenge: is_challenge(response.status, headers),
        content_type: response.content_type(),
        bytes: response.body.len() as u64,
        wire_bytes: if is_head { length.unwrap_or(0) } else { response.wire_bytes },
        ttfb_ms: milliseconds(response.timings.ttfb),
        total_ms: milliseconds(response.timings.total),
        protocol: response.protocol().to_owned(),
        max_age: max_age(headers),
        contradiction: contradiction(response, !is_head && response.status.is_success()),
        cookies: cookies(headers, page.url().scheme() == "https"),
        versions: versions(headers),
        leak: leak(page),
        last_modified: text(header::LAST_MODIFIED).map(str::to_owned),
        headers: if kind == Kind::Page { told_headers(headers) } else { Vec::new() },
        ..Record::default()
    }
}

/// A time in milliseconds with one decimal.
fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
}

/// Where a redirect leads.
///
/// # Errors
/// It leads nowhere: browsers show its body, or an error. The error says why.
fn redirect_of(page: &Page) -> Result<Url, String> {
    // Browsers refuse redirects to these, and leave those to others to the programs that are there for them.
    const REFUSED: [&str; 5] = ["about", "blob", "data", "file", "javascript"];
    let response = page.response();
    let status = response.status.as_u16();
    let Some(location) = response.headers.get(header::LOCATION) else {
        return Err(format!("{status} without a Location"));
    };
    let target = redirect_target(page.url(), location.as_bytes());
    let told = |why: &str| format!("{status}: {why}").chars().take(MAX_DETAIL).collect::<String>();
    match target {
        Ok(target) if REFUSED.contains(&target.scheme()) => {
            Err(told(&format!("the Location is a {}: URL, which browsers do not follow", target.scheme())))
        }
        Ok(target) => Ok(target),
        Err(why) => Err(told(&why)),
    }
}

/// What an error page of the site tells of the program that made it.
fn leak(page: &Page) -> Option<String> {
    let status = page.response().status;
    let is_error = status.is_client_error() || status.is_server_error();
    let is_own = matches!(kind_of(page.request()), Kind::Page | Kind::Probe);
    let leak = (is_error && is_own).then(|| crate::rules::of_error_page(&page.response().body))?;
    leak.map(str::to_owned)
}

/// Whether an answer is a test of the browser, and tells nothing of the page.
fn is_challenge(status: StatusCode, headers: &http::HeaderMap) -> bool {
    let has = |name: &str, part: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.to_ascii_lowercase().contains(part))
    };
    !status.is_success()
        && (has("cf-mitigated", "challenge")
            || headers.contains_key("x-datadome")
            || has("server", "ddos-guard"))
}

/// The headers of a page that reports show.
fn told_headers(headers: &http::HeaderMap) -> Vec<(String, String)> {
    let found = TOLD_HEADERS.into_iter().filter_map(|name| {
        let values: Vec<&str> =
            headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
        let value = values.join(", ");
        (!value.is_empty()).then(|| (name.to_owned(), value.chars().take(MAX_DETAIL).collect()))
    });
    found.collect()
}

fn max_age(headers: &http::HeaderMap) -> Option<u64> {
    let control: Vec<String> = headers
        .get_all(header::CACHE_CONTROL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|part| part.trim().to_ascii_lowercase())
        .collect();
    if control.iter().any(|part| matches!(part.as_str(), "no-store" | "no-cache")) {
        return Some(0);
    }
    let age = control.iter().find_map(|part| part.strip_prefix("max-age=")?.trim_matches('"').parse().ok());
    age.or_else(|| expiry(headers))
}

/// The seconds until a date of expiry, by the clock of the server if it tells its time. What is no date is in the past (RFC 9111, 5.3).
fn expiry(headers: &http::HeaderMap) -> Option<u64> {
    let date = |name| httpdate::parse_http_date(headers.get(name)?.to_str().ok()?.trim()).ok();
    headers.get(header::EXPIRES)?;
    let now = date(header::DATE).unwrap_or_else(SystemTime::now);
    let left = date(header::EXPIRES).and_then(|end| end.duration_since(now).ok());
    Some(left.map_or(0, |left| left.as_secs()))
}

/// What the content of a body is, if that contradicts the media type that its answer states.
pub(crate) fn contradiction(response: &Response, is_whole: bool) -> Option<String> {
    const MARKS: [(&[u8], &str); 5] = [
        (b"%PDF-", "application/pdf"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"GIF8", "image/gif"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"PK\x03\x04", "application/zip"),
    ];
    let stated = response.content_type().filter(|_| is_whole)?;
    let body = &response.body;
    let start = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start();
    let begins = |tag: &[u8]| start.get(..tag.len()).is_some_and(|front| front.eq_ignore_ascii_case(tag));
    let is_html = || begins(b"<!doctype html") || begins(b"<html");
    let is = match &*stated {
        "text/plain" if is_html() => "text/html",
        "text/html" | "text/plain" => MARKS.iter().find(|(mark, _)| body.starts_with(mark))?.1,
        // None of these begins with a tag of HTML.
        "application/json"
        | "text/css"
        | "text/javascript"
        | "application/javascript"
        | "application/pdf"
            if is_html() =>
        {
            "text/html"
        }
        _ => return None,
    };
    Some(format!("{stated}, and the content is {is}"))
}

fn cookies(headers: &http::HeaderMap, is_https: bool) -> Vec<(String, String)> {
    let values = headers.get_all(header::SET_COOKIE).iter().filter_map(|value| value.to_str().ok());
    values
        .filter_map(|value| {
            let mut parts = value.split(';');
            let name = parts.next()?.split('=').next()?.trim().to_owned();
            let flags: Vec<String> = parts
                .map(|part| part.split('=').next().unwrap_or_default().trim().to_ascii_lowercase())
                .collect();
            let lacks = |flag: &str| !flags.iter().any(|found| found == flag);
            let folded = name.to_ascii_lowercase();
            let is_read_by_script = folded.contains("csrf") || folded.contains("xsrf");
            let missing: Vec<&str> = [
                ("SameSite", lacks("samesite")),
                ("HttpOnly", lacks("httponly") && !is_read_by_script),
                ("Secure", lacks("secure") && is_https),
            ]
            .into_iter()
            .filter_map(|(flag, is_missing)| is_missing.then_some(flag))
            .collect();
            (!missing.is_empty()).then(|| (name, missing.join(", ")))
        })
        .collect()
}

fn versions(headers: &http::HeaderMap) -> Vec<(String, String)> {
    const NAMES: [&str; 5] =
        ["server", "x-powered-by", "x-aspnet-version", "x-aspnetmvc-version", "x-generator"];
    let found = NAMES.into_iter().filter_map(|name| Some((name, headers.get(name)?.to_str().ok()?)));
    let has_version = |value: &str| {
        let bytes = value.as_bytes();
        let is_number = bytes.first().is_some_and(u8::is_ascii_digit);
        is_number
            || bytes.windows(2).any(|pair| matches!(pair[0], b'/' | b' ' | b'v') && pair[1].is_ascii_digit())
    };
    found
        .filter(|(_, value)| has_version(value))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
