//! Crashes and ends: nothing is left behind.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use huntsman_browser::{Browser, Error, Network, Rendering};
use tokio::sync::Semaphore;

use crate::kit::{PATIENCE, Site, run, settings};

const PAGE: &str = "https://a.test/";
/// Tells the test program that it is the crawler that is killed; its folder for profiles.
const CHILD: &str = "HUNTSMAN_TEST_KILLED";

fn site() -> Arc<Site> {
    Site::new().html(PAGE, "<p>there</p>").share()
}

async fn page(browser: &Browser) -> Result<huntsman_browser::Rendered, Error> {
    browser.render(PAGE, &Rendering::default(), site() as Arc<dyn Network>).await
}

/// Browsers whose profiles are in a folder, with all their processes that run.
fn processes(folder: &Path) -> Vec<i32> {
    let folder = folder.to_string_lossy().into_owned();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let group = |id: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let fields: Vec<String> =
            stat.rsplit_once(')')?.1.split_ascii_whitespace().map(str::to_owned).collect();
        (fields[0] != "Z").then(|| fields[2].parse::<i32>().unwrap())
    };
    let ids: Vec<i32> = ids.collect();
    let is_browser = |id: &i32| {
        std::fs::read(format!("/proc/{id}/cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(&folder))
    };
    let groups: Vec<i32> = ids.iter().copied().filter(is_browser).filter_map(group).collect();
    ids.into_iter().filter(|id| group(*id).is_some_and(|group| groups.contains(&group))).collect()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_browser_that_is_closed_leaves_no_process_and_no_folder() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings();
        settings.folder = Some(folder.path().to_owned());
        let browser = Browser::new(settings).unwrap();
        assert!(entries(folder.path()).is_empty(), "nothing is started before the first page");
        page(&browser).await.unwrap();
        assert!(processes(folder.path()).len() > 1 && entries(folder.path()).len() == 1);
        browser.close().await;
        assert_eq!((processes(folder.path()), entries(folder.path())), (vec![], vec![]));
    });
}

#[test]
fn a_browser_that_is_killed_costs_a_crash_and_another_takes_its_place() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings();
        settings.folder = Some(folder.path().to_owned());
        let browser = Browser::new(settings).unwrap();
        let never = Arc::new(Semaphore::new(0));
        for round in 1..=2 {
            let site = Site::new().html(PAGE, "").hold(PAGE, &never).share();
            let (other, network) = (browser.clone(), Arc::clone(&site) as Arc<dyn Network>);
            let open = tokio::spawn(async move { other.render(PAGE, &Rendering::default(), network).await });
            while site.asked().is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            for id in processes(folder.path()) {
                let killed =
                    Command::new("kill").args(["-KILL", &id.to_string()]).stderr(Stdio::null()).status();
                assert!(killed.is_ok());
            }
            let error = open.await.unwrap().unwrap_err();
            assert!(error.is_crash(), "{error:?}");
            assert!(page(&browser).await.unwrap().html.contains("<p>there</p>"));
            let stats = browser.stats().await;
            assert_eq!((stats.crashes, stats.restarts), (round, round));
        }
        browser.close().await;
        assert_eq!((processes(folder.path()), entries(folder.path())), (vec![], vec![]));
    });
}

#[test]
fn a_page_whose_process_is_killed_is_a_crash_and_the_browser_goes_on() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings();
        settings.folder = Some(folder.path().to_owned());
        let browser = Browser::new(settings).unwrap();
        let never = Arc::new(Semaphore::new(0));
        let site = Site::new()
            .html(PAGE, "<script>fetch('/late')</script>")
            .hold("https://a.test/late", &never)
            .share();
        let (other, network) = (browser.clone(), Arc::clone(&site) as Arc<dyn Network>);
        let open = tokio::spawn(async move { other.render(PAGE, &Rendering::default(), network).await });
        while site.asked().len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let has_pages = |id: &i32| {
            let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("--type=renderer")
        };
        for id in processes(folder.path()).into_iter().filter(has_pages) {
            assert!(Command::new("kill").args(["-KILL", &id.to_string()]).status().is_ok());
        }
        let error = open.await.unwrap().unwrap_err();
        assert!(error.is_crash(), "{error:?}");
        assert!(page(&browser).await.unwrap().html.contains("<p>there</p>"));
        let stats = browser.stats().await;
        assert_eq!((stats.crashes, stats.restarts), (1, 0));
        browser.close().await;
    });
}

