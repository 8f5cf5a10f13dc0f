//! Measures the processor time of one fetch: a page of 21 KB over a kept connection on loopback.
//!
//! `cargo bench -p huntsman-crawler --bench fetch`; a number as argument is the number of concurrent fetches (default
//! 8). The server is a separate process, so that its time does not count. The first line is the bare HTTP library
//! with the same headers: the difference is the cost of limits, guard, deadlines and decoding.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use huntsman_crawler::{Downloader, HttpDownloader, Request, Settings};

const FETCHES: usize = 40_000;
const HEADERS: [(&str, &str); 3] = [
    ("user-agent", "bench/1 (+https://example.org/bot)"),
    ("accept-language", "en"),
    ("accept", "text/html"),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--serve") {
        return serve(arguments.get(at + 1).is_some_and(|coding| coding == "gzip"));
    }
    let at_once = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(8);
    let (plain, coded) = (Served::start("plain"), Served::start("gzip"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut settings = Settings::default();
    settings.allow_private_addresses = true;
    runtime.block_on(async {
        let bare = reqwest::Client::builder().no_proxy().build().expect("a client");
        let ours = Arc::new(HttpDownloader::new(&settings).expect("valid settings"));
        for round in 1..=3 {
            println!("round {round}");
            let (client, uri) = (bare.clone(), plain.url.clone());
            measure("bare library", at_once, move || {
                let (client, uri) = (client.clone(), uri.clone());
                async move {
                    let request =
                        HEADERS.iter().fold(client.get(&uri), |r, (name, value)| r.header(*name, *value));
                    let answer = request.send().await.expect("a page");
                    answer.bytes().await.expect("a body").len()
                }
            })
            .await;
            for (name, url) in [("HttpDownloader", &plain.url), ("HttpDownloader, gzip", &coded.url)] {
                let (ours, url) = (Arc::clone(&ours), url.clone());
                measure(name, at_once, move || {
                    let (ours, url) = (Arc::clone(&ours), url.clone());
                    async move {
                        let request =
                            HEADERS.iter().fold(Request::parse(&url).expect("a URL"), |r, (name, value)| {
                                r.header(name, value).expect("a header")
                            });
                        let response = ours.fetch(&request).await.expect("a page");
                        response.decoded.as_ref().unwrap_or(&response.body).len()
                    }
                })
                .await;
            }
        }
    });
}

async fn measure<F, Fut>(name: &str, at_once: usize, fetch: F)
where
    F: Fn() -> Fut + Clone + Send + 'static,
    Fut: Future<Output = usize> + Send,
{
    let (cpu, begun) = (processor_micros(), Instant::now());
    let tasks: Vec<_> = (0..at_once)
        .map(|_| {
            let fetch = fetch.clone();
            tokio::spawn(async move {
                for _ in 0..FETCHES / at_once {
                    assert_eq!(fetch().await, PAGE);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    let each = |micros: f64| micros / (FETCHES / at_once * at_once) as f64;
    let wall = each(begun.elapsed().as_secs_f64() * 1e6);
    match (cpu, processor_micros()) {
        (Some(before), Some(after)) => {
            println!("  {name:22} {:6.2} us CPU, {wall:6.2} us wall", each(after - before));
        }
        _ => println!("  {name:22} {wall:6.2} us wall (no CPU time on this system)"),
    }
}

/// Processor time of all threads, as accounted by the kernel's scheduler.
fn processor_micros() -> Option<f64> {
    let mut sum = 0.0;
    for thread in std::fs::read_dir("/proc/self/task").ok()? {
        let account = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        sum += account.split(' ').next()?.parse::<f64>().ok()? / 1e3;
    }
    Some(sum)
}

/// Size of the page in bytes.
const PAGE: usize = 21_000;

struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn start(coding: &str) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut command = Command::new(program);
        let mut child = command.args(["--serve", coding]).stdout(Stdio::piped()).spawn().expect("a process");
        let mut address = [0; 64];
        let length = child.stdout.as_mut().expect("piped").read(&mut address).expect("an address");
        let url = format!("http://{}/page.html", String::from_utf8_lossy(&address[..length]).trim());
        Self { child, url }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(gzip: bool) {
    let words =
        ["<p>plum ", "cedar ", "gravel</p>\n", "tunnel ", "<a href=\"/violin\">", "carpet</a> ", "falcon "];
    let mut state = 1_u64;
    let mut page = String::new();
    while page.len() < PAGE {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        page.push_str(words[(state >> 33) as usize % words.len()]);
    }
    page.truncate(PAGE);
    let (body, coding) = match gzip {
        true => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(page.as_bytes()).expect("to memory");
            (encoder.finish().expect("to memory"), "Content-Encoding: gzip\r\n")
        }
        false => (page.into_bytes(), ""),
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: bench\r\nDate: Sat, 21 Nov 2026 10:00:00 GMT\r\n\
         Content-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Last-Modified: Sat, 21 Nov 2026 09:00:00 GMT\r\nETag: \"65f\"\r\n{coding}Accept-Ranges: bytes\r\n\r\n",
        body.len()
    );
    let answer: Arc<[u8]> = [head.as_bytes(), &body].concat().into();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    println!("{}", listener.local_addr().expect("bound"));
    for stream in listener.incoming().flatten() {
        let answer = Arc::clone(&answer);
        std::thread::spawn(move || {
            let _ = keep_answering(stream, &answer);
        });
    }
}

fn keep_answering(mut stream: TcpStream, answer: &[u8]) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = [0; 4096];
    while stream.read(&mut request)? > 0 {
        stream.write_all(answer)?;
    }
    Ok(())
}
