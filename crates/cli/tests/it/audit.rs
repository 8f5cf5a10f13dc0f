//! `huntsman audit`: what it writes and prints, and how it ends.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use huntsman_testkit::browser::{Browser, keys};
use huntsman_testkit::command::command;
use huntsman_testkit::{Answer, RunningSite, Site};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

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
    // How long a page takes is that of the machine with all its tests, not of the site.
    command.args(["--set", "audit_ttfb_max_ms=600000"]);
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
    assert_eq!(
        (&codes[0]["severity"], &codes[0]["headline"]),
        (&"warning".into(), &"Titles that are too long".into())
    );
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
    let report = format!("file://{}", out.join("report.html").display());
    browser.open(&report);
    browser.wait_for("nav a[aria-current]");
    assert!(browser.text("main").contains("What to mend first"), "{}", browser.text("main"));
    browser.click("main a[href='#issue/img-broken']");
    browser.wait_for("#drawn .rows");
    assert!(browser.text("#drawn").contains("/moth.png"), "{}", browser.text("#drawn"));
    browser.click("#drawn .rows button.link");
    browser.wait_for(".places pre, .places p");
    assert!(browser.text(".detail").contains("line 1"), "{}", browser.text(".detail"));
    assert!(
        browser.url().contains("at="),
        "the place that is open is part of the address: {}",
        browser.url()
    );
    browser.click("nav a[href='#pages']");
    browser.wait_for("input[aria-label='Filter pages'], .rows[aria-label='pages']");
    browser.click(".rows a");
    browser.wait_for(".facts");
    browser.click("#theme");
    browser.wait_for(":root[data-theme]");
    for view in
        ["structure", "responses", "security", "duplicates", "redirects", "languages", "sitemaps", "external"]
    {
        browser.open(&format!("{report}#{view}"));
        browser.wait_for("main .view:not([hidden]) h2");
    }
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

#[cfg(unix)]
#[test]
fn the_script_of_the_guide_fails_a_build_on_what_it_broke() {
    use std::os::unix::fs::PermissionsExt as _;

    let guide = include_str!("../../../../docs/guide/auditing.md");
    let (_, script) = guide.split_once("```sh recipe\n").expect("the guide has the script");
    let (script, _) = script.split_once("```").expect("it ends");
    let dir = tempfile::tempdir().unwrap();
    let is_broken = Arc::new(AtomicBool::new(false));
    let broken = Arc::clone(&is_broken);
    let site = Site::builder()
        .page("/", "<title>Start</title><a href='/gone'>Prices</a> <a href='/a'>Second</a>")
        .route("/a", move |_| match broken.load(Ordering::SeqCst) {
            true => Answer::html("<title>Second</title><a href='/lost'>Third</a>"),
            false => Answer::html("<title>Second</title>"),
        })
        .start_blocking();
    // The program is found by its name, as in a build.
    let bin = dir.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_huntsman"), bin.join("huntsman")).unwrap();
    let path = dir.path().join("audit.sh");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let build = |branch: &str, flags: &[&str]| {
        let mut script = command(&path, dir.path());
        let programs = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        script.env("BRANCH", branch).env("PATH", programs);
        script.args([site.url("/").as_str(), "--profile", "test", "--set", "audit_ttfb_max_ms=600000"]);
        script.args(["--allow-address", &format!("127.0.0.1:{}", site.port())]).args(flags);
        run(&mut script)
    };
    let codes = [build("main", &[]), build("change", &[])].map(|said| said.code);
    assert_eq!(
        codes,
        [Some(10), Some(0)],
        "a first build fails on all errors, and the next one on new ones alone"
    );
    is_broken.store(true, Ordering::SeqCst);
    let said = build("change", &[]);
    assert_eq!(said.code, Some(10), "{said:?}");
    assert!(said.stderr.contains("new:error"), "{}", said.stderr);
    assert_eq!(build("change", &["--no-such-flag"]).code, Some(2));
    assert_eq!(build("main", &[]).code, Some(10));
    assert_eq!(build("change", &[]).code, Some(0), "the main branch has the error now");
}

/// Goes on by the tab key until the focus is on something of this name, and returns the names on the way. Each has to be seen.
fn tab_to(browser: &Browser, name: &str) -> Vec<String> {
    let mut seen = Vec::new();
    for _ in 0..200 {
        browser.press(keys::TAB);
        let focused = browser.focused();
        assert!(focused.is_shown, "the focus is not seen on {:?}", focused.name);
        if focused.name.starts_with(name) {
            return seen;
        }
        seen.push(focused.name);
    }
    panic!("no tab leads to {name}: {seen:?}");
}

