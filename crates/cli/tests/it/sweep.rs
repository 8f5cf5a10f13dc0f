//! `sweep`, and `crawl --copyvio`.
#![cfg(unix)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use huntsman_testkit::{Answer, RunningSite, Site};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::common::{field, huntsman, lines, report, run};

fn words(from: usize, to: usize) -> String {
    (from..to).map(|n| format!("word{}", (n * 7_919) % 99_991)).collect::<Vec<_>>().join(" ")
}

/// The words of an article; no two articles share a word.
fn article(n: usize) -> String {
    words(n * 300, n * 300 + 200)
}

/// The linked sites, under host names of their own.
fn sources() -> RunningSite {
    let number = |target: &str| target.split_once('?').unwrap().1.parse().unwrap();
    let mut sites = Site::builder();
    for name in NAMES {
        sites = sites
            .host(name)
            .route("/copy", move |asked| {
                Answer::html(format!("<p>Before. {} After.", article(number(&asked.target))))
            })
            // Every sixth word is replaced.
            .route("/changed", move |asked| {
                let words = article(number(&asked.target));
                let word = |(at, word): (usize, &str)| {
                    if at % 6 == 5 { format!("x{word}") } else { word.to_owned() }
                };
                let changed: Vec<String> = words.split(' ').enumerate().map(word).collect();
                Answer::html(format!("<p>{}", changed.join(" ")))
            })
            .page("/other", format!("<p>{}", words(90_000, 90_300)))
            .route("/hangs", |_| Answer::html("late").delay(Duration::from_secs(60)))
            .route("/fails", |_| Answer::status(500))
            .route("/huge", |_| Answer::html("x ".repeat(2 << 20)))
            .page("/mirror", format!("<p>{}", article(2)))
            // This page names the wiki that it is taken from.
            .route("/of-wiki", move |asked| {
                let wiki = asked.target.split_once("&wiki=").unwrap().1;
                Answer::html(format!("<p>{}<p><a href='http://{wiki}/wiki/3'>from</a>", article(3)))
            });
    }
    sites.start_blocking()
}

const NAMES: [&str; 7] = ["a.test", "b.test", "c.test", "d.test", "e.test", "f.test", "g.test"];

/// A site of articles, each with its links; `SITE` in a link stands for the site's own host and port.
fn site(links: &[Vec<String>]) -> RunningSite {
    let mut site = Site::builder();
    let list: String = (0..links.len()).map(|n| format!("<a href='/wiki/{n}'>article {n}</a> ")).collect();
    site = site.page("/", format!("<title>list</title>{list}"));
    for (n, links) in links.iter().enumerate() {
        let links: String = links.iter().map(|link| format!("<a href='{link}'>source</a> ")).collect();
        let page = format!("<title>{n}</title><p>{}</p>{links}", article(n));
        site = site.route(&format!("/wiki/{n}"), move |asked| {
            Answer::html(page.replace("SITE", asked.header("host").unwrap_or_default()))
        });
    }
    site.start_blocking()
}

/// The address of a source under one of its names; each name is a registrable domain.
fn at(sources: &RunningSite, name: &str, path: &str) -> String {
    format!("http://{name}:{}{path}", sources.port())
}

fn sweep(directory: &Path, site: &RunningSite, sources: &RunningSite, names: &[&str]) -> Command {
    let mut command = huntsman(directory);
    command.arg("sweep").arg(site.url("/").as_str()).args(["--profile", "test", "--out", "out"]);
    command.args(["--set", "log_level=warn", "--allow-address", "127.0.0.1:*"]);
    for name in names {
        command.args(["--resolve", &format!("{name}:{}:127.0.0.1", sources.port())]);
        command.args(["--allow-address", &format!("{name}:*")]);
    }
    command
}

fn line<'l>(lines: &'l [Value], article: &str, source: &str) -> &'l Value {
    let found = lines
        .iter()
        .find(|line| line["article"].as_str().unwrap().ends_with(article) && line["source"] == source);
    found.unwrap_or_else(|| panic!("{article} with {source}: {lines:#?}"))
}