#[test]
fn a_browser_that_does_not_answer_is_killed() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings();
        settings.folder = Some(folder.path().to_owned());
        settings.answers_within = Duration::from_secs(5);
        let browser = Browser::new(settings).unwrap();
        page(&browser).await.unwrap();
        // What reports crashes is in no group of ours, and ends when the browser is gone, if it may.
        let reports = |id: &i32| {
            let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("crashpad")
        };
        // The process of the page that was closed may be ending, and gone before it is stopped.
        let stop = |id: &i32| {
            let mut kill = Command::new("kill");
            kill.args(["-STOP", &id.to_string()]).stderr(Stdio::null()).status().unwrap().success()
        };
        let stopped: Vec<i32> =
            processes(folder.path()).into_iter().filter(|id| !reports(id) && stop(id)).collect();
        assert!(!stopped.is_empty());
        let error = page(&browser).await.unwrap_err();
        assert!(error.is_crash() && error.to_string().contains("no answer"), "{error}");
        // On a busy machine the new one may be late as well; the old one is gone in any case.
        let _another = page(&browser).await;
        assert!(processes(folder.path()).iter().all(|id| !stopped.contains(id)));
        browser.close().await;
        assert_eq!((processes(folder.path()), entries(folder.path())), (vec![], vec![]));
    });
}

#[test]
fn a_crawler_that_is_killed_takes_its_browser_along_and_the_next_run_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut crawler = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ends::killed", "--ignored", "--nocapture"])
        .env(CHILD, folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("the page is open", || folder.path().join("open").exists());
    assert!(processes(folder.path()).len() > 1);
    crawler.kill().unwrap();
    crawler.wait().unwrap();
    until("the browser ends with its pipe", || processes(folder.path()).is_empty());
    let left = |folder: &Path| entries(folder).into_iter().filter(|path| path.is_dir()).count();
    assert_eq!(left(folder.path()), 1);
    let path = folder.path().to_owned();
    run(async move {
        let mut settings = settings();
        settings.folder = Some(path.clone());
        let (one, other) = (Browser::new(settings.clone()).unwrap(), Browser::new(settings).unwrap());
        page(&one).await.unwrap();
        assert_eq!(left(&path), 1, "that of the dead one is gone");
        page(&other).await.unwrap();
        assert_eq!(left(&path), 2, "that of a living one stays");
        page(&one).await.unwrap();
        one.close().await;
        other.close().await;
        assert_eq!(left(&path), 0);
    });
}

/// The crawler that is killed by the test above.
#[test]
#[ignore = "it is started by another test"]
fn killed() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    run(async move {
        let mut settings = settings();
        settings.folder = Some(PathBuf::from(&folder));
        let browser = Browser::new(settings).unwrap();
        let site = Site::new().html(PAGE, "").hold(PAGE, &Arc::new(Semaphore::new(0))).share();
        let rendering = Rendering::default();
        let open = browser.render(PAGE, &rendering, Arc::clone(&site) as Arc<dyn Network>);
        let told = async {
            while site.asked().is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            std::fs::write(Path::new(&folder).join("open"), "").unwrap();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = open => {}
            () = told => {}
        }
    });
}

#[test]
fn a_browser_that_is_killed_while_it_starts_is_a_crash() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("browser");
        std::fs::write(&program, "#!/bin/sh\nkill -KILL $$\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let mut settings = settings();
        settings.path = Some(program);
        let browser = Browser::new(settings).unwrap();
        let error = page(&browser).await.unwrap_err();
        assert!(error.is_crash(), "{error}");
        assert_eq!(browser.stats().await.crashes, 1);
    });
}

#[test]
fn a_browser_that_is_not_there_or_does_not_start_is_an_error_that_says_what_to_do() {
    run(async {
        let mut settings = settings();
        settings.path = Some("/none/there".into());
        let error = Browser::new(settings.clone()).unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }) && error.to_string().contains("chromium"), "{error}");
        settings.path = Some("/bin/false".into());
        let error = page(&Browser::new(settings).unwrap()).await.unwrap_err();
        assert!(matches!(error, Error::Start { .. }) && error.to_string().contains("/bin/false"), "{error}");
    });
}

#[test]
fn root_has_no_sandbox_and_others_do() {
    let mut settings = settings();
    settings.has_sandbox = true;
    // This test is run again as another user, if there is one and the system has what the sandbox needs.
    let is_root =
        std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if is_root {
        let error = Browser::new(settings).unwrap_err();
        assert!(matches!(&error, Error::Sandbox { reason } if reason.contains("root")), "{error}");
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let copy = folder.path().join("it");
        std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
        for path in [folder.path(), &copy] {
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        }
        let again = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&copy)
            .args(["--exact", "ends::root_has_no_sandbox_and_others_do", "--nocapture"])
            .env("TMPDIR", folder.path())
            .output()
            .unwrap();
        assert!(
            again.status.success(),
            "{}{}",
            String::from_utf8_lossy(&again.stdout),
            String::from_utf8_lossy(&again.stderr)
        );
        return;
    }
    settings.folder = None;
    run(async move {
        match Browser::new(settings) {
            Ok(browser) => {
                let result = page(&browser).await;
                browser.close().await;
                match result {
                    Ok(page) => assert!(page.html.contains("<p>there</p>")),
                    Err(error) => assert!(matches!(error, Error::Sandbox { .. }), "{error}"),
                }
            }
            Err(error) => assert!(
                matches!(&error, Error::Sandbox { reason } if reason.contains("namespaces")),
                "{error}"
            ),
        }
    });
}