#[test]
fn a_report_is_walked_by_keyboard() {
    let dir = tempfile::tempdir().unwrap();
    let said = run(huntsman(dir.path()).args(["audit", "--demo", "--out", "shop", "--format", "html"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let browser = Browser::start();
    browser.open(&format!("file://{}#issues", dir.path().join("shop/report.html").display()));
    browser.wait_for("nav a[aria-current]");
    // The first stop leads past the menu, and stays in the view.
    assert_eq!(tab_to(&browser, "Skip to the content"), [""; 0]);
    browser.press(keys::ENTER);
    assert!(browser.url().ends_with("#issues"), "{}", browser.url());
    assert!(!tab_to(&browser, "Filter causes").iter().any(|name| name == "Overview"));
    // A heading sorts, and keeps the focus.
    tab_to(&browser, "Issues");
    browser.press(keys::ENTER);
    browser.wait_for("#view-issues th[aria-sort='descending']");
    assert_eq!(browser.focused().name, "Issues");
    // A cause opens, and its place is shown from a row.
    tab_to(&browser, "Broken internal links");
    browser.press(keys::ENTER);
    browser.wait_for("#drawn .rows");
    tab_to(&browser, "issues");
    browser.press(keys::DOWN);
    let first = browser.focused();
    assert!(first.is_shown && first.name.starts_with('/'), "{first:?}");
    tab_to(&browser, "1 place");
    browser.press(keys::ENTER);
    browser.wait_for(".detail .places");
    tab_to(&browser, "Close");
    browser.press(keys::ENTER);
    assert_eq!(browser.focused().name, "issues", "the focus is back on the table");
    // A long table is one stop; the arrows and the end key move in it.
    browser.open(&format!("file://{}#pages?sort=url", dir.path().join("shop/report.html").display()));
    browser.wait_for(".rows[aria-label='pages']");
    tab_to(&browser, "pages");
    browser.press(keys::DOWN);
    let first = browser.focused();
    browser.press(&keys::DOWN.repeat(3));
    let fourth = browser.focused();
    browser.press(keys::END);
    let last = browser.focused();
    assert!(
        [&first, &fourth, &last].iter().all(|row| row.is_shown && row.name.starts_with('/')),
        "{first:?} {fourth:?} {last:?}"
    );
    assert!(first.name < fourth.name && fourth.name < last.name, "{first:?} {fourth:?} {last:?}");
    browser.press(keys::TAB);
    assert!(
        !browser.focused().name.starts_with('/'),
        "the next stop is behind the table: {:?}",
        browser.focused()
    );
    // A slash leads to the filter, whose text is in the address.
    browser.press("/");
    assert_eq!(browser.focused().name, "Filter pages");
    browser.press("sails");
    browser.wait_for(".controls [role=status]");
    let began = Instant::now();
    while !browser.url().contains("q=sails") {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", browser.url());
    }
    // The form changes, and the choice stays.
    browser.open(&format!("file://{}", dir.path().join("shop/report.html").display()));
    tab_to(&browser, "Dark");
    browser.press(keys::ENTER);
    browser.wait_for(":root[data-theme='dark']");
    assert_eq!(browser.console_messages(), [""; 0]);
}

/// Pages with some ten faults each, for `--pages`.
fn made_up(pages: usize) -> String {
    let page = |number: usize| {
        let html = format!(
            "<title>Page {number}</title><a href='/{}'>Next</a><img src=/x.png><input name=a><h4>Part</h4><p id=a><p id=a>",
            number + 1
        );
        let url = format!("https://a.example/{number}");
        json!({"url": url, "headers": {"content-type": "text/html"}, "html": html}).to_string() + "\n"
    };
    (0..pages).map(page).collect()
}

/// Prints how long a browser needs for the report of a large site, and what it keeps in memory.
#[test]
#[ignore = "a measure: it judges 100,000 pages"]
fn a_report_of_100_000_pages_is_measured_in_a_browser() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("pages.jsonl"), made_up(100_000)).unwrap();
    let said = run(huntsman(dir.path()).args([
        "audit",
        "--pages",
        "pages.jsonl",
        "--out",
        "out",
        "--format",
        "html",
    ]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let out = dir.path().join("out");
    let size = out.join("report.html").metadata().unwrap().len();
    assert!(size < 2_000_000);
    println!("{} issues; report.html has {size} bytes", report(&out)["audit"]["issues"]);
    let browser = Browser::start();
    browser.open(&format!("file://{}", out.join("report.html").display()));
    browser.wait_for("main h2");
    println!("first view: {} ms", browser.run("return performance.getEntriesByType('paint')[0].startTime"));
    let views = browser.run("return ['pages', ...JSON.parse(document.getElementById('index').textContent).codes.map(code => 'issue/' + code.code)]");
    for view in views.as_array().unwrap() {
        let began = Instant::now();
        browser.run(&format!("document.getElementById('drawn').replaceChildren(); location.hash = {view}"));
        browser.wait_for("#drawn .rows td");
        let opened = began.elapsed();
        let sorts = browser.run(
            "return [...document.querySelectorAll('#drawn th button')].map(button => {
                let began = performance.now(); button.click(); return Math.round(performance.now() - began); })",
        );
        let heap = browser.run("return Math.round(performance.memory.usedJSHeapSize / 1e6)");
        println!(
            "{view}: opened within {} ms, sorted in {sorts} ms, heap {heap} MB, memory of the tab {} MB",
            opened.as_millis(),
            browser.memory() / 1_000_000
        );
    }
    assert_eq!(browser.console_messages(), [""; 0]);
}

#[test]
fn a_large_report_reads_its_tables_from_files_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("pages.jsonl"), made_up(5_200)).unwrap();
    let judged = |list: &str| {
        let said = run(huntsman(dir.path())
            .args(["audit", "--pages", list, "--out", "out", "--fresh", "--format", "html"]));
        assert_eq!(said.code, Some(0), "{said:?}");
    };
    judged("pages.jsonl");
    let out = dir.path().join("out");
    assert!(out.join("report.html").metadata().unwrap().len() < 2_000_000);
    let files: Vec<_> = std::fs::read_dir(out.join("report")).unwrap().map(|file| file.unwrap()).collect();
    assert!(files.len() > 5 && files.iter().all(|file| file.metadata().unwrap().len() <= 1_000_000));
    let browser = Browser::start();
    let report = format!("file://{}", out.join("report.html").display());
    browser.open(&format!("{report}#pages?sort=-url"));
    browser.wait_for(".rows a");
    assert!(browser.text(".rows td").contains("/999"), "{}", browser.text(".rows td"));
    let drawn = browser.count(".rows tbody tr");
    assert!((10..100).contains(&drawn), "{drawn} rows are drawn");
    browser.open(&format!("{report}#page/https://a.example/4321"));
    browser.wait_for(".facts");
    assert!(browser.text("main").contains("Page 4321"), "{}", browser.text("main"));
    assert!(browser.text("main").contains("/4322"), "a link from it");
    browser.open(&format!("{report}#issue/img-alt-missing"));
    browser.wait_for("#drawn .rows button.link");
    assert_eq!(browser.console_messages(), [""; 0]);
    // The files of a large report do not stay beside a small one.
    std::fs::write(dir.path().join("few.jsonl"), "{\"url\": \"https://a.example/\", \"html\": \"<p>One\"}\n")
        .unwrap();
    judged("few.jsonl");
    assert!(!out.join("report").exists());
}

#[test]
fn the_demo_audits_a_shop_and_says_where_its_report_is() {
    let dir = tempfile::tempdir().unwrap();
    let said = run(huntsman(dir.path()).args(["audit", "--demo", "--out", "shop", "--format", "html,graph"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("report.html") && said.stderr.contains("Broken images"), "{}", said.stderr);
    assert!(said.stderr.lines().count() <= 25, "{}", said.stderr);
    let out = dir.path().join("shop");
    let codes = field(&lines(out.join("issues.jsonl")), "code");
    for code in [
        "broken-internal-link",
        "dns-failure",
        "exact-duplicate",
        "hreflang-no-return",
        "img-alt-missing",
        "img-broken",
        "noindex",
        "redirect-chain",
        "server-error",
        "title-duplicate",
    ] {
        assert!(codes.iter().any(|found| found == code), "{code}");
    }
    assert!(out.join("graph.graphml").is_file() && out.join("report.html").is_file());
}
