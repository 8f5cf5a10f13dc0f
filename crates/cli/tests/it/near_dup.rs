//! `crawl --near-dup`.

use std::time::Duration;

use huntsman::detect::simhash::SimHash;
use huntsman_testkit::{RunningSite, Site};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

use crate::common::{crawl, field, huntsman, lines, report, run};

const PAGES: usize = 60;

/// A site in which each page links to the next one.
fn site() -> RunningSite {
    linked(PAGES, |n| vec![(n + 1) % PAGES])
}

/// Every third page is the previous one with one word replaced and a different layout.
fn linked(pages: usize, next: impl Fn(usize) -> Vec<usize>) -> RunningSite {
    let mut site = Site::builder();
    for n in 0..pages {
        let of = if n % 3 == 2 { n - 1 } else { n };
        let word = |at: usize| match at == 50 && n != of {
            true => "exchanged ".to_owned(),
            false => format!("w{} ", (of * 7_919 + at * 104_729) % 99_991),
        };
        let text: String = (0..800).map(word).collect();
        let links: String = next(n).iter().map(|next| format!("<a href='/{next}'>{next}</a> ")).collect();
        site = site.page(
            &if n == 0 { "/".to_owned() } else { format!("/{n}") },
            format!("<html lang=en><nav>Page {n}: {links}</nav><p>{text}</p>"),
        );
    }
    site.start_blocking()
}

#[test]
fn records_have_fingerprints_and_what_they_are_near_to_as_comparing_all_finds() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let said = run(crawl(dir.path(), &site).args(["--near-dup=7", "--max-depth", "100"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let out = dir.path().join("out");
    let pages = lines(out.join("pages.jsonl"));
    let hashes: Vec<SimHash> = pages.iter().map(hash).collect();
    assert_eq!(hashes.len(), PAGES);
    let mut flagged = 0;
    for (at, page) in pages.iter().enumerate() {
        // Pages are fetched one after the other, so the earlier ones are those with smaller numbers.
        let mut expected: Vec<(u32, String)> = (0..at)
            .map(|other| {
                (hashes[at].distance(hashes[other]), pages[other]["url"].as_str().unwrap().to_owned())
            })
            .filter(|(distance, _)| *distance <= 7)
            .collect();
        expected.sort();
        let told: Vec<(u32, String)> = page["near_duplicates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|near| (near["distance"].as_u64().unwrap() as u32, near["url"].as_str().unwrap().to_owned()))
            .collect();
        assert_eq!(told, expected, "{page}");
        flagged += usize::from(!told.is_empty());
    }
    assert_eq!(flagged, PAGES / 3);
    let counts = &report(&out)["near_dup"];
    assert_eq!((&counts["indexed"], &counts["flagged"]), (&PAGES.into(), &flagged.into()));
    assert!(
        said.stderr.contains("near-duplicates") && said.stderr.contains("of 60 pages"),
        "{}",
        said.stderr
    );
}

#[test]
fn without_the_flag_records_have_none_of_it_and_its_flags_need_it() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    run(crawl(dir.path(), &site).args(["--max-pages", "3"]));
    let page = &lines(dir.path().join("out/pages.jsonl"))[0];
    assert!(page.get("simhash").is_none() && page.get("near_duplicates").is_none(), "{page}");
    for (args, word) in [
        (&["--near-dup-min-words", "3"][..], "--near-dup"),
        (&["--near-dup=8"], "at most 7"),
        (&["--near-dup", "--near-dup-features", "char4"], "char5"),
        (&["--near-dup", "--on-near-duplicate", "nofollow"], "no-follow"),
    ] {
        let said = run(crawl(dir.path(), &site).args(args));
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains(word), "{args:?}: {}", said.stderr);
    }
}

#[test]
fn the_records_of_a_crawl_are_an_input_of_dedup_with_the_same_fingerprints_as_its_html() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    run(crawl(dir.path(), &site).args(["--near-dup", "--max-pages", "5"]));
    let pages = lines(dir.path().join("out/pages.jsonl"));
    let hashed = huntsman(dir.path()).args(["dedup", "hash", "out/pages.jsonl"]).output().unwrap();
    let hashed: Vec<Value> = hashed
        .stdout
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    let html: String = pages
        .iter()
        .map(|page| {
            let mut fetch = huntsman(dir.path());
            fetch.args(["fetch", page["url"].as_str().unwrap(), "--allow-address"]);
            fetch.arg(format!("127.0.0.1:{}", site.port()));
            let html = String::from_utf8(fetch.output().unwrap().stdout).unwrap();
            format!("{}\n", serde_json::json!({"id": page["url"], "html": html}))
        })
        .collect();
    std::fs::write(dir.path().join("html.jsonl"), html).unwrap();
    let of_html = huntsman(dir.path()).args(["dedup", "hash", "html.jsonl"]).output().unwrap();
    let of_html: Vec<Value> = of_html
        .stdout
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    assert_eq!(hashed.len(), 5);
    for (page, (one, other)) in pages.iter().zip(hashed.iter().zip(&of_html)) {
        assert_eq!((&one["id"], &one["simhash"]), (&page["url"], &page["simhash"]));
        assert_eq!((&other["id"], &other["simhash"]), (&page["url"], &page["simhash"]));
    }
}

fn hash(page: &Value) -> SimHash {
    page["simhash"].as_str().expect("it has words").parse().expect("a fingerprint")
}

#[test]
fn a_crawl_that_is_killed_tells_each_pair_once_over_all_its_runs() {
    const PAGES: usize = 600;
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let dir = tempfile::tempdir().unwrap();
    let site = linked(PAGES, |n| (2 * n + 1..2 * n + 3).filter(|next| *next < PAGES).collect());
    let kept = || {
        let mut command = crawl(dir.path(), &site);
        command.args(["--near-dup=7", "--store", "redb", "--requests-per-second", "300"]);
        command.args(["--set", "job_commit_interval=0.1"]);
        command
    };
    for _ in 0..4 {
        let mut child = kept().spawn().unwrap();
        let until = site.requests().len() + rng.random_range(20..PAGES / 5);
        while site.requests().len() < until && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(run(&mut kept()).code, Some(0));
    let pages = lines(dir.path().join("out/pages.jsonl"));
    assert_eq!(pages.len(), PAGES, "each page once");
    let told = |one: &Value, other: &Value| {
        one["near_duplicates"].as_array().unwrap().iter().filter(|near| near["url"] == other["url"]).count()
    };
    let mut pairs = 0;
    for (at, one) in pages.iter().enumerate() {
        for other in &pages[at + 1..] {
            let expected = hash(one).distance(hash(other)) <= 7;
            assert_eq!(told(one, other) + told(other, one), usize::from(expected), "{one}\n{other}");
            pairs += usize::from(expected);
        }
    }
    assert!(pairs >= PAGES / 3, "{pairs}");
}

#[test]
fn near_duplicates_are_skipped_if_asked_for() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let said = run(crawl(dir.path(), &site).args(["--near-dup=7", "--on-near-duplicate", "skip"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    // The third page is a near-duplicate, and all other pages are reachable only through it.
    let drops = lines(dir.path().join("out/drops.jsonl"));
    assert_eq!(
        (field(&drops, "reason"), drops[0]["state"].as_str()),
        (vec!["near_duplicate".into()], Some("skipped"))
    );
    assert_eq!(lines(dir.path().join("out/pages.jsonl")).len(), 2);
}
