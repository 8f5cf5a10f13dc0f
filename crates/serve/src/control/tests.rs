//! The control of a crawl over real connections, and requests of pages and programs that may not use it.

use std::path::PathBuf;
use std::time::Duration;

use huntsman_crawler::{
    CrawlReport, CrawlerBuilder, FetchErrorKind, Handle, Output, Page, Result, spider_fn,
};
use huntsman_testkit::{Reply, ScriptedDownloader};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::*;
use crate::local::{ClientError, LocalClient};

/// A crawl of three pages that begins to fetch when it is resumed, with its control.
struct Served {
    client: LocalClient,
    handle: Handle,
    file: PathBuf,
    control: JoinHandle<()>,
    crawl: JoinHandle<Result<CrawlReport>>,
    _directory: tempfile::TempDir,
}

async fn serve_paused() -> Served {
    let web = ScriptedDownloader::pages([("http://a.test/1", "<title>1</title>"), ("http://a.test/2", "2")])
        .otherwise(|_, _| Reply::error(FetchErrorKind::FirstByteTimeout));
    let seeds = ["http://a.test/1", "http://a.test/2", "http://user:secret@a.test/gone"];
    let spider = spider_fn(seeds, |_: &Page, _: &mut Output<()>| Ok(()));
    let errors = RecentErrors::default();
    let crawler = CrawlerBuilder::new(spider).downloader(web).observer(errors.clone());
    let crawler = crawler.set("download_delay", 0.0).build().unwrap();
    let handle = crawler.handle();
    handle.pause();
    let crawl = tokio::spawn(crawler.run());
    while handle.status().await.queued < 3 {
        tokio::task::yield_now().await;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("control.json");
    let mut server = LocalServer::bind(0).await.unwrap();
    server.publish(&file).unwrap();
    let control = tokio::spawn(serve_crawl(server, Monitor::new(handle.clone(), errors)));
    let client = LocalClient::of(&file).unwrap();
    Served { client, handle, file, control, crawl, _directory: directory }
}

impl Served {
    fn token(&self) -> String {
        let contact: Value = serde_json::from_slice(&std::fs::read(&self.file).unwrap()).unwrap();
        contact["token"].as_str().unwrap().to_owned()
    }

    /// Sends bytes as they are and reads the answer to its end.
    async fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.client.address()).await.unwrap();
        let sent = stream.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        // A server that refuses a body closes the connection while it is being sent.
        let read = stream.read_to_end(&mut answer).await;
        assert!(!answer.is_empty(), "{sent:?}, {read:?}");
        String::from_utf8(answer).unwrap()
    }

    /// The status of a request with these lines of its head after the first one.
    async fn status(&self, first: &str, lines: &str, body: &str) -> u16 {
        let length = body.len();
        let head =
            format!("{first} HTTP/1.1\r\nConnection: close\r\nContent-Length: {length}\r\n{lines}\r\n");
        let answer = self.raw(&(head + body)).await;
        answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
    }
}

