//! Random input from the web: no component panics, and stored data stays within its limits.

use http::{HeaderValue, StatusCode};
use huntsman_crawler::{
    Context, DownloaderMiddleware, OnResponse, Page, Request, Response, Settings, Timestamp,
};
use huntsman_middleware::{CookieJar, Directives, HttpCompression, MetaRefresh, Redirect, Retry, UrlLength};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use url::Url;

/// A generator of numbers; the seed is printed, so that a failure can be replayed.
struct Random(SplitMix64);

impl Random {
    fn new(test: &str) -> Self {
        let seed = 0x9e37_79b9_7f4a_7c15;
        println!("{test}: seed {seed:#x}");
        Self(SplitMix64::seed_from_u64(seed))
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.0.next_u64() % n as u64).unwrap()
    }

    /// Meaningful pieces with noise between them.
    fn bytes(&mut self, pieces: &[&str]) -> Vec<u8> {
        let mut out = Vec::new();
        for _ in 0..self.below(8) {
            if self.below(4) == 0 {
                out.extend((0..self.below(6)).map(|_| u8::try_from(self.below(256)).unwrap()));
            } else {
                out.extend_from_slice(pieces[self.below(pieces.len())].as_bytes());
            }
        }
        out
    }

    /// The same, without bytes that a header cannot contain.
    fn header(&mut self, pieces: &[&str]) -> HeaderValue {
        let mut bytes = self.bytes(pieces);
        bytes.retain(|byte| *byte >= 0x20 && *byte != 0x7f || *byte == b'\t');
        HeaderValue::from_bytes(&bytes).unwrap()
    }
}

#[test]
fn cookies_of_any_shape_stay_with_their_host() {
    const PIECES: [&str; 24] = [
        "a=b",
        "=",
        ";",
        "; ",
        "Domain=",
        "domain=.",
        "a.example.com",
        "example.com",
        "com",
        ".",
        "127.0.0.1",
        "[::1]",
        "Path=",
        "/",
        "/x",
        "Secure",
        "HttpOnly",
        "Max-Age=",
        "-",
        "99999999999999999999",
        "Expires=",
        "Wed, 21 Oct 2015 07:28:00 GMT",
        "__Host-",
        "\u{e9}",
    ];
    let mut random = Random::new("cookies");
    let hosts = [
        "http://a.example.com/x/y",
        "https://a.example.com/",
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://com/",
    ];
    let now = Timestamp(1_700_000_000_000_000);
    for _ in 0..300 {
        let mut jar = CookieJar::new();
        let url = Url::parse(hosts[random.below(hosts.len())]).unwrap();
        let mut stored = Vec::new();
        for _ in 0..30 {
            let text = random.header(&PIECES);
            if let Ok(text) = std::str::from_utf8(text.as_bytes())
                && jar.store(&url, text, now)
            {
                stored.push(text.to_owned());
            }
        }
        for stranger in ["http://b.other.org/", "http://org/", "http://127.0.0.2/", "http://[::2]/"] {
            assert_eq!(jar.header(&Url::parse(stranger).unwrap(), now), None, "{url} {stored:?}");
        }
        if let Some(header) = jar.header(&url, now) {
            assert!(
                HeaderValue::from_str(&header).is_ok() || header.bytes().any(|b| b >= 0x80),
                "{header:?}"
            );
        }
        let again = CookieJar::from_json(&jar.to_json()).unwrap();
        assert_eq!(again.len(), jar.len());
        CookieJar::from_netscape(&jar.to_netscape()).unwrap();
    }
}

