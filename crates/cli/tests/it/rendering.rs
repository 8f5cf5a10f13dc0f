//! `crawl --render` and `fetch --render`, with a real Chromium.

use std::process::Command;

use huntsman_testkit::{Answer, RunningSite, Site};

use crate::common::{crawl, huntsman, lines, report, run};

/// The pages are ours, so they need no sandbox, which root could not have.
const TRUSTED: [&str; 2] = ["--set", "render_sandbox=off"];

fn site() -> RunningSite {
    Site::builder()
        .page("/", "<title>Shop</title><ul></ul><script src=/list.js></script>")
        .answer(
            "/list.js",
            Answer::text("fetch('/api').then(a => a.json()).then(a => document.querySelector('ul').innerHTML = a.map(n => `<li><a href=/item/${n}>item ${n}</a>`).join(''))")
                .header("Content-Type", "text/javascript"),
        )
        .answer("/api", Answer::text("[1,2,3]").header("Content-Type", "application/json"))
        .route("/item/*", |asked| Answer::html(format!("<title>{}</title><p>text</p>", asked.path())))
        .start_blocking()
}

#[test]
fn pages_are_rendered_and_told() {
    let (folder, site) = (tempfile::tempdir().unwrap(), site());
    let said = run(crawl(folder.path(), &site).args(TRUSTED).arg("--render"));
    assert_eq!(said.code, Some(0), "{said:?}");
    let out = folder.path().join("out");
    let pages = lines(out.join("pages.jsonl"));
    assert_eq!(pages.len(), 4, "the page and what only its script links to: {pages:?}");
    assert_eq!(pages[0]["render"]["requests"], 3, "{}", pages[0]);
    assert_eq!(report(&out)["stats"]["render/pages"], 4);
    assert_eq!((site.count("/"), site.count("/list.js"), site.count("/api")), (1, 1, 1));
}

#[test]
fn what_is_learnt_of_pages_is_in_the_report() {
    let (folder, site) = (tempfile::tempdir().unwrap(), site());
    let said = run(crawl(folder.path(), &site).args(TRUSTED).arg("--render=auto"));
    assert_eq!(said.code, Some(0), "{said:?}");
    let report = report(&folder.path().join("out"));
    assert_eq!(report["pages"], 4);
    let start =
        report["render"]["by_shape"].as_array().unwrap().iter().find(|shape| shape["shape"] == "/").unwrap();
    assert_eq!((&start["needed"], &start["compared"]), (&1.into(), &1.into()), "{report}");
}

#[test]
fn an_audit_compares_pages_with_what_scripts_make_of_them() {
    let (folder, site) = (tempfile::tempdir().unwrap(), site());
    let mut audit = huntsman(folder.path());
    audit.args(["audit", site.url("/").as_str(), "--out", "out", "--allow-address", "127.0.0.1:*"]);
    let said = run(audit.args(TRUSTED).args(["--render", "--set", "download_delay=0"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let issues = lines(folder.path().join("out").join("issues.jsonl"));
    let made: Vec<_> = issues.iter().filter(|issue| issue["family"] == "rendered").collect();
    assert_eq!(made.len(), 1, "{made:?}");
    assert_eq!(
        (&made[0]["code"], &made[0]["url"]),
        (&"render-links-only".into(), &site.url("/").as_str().into())
    );
    let links: Vec<_> = made[0]["at"].as_array().unwrap().iter().map(|place| &place["link"]).collect();
    assert_eq!(links, ["item 1", "item 2", "item 3"]);
}

#[test]
fn a_page_is_fetched_with_its_picture_its_print_and_its_requests() {
    let (folder, site) = (tempfile::tempdir().unwrap(), site());
    let mut fetch = huntsman(folder.path());
    fetch.args(["fetch", site.url("/").as_str(), "--links", "--render", "--profile", "test"]).args(TRUSTED);
    fetch.args([
        "--allow-address",
        "127.0.0.1:*",
        "--screenshot",
        "shop.png",
        "--pdf",
        "shop.pdf",
        "--har",
        "shop.har",
    ]);
    let said = run(&mut fetch);
    assert_eq!((said.code, said.stdout.lines().count()), (Some(0), 3), "{said:?}");
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(read("shop.png").starts_with(b"\x89PNG") && read("shop.pdf").starts_with(b"%PDF"));
    let har: serde_json::Value = serde_json::from_slice(&read("shop.har")).unwrap();
    let entries = har["log"]["entries"].as_array().unwrap();
    assert!(entries.iter().any(|entry| entry["request"]["url"] == site.url("/api").as_str()), "{har}");
}

#[test]
fn without_a_browser_or_a_sandbox_nothing_is_fetched() {
    let (folder, site) = (tempfile::tempdir().unwrap(), site());
    let refused = |command: &mut Command, why: &str| {
        let said = run(command);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains(why), "{said:?}");
        assert!(!folder.path().join("out").exists() && site.requests().is_empty(), "{why}");
    };
    let missing = ["--render", "--set", "render_browser=/none/chromium"];
    refused(crawl(folder.path(), &site).args(TRUSTED).args(missing), "chromium-headless-shell");
    let mut fetch = huntsman(folder.path());
    fetch.args(["fetch", site.url("/").as_str(), "--profile", "test"]).args(TRUSTED).args(missing);
    refused(&mut fetch, "chromium-headless-shell");
    let id = Command::new("id").arg("-u").output().unwrap();
    if id.stdout == b"0\n" {
        refused(crawl(folder.path(), &site).arg("--render"), "render_sandbox=off");
    }
}
