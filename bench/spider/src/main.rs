//! Crawls one host with the spider crate and writes a JSON line per page: `url`, `status`, `bytes`, `title`.
//!
//! Usage: `spider-site SEED FILE`. 64 in flight, no delay, robots.txt ignored, no limit of depth or pages. The last
//! line of stdout is a JSON object with `pages`, `cpu_s`, `cpu_s_per_1000` and `peak_rss_bytes` of this process.
//! Exits with 1 if pages were lost on the way to the file.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

use serde_json::json;
use spider::page::Page;
use spider::website::Website;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

const CONCURRENCY: usize = 64;

/// Pages between the crawl and the writer. The broadcast channel keeps the last so many pages alive, so more costs
/// memory; with fewer than the tasks in flight the writer could miss some.
const CHANNEL: usize = 4 * CONCURRENCY;

/// What the writer saw.
#[derive(Default)]
struct Written {
    pages: u64,
    lost: u64,
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(seed), Some(file), None) = (args.next(), args.next(), args.next()) else {
        eprintln!("usage: spider-site SEED FILE");
        return Ok(ExitCode::from(2));
    };

    let mut website = Website::new(&seed);
    website
        .with_respect_robots_txt(false)
        .with_concurrency_limit(Some(CONCURRENCY))
        .with_delay(0)
        .with_depth(0)
        .with_user_agent(Some("spider-site"));
    let pages = website.subscribe(CHANNEL);
    let out = BufWriter::with_capacity(1 << 16, File::create(file)?);
    let writer = tokio::spawn(write(pages, out));
    website.crawl().await;
    website.unsubscribe();
    // The writer ends when the last sender is gone.
    drop(website);
    let Written { pages, lost } = writer.await??;

    let cpu = cpu_seconds()?;
    println!(
        "{}",
        json!({
            "pages": pages,
            "cpu_s": cpu,
            "cpu_s_per_1000": cpu * 1000.0 / pages.max(1) as f64,
            "peak_rss_bytes": peak_rss()?,
        })
    );
    if lost > 0 {
        eprintln!("spider-site: {lost} pages did not reach the file");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

async fn write(mut pages: Receiver<Page>, mut out: BufWriter<File>) -> std::io::Result<Written> {
    let mut written = Written::default();
    loop {
        match pages.recv().await {
            Ok(page) => {
                serde_json::to_writer(&mut out, &record(&page))?;
                out.write_all(b"\n")?;
                written.pages += 1;
            }
            Err(RecvError::Lagged(count)) => written.lost += count,
            Err(RecvError::Closed) => break,
        }
    }
    out.flush()?;
    Ok(written)
}

/// The line of a page. The title is what spider's own streaming pass found in `head title`: no second parse.
fn record(page: &Page) -> serde_json::Value {
    json!({
        "url": page.get_url(),
        "status": page.status_code.as_u16(),
        "bytes": page.get_html_bytes_u8().len(),
        "title": page.metadata.as_ref().and_then(|metadata| metadata.title.as_deref()),
    })
}

/// User and system seconds of this process, from `/proc/self/stat` (fields 14 and 15, in 1/100 s: Linux reports
/// them to programs in that unit whatever the kernel's tick is).
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name in field 2 may hold spaces and brackets; the fields after it do not.
    let (_, fields) = stat.rsplit_once(')').ok_or("no process name in /proc/self/stat")?;
    let ticks: Result<Vec<u64>, _> = fields.split_whitespace().skip(11).take(2).map(str::parse).collect();
    Ok(ticks?.iter().sum::<u64>() as f64 / 100.0)
}

/// The largest resident set so far, in bytes (`VmHWM`).
fn peak_rss() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM in /proc/self/status")?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024)
}