#[tokio::test]
async fn locations_of_any_shape_lead_to_http_or_nowhere() {
    const PIECES: [&str; 22] = [
        "http://",
        "https:",
        "//",
        "/",
        "\\",
        "h",
        "user:pw@",
        "[::1]",
        "[",
        ":80",
        ":99999",
        "..",
        "?q",
        "#f",
        "%",
        "%zz",
        "javascript:",
        "data:,x",
        "file:///",
        " ",
        "\u{20ac}",
        "xn--a",
    ];
    let mut random = Random::new("locations");
    let settings = Settings::default();
    let redirect = Redirect::from_settings(&settings).unwrap().unwrap();
    let limits = UrlLength::from_settings(&settings).unwrap().unwrap();
    let cx = Context::detached(settings);
    let mut followed = 0;
    for _ in 0..5_000 {
        let request = Request::parse("https://h.example/dir/page?x#y")
            .unwrap()
            .header("Authorization", "secret")
            .unwrap();
        let mut response = Response::new(request.url.clone(), StatusCode::FOUND, "");
        response.headers.insert("location", random.header(&PIECES));
        match redirect.process_response(&request, &mut response, &cx).await.unwrap() {
            OnResponse::Reschedule(next) => {
                followed += 1;
                assert!(matches!(next.url.scheme(), "http" | "https"));
                let at_home = next.url.origin() == request.url.origin();
                assert_eq!(next.headers.contains_key("authorization"), at_home, "{}", next.url);
                assert!(next.url.username().is_empty() || limits.refusal(&next.url).is_some());
            }
            OnResponse::Drop(reason) => {
                assert!(matches!(&*reason.reason, "bad_redirect" | "redirect_loop"), "{reason:?}");
            }
            OnResponse::Continue => {}
        }
    }
    assert!(followed > 500, "the noise must contain addresses: {followed}");
}

#[tokio::test]
async fn pages_of_any_shape_pass_the_readers_of_their_heads() {
    const PIECES: [&str; 20] = [
        "<meta ",
        "http-equiv=",
        "refresh",
        "content='",
        "0;url=",
        "/x",
        "'>",
        "<noscript>",
        "<base href=",
        "//g/",
        ">",
        "<!--",
        "-->",
        "name=robots ",
        "nofollow",
        "<title>",
        "\u{feff}",
        "<script>",
        "&#x0;",
        "<meta http-equiv=refresh content='1;/a'>",
    ];
    let mut random = Random::new("pages");
    let settings = Settings::default();
    let refresh = MetaRefresh::from_settings(&settings).unwrap().unwrap();
    let retry = Retry::from_settings(&settings).unwrap().unwrap();
    let compression = HttpCompression::from_settings(&settings).unwrap().unwrap();
    let cx = Context::detached(settings);
    let mut followed = 0;
    for _ in 0..3_000 {
        let request = Request::parse("http://h.example/").unwrap();
        let mut response = Response::html(request.url.clone(), random.bytes(&PIECES));
        response.headers.insert(
            "x-robots-tag",
            random.header(&["huntsman", ":", ",", "none", " ", "unavailable_after:"]),
        );
        response.headers.insert("retry-after", random.header(&["1", "-", "99999999999", "GMT", ",", "."]));
        response.headers.insert("content-encoding", random.header(&["gzip", ",", "br", " ", "x"]));
        let _ = Directives::of(&Page::new(request.clone(), response.clone()), "huntsman/1");
        if let OnResponse::Reschedule(next) =
            refresh.process_response(&request, &mut response, &cx).await.unwrap()
        {
            followed += 1;
            assert!(matches!(next.url.scheme(), "http" | "https"));
        }
        // A body that does not match its coding is an error, not a panic.
        let _ = compression.process_response(&request, &mut response, &cx).await;
        response.status = StatusCode::SERVICE_UNAVAILABLE;
        if let OnResponse::Reschedule(copy) =
            retry.process_response(&request, &mut response, &cx).await.unwrap()
        {
            let wait = copy.not_before.unwrap().since(cx.now());
            assert!(wait.as_secs_f64() <= 120.0, "{wait:?}");
        }
    }
    assert!(followed > 20, "the noise must contain refreshes: {followed}");
}
