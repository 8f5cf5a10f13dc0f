//! Whole daemons with a stub in place of a project. Dropping a daemon is what a kill does: nothing of it ends in order, and its jobs go on.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};

use huntsman_serve::local::{ClientError, LocalClient};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::*;

/// Longest time that a test waits for something that should happen soon.
const PATIENCE: Duration = Duration::from_secs(30);

/// A directory with the stub.
struct Site {
    dir: TempDir,
}

/// A daemon that runs.
struct Running {
    client: LocalClient,
    folder: PathBuf,
    stop: watch::Sender<Option<StopMode>>,
    task: JoinHandle<()>,
}

impl Site {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let stub = dir.path().join("stub");
        std::fs::write(&stub, include_str!("stub.sh")).unwrap();
        std::fs::set_permissions(&stub, std::fs::Permissions::from_mode(0o700)).unwrap();
        Self { dir }
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("jobs")
    }

    fn config(&self, more: &str) -> Config {
        let text = format!("max_proc = 2\n{more}\n[[project]]\nname = 'stub'\nprogram = 'stub'");
        Config::parse(&text, self.dir.path()).unwrap()
    }

    async fn open(&self, more: &str) -> Result<Daemon, Error> {
        Daemon::open(&self.folder(), self.config(more)).await
    }

    async fn start(&self, more: &str) -> Running {
        let daemon = self.open(more).await.unwrap();
        let (stop, stopped) = watch::channel(None);
        let client = LocalClient::of(&self.folder().join(CONTACT)).unwrap();
        Running { client, folder: self.folder(), stop, task: tokio::spawn(daemon.run(stopped)) }
    }

    /// Changes the file of a daemon that does not run, as a kill at another moment would have left it.
    fn change_job(&self, change: impl FnOnce(&mut Value)) {
        let path = self.folder().join("jobs.json");
        let mut ledger: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(&mut ledger["jobs"][0]);
        std::fs::write(&path, ledger.to_string()).unwrap();
    }
}

impl Running {
    async fn schedule(&self, spider: &str) -> String {
        let order = json!({ "project": "stub", "spider": spider });
        self.client.post("/schedule.json", &order).await.unwrap()["jobid"].as_str().unwrap().to_owned()
    }

    async fn cancel(&self, id: &str) -> Value {
        self.client.post("/cancel.json", &json!({ "job": id })).await.unwrap()
    }

    async fn job(&self, id: &str) -> Value {
        self.client.get(&format!("/status.json?job={id}")).await.unwrap()
    }

