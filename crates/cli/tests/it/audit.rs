//! `huntsman audit`: what it writes and prints, and how it ends.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use huntsman_testkit::browser::Browser;
use huntsman_testkit::{RunningSite, Site};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::common::{field, huntsman, lines, report, run};

fn site() -> RunningSite {
    Site::builder()
        .page("/", "<title>Start</title><nav>\n<a href='/gone'>Prices</a></nav><a href='/a'>Second</a>")
        .page("/a", "<title>Start</title><img src='/moth.png'>")
        .start_blocking()
}

fn audit(dir: &std::path::Path, site: &RunningSite) -> Command {
    audit_into(dir, site, "out")
}

fn audit_into(dir: &std::path::Path, site: &RunningSite, out: &str) -> Command {
    let mut command = huntsman(dir);
    command.args(["audit", site.url("/").as_str(), "--out", out, "--profile", "test"]);
    command.args(["--allow-address", &format!("127.0.0.1:{}", site.port())]);
    command
}

#[test]
fn an_audit_writes_its_files_and_fails_on_what_it_is_told_to() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let said =
        run(audit(dir.path(), &site).args(["--rules", "status,images", "--fail-on", "broken-internal-link"]));
    assert_eq!(said.code, Some(10), "{said:?}");
    assert!(
        said.stderr.contains("broken-internal-link") && said.stderr.contains("failed on"),
        "{}",
        said.stderr
    );
    assert!(said.stderr.lines().filter(|line| line.starts_with("  ")).count() <= 25, "{}", said.stderr);
    let out = dir.path().join("out");
    let issues = lines(out.join("issues.jsonl"));
    let codes = field(&issues, "code");
    assert_eq!(codes, ["broken-internal-link", "img-alt-missing", "img-broken", "img-no-size"]);
    assert_eq!(lines(out.join("pages.jsonl")).len(), 3);
    assert_eq!(report(&out)["audit"]["issues"], 4);
    assert!(out.join("csv/img-broken.csv").is_file() && out.join("csv/inlinks.csv").is_file());
    let verified = run(huntsman(dir.path()).args(["verify".as_ref(), out.as_os_str()]));
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let again = run(&mut audit(dir.path(), &site));
    assert!(again.code == Some(0) && again.stderr.contains("finished audit"), "{again:?}");
    let other = run(huntsman(dir.path()).args(["crawl", site.url("/").as_str(), "--out", "out"]));
    assert_eq!(other.code, Some(2), "{other:?}");
}

#[test]
fn wrong_names_are_usage_errors_and_nothing_is_written() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    for wrong in [
        ["--rules", "picture"],
        ["--fail-on", "errors"],
        ["--ignore-code", "x"],
        ["--set", "audit_severity={\"x\":\"off\"}"],
    ] {
        let said = run(audit(dir.path(), &site).args(wrong));
        assert_eq!(said.code, Some(2), "{said:?}");
    }
    assert!(!dir.path().join("out").exists() && site.count("/") == 0);
}

#[test]
fn codes_are_listed_and_explained() {
    let dir = tempfile::tempdir().unwrap();
    let list = run(huntsman(dir.path()).args(["audit", "codes"]));
    assert!(list.code == Some(0) && list.stdout.lines().count() > 100, "{list:?}");
    let one = run(huntsman(dir.path()).args(["audit", "codes", "title-long"]));
    for word in ["When:", "Why:", "Fix:", "Wrong:", "Right:"] {
        assert!(one.stdout.contains(word), "{}", one.stdout);
    }
    let json = run(huntsman(dir.path()).args(["audit", "codes", "title-long", "--json"]));
    let codes: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(codes[0]["severity"], "warning");
    assert_eq!(run(huntsman(dir.path()).args(["audit", "codes", "no-such"])).code, Some(2));
    assert_eq!(run(huntsman(dir.path()).arg("audit")).code, Some(2), "without a URL");
}

