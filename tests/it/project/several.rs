//! `crawl A B`: several spiders in one process.

use super::*;

fn report(directory: &Path, spider: &str) -> Value {
    serde_json::from_str(&read(directory, &format!("run/{spider}/report.json"))).expect("a report")
}

#[test]
fn several_spiders_have_a_report_each_and_share_the_pace_of_a_host() {
    let (dir, site) = (tempfile::tempdir().unwrap(), books().start_blocking());
    let crawl = |more: &[&str]| run(on(dir.path(), &site, &["crawl", "books", "cheap"]).args(more));
    let files =
        ["--out", "run", "-o", "%(name)s.jsonl", "-s", "download_delay=0.1", "-s", "download_delay_jitter=0"];
    let said = crawl(&files);
    assert_eq!(said.code, Some(0), "{said:?}");
    // A busy machine may be late with one request and not with the next one, so all of them are judged together.
    let starts: Vec<Duration> = site.requests().iter().map(|request| request.started).collect();
    let gaps = u32::try_from(starts.len() - 1).unwrap();
    let taken = *starts.iter().max().unwrap() - *starts.iter().min().unwrap();
    let paced = Duration::from_millis(100) * gaps;
    assert!(
        taken >= paced * 3 / 4,
        "two crawls that knew nothing of each other take half of {paced:?}: {taken:?}"
    );
    for spider in ["books", "cheap"] {
        assert!(said.stderr.contains(&format!("spider {spider}:\nfinished after")), "{said:?}");
        assert_eq!(report(dir.path(), spider)["pages"], 3);
    }
    assert_eq!(titles(&read(dir.path(), "books.jsonl")), ["Dams", "Mills"]);
    assert_eq!(titles(&read(dir.path(), "cheap.jsonl")), ["Mills"]);
    let said = crawl(&files);
    assert_eq!((said.code, said.stderr.matches("Nothing to do").count()), (Some(0), 2), "{said:?}");
}

#[test]
fn the_exit_code_is_that_of_the_worst_and_one_that_cannot_begin_stops_all() {
    let (dir, site) = (tempfile::tempdir().unwrap(), books().start_blocking());
    let crawl = |more: &[&str]| run(on(dir.path(), &site, &["crawl", "books", "cheap"]).args(more));
    // Only one of them has too few items.
    let said = crawl(&["-s", "min_items=2", "--out", "run"]);
    assert_eq!(said.code, Some(i32::from(Exit::Quality as u8)), "{said:?}");
    assert_eq!(report(dir.path(), "books")["failed_rules"], Value::Null);
    assert_eq!(report(dir.path(), "cheap")["failed_rules"][0]["rule"], "min_items = 2");

    fs::write(dir.path().join("cheap.json"), "[]\n").unwrap();
    let said = crawl(&["--out", "other", "--store", "memory", "-o", "%(name)s.json"]);
    assert!(said.code != Some(0) && said.stderr.contains("cheap.json"), "{said:?}");
    assert!(!dir.path().join("other/books").exists(), "nothing of a command that could not begin is left");
    assert_eq!(site.count("/"), 2, "the first crawl of each spider");
}

#[test]
fn what_several_spiders_cannot_share_is_refused_before_a_crawl() {
    let dir = tempfile::tempdir().unwrap();
    let start = "start=http://127.0.0.1:1/";
    for (given, part) in [
        (&["-o", "all.jsonl"][..], "-o all.jsonl: several spiders cannot share it; put %(name)s"),
        (&["--report", "r.json"], "--report r.json: several spiders"),
        (&["--record", "recorded"], "--record recorded: several spiders"),
        (&["--metrics", "127.0.0.1:0"], "--metrics is for one spider"),
        (&["-a", "mst=2"], "did you mean most?"),
        (&["books"], "the spider books is named twice"),
    ] {
        let said = words(dir.path(), &[&["crawl", "books", "cheap", "-a", start], given].concat());
        assert!(said.code == Some(2) && said.stderr.contains(part), "{part}: {said:?}");
    }
}