#[tokio::test]
async fn a_crawl_is_seen_and_steered_through_its_file() {
    let served = serve_paused().await;
    let client = &served.client;
    assert_eq!(client.get("/status").await.unwrap()["state"], "paused");
    let hosts = client.get("/hosts?limit=5").await.unwrap();
    assert_eq!((&hosts[0]["host"], &hosts[0]["queued"]), (&json!("a.test"), &json!(3)));
    let queue = client.get("/queue?host=A.TEST&limit=9").await.unwrap();
    assert_eq!(queue[0]["url"], "http://a.test/1");
    assert!(!queue.to_string().contains("secret"), "{queue}");

    let politeness = json!({ "host": "a.test", "seconds": 0.01, "concurrency": 2 });
    let host = client.post("/delay", &politeness).await.unwrap();
    assert_eq!((&host["delay_s"], &host["concurrency"]), (&json!(0.01), &json!(2)));
    for wrong in [
        json!({ "host": "a.test" }),
        json!({ "host": "a.test", "seconds": -1 }),
        json!({ "host": "a.test", "seconds": 1e9 }),
        json!({ "host": "a.test", "concurrency": 0 }),
        json!({ "host": "b.test", "seconds": 1 }),
        json!({ "seconds": 1 }),
        json!([]),
    ] {
        let refused = client.post("/delay", &wrong).await.unwrap_err();
        assert!(matches!(refused, ClientError::Refused(400, _)), "{wrong}: {refused:?}");
    }
    let add = async |url: &str| client.post("/add", &json!({ "url": url })).await;
    assert_eq!(add("http://a.test/2").await.unwrap()["outcome"], "duplicate");
    for wrong in ["", "no URL", "file:///etc/passwd", "javascript:alert(1)"] {
        assert!(matches!(add(wrong).await, Err(ClientError::Refused(400, _))), "{wrong}");
    }
    assert_eq!(add("http://b.test/").await.unwrap()["outcome"], "queued");
    assert_eq!(client.post("/remove", &json!({ "host": "b.test" })).await.unwrap()["queued"], 1);

    assert_eq!(client.post("/resume", &json!({})).await.unwrap()["state"], "running");
    let report = served.crawl.await.unwrap().unwrap();
    assert_eq!((report.pages, report.stat("drops/skipped/dropped_by_user")), (2, 1));
    let overview = client.get("/overview").await.unwrap();
    assert_eq!((&overview["status"]["state"], &overview["status"]["pages"]), (&json!("ended"), &json!(2)));
    let errors = client.get("/errors").await.unwrap();
    assert_eq!(errors.as_array().map(Vec::len), Some(1), "{errors}");
    assert!(
        errors[0]["url"].as_str().unwrap().ends_with("a.test/gone") && !errors.to_string().contains("secret")
    );
    assert_eq!(client.get("/stats").await.unwrap()["pages/delivered"], 2);
}

#[tokio::test]
async fn without_the_token_or_for_pages_of_other_sites_nothing_is_told_and_nothing_done() {
    let served = serve_paused().await;
    let address = served.client.address();
    let host = format!("Host: {address}\r\n");
    let token = format!("Authorization: Bearer {}\r\n", served.token());
    let json = "Content-Type: application/json\r\n";
    let cut = &token[..token.len() - 3];
    for (first, lines, body, expected) in [
        ("GET /api/status", format!("{host}{token}"), "", 200),
        // No token, a wrong one, a part of it, and one in another place.
        ("GET /api/status", host.clone(), "", 401),
        ("GET /api/overview", host.clone(), "", 401),
        ("POST /api/link", format!("{host}{json}"), "{}", 401),
        ("GET /api/status", format!("{host}Authorization: Bearer 0\r\n"), "", 401),
        ("GET /api/status", format!("{host}{cut}\r\n"), "", 401),
        ("GET /api/nothing", host.clone(), "", 401),
        (&format!("GET /api/status?token={}", served.token()), host.clone(), "", 401),
        ("GET /api/status", format!("{host}Cookie: token={}\r\n", served.token()), "", 401),
        // A page of another site, and one whose own name resolves to this machine.
        ("GET /api/status", format!("Host: rebound.example:{}\r\n{token}", address.port()), "", 421),
        ("GET /", format!("Host: rebound.example:{}\r\n", address.port()), "", 421),
        ("GET /api/status", token.clone(), "", 421),
        ("POST /api/stop", format!("{host}{token}{json}Origin: https://evil.example\r\n"), "{}", 403),
        ("POST /api/stop", format!("{host}{token}{json}Origin: null\r\n"), "{}", 403),
        ("POST /api/stop", format!("{host}{token}{json}Origin: http://127.0.0.1:1\r\n"), "{}", 403),
        ("POST /api/stop", format!("{host}{token}{json}Sec-Fetch-Site: cross-site\r\n"), "{}", 403),
        ("POST /session", format!("{host}{json}Origin: https://evil.example\r\n"), "{\"code\":\"0\"}", 403),
        ("POST /session", format!("{host}{json}"), "{\"code\":\"0\"}", 401),
        // What a form of another site could send without asking.
        ("POST /api/stop", format!("{host}{token}Content-Type: text/plain\r\n"), "{}", 415),
        ("GET /api/stop", format!("{host}{token}"), "", 405),
        ("OPTIONS /api/stop", format!("{host}Origin: https://evil.example\r\n"), "", 403),
        ("POST /api/add", format!("{host}{token}{json}"), "{\"url\":", 400),
    ] {
        assert_eq!(served.status(first, &lines, body).await, expected, "{first}\n{lines}");
    }
    let huge = format!("{{\"url\":\"{}\"}}", "a".repeat(crate::local::MAX_BODY));
    assert_eq!(served.status("POST /api/add", &format!("{host}{token}{json}"), &huge).await, 413);
    assert_eq!(served.handle.status().await.state.name(), "paused", "no order was carried out");
    assert_eq!(served.handle.status().await.queued, 3);
}

