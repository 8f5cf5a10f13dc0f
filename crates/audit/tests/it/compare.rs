//! Two audits: what is new, what is fixed, and what cannot be told.

use std::fs;
use std::path::Path;

use huntsman_audit::{Audit, AuditBuilder, AuditOptions, Compare, Earlier, Found, Segment, audit};
use huntsman_crawler::{Settings, Start};
use huntsman_testkit::{Reply, ScriptedDownloader};
use serde_json::{Value, json};

use crate::{all_issues, issues_of, urls_of};

const START: &str = "https://a.example/";

fn of(pages: &[(&str, &str)]) -> AuditBuilder {
    let web = pages.iter().fold(ScriptedDownloader::new(), |web, (path, html)| {
        let reply = match html.strip_prefix("to ") {
            Some(to) => Reply::redirect(301, to),
            None => Reply::html((*html).to_owned()),
        };
        web.respond(&format!("https://a.example{path}"), reply)
    });
    audit([START]).downloader(web)
}

/// Writes what the command writes, so far as it is read again.
fn written(audit: &Audit, directory: &Path) {
    fs::create_dir_all(directory).unwrap();
    audit.write(directory).unwrap();
    fs::write(directory.join("report.json"), json!({"audit": audit.totals()}).to_string()).unwrap();
}

/// The standing of each issue of a code, by URL.
fn standings(folder: &Path, code: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(folder.join("out/issues.csv")).unwrap();
    let rows = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let column =
        |name: &str| text.lines().next().unwrap().split(',').position(|found| found == name).unwrap();
    let (standing, of, url) = (column("standing"), column("code"), column("url"));
    let mut found: Vec<_> = rows
        .filter(|row| row[of] == code)
        .map(|row| (row[url].to_owned(), row[standing].to_owned()))
        .collect();
    found.sort();
    found
}

async fn compared(
    before: AuditBuilder,
    after: AuditBuilder,
) -> (tempfile::TempDir, huntsman_audit::Comparison) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    written(&before.run().await.unwrap(), &path("a"));
    written(&after.run().await.unwrap(), &path("b"));
    let fail_on = ["new:title-missing".to_owned(), "title-missing>9".to_owned()];
    let comparison =
        Compare::new(&path("a"), &path("b"), &[], &fail_on).unwrap().write(&path("out")).unwrap();
    (folder, comparison)
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected
        .iter()
        .map(|(path, standing)| (format!("https://a.example{path}"), (*standing).to_owned()))
        .collect()
}

const TITLE: &str = "<title>A title that is long enough to be judged</title>";

#[tokio::test(start_paused = true)]
async fn a_comparison_has_a_page_that_says_what_changed_and_text_of_pages_is_no_markup() {
    let hostile = "/<img src=x onerror=alert(1)>";
    let link = format!("{TITLE}<a href='/gone'>G</a>");
    let (folder, comparison) = compared(
        of(&[("/", &link)]),
        of(&[("/", &format!("{TITLE}<a href='/kept'>K</a><a href='{hostile}'>H</a>")), ("/kept", "1")]),
    )
    .await;
    let html = fs::read_to_string(folder.path().join("out/compare.html")).unwrap();
    assert!(comparison.issues["new"] > 0 && comparison.issues["fixed"] > 0, "{:?}", comparison.issues);
    for said in
        ["What changed", "New issues", "Fixed issues", "Broken internal links", "https://a.example/gone"]
    {
        assert!(html.contains(said), "{said}: {html}");
    }
    assert!(!html.contains("<img") && !html.contains("<script"), "{html}");
    assert!(html.contains("default-src 'none'"));
}

