//! The output directory as users see it: finished, unfinished, fresh, shared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use huntsman_testkit::{Answer, Gate, RunningSite, Site};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::common::{crawl, field, huntsman, lines, report, run, wait_for};

fn site() -> RunningSite {
    Site::builder().page("/", "<a href='/a'>a</a>").page("/a", "a").start_blocking()
}

#[test]
fn a_finished_crawl_says_so_and_fetches_nothing() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    run(&mut crawl(dir.path(), &site));
    let before = (site.requests().len(), std::fs::read(dir.path().join("out/pages.jsonl")).unwrap());
    let said = run(&mut crawl(dir.path(), &site));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("finished crawl") && said.stderr.contains("--fresh"), "{}", said.stderr);
    let after = (site.requests().len(), std::fs::read(dir.path().join("out/pages.jsonl")).unwrap());
    assert_eq!(before, after);
}

#[test]
fn fresh_crawls_anew() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    run(&mut crawl(dir.path(), &site));
    std::fs::write(dir.path().join("out/notes.txt"), "mine").unwrap();
    let said = run(crawl(dir.path(), &site).arg("--fresh"));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!((site.count("/"), lines(dir.path().join("out/pages.jsonl")).len()), (2, 2));
    assert!(dir.path().join("out/notes.txt").exists(), "what is not ours stays");
}

#[test]
fn the_default_directory_is_named_by_the_host() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let mut command = crate::common::huntsman(dir.path());
    let address = format!("127.0.0.1:{}", site.port());
    command.args(["crawl", site.url("/").as_str(), "--profile", "test", "--allow-address", &address]);
    assert_eq!(run(&mut command).code, Some(0));
    assert_eq!(lines(dir.path().join("127.0.0.1-crawl/pages.jsonl")).len(), 2);
}

#[test]
fn a_crawl_whose_seed_failed_is_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let site = Site::builder()
        .route("/", |asked| if asked.nth == 0 { Answer::status(404) } else { Answer::html("up") })
        .start_blocking();
    assert_eq!(run(&mut crawl(dir.path(), &site)).code, Some(1));
    let said = run(&mut crawl(dir.path(), &site));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(report(&dir.path().join("out"))["pages"], 1);
}

/// A site whose second page waits for a gate.
fn slow(gate: &Gate) -> RunningSite {
    Site::builder()
        .page("/", "<a href='/slow'>s</a>")
        .answer("/slow", Answer::html("<a href='/after'>a</a>").behind(gate))
        .page("/after", "after")
        .start_blocking()
}

#[test]
fn a_killed_crawl_in_memory_cannot_go_on_and_fresh_starts_anew() {
    let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::default());
    let site = slow(&gate);
    let mut child = crawl(dir.path(), &site).spawn().unwrap();
    wait_for(&site, "/slow");
    child.kill().unwrap();
    child.wait().unwrap();
    let said = run(&mut crawl(dir.path(), &site));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("unfinished") && said.stderr.contains("--fresh"), "{}", said.stderr);
    gate.open();
    assert_eq!(run(crawl(dir.path(), &site).arg("--fresh")).code, Some(0));
    assert_eq!(lines(dir.path().join("out/pages.jsonl")).len(), 3);
}

#[test]
fn a_second_crawl_into_the_same_directory_refuses() {
    let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::default());
    let site = slow(&gate);
    let mut first = crawl(dir.path(), &site).spawn().unwrap();
    wait_for(&site, "/slow");
    let said = run(&mut crawl(dir.path(), &site));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("another huntsman"), "{}", said.stderr);
    gate.open();
    assert_eq!(first.wait().unwrap().code(), Some(0), "the first one is not disturbed");
    assert_eq!(lines(dir.path().join("out/pages.jsonl")).len(), 3);
}

/// A crawl with its queue on disk.
fn kept(directory: &Path, site: &RunningSite, store: &str) -> Command {
    let mut command = crawl(directory, site);
    command.args(["--store", store]);
    command
}

