//! A client with the polite stack: fetches on demand are as polite as a crawl.

use std::time::Duration;

use huntsman::{ClientError, CrawlClient, OnDemand, Request, Response};
use huntsman_testkit::{Reply, ScriptedDownloader};

use super::support::{polite, smallest_gap};

async fn fetch(client: &CrawlClient, url: &str) -> Result<Response, ClientError> {
    client.fetch(Request::parse(url).unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn a_client_obeys_robots_txt_and_keeps_the_pace_of_a_host() {
    let web = ScriptedDownloader::new()
        .respond("http://a.test/robots.txt", Reply::text("User-agent: *\nDisallow: /private\nCrawl-delay: 3"))
        .respond("http://a.test/gone", Reply::status(404).body("nothing here"))
        .respond("http://a.test/moved", Reply::redirect(301, "/here"))
        .respond("http://a.test/busy", Reply::status(503))
        .then(Reply::html("after a retry"))
        .otherwise(|request, _| Reply::html(request.url.path().to_owned()));
    let client = CrawlClient::start(polite(OnDemand::new(), &web)).unwrap();
    let (private, gone, moved, busy) = tokio::join!(
        fetch(&client, "http://a.test/private/1"),
        fetch(&client, "http://a.test/gone"),
        fetch(&client, "http://a.test/moved"),
        fetch(&client, "http://a.test/busy"),
    );
    let private = private.unwrap_err();
    assert_eq!(&*private.dropped().unwrap().reason, "robots");
    assert!(private.dropped().unwrap().why().contains("Disallow: /private"), "{private}");
    let gone = gone.unwrap_err();
    assert_eq!(gone.dropped().unwrap().why(), "http_status: 404");
    assert_eq!(gone.response().unwrap().body, "nothing here");
    let moved = moved.unwrap();
    assert_eq!((moved.url.as_str(), &moved.body[..]), ("http://a.test/here", &b"/here"[..]));
    assert_eq!(busy.unwrap().body, "after a retry");
    assert_eq!((web.count("http://a.test/robots.txt"), web.count("http://a.test/private/1")), (1, 0));
    assert!(smallest_gap(&web.starts("a.test")) >= Duration::from_secs(3));
    assert_eq!(client.finish().await.unwrap().stat("drops/skipped/robots"), 1);
}