    /// Waits until a job is in a state, and returns it.
    async fn wait_for(&self, id: &str, state: &str) -> Value {
        let begun = Instant::now();
        loop {
            let job = self.job(id).await;
            if job["state"] == state {
                return job;
            }
            assert!(begun.elapsed() < PATIENCE, "{state}: {job}, {}", self.log(id));
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until the stub of a job is where it waits.
    async fn wait_for_stub(&self, id: &str) -> Value {
        let job = self.wait_for(id, "running").await;
        let begun = Instant::now();
        while !self.folder.join("jobs").join(id).join("crawl/waits").exists() {
            assert!(begun.elapsed() < PATIENCE, "{}", self.log(id));
            sleep(Duration::from_millis(5)).await;
        }
        job
    }

    fn log(&self, id: &str) -> String {
        std::fs::read_to_string(crate::log_file(&self.folder, id).unwrap()).unwrap_or_default()
    }

    /// Ends the daemon as a kill does.
    async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    async fn stop(self) {
        self.stop.send(Some(StopMode::Graceful)).unwrap();
        self.task.await.unwrap();
    }

    /// Status and body of a request with these lines of its head; the token is in the place of `TOKEN`.
    async fn raw(&self, first: &str, lines: &str) -> (u16, String) {
        let contact: Value =
            serde_json::from_slice(&std::fs::read(self.folder.join(CONTACT)).unwrap()).unwrap();
        let lines = lines.replace("TOKEN", contact["token"].as_str().unwrap());
        let mut stream = TcpStream::connect(self.client.address()).await.unwrap();
        let head = format!("{first} HTTP/1.1\r\nConnection: close\r\n{lines}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }
}

#[tokio::test]
async fn a_job_runs_with_its_arguments_and_leaves_log_items_and_result() {
    let site = Site::new();
    let daemon = site.start("").await;
    let client = &daemon.client;
    assert_eq!(client.get("/listprojects.json").await.unwrap()["projects"], json!(["stub"]));
    let spiders = client.get("/listspiders.json?project=stub").await.unwrap();
    assert_eq!(spiders["spiders"], json!(["quick", "fail", "slow", "deaf", "twice"]));
    let order = json!({ "project": "stub", "spider": "quick", "args": { "shelf": "a b", "pages": 3 },
        "settings": { "download_delay": 0.5 } });
    let answer = client.post("/schedule.json", &order).await.unwrap();
    let id = answer["jobid"].as_str().unwrap().to_owned();
    let job = daemon.wait_for(&id, "finished").await;
    assert_eq!((&job["exit_code"], &job["is_good"]), (&json!(0), &json!(true)), "{job}");
    let expected = "arguments: --control --argument=pages=3 --argument=shelf=a b --set=download_delay=0.5\n";
    assert_eq!(daemon.log(&id), expected);

    let host = format!("Host: {}\r\nAuthorization: Bearer TOKEN\r\n", client.address());
    let items = "{\"n\":1}\n{\"n\":2}\n";
    for (range, status, body) in [
        ("", 200, items),
        ("Range: bytes=8-\r\n", 206, &items[8..]),
        ("Range: bytes=-3\r\n", 206, &items[13..]),
        ("Range: bytes=2-4\r\n", 206, &items[2..5]),
    ] {
        let answer = daemon.raw(&format!("GET /api/items/{id}"), &format!("{host}{range}")).await;
        assert_eq!(answer, (status, body.to_owned()), "{range}");
    }
    let beyond = daemon.raw(&format!("GET /api/items/{id}"), &format!("{host}Range: bytes=99-\r\n")).await;
    assert!(beyond.0 == 416 && beyond.1.contains("16 bytes"), "{beyond:?}");
    assert_eq!(daemon.raw(&format!("GET /api/logs/{id}"), &host).await, (200, expected.to_owned()));

    let failed = daemon.schedule("fail").await;
    let job = daemon.wait_for(&failed, "finished").await;
    assert_eq!((&job["exit_code"], &job["is_good"], &job["deaths"]), (&json!(1), &json!(false), &json!(0)));
    let all = client.get("/listjobs.json?spider=fail&limit=1").await.unwrap();
    assert_eq!((all["finished"].as_array().map(Vec::len), &all["finished_total"]), (Some(1), &json!(1)));
    let status = client.get("/daemonstatus.json").await.unwrap();
    assert_eq!((&status["finished"], &status["time_zone"]), (&json!(2), &json!("UTC")));
    daemon.stop().await;
    assert!(!site.folder().join(CONTACT).exists(), "the token goes with the daemon");
}

#[tokio::test]
async fn requests_that_may_not_be_are_refused_and_start_nothing() {
    let site = Site::new();
    let daemon = site.start("max_pending = 0").await;
    let (client, host) = (&daemon.client, format!("Host: {}\r\n", daemon.client.address()));
    let token = "Authorization: Bearer TOKEN\r\n";
    for (lines, status) in [
        (format!("{host}{token}"), 200),
        (host.clone(), 401),
        (format!("{host}Authorization: Bearer {}\r\n", "0".repeat(64)), 401),
        (format!("Host: evil.example\r\n{token}"), 421),
        (format!("{host}{token}Origin: https://evil.example\r\n"), 403),
        (format!("{host}{token}Sec-Fetch-Site: cross-site\r\n"), 403),
    ] {
        assert_eq!(daemon.raw("GET /api/listjobs.json", &lines).await.0, status, "{lines}");
    }
    let admitted = format!("{host}{token}");
    for path in ["..%2F..%2Fetc%2Fpasswd", "%2e%2e", "../../lock", "20261123T000000-1%2F..%2F..%2Flock", ".."]
    {
        for kind in ["logs", "items", "reports"] {
            let (status, body) = daemon.raw(&format!("GET /api/{kind}/{path}"), &admitted).await;
            assert!(status == 404 && body.contains("error"), "{kind}/{path}: {status} {body}");
        }
    }
    for (order, status, part) in [
        (json!({ "project": "stub", "spider": "quik" }), 404, "did you mean quick?"),
        (json!({ "project": "../stub", "spider": "quick" }), 404, "the configuration has stub"),
        (json!({ "project": "stub", "spider": "quick", "args": { "a": [] } }), 400, "argument a"),
        (json!({ "project": "stub", "spider": "quick", "program": "/bin/sh" }), 400, "unknown field"),
        (json!({ "project": "stub" }), 400, "spider"),
        (json!({ "project": "stub", "spider": "quick" }), 503, "max_pending"),
    ] {
        match client.post("/schedule.json", &order).await {
            Err(ClientError::Refused(found, why)) => {
                assert!(found == status && why.contains(part), "{order}: {found} {why}");
            }
            other => panic!("{order}: {other:?}"),
        }
    }
    let unknown = client.post("/cancel.json", &json!({ "job": "x" })).await.unwrap_err().to_string();
    assert!(unknown.contains("listjobs.json"), "{unknown}");
    assert_eq!(client.get("/listjobs.json").await.unwrap()["finished_total"], 0);
    daemon.stop().await;
}

#[tokio::test]
async fn the_first_cancellation_asks_and_the_second_one_kills() {
    let site = Site::new();
    let daemon = site.start("").await;
    let slow = daemon.schedule("slow").await;
    let deaf = daemon.schedule("deaf").await;
    let waits = daemon.schedule("quick").await;
    daemon.wait_for_stub(&slow).await;
    daemon.wait_for_stub(&deaf).await;
    assert_eq!(daemon.job(&waits).await["state"], "pending", "max_proc is 2");
    assert_eq!(daemon.cancel(&waits).await["prevstate"], "pending");
    assert_eq!(daemon.cancel(&slow).await["prevstate"], "running");
    let job = daemon.wait_for(&slow, "finished").await;
    assert_eq!((&job["exit_code"], &job["reason"]), (&json!(130), &json!("cancelled")));
    daemon.cancel(&deaf).await;
    assert_eq!(daemon.job(&deaf).await["state"], "running");
    assert!(daemon.cancel(&deaf).await["message"].as_str().unwrap().contains("killed"));
    let job = daemon.wait_for(&deaf, "finished").await;
    assert_eq!((&job["signal"], &job["reason"]), (&json!(9), &json!("cancelled")));
    assert_eq!(daemon.cancel(&deaf).await["prevstate"], "finished");
    daemon.stop().await;
}

#[tokio::test]
async fn a_second_daemon_on_one_directory_is_refused_and_the_first_one_goes_on() {
    let site = Site::new();
    let daemon = site.start("").await;
    let error = site.open("").await.unwrap_err();
    assert!(matches!(error, Error::InUse(_)) && error.to_string().contains("another daemon"), "{error}");
    let id = daemon.schedule("quick").await;
    daemon.wait_for(&id, "finished").await;
    daemon.stop().await;
    site.start("").await.stop().await;
}

#[tokio::test]
async fn a_stop_ends_jobs_gently_and_the_next_daemon_goes_on_with_them() {
    let site = Site::new();
    let daemon = site.start("").await;
    let id = daemon.schedule("twice").await;
    daemon.wait_for_stub(&id).await;
    daemon.stop().await;
    let daemon = site.start("").await;
    let job = daemon.wait_for(&id, "finished").await;
    assert_eq!((&job["exit_code"], &job["deaths"]), (&json!(0), &json!(0)));
    assert_eq!(daemon.log(&id).lines().count(), 2, "both runs are in the log: {}", daemon.log(&id));
    daemon.stop().await;
}

#[tokio::test]
async fn a_second_signal_ends_a_job_that_does_not_hear_the_first() {
    let site = Site::new();
    let daemon = site.start("stop_time = 0").await;
    let id = daemon.schedule("deaf").await;
    daemon.wait_for_stub(&id).await;
    let begun = Instant::now();
    daemon.stop().await;
    assert!(begun.elapsed() >= LAST_STEP && begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    let ledger = Ledger::read(&site.folder().join("jobs.json")).unwrap();
    assert_eq!((ledger.jobs[0].state, ledger.jobs[0].deaths), (State::Pending, 0));
}

#[tokio::test]
async fn a_job_that_survives_a_kill_of_the_daemon_is_found_again() {
    let site = Site::new();
    let daemon = site.start("").await;
    let id = daemon.schedule("slow").await;
    let pid = daemon.wait_for_stub(&id).await["pid"].clone();
    daemon.kill().await;
    let daemon = site.start("").await;
    assert_eq!(daemon.wait_for(&id, "running").await["pid"], pid);
    daemon.kill().await;

    // Killed between the start of the process and the note of its number.
    site.change_job(|job| job["process"] = Value::Null);
    let daemon = site.start("").await;
    assert_eq!(daemon.wait_for(&id, "running").await["pid"], pid);
    daemon.kill().await;

    // Killed between the note of a cancellation and its signal.
    site.change_job(|job| job["cancel"] = json!("gently"));
    let daemon = site.start("").await;
    let job = daemon.wait_for(&id, "finished").await;
    assert_eq!((&job["exit_code"], &job["deaths"]), (&Value::Null, &json!(0)), "{job}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_job_whose_process_died_with_the_daemon_goes_on_or_has_failed_as_the_limit_says() {
    let site = Site::new();
    let daemon = site.start("").await;
    let id = daemon.schedule("twice").await;
    daemon.wait_for_stub(&id).await;
    let process = site_process(&site);
    daemon.kill().await;
    process.kill().unwrap();
    process.ended().await;
    let saved = std::fs::read(site.folder().join("jobs.json")).unwrap();
    for (limit, exit_code, deaths) in [("resume = 1", json!(0), 1), ("resume = 0", Value::Null, 0)] {
        std::fs::write(site.folder().join("jobs.json"), &saved).unwrap();
        let daemon = site.start(limit).await;
        let job = daemon.wait_for(&id, "finished").await;
        assert_eq!((&job["exit_code"], &job["deaths"]), (&exit_code, &json!(deaths)), "{limit}: {job}");
        daemon.stop().await;
    }
    // Killed between the note that the job starts and its start.
    std::fs::write(site.folder().join("jobs.json"), &saved).unwrap();
    site.change_job(|job| job["process"] = Value::Null);
    let daemon = site.start("").await;
    assert_eq!(daemon.wait_for(&id, "finished").await["exit_code"], 0);
    daemon.stop().await;
}

fn site_process(site: &Site) -> ProcessId {
    let ledger = Ledger::read(&site.folder().join("jobs.json")).unwrap();
    ledger.jobs[0].process.clone().expect("the number of the process is noted")
}

#[tokio::test]
async fn a_job_is_not_accepted_if_the_queue_cannot_be_written() {
    let site = Site::new();
    let daemon = site.start("").await;
    let first = daemon.schedule("quick").await;
    daemon.wait_for(&first, "finished").await;
    let path = site.folder().join("jobs.json");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir_all(path.join("in the way")).unwrap();
    let order = json!({ "project": "stub", "spider": "quick" });
    let error = daemon.client.post("/schedule.json", &order).await.unwrap_err();
    assert!(matches!(&error, ClientError::Refused(500, why) if why.contains("nothing was done")), "{error}");
    std::fs::remove_dir_all(&path).unwrap();
    let id = daemon.schedule("quick").await;
    daemon.wait_for(&id, "finished").await;
    assert_eq!(daemon.client.get("/listjobs.json").await.unwrap()["finished_total"], 2);
    daemon.stop().await;
}

#[tokio::test]
async fn old_directories_are_deleted_also_after_a_kill() {
    let site = Site::new();
    let daemon = site.start("keep = 1").await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(daemon.schedule("quick").await);
        daemon.wait_for(ids.last().unwrap(), "finished").await;
    }
    let folder = |id: &str| site.folder().join("jobs").join(id);
    assert!(folder(&ids[1]).exists());
    let gone = daemon.client.get(&format!("/logs/{}", ids[0])).await.unwrap_err();
    assert!(matches!(&gone, ClientError::Refused(410, why) if why.contains("`keep`")), "{gone}");
    daemon.stop().await;
    assert!(!folder(&ids[0]).exists());
    // As if the daemon had been killed before it deleted them; what is not a job of it stays.
    for name in [&ids[0], "20200101T000000-7", "mine"] {
        std::fs::create_dir(folder(name)).unwrap();
    }
    site.start("keep = 1").await.stop().await;
    let mut left: Vec<String> = std::fs::read_dir(site.folder().join("jobs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, [ids[1].clone(), "mine".to_owned()]);
}

#[tokio::test]
async fn a_schedule_that_names_what_there_is_not_is_refused_at_the_start() {
    let site = Site::new();
    for (line, part) in [
        ("project = 'stub'\nspider = 'quik'", "did you mean quick?"),
        ("project = 'stob'\nspider = 'quick'", "there is no project"),
    ] {
        let error =
            site.open(&format!("[[schedule]]\n{line}\ncron = '@daily'")).await.unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("@daily"), "{error}");
    }
}

/// An owner whose clock is set by the test and that starts no processes.
fn owner(site: &Site, zone: &str, more: &str) -> (Owner, Arc<AtomicI64>) {
    let line = format!("[[schedule]]\nname = 'line'\nproject = 'stub'\nspider = 'quick'\n{more}");
    let mut config = site.config(&line);
    config.zone = jiff::tz::TimeZone::posix(zone).unwrap();
    let now = Arc::new(AtomicI64::new(0));
    let clock = Arc::clone(&now);
    std::fs::create_dir_all(site.folder()).unwrap();
    let owner = Owner {
        projects: Arc::new(Projects::new(&config)),
        config: Arc::new(config),
        places: Places::new(site.folder()),
        ledger: Ledger::default(),
        clock: Box::new(move || Timestamp::from_second(clock.load(Ordering::Relaxed)).unwrap()),
        processes: JoinSet::new(),
        is_unsaved: false,
        stopping: None,
    };
    (owner, now)
}

fn set(clock: &AtomicI64, time: &str) {
    clock.store(time.parse::<Timestamp>().unwrap().as_second(), Ordering::Relaxed);
}

impl Owner {
    fn orders(&self) -> Vec<String> {
        self.ledger.jobs.iter().map(|job| job.created.to_string()).collect()
    }

    fn end_all(&mut self) {
        let ids: Vec<String> = self.ledger.jobs.iter().map(|job| job.id.clone()).collect();
        for id in ids {
            self.ledger.cancel(&id, self.now());
        }
    }
}

#[tokio::test]
async fn lines_of_cron_order_jobs_on_time_through_changes_of_the_clock_and_leap_days() {
    let site = Site::new();
    // The two changes of 2028 in Berlin, and the leap day between New Year and the first.
    let (mut owner, clock) = owner(&site, "CET-1CEST,M3.5.0,M10.5.0/3", "cron = '30 2 * * *'");
    let (mut time, end): (Timestamp, Timestamp) =
        ("2028-01-01T00:00:00Z".parse().unwrap(), "2029-01-01T00:00:00Z".parse().unwrap());
    clock.store(time.as_second(), Ordering::Relaxed);
    owner.recover().await;
    while time < end {
        clock.store(time.as_second(), Ordering::Relaxed);
        let line = owner.config.lines[0].clone();
        if owner.fire(&line) {
            owner.end_all();
        }
        let pause = owner.pause();
        assert!(pause <= LOOK, "{pause:?}");
        time += SignedDuration::from_mins(15);
    }
    let orders = owner.orders();
    assert_eq!(orders.len(), 366, "each day once");
    for expected in [
        "2028-02-29T01:30:00Z",
        "2028-03-26T01:30:00Z",
        "2028-03-27T00:30:00Z",
        "2028-10-29T00:30:00Z",
        "2028-10-30T01:30:00Z",
    ] {
        assert!(orders.iter().any(|order| order == expected), "{expected}");
    }
    assert_eq!(owner.ledger.lines["line"].left_out, 0);
}

#[tokio::test]
async fn runs_that_were_missed_are_counted_and_made_up_for_once_if_the_line_says_so() {
    for (missed, jobs, left_out) in [("skip", 0, 3), ("run", 1, 2)] {
        let site = Site::new();
        let (mut owner, clock) = owner(&site, "UTC0", &format!("cron = '0 3 * * *'\nmissed = '{missed}'"));
        set(&clock, "2026-11-20T12:00:00Z");
        owner.recover().await;
        set(&clock, "2026-11-23T09:00:00Z");
        owner.fire_lines().await;
        owner.fire_lines().await;
        assert_eq!((owner.orders().len(), owner.ledger.lines["line"].left_out), (jobs, left_out), "{missed}");
        // Who looks a little late has missed nothing.
        owner.end_all();
        set(&clock, "2026-11-24T03:01:30Z");
        owner.fire_lines().await;
        assert_eq!((owner.orders().len(), owner.ledger.lines["line"].left_out), (jobs + 1, left_out));
    }
}

#[tokio::test]
async fn a_run_that_meets_the_last_one_is_left_out_or_waits() {
    for (overlap, expected) in [("skip", 1), ("queue", 2)] {
        let site = Site::new();
        let (mut owner, clock) = owner(&site, "UTC0", &format!("cron = '0 * * * *'\noverlap = '{overlap}'"));
        set(&clock, "2026-11-23T09:30:00Z");
        owner.recover().await;
        for hour in 10..14 {
            set(&clock, &format!("2026-11-23T{hour}:00:00Z"));
            owner.fire_lines().await;
            if hour == 10 {
                let (id, now) = (owner.ledger.jobs[0].id.clone(), owner.now());
                owner.ledger.begin(&id, now);
            }
        }
        assert_eq!(owner.orders().len(), expected, "{overlap}");
        assert_eq!(owner.ledger.lines["line"].left_out, 4 - expected as u64);
    }
}

#[tokio::test]
async fn a_line_survives_a_clock_that_was_in_the_future() {
    let site = Site::new();
    let (mut owner, clock) = owner(&site, "UTC0", "cron = '0 * * * *'");
    set(&clock, "2040-01-01T00:30:00Z");
    owner.recover().await;
    set(&clock, "2026-11-23T09:30:00Z");
    owner.recover().await;
    set(&clock, "2026-11-23T10:00:00Z");
    owner.fire_lines().await;
    assert_eq!(owner.orders(), ["2026-11-23T10:00:00Z"]);
}
