//! `crawl --record`.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use huntsman_testkit::{Answer, RunningSite, Site, sites};
use serde_json::Value;

use crate::common::{crawl, run};

const PAGES: usize = 600;

fn recorded(directory: &Path, site: &RunningSite, file: &str) -> Command {
    let mut command = crawl(directory, site);
    command.args(["--record", file]);
    command
}

/// A recorded crawl with its queue on disk.
fn kept(directory: &Path, site: &RunningSite) -> Command {
    let mut command = recorded(directory, site, "crawl.jsonl.zst");
    command.args(["--store", "redb", "--concurrency", "32", "--per-host", "32"]);
    command.args(["--set", "job_commit_interval=0.1", "--requests-per-second", "400"]);
    command
}

/// The lines of a recording, which are numbered without a gap.
fn lines(path: impl AsRef<Path>) -> Vec<Value> {
    let text = zstd::decode_all(&std::fs::read(path).unwrap()[..]).expect("whole frames");
    let text = String::from_utf8(text).unwrap();
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a JSON object a line")).collect();
    let numbers: Vec<usize> = lines.iter().map(|line| line["n"].as_u64().unwrap() as usize).collect();
    assert_eq!(numbers, (1..=lines.len()).collect::<Vec<_>>());
    lines
}

fn urls(lines: &[Value]) -> BTreeSet<String> {
    lines.iter().map(|line| line["url"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_recorded_crawl_that_is_killed_and_goes_on_has_every_response() {
    let (dir, site) = (tempfile::tempdir().unwrap(), sites::linked(PAGES, 8).start_blocking());
    for part in 1..=3 {
        let mut child = kept(dir.path(), &site).stderr(Stdio::null()).spawn().unwrap();
        let (before, deadline) = (site.requests().len(), Instant::now() + Duration::from_secs(60));
        while site.requests().len() < before + 40 * part && child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "the crawl hangs");
            std::thread::sleep(Duration::from_millis(3));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let said = run(&mut kept(dir.path(), &site));
    assert_eq!(said.code, Some(0), "{said:?}");
    let lines = lines(dir.path().join("crawl.jsonl.zst"));
    let expected: BTreeSet<String> =
        (0..PAGES).map(|n| site.url(&sites::linked_path(n)).to_string()).collect();
    assert_eq!(urls(&lines), expected);
    assert!(
        lines.len() < PAGES + 200,
        "{} lines: only what was not committed is recorded twice",
        lines.len()
    );
    assert!(lines.iter().all(|line| line["status"] == 200 && line["body"].is_string()));
}

#[test]
fn without_a_job_everything_is_in_the_file_when_the_command_ends() {
    let (dir, site) = (tempfile::tempdir().unwrap(), sites::linked(50, 4).start_blocking());
    let said = run(&mut recorded(dir.path(), &site, "crawl.jsonl.zst"));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(lines(dir.path().join("crawl.jsonl.zst")).len(), 50);
}

#[test]
fn a_new_crawl_needs_a_new_file_in_a_folder_that_is_there() {
    let (dir, site) = (tempfile::tempdir().unwrap(), sites::linked(20, 4).start_blocking());
    assert_eq!(run(&mut recorded(dir.path(), &site, "crawl.jsonl")).code, Some(0));
    let before = std::fs::read(dir.path().join("crawl.jsonl")).unwrap();
    let asked = site.requests().len();
    for (file, more, code, what) in [
        ("crawl.jsonl", &["--fresh"][..], 2, "the file exists"),
        ("crawl.jsonl", &["--out", "another"], 2, "the file exists"),
        ("crawl.json", &["--fresh"], 2, ".jsonl.zst"),
        ("none/crawl.jsonl", &["--fresh"], 1, "make its folder first"),
        ("out", &["--fresh"], 2, ".jsonl.zst"),
    ] {
        let said = run(recorded(dir.path(), &site, file).args(more));
        assert_eq!(said.code, Some(code), "{file}: {said:?}");
        assert!(said.stderr.contains(what) && said.stderr.contains(file), "{}", said.stderr);
    }
    assert_eq!(site.requests().len(), asked, "nothing was crawled");
    assert_eq!(std::fs::read(dir.path().join("crawl.jsonl")).unwrap(), before);
    assert!(!dir.path().join("another").exists());
    // The crawl is finished, so the same command changes nothing.
    let said = run(&mut recorded(dir.path(), &site, "crawl.jsonl"));
    assert!(said.code == Some(0) && said.stderr.contains("finished crawl"), "{said:?}");
}

#[test]
fn a_recording_that_cannot_grow_stops_the_crawl_and_it_goes_on_with_more_room() {
    let dir = tempfile::tempdir().unwrap();
    let links: String = (0..60).map(|n| format!("<a href='/{n}'>{n}</a>")).collect();
    let site = Site::builder()
        .page("/", links)
        .route("/*", |asked| Answer::html(format!("{} {}", asked.path(), "many words ".repeat(20_000))))
        .start_blocking();
    for store in ["redb", "memory"] {
        let file = format!("{store}.jsonl");
        let mut command = recorded(dir.path(), &site, &file);
        command.args(["--store", store, "--out", store, "--set", "job_commit_interval=0.1"]);
        let mut words = vec![command.get_program().to_owned()];
        words.extend(command.get_args().map(ToOwned::to_owned));
        let mut limited = Command::new("sh");
        // The write fails as on a full disk. A block is 512 or 1,024 bytes.
        limited.args(["-c", "ulimit -f 10000; exec \"$@\"", "sh"]).args(words);
        limited.current_dir(dir.path()).stdin(Stdio::null()).env("NO_COLOR", "1");
        let said = run(&mut limited);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.stderr.contains("broke off") && said.stderr.contains(&file), "{}", said.stderr);
        // If the first write of all fails, the file is empty, and an empty recording is removed.
        let text = std::fs::read_to_string(dir.path().join(&file)).unwrap_or_default();
        assert!(text.is_empty() || text.ends_with("}\n"), "the file ends with a whole line");
        if store == "redb" {
            assert_eq!(run(&mut command).code, Some(0));
            let text = std::fs::read_to_string(dir.path().join(&file)).unwrap();
            let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(urls(&lines).len(), 61);
        }
    }
}
