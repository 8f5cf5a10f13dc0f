//! Tests of size limits: of bodies on the wire and decoded, of header blocks, of interim responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use huntsman_crawler::{FetchErrorKind, Request, meta};

use super::support::{Server, answer, downloader, fetch, get, gzip, page};

const MIB: usize = 1 << 20;

/// A server that sends a head and then pieces until the client disconnects; it counts the accepted bytes.
async fn flooding(head: &'static str, piece: Vec<u8>, most: usize) -> (Server, Arc<AtomicUsize>) {
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    let server = Server::start(move |mut peer, _| {
        let (counter, piece) = (Arc::clone(&counter), piece.clone());
        async move {
            peer.head().await;
            peer.put(head.as_bytes()).await;
            counter.store(peer.flood(&piece, most).await, Ordering::SeqCst);
            counter.fetch_add(usize::from(peer.gone().await), Ordering::SeqCst);
        }
    })
    .await;
    (server, taken)
}

/// Waits until the server has noticed that the client disconnected.
async fn settled(taken: &AtomicUsize) -> usize {
    for _ in 0..1_000 {
        match taken.load(Ordering::SeqCst) {
            0 => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
            taken => return taken,
        }
    }
    panic!("the connection was not closed");
}

/// The most bytes that a server can send on a connection of which the client reads nothing: what the kernel keeps at both ends. It grows
/// the buffers as it sees fit, up to the limits of the machine.
fn unread() -> usize {
    let most = |name: &str| -> usize {
        let path = format!("/proc/sys/net/ipv4/{name}");
        let limits = std::fs::read_to_string(&path).expect("Linux has this file");
        limits
            .split_whitespace()
            .last()
            .and_then(|most| most.parse().ok())
            .expect("least, usual and most bytes")
    };
    most("tcp_rmem") + most("tcp_wmem")
}

#[tokio::test]
async fn a_declared_length_above_the_limit_is_refused_before_the_body() {
    let (server, taken) = flooding(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000000000\r\n\r\n",
        vec![b'x'; 64 << 10],
        unread() + 64 * MIB,
    )
    .await;
    let error = get(&downloader(|s| s.download_maxsize = MIB as u64), &server.url("/")).await.unwrap_err();
    assert_eq!(error.kind(), FetchErrorKind::TooLarge);
    assert_eq!(error.status().unwrap(), 200);
    assert!(error.to_string().contains("declared"), "{error}");
    assert!(settled(&taken).await < unread() + MIB);
}

#[tokio::test]
async fn a_stream_without_end_is_dropped_at_the_limit() {
    let piece = [&b"8000\r\n"[..], &[b'z'; 0x8000], b"\r\n"].concat();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (server, taken) = flooding(head, piece, unread() + 64 * MIB).await;
    let downloader = downloader(|s| s.download_maxsize = 2 * MIB as u64);
    let error = get(&downloader, &server.url("/")).await.unwrap_err();
    assert_eq!(error.kind(), FetchErrorKind::TooLarge);
    assert!(settled(&taken).await < unread() + 3 * MIB);
}

#[tokio::test]
async fn the_limit_of_the_request_wins_and_zero_is_none() {
    let server = Server::always(page(&[b'x'; 5_000])).await;
    let downloader = downloader(|s| s.download_maxsize = 4_999);
    let request = || Request::parse(&server.url("/")).unwrap();
    let kind = |error: huntsman_crawler::FetchError| error.kind();
    assert_eq!(fetch(&downloader, request()).await.map_err(kind).err(), Some(FetchErrorKind::TooLarge));
    for limit in [5_000, 0] {
        let response = fetch(&downloader, request().meta("download_maxsize", limit)).await.expect("allowed");
        assert_eq!(response.body.len(), 5_000);
    }
    let small = request().with_meta(meta::DOWNLOAD_MAXSIZE, 10);
    assert_eq!(fetch(&downloader, small).await.map_err(kind).err(), Some(FetchErrorKind::TooLarge));
}

