//! HttpCompression: asks for compressed bodies and hands on the decoded ones.

use std::sync::OnceLock;

use http::{HeaderValue, Method, header};
use huntsman_crawler::{
    Context, Counter, DecodeLimits, Decoded, DownloaderMiddleware, OnRequest, OnResponse, Request, Response,
    Result, Settings, decode_body,
};
use serde_json::Value;

use crate::added;

/// Sets `Accept-Encoding` and, above its place, gives every body decoded: gzip, deflate, br and zstd, also stacked.
///
/// The HTTP client decodes while it reads; what it decoded becomes the body here. Answers from elsewhere (a cache, an own
/// downloader) are decoded here, within `download_maxsize` and `max_content_codings`. `Content-Encoding` is gone then, and
/// `Content-Length` is that of the decoded body. Answers to HEAD stay as they are, and so does an answer with an unknown
/// coding, which gets the flag `unknown_encoding`. A body that does not decode fails its request as `bad_encoding` or
/// `too_large`.
#[derive(Debug, Default)]
pub struct HttpCompression {
    counters: OnceLock<Counters>,
}

#[derive(Debug)]
struct Counters {
    responses: Counter,
    bytes: Counter,
}

/// The codings that are asked for.
const ACCEPTED: HeaderValue = HeaderValue::from_static("gzip, deflate, br, zstd");

impl HttpCompression {
    /// The name in settings and records.
    pub const NAME: &'static str = "http_compression";
    /// The place in the chain.
    pub const ORDER: i32 = 590;

    /// Always configured.
    ///
    /// # Errors
    /// None.
    pub fn from_settings(_: &Settings) -> Result<Option<Self>> {
        Ok(Some(Self::default()))
    }

    /// The usual counters are taken from the stats once: by name each would cost a lock and a look-up.
    fn count(&self, response: &Response, cx: &Context) {
        let counters = self.counters.get_or_init(|| Counters {
            responses: cx.stats().counter("httpcompression/response_count"),
            bytes: cx.stats().counter("httpcompression/response_bytes"),
        });
        counters.responses.inc();
        counters.bytes.add(i64::try_from(response.body.len()).unwrap_or(i64::MAX));
    }
}

/// The limits for one answer: those of the settings, unless its request says otherwise, as in the HTTP client.
fn limits(request: &Request, settings: &Settings) -> DecodeLimits {
    let mut limits = DecodeLimits::of(settings);
    if let Some(own) = request.meta.get("download_maxsize").and_then(Value::as_u64) {
        limits.max_size = own;
    }
    limits.truncate |= request.meta_flag("download_truncate");
    limits
}

impl DownloaderMiddleware for HttpCompression {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn order(&self) -> i32 {
        Self::ORDER
    }

    async fn process_request(&self, request: &mut Request, _: &Context) -> Result<OnRequest> {
        added::set_if_absent(request, header::ACCEPT_ENCODING, ACCEPTED);
        Ok(OnRequest::Continue)
    }

