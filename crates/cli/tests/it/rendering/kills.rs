//! The browser, or the crawler, is killed at random moments: no page is lost or comes twice, and nothing is left behind.
//!
//! `HUNTSMAN_RENDER_KILLS=100` for a long run, and `HUNTSMAN_SEED` for one that was seen before.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use huntsman_testkit::{Answer, RunningSite, Site};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng};

use super::TRUSTED;
use crate::common::{crawl, field, lines, report};

const PAGES: usize = 40;
const PATIENCE: Duration = Duration::from_secs(120);

/// Pages that need the browser, each with a request of its own.
fn site() -> RunningSite {
    let links: String = (1..PAGES).map(|n| format!("<a href=/{n}>{n}</a>")).collect();
    let script = "fetch('/data' + location.pathname).then(a => a.text()).then(t => document.body.append(t))";
    Site::builder()
        .page("/", links)
        .answer("/s.js", Answer::text(script).header("Content-Type", "text/javascript"))
        .route("/data/*", |asked| Answer::text(format!("text of {}", asked.path())))
        .route("/*", |_| Answer::html("<p></p><script src=/s.js></script>"))
        .start_blocking()
}

/// A crawl whose browser has its profile below the folder.
fn rendered(folder: &Path, site: &RunningSite) -> Command {
    let mut command = crawl(folder, site);
    command
        .args(TRUSTED)
        .args(["--render", "--store", "redb", "--set", "render_pages=2", "--set", "job_commit_interval=0.2"])
        .env("TMPDIR", folder.join("tmp"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

pub(super) fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// How often, and by which chance.
pub(super) fn chance() -> (usize, StdRng) {
    let kills = setting("HUNTSMAN_RENDER_KILLS").unwrap_or(5);
    let seed = setting("HUNTSMAN_SEED").unwrap_or_else(rand::random);
    println!("seed {seed} (HUNTSMAN_SEED), {kills} kills (HUNTSMAN_RENDER_KILLS)");
    (usize::try_from(kills).unwrap(), StdRng::seed_from_u64(seed))
}

/// The processes whose command line names the folder, as their profile is there.
fn browsers(folder: &Path) -> Vec<u32> {
    let folder = folder.join("tmp").to_string_lossy().into_owned();
    let ids = fs::read_dir("/proc").unwrap().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let names = |id: &u32| {
        fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|line| {
            let line = String::from_utf8_lossy(&line);
            line.contains(&format!("--user-data-dir={folder}"))
        })
    };
    ids.filter(names).collect()
}

/// Waits until the site was asked for some more, but fewer than `most`, for a while after that, or until the crawl has ended.
pub(super) fn wait(site: &RunningSite, most: usize, child: &mut Child, random: &mut StdRng) {
    let mut came = site.requests().len();
    let more = came + random.random_range(1..most);
    let mut deadline = Instant::now() + PATIENCE;
    while came < more && child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "nothing comes behind {came} requests");
        std::thread::sleep(Duration::from_millis(1));
        let now = site.requests().len();
        if now > came {
            (came, deadline) = (now, Instant::now() + PATIENCE);
        }
    }
    // Not a time in which something has to happen, but a moment by chance.
    std::thread::sleep(Duration::from_millis(random.random_range(0..60)));
}

/// All pages were delivered once, or are recorded as lost, and nothing is left of the browser.
fn assert_whole(folder: &Path, site: &RunningSite) {
    let out = folder.join("out");
    let pages = lines(out.join("pages.jsonl"));
    let urls = field(&pages, "url");
    let lost = field(&lines(out.join("drops.jsonl")), "url");
    let all: BTreeSet<String> = (1..PAGES).map(|n| site.url(&format!("/{n}")).to_string()).collect();
    let told: BTreeSet<String> = urls.iter().chain(&lost).cloned().collect();
    assert!(all.iter().all(|url| told.contains(url)), "missing: {:?}", all.difference(&told));
    assert_eq!(urls.iter().collect::<BTreeSet<_>>().len(), urls.len(), "twice: {urls:?}");
    assert!(pages.iter().all(|page| page["render"].is_object()), "neither rendered nor marked: {pages:?}");
    let deadline = Instant::now() + PATIENCE;
    while !browsers(folder).is_empty() {
        assert!(Instant::now() < deadline, "processes are left: {:?}", browsers(folder));
        std::thread::sleep(Duration::from_millis(20));
    }
    let left: Vec<_> = fs::read_dir(folder.join("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "profiles are left: {left:?}");
}

fn kill(id: u32) {
    // It may have ended by itself.
    let _ = Command::new("kill").args(["-KILL", &id.to_string()]).stderr(Stdio::null()).status();
}

#[test]
fn a_browser_that_is_killed_at_any_moment_costs_no_page() {
    let (kills, mut random) = chance();
    let (mut done, mut crashed) = (0, 0);
    while done < kills {
        let (folder, site) = (tempfile::tempdir().unwrap(), site());
        fs::create_dir(folder.path().join("tmp")).unwrap();
        let mut child = rendered(folder.path(), &site).spawn().unwrap();
        while done < kills && child.try_wait().unwrap().is_none() {
            wait(&site, PAGES, &mut child, &mut random);
            let found = browsers(folder.path());
            done += usize::from(!found.is_empty());
            found.into_iter().for_each(kill);
        }
        assert!(child.wait().unwrap().success());
        assert_whole(folder.path(), &site);
        let stats = &report(&folder.path().join("out"))["stats"];
        crashed += stats["render/crashed"].as_u64().unwrap_or(0);
    }
    println!("{done} kills, {crashed} pages that were open");
}

#[test]
fn a_crawler_that_is_killed_at_any_moment_loses_no_page_and_leaves_no_browser() {
    let (kills, mut random) = chance();
    let (mut done, mut crawls, mut asked) = (0, 0, 0);
    while done < kills {
        let (folder, site) = (tempfile::tempdir().unwrap(), site());
        fs::create_dir(folder.path().join("tmp")).unwrap();
        loop {
            let mut child = rendered(folder.path(), &site).spawn().unwrap();
            if done < kills {
                // Half of a crawl on average: it has two requests for each page.
                wait(&site, 2 * PAGES, &mut child, &mut random);
            }
            if done == kills || child.try_wait().unwrap().is_some() {
                assert!(child.wait().unwrap().success());
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            done += 1;
        }
        assert_whole(folder.path(), &site);
        crawls += 1;
        asked += site.requests().len();
    }
    println!("{done} kills in {crawls} crawls of {PAGES} pages, {asked} requests");
}
