//! Settings and profiles as crawls see them.

use std::time::Duration;

use huntsman::middleware::Defaults;
use huntsman::middleware::sinks::JsonLines;
use huntsman::{CrawlerBuilder, Layer, Layers, Output, Page, Profile, Result, Spider, Start, spider_fn};
use huntsman_testkit::ScriptedDownloader;
use serde_json::{Value, json};

use super::support::{Log, quick, smallest_gap, tree};

#[test]
fn the_profiles_have_the_values_of_their_table() {
    let table = [
        ("concurrent_requests", json!([16, 16, 256, 16])),
        ("concurrent_requests_per_domain", json!([1, 5, 1, 16])),
        ("slot_by", json!(["host", "host", "registrable_domain", "host"])),
        ("download_delay", json!([1.0, 0.0, 1.0, 0.0])),
        ("download_delay_jitter", json!([0.5, 0.0, 0.5, 0.0])),
        ("autothrottle_enabled", json!([false, true, true, false])),
        ("robotstxt_obey", json!([true, true, true, false])),
        ("obey_nofollow", json!([true, false, true, false])),
        ("download_timeout", json!([30.0, 30.0, 30.0, 30.0])),
        ("download_maxsize", json!([16 << 20, 16 << 20, 5 << 20, 16 << 20])),
        ("retry_times", json!([2, 2, 1, 2])),
        ("cookies_enabled", json!([true, true, false, true])),
        ("scheduler_order", json!(["bfs", "bfs", "bfs", "bfs"])),
        ("redirect_max_times", json!([20, 10, 10, 10])),
        ("path_max_segments", json!([20, 20, 20, 20])),
        ("path_max_repeats", json!([3, 3, 3, 3])),
        ("depth_guard", json!([20, 20, 20, 20])),
        ("trap_guards", json!(["off", "warn", "drop", "off"])),
        ("log_level", json!(["info", "info", "info", "debug"])),
        ("connect_timeout", json!([10.0, 10.0, 10.0, 10.0])),
        ("first_byte_timeout", json!([15.0, 15.0, 15.0, 15.0])),
        ("read_idle_timeout", json!([10.0, 10.0, 10.0, 10.0])),
        ("retry_after_max", json!([120.0, 120.0, 120.0, 120.0])),
        ("urllength_limit", json!([2048, 2048, 2048, 2048])),
        ("max_header_lines", json!([1_000, 1_000, 1_000, 1_000])),
        ("max_parked_wait", json!([600.0, 30.0, 600.0, 30.0])),
    ];
    for (column, profile) in Profile::ALL.into_iter().enumerate() {
        let mut layers = Layers::default();
        layers.set_profile(profile);
        // A broad crawl must name its operator in the User-Agent.
        layers.set(Layer::Project, "user_agent", "bot/1 (+https://bot.test/)");
        let settings = layers.resolve(&Defaults::settings_table()).unwrap();
        for (name, row) in &table {
            assert_eq!(settings.get(name).as_ref(), Some(&row[column]), "{name} of {}", profile.name());
        }
    }
}

/// A spider with a longer delay that stays on its domains.
struct Own;

impl Spider for Own {
    type Item = ();
    fn start(&self) -> Start {
        Start::urls(["http://a.test/0"])
    }
    fn parse(&self, page: &Page, out: &mut Output<()>) -> Result<()> {
        out.follow_links(page);
        Ok(())
    }
    fn settings(&self) -> Vec<(&'static str, Value)> {
        vec![("download_delay", json!(3.0)), ("robotstxt_obey", json!(false))]
    }
}

#[test]
fn values_of_a_plugin_yield_to_the_settings_file() {
    struct Slow;
    impl huntsman::Plugin for Slow {
        fn install<S: Spider>(self, builder: CrawlerBuilder<S>) -> CrawlerBuilder<S> {
            builder.set("download_delay", 9.0).set("depth_limit", 9)
        }
    }
    let spider = spider_fn(["http://a.test/"], |_: &Page, _: &mut Output<()>| Ok(()));
    let crawl = CrawlerBuilder::new(spider).set("retry_times", 1).plugin(Defaults).plugin(Slow);
    let mut layers = crawl.given_layers().clone();
    layers.set(Layer::Project, "download_delay", 2.0);
    let origin = |name: &str| layers.explain(name, crawl.settings_table()).pop().unwrap();
    assert_eq!(origin("download_delay"), (Layer::Project, json!(2.0)));
    assert_eq!(origin("depth_limit"), (Layer::AddOn, json!(9)));
    assert_eq!(origin("retry_times"), (Layer::Spider, json!(1)));
}