#[test]
fn killed_in_its_first_moments_a_crawl_is_not_refused_and_loses_nothing() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let site = site();
    for round in 0..24 {
        let dir = tempfile::tempdir().unwrap();
        let is_fresh = round % 2 == 1;
        if is_fresh {
            assert_eq!(run(&mut kept(dir.path(), &site, "redb")).code, Some(0));
        }
        for kill in 0..2 {
            let mut command = kept(dir.path(), &site, "redb");
            if is_fresh {
                command.arg("--fresh");
            }
            let mut child = command.spawn().unwrap();
            std::thread::sleep(Duration::from_micros(rng.random_range(0..60_000)));
            child.kill().unwrap();
            child.wait().unwrap();
            let what = format!("round {round}, kill {kill}");
            let said = run(huntsman(dir.path()).args(["verify", "out"]));
            assert!(matches!(said.code, Some(0 | 2)), "{what}: {said:?}");
        }
        let said = run(&mut kept(dir.path(), &site, "redb"));
        assert_eq!(said.code, Some(0), "round {round}: {said:?}");
        let pages = field(&lines(dir.path().join("out/pages.jsonl")), "url");
        assert_eq!(pages, [site.url("/").to_string(), site.url("/a").to_string()], "round {round}: {said:?}");
    }
}

#[test]
fn another_command_is_refused_with_the_content_of_the_directory() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    assert_eq!(run(&mut crawl(dir.path(), &site)).code, Some(0));
    let before = std::fs::read(dir.path().join("out/pages.jsonl")).unwrap();
    let mut sweep = huntsman(dir.path());
    let address = format!("127.0.0.1:{}", site.port());
    sweep.args(["sweep", site.url("/").as_str(), "--profile", "test", "--out", "out"]);
    sweep.args(["--allow-address", &address]);
    let said = run(&mut sweep);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("finished crawl") && said.stderr.contains("--out"), "{}", said.stderr);
    assert_eq!(std::fs::read(dir.path().join("out/pages.jsonl")).unwrap(), before);
    assert_eq!(run(sweep.arg("--fresh")).code, Some(0));
    assert!(dir.path().join("out/sweep.html").is_file());
    let said = run(&mut crawl(dir.path(), &site));
    assert!(said.code == Some(2) && said.stderr.contains("finished sweep"), "{said:?}");
}

/// The JSON output of `verify` for a directory, and its exit code.
fn verify(directory: &Path, name: &str) -> (Option<i32>, Value) {
    let said = run(huntsman(directory).args(["verify", name, "--json"]));
    (said.code, serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}")))
}

/// All files below a directory with their contents.
fn content(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(content(&path)),
            false => drop(all.insert(path.clone(), std::fs::read(path).unwrap())),
        }
    }
    all
}

