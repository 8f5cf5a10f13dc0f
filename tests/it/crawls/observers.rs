//! The events that observers receive, and the decisions that they may take.

use std::sync::{Arc, Mutex};

use http::{HeaderMap, StatusCode};
use huntsman::middleware::sinks::JsonLines;
use huntsman::{
    DropReason, DropState, Event, Observer, OnDownload, OnFollow, Output, Page, Request, spider_fn,
};
use huntsman_testkit::{Answer, Reply, ScriptedDownloader, Site};

use super::support::{Log, links, on_site, quick, tree};

/// Refuses to queue requests for some paths.
struct Without(&'static [&'static str]);

impl Observer for Without {
    fn event(&self, _: &Event<'_>) {}

    fn on_schedule(&self, request: &Request) -> OnFollow {
        match self.0.contains(&request.url.path()) {
            true => OnFollow::Drop(DropReason::skipped("not_wanted")),
            false => OnFollow::Keep,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_may_veto_links_start_requests_and_redirects() {
    let web = ScriptedDownloader::pages([("http://a.test/", "<a href=/no>n</a><a href=/moved>m</a>")])
        .respond("http://a.test/moved", Reply::redirect(302, "/target"));
    let log = Log::default();
    let report = quick(links(["http://a.test/", "http://a.test/seed"]), &web)
        .observer(Without(&["/no", "/target", "/seed"]))
        .observer(log.clone())
        .run()
        .await
        .unwrap();
    assert_eq!(web.urls(), ["http://a.test/", "http://a.test/moved"]);
    assert_eq!(report.stat("refused/not_wanted"), 2);
    let refused: Vec<_> = log.refused().into_iter().map(|drop| (drop.url, drop.component)).collect();
    assert_eq!(
        refused,
        [
            ("http://a.test/seed".to_owned(), "observer".into()),
            ("http://a.test/no".to_owned(), "observer".into())
        ]
    );
    let redirect = log.drop_of("http://a.test/moved");
    assert_eq!((&*redirect.reason, &*redirect.component), ("not_wanted", "observer"));
}

/// Decides about downloads by path.
struct Cut(fn(&str) -> OnDownload, fn(&str) -> OnDownload);

impl Observer for Cut {
    fn event(&self, _: &Event<'_>) {}

    fn on_headers(&self, request: &Request, status: StatusCode, headers: &HeaderMap) -> OnDownload {
        assert!(status == 200 && headers.contains_key("content-type"));
        self.0(request.url.path())
    }

    fn on_bytes(&self, request: &Request, bytes: &[u8]) -> OnDownload {
        assert!(!bytes.is_empty());
        self.1(request.url.path())
    }
}

/// Path, length and flags of every page.
type Bodies = Arc<Mutex<Vec<(String, usize, bool)>>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observer_may_stop_a_download_on_its_headers_or_its_bytes() {
    const LENGTH: usize = 4 << 20;
    let paths = ["/whole", "/headers-drop", "/headers-keep", "/bytes-drop", "/bytes-keep"];
    let site = Site::builder();
    let site = paths.iter().fold(site, |site, path| site.answer(path, Answer::html(vec![b'x'; LENGTH])));
    let site = site.start().await;
    let bodies = Bodies::default();
    let seen = Arc::clone(&bodies);
    let spider = spider_fn(paths.map(|path| site.url(path)), move |page: &Page, _: &mut Output<()>| {
        let response = page.response();
        let stopped = response.has_flag("download_stopped");
        seen.lock().unwrap().push((page.url().path().to_owned(), response.body.len(), stopped));
        Ok(())
    });
    let log = Log::default();
    on_site(spider, &site)
        .set("robotstxt_obey", false)
        .observer(Cut(
            |path| match path {
                "/headers-drop" => OnDownload::Drop,
                "/headers-keep" => OnDownload::Deliver,
                _ => OnDownload::Continue,
            },
            |path| match path {
                "/bytes-drop" => OnDownload::Drop,
                "/bytes-keep" => OnDownload::Deliver,
                _ => OnDownload::Continue,
            },
        ))
        .observer(log.clone())
        .run()
        .await
        .unwrap();
    let mut bodies = bodies.lock().unwrap().clone();
    bodies.sort_unstable();
    assert_eq!(bodies.len(), 3, "{bodies:?}");
    assert_eq!(bodies[1], ("/headers-keep".to_owned(), 0, true));
    assert_eq!(bodies[2], ("/whole".to_owned(), LENGTH, false));
    let (path, length, stopped) = &bodies[0];
    assert!(path == "/bytes-keep" && *stopped && (1..LENGTH).contains(length), "{path} {length} {stopped}");
    for path in ["/headers-drop", "/bytes-drop"] {
        let drop = log.drop_of(site.url(path).as_str());
        assert_eq!((drop.state, &*drop.reason), (DropState::Skipped, "download_stopped"));
        assert_eq!(site.count(path), 1, "it is not tried again");
    }
}

#[tokio::test(start_paused = true)]
async fn observers_get_an_event_each_time_the_queue_becomes_empty() {
    let web = ScriptedDownloader::pages(tree("a.test", 7));
    let empty = Arc::new(Mutex::new(0));
    let times = Arc::clone(&empty);
    quick(links(["http://a.test/0"]), &web)
        .observer(move |event: &Event<'_>| {
            if matches!(event, Event::SchedulerEmpty) {
                *times.lock().unwrap() += 1;
            }
        })
        .run()
        .await
        .unwrap();
    // Once after the start request, and once after the last of the leaves.
    assert!((2..=7).contains(&*empty.lock().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn the_files_of_a_feed_are_reported_when_they_close_before_the_spider_does() {
    let folder = tempfile::tempdir().unwrap();
    let web = ScriptedDownloader::pages(tree("a.test", 5));
    let told = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&told);
    let feed = JsonLines::create(folder.path().join("items-%(batch_id)05d.jsonl")).unwrap().batch_items(3);
    quick(links(["http://a.test/0"]), &web)
        .pipeline(feed)
        .observer(move |event: &Event<'_>| {
            let file = |name: &str| name.rsplit('/').next().unwrap().to_owned();
            let line = match event {
                Event::FeedSlotClosed { name, items, error } => format!("{} {items} {error:?}", file(name)),
                Event::FeedExporterClosed { name, items } => format!("{} {items}", file(name)),
                Event::SpiderClosed { .. } => "spider closed".to_owned(),
                _ => return,
            };
            lines.lock().unwrap().push(line);
        })
        .run()
        .await
        .unwrap();
    assert_eq!(
        *told.lock().unwrap(),
        [
            "items-00001.jsonl 3 None",
            "items-00002.jsonl 2 None",
            "items-%(batch_id)05d.jsonl 5",
            "spider closed"
        ]
    );
}