#[test]
fn every_pair_of_an_article_and_a_source_is_reported_with_its_result() {
    let (dir, sources) = (tempfile::tempdir().unwrap(), sources());
    let url = |name: &str, path: &str| at(&sources, name, path);
    let links = vec![
        vec![
            url("a.test", "/other"),
            url("b.test", "/changed?0"),
            url("c.test", "/fails"),
            url("d.test", "/huge"),
        ],
        vec![url("e.test", "/copy?1"), url("f.test", "/hangs")],
        vec![url("g.test", "/mirror"), url("a.test", "/other")],
        vec![url("b.test", "/of-wiki?3&wiki=SITE"), url("c.test", "/changed?9")],
    ];
    let site = site(&links);
    let of_wiki = links[3][0].replace("SITE", site.url("/").authority());
    fs::write(dir.path().join("mirrors.txt"), "# known\n*.g.test\n").unwrap();
    let started = Instant::now();
    let said = run(sweep(dir.path(), &site, &sources, &NAMES).args([
        "--exclude-sources",
        "mirrors.txt",
        "--no-short-circuit",
        "--check-time",
        "3",
        "--source-time",
        "60",
    ]));
    let took = started.elapsed();
    assert_eq!(said.code, Some(0), "{said:?}");
    let out = dir.path().join("out");
    let found = lines(out.join("sweep.jsonl"));
    assert_eq!(found.len(), 10, "{found:#?}");
    for (article, at, status, word) in [
        ("/0", &links[0][0], "compared", ""),
        ("/0", &links[0][1], "compared", ""),
        ("/0", &links[0][2], "failed", "500"),
        ("/0", &links[0][3], "failed", "2097152"),
        ("/1", &links[1][0], "compared", ""),
        ("/1", &links[1][1], "late", ""),
        ("/2", &links[2][0], "excluded", "g.test"),
        ("/2", &links[2][1], "compared", ""),
        ("/3", &of_wiki, "excluded", "/wiki/3"),
        ("/3", &links[3][1], "compared", ""),
    ] {
        let line = line(&found, article, at);
        assert_eq!(line["status"], status, "{line}");
        assert!(line["reason"].as_str().unwrap_or_default().contains(word), "{line}");
    }
    let copy = line(&found, "/1", &links[1][0]);
    assert_eq!((&copy["band"], &copy["evidence"]["verdict"]), (&json!("suspected"), &json!("suspected")));
    assert_eq!((&copy["rank"], &copy["of"], &copy["found_by"]), (&json!(1), &json!(2), &json!("links")));
    let changed = line(&found, "/0", &links[0][1]);
    assert_eq!(changed["evidence"]["verdict"], "suspected", "{changed}");
    let other = line(&found, "/0", &links[0][0]);
    assert_eq!((&other["band"], &other["evidence"]["verdict"]), (&json!("none"), &json!("none")));
    assert!(took < Duration::from_millis(3_000 + 4_000), "{took:?}");
    assert_eq!(lines(out.join("pages.jsonl")).len(), 5);
    let stats = &report(&out)["stats"];
    assert_eq!(stats["copyvio/articles"], 4, "{stats}");
    assert!(said.stderr.contains("2 articles suspected"), "{}", said.stderr);
    // A page that two articles link to was read once.
    assert_eq!(sources.targets().iter().filter(|target| *target == "/other").count(), 1);
    let page = fs::read_to_string(out.join("sweep.html")).unwrap();
    assert!(page.contains("2 articles suspected") && !page.contains("<script"), "{page}");
    assert_eq!(page.matches("<section id=\"source-").count(), 2);
    for number in page.split("href=\"#source-").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(page.contains(&format!("id=\"source-{number}\"")));
    }
    let again = run(&mut sweep(dir.path(), &site, &sources, &NAMES));
    assert!(again.stderr.contains("Nothing to do"), "{again:?}");
}

