//! A compact form of a queued request: common fields are stored inline, rare ones in a box.

use std::sync::Arc;

use bytes::Bytes;
use http::{Extensions, HeaderMap, Method};
use serde_json::{Map, Value};
use url::Url;

use crate::clock::Timestamp;
use crate::host::HostKey;
use crate::meta;
use crate::request::{Fingerprint, FoundBy, RareFields, Request};

/// A request without its slot and its priority, which are stored by the queue.
#[derive(Debug)]
pub(super) struct Packed {
    /// The URL as text: 72 bytes less than the parsed form, and never longer than the text.
    url: Box<str>,
    callback: Arc<str>,
    referer: Option<Arc<str>>,
    /// In two halves, because a `u128` would be aligned to 16 bytes.
    fingerprint: [u64; 2],
    rare: Option<Box<PackedRareFields>>,
    priority: i32,
    depth: u16,
    retries: u8,
    flags: u8,
}

/// The request skips the duplicate filter.
const UNFILTERED: u8 = 1;
/// `meta` is `{"is_start_request": true}` and nothing else, as for most seeds.
const START: u8 = 2;

/// The link had `rel=nofollow`.
const NOFOLLOW: u8 = 4;
/// The request was found by a link, or in a sitemap.
const LINK: u8 = 8;
const SITEMAP: u8 = 16;

/// The key of `meta` that the engine sets for start requests.

#[derive(Debug)]
struct PackedRareFields {
    /// The parsed URL, if parsing its text again might give a different one.
    url: Option<Url>,
    method: Method,
    headers: Option<Box<HeaderMap>>,
    body: Bytes,
    not_before: Option<Timestamp>,
    meta: Map<String, Value>,
    extensions: Extensions,
    rare: Option<Box<RareFields>>,
}

impl Packed {
    /// Packs a request. Returns its slot as well.
    pub(super) fn new(request: Request, fingerprint: Fingerprint) -> (HostKey, Self) {
        let host = request.host();
        let Request {
            url,
            method,
            headers,
            body,
            callback,
            priority,
            depth,
            retries,
            unfiltered,
            nofollow,
            found_by,
            not_before,
            referer,
            mut meta,
            extensions,
            rare,
            slot: _,
            fingerprint: _,
        } = request;
        let is_start = meta.len() == 1 && meta.get(meta::IS_START_REQUEST.name()) == Some(&Value::Bool(true));
        if is_start {
            meta.clear();
        }
        let kept_url = (!parses_to_itself(&url)).then(|| url.clone());
        let is_common = method == Method::GET
            && headers.is_empty()
            && body.is_empty()
            && not_before.is_none()
            && meta.is_empty()
            && extensions.is_empty()
            && rare.is_none()
            && kept_url.is_none();
        let rare = (!is_common).then(|| {
            Box::new(PackedRareFields {
                url: kept_url,
                method,
                headers: (!headers.is_empty()).then(|| Box::new(headers)),
                body,
                not_before,
                meta,
                extensions,
                rare,
            })
        });
        let packed = Self {
            url: String::from(url).into_boxed_str(),
            callback,
            referer,
            fingerprint: [(fingerprint.0 >> 64) as u64, fingerprint.0 as u64],
            rare,
            priority,
            depth,
            retries,
            flags: (u8::from(unfiltered) * UNFILTERED)
                | (u8::from(is_start) * START)
                | (u8::from(nofollow) * NOFOLLOW)
                | match found_by {
                    FoundBy::Spider => 0,
                    FoundBy::Link => LINK,
                    FoundBy::Sitemap => SITEMAP,
                },
        };
        (host, packed)
    }

