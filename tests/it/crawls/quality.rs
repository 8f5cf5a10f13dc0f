//! Whole crawls whose items are checked, whose stats are judged, and whose end is told to a webhook.

use std::time::Duration;

use huntsman::middleware::{Faults, ItemChecks, Validate, Validation};
use huntsman::{
    Context, CrawlReport, CrawlerBuilder, Error, LossKind, OnItem, Output, Page, Pipeline, Result, Spider,
    spider_fn,
};
use huntsman_testkit::{Answer, Part, Reply, RunningSite, ScriptedDownloader, Site};
use serde::Serialize;
use serde_json::{Value, json};

use super::support::quick;

/// A crawl of one page that gives these items.
fn giving(items: Vec<Value>) -> CrawlerBuilder<impl Spider<Item = Value>> {
    let spider = spider_fn(["http://a.test/"], move |_: &Page, out: &mut Output<Value>| {
        out.items(items.iter().cloned());
        Ok(())
    });
    quick(spider, &ScriptedDownloader::pages([("http://a.test/", "x")]))
}

/// The losses of a kind: name, count, first.
fn lost(report: &CrawlReport, kind: LossKind) -> Vec<(&str, u64, &str)> {
    let of_kind = report.losses.iter().filter(|loss| loss.kind == kind);
    of_kind.map(|loss| (loss.name.as_str(), loss.count, loss.first.as_str())).collect()
}

fn rules(report: &CrawlReport) -> Vec<&str> {
    report.failed_rules.iter().map(|failed| failed.rule.as_str()).collect()
}

#[derive(Serialize)]
struct Book {
    title: String,
    price: f64,
    note: String,
}

impl Validate for Book {
    fn validate(&self, faults: &mut Faults) {
        assert_ne!(self.title, "panic");
        faults.unless(!self.title.is_empty(), "title", "is empty");
        if self.price <= 0.0 {
            faults.add_with("price", "is not above 0", self.price);
        }
    }

    fn mark(&mut self, faults: &Faults) {
        self.note = faults.to_string();
    }
}

fn books(of: &'static [(&'static str, f64)]) -> CrawlerBuilder<impl Spider<Item = Book>> {
    let spider = spider_fn(["http://a.test/"], move |_: &Page, out: &mut Output<Book>| {
        out.items(of.iter().map(|(title, price)| Book {
            title: (*title).to_owned(),
            price: *price,
            note: String::new(),
        }));
        Ok(())
    });
    quick(spider, &ScriptedDownloader::pages([("http://a.test/", "x")]))
}

/// Refuses items that have no note.
struct Marked;

