//! The test site as a client sees it, over real sockets.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use huntsman_testkit::{After, Answer, Outcome, Part, RunningSite, Site, sites};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

async fn connect(site: &RunningSite, host: &str) -> TcpStream {
    TcpStream::connect((host, site.port())).await.expect("the site listens")
}

/// Sends these bytes, and returns everything received until the server closes the connection.
async fn exchange(site: &RunningSite, request: &str) -> String {
    let mut stream = connect(site, "127.0.0.1").await;
    stream.write_all(request.as_bytes()).await.expect("the server reads");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

async fn get(site: &RunningSite, target: &str) -> String {
    exchange(site, &format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).await
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("a head").1
}

/// Reads one response with a length from a connection that stays open.
async fn one_answer(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).expect("a length");
            if body.len() >= length.parse::<usize>().expect("a number") {
                return text;
            }
        }
        assert_ne!(stream.read_buf(&mut bytes).await.expect("more"), 0, "closed early: {text}");
    }
}

/// The distinct URLs that a client without any filter finds on a site, and the bodies of their pages.
async fn crawl(site: &RunningSite, max: usize) -> Vec<(Url, String)> {
    let mut queue = VecDeque::from([site.url("/")]);
    let mut seen: HashSet<Url> = queue.iter().cloned().collect();
    let mut pages = Vec::new();
    while let Some(url) = queue.pop_front() {
        let target = url[url::Position::BeforePath..].to_owned();
        let answer = get(site, &target).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{url}: {answer}");
        for href in answer.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let mut link = url.join(&href.replace("&amp;", "&")).expect("a link");
            link.set_fragment(None);
            if seen.len() < max && seen.insert(link.clone()) {
                queue.push_back(link);
            }
        }
        pages.push((url, body(&answer).to_owned()));
    }
    pages
}