    /// The original request, with slot and fingerprint assigned.
    pub(super) fn unpack(&self, host: &HostKey) -> Request {
        let rare = self.rare.as_deref();
        let url = match rare.and_then(|rare| rare.url.clone()) {
            Some(url) => url,
            None => Url::parse(&self.url).expect("the text of a parsed http URL is one"),
        };
        let mut request = Request::get(url);
        request.callback = Arc::clone(&self.callback);
        request.referer.clone_from(&self.referer);
        request.priority = self.priority;
        request.depth = self.depth;
        request.retries = self.retries;
        request.nofollow = self.flags & NOFOLLOW != 0;
        request.unfiltered = self.flags & UNFILTERED != 0;
        request.found_by = match self.flags & (LINK | SITEMAP) {
            0 => FoundBy::Spider,
            LINK => FoundBy::Link,
            _ => FoundBy::Sitemap,
        };
        if let Some(rare) = rare {
            request.method = rare.method.clone();
            request.headers = rare.headers.as_deref().cloned().unwrap_or_default();
            request.body = rare.body.clone();
            request.not_before = rare.not_before;
            request.meta = rare.meta.clone();
            request.extensions = rare.extensions.clone();
            request.rare = rare.rare.clone();
        }
        if self.flags & START != 0 {
            request.set_meta(meta::IS_START_REQUEST, true);
        }
        request.assign_slot(host.clone());
        let [high, low] = self.fingerprint;
        request.assign_fingerprint(Fingerprint((u128::from(high) << 64) | u128::from(low)));
        request
    }
}

/// Whether the text of a URL is certain to parse to the same URL: plain http, and a host that needs no decoding or
/// validation.
fn parses_to_itself(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(|host| !host.contains("xn--"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn round_trip(request: Request) -> Request {
        let fingerprint = request.fingerprint();
        let (host, packed) = Packed::new(request, fingerprint);
        packed.unpack(&host)
    }

    #[test]
    fn what_is_unpacked_is_what_was_packed() {
        let plain = Request::parse("http://a.example/x?y=1#frag").unwrap();
        let mut found = plain.clone();
        found.referer = Some("http://a.example/".into());
        (found.depth, found.retries, found.priority, found.nofollow) = (3, 1, -2, true);
        found.found_by = FoundBy::Link;
        let mut listed = plain.clone();
        listed.found_by = FoundBy::Sitemap;
        let start = plain.clone().with_meta(meta::IS_START_REQUEST, true);
        let full = plain
            .clone()
            .method(Method::POST)
            .body("a=1")
            .header("X-A", "1")
            .unwrap()
            .callback("detail")
            .errback("oops")
            .cb_kwarg("page", 3)
            .cookie("a", "b")
            .with_meta(meta::IS_START_REQUEST, true)
            .meta("proxy", "http://p:1")
            .after(Duration::from_secs(5))
            .unfiltered();
        for request in [plain, found, listed, start, full] {
            let back = round_trip(request.clone());
            assert_eq!(back, request);
            assert_eq!(back.host(), request.host());
            assert_eq!(back.fingerprint(), request.fingerprint());
            assert_eq!((back.unfiltered, back.nofollow), (request.unfiltered, request.nofollow));
        }
    }

    #[test]
    fn assigned_slot_and_fingerprint_survive() {
        let mut request = Request::parse("http://a.example/").unwrap();
        request.assign_slot(HostKey::new("10.0.0.1"));
        request.assign_fingerprint(Fingerprint(u128::MAX - 5));
        let back = round_trip(request);
        assert_eq!(back.host(), HostKey::new("10.0.0.1"));
        assert_eq!(back.fingerprint(), Fingerprint(u128::MAX - 5));
    }

    #[test]
    fn extensions_survive() {
        #[derive(Clone, Debug, PartialEq)]
        struct Mark(u32);
        let mut request = Request::parse("http://a.example/").unwrap();
        request.extensions.insert(Mark(7));
        assert_eq!(round_trip(request).extensions.get::<Mark>(), Some(&Mark(7)));
    }

    #[test]
    fn odd_urls_survive() {
        for url in [
            "data:text/plain,a b ",
            "file:///c:/x/../y",
            "http://xn--bcher-kva.example/",
            "http://bücher.example/",
            "http://u:p%40@[::1]:8080//a/./b%2e/../?q#f",
            "http://1.2.3/",
            "http://a.example./ %zz\u{7f}?'\"<>`",
            "web+demo:/.//not-a-host/",
            "HTTP://EXAMPLE.com:80/%7euser?%",
            "mailto:a@b.example",
        ] {
            let request = Request::parse(url).unwrap();
            assert_eq!(round_trip(request.clone()).url, request.url, "{url}");
        }
    }

    #[test]
    fn it_is_small() {
        assert!(size_of::<Packed>() <= 80, "{}", size_of::<Packed>());
    }
}