#[test]
fn an_audit_is_judged_again_compared_and_has_a_baseline() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let first = run(audit(dir.path(), &site).args(["--rules", "status,images"]));
    assert_eq!(first.code, Some(0), "{first:?}");
    let (asked, out) = (site.count("/"), dir.path().join("out"));
    let judge = |more: &[&str]| run(huntsman(dir.path()).args(["audit", "--job", "out"]).args(more));
    let again = judge(&["--rules", "images", "--fail-on", "img-broken"]);
    assert_eq!(again.code, Some(10), "{again:?}");
    assert_eq!(
        (lines(out.join("issues.jsonl")).len(), report(&out)["audit"]["issues"].as_u64()),
        (3, Some(3))
    );
    let verified = run(huntsman(dir.path()).args(["verify".as_ref(), out.as_os_str()]));
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert_eq!(site.count("/"), asked, "nothing was requested");
    let new = judge(&["--baseline", "out", "--rules", "status,images", "--fail-on", "new:status"]);
    assert!(new.code == Some(10) && new.stderr.contains("1 of them new"), "{new:?}");
    for wrong in [&["--fail-on", "new:error"][..], &["--baseline", "nowhere"]] {
        assert_eq!(judge(wrong).code, Some(2), "{wrong:?}");
    }
    let given = "{\"url\":\"https://a.example/\",\"html\":\"<title>T</title>\"}\n";
    std::fs::write(dir.path().join("given.jsonl"), given).unwrap();
    let pages = run(huntsman(dir.path()).args(["audit", "--pages", "given.jsonl"]));
    assert_eq!(pages.code, Some(0), "{pages:?}");
    let given = dir.path().join("a.example-audit");
    assert!(field(&lines(given.join("issues.jsonl")), "code").iter().any(|code| code == "title-short"));
    let compared =
        run(huntsman(dir.path()).args(["audit", "compare", "out", "out", "--fail-on", "new:error"]));
    assert!(compared.code == Some(0) && compared.stderr.contains("4 unchanged"), "{compared:?}");
    assert!(dir.path().join("audit-compare/compare.json").is_file());
    let failed = run(huntsman(dir.path()).args([
        "audit",
        "compare",
        "a.example-audit",
        "out",
        "--fail-on",
        "new:error",
    ]));
    assert_eq!(failed.code, Some(10), "{failed:?}");
}

/// A site whose pages link to each other and have a fault each.
fn faulty(pages: usize) -> RunningSite {
    let page = |n: usize| {
        let links: String =
            (1..4).map(|step| format!("<a href='/p/{}'>Page</a>", (n * 3 + step) % pages)).collect();
        format!(
            "<title>Page {}</title>{links}<a href='/gone/{}'>Old</a><img src='/i/{n}.png'>",
            n % 7,
            n % 11
        )
    };
    let front = (0..4).map(|n| format!("<a href='/p/{n}'>Page</a>")).collect::<String>();
    (0..pages)
        .fold(Site::builder().page("/", front), |site, n| site.page(&format!("/p/{n}"), page(n)))
        .start_blocking()
}

#[cfg(unix)]
#[test]
fn an_audit_that_is_killed_goes_on_to_the_same_issues() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let (dir, site) = (tempfile::tempdir().unwrap(), faulty(80));
    let command = |out: &str| {
        let mut command = audit_into(dir.path(), &site, out);
        command.args(["--store", "redb", "--requests-per-second", "600", "--per-host", "16"]);
        command.args(["--set", "job_commit_interval=0.05"]);
        command
    };
    for _ in 0..3 {
        let mut child = command("killed").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let (before, deadline) = (site.requests().len(), Instant::now() + Duration::from_secs(60));
        let wanted = before + random.random_range(1..70);
        while site.requests().len() < wanted && child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "the audit goes on");
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    for out in ["killed", "whole"] {
        let said = run(&mut command(out));
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    let read = |out: &str| std::fs::read_to_string(dir.path().join(out).join("issues.jsonl")).unwrap();
    assert!(read("whole").lines().count() > 300);
    assert_eq!(read("killed"), read("whole"));
}

#[test]
fn a_build_gets_its_forms_and_a_browser_shows_the_report() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let mut command = audit(dir.path(), &site);
    command
        .args(["--ci", "--rules", "status,images", "--budget", "pages >= 9"])
        .env("GITHUB_ACTIONS", "true");
    let said = run(&mut command);
    assert_eq!(said.code, Some(10), "{said:?}");
    assert!(said.stdout.starts_with("::error title=broken-internal-link::"), "{}", said.stdout);
    assert!(said.stderr.contains("failed on budget pages >= 9: it is 2"), "{}", said.stderr);
    let out = dir.path().join("out");
    assert!(out.join("audit.sarif").is_file() && out.join("junit.xml").is_file());
    let browser = Browser::start();
    browser.open(&format!("file://{}", out.join("report.html").display()));
    browser.wait_for("nav a[aria-current]");
    assert!(browser.text("main").contains("What to mend first"), "{}", browser.text("main"));
    browser.click("main a[href='#issues/img-broken']");
    browser.wait_for(".codes a[aria-current]");
    assert!(browser.text("main").contains("/moth.png"), "{}", browser.text("main"));
    browser.click("nav a[href='#pages']");
    browser.wait_for("input[aria-label='Filter pages']");
    browser.paste("input[aria-label='Filter pages']", "Start");
    browser.click("#theme");
    browser.wait_for(":root[data-theme]");
    assert_eq!(browser.console_messages(), [""; 0], "nothing is refused and no script fails");
    for wrong in [
        ["--format", "pdf"],
        ["--budget", "faults <= 1"],
        ["--source-map", "x"],
        ["--fail-on-code", "nothing"],
    ] {
        let said = run(audit_into(dir.path(), &site, "other").args(wrong));
        assert_eq!(said.code, Some(2), "{wrong:?}: {said:?}");
        assert!(
            said.stderr.contains(wrong[1]) && !dir.path().join("other").exists(),
            "{wrong:?}: {}",
            said.stderr
        );
    }
}