impl Pipeline<Book> for Marked {
    async fn process_item(&mut self, item: Book, _: &Context) -> Result<OnItem<Book>> {
        match item.note.as_str() {
            "price: is not above 0: -1" => Ok(OnItem::Keep(item)),
            other => Err(Error::msg(format!("the note is {other:?}"))),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_item_is_dropped_and_its_fields_are_in_stats_and_report() {
    let of = &[("Mills", 10.0), ("", 5.0), ("Dams", -1.0), ("", 0.0), ("panic", 1.0)];
    let report = books(of).pipeline(Validation::default()).run().await.unwrap();
    assert_eq!(report.stat("item_scraped_count"), 1);
    assert_eq!(
        (report.stat("item_invalid_count"), report.stat("item_dropped_reasons_count/invalid")),
        (3, 3)
    );
    assert_eq!(report.stat("item_faults_count/title/is empty"), 2);
    assert_eq!(report.stat("item_faults_count/price/is not above 0"), 2);
    let expected = [("price", 2, "is not above 0: -1"), ("title", 2, "is empty")];
    assert_eq!(lost(&report, LossKind::ItemsInvalid), expected);
    // A rule that panics costs its item, and no other.
    assert_eq!(report.stat("item_error_count"), 1);
    assert!(lost(&report, LossKind::ItemsFailed)[0].2.contains("panicked"), "{report}");
    assert!(
        report.to_string().contains("\n  2 items not valid in price, first: is not above 0: -1"),
        "{report}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_invalid_item_may_be_kept_and_marked() {
    let marked = books(&[("Dams", -1.0)]).pipeline(Validation::default()).pipeline(Marked);
    let report = marked.set("item_invalid", "mark").run().await.unwrap();
    assert_eq!((report.stat("item_scraped_count"), report.stat("item_invalid_count")), (1, 1), "{report}");

    let folder = tempfile::tempdir().unwrap();
    let schema = folder.path().join("book.json");
    std::fs::write(&schema, r#"{"required": ["price"]}"#).unwrap();
    let (feed, path) = (folder.path().join("books.jsonl"), schema.to_str().unwrap());
    let report = giving(vec![json!({"title": "Mills"}), json!({"title": "Dams", "price": 1})])
        .set("item_schema", path)
        .set("item_invalid", "mark")
        .pipeline(ItemChecks::default())
        .pipeline(huntsman::middleware::sinks::JsonLines::create(&feed).unwrap())
        .run()
        .await
        .unwrap();
    assert_eq!(report.stat("item_scraped_count"), 2);
    let lines = std::fs::read_to_string(&feed).unwrap();
    let expected = concat!(
        "{\"title\":\"Mills\",\"_faults\":[{\"field\":\"price\",\"rule\":\"required\"}]}\n",
        "{\"title\":\"Dams\",\"price\":1}\n"
    );
    assert_eq!(lines, expected);
}

#[tokio::test(start_paused = true)]
async fn items_are_compared_with_a_schema_and_their_fields_counted() {
    let folder = tempfile::tempdir().unwrap();
    let schema = folder.path().join("book.json");
    std::fs::write(&schema, r#"{"required": ["title"], "properties": {"price": {"type": "number"}}}"#)
        .unwrap();
    let crawl = || {
        let items = vec![
            json!({"title": "Mills", "price": 3, "seller": {"name": "x"}}),
            json!({"title": "Dams", "price": "3"}),
            json!({"title": "Weirs"}),
            json!({"price": 3}),
            json!({"title": "Locks", "price": 4}),
        ];
        giving(items).set("item_schema", schema.to_str().unwrap()).set("item_coverage", true)
    };
    let report = crawl().pipeline(ItemChecks::default()).run().await.unwrap();
    assert_eq!((report.stat("item_scraped_count"), report.stat("item_invalid_count")), (3, 2));
    assert_eq!(report.stat("item_faults_count/price/type"), 1);
    let expected = [("price", 1, "type: want number, but got string"), ("title", 1, "required")];
    assert_eq!(lost(&report, LossKind::ItemsInvalid), expected);
    let share = |field: &str| report.stats[&format!("coverage/{field}")].as_f64().unwrap();
    assert_eq!(
        (report.stat("item_coverage_count"), share("title"), share("seller.name")),
        (3, 1.0, 1.0 / 3.0)
    );
    assert_eq!(report.stat("item_field_count/price"), 2);

    // Items with a type of their own are looked at as serde writes them.
    let report = books(&[("Mills", 1.0), ("", 2.0)])
        .set("item_schema", schema.to_str().unwrap())
        .set("quality_rules", json!(["coverage.title >= 0.5", "coverage.note > 0"]))
        .pipeline(ItemChecks::default())
        .run()
        .await
        .unwrap();
    assert_eq!(rules(&report), ["coverage.note > 0"]);

    std::fs::write(&schema, r#"{"properties": {"price": {"type": "numbr"}}}"#).unwrap();
    let error = crawl().pipeline(ItemChecks::default()).run().await.unwrap_err();
    assert!(
        error.is_usage()
            && error.to_string().contains("book.json (setting item_schema): at #/properties/price/type"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn rules_that_fail_are_told_in_the_report() {
    let web = ScriptedDownloader::pages([("http://a.test/", "x")])
        .respond("http://a.test/gone", Reply::status(404));
    let crawl = || {
        let spider = spider_fn(["http://a.test/", "http://a.test/gone"], |_: &Page, out: &mut Output<u8>| {
            out.item(1);
            Ok(())
        });
        quick(spider, &web)
    };
    let report = crawl().set("min_items", 1).set("max_error_rate", 0.5).run().await.unwrap();
    assert_eq!(rules(&report), [""; 0]);

    let given = json!(["httperror/response_ignored_count == 0", "finish_reason == finished"]);
    let report = crawl()
        .set("min_items", 2)
        .set("max_error_rate", 0.4)
        .set("quality_rules", given)
        .run()
        .await
        .unwrap();
    assert_eq!(
        rules(&report),
        ["min_items = 2", "max_error_rate = 0.4", "httperror/response_ignored_count == 0"]
    );
    assert!(report.has_failed());
    let printed = report.to_string();
    assert!(printed.starts_with("finished, but 3 quality rules failed after"), "{printed}");
    assert!(
        printed.contains("\n  quality rule failed: max_error_rate = 0.4: error_rate is 0.5"),
        "{printed}"
    );

    for (name, value, expected) in [
        ("quality_rules", json!(["item_scraped_count >= 1", "item_scrapd_count >= 1"]), "rule 2"),
        ("quality_rules", json!(["item_scraped_count >= previous"]), "quality_file"),
        ("max_error_rate", json!(1.5), "0 to 1"),
    ] {
        let error = crawl().set(name, value).build().unwrap_err();
        assert!(error.is_usage() && error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_compares_with_the_last_crawl_that_satisfied_all_rules() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("figures.json");
    let night = async |items: usize| {
        let report = giving(vec![json!({"title": "Mills"}); items])
            .set("quality_rules", json!(["item_scraped_count >= 0.8 * previous"]))
            .set("quality_file", file.to_str().unwrap())
            .run()
            .await
            .unwrap();
        report.failed_rules.first().map(|failed| failed.why.clone())
    };
    // Of the first night nothing is known; a bad night does not become the measure of the next one.
    assert_eq!(night(10).await, None);
    let fall = "item_scraped_count is 7, it was 10 in the last good crawl";
    assert_eq!(night(7).await.as_deref(), Some(fall));
    assert_eq!(night(7).await.as_deref(), Some(fall));
    assert_eq!(night(8).await, None);
    assert_eq!(night(7).await, None);
}

/// Stops the crawl as a signal does.
struct Stops;

impl Pipeline<Value> for Stops {
    async fn process_item(&mut self, item: Value, cx: &Context) -> Result<OnItem<Value>> {
        cx.stop("shutdown");
        Ok(OnItem::Keep(item))
    }
}

#[tokio::test(start_paused = true)]
async fn a_crawl_that_was_stopped_is_neither_judged_nor_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("figures.json");
    let stopped = giving(vec![json!(1)]).pipeline(Stops).set("min_items", 100);
    let report = stopped.set("quality_file", file.to_str().unwrap()).run().await.unwrap();
    assert_eq!((report.finish_reason.as_str(), rules(&report).len(), file.exists()), ("shutdown", 0, false));
}

/// A crawl with a rule that fails, whose end is told to this address.
async fn told(url: &str, more: &[(&str, Value)]) -> CrawlReport {
    let crawl = giving(vec![json!(1)]).set("min_items", 5).set("webhook_url", url);
    more.iter().fold(crawl, |crawl, (name, value)| crawl.set(name, value.clone())).run().await.unwrap()
}

fn outcome(report: &CrawlReport) -> (i64, i64) {
    (report.stat("webhook/delivered"), report.stat("webhook/failed"))
}

fn hook(site: &RunningSite, path: &str) -> String {
    site.url(path).to_string()
}

#[tokio::test]
async fn a_failed_crawl_is_told_to_the_webhook_and_a_good_one_only_if_asked() {
    let site = Site::builder().answer("/hook", Answer::status(204)).start().await;
    let url = hook(&site, "/hook?key=SECRET").replace("http://", "http://operator:pass@");
    assert_eq!(outcome(&told(&url, &[]).await), (1, 0));
    let seen = site.requests();
    let sent = &seen[0].request;
    assert_eq!((sent.method.as_str(), seen.len()), ("POST", 1));
    assert_eq!(sent.header("authorization"), Some("Basic b3BlcmF0b3I6cGFzcw=="));
    let body: Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(
        (&body["spider"], &body["failed"], &body["pages"]),
        (&json!("spider_fn"), &json!(true), &json!(1))
    );
    assert_eq!(body["failed_rules"], json!([{"rule": "min_items = 5", "why": "items is 1"}]));
    assert_eq!(body["stats"]["item_scraped_count"], 1);

    assert_eq!(outcome(&told(&url, &[("min_items", json!(1))]).await), (0, 0));
    let always = [("min_items", json!(1)), ("webhook_when", json!("always"))];
    assert_eq!(outcome(&told(&url, &always).await), (1, 0));
    assert_eq!(site.requests().len(), 2);
}

#[tokio::test]
async fn a_crawl_that_broke_off_is_told_to_the_webhook() {
    let site = Site::builder().answer("/hook", Answer::status(200)).start().await;
    let broken = giving(vec![json!(1)]).pipeline(FullDisk).set("webhook_url", hook(&site, "/hook"));
    assert!(broken.run().await.is_err());
    let body: Value = serde_json::from_slice(&site.requests()[0].request.body).unwrap();
    assert_eq!((&body["finish_reason"], &body["failed"]), (&json!("error"), &json!(true)));
    assert!(body["error"].as_str().unwrap().contains("the disk is full"), "{body}");
}

/// Cannot write.
struct FullDisk;

impl Pipeline<Value> for FullDisk {
    async fn process_item(&mut self, item: Value, _: &Context) -> Result<OnItem<Value>> {
        Ok(OnItem::Keep(item))
    }

    async fn flush(&mut self) -> Result<()> {
        Err(Error::msg("the disk is full"))
    }
}

#[tokio::test]
async fn a_webhook_that_hangs_fails_or_is_hostile_changes_nothing_about_the_crawl() {
    let endless = Answer::parts([
        Part::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n".into()),
        Part::Repeat("x".into(), Part::FOREVER),
    ]);
    let site = Site::builder()
        .answer("/hang", Answer::status(200).delay(Duration::from_secs(60)))
        .answer("/refuses", Answer::status(403))
        .answer("/moved", Answer::redirect(302, "/elsewhere"))
        .answer("/endless", endless)
        .answer("/nonsense", Answer::raw("nonsense\r\n\r\n"))
        .start()
        .await;
    for (path, expected, requests) in [
        ("/hang", (0, 1), 1),
        ("/refuses", (0, 1), 1),
        ("/moved", (0, 1), 1),
        ("/endless", (1, 0), 1),
        // What is no answer is a failed connection, which is tried again.
        ("/nonsense", (0, 1), 3),
    ] {
        // Only what hangs is to meet the deadline; a busy machine may read the others slowly.
        let timeout = if path == "/hang" { 0.4 } else { 50.0 };
        let report = told(&hook(&site, path), &[("webhook_timeout", json!(timeout))]).await;
        assert_eq!(
            (outcome(&report), report.pages, report.finish_reason.as_str()),
            (expected, 1, "finished"),
            "{path}"
        );
        assert_eq!(rules(&report), ["min_items = 5"], "{path}");
        assert_eq!(site.count(path), requests, "{path}");
    }
    assert_eq!(site.count("/elsewhere"), 0, "redirects are not followed");
}

#[tokio::test]
async fn a_webhook_is_tried_again_after_a_failure_of_the_server() {
    let site = Site::builder()
        .route("/busy", |request| Answer::status(if request.nth < 1 { 503 } else { 200 }))
        .start()
        .await;
    assert_eq!(outcome(&told(&hook(&site, "/busy"), &[]).await), (1, 0));
    assert_eq!(site.count("/busy"), 2);
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused_unless_the_operator_allows_it() {
    let site = Site::builder().answer("/hook", Answer::status(200)).start().await;
    let (port, url) = (site.port(), format!("http://hooks.test:{}/hook", site.port()));
    let resolve = ("resolve", json!([format!("hooks.test:{port}:127.0.0.1")]));
    assert_eq!(outcome(&told(&url, std::slice::from_ref(&resolve)).await), (0, 1));
    assert_eq!(site.requests().len(), 0);
    let allowed = ("allow_addresses", json!([format!("hooks.test:{port}")]));
    assert_eq!(outcome(&told(&url, &[resolve, allowed]).await), (1, 0));

    let error = giving(Vec::new()).set("webhook_url", "ftp://hooks.test/SECRET").build().unwrap_err();
    assert!(error.is_usage() && !error.to_string().contains("SECRET"), "{error}");
}
