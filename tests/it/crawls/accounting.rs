//! Every address that entered the queue ends exactly once, as a page or as a drop record.

use std::collections::{BTreeMap, BTreeSet};

use huntsman::middleware::sinks::DropLog;
use huntsman::{FetchErrorKind, Output, Page, spider_fn};
use huntsman_testkit::{Answer, Reply, ScriptedDownloader, Site, sites};

use super::support::{Log, links, on_site, quick};

#[tokio::test(start_paused = true)]
async fn every_queued_url_is_in_exactly_one_of_pages_and_drops() {
    let ends = [
        ("ok", "page"),
        ("moved", "page"),
        ("flaky", "page"),
        ("back", "redirect_duplicate"),
        ("away", "offsite"),
        ("gone", "http_status"),
        ("broken", "http_status"),
        ("reset", "connection_reset"),
        ("secret/1", "robots"),
        ("loop", "redirect_loop"),
        ("nowhere", "bad_redirect"),
        ("panic", "callback_panic"),
        ("error", "callback_error"),
        ("huge", "too_large"),
    ];
    let index: String = ends.iter().map(|(path, _)| format!("<a href='/{path}'>x</a>")).collect();
    let at = |path: &str| format!("http://a.test/{path}");
    let web = ScriptedDownloader::new()
        .respond("http://a.test/robots.txt", Reply::text("User-agent: *\nDisallow: /secret/"))
        .respond(
            "http://a.test/",
            Reply::html(index.clone() + "<a href=/ok>again</a><a href=http://b.test/>b</a>"),
        )
        .respond(&at("ok"), Reply::html(index))
        .respond(&at("moved"), Reply::redirect(301, "/target"))
        .respond(&at("target"), Reply::html("x"))
        .respond(&at("flaky"), Reply::status(502))
        .then(Reply::html("x"))
        .respond(&at("back"), Reply::redirect(302, "/"))
        .respond(&at("away"), Reply::redirect(302, "http://b.test/"))
        .respond(&at("broken"), Reply::status(500))
        .respond(&at("reset"), Reply::error(FetchErrorKind::Reset))
        .respond(&at("loop"), Reply::redirect(302, "/loop"))
        .respond(&at("nowhere"), Reply::redirect(302, "http://"))
        .respond(&at("panic"), Reply::html("x"))
        .respond(&at("error"), Reply::html("x"))
        .respond(&at("huge"), Reply::error(FetchErrorKind::TooLarge));
    let spider = spider_fn(["http://a.test/"], |page: &Page, out: &mut Output<()>| {
        match page.url().path() {
            "/panic" => panic!("as asked"),
            "/error" => return Err(huntsman::Error::msg("as asked")),
            _ => {
                out.follow_links(page);
            }
        }
        Ok(())
    });
    let log = Log::default();
    let report = quick(spider, &web)
        .set("robotstxt_obey", true)
        .set("scope", "host")
        .observer(log.clone())
        .run()
        .await
        .unwrap();
    let mut found: BTreeMap<String, String> =
        log.delivered().into_iter().map(|url| (url, "page".to_owned())).collect();
    assert_eq!(found.len(), log.delivered().len(), "no page twice");
    for drop in log.dropped() {
        let before = found.insert(drop.url.clone(), drop.reason.to_string());
        assert_eq!(before, None, "{} ended twice", drop.url);
    }
    let mut expected: BTreeMap<String, String> =
        ends.iter().map(|(path, end)| (at(path), (*end).to_owned())).collect();
    expected.insert(at(""), "page".to_owned());
    // If a redirect leaves the scope, the reason in its record depends on the scope policy of the settings.
    let away = found.get_mut(&at("away")).expect("it is recorded");
    if away.contains("scope") {
        "offsite".clone_into(away);
    }
    assert_eq!(found, expected);
    assert_eq!(report.pages, 4);
}