#[test]
fn a_sweep_that_is_killed_goes_on_without_loss_and_no_domain_is_asked_twice_at_once() {
    const ARTICLES: usize = 120;
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..6).map(|n| format!("s{n}.test")).collect();
    let mut builder = Site::builder();
    for name in &names {
        builder = builder
            .host(name)
            .route("/copy", |asked| {
                let n: usize = asked.target.split_once('?').unwrap().1.parse().unwrap();
                Answer::html(format!("<p>{}", article(n))).delay(Duration::from_millis(4))
            })
            .route("/other", |_| Answer::html(words(90_000, 90_100)).delay(Duration::from_millis(4)));
    }
    let sources = builder.start_blocking();
    let links: Vec<Vec<String>> = (0..ARTICLES)
        .map(|n| {
            let of = |at: usize| names[(n + at) % names.len()].as_str();
            let copy = if n % 4 == 0 { vec![at(&sources, of(0), &format!("/copy?{n}"))] } else { Vec::new() };
            (1..4).map(|other| at(&sources, of(other), &format!("/other?{n}-{other}"))).chain(copy).collect()
        })
        .collect();
    let site = site(&links);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let command = || {
        let mut command = sweep(dir.path(), &site, &sources, &names);
        command.args(["--store", "redb", "--no-short-circuit", "--set", "job_commit_interval=0.1"]);
        command.args(["--requests-per-second", "100"]);
        command.stderr(Stdio::null());
        command
    };
    for part in 0..3 {
        let before = sources.requests().len();
        let mut child = command().spawn().unwrap();
        let wanted = before + rng.random_range(10..100);
        let deadline = Instant::now() + Duration::from_secs(60);
        while sources.requests().len() < wanted && child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(3));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        println!("killed after {} requests in run {part}", sources.requests().len() - before);
        let said = run(huntsman(dir.path()).args(["verify", "out"]));
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    let said = run(command().stderr(Stdio::piped()));
    assert_eq!(said.code, Some(0), "{said:?}");
    let whole = run(huntsman(dir.path()).args(["verify", "out"]));
    assert_eq!(whole.code, Some(0), "{whole:?}");
    let found = lines(dir.path().join("out/sweep.jsonl"));
    let expected: BTreeMap<String, BTreeSet<String>> = links
        .iter()
        .enumerate()
        .map(|(n, links)| (site.url(&format!("/wiki/{n}")).to_string(), links.iter().cloned().collect()))
        .collect();
    let mut told: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in &found {
        let text = |name: &str| line[name].as_str().unwrap().to_owned();
        assert_eq!(text("status"), "compared", "{line}");
        assert!(told.entry(text("article")).or_default().insert(text("source")), "told twice: {line}");
    }
    assert_eq!(told, expected);
    let suspected = found.iter().filter(|line| line["band"] == "suspected").count();
    assert_eq!(suspected, ARTICLES / 4);
    for name in &names {
        assert_eq!(sources.peak(name), 1, "{name}");
    }
    let page = fs::read_to_string(dir.path().join("out/sweep.html")).unwrap();
    assert_eq!(page.matches("<section id=\"source-").count(), ARTICLES / 4, "also of the runs before");
}

#[test]
fn the_time_of_a_sweep_is_that_of_its_checks_and_exclude_takes_rules_as_well_as_patterns() {
    let (dir, sources) = (tempfile::tempdir().unwrap(), sources());
    let url = |name: &str, path: &str| at(&sources, name, path);
    let links = vec![
        vec![url("a.test", "/hangs"), url("b.test", "/copy?0")],
        vec![url("c.test", "/hangs"), url("d.test", "/mirror")],
        vec![url("e.test", "/copy?2")],
    ];
    let site = site(&links);
    fs::write(dir.path().join("rules.txt"), "*.d.test\n").unwrap();
    let started = Instant::now();
    let said = run(sweep(dir.path(), &site, &sources, &NAMES).args([
        "--max-time",
        "6",
        "--source-time",
        "60",
        "--exclude",
        "rules.txt",
        "--exclude",
        "*/2",
        "--json",
        "--html",
        "copy.html",
        "--degree",
        "4",
    ]));
    let took = started.elapsed();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(took < Duration::from_secs(12), "{took:?}");
    let found = lines(dir.path().join("out/sweep.jsonl"));
    let statuses: BTreeMap<&str, &str> = found
        .iter()
        .map(|line| (line["source"].as_str().unwrap(), line["status"].as_str().unwrap()))
        .collect();
    let expected: BTreeMap<&str, &str> = [
        (&links[0][0], "late"),
        (&links[0][1], "compared"),
        (&links[1][0], "late"),
        (&links[1][1], "excluded"),
    ]
    .map(|(source, status)| (source.as_str(), status))
    .into();
    assert_eq!(statuses, expected);
    // 200 words of 4 characters with the marks around them.
    assert_eq!(line(&found, "/0", &links[0][1])["size"], 202 + 3);
    let totals: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((&totals["suspected"], &totals["sources"]["late"]), (&json!(1), &json!(2)));
    assert_eq!(
        fs::read(dir.path().join("copy.html")).unwrap(),
        fs::read(dir.path().join("out/sweep.html")).unwrap()
    );
}

