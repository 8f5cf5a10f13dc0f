//! The server: its accept loop, and what it adds to axum.
//!
//! Routing, extractors and layers are axum's, the protocol is hyper's. `axum::serve` accepts every connection and
//! waits for every client without limits, so this module adds them. The accept loop gives each connection a slot,
//! and no address may hold more than its share of them (`slots.rs`). Connections have deadlines and limits for heads
//! and for writes (`connection.rs`, `stream.rs`); hyper has them for heads only. The body of a request has a deadline
//! and its share of the memory ([`ActiveRequest`]); axum limits only its size. There is no TLS.

mod connection;
mod host_names;
mod request;
mod slots;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use http::{Response, StatusCode, Uri};
use tokio::net::TcpListener;
use tokio::sync::watch;

pub use host_names::HostNames;
pub use request::{ActiveRequest, Rejection};
pub use slots::Limits;

use connection::serve_connection;
use slots::ConnectionSlots;

/// Time that running requests get to end after the server was told to stop: 15 seconds.
pub const DRAIN_TIME: Duration = Duration::from_secs(15);

/// Serves the routes until the value of `stop` is true; requests that are being handled then have [`DRAIN_TIME`] to end. A panic of a
/// handler closes only its connection. Dropping the future closes all connections at once.
pub async fn serve(listener: TcpListener, routes: Router, limits: Limits, mut stop: watch::Receiver<bool>) {
    let slots = ConnectionSlots::new(limits);
    // The tasks end when this future is dropped, and with them all connections.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            // The stop comes first: a client that connects after it gets no answer.
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let _ = stream.set_nodelay(true);
                connections.spawn(serve_connection(
                    stream,
                    routes.clone(),
                    slots.acquire(peer.ip()),
                    stop.clone(),
                ));
            }
            // Either the process is out of file descriptors, or the client is gone already: the loop tries again
            // later, without spinning.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    // Slower clients are cut off.
    let _ = tokio::time::timeout(DRAIN_TIME, all).await;
}

/// Serves the routes until the future is dropped.
pub async fn serve_routes(listener: TcpListener, routes: Router, limits: Limits) {
    let (_running, stop) = watch::channel(false);
    serve(listener, routes, limits, stop).await;
}

/// Serves GET and HEAD requests with a function of the address, until the future is dropped; other methods get 405.
pub async fn serve_pages(
    listener: TcpListener,
    limits: Limits,
    answer: impl Fn(&Uri) -> Response<String> + Send + Sync + 'static,
) {
    let answer = Arc::new(answer);
    let page = move |uri: Uri| std::future::ready(answer(&uri));
    let refused = async || (StatusCode::METHOD_NOT_ALLOWED, "GET and HEAD only\n");
    serve_routes(listener, Router::new().fallback(get(page).fallback(refused)), limits).await;
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    async fn exchange(requests: &[u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server =
            tokio::spawn(serve_pages(listener, Limits::default(), |uri| Response::new(uri.to_string())));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(requests).await.unwrap();
        let mut got = String::new();
        stream.read_to_string(&mut got).await.unwrap();
        server.abort();
        got
    }

    #[tokio::test]
    async fn requests_in_a_row_are_answered_in_order() {
        let got = exchange(b"GET /1 HTTP/1.1\r\n\r\nHEAD /22 HTTP/1.1\r\n\r\nGET /3 HTTP/1.0\r\n\r\n").await;
        let bodies: Vec<&str> = got.split("\r\n\r\n").collect();
        assert!(bodies[1].starts_with("/1HTTP/1.1 200"), "{got}");
        assert!(bodies[1].contains("Content-Length: 3") && bodies[2].starts_with("HTTP/1.0 200"), "{got}");
        assert_eq!(bodies[3], "/3");
    }

    #[tokio::test]
    async fn a_client_that_waits_when_the_server_is_stopped_gets_no_answer() {
        // Each round would fail half of the time if the accepted connection and the stop were taken in random order.
        for _ in 0..20 {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
            let (stop, stopped) = watch::channel(false);
            stop.send(true).unwrap();
            serve(listener, Router::new().fallback(get("answered")), Limits::default(), stopped).await;
            let mut got = String::new();
            // The system resets the connection, or closes it.
            let _ = stream.read_to_string(&mut got).await;
            assert_eq!(got, "");
        }
    }

    #[tokio::test]
    async fn an_endless_head_is_refused() {
        let mut request = b"GET / HTTP/1.1\r\nX: ".to_vec();
        request.resize(64 << 10, b'a');
        assert!(exchange(&request).await.starts_with("HTTP/1.1 431"));
    }

    #[tokio::test]
    async fn other_methods_and_what_is_no_request_are_refused() {
        assert!(
            exchange(b"DELETE / HTTP/1.1\r\nConnection: close\r\n\r\n").await.starts_with("HTTP/1.1 405")
        );
        assert!(exchange(b"nonsense\r\n\r\n").await.starts_with("HTTP/1.1 400"));
    }
}