#[tokio::test(start_paused = true)]
async fn offsite_links_are_refused_and_recorded_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("drops.jsonl");
    let page = "<a href=/1>1</a><a href=/2>2</a><a href=/3>3</a><a href=http://b.test/x>b</a>";
    let web = ScriptedDownloader::new().otherwise(move |_, _| Reply::html(page));
    let (log, drops) = (Log::default(), DropLog::create(&path).unwrap());
    let report = quick(links(["http://a.test/"]), &web)
        .set("scope", "host")
        .observer(log.clone())
        .observer(drops)
        .run()
        .await
        .unwrap();
    assert_eq!(report.pages, 4);
    assert!(web.starts("b.test").is_empty());
    assert!(report.stat("offsite/filtered") >= 1);
    assert_eq!(report.stat("offsite/domains"), 1);
    let refused = log.refused();
    assert!(
        refused.iter().all(|drop| drop.reason == "offsite" && drop.url == "http://b.test/x"),
        "{refused:?}"
    );
    let written = std::fs::read_to_string(path).unwrap();
    assert_eq!(written.lines().count(), 1, "{written}");
    assert!(
        written.contains("\"reason\":\"offsite\"") && written.contains("\"referer\":\"http://a.test/"),
        "{written}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn max_pages_is_exact_over_real_sockets() {
    let site = sites::linked(80, 6).start().await;
    let log = Log::default();
    let report = on_site(links([site.url("/")]), &site)
        .set("concurrent_requests_per_domain", 8)
        .set("closespider_pagecount", 17)
        .observer(log.clone())
        .run()
        .await
        .unwrap();
    assert_eq!((report.pages, report.finish_reason.as_str()), (17, "closespider_pagecount"));
    assert_eq!(log.delivered().len(), 17);
    assert_eq!(site.requests().iter().filter(|seen| seen.request.path() != "/robots.txt").count(), 17);
    let ended: BTreeSet<String> =
        log.delivered().into_iter().chain(log.dropped().into_iter().map(|drop| drop.url)).collect();
    assert_eq!(ended.len(), 17 + log.dropped().len(), "no address in both");
    assert_eq!(report.stat("scheduler/enqueued"), i64::try_from(ended.len()).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_of_other_schemes_are_not_fetched() {
    let site = Site::builder()
        .page(
            "/",
            "<a href='ftp://a.test/'>f</a><a href='mailto:a@b'>m</a><a href='javascript:x()'>j</a>\
             <a href='data:text/html,x'>d</a><a href='file:///etc/passwd'>e</a><a href='/ok'>k</a>",
        )
        .page("/ok", "x")
        .start()
        .await;
    let log = Log::default();
    let report = on_site(links([site.url("/")]), &site).observer(log.clone()).run().await.unwrap();
    assert_eq!(report.pages, 2);
    assert_eq!(site.targets(), ["/robots.txt", "/", "/ok"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cookies_flow_from_page_to_page() {
    let site = Site::builder()
        .answer("/", Answer::html("<a href=/in>i</a>").header("set-cookie", "session=7; Path=/"))
        .page("/in", "<a href=/other>o</a>")
        .page("/other", "x")
        .start()
        .await;
    let report =
        on_site(links([site.url("/")]), &site).set("concurrent_requests_per_domain", 1).run().await.unwrap();
    assert_eq!(report.pages, 3);
    let cookies: Vec<Option<String>> = site
        .requests()
        .iter()
        .filter(|seen| seen.request.path() != "/robots.txt")
        .map(|seen| seen.request.header("cookie").map(str::to_owned))
        .collect();
    assert_eq!(cookies, [None, Some("session=7".to_owned()), Some("session=7".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn stats_have_scrapys_names() {
    let web = ScriptedDownloader::pages([("http://a.test/", "<a href=/gone>g</a><a href=/>again</a>")]);
    let spider = links(["http://a.test/"]);
    let report = quick(spider, &web).set("robotstxt_obey", true).run().await.unwrap();
    for (key, value) in [
        ("downloader/request_count", 3),
        ("downloader/request_method_count/GET", 3),
        ("downloader/response_count", 3),
        ("downloader/response_status_count/200", 1),
        ("downloader/response_status_count/404", 2),
        ("response_received_count", 2),
        ("robotstxt/request_count", 1),
        ("scheduler/enqueued", 2),
        ("scheduler/dequeued", 2),
        ("dupefilter/filtered", 1),
        ("httperror/response_ignored_count", 1),
        ("httperror/response_ignored_status_count/404", 1),
        ("item_scraped_count", 1),
        ("request_depth_max", 1),
    ] {
        assert_eq!(report.stat(key), value, "{key}");
    }
    for key in [
        "start_time",
        "finish_time",
        "finish_reason",
        "elapsed_time_seconds",
        "responses_per_minute",
        "items_per_minute",
    ] {
        assert!(report.stats.contains_key(key), "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_report_has_stats_of_the_busiest_hosts() {
    let mut pages = Vec::new();
    for host in 0..5 {
        pages.extend(super::support::tree(&format!("h{host}.test"), 3 + host));
    }
    let web = ScriptedDownloader::pages(pages)
        .respond("http://h4.test/gone", Reply::status(404))
        .respond("http://h4.test/reset", Reply::error(FetchErrorKind::Reset))
        .latency(std::time::Duration::from_millis(40));
    let mut seeds: Vec<String> = (0..5).map(|host| format!("http://h{host}.test/0")).collect();
    seeds.extend(["http://h4.test/gone".to_owned(), "http://h4.test/reset".to_owned()]);
    let report =
        quick(links(&seeds), &web).set("stats_top_hosts", 2).set("retry_times", 0).run().await.unwrap();
    assert!(report.hosts.len() <= 3, "the busiest two, and maybe the rest in one: {:?}", report.hosts);
    let host = report.hosts.iter().find(|host| host.host == "h4.test").expect("the busiest one is there");
    assert_eq!((host.requests, host.statuses.get(&200), host.statuses.get(&404)), (9, Some(&7), Some(&1)));
    assert_eq!(host.failures.values().sum::<u64>(), 1, "{host:?}");
    assert!(host.latency_ms.iter().all(|&latency| (20.0..80.0).contains(&latency)), "{host:?}");
    assert_eq!(host.queued, 0);
    assert!(host.last_error.is_some(), "{host:?}");
}
