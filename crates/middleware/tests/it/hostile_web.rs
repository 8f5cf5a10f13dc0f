//! The built-in middlewares and the HTTP client against the hostile web of the test kit, over loopback.

use std::time::Duration;

use huntsman_crawler::{CrawlerBuilder, HttpDownloader, Output, Page, Profile, Result, Spider, Start};
use huntsman_middleware::Defaults;
use huntsman_testkit::{Chaos, Family};

struct Site(String);

impl Spider for Site {
    type Item = ();

    fn start(&self) -> Start {
        Start::urls([self.0.clone()])
    }

    fn parse(&self, page: &Page, out: &mut Output<()>) -> Result<()> {
        out.follow_links(page);
        Ok(())
    }
}

/// Crawls the hostile servers as a polite site crawl does, and fails for every promise that was not kept.
async fn crawl(families: &[Family]) {
    let builder = families.iter().fold(Chaos::builder(), |builder, family| builder.family(*family));
    let chaos = builder.hold(Duration::from_secs(4)).crawl_delay(Duration::from_secs(1)).start().await;
    let seed = chaos.seed_url();
    let origin = chaos.origin(Family::Cookies).origin().ascii_serialization();
    let report = CrawlerBuilder::new(Site(seed.to_string()))
        .plugin(Defaults)
        .profile(Profile::Test)
        .set("robotstxt_obey", true)
        .set("obey_nofollow", true)
        .set("scope", "host")
        .set("allow_hosts", serde_json::json!(chaos.hosts()))
        .set("allow_addresses", serde_json::json!(chaos.exceptions()))
        .set("http_auth", serde_json::json!([format!("{origin}=user:password")]))
        .set("download_timeout", 3.0)
        .set("retry_backoff_base", 0.1)
        // Half a dozen refusals in a row, which can happen by the order of requests, would slow a host down to half a
        // minute.
        .set("autothrottle_max_delay", 1.0)
        .set("max_parked_wait", 5.0)
        .downloader_with(HttpDownloader::new)
        .run()
        .await
        .unwrap();
    println!("{report}");
    println!("{}", chaos.report());
    chaos.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirects_end_and_give_nothing_away() {
    crawl(&[Family::Redirects]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_are_few_and_patient() {
    crawl(&[Family::Retries]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn robots_rules_hold() {
    crawl(&[Family::Robots]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cookies_and_credentials_stay_at_home() {
    crawl(&[Family::Cookies]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traps_end() {
    crawl(&[Family::Traps, Family::Addresses]).await;
}
