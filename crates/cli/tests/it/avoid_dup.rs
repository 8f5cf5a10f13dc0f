//! `crawl --avoid-dup`.

use huntsman_testkit::{RunningSite, Site};

use crate::common::{crawl, field, lines, report, run};

const PAGES: usize = 150;

/// Articles that link to the next ones, each with and without a session id of its own.
fn site() -> RunningSite {
    let mut site = Site::builder();
    for n in 0..PAGES {
        let words: Vec<String> =
            (0..40).map(|word| format!("w{}", (n * 7_919 + word * 104_729) % 99_991)).collect();
        let next: String = [2 * n + 1, 2 * n + 2]
            .into_iter()
            .filter(|next| *next < PAGES)
            .map(|next| format!("<li><a href='/{next}'>x</a> <a href='/{next}?sid=s{n}x{next}'>y</a>"))
            .collect();
        site = site.page(
            &if n == 0 { "/".to_owned() } else { format!("/{n}") },
            format!("<title>{n}</title><p>{}</p><ul>{next}</ul>", words.join(" ")),
        );
    }
    site.start_blocking()
}

#[test]
fn copies_are_skipped_and_the_rules_written() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let out = dir.path().join("out");
    let explained = site.url("/7?sid=new").to_string();
    let said = run(crawl(dir.path(), &site)
        .args(["--avoid-dup", "--avoid-dup-warmup", "30", "--seed", "7", "--concurrency", "4"])
        .args(["--explain", &explained]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let drops = lines(out.join("drops.jsonl"));
    let skipped = drops.iter().filter(|drop| drop["reason"] == "duplicate_content").count();
    let pages = lines(out.join("pages.jsonl"));
    assert!(skipped > 50, "{skipped} skipped");
    assert_eq!(pages.len() + skipped, 2 * PAGES - 1, "each URL has one record");
    let mut titles = field(&pages, "title");
    titles.sort();
    titles.dedup();
    assert_eq!(titles.len(), PAGES, "every content came");
    let rules: serde_json::Value =
        serde_json::from_slice(&std::fs::read(out.join("rules.json")).unwrap()).unwrap();
    assert!(rules["rules"].as_array().unwrap().iter().any(|rule| rule["ignores"][0] == "sid"), "{rules}");
    assert_eq!(rules["totals"], report(&out)["avoid_dup"]);
    assert_eq!(report(&out)["avoid_dup"]["skipped"], skipped);
    assert!(said.stderr.contains("saved") && said.stderr.contains("explored"), "{}", said.stderr);
    assert!(
        said.stderr.contains(&format!("{explained}: ")) && said.stderr.contains("sid"),
        "{}",
        said.stderr
    );
}

#[test]
fn its_flags_need_it_and_are_checked() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    for (args, word) in [
        (&["--avoid-dup-warmup", "3"][..], "--avoid-dup"),
        (&["--avoid-dup", "--avoid-dup-threshold", "1.5"], "from 0 to 1"),
        (&["--avoid-dup=best"], "default"),
    ] {
        let said = run(crawl(dir.path(), &site).args(args));
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains(word), "{args:?}: {}", said.stderr);
    }
}

#[test]
fn what_never_mattered_is_stripped_by_the_next_crawl() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    // A third of the copies is fetched all the same, which is more than the model needs, in whatever order the pages
    // come. Skipping begins with half of that.
    let first = crawl(dir.path(), &site)
        .args(["--avoid-dup", "--avoid-dup-warmup", "30", "--avoid-dup-exploration", "0.33", "--seed", "7"])
        .output()
        .unwrap();
    assert_eq!(first.status.code(), Some(0));
    let canonical = dir.path().join("out/canonical.toml");
    let text = std::fs::read_to_string(&canonical).unwrap();
    assert!(text.contains("\"sid\", # 127.0.0.1: "), "{text}");
    let elsewhere = tempfile::tempdir().unwrap();
    let said = run(crawl(elsewhere.path(), &site).arg("--config").arg(&canonical));
    assert_eq!(said.code, Some(0), "{said:?}");
    let pages = lines(elsewhere.path().join("out/pages.jsonl"));
    assert_eq!(pages.len(), PAGES, "each content once");
}
