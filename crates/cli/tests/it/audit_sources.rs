//! `huntsman audit` with what it reads besides the site.

use huntsman_testkit::browser::Browser;
use huntsman_testkit::{Answer, RunningSite, Site};
use serde_json::Value;

use crate::common::{huntsman, lines, run};

fn audit(dir: &std::path::Path, site: &RunningSite) -> std::process::Command {
    let mut command = huntsman(dir);
    command.args(["audit", site.url("/").as_str(), "--out", "out", "--profile", "test"]);
    command.args(["--allow-address", &format!("127.0.0.1:{}", site.port())]);
    command
}

#[test]
fn fields_of_a_file_are_columns_and_robots_txt_is_judged_as_the_robot_that_is_named() {
    let robots = "User-agent: Googlebot\nDisallow: /mill\n";
    let site = Site::builder()
        .page("/", "<a href=/mill>Mill</a><b class=price>7.50 EUR</b>")
        .page("/mill", "<b class=price>9</b>")
        .robots(robots)
        .start_blocking();
    let dir = tempfile::tempdir().unwrap();
    let custom = "[fields]\nprice = { css = '.price::text', re = '[0-9.]+', type = 'number' }\n";
    std::fs::write(dir.path().join("custom.toml"), custom).unwrap();
    let said = run(audit(dir.path(), &site).args(["--custom", "custom.toml", "-s", "robotstxt_obey=true"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let table = std::fs::read_to_string(dir.path().join("out/csv/custom.csv")).unwrap();
    assert!(table.starts_with("url,price,errors\n") && table.contains("/mill,9,"), "{table}");
    let browser = Browser::start();
    browser.open(&format!("file://{}#custom", dir.path().join("out/report.html").display()));
    browser.wait_for(".rows[aria-label='values of pages'] td");
    let shown = browser.text("main");
    assert!(shown.contains("css \".price::text\"") && shown.contains("7.5 (1)"), "{shown}");
    assert_eq!(browser.console_messages(), [""; 0]);
    let blocked = |code: &Value| code == "blocked-by-robots";
    let codes = |dir: &std::path::Path| -> Vec<Value> {
        lines(dir.join("out/issues.jsonl")).into_iter().map(|issue| issue["code"].clone()).collect()
    };
    assert!(!codes(dir.path()).iter().any(blocked));
    let said = run(audit(dir.path(), &site).args([
        "--fresh",
        "--robots-agent",
        "Googlebot",
        "-s",
        "robotstxt_obey=true",
    ]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(codes(dir.path()).iter().any(blocked));
    std::fs::write(dir.path().join("custom.toml"), "[fields]\nprice = '.price['").unwrap();
    let said = run(audit(dir.path(), &site).args(["--fresh", "--custom", "custom.toml"]));
    assert!(said.code == Some(2) && said.stderr.contains("custom.toml, line 2: CSS selector"), "{said:?}");
}

#[test]
fn server_logs_tell_which_pages_robots_ask_for() {
    let site = Site::builder()
        .page("/", "<a href=/mill>Mill</a>")
        .page("/mill", "<a href=/>Front</a>")
        .page("/lone", "<a href=/>Front</a>")
        .start_blocking();
    let dir = tempfile::tempdir().unwrap();
    let line = |target: &str| {
        format!(
            "66.249.66.1 - - [26/Nov/2026:14:03:00 +0000] \"GET {target} HTTP/1.1\" 200 9 \"-\" \"Googlebot/2.1\"\n"
        )
    };
    let log = [line("/mill"), line("/lone"), "garbage\n".to_owned()].concat();
    std::fs::write(dir.path().join("access.log"), log).unwrap();
    std::fs::write(dir.path().join("google.json"), "{\"prefixes\":[{\"ipv4Prefix\":\"66.249.64.0/19\"}]}")
        .unwrap();
    let with = ["--log", "access.log", "--log-robot", "Googlebot=google.json"];
    let said = run(audit(dir.path(), &site).args(with));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("access.log: 1 of 3 lines could not be read; line 3"), "{}", said.stderr);
    let orphans = |dir: &std::path::Path| {
        let issues = lines(dir.join("out/issues.jsonl"));
        issues
            .into_iter()
            .filter(|issue| issue["code"] == "orphan")
            .map(|issue| issue["url"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(orphans(dir.path()), [site.url("/lone").as_str()]);
    let browser = Browser::start();
    browser.open(&format!("file://{}#logs", dir.path().join("out/report.html").display()));
    browser.wait_for("#view-logs:not([hidden]) table");
    let shown = browser.text("main");
    assert!(shown.contains("Googlebot") && shown.contains("Pages that robots visit most"), "{shown}");
    assert_eq!(browser.console_messages(), [""; 0]);
    let robots = std::fs::read_to_string(dir.path().join("out/csv/log_robots.csv")).unwrap();
    assert!(
        robots.contains("\nGooglebot,search,by the addresses that its operator publishes,2,2,0,2,2,0,0,0,"),
        "{robots}"
    );
    // Judged again without the log, nothing is known of it any more, and with it again all is.
    let again = |args: &[&str]| run(huntsman(dir.path()).args(["audit", "--job", "out"]).args(args));
    assert_eq!(again(&[]).code, Some(0));
    assert!(orphans(dir.path()).is_empty() && !dir.path().join("out/csv/logs.csv").exists());
    assert_eq!(again(&with).code, Some(0));
    assert_eq!(orphans(dir.path()).len(), 1);
    for (wrong, said) in [
        (["--log", "nowhere.log"], "nowhere.log"),
        (["--log", "google.json"], "google.json: none of its 1 lines"),
        (["--log-robot", "Googlebot"], "--log-robot Googlebot: use NAME=FILE"),
    ] {
        let failed = run(audit(dir.path(), &site).args(["--fresh", "--log", "access.log"]).args(wrong));
        assert!(failed.code == Some(2) && failed.stderr.contains(said), "{failed:?}");
    }
}

#[cfg(feature = "pdf")]
#[test]
fn pdf_files_of_a_site_are_read_and_their_links_are_looked_at() {
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 /MediaBox [0 0 595 842] >>",
        "<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> /Annots [6 0 R] >>",
        "<< /Length 57 >>\nstream\nBT /F1 9 Tf 1 0 0 1 40 800 Tm (The old mill stands) Tj ET\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        "<< /Type /Annot /Subtype /Link /A << /S /URI /URI (/gone) >> >>",
    ];
    let pdf = huntsman_testkit::pdf::file(&objects.map(|object| object.as_bytes().to_vec()));
    let of_type = |body: Vec<u8>| Answer::status(200).header("content-type", "application/pdf").body(body);
    let site = Site::builder()
        .page("/", "<a href=/download?id=7>Prices</a><a href=/broken.PDF>Broken</a>")
        .answer("/download?id=7", of_type(pdf))
        .answer("/broken.PDF", of_type(b"%PDF-1.5 nothing".to_vec()))
        .start_blocking();
    let dir = tempfile::tempdir().unwrap();
    let said = run(&mut audit(dir.path(), &site));
    assert_eq!(said.code, Some(0), "{said:?}");
    let pages = lines(dir.path().join("out/pages.jsonl"));
    let page = |path: &str| pages.iter().find(|page| page["url"] == site.url(path).as_str()).unwrap();
    assert_eq!(
        (&page("/download?id=7")["document"], &page("/download?id=7")["words"]),
        (&"pdf".into(), &4.into())
    );
    assert!(page("/broken.PDF")["document_error"].as_str().unwrap().contains("cannot be read"));
    let issues = lines(dir.path().join("out/issues.jsonl"));
    let gone = issues.iter().find(|issue| issue["code"] == "broken-internal-link").unwrap();
    assert_eq!(
        (&gone["url"], &gone["at"][0]["page"]),
        (&site.url("/gone").as_str().into(), &site.url("/download?id=7").as_str().into())
    );
}
