//! Looking at a running crawl and steering it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use huntsman::store::Backend;
use huntsman::{Addition, CrawlState, Crawler, HostKey, HostStatus, Job, Politeness, Request};
use huntsman_testkit::ScriptedDownloader;

use super::support::{Log, links, polite, tree};

fn request(url: &str) -> Request {
    Request::parse(url).unwrap()
}

/// A crawl of 15 pages of a.test, one each ten seconds.
fn slow(log: &Log) -> (Crawler, ScriptedDownloader) {
    let web = ScriptedDownloader::pages(tree("a.test", 15));
    let crawl = polite(links(["http://a.test/0"]), &web).set("robotstxt_obey", false).set("scope", "host");
    let crawl = crawl.set("download_delay", 10.0).set("download_delay_jitter", 0.0).observer(log.clone());
    (crawl.build().unwrap(), web)
}

fn named<'a>(hosts: &'a [HostStatus], name: &str) -> &'a HostStatus {
    hosts.iter().find(|host| host.report.host == name).unwrap_or_else(|| panic!("{name} in {hosts:?}"))
}

#[tokio::test(start_paused = true)]
async fn a_paused_crawl_fetches_nothing_until_it_is_resumed() {
    let log = Log::default();
    let (crawler, web) = slow(&log);
    let handle = crawler.handle();
    let running = tokio::spawn(crawler.run());
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!((handle.status().await.state, handle.status().await.pages), (CrawlState::Running, 3));
    handle.pause();
    assert_eq!(handle.status().await.state, CrawlState::Paused);
    tokio::time::sleep(Duration::from_secs(10_000)).await;
    assert_eq!(web.urls().len(), 3, "nothing is fetched, and nothing that waits is dropped");
    assert_eq!(handle.status().await.queued, 4);
    handle.resume();
    let report = running.await.unwrap().unwrap();
    assert_eq!((report.pages, report.finish_reason.as_str()), (15, "finished"));
    assert_eq!(handle.status().await.state, CrawlState::Ended, "a handle may outlive its crawl");
}

/// Copies a folder as it is at this moment, which is what a kill of the process would leave behind.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_killed_while_it_is_paused_goes_on_with_nothing_lost() {
    let dir = tempfile::tempdir().unwrap();
    let web = ScriptedDownloader::pages(tree("a.test", 15));
    let crawl = |job: &Path| {
        let crawl = polite(links(["http://a.test/0"]), &web).set("robotstxt_obey", false);
        crawl.set("download_delay", 10.0).job(Job::open(job, Backend::Redb).unwrap())
    };
    let (job, killed) = (dir.path().join("job"), dir.path().join("killed"));
    let crawler = crawl(&job).build().unwrap();
    let handle = crawler.handle();
    let running = tokio::spawn(crawler.run());
    tokio::time::sleep(Duration::from_secs(35)).await;
    handle.pause();
    let before = handle.status().await.pages;
    // Commits go on while the crawl is paused.
    tokio::time::sleep(Duration::from_secs(60)).await;
    copy(&job, &killed);
    handle.abort();
    running.await.unwrap().unwrap();
    let report = crawl(&killed).run().await.unwrap();
    assert!((2..15).contains(&before) && report.pages == 15, "{before}, {}", report.pages);
    let mut urls = web.urls();
    urls.sort();
    urls.dedup();
    assert_eq!((urls.len(), web.urls().len()), (15, 15), "each page was fetched once");
}

#[tokio::test(start_paused = true)]
async fn hosts_show_queue_delay_and_last_error_and_obey_new_rules() {
    let log = Log::default();
    let (crawler, web) = slow(&log);
    let handle = crawler.handle();
    let running = tokio::spawn(crawler.run());
    tokio::time::sleep(Duration::from_secs(15)).await;
    let hosts = handle.host_list(10).await;
    let host = named(&hosts, "a.test");
    assert_eq!((host.report.queued, host.report.requests, host.report.delay_s), (3, 2, 10.0));
    assert_eq!((host.report.state, host.concurrency, host.in_flight), ("active", Some(1), 0));
    let next: Vec<String> = handle.peek(None, 2).await.into_iter().map(|request| request.url).collect();
    assert_eq!(next, ["http://a.test/2", "http://a.test/3"], "two of three");

    let key = HostKey::new("a.test");
    handle.context().set_politeness(&key, Politeness::Delay(Duration::from_secs(1))).await;
    assert_eq!(named(&handle.host_list(10).await, "a.test").report.delay_s, 1.0);
    running.await.unwrap().unwrap();
    let starts = web.starts("a.test");
    assert!(starts[14] - starts[2] <= Duration::from_secs(13), "{starts:?}");
    assert!(handle.host_list(10).await.is_empty() && handle.peek(None, 9).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_added_url_passes_the_scope_and_the_filter_of_duplicates() {
    let log = Log::default();
    let (crawler, web) = slow(&log);
    let handle = crawler.handle();
    let running = tokio::spawn(crawler.run());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(handle.add(request("http://a.test/added")).await, Addition::Queued);
    assert_eq!(handle.add(request("http://a.test/added")).await, Addition::Duplicate);
    let Addition::Refused(reason) = handle.add(request("http://b.test/")).await else {
        panic!("another host")
    };
    assert_eq!(reason.reason, "offsite");
    handle.stop("enough");
    assert_eq!(handle.add(request("http://a.test/late")).await, Addition::Ended);
    running.await.unwrap().unwrap();
    assert_eq!(handle.add(request("http://a.test/later")).await, Addition::Ended);
    assert!(!web.urls().iter().any(|url| url.contains("b.test")));
}

#[tokio::test(start_paused = true)]
async fn a_removed_host_loses_its_queue_and_each_request_is_told() {
    for is_paused in [false, true] {
        let log = Log::default();
        let (crawler, web) = slow(&log);
        let handle = crawler.handle();
        let running = tokio::spawn(crawler.run());
        tokio::time::sleep(Duration::from_secs(15)).await;
        if is_paused {
            handle.pause();
        }
        // Otherwise it would end as soon as nothing is queued.
        handle.keep_open(true);
        assert_eq!(handle.remove_host(&HostKey::new("a.test")).await, 3);
        let Addition::Refused(reason) = handle.add(request("http://a.test/again")).await else {
            panic!("the host is gone")
        };
        assert_eq!(reason.reason, "dropped_by_user");
        handle.keep_open(false);
        let report = running.await.unwrap().unwrap();
        assert_eq!(web.urls().len(), 2, "the two pages before");
        assert_eq!(report.stat("drops/skipped/dropped_by_user"), 3, "all that waited");
        assert_eq!(log.dropped().len(), 3);
        assert!(report.failed_seeds.is_empty(), "it was removed on purpose: {:?}", report.failed_seeds);
        assert_eq!(report.hosts[0].state, "gave_up");
    }
}
