//! Tests of the four deadlines. Their values are tiny, and no times are measured: only which deadline ended the
//! request.

use std::time::Duration;

use huntsman_crawler::{FetchErrorKind as K, Request};

use super::support::{Server, downloader, fetch, get, page};

/// Sends the bytes and then stays silent until the client leaves.
async fn quiet_after(bytes: &'static str) -> Server {
    Server::start(move |mut peer, _| async move {
        peer.head().await;
        peer.put(bytes.as_bytes()).await;
        peer.gone().await;
    })
    .await
}

/// Sends the bytes and then one byte every few milliseconds.
async fn drip_after(bytes: &'static str) -> Server {
    Server::start(move |mut peer, _| async move {
        peer.head().await;
        peer.put(bytes.as_bytes()).await;
        while peer.put(b"x").await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
}

const OPEN: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n";

#[tokio::test]
async fn silence_instead_of_headers() {
    let downloader = downloader(|s| s.first_byte_timeout = 0.1);
    for server in [
        quiet_after("").await,
        quiet_after("HTTP/1.1 200 OK\r\nX-A: b").await,
        drip_after("HTTP/1.1 200 OK\r\n").await,
    ] {
        let error = get(&downloader, &server.url("/")).await.unwrap_err();
        assert_eq!(error.kind(), K::FirstByteTimeout, "{error}");
        assert!(error.is_timeout() && error.was_sent() && error.status().is_none());
    }
}

#[tokio::test]
async fn silence_within_the_body() {
    let server = quiet_after(OPEN).await;
    let error = get(&downloader(|s| s.read_idle_timeout = 0.1), &server.url("/")).await.unwrap_err();
    assert_eq!(error.kind(), K::IdleTimeout);
    assert_eq!(error.status().unwrap(), 200);
}

#[tokio::test]
async fn a_drip_ends_at_the_total_timeout() {
    for server in [drip_after(OPEN).await, drip_after("").await] {
        let error = get(&downloader(|s| s.download_timeout = 0.2), &server.url("/")).await.unwrap_err();
        // Without headers the invalid bytes are noticed first.
        assert!(matches!(error.kind(), K::TotalTimeout | K::BadResponse), "{error}");
    }
    let server = drip_after(OPEN).await;
    let request = Request::parse(&server.url("/")).unwrap().meta("download_timeout", 0.2);
    let error = fetch(&downloader(|_| {}), request).await.unwrap_err();
    assert_eq!(error.kind(), K::TotalTimeout, "the request's own timeout");
}

#[tokio::test]
async fn a_drip_faster_than_the_idle_timeout_is_no_silence() {
    let server = Server::start(|mut peer, _| async move {
        peer.head().await;
        peer.put(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 12\r\n\r\n").await;
        for _ in 0..12 {
            peer.put(b"x").await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    let response =
        get(&downloader(|s| s.read_idle_timeout = 0.8), &server.url("/")).await.expect("slow but steady");
    assert_eq!(response.body.len(), 12);
}

#[tokio::test]
async fn a_handshake_that_never_ends_is_a_connect_timeout() {
    let server = Server::start(|mut peer, _| async move {
        peer.gone().await;
    })
    .await;
    let url = format!("https://{}/", server.address);
    let error = get(&downloader(|s| s.connect_timeout = 0.1), &url).await.unwrap_err();
    assert_eq!(error.kind(), K::ConnectTimeout, "{error}");
    assert!(!error.was_sent());
    // The first-byte deadline does not run while connecting, but the total deadline does.
    let error =
        get(&downloader(|s| (s.connect_timeout, s.first_byte_timeout) = (0.3, 0.1)), &url).await.unwrap_err();
    assert_eq!(error.kind(), K::ConnectTimeout, "{error}");
    let error = get(&downloader(|s| s.download_timeout = 0.1), &url).await.unwrap_err();
    assert_eq!(error.kind(), K::TotalTimeout, "{error}");
}

#[tokio::test]
async fn zero_is_no_timeout() {
    let server = Server::always(page(b"x")).await;
    let none = downloader(|s| {
        (s.connect_timeout, s.first_byte_timeout, s.read_idle_timeout, s.download_timeout) =
            (0.0, 0.0, 0.0, 0.0);
    });
    assert!(get(&none, &server.url("/")).await.is_ok());
}

#[tokio::test]
async fn a_request_that_was_given_up_frees_its_connection() {
    let server = quiet_after("").await;
    let downloader = downloader(|_| {});
    let request = Request::parse(&server.url("/")).unwrap();
    let given_up = tokio::time::timeout(Duration::from_millis(50), fetch(&downloader, request)).await;
    assert!(given_up.is_err());
    let other = Server::always(page(b"x")).await;
    assert!(get(&downloader, &other.url("/")).await.is_ok());
}
