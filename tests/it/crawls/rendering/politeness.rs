//! The server's view: which requests came, and when.

use std::time::Duration;

use huntsman_testkit::Site;

use super::super::support::arrive_at_intervals;
use super::*;

#[tokio::test]
async fn no_two_requests_of_a_host_are_closer_than_its_delay() {
    let mut links = String::new();
    for n in 0..6 {
        links.push_str(&format!("<a href=/{n}></a>"));
    }
    let site = Site::builder()
        .page("/", links)
        .route("/*", |asked| Answer::html(format!("<p></p><script src=/bundle.js></script><script>fetch('/data{}').then(a => a.text()).then(t => document.querySelector('p').textContent = t)</script>", asked.path())))
        .route("/data/*", |asked| Answer::text(format!("data of {}", asked.path())))
        .answer("/bundle.js", script("1"))
        .answer("/robots.txt", Answer::status(404))
        .start()
        .await;
    // The limit of time is shorter than what the page waits for its turns.
    let set = [
        ("download_delay", json!(0.4)),
        ("render_pages", json!(3)),
        ("render_timeout", json!(3.0)),
        ("download_delay_jitter", json!(0.0)),
    ];
    let crawled = crawl_all(&site, "/", &set).await;
    assert_eq!(crawled.report.pages, 7);
    for n in 0..6 {
        assert_eq!(crawled.page(&format!("/{n}")).text, format!("data of /data/{n}"));
    }
    arrive_at_intervals(&site, Duration::from_millis(400));
    assert_eq!(site.count("/bundle.js"), 1);
}

#[tokio::test]
async fn a_bundle_is_asked_for_once_and_a_forbidden_script_never() {
    const PAGES: usize = 50;
    let links: String = (0..PAGES).map(|n| format!("<a href=/page/{n}></a>")).collect();
    let site = Site::builder()
        .page("/", links)
        .route("/page/*", |_| {
            Answer::html("<link rel=stylesheet href=/site.css><script src=/bundle.js></script><script src=/private/track.js></script><img src=/pixel.png><p>x</p>")
        })
        .answer("/bundle.js", script("document.title = 'b'").header("Cache-Control", "no-store"))
        .answer("/site.css", Answer::text("p { color: red }").header("Content-Type", "text/css"))
        .robots("User-agent: *\nDisallow: /private/\n")
        .start()
        .await;
    let crawled = crawl_all(&site, "/", &[]).await;
    assert_eq!(crawled.report.pages as usize, PAGES + 1);
    assert_eq!((site.count("/bundle.js"), site.count("/site.css")), (1, 1));
    assert_eq!((site.count("/private/track.js"), site.count("/pixel.png")), (0, 0));
    assert_eq!(site.count("/page/7"), 1, "the document is the response that the crawl has");
    assert_eq!(crawled.report.stat("render/refused/robots") as usize, PAGES);
    assert_eq!(crawled.report.stat("render/source/kept") as usize, 2 * (PAGES - 1));
}

#[tokio::test]
async fn frames_and_styles_of_other_sites_are_not_loaded_and_their_scripts_are() {
    let site = Site::builder()
        .host("127.0.0.2")
        .answer("/lib.js", script("document.querySelector('p').textContent = 'from the library'"))
        .page("/frame", "<p>frame</p>")
        .host("127.0.0.1")
        .route("/", |asked| {
            let other =
                format!("http://127.0.0.2:{}", asked.header("host").unwrap().rsplit(':').next().unwrap());
            Answer::html(format!(
                "<p></p><script src={other}/lib.js></script><iframe src={other}/frame></iframe>"
            ))
        })
        .start()
        .await;
    let crawled = crawl_all(&site, "/", &[]).await;
    assert_eq!(crawled.page("/").text, "from the library");
    assert_eq!(site.count("/frame"), 0);
    assert_eq!(crawled.report.stat("render/refused/third_party"), 1);
    assert_eq!(crawled.report.pages, 1);
}

#[tokio::test]
async fn a_crawl_without_rendering_starts_no_browser() {
    let site = Site::builder().page("/", "<script src=/a.js></script>").start().await;
    let crawled = crawl(&site, vec![Request::get(site.url("/"))], &[("render_browser", Value::Null)]).await;
    assert_eq!((crawled.report.pages, site.count("/a.js")), (1, 0));
    let told = crawled.report.stats.keys().filter(|name| name.starts_with("render/")).count();
    assert_eq!(told, 0);
}
