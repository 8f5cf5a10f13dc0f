//! Crawls through a pool of proxies: which request gets which proxy, what happens if proxies fail, and what stays as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use huntsman::middleware::ProxyPool;
use huntsman::store::Backend;
use huntsman::{CrawlerBuilder, FetchErrorKind, Job, ProxyFault, Request, Spider, Start, meta};
use huntsman_testkit::{Fetched, ForwardProxy, ProxyBehaviour, Reply, ScriptedDownloader, Site};

use super::support::{Log, links, on_site, polite, quick, tree};

/// Pages that come unless the proxy of the request is among the broken ones, which fail in this way.
fn web(broken: &'static [&'static str], failure: Reply) -> ScriptedDownloader {
    ScriptedDownloader::new().otherwise(move |request, _| {
        let proxy = request.meta_text(meta::PROXY).unwrap_or_default().to_owned();
        match broken.iter().any(|name| proxy.contains(name)) {
            true => failure.clone(),
            false => Reply::html("x"),
        }
    })
}

fn seeds(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("http://a.test/{n}")).collect()
}

fn pool(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("http://zorro:SECRET@{name}:3128")).collect()
}

/// The name of the proxy that a request was sent through.
fn proxy_of(fetched: &Fetched) -> String {
    let proxy = fetched.request.meta_text(meta::PROXY).unwrap_or_default();
    proxy.split('@').next_back().unwrap_or_default().trim_end_matches(":3128").to_owned()
}

fn by_request<S: Spider>(builder: CrawlerBuilder<S>, names: &[&str]) -> CrawlerBuilder<S> {
    builder.set("proxy_pool", pool(names)).set("proxy_choice", "request")
}

