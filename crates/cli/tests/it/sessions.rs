//! Sessions and proxies of the command: a kill costs no session, and no file has a password.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use huntsman_testkit::{Answer, ForwardProxy, ProxyBehaviour, RunningSite, Site};

use crate::common::{crawl, field, lines, report, run};

const PAGES: usize = 600;

/// Pages that link to each other; a visitor without a cookie gets one.
fn site() -> RunningSite {
    let page = |n: usize| {
        let links = [2 * n + 1, 2 * n + 2].into_iter().filter(|child| *child < PAGES);
        links.map(|child| format!("<a href=/{child}>{child}</a>")).collect::<String>()
    };
    Site::builder()
        .page("/", "<a href=/0>0</a>")
        .route("/*", move |asked| {
            let n = asked.path().trim_start_matches('/').parse().unwrap_or(PAGES);
            let answer = Answer::html(page(n));
            match asked.header("cookie") {
                Some(_) => answer,
                None => answer.header("Set-Cookie", format!("visitor=v{n}")),
            }
        })
        .start_blocking()
}

fn in_sessions(directory: &Path, site: &RunningSite, proxies: &[String]) -> Command {
    let mut command = crawl(directory, site);
    command.args([
        "--store",
        "redb",
        "--concurrency",
        "8",
        "--per-host",
        "8",
        "--requests-per-second",
        "300",
    ]);
    for setting in [
        "session_pool_size=3",
        "session_max_uses=0",
        "job_commit_interval=0.1",
        "robotstxt_obey=false",
        "log_level=debug",
        "retry_backoff_base=0.01",
    ] {
        command.args(["--set", setting]);
    }
    command.args(["--set", &format!("proxy_pool={}", proxies.join(","))]);
    command
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, mut files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    files.extend(folders.iter().flat_map(|folder| self::files(folder)));
    files
}

#[test]
fn sessions_and_their_cookies_survive_a_kill_and_no_file_has_a_password() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    // Basic authentication of zorro with the password HUSHHUSH.
    let good = ForwardProxy::start(site.port()).require("Basic em9ycm86SFVTSEhVU0g=");
    let other = ForwardProxy::start(site.port());
    other.behave(ProxyBehaviour::Refuse);
    let proxies = [good.url("zorro:HUSHHUSH"), other.url("zorro:HUSHHUSH")];
    // A pipe that nobody reads would stop the crawl.
    let log = std::fs::File::create(dir.path().join("log.txt")).unwrap();
    let mut child =
        in_sessions(dir.path(), &site, &proxies).stdout(Stdio::null()).stderr(log).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while site.requests().len() < 200 && child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "{} requests came", site.requests().len());
        std::thread::sleep(Duration::from_millis(3));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = site.requests().len();

    let said = run(&mut in_sessions(dir.path(), &site, &proxies));
    assert_eq!(said.code, Some(0), "{said:?}");
    let out = dir.path().join("out");
    assert_eq!(field(&lines(out.join("pages.jsonl")), "url").len(), PAGES + 1, "{said:?}");
    let after = &site.requests()[before..];
    assert!(after.len() > 100, "{}", after.len());
    let strangers: Vec<&str> = after
        .iter()
        .filter(|seen| seen.request.header("cookie").is_none())
        .map(|seen| seen.request.path())
        .collect();
    assert!(strangers.is_empty(), "visitors that the site does not know after the restart: {strangers:?}");
    assert!(site.requests().iter().all(|seen| seen.request.header("proxy-authorization").is_none()));
    let stats = &report(&out)["stats"];
    assert!(stats["session/created"].as_u64().is_some_and(|created| (3..=6).contains(&created)), "{stats}");
    assert!(stats["proxy/failures/407"].as_u64().is_some_and(|count| count >= 1), "{stats}");

    let files = files(dir.path());
    assert!(files.len() > 5, "{files:?}");
    for secret in ["HUSHHUSH", "zorro", "em9ycm86SFVTSEhVU0g"] {
        let has = |bytes: &[u8]| bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
        for file in &files {
            assert!(!has(&std::fs::read(file).unwrap()), "{} has {secret}", file.display());
        }
        for told in [&said.stdout, &said.stderr] {
            assert!(!has(told.as_bytes()), "{secret}: {told}");
        }
    }
}
