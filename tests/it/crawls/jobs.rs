//! Crawls with a job: the state that a second run takes over from the first.

use std::path::Path;
use std::time::Duration;

use huntsman::store::Backend;
use huntsman::{CrawlerBuilder, Job, Output, Page, Spider, spider_fn};
use huntsman_testkit::{Reply, ScriptedDownloader};

use super::support::{links, polite, quick, tree};

fn with_job<S: Spider>(builder: CrawlerBuilder<S>, directory: &Path) -> CrawlerBuilder<S> {
    builder.job(Job::open(directory.join("job"), Backend::Redb).unwrap())
}

#[tokio::test(start_paused = true)]
async fn robots_txt_is_not_asked_for_again_before_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let web = ScriptedDownloader::new()
        .respond("http://a.test/robots.txt", Reply::text("User-agent: *\nDisallow: /shut\nCrawl-delay: 3"))
        .respond("http://b.test/robots.txt", Reply::status(404))
        .otherwise(|_, _| Reply::html("x"));
    let run = async |seeds: &[&str], ttl: f64| {
        let builder = polite(links(seeds), &web).set("robots_ttl", ttl);
        with_job(builder, dir.path()).run().await.unwrap()
    };
    run(&["http://a.test/1", "http://b.test/1"], 86_400.0).await;
    let before = web.urls().len();
    let again =
        run(&["http://a.test/2", "http://a.test/shut", "http://a.test/3", "http://b.test/2"], 86_400.0);
    assert_eq!(again.await.stat("robotstxt/forbidden"), 1, "its rules hold");
    let asked: Vec<_> = web.urls().split_off(before);
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert!(asked.iter().all(|url| !url.contains("robots")), "{asked:?}");
    let starts = web.starts("a.test").split_off(2);
    assert!(starts[1] - starts[0] >= Duration::from_secs(3), "so does its delay: {starts:?}");
    // In the third run, the stored robots.txt has expired.
    run(&["http://b.test/3"], 1.0).await;
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(web.count("http://b.test/robots.txt"), 1, "kept for a second, and asked within it");
}

#[tokio::test(start_paused = true)]
async fn retry_after_and_learnt_delays_hold_over_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let pages = || tree("a.test", 7);
    let refusing = ScriptedDownloader::pages(pages().into_iter().filter(|(url, _)| !url.ends_with("/2")))
        .respond("http://a.test/2", Reply::status(503).header("Retry-After", "100"));
    let crawler = with_job(quick(links(["http://a.test/0"]), &refusing), dir.path()).build().unwrap();
    let handle = crawler.handle();
    let running = tokio::spawn(crawler.run());
    tokio::time::sleep(Duration::from_secs(20)).await;
    handle.stop("enough");
    running.await.unwrap().unwrap();
    assert_eq!(refusing.count("http://a.test/2"), 1, "it waits");

    let answering = ScriptedDownloader::pages(pages());
    let began = tokio::time::Instant::now();
    let report = with_job(quick(links(["http://a.test/0"]), &answering), dir.path()).run().await.unwrap();
    assert_eq!(report.pages, 7, "both runs together");
    assert!(began.elapsed() >= Duration::from_secs(95), "{:?}", began.elapsed());
    let starts = answering.starts("a.test");
    assert!(
        starts[1] - starts[0] >= Duration::from_millis(450),
        "a refusal made the host slower: {starts:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_state_of_a_spider_lasts_as_long_as_its_job() {
    let dir = tempfile::tempdir().unwrap();
    let web = ScriptedDownloader::pages(tree("a.test", 20));
    for (run, seeds) in [(1, ["http://a.test/1"]), (2, ["http://a.test/0"])] {
        let counting = spider_fn(seeds, move |page: &Page, out: &mut Output<String>| {
            out.context().state().update("pages", |pages: Option<u32>| pages.unwrap_or(0) + 1)?;
            out.context().state().set("last", page.url().as_str())?;
            out.follow_links(page);
            Ok(())
        });
        let crawler = with_job(quick(counting, &web), dir.path()).build().unwrap();
        let state = crawler.handle().context().state().clone();
        let before: Option<u32> = state.get("pages").unwrap();
        let report = crawler.run().await.unwrap();
        assert_eq!(before.unwrap_or(0) > 0, run == 2);
        assert_eq!(state.get::<u64>("pages").unwrap(), Some(report.pages), "as many as both runs delivered");
    }
}
