//! A client with the polite stack: fetches on demand are as polite as a crawl.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use huntsman::{
    ClientError, Context, CrawlClient, OnDemand, OnItem, Output, Page, Pipeline, Request, Response, spider_fn,
};
use huntsman_testkit::{Reply, ScriptedDownloader};

use super::support::{polite, quick, smallest_gap};

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

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_page_gets_one_to_select_from() {
    let web = ScriptedDownloader::pages([
        ("http://a.test/book", "<h1>Mills</h1><a href=stock>stock</a>"),
        ("http://a.test/stock", "<p>7 left</p><a href=../else>x</a>"),
    ]);
    let client = CrawlClient::start(quick(OnDemand::new(), &web)).unwrap();
    let page = client.fetch_page(Request::parse("http://a.test/stock").unwrap()).await.unwrap();
    assert_eq!(page.css("p::text").unwrap().get_or("-"), "7 left");
    assert_eq!(page.links()[0].as_str(), "http://a.test/else");
    let missing = client.fetch_page(Request::parse("http://a.test/none").unwrap()).await.unwrap_err();
    assert_eq!(missing.dropped().unwrap().status, Some(404));
    client.finish().await.unwrap();

    let spider = spider_fn(["http://a.test/book"], |page: &Page, out: &mut Output<String>| {
        let title = page.css("h1::text")?.get_or("-");
        for request in page.follow_all("a")? {
            let stock = out.fetch(request)?;
            out.item(format!("{title}: {}", stock.css("p::text")?.get_or("-")));
        }
        Ok(())
    });
    let items = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&items);
    let report = quick(spider, &web).pipeline(Kept(kept)).run().await.unwrap();
    assert_eq!((report.pages, items.lock().unwrap().clone()), (1, vec!["Mills: 7 left".to_owned()]));
}

/// Keeps the items of a crawl.
struct Kept(Arc<Mutex<Vec<String>>>);

impl Pipeline<String> for Kept {
    async fn process_item(&mut self, item: String, _: &Context) -> huntsman::Result<OnItem<String>> {
        self.0.lock().unwrap().push(item.clone());
        Ok(OnItem::Keep(item))
    }
}