#[tokio::test(start_paused = true)]
async fn the_trend_carries_on_at_most_fifty_audits_and_the_report_draws_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut baseline = None;
    for number in 0..52 {
        let text = format!("{TITLE}{}", "<a href=/gone>G</a>".repeat(usize::from(number > 0)));
        let earlier = baseline.take();
        let audit =
            of(&[("/", &text)]).options(move |options| options.baseline(earlier)).run().await.unwrap();
        let directory = folder.path().join(number.to_string());
        written(&audit, &directory);
        baseline = Some(Earlier::open(&directory).unwrap());
        let trend = audit.trend();
        assert_eq!(trend.len(), (number + 1).min(50));
        let errors = trend.iter().map(|past| past.errors).collect::<Vec<_>>();
        assert_eq!(errors[0], u64::from(number >= 50), "{errors:?}");
        assert_eq!(*errors.last().unwrap(), u64::from(number > 0));
        let html = audit.html().unwrap();
        assert_eq!(html.contains("Trend over"), number > 0);
        assert_eq!(html.contains("Trend over 50 audits"), number >= 49);
    }
}

#[tokio::test(start_paused = true)]
async fn an_issue_is_fixed_only_where_its_page_was_looked_at() {
    let links = "<a href=/kept>K</a><a href=/mended>M</a><a href=/gone>G</a><a href=/moved>V</a>";
    let before = format!("{TITLE}{links}<a href=/hidden>H</a>");
    let after = format!("{TITLE}{links}<a href=/added>A</a>");
    let mended = format!("{TITLE}<p>now");
    let (folder, comparison) = compared(
        of(&[
            ("/", &before),
            ("/kept", "1"),
            ("/mended", "2"),
            ("/gone", "3"),
            ("/moved", "4"),
            ("/hidden", "5"),
        ]),
        of(&[("/", &after), ("/kept", "1"), ("/mended", &mended), ("/moved", "to /kept"), ("/added", "6")]),
    )
    .await;
    assert_eq!(
        standings(folder.path(), "title-missing"),
        pairs(&[
            ("/added", "new"),
            ("/gone", "gone"),
            ("/hidden", "not_reached"),
            ("/kept", "unchanged"),
            ("/mended", "fixed"),
            ("/moved", "gone"),
        ])
    );
    let conditions: Vec<&str> = comparison.gate.iter().map(|failure| failure.condition.as_str()).collect();
    assert_eq!(conditions, ["new:title-missing"]);
    assert_eq!((comparison.pages.added, comparison.pages.removed, comparison.pages.both), (1, 1, 5));
    let changed = fs::read_to_string(folder.path().join("out/pages.csv")).unwrap();
    assert!(changed.contains("/mended,changed,title,"), "{changed}");
    let json: Value =
        serde_json::from_slice(&fs::read(folder.path().join("out/compare.json")).unwrap()).unwrap();
    assert_eq!(json["codes"]["title-missing"]["fixed"], 1);
}

