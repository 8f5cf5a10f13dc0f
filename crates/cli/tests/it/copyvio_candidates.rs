//! `copyvio check` with candidate sources: indexes of earlier crawls, indexes of near-duplicates, search engines.

use std::fs;
use std::path::Path;
use std::process::Command;

use huntsman_testkit::{Answer, RunningSite, Site};
use serde_json::{Value, json};

use crate::common::{crawl, huntsman, run, wait_for};

/// Distinct words.
fn words(from: usize, to: usize) -> String {
    (from..to).map(|at| format!("word{at:x}q{}", at * 7 % 13)).collect::<Vec<_>>().join(" ")
}

/// `copyvio check` of a.txt.
fn check(dir: &Path, args: &[&str]) -> Command {
    let mut command = huntsman(dir);
    command.args(["copyvio", "check", "a.txt"]).args(args);
    for name in ["BRAVE_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CX"] {
        command.env_remove(name);
    }
    command
}

fn json_of(command: &mut Command) -> Value {
    let said = run(command.arg("--json"));
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&said.stdout).expect("JSON")
}

/// Addresses of the sources, the most suspicious first.
fn sources(made: &Value) -> Vec<&str> {
    made["sources"].as_array().unwrap().iter().map(|source| source["source"].as_str().unwrap()).collect()
}

/// A site of three texts.
fn site(first: usize) -> RunningSite {
    let text = |at: usize| {
        format!("<nav>home about</nav><p>{}", words(first + at * 1_000, first + at * 1_000 + 400))
    };
    Site::builder()
        .page("/", "<title>Start</title><a href=/0>0</a><a href=/1>1</a><a href=/2>2</a>")
        .page("/0", text(0))
        .page("/1", text(1))
        .page("/2", text(2))
        .start_blocking()
}