#[tokio::test]
async fn clients_that_send_nothing_do_not_keep_others_out() {
    let served = serve_paused().await;
    let mut silent = Vec::new();
    for _ in 0..300 {
        let mut stream = TcpStream::connect(served.client.address()).await.unwrap();
        let _ =
            stream.write_all(b"POST /api/stop HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n").await;
        silent.push(stream);
    }
    let status = tokio::time::timeout(Duration::from_secs(10), served.client.get("/status")).await;
    assert_eq!(status.unwrap().unwrap()["state"], "paused");
}

#[tokio::test]
async fn the_page_is_opened_by_a_link_that_works_once() {
    let served = serve_paused().await;
    let link = served.client.post("/link", &json!({})).await.unwrap();
    let link = link["url"].as_str().unwrap();
    let (page, code) = link.split_once('#').unwrap();
    assert_eq!(page, format!("http://{}/", served.client.address()));
    let host = format!("Host: {}\r\nConnection: close\r\n", served.client.address());
    let shell = served.raw(&format!("GET / HTTP/1.1\r\n{host}\r\n")).await;
    assert!(shell.contains("script-src 'self'") && shell.contains("frame-ancestors 'none'"), "{shell}");
    assert!(!shell.contains("a.test") && !shell.contains(&served.token()), "the frame has no data");
    let body = json!({ "code": code }).to_string();
    let length = body.len();
    let exchange = format!(
        "POST /session HTTP/1.1\r\n{host}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let first = served.raw(&exchange).await;
    let token: Value = serde_json::from_str(first.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let token = token["token"].as_str().unwrap();
    assert!(served.raw(&exchange).await.starts_with("HTTP/1.1 401"), "it is used up");
    let answer =
        served.raw(&format!("GET /api/status HTTP/1.1\r\n{host}Authorization: Bearer {token}\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"paused\""), "{answer}");
    assert_ne!(token, served.token(), "a page never learns the token of the file");
}

#[tokio::test]
async fn the_file_is_private_and_goes_with_the_server() {
    let served = serve_paused().await;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&served.file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    served.control.abort();
    assert!(served.control.await.unwrap_err().is_cancelled());
    assert!(!served.file.exists());
    assert!(matches!(served.client.get("/status").await, Err(ClientError::NoAnswer(..))));
    assert!(matches!(LocalClient::of(&served.file), Err(ClientError::NoContact(_))));
    std::fs::write(&served.file, r#"{"address":"192.0.2.1:80","token":"x","pid":1}"#).unwrap();
    assert!(
        matches!(LocalClient::of(&served.file), Err(ClientError::BadContact(..))),
        "no token leaves this machine"
    );
}
