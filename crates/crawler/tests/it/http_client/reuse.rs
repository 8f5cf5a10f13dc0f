//! Tests of pooled connections: sharing, dropping, and finding them closed.

use std::sync::Arc;

use huntsman_crawler::{FetchErrorKind as K, Request};

use super::support::{Server, downloader, fetch, get, page};

/// Answers `good` requests on each connection, reads one more request and closes without a response.
async fn tired_after(good: usize) -> Server {
    Server::start(move |mut peer, _| async move {
        for _ in 0..good {
            if peer.head().await.is_none() {
                return;
            }
            peer.put(&page(b"x")).await;
        }
        peer.head().await;
        peer.close().await;
    })
    .await
}

#[tokio::test]
async fn an_idle_connection_that_the_server_closed_costs_no_error() {
    // The server closes at the very moment when the next request arrives: the worst case, as the request was already
    // sent.
    let server = tired_after(1).await;
    let downloader = downloader(|_| {});
    for _ in 0..10 {
        assert_eq!(&get(&downloader, &server.url("/")).await.expect("silently retried").body[..], b"x");
    }
    assert!(server.connections() >= 10);
}

#[tokio::test]
async fn connections_closed_while_idle_are_replaced() {
    let server = Server::once(page(b"x")).await;
    let downloader = downloader(|_| {});
    for n in 1..=10 {
        get(&downloader, &server.url("/")).await.expect("a page");
        assert_eq!(server.connections(), n);
    }
}

#[tokio::test]
async fn a_post_is_not_sent_twice() {
    let server = tired_after(1).await;
    let downloader = downloader(|_| {});
    get(&downloader, &server.url("/")).await.expect("a page");
    let post = Request::parse(&server.url("/post")).unwrap().method(http::Method::POST).body("a=1");
    let error = fetch(&downloader, post).await.unwrap_err();
    assert!(error.kind() == K::Reset && error.was_sent(), "{error}");
    assert_eq!(server.heads().iter().filter(|head| head.starts_with("POST")).count(), 1);
}

#[tokio::test]
async fn a_fresh_connection_that_is_closed_is_not_retried() {
    let server = tired_after(0).await;
    let error = get(&downloader(|_| {}), &server.url("/")).await.unwrap_err();
    assert_eq!(error.kind(), K::Reset);
    assert_eq!(server.connections(), 1);
}

/// The HTTP library does not say whether bytes of a response arrived before the connection was lost. On a reused
/// connection both cases count as closed while idle, for requests that may be sent twice.
#[tokio::test]
async fn an_answer_that_began_is_retried_silently_only_after_reuse_and_never_a_post() {
    let breaking = || {
        Server::start(|mut peer, number| async move {
            if number == 0 {
                peer.head().await;
                peer.put(&page(b"x")).await;
            }
            peer.head().await;
            peer.put(b"HTTP/1.1 200 OK\r\nConte").await;
            peer.close().await;
        })
    };
    for (method, tries) in [(http::Method::GET, 2), (http::Method::POST, 1)] {
        let server = breaking().await;
        let downloader = downloader(|_| {});
        get(&downloader, &server.url("/")).await.expect("a page");
        let request = Request::parse(&server.url("/")).unwrap().method(method);
        assert_eq!(fetch(&downloader, request).await.unwrap_err().kind(), K::Reset);
        assert_eq!(server.heads().len(), 1 + tries, "the second try has a connection of its own");
    }
}

/// A connection on which a broken response arrives was not closed while idle, even if it was used before: the request
/// must not be sent again as if the server had never seen it.
#[tokio::test]
async fn a_broken_answer_on_a_reused_connection_is_not_asked_for_again() {
    for broken in ["HTTP/1.1 200 OK\r\nX-Odd: a\rb\r\nContent-Length: 1\r\n\r\nx", "no status line\r\n\r\n"] {
        let server = Server::start(move |mut peer, _| async move {
            peer.head().await;
            peer.put(&page(b"x")).await;
            peer.head().await;
            peer.put(broken.as_bytes()).await;
            peer.close().await;
        })
        .await;
        let downloader = downloader(|_| {});
        get(&downloader, &server.url("/")).await.expect("a page");
        let error = get(&downloader, &server.url("/")).await.unwrap_err();
        assert!(error.kind() == K::BadResponse && error.was_sent(), "{error}");
        assert_eq!((server.heads().len(), server.connections()), (2, 1), "{broken:?}");
    }
}

