//! A connection: it serves one request after the other, each with its deadlines.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use http::header::CONNECTION;
use http::{HeaderValue, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tower::ServiceExt;

use super::request::ActiveRequest;
use super::slots::ConnectionSlot;
use super::stream::MinRateStream;

/// Maximum size of a request's head in bytes, including its URL.
const MOST_HEAD: usize = 64 << 10;
/// Maximum number of header lines in a request.
const MOST_HEADERS: usize = 100;
/// Time limit for receiving a head, and for an idle connection; the connection is closed after it.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// Serves the requests of a connection, as long as the connection has its slot.
pub(super) async fn serve_connection<T>(
    stream: T,
    routes: Router,
    slot: ConnectionSlot,
    mut stop: watch::Receiver<bool>,
) where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let slot = Arc::new(slot);
    let is_sending = Arc::<AtomicBool>::default();
    let service = service_fn(|request| {
        let active = ActiveRequest::begin(&slot, &request);
        let (routes, is_sending) = (routes.clone(), Arc::clone(&is_sending));
        async move { Ok::<_, Infallible>(respond(routes, request, active, &is_sending).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_headers(MOST_HEADERS)
        .max_buf_size(MOST_HEAD)
        .title_case_headers(true)
        .serve_connection(TokioIo::new(MinRateStream::new(stream, Arc::clone(&is_sending))), service);
    let mut connection = pin!(connection);
    let mut is_stopping = false;
    loop {
        tokio::select! {
            // The stop comes first: a request that arrives after it is not read.
            biased;
            _ = stop.wait_for(|stop| *stop), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            () = slot.evicted() => return,
            // If a client breaks off, that is no error of the server.
            _ = connection.as_mut() => return,
        }
    }
}

async fn respond(
    routes: Router,
    mut request: Request<Incoming>,
    active: ActiveRequest,
    is_sending: &AtomicBool,
) -> Response {
    request.extensions_mut().insert(active.clone());
    let Ok(mut response) = routes.oneshot(request).await;
    if !active.end() {
        // After a body that was not read, no further request can be read.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        is_sending.store(true, Ordering::Relaxed);
    }
    response
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use axum::body::Body;
    use axum::response::IntoResponse;
    use http::{HeaderMap, StatusCode};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::time::Instant;

    use super::super::request::{BODY_TIME, Rejection};
    use super::super::slots::{ConnectionSlots, Limits};
    use super::*;

    /// A handler for tests: it lets a request with the header `Authorization` in, reads the bodies of other requests
    /// that have a `Content-Type`, and responds with the length.
    async fn length(active: ActiveRequest, headers: HeaderMap, body: Body) -> Result<Response, Rejection> {
        let knows = headers.contains_key("authorization");
        if !knows && !headers.contains_key("content-type") {
            return Ok((StatusCode::UNAUTHORIZED, "no\n").into_response());
        }
        if knows {
            active.let_in()?;
        }
        Ok(active.read(body, 1_000).await?.len().to_string().into_response())
    }

    struct TestServer {
        slots: ConnectionSlots,
        _running: watch::Sender<bool>,
        stop: watch::Receiver<bool>,
    }

    impl TestServer {
        fn new(connections: usize, bodies: usize) -> Self {
            let (_running, stop) = watch::channel(false);
            Self { slots: ConnectionSlots::new(Limits { connections, reserved: 1, bodies }), _running, stop }
        }

        fn connect(&self) -> DuplexStream {
            let (ours, theirs) = tokio::io::duplex(1 << 10);
            let slot = self.slots.acquire(Ipv4Addr::LOCALHOST.into());
            tokio::spawn(serve_connection(theirs, Router::new().fallback(length), slot, self.stop.clone()));
            ours
        }

        async fn send(&self, request: &str) -> DuplexStream {
            let mut stream = self.connect();
            stream.write_all(request.as_bytes()).await.unwrap();
            stream
        }

        /// The status of the response, and after how many seconds the connection was closed.
        async fn ask(&self, request: &str) -> (String, u64) {
            let start = Instant::now();
            (status(self.send(request).await).await, start.elapsed().as_secs())
        }
    }

    async fn status(mut stream: DuplexStream) -> String {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap().split(' ').nth(1).unwrap_or_default().to_owned()
    }

    fn request(headers: &str, body: &str) -> String {
        format!("POST / HTTP/1.1\r\nConnection: close\r\n{headers}\r\n{body}")
    }

    const FORM: &str = "Content-Type: x\r\nContent-Length: 900\r\n";
    const KNOWN: &str = "Authorization: x\r\nContent-Length: 900\r\n";

    #[tokio::test(start_paused = true)]
    async fn a_body_is_not_waited_for_if_the_head_says_enough() {
        let server = TestServer::new(9, 10_000);
        let mut stream = server.send(&request("Content-Length: 900\r\n", "abc")).await;
        let start = Instant::now();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!((&answer, start.elapsed()), (b"HTTP/1.1 401", Duration::ZERO));
        assert_eq!(server.ask(&request(KNOWN, &"a".repeat(900))).await, ("200".to_owned(), 0));
    }

    #[tokio::test(start_paused = true)]
    async fn heads_and_bodies_that_do_not_come_end_by_their_deadlines() {
        let server = TestServer::new(9, 10_000);
        assert_eq!(server.ask("POST / HTTP/1.1\r\nX: ").await.1, HEAD_TIME.as_secs());
        for head in [FORM, KNOWN] {
            let (status, seconds) = server.ask(&request(head, "abc")).await;
            assert_eq!((status.as_str(), seconds), ("408", BODY_TIME.as_secs()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_without_an_end_cost_no_one_else_the_room() {
        let server = TestServer::new(30, 4_000);
        let mut open = Vec::new();
        for _ in 0..20 {
            open.push(server.send(&request(FORM, &"a".repeat(800))).await);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for head in [FORM, KNOWN] {
            assert_eq!(server.ask(&request(head, &"a".repeat(900))).await, ("200".to_owned(), 0));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_pipeline_and_do_not_read_are_closed_and_delay_no_other() {
        let server = TestServer::new(4, 10_000);
        let start = Instant::now();
        let mut open = Vec::new();
        for _ in 0..4 {
            let mut stream = server.connect();
            let many = "GET / HTTP/1.1\r\n\r\n".repeat(2_000);
            open.push(tokio::spawn(async move {
                // The server never reads all of it.
                let sent = stream.write_all(many.as_bytes()).await;
                (sent.is_err(), stream)
            }));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(server.ask(&request(KNOWN, &"a".repeat(900))).await, ("200".to_owned(), 0));
        for sent in open {
            assert!(sent.await.unwrap().0);
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn admitted_requests_are_bounded_and_further_ones_are_told_to_retry() {
        let server = TestServer::new(3, 10_000);
        let open = [server.send(&request(KNOWN, "abc")).await, server.send(&request(KNOWN, "abc")).await];
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(server.ask(&request(KNOWN, "")).await.0, "503");
        assert_eq!(server.ask(&request("", "")).await.0, "401");
        drop(open);
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(server.ask(&request(KNOWN, &"a".repeat(900))).await.0, "200");
    }
}