    async fn process_response(
        &self,
        request: &Request,
        response: &mut Response,
        cx: &Context,
    ) -> Result<OnResponse> {
        if request.method == Method::HEAD {
            return Ok(OnResponse::Continue);
        }
        let body = match response.decoded.take() {
            Some(body) => body,
            // A body that did not come, or was not read, has no coding to undo.
            None if response.body.is_empty() || !response.headers.contains_key(header::CONTENT_ENCODING) => {
                return Ok(OnResponse::Continue);
            }
            None if response.has_flag("unknown_encoding") => return Ok(OnResponse::Continue),
            None => {
                let limits = limits(request, cx.settings());
                match decode_body(&response.headers, &response.body, limits)? {
                    None => return Ok(OnResponse::Continue),
                    Some(Decoded { unknown: true, .. }) => {
                        response.add_flag("unknown_encoding");
                        tracing::warn!(url = %response.url, "unknown content coding: left as it is");
                        return Ok(OnResponse::Continue);
                    }
                    Some(decoded) => {
                        for (said, flag) in [(decoded.partial, "partial"), (decoded.truncated, "truncated")] {
                            if said {
                                response.add_flag(flag);
                            }
                        }
                        decoded.body
                    }
                }
            }
        };
        response.headers.remove(header::CONTENT_ENCODING);
        if response.headers.contains_key(header::CONTENT_LENGTH) {
            response.headers.insert(header::CONTENT_LENGTH, body.len().into());
        }
        response.body = body;
        self.count(response, cx);
        Ok(OnResponse::Continue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::StatusCode;
    use huntsman_crawler::{Error, FetchError, FetchErrorKind};

    const PLAIN: &str = "<p>hello, hello, hello</p>";
    /// `PLAIN`, by gzip.
    const PACKED: [u8; 35] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 179, 41, 176, 203, 72, 205, 201, 201, 215, 81, 64, 166, 108, 244,
        11, 236, 0, 127, 107, 73, 4, 26, 0, 0, 0,
    ];

    fn answer(coding: &'static str, body: &'static [u8]) -> Response {
        let request = request();
        let mut response = Response::new(request.url, StatusCode::OK, body);
        response.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
        response.headers.insert(header::CONTENT_LENGTH, body.len().into());
        response
    }

    fn request() -> Request {
        Request::parse("http://h/").unwrap()
    }

    async fn pass(request: &Request, response: &mut Response, cx: &Context) -> Result<(), Error> {
        let compression = HttpCompression::from_settings(cx.settings()).unwrap().unwrap();
        match compression.process_response(request, response, cx).await? {
            OnResponse::Continue => Ok(()),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn the_accepted_codings_are_sent_unless_the_request_names_its_own() {
        let settings = Settings::default();
        let compression = HttpCompression::from_settings(&settings).unwrap().unwrap();
        let cx = Context::detached(settings);
        let mut plain = request();
        compression.process_request(&mut plain, &cx).await.unwrap();
        assert_eq!(plain.headers["accept-encoding"], "gzip, deflate, br, zstd");
        let mut own = request().header("Accept-Encoding", "identity").unwrap();
        compression.process_request(&mut own, &cx).await.unwrap();
        assert_eq!(own.headers["accept-encoding"], "identity");
    }

    #[tokio::test]
    async fn what_the_downloader_decoded_becomes_the_body() {
        let cx = Context::detached(Settings::default());
        // Not gzip at all: it must not be decoded a second time.
        let mut response = answer("gzip", b"as it came");
        response.decoded = Some(Bytes::from_static(b"decoded"));
        pass(&request(), &mut response, &cx).await.unwrap();
        assert_eq!((&response.body[..], response.decoded.is_none()), (&b"decoded"[..], true));
        assert_eq!(response.headers.get("content-encoding"), None);
        assert_eq!(response.headers["content-length"], "7");
        assert_eq!(response.wire_bytes, 10);
        assert_eq!(cx.stats().get("httpcompression/response_count"), 1);
        assert_eq!(cx.stats().get("httpcompression/response_bytes"), 7);
    }

    #[tokio::test]
    async fn an_answer_from_elsewhere_is_decoded_within_the_limits() {
        let cx = Context::detached(Settings::default());
        let mut response = answer("gzip", &PACKED);
        pass(&request(), &mut response, &cx).await.unwrap();
        assert_eq!(response.body, PLAIN);
        assert_eq!(response.headers["content-length"], PLAIN.len().to_string().as_str());
        assert_eq!(response.headers.get("content-encoding"), None);

        let small = request().meta("download_maxsize", 10);
        let error = pass(&small, &mut answer("gzip", &PACKED), &cx).await.unwrap_err();
        assert_eq!(error.downcast_ref::<FetchError>().unwrap().kind(), FetchErrorKind::TooLarge);
        let mut cut = answer("gzip", &PACKED);
        pass(&small.meta("download_truncate", true), &mut cut, &cx).await.unwrap();
        assert_eq!((&cut.body[..], cut.has_flag("truncated")), (&PLAIN.as_bytes()[..10], true));

        let mut half = answer("gzip", &PACKED[..PACKED.len() - 4]);
        pass(&request(), &mut half, &cx).await.unwrap();
        assert_eq!((&half.body[..], half.has_flag("partial")), (PLAIN.as_bytes(), true));
    }

    #[tokio::test]
    async fn a_body_that_does_not_decode_keeps_the_kind_of_its_error() {
        let cx = Context::detached(Settings::default());
        for response in
            [answer("br", b"\xff\xff\xffnonsense"), answer("gzip, gzip, gzip, gzip, gzip, gzip", b"x")]
        {
            let mut response = response;
            let error = pass(&request(), &mut response, &cx).await.unwrap_err();
            assert_eq!(error.downcast_ref::<FetchError>().unwrap().kind(), FetchErrorKind::Decode, "{error}");
        }
        assert_eq!(cx.stats().get("httpcompression/response_count"), 0);
    }

    #[tokio::test]
    async fn heads_unknown_codings_and_empty_bodies_stay_as_they_are() {
        let cx = Context::detached(Settings::default());
        let head = request().method(Method::HEAD);
        for (request, coding, body, flag) in [
            (&head, "gzip", &b""[..], false),
            (&head, "gzip", b"x", false),
            (&request(), "gzip", b"", false),
            (&request(), "identity", b"x", false),
            (&request(), "sdch", b"x", true),
            (&request(), "gzip, sdch", b"x", true),
        ] {
            let mut response = answer(coding, body);
            pass(request, &mut response, &cx).await.unwrap();
            assert_eq!(response.body, body, "{} {coding}", request.method);
            assert_eq!(response.headers["content-encoding"], coding, "{} {coding}", request.method);
            assert_eq!(response.has_flag("unknown_encoding"), flag, "{} {coding}", request.method);
        }
        assert_eq!(cx.stats().get("httpcompression/response_count"), 0);
    }
}
