//! pywb, a player of archives, shows what a site sent.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use http::{HeaderValue, Method, header};
use huntsman_crawler::{CrawlerBuilder, HttpDownloader, Output, Page, Request, spider_fn};
use huntsman_middleware::{Defaults, Warc, WarcBuilder};
use huntsman_testkit::{Answer, RunningSite, Site};
use huntsman_warc::{Archives, PageText, WaczOptions, pack_wacz};
use serde_json::{Value, json};

const MISSING: &str = "pywb (wb-manager, wayback) is in PATH: run ./setup.sh";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// What the site sends: by method, path and body of the request, its status and its bytes with their content coding.
type Sent = BTreeMap<(&'static str, &'static str, &'static str), (u16, Vec<u8>)>;

fn sent() -> Sent {
    let same = "<p>the same words</p>".repeat(400).into_bytes();
    // Text with brotli, and bytes that are no text.
    let brotli = [0x0b, 0x02, 0x80, b'h', b'e', b'l', b'l', b'o', 0x03].to_vec();
    let binary: Vec<u8> = (0..=255).cycle().take(3_000).collect();
    BTreeMap::from([
        (("GET", "/", ""), (200, b"<p>start</p>".to_vec())),
        (("GET", "/packed", ""), (200, gzip(b"<p>packed</p>"))),
        (("GET", "/brotli", ""), (200, brotli)),
        (("GET", "/chunked", ""), (200, b"<p>in pieces</p>".repeat(100))),
        (("GET", "/same", ""), (200, same.clone())),
        (("GET", "/copy?b=2&a=1", ""), (200, same)),
        (("GET", "/etag", ""), (200, b"<p>kept</p>".to_vec())),
        (("GET", "/moved", ""), (302, Vec::new())),
        (("GET", "/gone", ""), (404, b"<p>gone</p>".to_vec())),
        (("GET", "/broken", ""), (500, b"<p>broken</p>".to_vec())),
        (("GET", "/empty", ""), (200, Vec::new())),
        (("GET", "/one", ""), (200, b"x".to_vec())),
        (("GET", "/binary", ""), (200, binary)),
        (("GET", "/%C3%A4%20b/", ""), (200, b"<p>umlaut</p>".to_vec())),
        (("POST", "/form", "q=x&r=a+b"), (200, b"<p>for x</p>".to_vec())),
        (("POST", "/form", "q=y&r=%C3%A4"), (200, b"<p>for y</p>".to_vec())),
        (
            ("POST", "/json", r#"{"query": "two words", "of": {"page": [1, 2], "next": true}}"#),
            (200, b"[1]".to_vec()),
        ),
        (
            ("POST", "/json", r#"{"query": "two words", "of": {"page": [1, 3], "next": true}}"#),
            (200, b"[2]".to_vec()),
        ),
        (("POST", "/text", "{\"a\": \"\u{e9}\"}"), (200, b"JSON as text".to_vec())),
        (("POST", "/text", "mere words"), (200, b"text".to_vec())),
        (("POST", "/parts", PARTS), (200, b"parts".to_vec())),
        (("POST", "/bytes", "\u{1}\u{0}\u{fe}"), (200, b"bytes".to_vec())),
        (("PUT", "/json", r#"{"put": "new"}"#), (200, b"put".to_vec())),
    ])
}

/// A form of two parts, one of them a file.
const PARTS: &str = "--XyZ\r\nContent-Disposition: form-data; name=\"a b\"\r\n\r\n\u{e9}&c\r\n\
    --XyZ\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f.txt\"\r\nContent-Type: text/plain\r\n\r\nwords\r\n\
    --XyZ--\r\n";

fn type_of_body(target: &str) -> &'static str {
    match target {
        "/json" => "application/json",
        "/text" => "text/plain",
        "/parts" => "multipart/form-data; boundary=XyZ",
        "/bytes" => "application/octet-stream",
        _ => "application/x-www-form-urlencoded",
    }
}

async fn site(sent: &Sent) -> RunningSite {
    let mut site = Site::builder();
    for ((method, target, _), (status, bytes)) in sent.clone() {
        let answer = match target {
            "/packed" => Answer::html(bytes).header("content-encoding", "gzip"),
            "/brotli" => Answer::html(bytes).header("content-encoding", "br"),
            "/chunked" => Answer::html(bytes).chunked(100),
            "/moved" => Answer::redirect(302, "/same"),
            "/binary" => Answer::status(200).header("content-type", "application/octet-stream").body(bytes),
            _ => {
                Answer::status(status).header("content-type", "text/html").header("etag", "\"1\"").body(bytes)
            }
        };
        site = match method {
            "POST" | "PUT" => {
                let sent = sent.clone();
                site.route(target, move |asked| {
                    let body = String::from_utf8_lossy(&asked.body);
                    let found = sent.iter().find(|((_, _, of), _)| *of == body);
                    Answer::html(found.map_or(Vec::new(), |(_, (_, bytes))| bytes.clone()))
                })
            }
            _ => site.route(target, move |asked| match asked.headers.contains_key(header::IF_NONE_MATCH) {
                true => Answer::status(304).header("etag", "\"1\""),
                false => answer.clone(),
            }),
        };
    }
    site.start().await
}

/// Archives the site; `/etag` is asked for twice, the second time on a condition.
async fn archive(site: &RunningSite, sent: &Sent, folder: &Path) {
    let start = site.url("/");
    let asked = sent.keys().map(|(method, target, body)| {
        let mut request = Request::get(site.url(target));
        request.unfiltered = true;
        if *method != "GET" {
            request.method = Method::from_bytes(method.as_bytes()).unwrap();
            request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(type_of_body(target)));
            request = request.body(*body);
        }
        request
    });
    let mut asked: Vec<Request> = asked.filter(|request| request.url != start).collect();
    let mut again = Request::get(site.url("/etag"));
    again.headers.insert(header::IF_NONE_MATCH, HeaderValue::from_static("\"1\""));
    again.unfiltered = true;
    again.priority = -1;
    asked.push(again);
    let count = asked.len();
    let spider = spider_fn([start], move |page: &Page, out: &mut Output<()>| {
        if page.url().path() == "/" {
            asked.iter().for_each(|request| out.request(request.clone()));
        }
        Ok(())
    });
    let settings = [
        ("robotstxt_obey", false),
        ("download_binary", true),
        ("retry_enabled", false),
        ("redirect_enabled", false),
    ];
    let crawler = CrawlerBuilder::new(spider).plugin(Defaults).downloader_with(HttpDownloader::new);
    let mut crawler = crawler.warc(Warc::to(folder));
    for (name, value) in settings {
        crawler = crawler.set(name, value);
    }
    let crawler = crawler.set("allow_addresses", vec![format!("127.0.0.1:{}", site.port())]);
    let crawler = crawler.set("download_delay", 0.0).set("concurrent_requests_per_domain", 1);
    let report = crawler.run().await.unwrap();
    let archived = report.stat("warc/responses") + report.stat("warc/revisits");
    assert_eq!(archived, 1 + i64::try_from(count).unwrap(), "{:?}", report.stats);
    assert_eq!(report.stat("warc/revisits"), 2, "the copy, and what was not modified");
}

/// Asks a player for each request, in the earliest capture, without unpacking anything. pywb answers with 304 if it is asked for a later capture that says only that nothing
/// was modified, and it takes the first one if both are of the same second.
const ASK: &str = "import sys, json, http.client
port, asked = int(sys.argv[1]), json.load(sys.stdin)
answers = []
for method, url, kind, body in asked:
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=60)
    headers = {'Accept-Encoding': 'gzip, br'}
    if method != 'GET': headers['Content-Type'] = kind
    connection.request(method, '/c/19960101000000id_/' + url, body.encode() or None, headers)
    answer = connection.getresponse()
    answers.append([answer.status, answer.read().hex()])
print(json.dumps(answers))";

struct Player(Child);

impl Drop for Player {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What pywb answers from archives that are added with these arguments.
fn replayed(folder: &Path, add: &[&str], asked: &Value) -> Vec<(u16, Vec<u8>)> {
    let manager = |arguments: &[&str]| {
        let done = Command::new("wb-manager").args(arguments).current_dir(folder).output().expect(MISSING);
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    manager(&["init", "c"]);
    manager(&[&["add"], add].concat());
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let player = Command::new("wayback")
        .args(["-b", "127.0.0.1", "-p", &port.to_string()])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut player = Player(player.expect(MISSING));
    let deadline = Instant::now() + Duration::from_secs(120);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline && player.0.try_wait().unwrap().is_none(), "pywb serves");
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut ask = Command::new("python3")
        .args(["-c", ASK, &port.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    ask.stdin.take().unwrap().write_all(asked.to_string().as_bytes()).unwrap();
    let answers = ask.wait_with_output().unwrap();
    assert!(answers.status.success());
    let answers: Vec<(u16, String)> = serde_json::from_slice(&answers.stdout).unwrap();
    let byte = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap();
    answers
        .into_iter()
        .map(|(status, body)| (status, body.as_bytes().chunks(2).map(byte).collect()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pywb_replays_every_url_with_the_bytes_of_the_site_from_the_files_and_from_the_wacz_file() {
    let (sent, folder) = (sent(), tempfile::tempdir().unwrap());
    let site = site(&sent).await;
    let archived = folder.path().join("archive");
    archive(&site, &sent, &archived).await;
    let asked: Vec<Value> = sent
        .keys()
        .map(|(method, target, body)| json!([method, site.url(target).as_str(), type_of_body(target), body]))
        .collect();
    let (asked, expected) = (Value::from(asked), sent.values().cloned().collect::<Vec<_>>());

    let archives = Archives::named(&[&archived]).unwrap();
    let options = WaczOptions {
        software: "test".to_owned(),
        created: "2026-01-31T12:00:00Z".to_owned(),
        ..WaczOptions::default()
    };
    let wacz = std::fs::File::create(folder.path().join("site.wacz")).unwrap();
    pack_wacz(archives.files(), wacz, &options, |_| PageText::default(), |_, _| {}).unwrap();
    let file = archives.files()[0].name().to_owned();
    for add in [&["c", &file][..], &["--unpack-wacz", "c", "../site.wacz"]] {
        let player = folder.path().join(if add.len() == 2 { "files" } else { "wacz" });
        std::fs::create_dir(&player).unwrap();
        let found = replayed(&player, add, &asked);
        for ((answer, expected), request) in found.iter().zip(&expected).zip(sent.keys()) {
            assert_eq!(answer, expected, "{request:?} {add:?}");
        }
        assert_eq!(found.len(), expected.len());
    }
}