#[tokio::test(start_paused = true)]
async fn a_spider_brings_its_own_settings_and_the_command_line_wins() {
    for (flag, at_least, below) in [(None, 3.0, 5.0), (Some(7.0), 7.0, 11.0)] {
        let web = ScriptedDownloader::pages(tree("a.test", 4));
        let mut crawl = CrawlerBuilder::new(Own).plugin(Defaults).downloader(web.clone()).set("seed", 7);
        crawl = crawl.set_in(Layer::Project, "download_delay", 0.5);
        if let Some(flag) = flag {
            crawl = crawl.set_in(Layer::CommandLine, "download_delay", flag);
        }
        assert_eq!(crawl.run().await.unwrap().pages, 4);
        let gap = smallest_gap(&web.starts("a.test"));
        assert!((at_least..below).contains(&gap.as_secs_f64()), "{flag:?}: {gap:?}");
        assert_eq!(web.count("http://a.test/robots.txt"), 0);
    }
}

/// A spider that gives up a domain after its first page.
struct Fickle(std::sync::atomic::AtomicBool);

impl Spider for Fickle {
    type Item = ();
    fn start(&self) -> Start {
        Start::urls(["http://a.test/"])
    }
    fn parse(&self, page: &Page, out: &mut Output<()>) -> Result<()> {
        if page.url().path() == "/last" {
            self.0.store(true, std::sync::atomic::Ordering::SeqCst);
        }
        out.follow_links(page);
        Ok(())
    }
    fn allowed_domains(&self) -> Vec<String> {
        let closed = self.0.load(std::sync::atomic::Ordering::SeqCst);
        if closed { vec!["a.test".into()] } else { vec!["a.test".into(), "b.test".into()] }
    }
}

#[tokio::test(start_paused = true)]
async fn allowed_domains_may_change_during_the_crawl() {
    let web = ScriptedDownloader::pages([
        ("http://a.test/", "<a href=http://b.test/>b</a><a href=http://c.test/>c</a>"),
        ("http://b.test/", "<a href=http://sub.a.test/last>l</a><a href=http://nota.test/>n</a>"),
        ("http://sub.a.test/last", "<a href=http://b.test/too-late>t</a>"),
    ])
    .latency(Duration::from_millis(10));
    let log = Log::default();
    let spider = Fickle(false.into());
    let report = super::support::quick(spider, &web).observer(log.clone()).run().await.unwrap();
    assert_eq!(log.delivered(), ["http://a.test/", "http://b.test/", "http://sub.a.test/last"]);
    let refused: Vec<String> = log.refused().into_iter().map(|drop| drop.url).collect();
    assert_eq!(refused, ["http://c.test/", "http://nota.test/", "http://b.test/too-late"]);
    assert!(web.starts("c.test").is_empty() && web.starts("nota.test").is_empty());
    assert_eq!(report.stat("refused/offsite"), 3);
}

#[tokio::test(start_paused = true)]
async fn arguments_reach_callbacks_and_the_names_of_feeds() {
    let folder = tempfile::tempdir().unwrap();
    let web = ScriptedDownloader::pages([("http://a.test/", "x")]);
    let spider = spider_fn(["http://a.test/"], |_: &Page, out: &mut Output<String>| {
        let topic = out.context().arg("topic").unwrap_or("none").to_owned();
        let missing = out.context().arg("missing").is_none();
        out.item(format!("{topic} {missing}"));
        Ok(())
    });
    let feed = |name: &str| JsonLines::create(folder.path().join(name)).unwrap();
    quick(spider, &web)
        .arg("topic", "../tea")
        .arg("page", "2")
        .pipeline(feed("%(topic)s-%(page)s.jsonl"))
        .pipeline(feed("own-%(topic)s.jsonl").param("topic", "set"))
        .run()
        .await
        .unwrap();
    let mut names: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(
        names[0].contains("tea-2") && !names[0].contains('/') && names[1] == "own-set.jsonl",
        "{names:?}"
    );
    assert_eq!(std::fs::read_to_string(folder.path().join(&names[1])).unwrap(), "\"../tea true\"\n");
}