#[tokio::test]
async fn a_larger_body_is_cut_where_that_is_asked_for() {
    let coded = gzip(&[b'y'; 100_000]);
    let sized = Server::always(page(&[b'x'; 100_000])).await;
    let zipped = Server::always(answer("200 OK", "Content-Encoding: gzip\r\n", &coded)).await;
    let downloader = downloader(|s| {
        s.download_maxsize = 10_000;
        s.download_truncate = true;
    });
    let cut = get(&downloader, &sized.url("/")).await.expect("cut");
    assert_eq!((&cut.body[..], &cut.flags[..]), (&[b'x'; 10_000][..], &["truncated"][..]));
    let cut = get(&downloader, &zipped.url("/")).await.expect("cut");
    assert_eq!((cut.decoded.as_deref(), &cut.flags[..]), (Some(&[b'y'; 10_000][..]), &["truncated"][..]));
    let request = Request::parse(&sized.url("/")).unwrap().with_meta(meta::DOWNLOAD_MAXSIZE, 100_000);
    assert!(fetch(&downloader, request).await.expect("fits").flags.is_empty());
}

#[tokio::test]
async fn a_bomb_costs_little_and_is_dropped() {
    // 64 MiB of zeros are 64 KiB of gzip, and nearly all of it is never read.
    let bomb = gzip(&vec![0; 64 * MIB]);
    let nested = gzip(&bomb);
    for (body, coding) in [(bomb, "gzip"), (nested, "gzip, gzip")] {
        let head = format!("Content-Type: text/html\r\nContent-Encoding: {coding}\r\n");
        let server = Server::always(answer("200 OK", &head, &body)).await;
        let error =
            get(&downloader(|s| s.download_maxsize = MIB as u64), &server.url("/")).await.unwrap_err();
        assert_eq!(error.kind(), FetchErrorKind::TooLarge, "{coding}");
    }
}

#[tokio::test]
async fn broken_and_unknown_codings() {
    let coded = gzip(&b"some text ".repeat(1_000));
    let with = |coding: &str, body: &[u8]| answer("200 OK", &format!("Content-Encoding: {coding}\r\n"), body);
    let downloader = downloader(|_| {});
    type Flags = &'static [&'static str];
    let cases: [(Vec<u8>, Result<Flags, FetchErrorKind>); 10] = [
        (with("gzip", &coded[..coded.len() - 9]), Err(FetchErrorKind::Incomplete)),
        (with("gzip", &coded[..coded.len() / 2]), Err(FetchErrorKind::Incomplete)),
        (with("gzip", &[&coded[..], b"trailing!"].concat()), Ok(&[])),
        (with("gzip", &[&coded[..], &coded[..]].concat()), Ok(&[])),
        (with("gzip", b"<p>plain"), Err(FetchErrorKind::Decode)),
        (with("gzip, gzip, gzip, gzip", b""), Err(FetchErrorKind::Decode)),
        (with("rot13", b"uryyb"), Ok(&["unknown_encoding"])),
        (with("identity", b"hello"), Ok(&[])),
        (with("gzip", b""), Ok(&[])),
        (with("br", &[0x06]), Ok(&[])),
    ];
    for (bytes, expected) in cases {
        let shown = String::from_utf8_lossy(&bytes[..60.min(bytes.len())]).into_owned();
        let server = Server::always(bytes).await;
        match (get(&downloader, &server.url("/")).await, expected) {
            (Ok(response), Ok(flags)) => assert_eq!(response.flags, flags, "{shown}"),
            (Err(error), Err(kind)) => assert_eq!(error.kind(), kind, "{shown}"),
            (got, _) => panic!("{shown}: {got:?}"),
        }
    }
}

#[tokio::test]
async fn half_a_coded_body_passes_only_where_losses_are_accepted() {
    let coded = gzip(&b"some text ".repeat(1_000));
    let server =
        Server::always(answer("200 OK", "Content-Encoding: gzip\r\n", &coded[..coded.len() - 9])).await;
    let error = get(&downloader(|_| {}), &server.url("/")).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (FetchErrorKind::Incomplete, Some(http::StatusCode::OK)));
    let accepting = downloader(|s| s.download_fail_on_dataloss = false);
    let response = get(&accepting, &server.url("/")).await.expect("accepted");
    assert_eq!(response.flags, ["partial"]);
    assert!(response.decoded.is_some_and(|body| body.starts_with(b"some text")));
}

