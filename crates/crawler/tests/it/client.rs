//! Tests of clients: pages are requested one by one, with scripted responses, in virtual time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::StatusCode;
use huntsman_crawler::{
    Backend, ClientError, Context, CrawlClient, CrawlerBuilder, DownloaderMiddleware, DropReason, DropState,
    Event, Job, OnDemand, OnItem, OnRequest, OnResponse, Page, Pipeline, Request, Response, Result,
};
use huntsman_testkit::{Reply, ScriptedDownloader};
use tokio::time::{Instant, sleep, timeout};

/// A client without delay, with one request at a time to each host.
fn builder<T: Clone + Send + Sync + 'static>(
    pages: OnDemand<T>,
    web: &ScriptedDownloader,
) -> CrawlerBuilder<OnDemand<T>> {
    CrawlerBuilder::new(pages)
        .set("download_delay", 0.0)
        .set("concurrent_requests_per_domain", 1)
        .set("seed", 7)
        .downloader(web.clone())
}

fn client(web: &ScriptedDownloader) -> CrawlClient {
    CrawlClient::start(builder(OnDemand::new(), web)).unwrap()
}

fn get(url: &str) -> Request {
    Request::parse(url).unwrap()
}

fn text(response: &Response) -> &str {
    std::str::from_utf8(&response.body).unwrap()
}

/// Two pages of one host that take a second each.
fn slow() -> ScriptedDownloader {
    let pages = [("http://a.test/1", "one"), ("http://a.test/2", "two")];
    ScriptedDownloader::pages(pages).latency(Duration::from_secs(1))
}

const MILLISECONDS: Duration = Duration::from_millis(1);

fn ended(result: Result<Response, ClientError>) -> String {
    match result {
        Err(ClientError::Ended { reason }) => reason.to_string(),
        other => panic!("{other:?}"),
    }
}

fn reason(result: Result<Response, ClientError>) -> String {
    result.unwrap_err().dropped().expect("it was dropped").reason.to_string()
}

#[tokio::test(start_paused = true)]
async fn callers_that_want_one_page_share_a_fetch_and_later_ones_get_it_anew() {
    let web = slow();
    let client = client(&web);
    let (first, second, other) = tokio::join!(
        client.fetch(get("http://a.test/1")),
        // Another notation of the same URL, with a fragment, which is not sent.
        client.clone().fetch(get("http://A.test:80/1#here")),
        client.fetch(get("http://a.test/2")),
    );
    assert_eq!((text(&first.unwrap()), text(&second.unwrap()), text(&other.unwrap())), ("one", "one", "two"));
    assert_eq!(web.urls(), ["http://a.test/1", "http://a.test/2"]);
    client.fetch(get("http://a.test/1")).await.unwrap();
    assert_eq!(web.count("http://a.test/1"), 2);
    let report = client.finish().await.unwrap();
    assert_eq!((report.pages, report.finish_reason.as_str()), (3, "finished"));
}

