//! DownloaderStats: requests, responses, bytes and failures under Scrapy's names.

use std::sync::OnceLock;

use http::HeaderMap;
use huntsman_crawler::{
    Component, Context, Counter, DownloaderMiddleware, FetchError, Hooks, OnException, OnRequest, OnResponse,
    Request, Response, Result, Settings, Stats,
};

/// Counts requests and responses close to the network; responses from the HTTP cache are counted too.
///
/// The number of bytes is that of an HTTP/1.1 message with these headers and the body as it was transferred.
#[derive(Debug, Default)]
pub struct DownloaderStats {
    counters: OnceLock<Counters>,
}

#[derive(Debug)]
struct Counters {
    requests: Counter,
    request_bytes: Counter,
    gets: Counter,
    responses: Counter,
    response_bytes: Counter,
    ok: Counter,
    exceptions: Counter,
}

impl Counters {
    fn new(stats: &Stats) -> Self {
        Self {
            requests: stats.counter("downloader/request_count"),
            request_bytes: stats.counter("downloader/request_bytes"),
            gets: stats.counter("downloader/request_method_count/GET"),
            responses: stats.counter("downloader/response_count"),
            response_bytes: stats.counter("downloader/response_bytes"),
            ok: stats.counter("downloader/response_status_count/200"),
            exceptions: stats.counter("downloader/exception_count"),
        }
    }
}

impl DownloaderStats {
    /// Creates the component from the settings; never `None`.
    ///
    /// # Errors
    /// None.
    pub fn from_settings(_: &Settings) -> Result<Option<Self>> {
        Ok(Some(Self::default()))
    }

    /// The common counters are looked up in the stats once: by name each would cost a lock and a look-up per request.
    fn counters(&self, cx: &Context) -> &Counters {
        self.counters.get_or_init(|| Counters::new(cx.stats()))
    }
}

impl Component for DownloaderStats {
    const NAME: &'static str = "downloader_stats";
    type Settings = ();

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.downloader(850)
    }
}

impl DownloaderMiddleware for DownloaderStats {
    async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
        let counters = self.counters(cx);
        counters.requests.inc();
        if request.method == http::Method::GET {
            counters.gets.inc();
        } else {
            cx.stats().inc(&format!("downloader/request_method_count/{}", request.method));
        }
        counters.request_bytes.add(bytes(request_size(request)));
        Ok(OnRequest::Continue)
    }

    async fn process_response(
        &self,
        _: &Request,
        response: &mut Response,
        cx: &Context,
    ) -> Result<OnResponse> {
        let counters = self.counters(cx);
        counters.responses.inc();
        match response.status.as_u16() {
            200 => counters.ok.inc(),
            status => cx.stats().inc(&format!("downloader/response_status_count/{status}")),
        }
        counters.response_bytes.add(bytes(response_size(response)));
        Ok(OnResponse::Continue)
    }

    async fn process_exception(&self, _: &Request, error: &FetchError, cx: &Context) -> Result<OnException> {
        self.counters(cx).exceptions.inc();
        cx.stats().inc(&format!("downloader/exception_type_count/{}", error.kind().name()));
        Ok(OnException::Pass)
    }
}

fn bytes(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

fn header_size(headers: &HeaderMap) -> u64 {
    headers.iter().map(|(name, value)| (name.as_str().len() + value.len() + ": \r\n".len()) as u64).sum()
}

fn request_size(request: &Request) -> u64 {
    let target = &request.url[url::Position::BeforePath..url::Position::AfterQuery];
    let line = request.method.as_str().len() + target.len() + "  HTTP/1.1\r\n".len();
    line as u64 + header_size(&request.headers) + "\r\n".len() as u64 + request.body.len() as u64
}

fn response_size(response: &Response) -> u64 {
    let reason = response.status.canonical_reason().unwrap_or("").len();
    let line = "HTTP/1.1 200 \r\n".len() + reason;
    line as u64 + header_size(&response.headers) + "\r\n".len() as u64 + response.wire_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;
    use huntsman_crawler::FetchErrorKind;

    #[tokio::test]
    async fn requests_responses_and_failures_are_counted_by_kind() {
        let settings = Settings::default();
        let stats = DownloaderStats::from_settings(&settings).unwrap().unwrap();
        let cx = Context::detached(settings);
        let mut request = Request::parse("http://h/a?b#c").unwrap().header("X-A", "1").unwrap();
        stats.process_request(&mut request, &cx).await.unwrap();
        let mut post = Request::form(request.url.clone(), [("k", "v")]);
        stats.process_request(&mut post, &cx).await.unwrap();
        for status in [StatusCode::OK, StatusCode::NOT_FOUND] {
            let mut response = Response::new(request.url.clone(), status, "12345");
            stats.process_response(&request, &mut response, &cx).await.unwrap();
        }
        let error = FetchError::new(FetchErrorKind::Reset, "gone");
        stats.process_exception(&request, &error, &cx).await.unwrap();
        let get = "GET /a?b HTTP/1.1\r\nx-a: 1\r\n\r\n".len();
        let posted = "POST /a?b HTTP/1.1\r\ncontent-type: application/x-www-form-urlencoded\r\n\r\nk=v".len();
        let answers = "HTTP/1.1 200 OK\r\n\r\n12345HTTP/1.1 404 Not Found\r\n\r\n12345".len();
        for (key, value) in [
            ("downloader/request_count", 2),
            ("downloader/request_method_count/GET", 1),
            ("downloader/request_method_count/POST", 1),
            ("downloader/request_bytes", get + posted),
            ("downloader/response_count", 2),
            ("downloader/response_status_count/200", 1),
            ("downloader/response_status_count/404", 1),
            ("downloader/response_bytes", answers),
            ("downloader/exception_count", 1),
            ("downloader/exception_type_count/connection_reset", 1),
        ] {
            assert_eq!(cx.stats().get(key), value as i64, "{key}");
        }
    }
}
