//! Effects of a library crawl on its process: the log, and signals. Each test starts this program again as a child.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use huntsman::middleware::sinks::JsonLines;
use huntsman::{Output, Page, spider_fn};
use huntsman_testkit::{Reply, ScriptedDownloader};

use super::support::quick;

/// The variables with the directory for the child's files and the number of pages of its site; without them the test
/// does nothing.
const DIR: &str = "HUNTSMAN_TEST_DIR";
const PAGES: &str = "HUNTSMAN_TEST_PAGES";

#[tokio::test]
#[ignore = "the crawl of a child that the other tests start"]
async fn child() {
    let (Ok(dir), Ok(pages)) = (std::env::var(DIR), std::env::var(PAGES)) else { return };
    let (dir, pages) = (Path::new(&dir), pages.parse::<u64>().unwrap());
    let page = |request: &huntsman::Request| {
        let number: u64 = request.url.path()[1..].parse().unwrap();
        Reply::html(format!("<a href=/{}>next</a>", number + 1))
    };
    let web = ScriptedDownloader::new()
        .otherwise(move |request, _| page(request))
        .latency(Duration::from_millis(1));
    let spider = spider_fn(["http://a.test/0"], move |page: &Page, out: &mut Output<u64>| {
        let number: u64 = page.url().path()[1..].parse()?;
        out.item(number);
        if number == 20 {
            println!("\nbegun");
        }
        if number + 1 < pages {
            page.links().into_iter().for_each(|link| out.follow(link));
        }
        Ok(())
    });
    let mut crawl = quick(spider, &web)
        .set("log_level", "debug")
        .pipeline(JsonLines::create(dir.join("items.jsonl.gz")).unwrap())
        .with_signals();
    // A file is named, or the log is asked for.
    crawl = match dir.join("to-file").exists() {
        true => crawl.set("log_file", dir.join("log").to_str().unwrap()),
        false => crawl.with_logging(),
    };
    let report = crawl.run().await.unwrap();
    std::fs::write(dir.join("report"), format!("{} {}", report.finish_reason, report.pages)).unwrap();
}

fn start(dir: &Path, pages: u64, stderr: Stdio) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "crawls::process::child", "--ignored", "--nocapture"]);
    command.env(DIR, dir).env(PAGES, pages.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).spawn().unwrap()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The numbers of the pages in the feed, which must be whole.
fn items(dir: &Path) -> Vec<u64> {
    let mut text = String::new();
    let file = std::fs::File::open(dir.join("items.jsonl.gz")).unwrap();
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).expect("the feed ends as it should");
    text.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn a_log_whose_reader_is_gone_does_not_stop_the_crawl() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = start(dir.path(), 100, Stdio::piped());
    drop(child.stderr.take());
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(read(&dir.path().join("report")), "finished 100");
    assert_eq!(items(dir.path()), (0..100).collect::<Vec<_>>(), "each page once");
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_crawl_with_whole_feeds() {
    for name in ["INT", "TERM"] {
        let dir = tempfile::tempdir().unwrap();
        let mut child = start(dir.path(), u64::MAX, Stdio::null());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "begun"));
        let sent =
            Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        // Reads until the pipe is closed, because the child's output must not fill it.
        lines.for_each(drop);
        assert!(child.wait().unwrap().success());
        let items = items(dir.path());
        assert_eq!(read(&dir.path().join("report")), format!("shutdown {}", items.len()));
        assert_eq!(items, (0..items.len() as u64).collect::<Vec<_>>());
    }
}

#[test]
fn the_log_goes_where_the_settings_say() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("to-file"), "").unwrap();
    let ended = start(dir.path(), 3, Stdio::piped()).wait_with_output().unwrap();
    assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
    let log = read(&dir.path().join("log"));
    assert!(log.lines().any(|line| line.contains("DEBUG")), "{log}");

    let dir = tempfile::tempdir().unwrap();
    let ended = start(dir.path(), 3, Stdio::piped()).wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&ended.stderr).contains("DEBUG"), "{ended:?}");
}
