//! Tests of the HTTP client: plain fetches, the request that is sent, the response that is returned, connection
//! reuse.

use super::support::{Server, answer, downloader, fetch, get, gzip, page};
use http::{Method, Version};
use huntsman_crawler::{FetchErrorKind, Request};

#[tokio::test]
async fn a_page_comes_back_whole_with_its_facts() {
    let server =
        Server::always(answer("200 OK", "Content-Type: text/html\r\nX-A: 1\r\nx-a: 2\r\n", b"<p>hi")).await;
    let response = get(&downloader(|_| {}), &server.url("/a?b=c#d")).await.expect("a page");
    assert_eq!(response.status, 200);
    assert_eq!(response.version, Version::HTTP_11);
    assert_eq!(&response.body[..], b"<p>hi");
    assert_eq!(response.decoded, None);
    assert_eq!(response.wire_bytes, 5);
    assert_eq!(response.headers.get_all("x-a").iter().collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(response.ip, Some("127.0.0.1".parse().unwrap()));
    assert!(response.flags.is_empty());
    assert!(response.timings.connect.is_some() && response.timings.total >= response.timings.ttfb);
    assert!(server.heads()[0].starts_with("GET /a?b=c HTTP/1.1\r\n"), "{:?}", server.heads());
}

#[tokio::test]
async fn exactly_the_headers_of_the_request_are_sent() {
    let server = Server::always(page(b"")).await;
    let downloader = downloader(|_| {});
    get(&downloader, &server.url("/")).await.expect("a page");
    let bare = Request::parse(&server.url("/"))
        .unwrap()
        .header("User-Agent", "t/1")
        .and_then(|r| r.header("Accept", "text/html"))
        .unwrap();
    fetch(&downloader, bare).await.expect("a page");
    let lines = |n: usize| server.heads()[n].lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    // Without an Accept header the library sends `*/*`, which has the same meaning.
    assert_eq!(lines(0), ["accept: */*".to_owned(), format!("host: {}", server.address)]);
    assert_eq!(
        lines(1),
        ["user-agent: t/1".to_owned(), "accept: text/html".to_owned(), format!("host: {}", server.address)]
    );
}

#[tokio::test]
async fn method_and_body_are_sent_and_framing_is_ours() {
    let server = Server::start(|mut peer, _| async move {
        while let Some(head) = peer.head().await {
            let length = head
                .lines()
                .find_map(|l| l.strip_prefix("content-length: "))
                .map_or(0, |n| n.parse().unwrap());
            let body = peer.bytes(length).await;
            peer.put(&answer(
                "200 OK",
                "Content-Type: text/plain\r\n",
                &[head.as_bytes(), b"|", &body].concat(),
            ))
            .await;
        }
    })
    .await;
    let downloader = downloader(|_| {});
    let post = Request::parse(&server.url("/form")).unwrap().method(Method::POST).body("a=1");
    let post =
        post.header("Content-Length", "999").and_then(|r| r.header("Transfer-Encoding", "chunked")).unwrap();
    let echoed = fetch(&downloader, post).await.expect("an echo").body;
    let echoed = String::from_utf8(echoed.to_vec()).unwrap();
    assert!(echoed.starts_with("POST /form HTTP/1.1\r\n") && echoed.ends_with("|a=1"), "{echoed}");
    assert!(echoed.contains("content-length: 3\r\n") && !echoed.contains("chunked"), "{echoed}");
    let connect = Request::parse(&server.url("/")).unwrap().method(Method::CONNECT);
    assert_eq!(fetch(&downloader, connect).await.unwrap_err().kind(), FetchErrorKind::InvalidRequest);
}

#[tokio::test]
async fn user_info_never_leaves() {
    let server = Server::always(page(b"")).await;
    let url = format!("http://user:secret@{}/x", server.address);
    get(&downloader(|_| {}), &url).await.expect("a page");
    assert!(
        !server.heads()[0].contains("secret") && !server.heads()[0].to_lowercase().contains("authorization")
    );
}

#[tokio::test]
async fn other_schemes_are_refused() {
    for url in ["ftp://127.0.0.1/", "file:///etc/passwd", "data:,x", "ws://127.0.0.1/", "gopher://127.0.0.1/"]
    {
        let error = get(&downloader(|_| {}), url).await.unwrap_err();
        assert_eq!(error.kind(), FetchErrorKind::Scheme, "{url}");
    }
}

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let server = Server::always(page(b"x")).await;
    let downloader = downloader(|_| {});
    for n in 0..20 {
        let response = get(&downloader, &server.url("/")).await.expect("a page");
        assert_eq!(response.timings.connect.is_some(), n == 0, "only the first one connects");
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn gzip_is_decoded_and_the_wire_form_is_kept() {
    let plain = b"hello ".repeat(1_000);
    let coded = gzip(&plain);
    let server = Server::always(answer("200 OK", "Content-Encoding: gzip\r\n", &coded)).await;
    let response = get(&downloader(|_| {}), &server.url("/")).await.expect("a page");
    assert_eq!(&response.body[..], &coded[..]);
    assert_eq!(response.decoded.as_deref(), Some(&plain[..]));
    assert_eq!(response.wire_bytes, coded.len() as u64);
}
