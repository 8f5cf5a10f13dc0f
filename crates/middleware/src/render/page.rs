//! The rendered page in place of the response, and its cookies.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderValue, header};
use huntsman_crawler::{Context, Request, Response, Timestamp, log, meta};
use url::Url;

use super::network::PageNetwork;
use super::rendered::Rendered;
use crate::cookies::jar_name;
use crate::{Cookies, StoredCookie, origin};

/// Puts what the browser made of the page in place of the response's body, and notes what else it brought.
pub(super) fn put(
    rendered: huntsman_browser::Rendered,
    network: &PageNetwork,
    request: &Request,
    response: &mut Response,
    cx: &Context,
) {
    count(&rendered, cx);
    network.cookies.store(&rendered.cookies, &jar_name(request), cx);
    let body = with_links(rendered.html, &rendered.popups);
    let static_body = std::mem::replace(&mut response.body, Bytes::from(body));
    if let Ok(url) = Url::parse(&rendered.url)
        && matches!(url.scheme(), "http" | "https")
    {
        response.url = url;
    }
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    let content_type = response.headers.insert(header::CONTENT_TYPE, html);
    if response.headers.contains_key(header::CONTENT_LENGTH) {
        response.headers.insert(header::CONTENT_LENGTH, response.body.len().into());
    }
    response.add_flag("rendered");
    if rendered.is_incomplete {
        response.add_flag("render_incomplete");
    }
    response.extensions.insert(Rendered {
        static_body,
        requests: rendered.requests,
        console: rendered.console,
        is_incomplete: rendered.is_incomplete,
        shots: rendered.shots,
        values: rendered.values,
        at: network.started(),
        took: rendered.took,
        content_type,
    });
}

fn count(rendered: &huntsman_browser::Rendered, cx: &Context) {
    let stats = cx.stats();
    stats.inc("render/pages");
    stats.add("render/milliseconds", i64::try_from(rendered.took.as_millis()).unwrap_or(i64::MAX));
    if rendered.is_incomplete {
        stats.inc("render/incomplete");
    }
    if rendered.refused_direct > 0 {
        stats.add("render/refused_direct", rendered.refused_direct.into());
    }
}

/// Adds links to the end of a page.
fn with_links(mut html: String, links: &[String]) -> String {
    if links.is_empty() {
        return html;
    }
    let links: String = links.iter().map(|link| format!("<a href=\"{}\"></a>", in_attribute(link))).collect();
    let end = html.rfind("</body>").unwrap_or(html.len());
    html.insert_str(end, &links);
    html
}

fn in_attribute(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The cookies of the crawl that scripts of the page may see, and which of them they changed.
pub(super) struct PageCookies {
    given: Vec<StoredCookie>,
    known: HashSet<(String, String)>,
    is_off: bool,
}

impl PageCookies {
    /// The cookies of the jar of the request that are for the site of the page.
    pub(super) fn of(request: &Request, url: &Url, cx: &Context) -> Self {
        let cookies = cx.component::<Cookies>();
        let is_off = cookies.is_none() || request.meta_flag(meta::DONT_MERGE_COOKIES);
        let host = origin::host(url);
        let is_for = |cookie: &StoredCookie| {
            let is_above = || host.strip_suffix(&cookie.domain).is_some_and(|rest| rest.ends_with('.'));
            host == cookie.domain || (!cookie.host_only && is_above())
        };
        let given: Vec<StoredCookie> = match cookies.filter(|_| !is_off) {
            Some(cookies) => cookies.jars().with(&jar_name(request), |jar| {
                jar.iter().filter(|cookie| is_for(cookie)).cloned().collect()
            }),
            None => Vec::new(),
        };
        let known = given.iter().map(|cookie| (cookie.name.clone(), cookie.value.clone())).collect();
        Self { given, known, is_off }
    }

    /// The cookies as lines of `Set-Cookie`.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.given.iter().map(line_of)
    }

    /// Stores the cookies that scripts set in a jar: each with its address, as lines of `Set-Cookie`.
    pub(super) fn store(&self, set: &[(String, String)], jar: &str, cx: &Context) {
        let Some(cookies) = cx.component::<Cookies>().filter(|_| !self.is_off && !set.is_empty()) else {
            return;
        };
        let now: Timestamp = cx.now();
        cookies.jars().with(jar, |jar| {
            for (address, line) in set {
                let Ok(url) = Url::parse(address) else { continue };
                let pair = line.split(';').next().unwrap_or_default();
                let (name, value) = pair.split_once('=').unwrap_or(("", pair));
                // A page that runs at the same time may have a newer value.
                if self.known.contains(&(name.trim().to_owned(), value.trim().to_owned())) {
                    continue;
                }
                let is_kept = jar.store(&url, line, now);
                log::debug!(%url, is_kept, "a script set a cookie");
            }
        });
    }
}

fn line_of(cookie: &StoredCookie) -> String {
    let mut line = format!("{}={}; Path={}", cookie.name, cookie.value, cookie.path);
    if !cookie.host_only {
        line.push_str(&format!("; Domain={}", cookie.domain));
    }
    if let Some(expires) = cookie.expires {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(expires);
        line.push_str(&format!("; Expires={}", httpdate::fmt_http_date(at)));
    }
    if cookie.secure {
        line.push_str("; Secure");
    }
    if cookie.http_only {
        line.push_str("; HttpOnly");
    }
    line
}
