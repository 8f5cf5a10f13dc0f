//! The scripted downloader on a paused clock.

use std::time::Duration;

use huntsman_crawler::{Downloader, FetchErrorKind, Request};
use huntsman_testkit::{Answer, Reply, ScriptedDownloader, Site, sites};
use tokio::time::{Instant, timeout};

fn request(url: &str) -> Request {
    Request::parse(url).expect("a valid test URL")
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn replies_come_in_order_and_the_last_one_stays() {
    let web = ScriptedDownloader::new()
        .respond("http://a.test/x", Reply::status(503).header("retry-after", "5"))
        .then(Reply::error(FetchErrorKind::Reset))
        .then(Reply::html("<p>back</p>"));
    let x = request("http://a.test/x#part");
    let first = web.fetch(&x).await.expect("a response");
    assert_eq!((first.status.as_u16(), first.header("retry-after")), (503, Some("5")));
    let second = web.fetch(&x).await.expect_err("an error");
    assert_eq!((second.kind(), second.was_sent()), (FetchErrorKind::Reset, true));
    for _ in 0..2 {
        assert_eq!(&web.fetch(&x).await.expect("a response").body[..], b"<p>back</p>");
    }
    assert_eq!(web.count("http://a.test/x"), 4);
}

#[tokio::test(start_paused = true)]
async fn unknown_urls_are_404_or_what_the_function_says() {
    let web = ScriptedDownloader::pages([("http://a.test/", "home")]);
    assert_eq!(web.fetch(&request("http://a.test/nowhere")).await.expect("a response").status, 404);
    let web = web.otherwise(|request, nth| Reply::text(format!("{} {nth}", request.url.path())));
    let lost = request("http://a.test/lost");
    assert_eq!(&web.fetch(&lost).await.expect("a response").body[..], b"/lost 0");
    assert_eq!(&web.fetch(&lost).await.expect("a response").body[..], b"/lost 1");
    assert_eq!(&web.fetch(&request("http://a.test/")).await.expect("a response").body[..], b"home");
}

#[tokio::test(start_paused = true)]
async fn latency_is_virtual_and_recorded() {
    let web = ScriptedDownloader::new()
        .latency(3_600 * SECOND)
        .respond("http://a.test/quick", Reply::html("").after(SECOND));
    let begun = Instant::now();
    let response = web.fetch(&request("http://a.test/")).await.expect("a response");
    web.fetch(&request("http://a.test/quick")).await.expect("a response");
    assert_eq!(begun.elapsed(), 3_601 * SECOND);
    assert_eq!(response.timings.ttfb, 3_600 * SECOND);
    assert_eq!(web.starts("a.test"), [Duration::ZERO, 3_600 * SECOND]);
    assert_eq!(web.smallest_gap("a.test"), Some(3_600 * SECOND));
    assert_eq!(web.requests()[1].ended, Some(3_601 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn peak_counts_fetches_at_once_per_host() {
    let web = ScriptedDownloader::new().latency(SECOND);
    let (a, b, c) = (request("http://a.test/1"), request("http://a.test/2"), request("http://b.test/"));
    let _ = tokio::join!(web.fetch(&a), web.fetch(&b), web.fetch(&c));
    let _ = web.fetch(&a).await;
    assert_eq!((web.peak("a.test"), web.peak("b.test"), web.peak("c.test")), (2, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_fetch_that_is_given_up_says_so() {
    let web = ScriptedDownloader::new().respond("http://a.test/", Reply::never());
    assert!(timeout(30 * SECOND, web.fetch(&request("http://a.test/"))).await.is_err());
    let fetched = &web.requests()[0];
    assert_eq!((fetched.given_up, fetched.ended), (true, Some(30 * SECOND)));
    let _ = web.fetch(&request("http://a.test/other")).await;
    assert!(!web.requests()[1].given_up);
    assert_eq!(web.peak("a.test"), 1);
}

#[tokio::test(start_paused = true)]
async fn repeated_headers_are_all_there() {
    let web = ScriptedDownloader::new().respond(
        "http://a.test/",
        Reply::status(200).header("set-cookie", "a=1").header("set-cookie", "b=2"),
    );
    let response = web.fetch(&request("http://a.test/")).await.expect("a response");
    assert_eq!(response.headers.get_all("set-cookie").iter().count(), 2);
}

#[tokio::test(start_paused = true)]
async fn hosts_resolve_to_scripted_addresses() {
    let web = ScriptedDownloader::new().resolve("a.test", [192, 0, 2, 1].into());
    assert_eq!(web.address("a.test").await, Some([192, 0, 2, 1].into()));
    assert_eq!(web.address("b.test").await, None);
    assert_eq!(web.address("192.0.2.7").await, Some([192, 0, 2, 7].into()));
    assert_eq!(
        web.fetch(&request("http://a.test/")).await.expect("a response").ip,
        Some([192, 0, 2, 1].into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_site_is_served_without_a_network() {
    let web = ScriptedDownloader::site(sites::linked(20, 4).host("b.test").page("/", "<p>b</p>"));
    let home = web.fetch(&request("http://127.0.0.1/")).await.expect("a response");
    assert_eq!((home.status.as_u16(), home.content_type().as_deref()), (200, Some("text/html")));
    assert_eq!(&web.fetch(&request("http://b.test:8080/")).await.expect("a response").body[..], b"<p>b</p>");
    assert_eq!(web.fetch(&request("http://127.0.0.1/robots.txt")).await.expect("a response").status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_site_keeps_its_delays_and_counts_without_a_network() {
    let site = Site::builder()
        .route("/", |asked| Answer::text(asked.nth.to_string()).delay(2 * SECOND))
        .answer("/raw", Answer::raw("nonsense"));
    let web = ScriptedDownloader::site(site);
    let begun = Instant::now();
    web.fetch(&request("http://127.0.0.1/")).await.expect("a response");
    let second = web.fetch(&request("http://127.0.0.1/")).await.expect("a response");
    assert_eq!((&second.body[..], begun.elapsed()), (&b"1"[..], 4 * SECOND));
    let raw = web.fetch(&request("http://127.0.0.1/raw")).await.expect_err("no HTTP");
    assert_eq!(raw.kind(), FetchErrorKind::BadResponse);
}