#[tokio::test]
async fn nothing_is_decoded_where_there_is_no_body() {
    let server = Server::start(|mut peer, _| async move {
        while let Some(head) = peer.head().await {
            let (status, length) = match head.split(' ').nth(1).unwrap() {
                "/204" => ("204 No Content", ""),
                "/304" => ("304 Not Modified", "Content-Length: 1234\r\n"),
                _ => ("200 OK", "Content-Length: 1234\r\n"),
            };
            let bytes = format!("HTTP/1.1 {status}\r\nContent-Encoding: gzip\r\n{length}\r\n");
            peer.put(bytes.as_bytes()).await;
        }
    })
    .await;
    let downloader = downloader(|_| {});
    for path in ["/204", "/304"] {
        let response = get(&downloader, &server.url(path)).await.expect(path);
        assert!(response.body.is_empty() && response.decoded.is_none() && response.flags.is_empty());
    }
    let head = Request::parse(&server.url("/")).unwrap().method(http::Method::HEAD);
    let response = fetch(&downloader, head).await.expect("headers");
    assert!(response.body.is_empty() && response.decoded.is_none() && response.flags.is_empty());
    assert_eq!(server.connections(), 1, "the connection goes on");
}

#[tokio::test]
async fn header_blocks_are_bounded_in_lines_and_bytes() {
    let head = |lines: usize, width: usize| {
        let rows: String = (0..lines).map(|n| format!("X-{n}: {}\r\n", "v".repeat(width))).collect();
        answer("200 OK", &rows, b"")
    };
    let downloader = downloader(|_| {});
    for (bytes, fits) in [
        (head(999, 1), true),
        (head(1_000, 1), false),
        (head(1, 250 << 10), true),
        (head(1, 300 << 10), false),
        (head(150, 1_600), true),
        (head(150, 1_900), false),
    ] {
        let server = Server::once(bytes).await;
        match get(&downloader, &server.url("/")).await {
            Ok(_) => assert!(fits),
            Err(error) => {
                assert!(!fits, "{error}");
                assert_eq!(error.kind(), FetchErrorKind::BadResponse, "{error}");
            }
        }
    }
}

#[tokio::test]
async fn a_page_with_hundreds_of_cookies_is_taken() {
    let cookies: String =
        (0..900).map(|n| format!("Set-Cookie: part{n}={}; Path=/\r\n", "v".repeat(200))).collect();
    let server = Server::once(answer("200 OK", &cookies, b"page")).await;
    let response = get(&downloader(|_| {}), &server.url("/")).await.expect("browsers take it");
    assert_eq!(response.headers.get_all("set-cookie").iter().count(), 900);
    assert_eq!(&response.body[..], b"page");
}

#[tokio::test]
async fn an_endless_header_block_is_dropped() {
    for piece in [b"X-Row: filler filler filler\r\n".repeat(1_000), vec![b'a'; 64 << 10]] {
        let (server, taken) = flooding("HTTP/1.1 200 OK\r\n", piece, unread() + 64 * MIB).await;
        let error = get(&downloader(|_| {}), &server.url("/")).await.unwrap_err();
        assert_eq!(error.kind(), FetchErrorKind::BadResponse, "{error}");
        assert!(settled(&taken).await < unread() + MIB);
    }
}

#[tokio::test]
async fn interim_answers_are_skipped() {
    for count in [0, 1, 16, 300] {
        let interim = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n".repeat(count);
        let server = Server::once([interim, page(b"real")].concat()).await;
        let response = get(&downloader(|_| {}), &server.url("/")).await.expect("a page");
        assert_eq!(&response.body[..], b"real", "{count}");
    }
}

/// The HTTP library reads interim responses without counting or keeping them, so only the deadlines limit them.
#[tokio::test]
async fn a_flood_of_interim_answers_ends_at_the_first_byte_deadline() {
    let (server, taken) = flooding("", b"HTTP/1.1 100 Continue\r\n\r\n".repeat(2_000), usize::MAX).await;
    let error = get(&downloader(|s| s.first_byte_timeout = 0.2), &server.url("/")).await.unwrap_err();
    assert_eq!(error.kind(), FetchErrorKind::FirstByteTimeout, "{error}");
    settled(&taken).await;
}