#[tokio::test]
async fn a_refused_body_closes_the_connection_and_a_finished_one_keeps_it() {
    let server = Server::always(page(&vec![b'x'; 3_000_000])).await;
    let downloader = downloader(|s| s.download_maxsize = 1_000);
    for n in 1..=3 {
        assert_eq!(get(&downloader, &server.url("/")).await.unwrap_err().kind(), K::TooLarge);
        assert_eq!(server.connections(), n);
    }
}

#[tokio::test]
async fn requests_at_once_get_connections_of_their_own() {
    let server = Server::always(page(b"x")).await;
    let downloader = Arc::new(downloader(|_| {}));
    for _ in 0..5 {
        let tasks: Vec<_> = (0..6)
            .map(|_| {
                let (downloader, url) = (Arc::clone(&downloader), server.url("/"));
                tokio::spawn(async move { get(&downloader, &url).await.expect("a page").body.len() })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.expect("no panic"), 1);
        }
    }
    assert!(server.connections() <= 12, "{} connections for 6 at once", server.connections());
}

#[tokio::test]
async fn a_refused_connection_is_a_connect_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = get(&downloader(|_| {}), &format!("http://{address}/")).await.unwrap_err();
    assert_eq!(error.kind(), K::Connect);
    assert!(!error.was_sent() && error.is_connect());
    assert!(error.to_string().contains("refused") && error.to_string().contains("127.0.0.1"), "{error}");
}

#[tokio::test]
async fn idle_connections_are_bounded_over_all_hosts() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    let server = Server::always(chunked).await;
    let open = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let before = open();
    let port = server.address.port();
    let names: Vec<String> = (0..400).map(|n| format!("host{n}.example:{port}:127.0.0.1")).collect();
    let downloader = downloader(|s| s.resolve = names);
    for n in 0..400 {
        get(&downloader, &format!("http://host{n}.example:{port}/")).await.expect("a page");
    }
    // Both ends are in this process, so each connection takes two files.
    assert_eq!(server.connections(), 400);
    let grown = open().saturating_sub(before);
    assert!(grown < 2 * 300, "{grown} more files are open");
    // The youngest connections are still open; the oldest one is opened again.
    get(&downloader, &format!("http://host399.example:{port}/")).await.expect("a page");
    assert_eq!(server.connections(), 400);
    get(&downloader, &format!("http://host0.example:{port}/")).await.expect("a page");
    assert_eq!(server.connections(), 401);
}

/// Runs the test below in a separate process that may open only few files.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn running_out_of_files_waits_instead_of_failing() {
    let program = std::env::current_exe().expect("this program");
    let script = format!(
        "ulimit -n 48 && '{}' --exact http_client::reuse::with_few_files --nocapture",
        program.display()
    );
    let mut command = std::process::Command::new("sh");
    let output = command.arg("-c").arg(script).env("FEW_FILES", "1").output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("met the limit"), "{said}");
}

#[tokio::test]
async fn with_few_files() {
    if std::env::var_os("FEW_FILES").is_none() {
        return;
    }
    let server = Server::always(page(b"x")).await;
    let port = server.address.port();
    let names = ["one", "two"].map(|name| format!("{name}.example:{port}:127.0.0.1")).to_vec();
    let downloader = Arc::new(downloader(|s| s.resolve = names));
    let fill = || {
        let mut others = Vec::new();
        while let Ok(file) = std::fs::File::open("/dev/null") {
            others.push(file);
        }
        others
    };
    let others = fill();
    println!("met the limit");
    let (first, url) = (Arc::clone(&downloader), format!("http://one.example:{port}/"));
    let fetched = tokio::spawn(async move { get(&first, &url).await });
    // A real wait: the client asks the system again and again, and must not give up.
    tokio::time::sleep(std::time::Duration::from_millis(150)).await;
    assert!(!fetched.is_finished(), "it waits for others to free files");
    drop(others);
    assert_eq!(&fetched.await.expect("no panic").expect("a page").body[..], b"x");
    // Now there is an idle connection that can be closed.
    let _others = fill();
    let response = get(&downloader, &format!("http://two.example:{port}/")).await.expect("a page");
    assert_eq!(&response.body[..], b"x");
}
