//! `crawl --render` and `fetch --render`, with a real Chromium.

mod auto;
mod kills;

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
    let said = run(crawl(folder.path(), &site).args(TRUSTED).args(["--render", "--har", "requests"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let out = folder.path().join("out");
    let pages = lines(out.join("pages.jsonl"));
    let har = folder.path().join("requests").join(pages[0]["render"]["har"].as_str().unwrap());
    let har: serde_json::Value = serde_json::from_slice(&std::fs::read(har).unwrap()).unwrap();
    let bodies: Vec<_> = har["log"]["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| &of["response"]["content"]["text"])
        .collect();
    assert!(bodies.contains(&&"[1,2,3]".into()), "{har}");
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
    let entry = entries.iter().find(|entry| entry["request"]["url"] == site.url("/api").as_str()).unwrap();
    let content = &entry["response"]["content"];
    assert_eq!(content["text"], "[1,2,3]", "{entry}");
    let sent: Vec<_> = entry["request"]["headers"].as_array().unwrap().iter().map(|of| &of["name"]).collect();
    assert!(sent.iter().any(|name| name.as_str().unwrap().eq_ignore_ascii_case("referer")), "{entry}");
}

#[test]
fn cookies_of_scripts_go_with_later_requests_of_the_same_page() {
    let script = "document.cookie = 'first=1; path=/'; fetch('/one').then(() => { document.cookie = 'second=2; path=/'; return fetch('/two') })";
    let site = Site::builder()
        .page("/", format!("<p></p><script>{script}</script>"))
        .answer("/one", Answer::text("1").header("Set-Cookie", "server=3; Path=/; HttpOnly"))
        .answer("/two", Answer::text("2"))
        .start_blocking();
    let folder = tempfile::tempdir().unwrap();
    let said = run(crawl(folder.path(), &site).args(TRUSTED).arg("--render"));
    assert_eq!(said.code, Some(0), "{said:?}");
    let requests = site.requests();
    let cookies = |path: &str| {
        let request = requests.iter().find(|request| request.request.path() == path).unwrap();
        let mut cookies: Vec<&str> =
            request.request.header("cookie").unwrap_or_default().split("; ").collect();
        cookies.sort_unstable();
        cookies.join("; ")
    };
    assert_eq!(
        (&*cookies("/"), &*cookies("/one"), &*cookies("/two")),
        ("", "first=1", "first=1; second=2; server=3")
    );
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