#[cfg(feature = "text-index")]
#[test]
fn pages_of_two_crawls_are_sources_and_nothing_is_fetched_for_them() {
    let (dir, one, two) = (tempfile::tempdir().unwrap(), site(0), site(10_000));
    for site in [&one, &two] {
        let said = run(crawl(dir.path(), site).args(["--index", "index", "--fresh"]));
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    let seen = (one.requests().len(), two.requests().len());
    // A hundred words of one page from each site.
    let article =
        [words(50_000, 50_300), words(1_100, 1_200), words(60_000, 60_300), words(12_200, 12_300)].join(" ");
    fs::write(dir.path().join("a.txt"), article).unwrap();
    let made = json_of(&mut check(dir.path(), &["--index", "index", "--no-short-circuit"]));
    let mut found = sources(&made);
    found.sort_unstable();
    let mut expected = [one.url("/1").to_string(), two.url("/2").to_string()];
    expected.sort();
    assert_eq!(found, expected);
    for source in made["sources"].as_array().unwrap() {
        assert_eq!(
            (&source["status"], &source["found_by"]),
            (&json!("compared"), &json!("index")),
            "{source}"
        );
        assert!(source["delta"].as_u64().unwrap() >= 96, "{source}");
    }
    assert_eq!((&made["queries"], &made["errors"]), (&json!(0), &json!([])));
    assert_eq!((one.requests().len(), two.requests().len()), seen);

    // The article is itself a page of the index: it is no source of itself.
    let address = format!("127.0.0.1:{}", one.port());
    let mut command = huntsman(dir.path());
    command.args([
        "copyvio",
        "check",
        one.url("/1").as_str(),
        "--index",
        "index",
        "--allow-address",
        &address,
    ]);
    assert_eq!(sources(&json_of(&mut command)), [] as [&str; 0]);
}

#[cfg(all(feature = "text-index", unix))]
#[test]
fn a_crawl_that_is_killed_and_goes_on_has_all_its_pages_in_the_index() {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    const PAGES: usize = 400;
    let page = |at: usize| {
        let links: String =
            (1..=4).map(|n| format!("<a href=/{}>x</a>", (at * 4 + n).min(PAGES - 1))).collect();
        format!("{links}<p>{}", words(at * 1_000, at * 1_000 + 60))
    };
    let builder = (1..PAGES)
        .fold(Site::builder().page("/", page(0)), |site, at| site.page(&format!("/{at}"), page(at)));
    let site = builder.start_blocking();
    let dir = tempfile::tempdir().unwrap();
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let kept = || {
        let mut command = crawl(dir.path(), &site);
        command.args(["--store", "redb", "--index", "index", "--requests-per-second", "300"]);
        command.args(["--concurrency", "8", "--per-host", "8", "--set", "job_commit_interval=0.1"]);
        command
    };
    for _ in 0..3 {
        let mut child = kept().spawn().unwrap();
        let enough = site.requests().len() + rng.random_range(5..100);
        while site.requests().len() < enough && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let said = run(&mut kept());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(crate::common::lines(dir.path().join("out/pages.jsonl")).len(), PAGES);
    // Each article takes from twenty pages, all of which must be found, and no others.
    for from in (0..PAGES).step_by(20) {
        let text =
            (from..from + 20).map(|at| words(at * 1_000, at * 1_000 + 60)).collect::<Vec<_>>().join("\n");
        fs::write(dir.path().join("a.txt"), text).unwrap();
        let made = json_of(&mut check(dir.path(), &["--index", "index", "--no-short-circuit"]));
        let mut found: Vec<String> = sources(&made).into_iter().map(str::to_owned).collect();
        found.sort();
        let path = |at: usize| if at == 0 { "/".to_owned() } else { format!("/{at}") };
        let mut expected: Vec<String> = (from..from + 20).map(|at| site.url(&path(at)).to_string()).collect();
        expected.sort();
        assert_eq!(found, expected, "{from}");
    }
}

#[cfg(feature = "text-index")]
#[test]
fn a_directory_that_is_no_index_is_refused_before_any_work() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site(0));
    fs::create_dir(dir.path().join("photos")).unwrap();
    fs::write(dir.path().join("photos/1.jpg"), "JPEG").unwrap();
    let said = run(crawl(dir.path(), &site).args(["--index", "photos"]));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("--index: photos is something else"), "{}", said.stderr);
    assert!(!dir.path().join("out").exists() && site.requests().is_empty());

    fs::write(dir.path().join("a.txt"), words(0, 100)).unwrap();
    for (name, word) in [("photos", "something else"), ("missing", "crawl --index")] {
        let said = run(&mut check(dir.path(), &["--index", name]));
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains(word), "{}", said.stderr);
    }
}

#[cfg(all(feature = "text-index", unix))]
#[test]
fn one_process_at_a_time_adds_pages_and_others_may_look() {
    let dir = tempfile::tempdir().unwrap();
    let slow = Site::builder()
        .page("/", "<a href=/slow>x</a>")
        .route("/slow", |_| Answer::html("late").delay(std::time::Duration::from_secs(60)))
        .start_blocking();
    let mut first = crawl(dir.path(), &slow).args(["--index", "index", "--out", "first"]).spawn().unwrap();
    wait_for(&slow, "/slow");
    let other = site(0);
    let said = run(crawl(dir.path(), &other).args(["--index", "index"]));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("another process adds pages"), "{}", said.stderr);
    assert!(other.requests().is_empty() && !dir.path().join("out").exists());
    fs::write(dir.path().join("a.txt"), words(0, 100)).unwrap();
    let made = json_of(&mut check(dir.path(), &["--index", "index"]));
    assert_eq!(made["errors"], json!([]));
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(run(crawl(dir.path(), &other).args(["--index", "index"])).code, Some(0));
}

