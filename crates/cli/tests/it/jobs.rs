//! `serve jobs` and `jobs`: real crawls of spider files as jobs of a real daemon, which is killed and stopped.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use huntsman_testkit::browser::Browser;
use huntsman_testkit::{Answer, Gate, RunningSite, Site};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Said, huntsman, run, wait_for};

const PATIENCE: Duration = Duration::from_secs(60);

/// `/` links to `/1` and to a page that waits for a gate.
fn site(gate: &Gate) -> RunningSite {
    Site::builder()
        .page("/", "<h1>Start</h1><a href='/1'>1</a> <a href='/slow'>s</a>")
        .page("/1", "<h1>One</h1>")
        .answer("/slow", Answer::html("<h1>Slow</h1>").behind(gate))
        .route("/*", |_| Answer::status(404))
        .start_blocking()
}

/// A folder with a configuration, whose project has a spider for the site.
fn folder(site: &RunningSite, more: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| std::fs::write(dir.path().join(name), text).unwrap();
    let spider = format!(
        "name = \"titles\"\nstart = \"{}\"\nallowed_domains = \"127.0.0.1\"\n[[rules]]\nallow = \"/\"\n\
         [items.page]\nrule = [\"start\", \"follow\"]\n[items.page.fields]\ntitle = \"h1::text\"\n",
        site.url("/")
    );
    write("titles.toml", spider);
    let settings = format!("allow_addresses = [\"127.0.0.1:{}\"]\ndownload_delay = 0\n", site.port());
    write("huntsman.toml", settings);
    write("jobs.toml", format!("{more}\n[[project]]\nname = 'news'\nfiles = ['titles.toml']\n"));
    dir
}

/// A daemon that listens. It is killed when this value is dropped, if it was not stopped.
struct Daemon(Child);

impl Daemon {
    fn start(dir: &Path) -> Self {
        let mut command = huntsman(dir);
        command.args(["serve", "jobs", "--config", "jobs.toml", "-L", "warn"]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let first = lines.next().expect("the daemon says its address").unwrap();
        assert!(first.starts_with("jobs on http://127.0.0.1:"), "{first}");
        std::thread::spawn(move || lines.for_each(drop));
        Self(child)
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    fn stop(mut self) -> Option<i32> {
        run(Command::new("kill").args(["-TERM", &self.0.id().to_string()]));
        self.0.wait().unwrap().code()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn jobs(dir: &Path, words: &[&str]) -> Said {
    run(huntsman(dir).arg("jobs").args(words))
}

fn schedule(dir: &Path) -> String {
    let said = jobs(dir, &["schedule", "news", "titles", "-s", "log_level=warn"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    said.stdout.trim().to_owned()
}

/// Waits until a job is as wanted.
fn wait_until(dir: &Path, id: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let said = jobs(dir, &["show", id, "--json"]);
        let job: Value =
            serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        if is_wanted(&job) {
            return job;
        }
        assert!(begun.elapsed() < PATIENCE, "{job}: {}", jobs(dir, &["log", id]).stdout);
    }
}

fn is_finished(job: &Value) -> bool {
    job["state"] == "finished"
}

#[test]
fn a_crawl_goes_on_while_the_daemon_is_killed_and_its_successor_sees_its_end() {
    let gate = Gate::default();
    let site = site(&gate);
    let dir = folder(&site, "");
    let dir = dir.path();
    let missing = jobs(dir, &["status"]);
    assert!(missing.code == Some(1) && missing.stderr.contains("no daemon of jobs runs"), "{missing:?}");
    let daemon = Daemon::start(dir);
    let second = run(huntsman(dir).args(["serve", "jobs"]));
    assert!(second.code == Some(1) && second.stderr.contains("another daemon"), "{second:?}");
    let id = schedule(dir);
    wait_for(&site, "/slow");
    let pid = wait_until(dir, &id, |job| job["pages"] == 2)["pid"].clone();
    daemon.kill();

    let daemon = Daemon::start(dir);
    assert_eq!(wait_until(dir, &id, |job| job["state"] == "running")["pid"], pid);
    gate.open();
    let job = wait_until(dir, &id, is_finished);
    assert_eq!((&job["reason"], &job["pages"], &job["items"]), (&"finished".into(), &3.into(), &3.into()));
    let titles = jobs(dir, &["items", &id]).stdout;
    assert!(titles.lines().count() == 3 && titles.contains("Slow"), "{titles}");
    assert!(jobs(dir, &["list"]).stdout.contains(&id) && site.count("/1") == 1);
    assert_eq!(daemon.stop(), Some(130));
}

#[test]
fn sigterm_stops_the_crawls_and_the_next_daemon_goes_on_with_them() {
    let gate = Gate::default();
    let site = site(&gate);
    let dir = folder(&site, "[[schedule]]\nproject = 'news'\nspider = 'titles'\ncron = '0 3 29 2 *'");
    let dir = dir.path();
    let daemon = Daemon::start(dir);
    assert!(jobs(dir, &["schedules"]).stdout.contains("-02-29T03:00:00Z"));
    let unknown = jobs(dir, &["schedule", "news", "tittles"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("did you mean titles?"), "{unknown:?}");
    let id = schedule(dir);
    wait_for(&site, "/slow");
    wait_until(dir, &id, |job| job["pages"] == 2);
    // The page in flight may end within `drain_timeout`.
    gate.open();
    assert_eq!(daemon.stop(), Some(130));
    let daemon = Daemon::start(dir);
    let job = wait_until(dir, &id, is_finished);
    assert_eq!((&job["exit_code"], &job["deaths"]), (&0.into(), &0.into()), "{job}");
    assert_eq!(jobs(dir, &["items", &id]).stdout.lines().count(), 3);
    assert_eq!((site.count("/"), site.count("/1"), site.count("/slow")), (1, 1, 1));
    drop(daemon);
}

#[test]
fn a_browser_schedules_a_job_and_opens_its_crawl_and_its_log() {
    let gate = Gate::default();
    let site = site(&gate);
    let dir = folder(&site, "");
    let dir = dir.path();
    let _daemon = Daemon::start(dir);
    let browser = Browser::start();
    browser.open(jobs(dir, &["open"]).stdout.trim());
    browser.wait_for("#state.running");
    let begun = Instant::now();
    while browser.text("#spider") != "titles" {
        assert!(begun.elapsed() < PATIENCE, "{}", browser.text("#message"));
    }
    browser.click("#schedule");
    wait_for(&site, "/slow");
    browser.wait_for("#running-jobs tbody button:enabled");
    let page = browser.url();
    browser.click("#running-jobs tbody button:enabled");
    // The page of the crawl has another port.
    browser.wait_for("#hosts tbody tr");
    assert!(browser.url() != page && browser.text("#hosts").contains("127.0.0.1"), "{}", browser.url());
    gate.open();
    let list: Value = serde_json::from_str(&jobs(dir, &["list", "--json"]).stdout).unwrap();
    let lists = ["running", "finished"].map(|list_name| list[list_name][0]["id"].as_str().map(str::to_owned));
    let id = lists.into_iter().flatten().next().expect("the job is listed");
    wait_until(dir, &id, is_finished);
    browser.open(jobs(dir, &["open"]).stdout.trim());
    browser.wait_for("#finished-jobs .finished");
    browser.click("#finished-jobs tbody button");
    browser.wait_for("#text");
    assert!(browser.text("#text-title").contains(&id), "{}", browser.text("#text-title"));
}
