//! Tests with responses that violate the protocol, declare a wrong length, or end early.

use huntsman_crawler::{FetchErrorKind as K, Request, meta};

use super::support::{Server, answer, downloader, fetch, get, page};

#[tokio::test]
async fn broken_answers_are_failed_by_kind_and_never_delivered() {
    let chunked = |body: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
    let cases = [
        ("", K::Reset),
        ("HTTP/1.1 200 OK\r\nContent-Le", K::Reset),
        ("hello\r\n\r\n", K::BadResponse),
        ("\0\0\0\0", K::BadResponse),
        ("<html>no status line</html>", K::BadResponse),
        ("HTTP/9.9 200 OK\r\n\r\n", K::BadResponse),
        ("HTTP/1.1 20 OK\r\n\r\n", K::BadResponse),
        ("HTTP/1.1 abc OK\r\n\r\n", K::BadResponse),
        ("HTTP/1.1 000 Zero\r\nContent-Length: 0\r\n\r\n", K::BadResponse),
        ("HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n", K::BadResponse),
        ("HTTP/1.1 600 High\r\nContent-Length: 0\r\n\r\n", K::BadResponse),
        ("HTTP/1.1 999 Blocked\r\nContent-Length: 0\r\n\r\n", K::BadResponse),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", K::BadResponse),
        ("HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n", K::BadResponse),
        ("HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 0\r\n\r\n", K::BadResponse),
        ("HTTP/1.1 200 OK\r\nno colon here\r\nContent-Length: 0\r\n\r\n", K::BadResponse),
        ("HTTP/1.1 200 OK\r\nX Y: space\r\nContent-Length: 0\r\n\r\n", K::BadResponse),
        ("HTTP/1.1 200 OK\r\nX: a\r\n folded\r\nContent-Length: 0\r\n\r\n", K::BadResponse),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", K::BadResponse),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello!", K::BadResponse),
        ("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", K::BadResponse),
        ("HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello", K::BadResponse),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhello", K::BadResponse),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            K::BadResponse,
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", K::BadResponse),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            K::BadResponse,
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked,\r\n\r\n2\r\nok\r\n0\r\n\r\n", K::BadResponse),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: shuffled\r\n\r\nuntil the end", K::BadResponse),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", K::BadResponse),
        ("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", K::Incomplete),
        (&chunked("5\r\nhello\r\n"), K::Incomplete),
        (&chunked("5\r\nhel"), K::Incomplete),
        (&chunked("zz\r\nhello\r\n0\r\n\r\n"), K::Incomplete),
        (&chunked("5\r\nhelloXX0\r\n\r\n"), K::Incomplete),
        (&chunked("fffffffffffffffff\r\nhello"), K::Incomplete),
        (&chunked("ffffffffffffffff\r\nhello"), K::Incomplete),
        (&chunked("-5\r\nhello\r\n0\r\n\r\n"), K::Incomplete),
        (&chunked("5\r\nhello\r\n0\r\n"), K::Incomplete),
        (&chunked(&format!("5;{}\r\nhello\r\n0\r\n\r\n", "e".repeat(100_000))), K::Incomplete),
    ];
    let downloader = downloader(|_| {});
    for (bytes, kind) in cases {
        let shown: String = bytes.chars().take(80).collect();
        let server = Server::once(bytes).await;
        match get(&downloader, &server.url("/")).await {
            Ok(response) => panic!("delivered {:?} for {shown:?}", response.body),
            Err(error) => {
                assert_eq!(error.kind(), kind, "{shown:?}: {error}");
                assert!(error.was_sent(), "{shown:?}");
                assert!(!error.to_string().is_empty());
            }
        }
        assert_eq!(server.connections(), 1, "one try for {shown:?}");
    }
}