#[test]
fn an_index_of_near_duplicates_gives_pages_that_are_fetched() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site(0));
    assert_eq!(run(crawl(dir.path(), &site).arg("--text")).code, Some(0));
    let said =
        run(huntsman(dir.path()).args(["dedup", "add", "out/pages.jsonl", "--index", "near", "--k", "7"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    // One of four hundred words is replaced.
    let mut copied: Vec<String> = words(2_000, 2_400).split(' ').map(str::to_owned).collect();
    copied[100] = "another".to_owned();
    fs::write(dir.path().join("a.txt"), copied.join(" ")).unwrap();
    let address = format!("127.0.0.1:{}", site.port());
    let before = site.count("/2");
    let made = json_of(&mut check(dir.path(), &["--near-index", "near", "--allow-address", &address]));
    assert_eq!(sources(&made), [site.url("/2").to_string()], "{made:#}");
    assert_eq!((&made["sources"][0]["found_by"], &made["violation"]), (&json!("near_index"), &json!(true)));
    assert_eq!(site.count("/2"), before + 1);

    let said = run(&mut check(dir.path(), &["--near-index", "missing"]));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("--near-index missing"), "{}", said.stderr);
    // Ids that are not URLs find nothing; a message says so.
    fs::write(dir.path().join("numbers.jsonl"), json!({"id": 7, "text": copied.join(" ")}).to_string())
        .unwrap();
    assert_eq!(
        run(huntsman(dir.path()).args(["dedup", "add", "numbers.jsonl", "--index", "numbers"])).code,
        Some(0)
    );
    let said = run(&mut check(dir.path(), &["--near-index", "numbers"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("no addresses"), "{}", said.stderr);
}

#[test]
fn files_of_an_index_of_near_duplicates_are_read_in_their_folder_and_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let docs = dir.path().join("docs");
    fs::create_dir_all(docs.join("below")).unwrap();
    let mut copied: Vec<String> = words(2_000, 2_400).split(' ').map(str::to_owned).collect();
    fs::write(docs.join("below/one.html"), format!("<p>{}</p>", copied.join(" "))).unwrap();
    fs::write(docs.join("two.html"), format!("<p>{}</p>", words(3_000, 3_400))).unwrap();
    let said = run(huntsman(dir.path()).args(["dedup", "build", "docs", "--index", "near", "--k", "7"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    copied[100] = "another".to_owned();
    fs::write(dir.path().join("a.txt"), copied.join(" ")).unwrap();
    let made = json_of(&mut check(dir.path(), &["--near-index", "near", "--near-files", "docs"]));
    assert_eq!(sources(&made), ["docs/below/one.html"], "{made:#}");
    assert_eq!((&made["sources"][0]["found_by"], &made["violation"]), (&json!("near_index"), &json!(true)));
    let said = run(&mut check(dir.path(), &["--near-index", "near"]));
    assert!(said.code == Some(0) && said.stderr.contains("--near-files"), "{said:?}");

    // An id that leads out of the folder, and a link that does.
    let line = json!({"id": "../a.txt", "text": copied.join(" ")});
    fs::write(dir.path().join("evil.jsonl"), line.to_string()).unwrap();
    let said = run(huntsman(dir.path()).args(["dedup", "build", "evil.jsonl", "--index", "evil"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = run(&mut check(dir.path(), &["--near-index", "evil", "--near-files", "docs"]));
    assert!(said.code == Some(0) && said.stderr.contains("not below docs"), "{said:?}");
    fs::remove_file(docs.join("below/one.html")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("a.txt"), docs.join("below/one.html")).unwrap();
    let said = run(&mut check(dir.path(), &["--near-index", "near", "--near-files", "docs"]));
    assert!(said.code == Some(0) && said.stderr.contains("not below docs"), "{said:?}");
}

/// A SearXNG server that finds one page of a site.
fn searxng(found: &str) -> RunningSite {
    let answer = json!({"query": "q", "results": [{"url": found, "title": "t", "content": "c"}], "unresponsive_engines": []});
    Site::builder()
        .route("/search", move |_| {
            Answer::status(200).header("content-type", "application/json").body(answer.to_string())
        })
        .start_blocking()
}

#[test]
fn a_search_engine_finds_sources_which_are_fetched() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site(0));
    let engine = searxng(site.url("/1").as_str());
    let text = words(1_000, 1_400)
        .split(' ')
        .collect::<Vec<_>>()
        .chunks(10)
        .map(|s| s.join(" ") + ". ")
        .collect::<String>();
    fs::write(dir.path().join("a.txt"), text).unwrap();
    let search = format!("searxng={}", engine.url("/"));
    let address = format!("127.0.0.1:{}", site.port());
    let args = ["--search", &search, "--max-queries", "2", "--no-short-circuit", "--allow-address", &address];
    let made = json_of(&mut check(dir.path(), &args));
    assert_eq!(sources(&made), [site.url("/1").to_string()], "{made:#}");
    assert_eq!((&made["sources"][0]["found_by"], &made["queries"]), (&json!("SearXNG"), &json!(2)));
    assert_eq!(made["violation"], true);
    let asked: Vec<String> = engine.requests().iter().map(|seen| seen.request.param("q").unwrap()).collect();
    assert_eq!(asked.len(), 2);
    assert!(asked.iter().all(|query| query.starts_with("\"word") && query.ends_with('"')), "{asked:?}");

    let budget = ["--search", &search, "--max-queries", "3", "--query-budget", "1", "--no-short-circuit"];
    let made = json_of(&mut check(dir.path(), &budget));
    assert!(made["errors"][0]["error"].as_str().unwrap().contains("budget of 1"), "{made:#}");
    assert_eq!(engine.requests().len(), 3);

    // A result of the engine is not fetched if the guard refuses its address: only the engine's own address was
    // allowed.
    let made = json_of(&mut check(dir.path(), &["--search", &search, "--max-queries", "1"]));
    assert_eq!(made["sources"][0]["status"], "failed", "{made:#}");
    assert!(made["sources"][0]["reason"].as_str().unwrap().contains("address_refused"), "{made:#}");
}

#[test]
fn trouble_of_a_search_engine_is_a_warning_and_the_check_goes_on() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site(0));
    let engine = Site::builder().answer("/search", Answer::status(403)).start_blocking();
    fs::write(dir.path().join("a.txt"), words(1_000, 1_400)).unwrap();
    let (search, address) = (format!("searxng={}", engine.url("/")), format!("127.0.0.1:{}", site.port()));
    let source = site.url("/1").to_string();
    let args = [
        "--search",
        &search,
        "--source",
        &source,
        "--allow-address",
        &address,
        "--no-short-circuit",
        "--max-queries",
        "2",
    ];
    let said = run(&mut check(dir.path(), &args));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("suspected"), "{}", said.stdout);
    assert_eq!(said.stderr.matches("search.formats").count(), 1, "{}", said.stderr);
    let made = json_of(&mut check(dir.path(), &args));
    assert_eq!(made["errors"][0]["by"], "SearXNG", "{made:#}");
}

#[test]
fn a_missing_key_is_named_and_a_given_one_is_never_shown() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), words(0, 100)).unwrap();
    for (engine, set, missing) in [
        ("brave", "", "BRAVE_API_KEY"),
        ("google", "", "GOOGLE_API_KEY"),
        ("google", "GOOGLE_API_KEY", "GOOGLE_CX"),
    ] {
        let mut command = check(dir.path(), &["--search", engine]);
        if !set.is_empty() {
            command.env(set, "s3cret");
        }
        let said = run(&mut command);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains(missing) && !said.stderr.contains("s3cret"), "{}", said.stderr);
    }
    for (engine, word) in
        [("bing", "searxng=URL"), ("searxng", "searxng=https"), ("searxng=ftp://x/", "http://")]
    {
        let said = run(&mut check(dir.path(), &["--search", engine]));
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains(word), "{}", said.stderr);
    }
    // The keys are sent to the engine only.
    let engine = Site::builder().answer("/api", Answer::status(429)).start_blocking();
    for name in ["brave", "google"] {
        let mut command = check(
            dir.path(),
            &["--search", &format!("{name}={}", engine.url("/api")), "--set", "log_level=debug"],
        );
        for variable in ["BRAVE_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CX"] {
            command.env(variable, "s3cret");
        }
        let said = run(&mut command);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.stderr.contains("quota") && !said.stderr.contains("s3cret"), "{}", said.stderr);
    }
    let sent = engine.requests();
    assert_eq!(sent[0].request.header("x-subscription-token"), Some("s3cret"));
}