#[test]
fn a_sweep_of_unusable_input_is_refused_with_the_reason() {
    let (dir, sources) = (tempfile::tempdir().unwrap(), sources());
    let site = site(&[vec![]]);
    for (args, word) in [
        (&["--out", "-"][..], "directory"),
        (&["--exclude-sources", "missing.txt"], "missing.txt"),
        (&["--min-confidence", "2"], "min-confidence"),
        (&["--cache", "file.txt"], "file.txt"),
    ] {
        fs::write(dir.path().join("file.txt"), "x").unwrap();
        let mut command = huntsman(dir.path());
        command.arg("sweep").arg(site.url("/").as_str()).args(args);
        let said = run(&mut command);
        assert_eq!(said.code, Some(2), "{args:?}: {said:?}");
        assert!(said.stderr.contains(word), "{args:?}: {}", said.stderr);
    }
    // An unfinished crawl that is not a sweep is not touched.
    let mut crawl = huntsman(dir.path());
    crawl.arg("crawl").arg(site.url("/").as_str()).args([
        "--profile",
        "test",
        "--out",
        "out",
        "--store",
        "redb",
    ]);
    crawl.args(["--allow-address", "127.0.0.1:*", "--max-pages", "1"]);
    run(&mut crawl);
    let state = dir.path().join("out/state/crawl.json");
    let text = fs::read_to_string(&state).unwrap().replace("\"finished\"", "\"interrupted\"");
    fs::write(&state, text).unwrap();
    let said = run(sweep(dir.path(), &site, &sources, &[]).args(["--store", "redb"]));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("no sweep"), "{}", said.stderr);
    assert_eq!(lines(dir.path().join("out/pages.jsonl")).len(), 1);
}

#[test]
fn a_crawl_tells_of_every_page_how_much_of_an_article_stands_there() {
    let dir = tempfile::tempdir().unwrap();
    let site = site(&vec![vec![]; 5]);
    fs::write(dir.path().join("essay.txt"), format!("{} {}", article(3), words(80_000, 80_100))).unwrap();
    let said = run(crate::common::crawl(dir.path(), &site).args(["--copyvio", "essay.txt"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let pages = lines(dir.path().join("out/pages.jsonl"));
    assert_eq!(pages.len(), 6);
    for page in &pages {
        let copied = &page["copyvio"];
        let is_source = page["url"].as_str().unwrap().ends_with("/3");
        assert_eq!(copied["band"], if is_source { "suspected" } else { "none" }, "{page}");
        assert_eq!(copied["verdict"] != "none", is_source, "{page}");
        assert_eq!(copied["confidence"].as_f64().unwrap() > 0.7, is_source);
    }
    let stats = &report(&dir.path().join("out"))["stats"];
    assert_eq!((&stats["copyvio/pages"], &stats["copyvio/suspected"]), (&json!(6), &json!(1)));
    let said = run(crate::common::crawl(dir.path(), &site).args(["--copyvio", "missing.txt", "--fresh"]));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("missing.txt"), "{}", said.stderr);
    run(crate::common::crawl(dir.path(), &site).arg("--fresh"));
    let plain = lines(dir.path().join("out/pages.jsonl"));
    assert!(plain[0].get("copyvio").is_none());
    assert_eq!(field(&plain, "url"), field(&pages, "url"));
}
