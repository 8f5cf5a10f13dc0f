//! The command `bench`: how fast a program crawls on this machine, against fetching alone.
//!
//! The server runs in a process of its own, which is the same program with the command `bench-server`, so that the measured CPU seconds are the
//! crawler's. The raw loop fetches the same pages over the same number of connections and discards them; its cost is the lower bound.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::{Args, ValueHint};
use huntsman_crawler::human_bytes;
use huntsman_serve::{Limits, serve_pages};
use huntsman_testkit::sites::Uniform;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::exit::{Exit, Failure, Outcome};
use super::flags::{Flags, set};
use super::process::{BUILD, cpu_seconds, peak_rss, program};
use super::render::{Table, count, say};
use super::values::positive;

/// Flags of `bench`.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// The site.
    #[command(flatten)]
    pub site: BenchSite,

    /// Maximum number of requests in flight.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = positive)]
    pub concurrency: u64,

    /// Also extracts text and counts words.
    #[arg(long)]
    pub text: bool,

    /// Also archives the crawl into WARC files in this folder.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub warc: Option<String>,

    /// Prints one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl BenchArgs {
    /// The settings with which the site at this port is crawled; they belong on top of the profile `test`.
    pub fn settings(&self, port: u16) -> Flags {
        let mut flags = vec![
            ("allow_addresses", json!([format!("127.0.0.1:{port}")])),
            ("concurrent_requests", json!(self.concurrency)),
            ("concurrent_requests_per_domain", json!(self.concurrency)),
            ("page_text", json!(self.text)),
            // Crawls the whole site, even if the given sizes make it deep.
            ("depth_guard", json!(0)),
            ("seed", json!(1)),
        ];
        set(&mut flags, "warc_dir", self.warc.as_deref());
        flags
    }
}

/// The generated site that is crawled.
#[derive(Clone, Copy, Debug, Args)]
pub struct BenchSite {
    /// Number of pages of the site.
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub pages: u64,

    /// Size of a page in kilobytes.
    #[arg(long, value_name = "KB", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=8_192))]
    pub kb: u64,

    /// Number of links on a page.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u64).range(3..=10_000))]
    pub links: u64,
}

/// How the crawl of the site went.
#[derive(Clone, Debug)]
pub struct BenchCrawl {
    /// Number of pages.
    pub pages: u64,
    /// Bytes on the wire.
    pub wire_bytes: u64,
    /// Its time in seconds.
    pub elapsed_s: f64,
    /// How it ended.
    pub finish_reason: String,
    /// The exit code of the command.
    pub exit: Exit,
}

/// The address where the crawl starts.
pub fn start_url(port: u16) -> String {
    format!("http://127.0.0.1:{port}{}", Uniform::path(0))
}

/// The address of the first page in the form that a script fills.
pub fn script_url(port: u16) -> String {
    format!("http://127.0.0.1:{port}{}", Uniform::script_path(0))
}

/// Serves the site, fetches all of it without crawling, has it crawled, and prints both on stdout.
///
/// # Errors
/// The server does not start, or nothing was crawled.
pub async fn run(args: &BenchArgs, crawl: impl AsyncFnOnce(u16) -> Outcome<BenchCrawl>) -> Outcome {
    if cfg!(debug_assertions) {
        say("this is a debug build: its numbers say little; measure with a build with --release");
    }
    let server = Server::start(args.site)?;
    let raw = raw_loop(server.port, args.site.pages, args.concurrency).await?;
    let before = cpu_seconds();
    let crawled = crawl(server.port).await?;
    let cpu_s = cpu_seconds().zip(before).map_or(f64::NAN, |(after, before)| after - before);
    if crawled.pages == 0 {
        return Err(Failure::crawl(format!(
            "the crawl fetched nothing and ended as {}",
            crawled.finish_reason
        )));
    }
    let BenchCrawl { pages, wire_bytes: bytes, elapsed_s, exit, .. } = crawled;
    drop(server);
    print(args, Cost { pages, bytes, elapsed_s, cpu_s }, raw)?;
    Ok(exit)
}

fn print(args: &BenchArgs, crawl: Cost, raw: Cost) -> Outcome<()> {
    let mut stdout = io::stdout().lock();
    let peak = peak_rss();
    let ratio = crawl.cpu_per_thousand() / raw.cpu_per_thousand();
    if args.json {
        let site = json!({"pages": args.site.pages, "kb": args.site.kb, "links": args.site.links});
        let mut out =
            json!({"version": env!("CARGO_PKG_VERSION"), "build": BUILD, "site": site, "text": args.text});
        out["crawl"] = crawl.json();
        out["raw"] = raw.json();
        out["peak_rss_bytes"] = json!(peak);
        out["cpu_ratio_to_raw"] = json!(ratio);
        writeln!(stdout, "{out}")?;
        return Ok(());
    }
    let mut table = Table::right(&[1, 2, 3, 4]);
    table.row(["", "pages", "pages/s", "CPU s per 1,000", "on the wire"]);
    for (name, cost) in [("crawl", crawl), ("raw fetch loop", raw)] {
        table.row([
            name,
            &count(cost.pages),
            &format!("{:.0}", cost.per_second()),
            &format!("{:.3}", cost.cpu_per_thousand()),
            &human_bytes(cost.bytes),
        ]);
    }
    stdout.write_all(table.lines("").as_bytes())?;
    let rss = peak.map_or("unknown".to_owned(), human_bytes);
    writeln!(
        stdout,
        "peak memory {rss}; a crawled page costs {ratio:.1} times a fetched one; {BUILD} build"
    )?;
    Ok(())
}

