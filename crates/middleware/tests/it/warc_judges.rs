//! An archive of all that HTTP can be, judged by other programs.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderValue, Method, header};
use huntsman_crawler::{CrawlerBuilder, HttpDownloader, Output, Page, Request, meta, spider_fn};
use huntsman_middleware::{Defaults, Warc, WarcBuilder};
use huntsman_testkit::{Answer, Part, RunningSite, Site};
use huntsman_warc::{Archives, PageText, WaczOptions, WarcReader, index_file, pack_wacz};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, crypto};
use url::Url;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

async fn site() -> RunningSite {
    let same = "<p>the same words</p>".repeat(400);
    let binary: Vec<u8> = (0..=255).cycle().take(3_000).collect();
    // Text with brotli.
    let brotli = [0x0b, 0x02, 0x80, b'h', b'e', b'l', b'l', b'o', 0x03].to_vec();
    let head = |length: usize| {
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n")
    };
    let stalled = [Part::Bytes(Bytes::from(head(1_000) + "<p>first")), Part::Stall];
    Site::builder()
        .page("/", "<p>start</p>")
        .answer("/chunked", Answer::html("<p>in pieces</p>".repeat(100)).chunked(100))
        .answer(
            "/chunked-gzip",
            Answer::html(gzip(&b"packed ".repeat(500))).header("content-encoding", "gzip").chunked(7),
        )
        .answer("/gzip", Answer::html(gzip(b"<p>packed</p>")).header("content-encoding", "gzip"))
        .answer("/br", Answer::html(brotli).header("content-encoding", "br"))
        .answer("/moved", Answer::redirect(302, "/target"))
        .page("/target", "<p>moved here</p>")
        .page("/same", same.clone())
        .page("/copy", same)
        .page("/empty", "")
        .page("/one", "x")
        .answer("/nothing", Answer::status(204))
        .answer("/binary", Answer::status(200).header("content-type", "image/png").body(binary))
        .answer("/broken", Answer::status(500).header("content-type", "text/html").body("<p>broken</p>"))
        .answer("/close", Answer::html("<p>until the end</p>").until_close())
        .answer("/cut", Answer::raw(head(1_000) + "<p>half"))
        .answer("/stalled", Answer::parts(stalled))
        .page("/long", "long ".repeat(1_000))
        .answer("/odd", Answer::html("<p>odd</p>").header("x-odd", b"caf\xe9 \xff").header("x-odd", "twice"))
        .route("/etag", |asked| match asked.headers.contains_key(header::IF_NONE_MATCH) {
            true => Answer::status(304).header("etag", "\"1\""),
            false => Answer::html("<p>kept</p>").header("etag", "\"1\""),
        })
        .route("/form", |asked| Answer::html(format!("{} bytes", asked.body.len())))
        .page("/six", "<p>over IPv6</p>")
        .start()
        .await
}

/// Passes connections to `[::1]` on to a port of IPv4.
async fn over_ipv6(port: u16) -> SocketAddr {
    let listener = TcpListener::bind("[::1]:0").await.expect("the machine has IPv6 on loopback");
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut from, _)) = listener.accept().await {
            let mut to = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut from, &mut to).await });
        }
    });
    address
}

/// Answers with the path, over TLS and HTTP/2.
async fn over_http2() -> SocketAddr {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config =
        config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut connection =
                    h2::server::handshake(acceptor.accept(stream).await.unwrap()).await.unwrap();
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    let answer =
                        http::Response::builder().header("content-type", "text/html").body(()).unwrap();
                    let mut body = respond.send_response(answer, false).unwrap();
                    body.send_data(Bytes::from(request.uri().path().to_owned()), true).unwrap();
                }
            });
        }
    });
    address
}

fn post(url: Url, content_type: &'static str, body: &'static str) -> Request {
    let mut request = Request::get(url);
    request.method = Method::POST;
    request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    request.body(body)
}

