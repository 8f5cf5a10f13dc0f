//! Losses of a crawl are reported: in the report, and to the spider.

use std::sync::{Arc, Mutex};

use huntsman::{
    Context, CrawlReport, Error, FetchError, FetchErrorKind, LossKind, OnItem, Output, Page, Pipeline,
    Request, Result, Spider, Start, spider_fn,
};
use huntsman_testkit::{Reply, ScriptedDownloader};

use super::support::{links, quick, tree};

/// Kind and number of each loss.
fn lost(report: &CrawlReport) -> Vec<(LossKind, u64)> {
    report.losses.iter().map(|loss| (loss.kind, loss.count)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_crawl_whose_seeds_all_failed_says_so() {
    let web = ScriptedDownloader::new()
        .respond("http://a.test/0", Reply::error(FetchErrorKind::Dns))
        .respond("http://b.test/0", Reply::status(404))
        .respond("http://c.test/0", Reply::html("x"));
    let seeds = ["http://a.test/0", "http://b.test/0", "no address"];
    let report = quick(links(seeds), &web).set("retry_enabled", false).run().await.unwrap();
    assert_eq!((lost(&report), report.seeds), (vec![(LossKind::Seeds, 3)], 3));
    assert_eq!(report.failure().as_deref(), Some("every seed failed"));
    let printed = report.to_string();
    assert!(printed.starts_with("finished, but every seed failed after"), "{printed}");
    assert!(printed.contains("\n  3 seeds failed, first: ") && printed.contains("no address"), "{printed}");

    let seeds = ["http://a.test/0", "http://c.test/0"];
    let report = quick(links(seeds), &web).set("retry_enabled", false).run().await.unwrap();
    assert_eq!((lost(&report), report.failure()), (vec![(LossKind::Seeds, 1)], None));
    let printed = report.to_string();
    assert!(printed.starts_with("finished with losses after"), "{printed}");
    assert!(printed.contains("1 seed failed, first: http://a.test/0: dns"), "{printed}");
}

/// A pipeline that treats an item as its page says.
struct Picky;

impl Pipeline<String> for Picky {
    async fn process_item(&mut self, item: String, _: &Context) -> Result<OnItem<String>> {
        match item.rsplit('/').next() {
            Some("0" | "1") => Err(Error::msg(format!("{item} has no price"))),
            Some("2") => Ok(OnItem::Drop("not wanted".into())),
            _ => Ok(OnItem::Keep(item)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn items_that_pipelines_lose_are_lines_of_the_report() {
    let web = ScriptedDownloader::pages(tree("a.test", 5));
    let report = quick(links(["http://a.test/0"]), &web).pipeline(Picky).run().await.unwrap();
    assert_eq!(lost(&report), [(LossKind::ItemsFailed, 2), (LossKind::ItemsDropped, 1)]);
    assert_eq!(report.failure(), None);
    let printed = report.to_string();
    assert!(
        printed.contains("2 items lost, a pipeline failed, first: http://a.test/0 has no price"),
        "{printed}"
    );
    assert!(printed.contains("1 item dropped by pipelines, first: not wanted"), "{printed}");

    let web = ScriptedDownloader::pages(tree("a.test", 2));
    let report = quick(links(["http://a.test/0"]), &web).pipeline(Picky).run().await.unwrap();
    assert_eq!(report.failure().as_deref(), Some("every item was lost"));
    assert!(report.to_string().starts_with("finished, but every item was lost"), "{report}");

    // An item that a pipeline drops on purpose is not a loss.
    let web = ScriptedDownloader::pages([("http://a.test/2", "x")]);
    let report = quick(links(["http://a.test/2"]), &web).pipeline(Picky).run().await.unwrap();
    assert_eq!((lost(&report), report.failure()), (vec![(LossKind::ItemsDropped, 1)], None));
    assert_eq!(report.outcome(), "finished");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_label_is_an_error() {
    let web = ScriptedDownloader::pages(tree("a.test", 3));
    let spider = spider_fn(["http://a.test/0"], |page: &Page, out: &mut Output<String>| {
        for link in page.links() {
            out.request(Request::get(link).callback("parse_itme"));
        }
        out.item(page.url().to_string());
        Ok(())
    });
    let report = quick(spider, &web).run().await.unwrap();
    assert_eq!((report.pages, report.stat("drops/failed/unknown_callback")), (1, 2));
    assert_eq!(lost(&report), [(LossKind::Callbacks, 2)]);
    assert!(report.losses[0].first.contains("parse_itme"), "{report}");

    let spider = spider_fn(["http://a.test/0"], |page: &Page, out: &mut Output<String>| {
        match page.callback() {
            "child" => out.item(page.url().to_string()),
            _ => page.links().into_iter().for_each(|link| out.request(Request::get(link).callback("child"))),
        }
        Ok(())
    });
    let report = quick(spider, &web).run().await.unwrap();
    assert_eq!((report.pages, report.stat("item_scraped_count")), (3, 2), "{report}");
}

/// Records what `failed` was passed for each address.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<String>>>);

impl Spider for Asked {
    type Item = ();

    fn start(&self) -> Start {
        Start::urls(["dns", "reset", "404", "loop"].map(|path| format!("http://a.test/{path}")))
    }

    fn parse(&self, _: &Page, _: &mut Output<()>) -> Result<()> {
        Ok(())
    }

    fn failed(&self, request: &Request, error: &Error, _: &mut Output<()>) -> Result<()> {
        let cause = error.downcast_ref::<FetchError>().expect("a failure of a request is one");
        let answer = cause
            .response()
            .map(|response| (response.header("x-why").unwrap_or_default().to_owned(), response.body.len()));
        let told = format!("{} {:?} {:?} {answer:?}", request.url.path(), cause.kind(), cause.status());
        self.0.lock().unwrap().push(told);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn failed_gets_the_kind_the_status_and_the_response() {
    let web = ScriptedDownloader::new()
        .respond("http://a.test/dns", Reply::error(FetchErrorKind::Dns))
        .respond("http://a.test/reset", Reply::error(FetchErrorKind::Reset))
        .respond("http://a.test/404", Reply::status(404).header("x-why", "gone").body("sorry"))
        .respond("http://a.test/loop", Reply::redirect(302, "http://a.test/loop"));
    let asked = Asked::default();
    quick(asked.clone(), &web).set("retry_enabled", false).run().await.unwrap();
    let mut told = asked.0.lock().unwrap().clone();
    told.sort();
    assert_eq!(
        told,
        [
            "/404 HttpStatus Some(404) Some((\"gone\", 5))",
            "/dns Dns None None",
            "/loop Middleware Some(302) Some((\"\", 0))",
            "/reset Reset None None",
        ]
    );
}