#[tokio::test(start_paused = true)]
async fn requests_that_differ_in_method_body_or_label_share_nothing() {
    let web = slow();
    let labels = OnDemand::reading(|page: &Page, _: &Context| page.callback().to_owned());
    let client = CrawlClient::start(builder(labels, &web)).unwrap();
    let post = |body: &'static str| get("http://a.test/1").method(http::Method::POST).body(body);
    let read = tokio::join!(
        client.fetch(get("http://a.test/1")),
        client.fetch(get("http://a.test/1").callback("raw")),
        client.fetch(post("x")),
        client.fetch(post("y")),
    );
    let read = [read.0, read.1, read.2, read.3].map(Result::unwrap);
    assert_eq!(read, ["parse", "raw", "parse", "parse"]);
    assert_eq!(web.requests().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_page_is_read_once_for_all_its_callers() {
    let web = slow();
    let times = Arc::new(Mutex::new(0));
    let count = Arc::clone(&times);
    let titles = OnDemand::reading(move |page: &Page, _: &Context| {
        *count.lock().unwrap() += 1;
        page.body_text().to_owned()
    });
    let client = CrawlClient::start(builder(titles, &web)).unwrap();
    let callers: Vec<_> = (0..5).map(|_| client.fetch(get("http://a.test/1"))).collect();
    for caller in callers {
        assert_eq!(caller.await.unwrap(), "one");
    }
    assert_eq!(*times.lock().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_fetch_that_is_given_up_in_the_queue_is_never_sent() {
    let web = slow();
    let dropped = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&dropped);
    let builder = builder(OnDemand::new(), &web).observer(move |event: &Event<'_>| {
        if let Event::RequestDropped(drop) = event {
            seen.lock().unwrap().push((drop.url.clone(), drop.state, drop.reason.to_string()));
        }
    });
    let client = CrawlClient::start(builder).unwrap();
    let first = client.fetch(get("http://a.test/1"));
    let queued = client.fetch(get("http://a.test/2"));
    sleep(10 * MILLISECONDS).await;
    assert!(!first.is_queued() && queued.is_queued());
    assert!(timeout(100 * MILLISECONDS, queued).await.is_err(), "a deadline is the caller's");
    assert_eq!(text(&first.await.unwrap()), "one");
    sleep(Duration::from_secs(5)).await;
    assert_eq!(web.urls(), ["http://a.test/1"]);
    let not_wanted = ("http://a.test/2".to_owned(), DropState::Skipped, "not_wanted".to_owned());
    assert_eq!(*dropped.lock().unwrap(), [not_wanted]);
    assert_eq!(text(&client.fetch(get("http://a.test/2")).await.unwrap()), "two");
}

#[tokio::test(start_paused = true)]
async fn a_fetch_that_is_asked_for_again_before_its_turn_is_sent_once() {
    let web = slow();
    let client = client(&web);
    let first = client.fetch(get("http://a.test/1"));
    drop(client.fetch(get("http://a.test/2")));
    sleep(10 * MILLISECONDS).await;
    let again = client.fetch(get("http://a.test/2"));
    assert_eq!((text(&first.await.unwrap()), text(&again.await.unwrap())), ("one", "two"));
    assert_eq!(web.urls(), ["http://a.test/1", "http://a.test/2"]);
    assert_eq!(client.finish().await.unwrap().stat("drops/skipped"), 0);
}

#[tokio::test(start_paused = true)]
async fn one_caller_that_gives_up_costs_the_others_nothing() {
    let web = slow();
    let client = client(&web);
    let (one, other) = (client.fetch(get("http://a.test/1")), client.fetch(get("http://a.test/1")));
    sleep(10 * MILLISECONDS).await;
    drop(one);
    assert_eq!(text(&other.await.unwrap()), "one");
    assert!(!web.requests()[0].given_up);
}

#[tokio::test(start_paused = true)]
async fn a_download_that_all_give_up_ends_after_the_grace() {
    for (pages, expected) in [(OnDemand::new(), 1_000), (OnDemand::new().grace(200 * MILLISECONDS), 200)] {
        let web = ScriptedDownloader::new().respond("http://a.test/never", Reply::never());
        let client = CrawlClient::start(builder(pages, &web)).unwrap();
        let fetch = client.fetch(get("http://a.test/never"));
        assert!(timeout(Duration::from_secs(3), fetch).await.is_err());
        let given_up = Instant::now();
        while !web.requests()[0].given_up {
            sleep(MILLISECONDS).await;
        }
        let took = given_up.elapsed().as_millis();
        assert!((expected..expected + 10).contains(&took), "{took} ms");
        let report = client.finish().await.unwrap();
        assert_eq!(report.stat("drops/skipped/not_wanted"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_comes_within_the_grace_gets_the_page_of_the_same_download() {
    let web = slow();
    let client = client(&web);
    assert!(timeout(100 * MILLISECONDS, client.fetch(get("http://a.test/1"))).await.is_err());
    sleep(500 * MILLISECONDS).await;
    assert_eq!(text(&client.fetch(get("http://a.test/1")).await.unwrap()), "one");
    assert_eq!(web.requests().len(), 1);
}

/// Decides by the path, like robots.txt and HttpError.
struct Rules;

impl DownloaderMiddleware for Rules {
    async fn process_request(&self, request: &mut Request, _: &Context) -> Result<OnRequest> {
        assert!(request.url.path() != "/trap", "the trap");
        Ok(match request.url.path() {
            // A new request, without the meta of the other one.
            "/elsewhere" => OnRequest::Reschedule(Box::new(get("http://b.test/there").unfiltered())),
            "/private" => OnRequest::Drop(DropReason::skipped("robots").detail("Disallow: /private")),
            _ => OnRequest::Continue,
        })
    }

    async fn process_response(
        &self,
        request: &Request,
        response: &mut Response,
        _: &Context,
    ) -> Result<OnResponse> {
        if response.status == 302 {
            let mut next = request.clone();
            next.url = next.url.join("/here").unwrap();
            next.meta.insert("redirect_urls".to_owned(), vec![request.url.as_str()].into());
            next.unassign();
            return Ok(OnResponse::Reschedule(Box::new(next)));
        }
        Ok(match response.status.is_success() {
            true => OnResponse::Continue,
            false => OnResponse::Drop(DropReason::failed("http_status").status(response.status)),
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_fetch_without_a_page_tells_why_and_what_was_answered() {
    let web = ScriptedDownloader::new()
        .respond("http://a.test/gone", Reply::status(410).body("it was here"))
        .respond("http://a.test/moved", Reply::redirect(302, "/here"))
        .respond("http://a.test/here", Reply::html("here"))
        .respond("http://b.test/there", Reply::html("there"));
    let client = CrawlClient::start(builder(OnDemand::new(), &web).middleware(Rules)).unwrap();
    let error = client.fetch(get("http://a.test/private")).await.unwrap_err();
    assert_eq!(error.to_string(), "fetching http://a.test/private: robots: Disallow: /private");
    let dropped = error.dropped().unwrap();
    assert_eq!((dropped.state, &*dropped.component), (DropState::Skipped, "Rules"));
    assert!(error.response().is_none());
    let error = client.fetch(get("http://a.test/gone")).await.unwrap_err();
    assert_eq!(error.dropped().unwrap().why(), "http_status: 410");
    let response = error.response().unwrap();
    assert_eq!((response.status, text(response)), (StatusCode::GONE, "it was here"));
    let error = client.fetch(get("http://a.test/trap")).await.unwrap_err();
    assert_eq!(&*error.dropped().unwrap().reason, "panic");
    let moved = client.fetch(get("http://a.test/moved")).await.unwrap();
    assert_eq!((moved.url.as_str(), text(&moved)), ("http://a.test/here", "here"));
    let elsewhere = client.fetch(get("http://a.test/elsewhere")).await.unwrap();
    assert_eq!(text(&elsewhere), "there");
    assert_eq!(web.count("http://a.test/private"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_a_page_is_read_is_an_error_of_that_fetch() {
    let web = slow();
    let reading = OnDemand::reading(|page: &Page, _: &Context| {
        assert!(page.url().path() != "/1", "cannot read this");
        page.body_text().to_owned()
    });
    let client = CrawlClient::start(builder(reading, &web)).unwrap();
    let error = client.fetch(get("http://a.test/1")).await.unwrap_err();
    assert_eq!(error.dropped().unwrap().why(), "callback_panic: cannot read this");
    assert_eq!(client.fetch(get("http://a.test/2")).await.unwrap(), "two");
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_ends_the_crawl_is_an_error_of_its_own() {
    let web = slow();
    let client = CrawlClient::start(builder(OnDemand::new(), &web).set("closespider_pagecount", 1)).unwrap();
    let (one, two) = tokio::join!(client.fetch(get("http://a.test/1")), client.fetch(get("http://a.test/2")));
    assert_eq!(text(&one.unwrap()), "one");
    assert_eq!(ended(two), "closespider_pagecount");
    assert!(client.is_ended());
    assert_eq!(ended(client.fetch(get("http://a.test/2")).await), "closespider_pagecount");
    assert_eq!(web.urls(), ["http://a.test/1"]);
    assert_eq!(client.finish().await.unwrap().finish_reason, "closespider_pagecount");
}

#[tokio::test(start_paused = true)]
async fn finish_lets_downloads_end_and_gives_queued_callers_an_error() {
    let web = slow();
    let client = client(&web);
    let (in_flight, queued) = (client.fetch(get("http://a.test/1")), client.fetch(get("http://a.test/2")));
    sleep(10 * MILLISECONDS).await;
    let (report, in_flight, queued) = tokio::join!(client.finish(), in_flight, queued);
    assert_eq!(text(&in_flight.unwrap()), "one");
    assert_eq!(ended(queued), "finished");
    let report = report.unwrap();
    assert_eq!((report.pages, report.stat("drops/skipped/not_crawled")), (1, 1));
    assert!(client.finish().await.unwrap_err().is_usage());
    assert_eq!(ended(client.fetch(get("http://a.test/1")).await), "finished");
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_downloads_that_do_not_end_by_themselves() {
    let web = ScriptedDownloader::new().respond("http://a.test/never", Reply::never());
    let builder = builder(OnDemand::new(), &web).set("drain_timeout", 5.0);
    let client = CrawlClient::start(builder).unwrap();
    let fetch = client.fetch(get("http://a.test/never"));
    sleep(10 * MILLISECONDS).await;
    client.handle().stop("shutdown");
    assert_eq!(ended(timeout(Duration::from_secs(6), fetch).await.unwrap()), "shutdown");
    let aborted = CrawlClient::start(self::builder(OnDemand::new(), &web)).unwrap();
    let fetch = aborted.fetch(get("http://a.test/never"));
    sleep(10 * MILLISECONDS).await;
    aborted.handle().abort();
    assert_eq!(ended(timeout(MILLISECONDS, fetch).await.unwrap()), "cancelled");
}

/// A pipeline that cannot be opened.
struct Broken;

impl Pipeline<()> for Broken {
    async fn open(&mut self, _: &Context) -> Result<()> {
        Err(huntsman_crawler::Error::msg("the disk is gone"))
    }

    async fn process_item(&mut self, item: (), _: &Context) -> Result<OnItem<()>> {
        Ok(OnItem::Keep(item))
    }
}

#[tokio::test(start_paused = true)]
async fn a_fatal_error_reaches_all_callers() {
    let client = CrawlClient::start(builder(OnDemand::new(), &slow()).pipeline(Broken)).unwrap();
    assert!(ended(client.fetch(get("http://a.test/1")).await).contains("the disk is gone"));
    assert!(ended(client.fetch(get("http://a.test/1")).await).contains("the disk is gone"));
    assert!(client.finish().await.unwrap_err().to_string().contains("the disk is gone"));
}

#[test]
fn a_client_wants_a_runtime_and_says_so() {
    let error = CrawlClient::start(CrawlerBuilder::new(OnDemand::new())).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("starting a client"), "{error}");
}

#[test]
fn a_runtime_that_is_dropped_ends_the_fetches_of_its_client() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (client, fetch) = runtime.block_on(async {
        let web = ScriptedDownloader::new().respond("http://a.test/never", Reply::never());
        let client = client(&web);
        let fetch = client.fetch(get("http://a.test/never"));
        (client, fetch)
    });
    drop(runtime);
    let waiting = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(ended(waiting.block_on(fetch)), "it was dropped");
    assert!(client.is_ended());
}

#[tokio::test(start_paused = true)]
async fn the_crawl_ends_with_the_last_clone_and_the_last_fetch() {
    let (web, (sender, closed)) = (slow(), tokio::sync::oneshot::channel());
    let sender = Mutex::new(Some(sender));
    let builder = builder(OnDemand::new(), &web).observer(move |event: &Event<'_>| {
        if let Event::EngineStopped = event {
            sender.lock().unwrap().take().unwrap().send(()).unwrap();
        }
    });
    let client = CrawlClient::start(builder).unwrap();
    let fetch = client.fetch(get("http://a.test/1"));
    drop(client);
    assert_eq!(text(&fetch.await.unwrap()), "one");
    closed.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn requests_that_a_job_kept_of_an_earlier_client_are_not_wanted() {
    let (web, directory) = (slow(), tempfile::tempdir().unwrap());
    let start = || {
        let job = Job::open(directory.path().join("job"), Backend::Redb).unwrap();
        CrawlClient::start(builder(OnDemand::new(), &web).job(job)).unwrap()
    };
    let first = start();
    let fetches = [first.fetch(get("http://a.test/1")), first.fetch(get("http://a.test/2"))];
    sleep(10 * MILLISECONDS).await;
    first.finish().await.unwrap();
    let [one, two] = fetches;
    assert_eq!((text(&one.await.unwrap()), ended(two.await)), ("one", "finished".to_owned()));
    let second = start();
    assert_eq!(text(&second.fetch(get("http://a.test/1")).await.unwrap()), "one");
    let report = second.finish().await.unwrap();
    assert_eq!(web.count("http://a.test/2"), 0);
    assert_eq!(report.stat("drops/skipped/not_wanted"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_given_up_fails_the_fetches_that_wait_for_it() {
    let web = slow();
    let client = client(&web);
    let (in_flight, queued) = (client.fetch(get("http://a.test/1")), client.fetch(get("http://a.test/2")));
    sleep(10 * MILLISECONDS).await;
    let host = get("http://a.test/1").host();
    client.handle().set_politeness(&host, huntsman_crawler::Politeness::GiveUp("closed_for_good"));
    assert_eq!(reason(queued.await), "closed_for_good");
    assert_eq!(text(&in_flight.await.unwrap()), "one");
}