#[tokio::test]
async fn routes_are_found_by_path_prefix_query_and_host() {
    let site = Site::builder()
        .page("/", "index")
        .page("/a?x=1", "one")
        .page("/a", "any")
        .page("/deep/*", "deep")
        .page("/deep/er/*", "deeper")
        .host("shop.test")
        .page("/", "shop")
        .start()
        .await;
    assert_eq!(body(&get(&site, "/").await), "index");
    assert_eq!(body(&get(&site, "/a?x=1").await), "one");
    assert_eq!(body(&get(&site, "/a?x=2").await), "any");
    assert_eq!(body(&get(&site, "/deep/x").await), "deep");
    assert_eq!(body(&get(&site, "/deep/er/x").await), "deeper");
    assert!(get(&site, "/nowhere").await.starts_with("HTTP/1.1 404 "));
    let named = exchange(&site, "GET / HTTP/1.1\r\nHost: shop.test:80\r\nConnection: close\r\n\r\n").await;
    assert_eq!(body(&named), "shop");
    let proxied = exchange(&site, "GET http://shop.test/ HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    assert_eq!(body(&proxied), "shop");
    let hosts: Vec<String> = site.requests().into_iter().map(|seen| seen.request.host).collect();
    assert_eq!(hosts[5..], ["127.0.0.1", "shop.test", "shop.test"]);
}

#[tokio::test]
async fn several_addresses_share_a_port() {
    let site = Site::builder().page("/", "first").host("127.0.0.2").page("/", "second").start().await;
    let mut stream = connect(&site, "127.0.0.2").await;
    // The address that was connected to counts, and not the Host header.
    stream.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await.expect("the server reads");
    assert!(one_answer(&mut stream).await.ends_with("second"));
    let record = site.record();
    assert_eq!(record.to("127.0.0.2").count(), 1);
    assert_eq!(record.connections.get("127.0.0.2"), Some(&1));
}

#[tokio::test]
async fn a_connection_is_kept_and_numbered() {
    let site = Site::builder().route("/", |asked| Answer::text(asked.nth.to_string())).start().await;
    let mut stream = connect(&site, "127.0.0.1").await;
    for nth in 0..3 {
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("the server reads");
        assert!(one_answer(&mut stream).await.ends_with(&format!("\r\n\r\n{nth}")));
    }
    assert_eq!(body(&get(&site, "/").await), "3");
    let connections: Vec<u64> = site.requests().iter().map(|seen| seen.request.connection).collect();
    assert_eq!(connections, [0, 0, 0, 1]);
}

#[tokio::test]
async fn headers_and_bodies_of_requests_are_recorded() {
    let site = Site::builder().route("/*", |_| Answer::text("ok")).start().await;
    exchange(&site, "POST /form HTTP/1.1\r\nX-A: 1\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        .await;
    exchange(
        &site,
        "PUT /up HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
    )
    .await;
    let seen = site.requests();
    assert_eq!((seen[0].request.method.as_str(), &seen[0].request.body[..]), ("POST", &b"hello"[..]));
    assert_eq!(seen[0].request.header("x-a"), Some("1"));
    assert_eq!(&seen[1].request.body[..], b"abcde");
}

#[tokio::test]
async fn what_is_no_request_is_noted() {
    let site = Site::builder().start().await;
    assert!(exchange(&site, "GET /a b HTTP/1.1\r\n\r\n").await.starts_with("HTTP/1.1 400 "));
    assert!(exchange(&site, "GET /a\u{1} HTTP/1.1\r\n\r\n").await.starts_with("HTTP/1.1 400 "));
    assert_eq!(site.record().malformed.len(), 2);
    assert!(site.requests().is_empty());
}

#[tokio::test]
async fn peak_counts_requests_at_once_per_host() {
    let site = Site::builder()
        .answer("/slow", Answer::text("x").delay(Duration::from_millis(300)))
        .page("/fast", "x")
        .start()
        .await;
    let (a, b, c) = tokio::join!(get(&site, "/slow"), get(&site, "/slow"), get(&site, "/slow"));
    assert!([a, b, c].iter().all(|answer| body(answer) == "x"));
    assert_eq!(site.peak("127.0.0.1"), 3);
    let seen = site.requests();
    assert!(seen.iter().all(|seen| seen.duration(Duration::MAX) >= Duration::from_millis(299)), "{seen:?}");
}

#[tokio::test]
async fn gaps_are_between_starts() {
    let site = Site::builder().page("/", "x").start().await;
    assert_eq!(site.smallest_gap("127.0.0.1"), None);
    for _ in 0..3 {
        get(&site, "/").await;
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert!(site.smallest_gap("127.0.0.1") >= Some(Duration::from_millis(30)));
}

#[tokio::test]
async fn limits_end_endless_answers() {
    let endless = Answer::parts([Part::Repeat(vec![b'x'; 10_000].into(), Part::FOREVER)]);
    let site = Site::builder()
        .answer("/endless", endless)
        .answer("/silent", Answer::parts([Part::Stall]))
        .max_bytes(1_000_000)
        .hold(Duration::from_millis(200))
        .start()
        .await;
    assert_eq!(get(&site, "/endless").await.len(), 1_000_000);
    assert_eq!(get(&site, "/silent").await.len(), 0);
    assert!(site.finished(2).await);
    let seen = site.requests();
    assert_eq!([seen[0].outcome, seen[1].outcome], [Outcome::CutOff; 2]);
    assert_eq!([seen[0].sent, seen[1].sent], [1_000_000, 0]);
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed() {
    let site = Site::builder().answer("/silent", Answer::parts([Part::Stall])).start().await;
    let mut stream = connect(&site, "127.0.0.1").await;
    stream.write_all(b"GET /silent HTTP/1.1\r\n\r\n").await.expect("the server reads");
    while site.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(site.requests()[0].outcome, Outcome::Running);
    drop(stream);
    assert!(site.finished(1).await);
    assert_eq!(site.requests()[0].outcome, Outcome::ClientLeft);
}

#[tokio::test]
async fn a_reset_is_an_error_at_the_client() {
    let site =
        Site::builder().answer("/", Answer::raw("HTTP/1.1 200 OK\r\n").after(After::Reset)).start().await;
    let mut stream = connect(&site, "127.0.0.1").await;
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("the server reads");
    let mut answer = Vec::new();
    let end = stream.read_to_end(&mut answer).await.expect_err("no orderly end");
    assert_eq!(end.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn slow_and_chunked_bodies_arrive_whole() {
    let site = Site::builder()
        .answer("/slow", Answer::text("hello world").slow(4, Duration::from_millis(5)))
        .answer("/chunked", Answer::text("hello").chunked(2))
        .answer("/close", Answer::text("hello").until_close())
        .start()
        .await;
    assert_eq!(body(&get(&site, "/slow").await), "hello world");
    assert_eq!(body(&get(&site, "/chunked").await), "2\r\nhe\r\n2\r\nll\r\n1\r\no\r\n0\r\n\r\n");
    assert_eq!(body(&get(&site, "/close").await), "hello");
}

#[tokio::test]
async fn a_panic_of_a_handler_fails_the_test_at_the_end() {
    let site = Site::builder().route("/", |_| panic!("no such luck")).page("/ok", "ok").start().await;
    assert!(get(&site, "/").await.starts_with("HTTP/1.1 500 "));
    assert_eq!(body(&get(&site, "/ok").await), "ok");
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(site))).expect_err("the panic");
    let text = panic.downcast_ref::<String>().expect("a text");
    assert_eq!(text, "handler of 127.0.0.1/ panicked: no such luck");
}

#[test]
fn a_site_runs_without_a_runtime() {
    use std::io::{Read, Write};
    let site = Site::builder().page("/", "x").start_blocking();
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", site.port())).expect("the site listens");
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert_eq!(body(&answer), "x");
    assert_eq!(site.stop().requests.len(), 1);
}

#[tokio::test]
async fn stopping_ends_what_runs() {
    let site = Site::builder().answer("/", Answer::parts([Part::Stall])).start().await;
    let mut stream = connect(&site, "127.0.0.1").await;
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("the server reads");
    while site.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let record = site.stop();
    assert_eq!(record.requests[0].outcome, Outcome::CutOff);
    let mut rest = Vec::new();
    assert_eq!(stream.read_to_end(&mut rest).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn the_linked_site_has_exactly_its_pages() {
    let site = sites::linked(60, 6).start().await;
    let pages = crawl(&site, 1_000).await;
    assert_eq!(pages.len(), 60);
    let texts: HashSet<&String> = pages.iter().map(|(_, text)| text).collect();
    assert_eq!(texts.len(), 60);
    assert!(get(&site, "/p/0/0.html").await.starts_with("HTTP/1.1 404 "), "page 0 has one address");
    assert!(get(&site, "/p/60/60.html").await.starts_with("HTTP/1.1 404 "));
}

#[tokio::test]
async fn the_quotes_are_complete() {
    let site = sites::quotes().start().await;
    let pages = crawl(&site, 1_000).await;
    let of = |prefix: &str| pages.iter().filter(|(url, _)| url.path().starts_with(prefix)).count();
    let listed: usize = pages
        .iter()
        .filter(|(url, _)| url.path() == "/" || url.path().starts_with("/page/"))
        .map(|(_, text)| text.matches("class=\"quote\"").count())
        .sum();
    assert_eq!((listed, of("/page/"), of("/author/")), (30, 2, 12));
    assert_eq!(pages.iter().filter(|(url, _)| url.path() == "/tag/love/").count(), 1);
}

#[tokio::test]
async fn the_forum_shows_equal_pages_under_many_addresses() {
    let forum = sites::Forum::new(12);
    let site = sites::forum(12).start().await;
    let pages = crawl(&site, 400).await;
    let mut texts: std::collections::HashMap<String, HashSet<String>> = Default::default();
    for (url, text) in &pages {
        let name = forum.content(url).expect("a page that answered is known");
        let sid = regex_free_sid(text);
        texts.entry(name).or_default().insert(text.replace(&sid, ""));
    }
    assert_eq!(texts.len(), forum.pages());
    assert!(pages.len() > 2 * texts.len(), "{} addresses of {} pages", pages.len(), texts.len());
    assert!(texts.values().all(|same| same.len() == 1), "one content, one text");
    let all: HashSet<&String> = texts.values().flatten().collect();
    assert_eq!(all.len(), forum.pages(), "different contents, different texts");
}

/// The session id in the links of a forum page.
fn regex_free_sid(text: &str) -> String {
    let at = text.find("sid=").expect("a session id");
    text[at..at + 4 + 16].to_owned()
}