#[tokio::test(start_paused = true)]
async fn an_issue_is_not_fixed_by_another_limit_or_without_its_code() {
    let page = "<title>Short</title>";
    let limited = of(&[("/", page)]).set("audit_title_min", 3);
    let (folder, comparison) = compared(of(&[("/", page)]), limited).await;
    assert_eq!(standings(folder.path(), "title-short"), pairs(&[("/", "not_judged")]));
    assert_eq!(comparison.issues["fixed"], 0);
    let off = of(&[("/", page)]).set("audit_severity", json!({"title-short": "off"}));
    let (folder, comparison) = compared(of(&[("/", page)]), off).await;
    assert_eq!(standings(folder.path(), "title-short"), pairs(&[("/", "not_judged")]));
    assert_eq!(comparison.issues["fixed"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_broken_link_is_not_fixed_if_a_crawl_that_ended_early_did_not_look() {
    let page = "<a href=/1>One</a><a href=/gone>Old</a>";
    let pages = [("/", page), ("/1", "<a href=/>Front</a>")];
    let cut = of(&pages).set("closespider_pagecount", 1);
    let (folder, _) = compared(of(&pages), cut).await;
    assert_eq!(standings(folder.path(), "broken-internal-link"), pairs(&[("/gone", "not_reached")]));
    let without = [("/", "<a href=/1>One</a>"), pages[1]];
    let (folder, _) = compared(of(&pages), of(&without)).await;
    assert_eq!(standings(folder.path(), "broken-internal-link"), pairs(&[("/gone", "fixed")]));
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_a_whole_host_is_the_same_fault_when_a_page_is_added_or_mended() {
    let host = [("/", "<a href=/b>B</a><a href=/c>C</a>"), ("/b", "b"), ("/c", "c")];
    let more = [("/", "<a href=/b>B</a><a href=/c>C</a><a href=/aa>A</a>"), host[1], host[2], ("/aa", "a")];
    let (folder, _) = compared(of(&host), of(&more)).await;
    assert_eq!(standings(folder.path(), "csp-missing"), pairs(&[("/", "unchanged")]));
    let policy = "<meta http-equiv=content-security-policy content=\"default-src 'self'\">b";
    let (folder, _) = compared(of(&host), of(&[host[0], ("/b", policy), host[2]])).await;
    assert_eq!(standings(folder.path(), "csp-missing"), pairs(&[("/", "unchanged"), ("/c", "unchanged")]));
}

#[tokio::test(start_paused = true)]
async fn urls_are_compared_as_the_map_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let page = || Reply::html("<a href=/b>B</a>");
    for (name, host) in [("a", "https://live.example"), ("b", "https://staging.example")] {
        let web = ScriptedDownloader::new()
            .respond(&format!("{host}/"), page())
            .respond(&format!("{host}/b"), page());
        written(&audit([format!("{host}/")]).downloader(web).run().await.unwrap(), &path(name));
    }
    let compare =
        |map: &[String]| Compare::new(&path("a"), &path("b"), map, &[]).unwrap().write(&path("out")).unwrap();
    let apart = compare(&[]);
    assert!(apart.issues["unchanged"] == 0 && apart.pages.both == 0 && apart.issues["fixed"] == 0);
    let same = compare(&["https://staging.example=https://live.example".to_owned()]);
    assert_eq!((same.issues["new"], same.issues["not_reached"], same.pages.both), (0, 0, 2));
    assert!(same.issues["unchanged"] > 0 && same.pages.changed == 0, "{same:?}");
    assert!(Compare::new(&path("a"), &path("b"), &["staging".to_owned()], &[]).unwrap_err().is_usage());
    assert!(Compare::new(&path("a"), &path("none"), &[], &[]).unwrap_err().is_usage());
}

#[tokio::test(start_paused = true)]
async fn issues_that_the_baseline_does_not_have_are_new() {
    let folder = tempfile::tempdir().unwrap();
    let page = format!("{TITLE}<a href=/b>B</a><a href=/gone>G</a>");
    written(&of(&[("/", &page), ("/b", "b")]).run().await.unwrap(), folder.path());
    let earlier = Earlier::open(folder.path()).unwrap();
    let again = |second: &'static str, conditions: &'static [&'static str]| {
        let earlier = earlier.clone();
        let fail_on = conditions.iter().map(|text| (*text).to_owned()).collect();
        of(&[("/", &page), ("/b", second)])
            .options(|options| options.baseline(Some(earlier)).fail_on(fail_on))
            .run()
    };
    let same = again("b", &["new:error", "error"]).await.unwrap();
    assert!(all_issues(&same).iter().all(|issue| issue.new == Some(false)));
    assert_eq!(same.gate.iter().map(|failure| failure.condition.as_str()).collect::<Vec<_>>(), ["error"]);
    let worse = again("b<a href=/lost>L</a>", &["new:error", "new:error>1"]).await.unwrap();
    let worse_issues = all_issues(&worse);
    let new: Vec<&str> =
        worse_issues.iter().filter(|issue| issue.new == Some(true)).map(|issue| issue.url.as_str()).collect();
    assert!(new.contains(&"https://a.example/lost"), "{new:?}");
    assert_eq!(
        worse.gate.iter().map(|failure| failure.condition.as_str()).collect::<Vec<_>>(),
        ["new:error"]
    );
    let without = of(&[("/", &page)]).options(|options| options.fail_on(vec!["new:error".to_owned()]));
    assert!(without.run().await.unwrap_err().is_usage(), "without a baseline nothing can be new");
}

#[tokio::test(start_paused = true)]
async fn accepted_issues_have_an_end_and_are_told_if_they_match_nothing() {
    let rules = json!([
        {"code": "title-missing", "until": "2001-01-31", "reason": "soon"},
        {"code": "h1-missing", "until": "2999-12-31"},
        {"code": "link-to-redirect", "target": "*/b"},
        {"code": "link-empty"},
    ]);
    let audit = of(&[("/", "<a href=/a>A</a>"), ("/a", "to /b"), ("/b", "b")]).set("audit_ignore", rules);
    let audit = audit.run().await.unwrap();
    assert!(!issues_of(&audit, "title-missing").is_empty() && issues_of(&audit, "h1-missing").is_empty());
    assert_eq!(issues_of(&audit, "link-to-redirect").len(), 0);
    assert_eq!(audit.notes.len(), 2, "{:?}", audit.notes);
    assert!(audit.notes[0].contains("2001-01-31") && audit.notes[1].contains("link-empty"));
    let wrong = of(&[("/", "")]).set("audit_ignore", json!([{"code": "thin", "until": "next year"}]));
    assert!(wrong.run().await.unwrap_err().is_usage());
}

fn settings(values: &[(&str, Value)]) -> Settings {
    let crawl = AuditOptions::default().crawl(Start::none()).downloader(ScriptedDownloader::new());
    let crawl = values.iter().fold(crawl, |crawl, (name, value)| crawl.set(name, value.clone()));
    crawl.build().unwrap().handle().context().settings().clone()
}

#[tokio::test(start_paused = true)]
async fn pages_of_a_file_are_judged_by_what_is_known_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pages.jsonl");
    let lines = [
        json!({"url": START, "html": "<a href=/b>B</a><a href=/gone>G</a>"}),
        json!({"url": "https://a.example/b", "html": TITLE, "headers": {"X-Robots-Tag": "noindex"}, "elapsed_ms": 20}),
        json!({"url": "https://a.example/gone", "status": 404}),
    ];
    fs::write(&file, lines.map(|line| format!("{line}\n")).concat()).unwrap();
    let (options, settings) = (AuditOptions::default(), settings(&[]));
    let found = options.read_pages(&file, &settings).unwrap();
    let audit = options.judge(found, &settings, false).unwrap();
    let urls = |code: &str| urls_of(&audit, code);
    assert_eq!(urls("title-missing"), [START]);
    assert_eq!(urls("noindex"), ["https://a.example/b"]);
    assert_eq!(urls("broken-internal-link"), ["https://a.example/gone"]);
    assert!(urls("csp-missing").is_empty() && audit.not_judged.contains("csp-missing"));
    let judged: Vec<&str> = audit.codes.iter().map(|code| code.name).collect();
    assert!(judged.contains(&"title-missing") && !judged.contains(&"broken-internal-link"));
    for wrong in ["{\"url\":\"ftp://a.example/\"}", "{\"url\":\"https://a.example/\",\"statuss\":1}", ""] {
        fs::write(&file, wrong).unwrap();
        assert!(options.read_pages(&file, &settings).is_err(), "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_audit_is_judged_again_with_other_limits() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("state")).unwrap();
    let web = ScriptedDownloader::pages([(START, "<title>Short</title><h1>Moths</h1>")]);
    let crawl = AuditOptions::default()
        .crawl(Start::urls([START]))
        .pipeline(Segment::create(path("state/audit.segment")).unwrap())
        .downloader(web);
    crawl.build().unwrap().run().await.unwrap();
    fs::write(path("drops.jsonl"), "").unwrap();
    let found = Found::open(folder.path()).unwrap();
    let first = AuditOptions::default().judge(found, &settings(&[]), true).unwrap();
    written(&first, folder.path());
    let again = |values: &[(&str, Value)]| {
        let (found, is_complete) = Found::again(folder.path()).unwrap();
        AuditOptions::default().judge(found, &settings(values), is_complete).unwrap()
    };
    let text = |audit: &Audit| serde_json::to_string(&all_issues(audit)).unwrap();
    assert_eq!(text(&again(&[])), text(&first));
    assert_eq!(issues_of(&again(&[("audit_title_min", 5.into())]), "title-short").len(), 0);
    let long = again(&[("audit_title_max", 4.into())]);
    let issue = &issues_of(&long, "title-long")[0];
    assert_eq!((&issue.evidence.value, issue.at[0].column), (&json!(5), 1));
}
