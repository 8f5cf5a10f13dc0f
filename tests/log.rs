//! The log events of a crawl, captured and checked. This program is apart from `it`, because the log belongs to the whole
//! process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use huntsman::middleware::Defaults;
use huntsman::{CrawlerBuilder, Output, Page, Spider, spider_fn};
use huntsman_testkit::{Reply, ScriptedDownloader};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Fields of an event by name, with its `level`.
type Line = BTreeMap<&'static str, String>;

/// Every event of the process: callbacks log from threads of their own, so a log per test would miss their events.
static LINES: LazyLock<Mutex<Vec<Line>>> = LazyLock::new(|| {
    tracing_subscriber::registry().with(Lines).init();
    Mutex::default()
});

struct Lines;

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        struct Fields(Line);
        impl Visit for Fields {
            fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
                self.0.insert(field.name(), format!("{value:?}"));
            }
        }
        let mut fields = Fields(Line::from([("level", event.metadata().level().to_string())]));
        event.record(&mut fields);
        LINES.lock().unwrap().push(fields.0);
    }
}

fn lines(is_wanted: impl Fn(&Line) -> bool) -> Vec<Line> {
    LINES.lock().unwrap().iter().filter(|line| is_wanted(line)).cloned().collect()
}

fn links(seed: &str) -> impl Spider<Item = ()> + use<> {
    spider_fn([seed.to_owned()], |page: &Page, out: &mut Output<()>| {
        out.item(());
        out.follow_links(page);
        Ok(())
    })
}

fn crawl<S: Spider>(spider: S, web: &ScriptedDownloader) -> CrawlerBuilder<S> {
    LazyLock::force(&LINES);
    let builder = CrawlerBuilder::new(spider).plugin(Defaults).downloader(web.clone());
    builder.set("robotstxt_obey", false).set("download_delay", 0.0).set("seed", 7)
}

/// Three pages of a host that link to each other.
fn circle(host: &str) -> ScriptedDownloader {
    let html = "<a href=/>0</a><a href=/1>1</a><a href=/2>2</a>";
    ScriptedDownloader::pages(["", "1", "2"].map(|path| (format!("http://{host}/{path}"), html)))
}

async fn duplicates_logged(host: &str, debug: bool) -> (Vec<Line>, i64) {
    let spider = links(&format!("http://{host}/"));
    let report = crawl(spider, &circle(host)).set("dupefilter_debug", debug).run().await.unwrap();
    let of_host = format!("http://{host}/");
    let logged = lines(|line| {
        line["message"].contains("duplicate") && line.get("url").is_some_and(|url| url.contains(&of_host))
    });
    (logged, report.stat("dupefilter/filtered"))
}

#[tokio::test(start_paused = true)]
async fn the_first_duplicate_is_logged_and_all_of_them_if_asked_for() {
    let (logged, filtered) = duplicates_logged("first.test", false).await;
    assert!(filtered >= 6, "{filtered}");
    assert_eq!(logged.len(), 1, "{logged:?}");
    assert!(logged[0]["message"].contains("dupefilter_debug"), "it says how to see the others: {logged:?}");
    let (logged, filtered) = duplicates_logged("all.test", true).await;
    assert!(filtered >= 6, "{filtered}");
    assert_eq!(logged.len(), usize::try_from(filtered).unwrap(), "{logged:?}");
}

#[tokio::test(start_paused = true)]
async fn each_response_is_logged_with_the_new_delay_of_its_slot_if_asked_for() {
    let page = || Reply::html("x".repeat(300)).after(Duration::from_millis(400));
    let run = async |host: &'static str, debug: bool| {
        let web = ScriptedDownloader::new().otherwise(move |_, _| page());
        let urls = ["0", "1"].map(|path| format!("http://{host}/{path}"));
        let spider = spider_fn(urls, |_: &Page, _: &mut Output<()>| Ok(()));
        let crawl =
            crawl(spider, &web).set("autothrottle_enabled", true).set("autothrottle_start_delay", 2.0);
        crawl.set("autothrottle_debug", debug).run().await.unwrap();
        lines(|line| line["message"] == "autothrottle" && line["slot"] == host)
    };
    assert_eq!(run("quiet.test", false).await.len(), 0);
    let logged = run("throttled.test", true).await;
    assert_eq!(logged.len(), 2, "{logged:?}");
    let row = |line: &Line| {
        ["concurrency", "delay_ms", "change_ms", "latency_ms", "bytes"].map(|field| line[field].clone())
    };
    // The target of one request at a time is a delay of the latency; each response takes it half-way there.
    assert_eq!(row(&logged[0]), ["1", "1200", "-800", "400", "300"]);
    assert_eq!(row(&logged[1]), ["1", "800", "-400", "400", "300"]);
    assert_eq!(logged[0]["level"], "INFO");
}

#[tokio::test(start_paused = true)]
async fn a_line_of_progress_comes_every_interval_with_all_its_numbers() {
    // Four links, one of them to a dead host; the others respond after 30 s each, one at a time.
    let hosts: String =
        ["aa", "b", "c", "d"].map(|host| format!("<a href=http://{host}.test/>x</a>")).concat();
    let web = ScriptedDownloader::pages([("http://a.test/", hosts)])
        .respond("http://aa.test/", Reply::error(huntsman::FetchErrorKind::Connect))
        .otherwise(|_, _| Reply::html("x".repeat(700_000)).after(Duration::from_secs(30)));
    crawl(links("http://a.test/"), &web)
        .set("concurrent_requests", 1)
        .set("retry_enabled", false)
        .set("host_max_failures", 1)
        .set("logstats_interval", 40.0)
        .run()
        .await
        .unwrap();
    let told = lines(|line| line["message"] == "crawled");
    let number = |line: &Line, field: &str| -> f64 {
        line.get(field).unwrap_or_else(|| panic!("no {field} in {line:?}")).parse().unwrap()
    };
    let row = |line: &Line| {
        [
            "pages",
            "pages_per_minute",
            "items",
            "items_per_minute",
            "queued",
            "hosts_active",
            "hosts_down",
            "megabytes",
        ]
        .map(|field| number(line, field))
    };
    let rows: Vec<_> = told.iter().map(row).collect();
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(told[0]["level"], "INFO");
    // After 40 s, a and b were fetched, c is in flight and d is queued; the dead host came before them.
    assert_eq!(rows[0][..4], [2.0, 3.0, 2.0, 3.0], "{rows:?}");
    assert!(rows[1][0] == 3.0 && rows[1][1] == 1.5 && rows[1][7] >= 1.0, "{rows:?}");
    assert!(rows.iter().any(|row| row[6] == 1.0), "the dead host is down: {rows:?}");
    assert!(rows[0][5] >= 1.0 && rows[0][4] >= rows[1][4], "{rows:?}");
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_cuts_warns_once() {
    let web = ScriptedDownloader::pages((0..30).map(|n| {
        // Two links each, so that the guard cuts twice.
        let html = format!("<a href=/{}>x</a><a href=/{}?b>x</a>", n + 1, n + 1);
        (format!("http://guarded.test/{n}"), html)
    }));
    let report = crawl(links("http://guarded.test/0"), &web).run().await.unwrap();
    assert_eq!(report.losses[0].count, 2, "{report}");
    let warned = lines(|line| line["level"] == "WARN" && line["message"].contains("the guard depth_guard"));
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(warned[0]["url"].contains("guarded.test/21"), "{warned:?}");
}