#[tokio::test]
async fn odd_but_valid_answers_pass() {
    let cases: [(&[u8], &[u8]); 10] = [
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 200 \xc3\x9cber\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 200 OK\r\nX: caf\xe9 \xff\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", b"ok"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\no\r\n01\r\nk\r\n0\r\nX-T: 1\r\n\r\n", b"ok"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity, Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", b"ok"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nuntil the end", b"until the end"),
    ];
    let downloader = downloader(|_| {});
    for (bytes, body) in cases {
        let server = Server::once(bytes).await;
        let shown = String::from_utf8_lossy(bytes);
        let response = get(&downloader, &server.url("/")).await.unwrap_or_else(|e| panic!("{shown}: {e}"));
        assert_eq!(&response.body[..], body, "{shown}");
    }
}

#[tokio::test]
async fn a_reset_within_the_body_is_incomplete_and_before_it_a_reset() {
    for (head, kind) in [
        ("", K::Reset),
        ("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\nabc", K::Incomplete),
    ] {
        let server = Server::start(move |mut peer, _| async move {
            peer.head().await;
            peer.put(head.as_bytes()).await;
            // The pause lets the client read the bytes before the reset discards them.
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
            peer.reset();
        })
        .await;
        let error = get(&downloader(|_| {}), &server.url("/")).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
}

#[tokio::test]
async fn data_loss_passes_with_a_flag_where_that_is_asked_for() {
    let downloader = downloader(|s| s.download_fail_on_dataloss = false);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n";
    for bytes in ["HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", chunked] {
        let server = Server::once(bytes).await;
        let response = get(&downloader, &server.url("/")).await.expect("what came");
        assert_eq!((&response.body[..], &response.flags[..]), (&b"hello"[..], &["dataloss"][..]));
    }
}

#[tokio::test]
async fn leftovers_never_become_another_answer() {
    let evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    for first in [
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n",
    ] {
        let server = Server::always([first, evil].concat()).await;
        let downloader = downloader(|_| {});
        for round in 1..=30 {
            let response = get(&downloader, &server.url("/")).await.expect("another connection");
            assert!(matches!(&response.body[..], b"good" | b""), "round {round}: {first:?}");
            assert_eq!(server.connections(), round, "a connection with leftovers is closed");
        }
    }
}

#[tokio::test]
async fn leftovers_that_come_while_the_connection_idles_close_it() {
    let (sent, mut arrived) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::start(move |mut peer, _| {
        let sent = sent.clone();
        async move {
            while peer.head().await.is_some() {
                peer.put(&page(b"good")).await;
                // When the client asks here, it has read the page.
                let (go, wait) = tokio::sync::oneshot::channel::<()>();
                sent.send(go).expect("the test listens");
                wait.await.expect("the test answers");
                peer.put(&page(b"evil")).await;
                let (go, _) = tokio::sync::oneshot::channel::<()>();
                sent.send(go).expect("the test listens");
            }
        }
    })
    .await;
    let downloader = downloader(|_| {});
    for round in 1..=30 {
        let response = get(&downloader, &server.url("/")).await.expect("another connection");
        assert_eq!(&response.body[..], b"good", "round {round}");
        arrived.recv().await.expect("page sent").send(()).expect("the server waits");
        arrived.recv().await.expect("leftovers sent");
    }
    assert_eq!(server.connections(), 30);
}

#[tokio::test]
async fn a_body_after_head_and_304_is_not_taken_for_the_next_answer() {
    let server = Server::start(|mut peer, _| async move {
        while let Some(head) = peer.head().await {
            // A server that sends a body in response to HEAD.
            let body = answer("200 OK", "", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
            peer.put(if head.starts_with("HEAD") {
                &body[..]
            } else {
                b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"
            })
            .await;
        }
    })
    .await;
    let downloader = downloader(|_| {});
    for _ in 0..20 {
        let head = Request::parse(&server.url("/")).unwrap().method(http::Method::HEAD);
        assert!(fetch(&downloader, head).await.expect("headers").body.is_empty());
        if let Ok(response) = get(&downloader, &server.url("/")).await {
            assert_eq!(&response.body[..], b"good");
        }
    }
}

#[tokio::test]
async fn every_printable_character_of_a_url_can_be_sent() {
    let server = Server::always(page(b"")).await;
    let downloader = downloader(|_| {});
    for c in (0x20..0x7f).map(char::from).chain(['\u{e9}', '\u{4e2d}', '\u{1f600}', '\u{0}', '\n', '\u{7f}'])
    {
        for url in [
            server.url(&format!("/a{c}b")),
            server.url(&format!("/?a{c}b")),
            server.url(&format!("/;a{c}b?x")),
        ] {
            get(&downloader, &url).await.unwrap_or_else(|e| panic!("{url:?}: {e}"));
        }
    }
    for head in server.heads() {
        let line = head.lines().next().unwrap();
        assert!(line.is_ascii() && line.split(' ').count() == 3, "{line:?}");
    }
}

#[tokio::test]
async fn types_that_are_not_text_are_left_unread() {
    let cases = [
        ("image/png", "/", true),
        ("video/mp4", "/page.html", true),
        ("application/pdf", "/", true),
        ("application/octet-stream", "/tool.exe", true),
        ("application/octet-stream", "/", false),
        ("text/html", "/x.png", false),
        ("application/json", "/", false),
        ("image/svg+xml", "/", false),
    ];
    for (media, path, refused) in cases {
        for (status, flag) in [("200 OK", None), ("404 Not Found", Some("unread"))] {
            let bytes = answer(status, &format!("Content-Type: {media}\r\n"), &[b'x'; 3_000]);
            let server = Server::always(bytes).await;
            let downloader = downloader(|_| {});
            match (get(&downloader, &server.url(path)).await, flag) {
                (Err(error), None) if refused => {
                    assert_eq!((error.kind(), error.status().unwrap().as_u16()), (K::ContentType, 200));
                    assert!(error.to_string().contains(media), "{error}");
                }
                (Ok(response), flag) => {
                    let unread = refused && flag.is_some();
                    assert_eq!(
                        response.body.len(),
                        if unread { 0 } else { 3_000 },
                        "{media} {path} {status}"
                    );
                    assert_eq!(response.has_flag("unread"), unread);
                }
                (got, _) => panic!("{media} {path} {status}: {got:?}"),
            }
            let asked = Request::parse(&server.url(path)).unwrap().with_meta(meta::DOWNLOAD_BINARY, true);
            assert_eq!(fetch(&downloader, asked).await.expect("asked for").body.len(), 3_000);
            let counted = Request::parse(&server.url(path)).unwrap().with_meta(meta::DOWNLOAD_COUNT, true);
            let counted = fetch(&downloader, counted.clone().with_meta(meta::DOWNLOAD_MAXSIZE, 3_000))
                .await
                .expect("its size is wanted");
            let is_kept = !refused;
            assert_eq!(counted.body.len(), if is_kept { 3_000 } else { 0 }, "{media} {path} {status}");
            assert_eq!(counted.wire_bytes, if is_kept || status == "200 OK" { 3_000 } else { 0 });
            assert_eq!(counted.has_flag("unread"), !is_kept);
            assert!(!counted.has_flag("truncated"));
            let head = Request::parse(&server.url(path)).unwrap().method(http::Method::HEAD);
            let _ = fetch(&downloader, head).await.expect("headers only are always welcome");
        }
    }
    let server = Server::always(answer("200 OK", "Content-Type: image/png\r\n", b"x")).await;
    let endless = Server::always(answer("200 OK", "Content-Type: image/png\r\n", &[b'x'; 90_000])).await;
    let cut = Request::parse(&endless.url("/")).unwrap().with_meta(meta::DOWNLOAD_COUNT, true);
    let cut = fetch(&downloader(|_| {}), cut.with_meta(meta::DOWNLOAD_MAXSIZE, 1_000)).await.expect("a part");
    assert!(cut.has_flag("truncated") && cut.wire_bytes > 1_000 && cut.body.is_empty());
    let all = downloader(|s| s.download_binary = true);
    assert_eq!(get(&all, &server.url("/")).await.expect("asked for").body.len(), 1);
}
