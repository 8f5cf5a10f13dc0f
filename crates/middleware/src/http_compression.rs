//! HttpCompression: decodes bodies, so that middlewares closer to the network see them as they were received.

use http::{HeaderValue, Method, header};
use huntsman_crawler::{
    Component, Context, DecodeLimits, Decoded, DownloaderMiddleware, FetchError, Hooks, OnRequest,
    OnResponse, Request, Response, Result, Settings, decode_body, meta,
};

use crate::added;

/// Offers gzip, deflate, brotli and zstd, and replaces the body by the decoded one.
///
/// The HTTP client decodes while it reads, within `download_maxsize`; this middleware puts its result in place of the
/// body. A response from elsewhere (a cache, another downloader) is decoded here under the same limits.
/// `Content-Encoding` is removed and `Content-Length` set to the decoded length; a body with an unknown coding is left
/// as it is and flagged `unknown_encoding`.
#[derive(Debug)]
pub struct HttpCompression {
    limits: DecodeLimits,
}

impl HttpCompression {
    /// Creates the component from the settings; never `None`.
    ///
    /// # Errors
    /// None.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        Ok(Some(Self { limits: DecodeLimits::of(settings) }))
    }

    /// The limits of one request: its meta `download_maxsize` and `download_truncate` take precedence over the
    /// settings.
    fn limits_of(&self, request: &Request) -> DecodeLimits {
        let own = request.meta_value(meta::DOWNLOAD_MAXSIZE);
        let truncate = self.limits.truncate || request.meta_flag(meta::DOWNLOAD_TRUNCATE);
        DecodeLimits { max_size: own.unwrap_or(self.limits.max_size), truncate, ..self.limits }
    }

    /// Decodes a body that the HTTP client did not decode; `None` if there is nothing to decode.
    pub(crate) fn decode(
        &self,
        request: &Request,
        response: &Response,
    ) -> Result<Option<Decoded>, FetchError> {
        if request.method == Method::HEAD || response.body.is_empty() {
            return Ok(None);
        }
        decode_body(&response.headers, &response.body, self.limits_of(request))
    }
}

impl Component for HttpCompression {
    const NAME: &'static str = "http_compression";
    type Settings = ();

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.downloader(590)
    }
}

impl DownloaderMiddleware for HttpCompression {
    async fn process_request(&self, request: &mut Request, _: &Context) -> Result<OnRequest> {
        let offered = HeaderValue::from_static("gzip, deflate, br, zstd");
        added::set_if_absent(request, header::ACCEPT_ENCODING, offered);
        Ok(OnRequest::Continue)
    }

    async fn process_response(
        &self,
        request: &Request,
        response: &mut Response,
        cx: &Context,
    ) -> Result<OnResponse> {
        let body = match response.decoded.take() {
            Some(body) => body,
            None => match self.decode(request, response)? {
                None => return Ok(OnResponse::Continue),
                Some(decoded) => {
                    for (set, flag) in [
                        (decoded.partial, "partial"),
                        (decoded.truncated, "truncated"),
                        (decoded.unknown, "unknown_encoding"),
                    ] {
                        if set {
                            response.add_flag(flag);
                        }
                    }
                    decoded.body
                }
            },
        };
        if response.has_flag("unknown_encoding") {
            return Ok(OnResponse::Continue);
        }
        cx.stats().inc("httpcompression/response_count");
        cx.stats().add("httpcompression/response_bytes", i64::try_from(body.len()).unwrap_or(i64::MAX));
        response.body = body;
        response.headers.remove(header::CONTENT_ENCODING);
        if response.headers.contains_key(header::CONTENT_LENGTH) {
            response.headers.insert(header::CONTENT_LENGTH, response.body.len().into());
        }
        Ok(OnResponse::Continue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::write::GzEncoder;
    use http::StatusCode;
    use huntsman_crawler::FetchErrorKind;
    use std::io::Write as _;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn answer(coding: &str, body: Vec<u8>) -> Response {
        let url = url::Url::parse("http://h/").unwrap();
        let length = body.len();
        let mut response = Response::new(url, StatusCode::OK, body);
        response.headers.insert("content-encoding", coding.parse().unwrap());
        response.headers.insert("content-length", length.into());
        response
    }

    async fn decode(settings: &Settings, request: Request, mut response: Response) -> Result<Response> {
        let middleware = HttpCompression::from_settings(settings).unwrap().unwrap();
        let cx = Context::detached(settings.clone());
        middleware.process_response(&request, &mut response, &cx).await?;
        Ok(response)
    }

    fn request() -> Request {
        Request::parse("http://h/").unwrap()
    }

    #[tokio::test]
    async fn a_body_that_the_client_decoded_is_moved() {
        let mut response = answer("br", b"coded".to_vec());
        response.decoded = Some("plain text".into());
        let response = decode(&Settings::default(), request(), response).await.unwrap();
        assert_eq!((&response.body[..], response.decoded), (&b"plain text"[..], None));
        assert!(!response.headers.contains_key("content-encoding"));
        assert_eq!(response.headers["content-length"], "10");
    }

    #[tokio::test]
    async fn other_bodies_are_decoded_under_the_limits() {
        let response = decode(&Settings::default(), request(), answer("gzip", gzip("hello"))).await.unwrap();
        assert_eq!(&response.body[..], b"hello");
        let mut settings = Settings::default();
        settings.download_maxsize = 1_000;
        let bomb = || answer("gzip", gzip(&"x".repeat(5_000)));
        let error = decode(&settings, request(), bomb()).await.unwrap_err();
        let cause = error.downcast_ref::<FetchError>().expect("the kind is kept");
        assert_eq!(cause.kind(), FetchErrorKind::TooLarge);
        let cut =
            decode(&settings, request().with_meta(meta::DOWNLOAD_TRUNCATE, true), bomb()).await.unwrap();
        assert_eq!((cut.body.len(), cut.has_flag("truncated")), (1_000, true));
        let larger =
            decode(&settings, request().with_meta(meta::DOWNLOAD_MAXSIZE, 10_000), bomb()).await.unwrap();
        assert_eq!(larger.body.len(), 5_000);
    }

    #[tokio::test]
    async fn what_cannot_or_need_not_be_decoded_stays() {
        let unknown =
            decode(&Settings::default(), request(), answer("snappy", b"xx".to_vec())).await.unwrap();
        assert_eq!((&unknown.body[..], unknown.has_flag("unknown_encoding")), (&b"xx"[..], true));
        assert_eq!(unknown.headers["content-encoding"], "snappy");
        let head = decode(&Settings::default(), request().method(Method::HEAD), answer("gzip", vec![]))
            .await
            .unwrap();
        assert_eq!(head.headers["content-encoding"], "gzip");
    }

    #[tokio::test]
    async fn codings_are_offered_unless_the_request_says_otherwise() {
        let settings = Settings::default();
        let middleware = HttpCompression::from_settings(&settings).unwrap().unwrap();
        let cx = Context::detached(settings);
        let mut plain = request();
        middleware.process_request(&mut plain, &cx).await.unwrap();
        assert_eq!(plain.headers["accept-encoding"], "gzip, deflate, br, zstd");
        let mut own = request().header("Accept-Encoding", "identity").unwrap();
        middleware.process_request(&mut own, &cx).await.unwrap();
        assert_eq!(own.headers["accept-encoding"], "identity");
    }
}