#[test]
fn verify_knows_every_directory_that_a_crawl_writes_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let text = "words of a page that is long enough to be kept ".repeat(20);
    let site = Site::builder()
        .page("/", format!("<p>{text}<a href='/a'>a</a>"))
        .page("/a", format!("<p>{text}"))
        .start_blocking();
    let mut command = kept(dir.path(), &site, "redb");
    command.args(["--index", "text", "--set", "httpcache_enabled=true", "--set", "httpcache_dir=cache"]);
    command.args(["--set", "incremental_enabled=true", "--set", "incremental_dir=known"]);
    let said = run(&mut command);
    assert_eq!(said.code, Some(0), "{said:?}");
    let stories = r#"{"id": 1, "lang": "hi", "simhash": "0123456789abcdef0123456789abcdef"}"#;
    std::fs::write(dir.path().join("stories.jsonl"), format!("{stories}\n")).unwrap();
    let said = run(huntsman(dir.path()).args(["dedup", "build", "stories.jsonl", "--index", "near"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let before = content(dir.path());
    for (name, kind, count, number) in [
        ("out", "output of a crawl", "pages", 2),
        ("out/state", "output of a crawl", "pages", 2),
        ("out/state/job", "job of a crawl", "entries", 0),
        ("text", "text index", "pages", 2),
        ("cache", "HTTP cache", "answers", 2),
        ("known", "known pages of earlier crawls", "pages", 2),
        ("near", "index of near-duplicates", "documents", 1),
    ] {
        let (code, verdict) = verify(dir.path(), name);
        assert_eq!((code, &verdict["whole"]), (Some(0), &json!(true)), "{name}: {verdict}");
        assert_eq!(verdict["kind"], kind, "{name}: {verdict}");
        assert!(verdict["counts"][count].as_u64().unwrap() >= number, "{name}: {verdict}");
    }
    assert_eq!(content(dir.path()), before);
    std::fs::create_dir(dir.path().join("other")).unwrap();
    for name in ["other", "missing", "stories.jsonl"] {
        let said = run(huntsman(dir.path()).args(["verify", name]));
        assert!(said.code == Some(2) && said.stderr.contains(name), "{said:?}");
    }
}

#[test]
fn verify_tells_what_is_damaged_and_what_helps() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    assert_eq!(run(&mut kept(dir.path(), &site, "redb")).code, Some(0));
    let out = dir.path().join("out");
    let pages = std::fs::read_to_string(out.join("pages.jsonl")).unwrap();
    let first = pages.lines().next().unwrap();
    let edit = |name: &str, to: String| {
        let whole = std::fs::read(out.join(name)).unwrap();
        std::fs::write(out.join(name), to).unwrap();
        let (code, verdict) = verify(dir.path(), "out");
        let said = run(huntsman(dir.path()).args(["verify", "out"]));
        std::fs::write(out.join(name), whole).unwrap();
        assert_eq!((code, &verdict["whole"]), (Some(1), &json!(false)), "{name}: {verdict}");
        let problem = &verdict["problems"][0];
        assert!(problem["file"].as_str().unwrap().ends_with(name), "{verdict}");
        assert!(problem["help"].as_str().unwrap().contains("--fresh"), "{verdict}");
        assert!(said.stdout.contains("damaged") && said.stdout.contains(name), "{}", said.stdout);
        problem["what"].as_str().unwrap().to_owned()
    };
    assert!(edit("pages.jsonl", format!("{pages}{first}\n")).contains("another record"));
    assert!(edit("pages.jsonl", format!("{first}\n")).contains("1 page"));
    assert!(edit("pages.jsonl", pages[..pages.len() - 3].to_owned()).contains("torn"));
    assert!(edit("pages.jsonl", format!("{first}\n\u{0}\u{0}\n")).contains("no record"));
    assert!(edit("report.json", "{".to_owned()).contains("cannot be read"));
    assert_eq!(verify(dir.path(), "out").0, Some(0));
    for name in ["pages.jsonl", "drops.jsonl", "report.json", "state/job/store.redb"] {
        let kept = std::fs::read(out.join(name)).unwrap();
        std::fs::remove_file(out.join(name)).unwrap();
        let (code, verdict) = verify(dir.path(), "out");
        assert_eq!((code, &verdict["whole"]), (Some(1), &json!(false)), "{name}: {verdict}");
        std::fs::write(out.join(name), kept).unwrap();
    }
}

#[cfg(unix)]
mod private {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// All paths below a directory, beginning with itself.
    fn all(path: &Path) -> Vec<PathBuf> {
        let mut found = vec![path.to_owned()];
        if path.is_dir() {
            let entries = std::fs::read_dir(path).unwrap();
            entries.for_each(|entry| found.extend(all(&entry.unwrap().path())));
        }
        found
    }

    #[test]
    fn whatever_a_crawl_writes_is_for_its_owner_only() {
        for store in ["redb", "sled", "memory"] {
            let (dir, site) = (tempfile::tempdir().unwrap(), site());
            let mut command = crawl(dir.path(), &site);
            command.args(["--store", store, "--set", "httpcache_enabled=true"]);
            command.args(["--set", "httpcache_dir=\"cache\"", "--set", "incremental_enabled=true"]);
            command.args(["--set", "incremental_dir=\"known\"", "--set", "log_file=\"log\""]);
            let said = run(&mut command);
            if store == "sled" && said.stderr.contains("feature") {
                continue;
            }
            assert_eq!(said.code, Some(0), "{said:?}");
            for place in ["out", "cache", "known", "log"] {
                for path in all(&dir.path().join(place)) {
                    let mode = path.symlink_metadata().unwrap().permissions().mode();
                    assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
                }
            }
        }
    }

    #[test]
    fn links_that_were_planted_in_the_output_directory_are_not_followed() {
        let (dir, site) = (tempfile::tempdir().unwrap(), site());
        let out = dir.path().join("out");
        run(crawl(dir.path(), &site).args(["--store", "redb"]));
        let names: Vec<PathBuf> =
            std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).collect();
        let precious = dir.path().join("precious");
        for name in names {
            let target = precious.join(name.file_name().unwrap());
            std::fs::create_dir(&precious).unwrap();
            // Earlier files are still there, behind a link.
            std::fs::rename(&name, &target).unwrap();
            symlink(&target, &name).unwrap();
            let before: Vec<_> = all(&target).iter().map(|path| std::fs::read(path).ok()).collect();
            for fresh in [&[][..], &["--fresh"]] {
                run(crawl(dir.path(), &site).args(["--store", "redb"]).args(fresh));
                let after: Vec<_> = all(&target).iter().map(|path| std::fs::read(path).ok()).collect();
                assert_eq!(after, before, "{} {fresh:?}", name.display());
            }
            std::fs::remove_dir_all(&precious).unwrap();
            std::fs::remove_dir_all(&out).unwrap();
            run(crawl(dir.path(), &site).args(["--store", "redb"]));
        }
    }
}