/// The cost of one way of fetching the site.
#[derive(Clone, Copy, Debug)]
struct Cost {
    pages: u64,
    bytes: u64,
    elapsed_s: f64,
    cpu_s: f64,
}

impl Cost {
    fn per_second(&self) -> f64 {
        self.pages as f64 / self.elapsed_s.max(1e-9)
    }

    fn cpu_per_thousand(&self) -> f64 {
        self.cpu_s * 1_000.0 / self.pages.max(1) as f64
    }

    fn json(&self) -> Value {
        json!({
            "pages": self.pages,
            "wire_bytes": self.bytes,
            "elapsed_s": self.elapsed_s,
            "pages_per_s": self.per_second(),
            "cpu_s": self.cpu_s,
            "cpu_s_per_1000_pages": self.cpu_per_thousand(),
        })
    }
}

/// The server process; it ends when this value is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// The server ends when its stdin closes, also when this process is killed.
    stdin: Option<ChildStdin>,
    port: u16,
}

impl Server {
    /// The port on this machine at which it serves.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts it.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(site: BenchSite) -> Outcome<Self> {
        let starting = |error: io::Error| Failure::crawl(format!("starting the bench server: {error}"));
        let mut child = program(std::env::current_exe().map_err(starting)?)
            .args(["bench-server", "--pages", &site.pages.to_string()])
            .args(["--kb", &site.kb.to_string(), "--links", &site.links.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(starting)?;
        let stdin = child.stdin.take();
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(starting)?;
        }
        match line.trim().parse() {
            Ok(port) => Ok(Self { child, stdin, port }),
            Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(Failure::crawl("the bench server did not start"))
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command `bench-server`: prints its port and serves until stdin closes.
///
/// # Errors
/// It cannot listen.
pub async fn serve(site: BenchSite) -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let pages = Uniform::new(site.pages, site.kb, site.links);
    println_port(listener.local_addr()?.port())?;
    let closed = tokio::task::spawn_blocking(|| io::stdin().lock().read(&mut [0]));
    tokio::select! {
        () = serve_pages(listener, Limits::of_bench(), move |uri| pages.answer(uri)) => {}
        _ = closed => {}
    }
    Ok(Exit::Done)
}

fn println_port(port: u16) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{port}")?;
    stdout.flush()
}

/// Fetches every page and discards it.
async fn raw_loop(port: u16, pages: u64, connections: u64) -> Outcome<Cost> {
    let (before, started) = (cpu_seconds(), Instant::now());
    let (next, bytes) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..connections {
        let (next, bytes) = (Arc::clone(&next), Arc::clone(&bytes));
        tasks.spawn(async move {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
            stream.set_nodelay(true)?;
            let mut buffer = Vec::with_capacity(64 << 10);
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= pages {
                    return Ok::<(), io::Error>(());
                }
                bytes.fetch_add(fetch_raw(&mut stream, &mut buffer, index).await?, Ordering::Relaxed);
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(io::Error::other).and_then(|result| result).map_err(|error| {
            Failure::crawl(format!("the raw fetch loop against the bench server: {error}"))
        })?;
    }
    Ok(Cost {
        pages,
        bytes: bytes.load(Ordering::Relaxed),
        elapsed_s: started.elapsed().as_secs_f64(),
        cpu_s: cpu_seconds().zip(before).map_or(f64::NAN, |(after, before)| after - before),
    })
}

/// Sends one request on an open connection and returns the length of the body.
async fn fetch_raw(stream: &mut TcpStream, buffer: &mut Vec<u8>, index: u64) -> io::Result<u64> {
    let request = format!("GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", Uniform::path(index));
    stream.write_all(request.as_bytes()).await?;
    buffer.clear();
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let (head, length) = loop {
        if stream.read_buf(buffer).await? == 0 {
            return Err(bad("the server closed the connection"));
        }
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]);
            let length = head.split("\r\n").find_map(|line| line.strip_prefix("Content-Length: "));
            let length: usize =
                length.and_then(|value| value.parse().ok()).ok_or_else(|| bad("no length"))?;
            break (end + 4, length);
        }
    };
    while buffer.len() < head + length {
        if stream.read_buf(buffer).await? == 0 {
            return Err(bad("the body is too short"));
        }
    }
    Ok(length as u64)
}