/// Archives all of it, one request after the other.
async fn archive(folder: &Path) -> usize {
    let site = site().await;
    let (six, secure) = (over_ipv6(site.port()).await, over_http2().await);
    let at = |path: &str| site.url(path);
    let paths = [
        "/chunked",
        "/chunked-gzip",
        "/gzip",
        "/br",
        "/moved",
        "/same",
        "/copy",
        "/empty",
        "/one",
        "/nothing",
        "/binary",
        "/missing",
        "/broken",
        "/close",
        "/cut",
        "/odd",
        "/etag",
    ];
    let mut asked: Vec<Request> = paths.iter().map(|path| Request::get(at(path))).collect();
    asked.push(Request::get(at("/stalled")).with_meta(meta::DOWNLOAD_TIMEOUT, Duration::from_millis(500)));
    let long = Request::get(at("/long")).with_meta(meta::DOWNLOAD_MAXSIZE, 100);
    asked.push(long.with_meta(meta::DOWNLOAD_TRUNCATE, true));
    asked.push(post(at("/form"), "application/x-www-form-urlencoded", "q=two+words&r=%C3%A4"));
    asked.push(post(at("/form"), "application/json", r#"{"q": ["two words", 3]}"#));
    let mut head = Request::get(at("/target"));
    head.method = Method::HEAD;
    asked.push(head);
    for url in [format!("http://{six}/six"), format!("https://{secure}/a"), format!("https://{secure}/b")] {
        asked.push(Request::get(url.parse::<Url>().unwrap()));
    }
    // An answer without a body refers to the one before it, so the page is asked for again once that one is there.
    let mut again = Request::get(at("/etag"));
    again.headers.insert(header::IF_NONE_MATCH, HeaderValue::from_static("\"1\""));
    again.unfiltered = true;
    let count = asked.len() + 1;
    for (place, request) in asked.iter_mut().enumerate() {
        request.unfiltered = true;
        request.priority = -i32::try_from(place).unwrap();
    }
    let start = site.url("/");
    let spider = spider_fn([start], move |page: &Page, out: &mut Output<()>| {
        if page.url().path() == "/" {
            asked.iter().for_each(|request| out.request(request.clone()));
        }
        if page.url().path() == "/etag" && page.response().status.is_success() {
            out.request(again.clone());
        }
        Ok(())
    });
    let allowed = vec![format!("127.0.0.1:{}", site.port()), six.to_string(), secure.to_string()];
    let crawler = CrawlerBuilder::new(spider).plugin(Defaults).downloader_with(HttpDownloader::new);
    let mut crawler = crawler.warc(Warc::to(folder)).set("allow_addresses", allowed);
    for (name, value) in [
        ("robotstxt_obey", false),
        ("download_binary", true),
        ("retry_enabled", false),
        ("download_verify_certificates", false),
    ] {
        crawler = crawler.set(name, value);
    }
    let crawler = crawler.set("download_delay", 0.0).set("concurrent_requests_per_domain", 1);
    let report = crawler.run().await.unwrap();
    // The start and the target of the redirect are asked for besides, and all have an exchange.
    let archived = report.stat("warc/responses") + report.stat("warc/revisits");
    assert_eq!(archived, 2 + i64::try_from(count).unwrap(), "{:?}", report.stats);
    count + 2
}

/// What a program says; it fails the test if the program finds a fault.
fn judge(program: &str, arguments: &[&str], file: &Path) -> String {
    let out = Command::new(program).args(arguments).arg(file).output();
    let out = out.unwrap_or_else(|error| panic!("{program} is in PATH ({error}): run ./setup.sh"));
    let said = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{program} {arguments:?} {}: {said}", file.display());
    said
}

/// Runs the main function of a module without the package `brotli`, which has another form than warcio expects.
const WARCIO: &str = "import sys, importlib
sys.modules['brotli'] = None
importlib.import_module(sys.argv[1]).main(sys.argv[2:])";

fn archived_file(folder: &Path) -> PathBuf {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_judge_accepts_an_archive_of_all_that_http_can_be() {
    let folder = tempfile::tempdir().unwrap();
    let archived = folder.path().join("archive");
    let count = archive(&archived).await;
    let file = archived_file(&archived);

    // What is in the file.
    let mut counted: BTreeMap<String, usize> = BTreeMap::new();
    let mut reader = WarcReader::new(std::fs::File::open(&file).unwrap());
    while let Some(head) = reader.next_head().unwrap() {
        let mut count = |what: String| *counted.entry(what).or_default() += 1;
        count(head.kind().to_owned());
        if matches!(head.kind(), "response" | "revisit") {
            head.get("WARC-Truncated").into_iter().for_each(|why| count(format!("cut by {why}")));
            head.all("WARC-Protocol").for_each(|name| count(name.to_owned()));
            head.get("WARC-Profile")
                .into_iter()
                .for_each(|name| count(name.rsplit('/').next().unwrap().to_owned()));
            count(format!("from {}", head.get("WARC-IP-Address").unwrap()));
        }
    }
    let expected = [
        ("warcinfo", 1),
        ("response", count - 2),
        ("revisit", 2),
        ("request", count),
        ("metadata", count),
        ("identical-payload-digest", 1),
        ("server-not-modified", 1),
        ("cut by disconnect", 1),
        ("cut by time", 1),
        ("cut by length", 1),
        ("h2", 2),
        ("tls/1.3", 2),
        ("from ::1", 1),
        ("from 127.0.0.1", count - 1),
    ];
    assert_eq!(counted, expected.map(|(what, count)| (what.to_owned(), count)).into());

    // What the judges say.
    judge("gzip", &["-t"], &file);
    let said = judge("warc-python", &["-c", WARCIO, "warcio.cli", "check", "-v"], &file);
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    let of = |wanted: &str| lines.iter().filter(|line| line.contains(wanted)).count();
    assert_eq!(
        (of("digest pass"), of("digest present but not checked")),
        (2 + 3 * count - 1 - 2, 2),
        "{said}"
    );
    judge("fastwarc", &["check", "-q"], &file);
    // A revisit has the digest of a payload that is elsewhere, against which fastwarc holds the empty one, and no other record fails.
    let out = Command::new("fastwarc").args(["check", "-q", "-p", "-o", "-"]).arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(
        (said.matches("PAYLOAD_FAIL").count(), said.matches("PAYLOAD_OK").count()),
        (2, count),
        "{said}"
    );
    let expected = judge("warc-python", &["-c", WARCIO, "cdxj_indexer.main", "-s", "-p"], &file);
    let mut lines = Vec::new();
    let name = file.file_name().unwrap().to_str().unwrap();
    let mut reader = WarcReader::new(std::fs::File::open(&file).unwrap());
    assert!(index_file(&mut reader, name, |line| lines.push(line)).unwrap().is_empty());
    lines.sort_unstable();
    assert_eq!(lines, expected.lines().collect::<Vec<_>>());
    assert_eq!(lines.len(), count);
    let wacz = folder.path().join("site.wacz");
    let archives = Archives::named(&[&archived]).unwrap();
    let options = WaczOptions {
        software: "test".to_owned(),
        created: "2026-01-31T12:00:00Z".to_owned(),
        ..WaczOptions::default()
    };
    let out = std::fs::File::create(&wacz).unwrap();
    pack_wacz(archives.files(), out, &options, |_| PageText::default(), |_, _| {}).unwrap();
    let said = judge("wacz", &["validate", "-f"], &wacz);
    assert!(said.contains("the passed WACZ is valid"), "{said}");
}