#[tokio::test(start_paused = true)]
async fn a_dead_proxy_costs_one_attempt_and_no_page() {
    for failure in [
        Reply::error(FetchErrorKind::Proxy),
        Reply::error(FetchErrorKind::ConnectTimeout).proxy_fault(ProxyFault::Certain),
        Reply::status(407),
    ] {
        let web = web(&["p1"], failure);
        let log = Log::default();
        let builder = by_request(quick(links(seeds(30)), &web), &["p1", "p2", "p3"]);
        let report = builder
            .set("concurrent_requests_per_domain", 1)
            .set("host_max_failures", 1)
            .observer(log.clone())
            .run()
            .await
            .unwrap();
        assert_eq!((report.pages, log.dropped().len()), (30, 0));
        let through = |name: &str| web.requests().iter().filter(|fetched| proxy_of(fetched) == name).count();
        assert_eq!([through("p1"), through("p2"), through("p3")], [1, 15, 15]);
        assert_eq!(
            ["proxy/switched", "proxy/taken_out", "proxy/out", "retry/count"].map(|key| report.stat(key)),
            [1, 1, 1, 0]
        );
        let status = report.component::<ProxyPool>().unwrap().proxies();
        assert!(status[0].is_out && status[0].name == "p1:3128" && status[0].failures == 1, "{status:?}");
        let shown = format!("{report:?} {report} {status:?}");
        assert!(!shown.contains("SECRET") && !shown.contains("zorro"), "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_proxy_that_works_again_is_used_again() {
    let web = ScriptedDownloader::new().latency(Duration::from_secs(1)).otherwise(|request, nth| {
        let is_first = request.url.path() == "/0" && nth == 0;
        if is_first { Reply::error(FetchErrorKind::Proxy) } else { Reply::html("x") }
    });
    let builder = by_request(quick(links(seeds(40)), &web), &["p1", "p2"]);
    let report = builder.set("concurrent_requests_per_domain", 1).run().await.unwrap();
    let p1: Vec<u64> = web
        .requests()
        .iter()
        .filter(|fetched| proxy_of(fetched) == "p1")
        .map(|fetched| fetched.started.as_secs())
        .collect();
    assert_eq!((report.pages, report.stat("proxy/recovered"), report.stat("proxy/out")), (40, 1, 0));
    assert!(p1[0] == 0 && p1[1] >= 11 && p1.len() > 10, "out for ten seconds, and then as before: {p1:?}");
}

#[tokio::test(start_paused = true)]
async fn if_no_proxy_works_requests_wait_for_a_while_and_fail_with_the_reason() {
    let web = web(&["p1", "p2"], Reply::error(FetchErrorKind::Proxy));
    let log = Log::default();
    let began = tokio::time::Instant::now();
    let builder = by_request(quick(links(seeds(5)), &web), &["p1", "p2"]).set("proxy_max_wait", 120.0);
    let report = builder.observer(log.clone()).run().await.unwrap();
    assert_eq!((report.pages, log.dropped().len()), (0, 5));
    let waited = began.elapsed();
    assert!((120..300).contains(&waited.as_secs()), "{waited:?}");
    let detail: String = log
        .dropped()
        .into_iter()
        .filter(|drop| drop.reason == "proxy")
        .filter_map(|drop| drop.detail)
        .collect();
    assert!(detail.contains("none of the 2 proxies works; the last failure was that of p"), "{detail}");
    assert!(
        detail.contains("scripted proxy") && !detail.contains("SECRET") && !detail.contains("zorro"),
        "{detail}"
    );
    assert!(report.stat("proxy/waited") >= 5 && report.stat("proxy/none_left") > 0, "{report}");
    let fetches = web.requests().len();
    assert!(fetches < 60, "a dead proxy is tried now and then, not by each request: {fetches}");
}

#[tokio::test(start_paused = true)]
async fn a_site_that_is_dead_behind_good_proxies_takes_no_proxy_out() {
    let web = ScriptedDownloader::new().otherwise(|request, _| match request.url.host_str() {
        Some("dead.test") => Reply::error(FetchErrorKind::Proxy).proxy_fault(ProxyFault::Possible),
        _ => Reply::html("x"),
    });
    let mut all = seeds(20);
    all.extend((0..20).map(|n| format!("http://dead.test/{n}")));
    let report = by_request(quick(links(all), &web), &["p1", "p2", "p3"]).run().await.unwrap();
    assert_eq!((report.pages, report.stat("proxy/taken_out")), (20, 0));
    let a_request = web.requests().into_iter().filter(|fetched| fetched.url() == "http://dead.test/3");
    let proxies: BTreeSet<String> = a_request.map(|fetched| proxy_of(&fetched)).collect();
    assert_eq!(proxies.len(), 3, "each try takes another proxy");
}

#[tokio::test(start_paused = true)]
async fn a_proxy_through_which_nothing_comes_is_found_out_by_what_others_can_do() {
    let failure = Reply::error(FetchErrorKind::FirstByteTimeout).proxy_fault(ProxyFault::Possible);
    let web = web(&["p1"], failure).latency(Duration::from_secs(1));
    let builder = by_request(quick(links(seeds(60)), &web), &["p1", "p2"]).set("retry_priority_adjust", 10);
    let report = builder
        .set("concurrent_requests_per_domain", 1)
        .set("proxy_backoff_base", 600.0)
        .run()
        .await
        .unwrap();
    assert_eq!((report.pages, report.stat("proxy/taken_out")), (60, 1));
    let silent = web.requests().iter().filter(|fetched| proxy_of(fetched) == "p1").count();
    assert!((3..30).contains(&silent), "{silent}");
}

#[tokio::test(start_paused = true)]
async fn the_failures_of_proxies_do_not_park_a_host() {
    let failure = Reply::error(FetchErrorKind::ConnectTimeout).proxy_fault(ProxyFault::Possible);
    let web = web(&["p1", "p2", "p3"], failure);
    let builder = by_request(quick(links(seeds(40)), &web), &["p1", "p2", "p3", "good"]);
    let began = tokio::time::Instant::now();
    let report = builder.set("host_max_failures", 2).set("retry_times", 9).run().await.unwrap();
    assert_eq!((report.pages, report.hosts[0].state), (40, "active"));
    assert!(began.elapsed() < Duration::from_secs(500), "no cooldown of 600 s: {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn politeness_is_per_host_whatever_the_number_of_proxies() {
    let web = ScriptedDownloader::pages(tree("a.test", 20)).latency(Duration::from_millis(300));
    let names: Vec<String> = (0..10).map(|n| format!("p{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let report = by_request(polite(links(["http://a.test/0"]), &web), &names).run().await.unwrap();
    assert_eq!(report.pages, 20);
    assert!(web.smallest_gap("a.test").unwrap() >= Duration::from_secs(1) && web.peak("a.test") == 1);
    let used: BTreeSet<String> = web.requests().iter().map(proxy_of).collect();
    assert_eq!(used.len(), 10, "robots.txt goes through a proxy, too: {used:?}");
    assert!(!used.contains(""));
}

#[tokio::test(start_paused = true)]
async fn a_host_keeps_its_proxy_and_hosts_are_shared() {
    let web = web(&[], Reply::status(500));
    let all: Vec<String> = (0..200).map(|n| format!("http://h{}.test/{n}", n % 50)).collect();
    quick(links(all), &web).set("proxy_pool", pool(&["p1", "p2", "p3", "p4"])).run().await.unwrap();
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for fetched in web.requests() {
        let host = fetched.request.url.host_str().unwrap().to_owned();
        seen.entry(host).or_default().insert(proxy_of(&fetched));
    }
    assert!(seen.len() == 50 && seen.values().all(|proxies| proxies.len() == 1), "{seen:?}");
    assert_eq!(seen.values().flatten().collect::<BTreeSet<_>>().len(), 4);
}

/// Start requests with proxies of their own.
struct Own;

impl Spider for Own {
    type Item = ();

    fn start(&self) -> Start {
        let own = Request::parse("http://a.test/own").map(|request| request.meta("proxy", "http://own:1"));
        let none = Request::parse("http://a.test/none").map(|request| request.meta("proxy", false));
        let direct = Request::parse("http://inside.test/");
        Start::new([own, none, direct, Request::parse("http://a.test/")].into_iter())
    }

    fn parse(&self, _: &huntsman::Page, _: &mut huntsman::Output<()>) -> huntsman::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_proxy_of_the_request_wins_and_hosts_of_no_proxy_are_reached_directly() {
    let web = web(&[], Reply::status(500));
    let builder = quick(Own, &web).set("proxy_pool", pool(&["p1"])).set("no_proxy", vec!["inside.test"]);
    let report = builder.run().await.unwrap();
    let seen: BTreeMap<String, String> =
        web.requests().iter().map(|fetched| (fetched.url().to_owned(), proxy_of(fetched))).collect();
    let expected = [
        ("http://a.test/", "p1"),
        ("http://a.test/none", ""),
        ("http://a.test/own", "http://own:1"),
        ("http://inside.test/", ""),
    ];
    assert_eq!(seen, expected.map(|(url, proxy)| (url.to_owned(), proxy.to_owned())).into());
    assert_eq!(report.stat("proxy/requests"), 1);
}

#[tokio::test(start_paused = true)]
async fn requests_that_wait_for_a_proxy_stay_in_the_queue_of_a_stopped_job() {
    let dir = tempfile::tempdir().unwrap();
    let run = |web: &ScriptedDownloader| {
        let job = Job::open(dir.path().join("job"), Backend::Redb).unwrap();
        by_request(quick(links(seeds(10)), web), &["p1"]).job(job)
    };
    let dead = web(&["p1"], Reply::error(FetchErrorKind::Proxy));
    let crawler = run(&dead).build().unwrap();
    let handle = crawler.handle();
    let running = tokio::spawn(crawler.run());
    tokio::time::sleep(Duration::from_secs(5)).await;
    handle.stop("enough");
    assert_eq!(running.await.unwrap().unwrap().pages, 0);
    let good = web(&[], Reply::status(500));
    let report = run(&good).run().await.unwrap();
    assert_eq!(
        (report.pages, good.requests().len()),
        (10, 10),
        "health is not kept: a restart is a new chance"
    );
}

#[test]
fn one_proxy_and_a_pool_contradict_each_other() {
    let web = ScriptedDownloader::new();
    let builder =
        quick(links(seeds(1)), &web).set("proxy", "http://zorro:SECRET@p:1").set("proxy_pool", pool(&["p1"]));
    let error = format!("{:?}", builder.build().err().unwrap());
    assert!(error.contains("proxy and proxy_pool") && !error.contains("SECRET"), "{error}");
}

#[tokio::test]
async fn a_crawl_through_real_proxies_survives_their_failures() {
    let site = tree("site.invalid", 40)
        .into_iter()
        .fold(Site::builder().host("site.invalid"), |site, (url, html)| {
            site.page(url.strip_prefix("http://site.invalid").unwrap(), html)
        })
        .start()
        .await;
    // Basic authentication of zorro with the password SECRET.
    let good = ForwardProxy::start(site.port()).require("Basic em9ycm86U0VDUkVU");
    let unknown = ForwardProxy::start(site.port()).require("Basic em9ycm86U0VDUkVU");
    let refusing = ForwardProxy::start(site.port());
    refusing.behave(ProxyBehaviour::Refuse);
    let closing = ForwardProxy::start(site.port());
    closing.behave(ProxyBehaviour::Close);
    let gone = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://zorro:SECRET@{}", listener.local_addr().unwrap())
    };
    let pool = vec![
        good.url("zorro:SECRET"),
        unknown.url("quux:SECRET"),
        refusing.url("zorro:SECRET"),
        closing.url("zorro:SECRET"),
        gone,
    ];
    let log = Log::default();
    let report = on_site(links(["http://site.invalid/0"]), &site)
        .set("proxy_pool", pool)
        .set("proxy_choice", "request")
        .set("robotstxt_obey", false)
        .set("retry_backoff_base", 0.01)
        .set("retry_times", 5)
        .observer(log.clone())
        .run()
        .await
        .unwrap();
    assert_eq!((report.pages, log.dropped().len()), (40, 0), "{:?} {report}", log.dropped());
    let status = report.component::<ProxyPool>().unwrap().proxies();
    assert_eq!(status.iter().map(|proxy| proxy.is_out).collect::<Vec<_>>()[1..3], [true, true], "{status:?}");
    assert!(!status[0].is_out && status[4].is_out, "{status:?}");
    assert!(good.requests().len() >= 40 && refusing.requests().len() <= 2, "{status:?}");
    assert!(site.requests().iter().all(|seen| seen.request.header("proxy-authorization").is_none()));
    let shown = format!("{report} {status:?} {:?}", report.stats);
    assert!(!shown.contains("SECRET") && !shown.contains("zorro") && !shown.contains("quux"), "{shown}");
}
