//! `crawl --avoid-dup`.

use huntsman_testkit::{RunningSite, Site};

use std::path::Path;

use serde_json::Value;

use crate::common::{Said, crawl, field, huntsman, lines, report, run};

const PAGES: usize = 150;

fn rules(out: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(out.join("rules.json")).unwrap()).unwrap()
}

/// Articles that link to the next ones, each with and without a session id of its own.
fn site() -> RunningSite {
    site_with("")
}

/// The same with further links on the first article.
fn site_with(links: &str) -> RunningSite {
    let mut site = Site::builder();
    for n in 0..PAGES {
        let words: Vec<String> =
            (0..40).map(|word| format!("w{}", (n * 7_919 + word * 104_729) % 99_991)).collect();
        let next: String = [2 * n + 1, 2 * n + 2]
            .into_iter()
            .filter(|next| *next < PAGES)
            .map(|next| format!("<li><a href='/{next}'>x</a> <a href='/{next}?sid=s{n}x{next}'>y</a>"))
            .collect();
        let next = if n == 0 { next + links } else { next };
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
    let explained = [7, 8].map(|n| site.url(&format!("/{n}?sid=new")).to_string());
    let said = run(crawl(dir.path(), &site)
        .args(["--avoid-dup", "--avoid-dup-warmup", "30", "--seed", "7", "--concurrency", "4"])
        .args(["--explain", &explained[0], "--explain", &explained[1]]));
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
    let rules = rules(&out);
    assert!(rules["rules"].as_array().unwrap().iter().any(|rule| rule["ignores"][0] == "sid"), "{rules}");
    assert_eq!(rules["totals"], report(&out)["avoid_dup"]);
    assert_eq!(report(&out)["avoid_dup"]["skipped"], skipped);
    assert!(said.stderr.contains("saved") && said.stderr.contains("explored"), "{}", said.stderr);
    for url in explained {
        let believed = said.stderr.lines().find_map(|line| line.strip_prefix(&format!("{url}: ")));
        assert!(believed.is_some_and(|believed| believed.contains("sid")), "{}", said.stderr);
    }
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

/// The point below which a posterior Beta(lost + 1/2, explored - lost + 1/2) lies with this probability, by Simpson's rule over the angle whose
/// squared sine is the share.
fn jeffreys(explored: i32, lost: i32, below: f64) -> f64 {
    let density = |angle: f64| angle.sin().powi(2 * lost) * angle.cos().powi(2 * (explored - lost));
    let mass = |to: f64| {
        let (steps, width) = (20_000, to / 20_000.0);
        let inner =
            (1..steps).map(|n| f64::from(2 + 2 * (n % 2)) * density(f64::from(n) * width)).sum::<f64>();
        (density(0.0) + inner + density(to)) * width / 3.0
    };
    let all = mass(std::f64::consts::FRAC_PI_2);
    let (mut low, mut high) = (0.0, std::f64::consts::FRAC_PI_2);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if mass(middle) < below * all { low = middle } else { high = middle }
    }
    low.sin().powi(2)
}

#[test]
fn each_rule_says_what_it_rests_on_and_what_it_may_have_lost() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let said = run(crawl(dir.path(), &site).args([
        "--avoid-dup",
        "--avoid-dup-warmup",
        "30",
        "--avoid-dup-exploration",
        "0.2",
        "--seed",
        "7",
    ]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let rules = rules(&dir.path().join("out"));
    let listed = rules["rules"].as_array().unwrap();
    assert!(!listed.is_empty());
    let number = |rule: &Value, name: &str| rule[name].as_f64().unwrap_or_else(|| panic!("{name}: {rule}"));
    let mut explored_at_all = 0;
    for rule in listed {
        let (explored, lost) = (number(rule, "explored"), number(rule, "explored_new"));
        assert!(number(rule, "skipped") + explored > 0.0, "only rules that were used are listed: {rule}");
        // Skipped pages that are fetched at the end for their links count as explored, but are no sample of the skips, so a rule may have no estimate. Which rule
        // skips them depends on the order of the answers.
        if !rule["estimated_loss"].is_null() {
            assert!(explored > 0.0, "{rule}");
            explored_at_all += 1;
            assert_eq!(number(rule, "estimated_loss") == 0.0, lost == 0.0, "{rule}");
            // The explored share rises and falls with the order in which pages arrive; then explored pages count with different weights, which
            // makes the interval wider.
            let least = jeffreys(explored as i32, lost as i32, 0.95);
            let most = number(rule, "estimated_loss_most");
            assert!(least - 1e-4 < most && most < 5.0 * least, "{least}: {rule}");
        } else {
            assert!(rule["estimated_loss_most"].is_null(), "{rule}");
        }
    }
    assert!(explored_at_all > 0, "{rules}");
    let sid = listed.iter().find(|rule| rule["ignores"][0] == "sid" && rule["active"] == true);
    let sid = sid.unwrap_or_else(|| panic!("{rules}"));
    assert!(number(sid, "probability") > number(sid, "threshold") && sid["why"] == "believed", "{sid}");
    assert!(number(&sid["evidence"], "dup") >= 3.0 && number(&sid["evidence"], "nodup") == 0.0, "{sid}");
    assert!(sid["evidence"]["decayed"].is_boolean() && sid["obstacles"].as_array().unwrap().is_empty());
    assert!(number(&sid["sisters"], "pure") >= 1.0 && number(&sid["sisters"], "share") > 0.5, "{sid}");
    // The page that the example equals is the same article.
    let (example, equals) = (sid["example"].as_str().unwrap(), sid["equals"].as_str().unwrap());
    assert_eq!(example.split('?').next(), equals.split('?').next(), "{sid}");
    for rule in rules["not_yet"].as_array().unwrap() {
        assert!(number(rule, "skipped") == 0.0 && number(rule, "fetched") >= 1.0, "{rule}");
    }
}

fn explain(directory: &Path, urls: &[&str], more: &[&str]) -> Said {
    run(huntsman(directory).arg("explain").args(urls).args(["--job", "out"]).args(more))
}

#[test]
fn a_url_is_explained_from_the_job_of_a_crawl() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let said = run(crawl(dir.path(), &site).args([
        "--avoid-dup",
        "--avoid-dup-warmup",
        "30",
        "--seed",
        "7",
        "--store",
        "redb",
    ]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let out = dir.path().join("out");
    let dropped = lines(out.join("drops.jsonl"));
    // The plain form of an address is skipped, too, if its other form happened to be fetched first.
    let is_session = |drop: &&Value| drop["url"].as_str().is_some_and(|url| url.contains("?sid="));
    let mut skipped = dropped.iter().filter(|drop| drop["reason"] == "duplicate_content");
    let skipped = skipped.find(is_session).unwrap()["url"].as_str().unwrap();
    let pages = field(&lines(out.join("pages.jsonl")), "url");
    let fetched = pages.iter().find(|url| !url.contains('?') && !url.ends_with('/')).unwrap();
    let untested = format!("{fetched}?other=1");
    let unknown = site.url("/not/like/any?other=thing").to_string();
    let said = explain(
        dir.path(),
        &[skipped, fetched, &untested, &unknown, "https://elsewhere.example/x"],
        &["--json"],
    );
    assert_eq!(said.code, Some(0), "{said:?}");
    let explained: Vec<Value> = said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let verdicts = field(&explained, "verdict");
    assert_eq!(verdicts, ["fetched", "not_yet", "skip", "unknown", "unknown"], "{explained:?}");

    let best = &explained[0]["relations"][0];
    assert!(
        best["active"] == true
            && best["equals"].as_str().unwrap().starts_with(skipped.split('?').next().unwrap())
    );
    assert!(
        pages.contains(&best["equals"].as_str().unwrap().to_owned()),
        "it equals a page that was fetched"
    );
    assert!(explained[0]["template"].as_str().unwrap().ends_with("?sid={text}"), "{}", explained[0]);

    let best = &explained[2]["relations"][0];
    assert_eq!(best["obstacles"], serde_json::json!(["too_few_tests"]), "{best}");
    assert!(best["needs"].as_u64().unwrap() >= 3 && best["evidence"]["dup"] == 0.0, "{best}");
    assert!(best["rule"].as_str().unwrap().contains("\"other\""), "parameters have their names: {best}");
    // Of pages with one content, the first one is named.
    assert_eq!(best["equals"].as_str().unwrap().split('?').next(), Some(fetched.as_str()), "{best}");
    assert_eq!(explained[3]["relations"], serde_json::json!([]));
    assert_eq!(explained[4]["pages"], 0);

    let said = explain(dir.path(), &[skipped, &untested, &unknown], &[]);
    for words in
        ["It would be skipped: ", "It would be fetched: the best of what ties it", "because nothing ties it"]
    {
        assert!(said.stdout.contains(words), "{words}: {}", said.stdout);
    }
}

#[test]
fn what_has_no_model_cannot_be_explained() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let url = site.url("/1").to_string();
    let said = explain(dir.path(), &[&url], &[]);
    assert_eq!(said.code, Some(2), "there is no crawl: {said:?}");
    let said = run(crawl(dir.path(), &site).args(["--store", "redb", "--max-pages", "3"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = explain(dir.path(), &[&url], &[]);
    assert!(said.code == Some(2) && said.stderr.contains("--avoid-dup"), "{said:?}");
    let said = run(crawl(dir.path(), &site).args(["--fresh", "--avoid-dup=reference", "--store", "redb"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = explain(dir.path(), &[&url], &[]);
    assert!(said.code == Some(2) && said.stderr.contains("reference"), "{said:?}");
}

#[test]
fn the_report_for_people_shows_what_was_learnt() {
    let site = site_with("<a href='/3?%3Cscript%3Ealert=1'>z</a>");
    let dir = tempfile::tempdir().unwrap();
    let args = ["--avoid-dup", "--avoid-dup-warmup", "30", "--seed", "7", "--html"];
    let said = run(crawl(dir.path(), &site).args(args));
    assert_eq!(said.code, Some(0), "{said:?}");
    let out = dir.path().join("out");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(
        page.contains("How AvoidDup sees this site") && page.contains("Rules by which requests were skipped")
    );
    assert!(page.contains("?sid={text}") && page.contains("&quot;sid&quot;"), "{page}");
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;alert="), "{page}");
    let skipped = report(&out)["avoid_dup"]["skipped"].as_u64().unwrap();
    let bars = page.matches(" skipped</text>").count();
    assert!(skipped > 50 && (2..=31).contains(&bars), "{bars} bars");

    let said = run(crawl(dir.path(), &site).args(["--out", "-", "--html"]));
    assert!(said.code == Some(2) && said.stderr.contains("--html"), "{said:?}");
}
