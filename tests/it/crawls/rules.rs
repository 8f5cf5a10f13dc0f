//! Crawls by rules, compared with what Scrapy's `CrawlSpider` does on the same site (`tests/data/rules/make.py`).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use huntsman::store::Backend;
use huntsman::{
    Error, Job, LinkExtractor, Output, Page, Request, Result, Rule, Rules, Spider, Start, spider_fn,
};
use huntsman_testkit::{Reply, ScriptedDownloader};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::support::quick;

const HOST: &str = "http://site.test";

/// Notes which callback got which page, with its arguments; and may stop the crawl after a number of calls.
#[derive(Clone, Default)]
struct Shop(Arc<Mutex<Vec<Value>>>, Option<usize>);

impl Shop {
    fn note(&self, callback: &str, request: &Request) {
        let path = request.url.as_str().trim_start_matches(HOST).split('#').next().unwrap();
        let arguments = request.cb_kwargs().cloned().unwrap_or_default();
        self.0.lock().unwrap().push(json!([callback, path, arguments]));
    }
}

impl Spider for Shop {
    type Item = ();

    fn start(&self) -> Start {
        Start::urls([format!("{HOST}/")])
    }

    fn callbacks(&self) -> &[&str] {
        &["book", "print", "author"]
    }

    fn parse(&self, page: &Page, out: &mut Output<()>) -> Result<()> {
        let callback = if page.callback() == "parse" { "start" } else { page.callback() };
        self.note(callback, page.request());
        if self.1 == Some(self.0.lock().unwrap().len()) {
            out.context().stop("enough");
        }
        Ok(())
    }

    fn failed(&self, request: &Request, _: &Error, _: &mut Output<()>) -> Result<()> {
        if let Some(errback) = request.errback_label() {
            self.note(errback, request);
        }
        Ok(())
    }
}

fn links(allow: &str) -> LinkExtractor {
    LinkExtractor::new().allow(allow).unwrap()
}

/// The rules of `make.py`.
fn rules(shop: Shop) -> Rules<Shop> {
    Rules::new(shop)
        .rule(links(r"/shelf/|/about|\.xml"))
        .rule(Rule::new(links("/book/|/old/")).callback("print").cb_kwarg("by", "print").process_links(
            |links, _| links.into_iter().filter(|link| link.url.path().starts_with("/print/")).collect(),
        ))
        .rule(Rule::new(links("/book/")).callback("book").cb_kwarg("by", "book"))
        .rule(Rule::new(links("/old/")).callback("book").process_request(|mut request, link, _| {
            request.url = link.url.join(&link.url.path().replace("/old/", "/book/")).ok()?;
            Some(request.cb_kwarg("was", "old"))
        }))
        .rule(Rule::new(links("/skip/")).process_request(|_, _, _| None))
        .rule(Rule::new(links("/author/")).callback("author").follow(true))
        .rule(Rule::new(links("/missing/")).callback("book").errback("error"))
        .rule(links("/plain/").restrict_css(".more"))
}

fn site() -> (ScriptedDownloader, Value) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/rules");
    let read = |name: &str| std::fs::read_to_string(data.join(name)).unwrap();
    let pages: BTreeMap<String, String> = serde_json::from_str(&read("site.json")).unwrap();
    let web = pages.into_iter().fold(ScriptedDownloader::new(), |web, (path, body)| {
        let reply = match path.ends_with(".xml") {
            true => Reply::text(body).header("Content-Type", "application/xml"),
            false => Reply::html(body),
        };
        web.respond(&format!("{HOST}{path}"), reply)
    });
    (web.otherwise(|_, _| Reply::status(404)), serde_json::from_str(&read("expected.json")).unwrap())
}

#[tokio::test(start_paused = true)]
async fn rules_do_what_those_of_scrapy_do() {
    let (web, expected) = site();
    let shop = Shop::default();
    quick(rules(shop.clone()), &web).set("concurrent_requests_per_domain", 1).run().await.unwrap();
    let mut fetched: Vec<String> =
        web.urls().iter().map(|url| url.trim_start_matches(HOST).to_owned()).collect();
    fetched.sort();
    assert_eq!(json!(fetched), expected["fetched"]);
    let mut calls = shop.0.lock().unwrap().clone();
    calls.sort_by_key(Value::to_string);
    let mut of_scrapy = expected["calls"].as_array().unwrap().clone();
    of_scrapy.sort_by_key(Value::to_string);
    assert_eq!(calls, of_scrapy);
}

#[tokio::test(start_paused = true)]
async fn a_job_goes_on_with_its_rules() {
    let (web, _) = site();
    let whole = Shop::default();
    quick(rules(whole.clone()), &web).run().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let parts = Shop(Arc::default(), Some(3));
    let run = |shop: Shop| {
        let job = Job::open(dir.path().join("job"), Backend::Redb).unwrap();
        // No request leaves before the callback of the page before it, which may stop the crawl, has ended.
        let one_by_one = quick(rules(shop), &web).set("concurrent_requests_per_domain", 1);
        one_by_one.set("scraper_slot_max_active_size", 1).job(job).run()
    };
    assert_eq!(run(parts.clone()).await.unwrap().finish_reason, "enough");
    run(Shop(Arc::clone(&parts.0), None)).await.unwrap();
    let sorted = |shop: &Shop| {
        let mut calls: Vec<String> = shop.0.lock().unwrap().iter().map(Value::to_string).collect();
        calls.sort();
        calls
    };
    assert_eq!(sorted(&parts), sorted(&whole));
}

#[tokio::test(start_paused = true)]
async fn a_rule_takes_a_link_before_later_rules() {
    let web = ScriptedDownloader::pages([
        ("http://site.test/", "<a href=/a/b>x</a>"),
        ("http://site.test/a/b", "<a href=/a/c>y</a>"),
        ("http://site.test/a/c", ""),
    ]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let spider = spider_fn(["http://site.test/"], move |page: &Page, _: &mut Output<()>| {
        noted.lock().unwrap().push(format!("{} {}", page.url().path(), page.callback()));
        Ok(())
    });
    let spider = Rules::new(spider)
        .rule(Rule::new(links("/b")).callback("first").follow(true))
        .rule(Rule::new(links("/a/")).callback("second"));
    quick(spider, &web).run().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["/ parse", "/a/b first", "/a/c second"]);
}

#[tokio::test(start_paused = true)]
async fn links_are_followed_even_if_the_callback_fails() {
    let web =
        ScriptedDownloader::pages([("http://site.test/", "<a href=/1>x</a>"), ("http://site.test/1", "")]);
    let spider =
        spider_fn(["http://site.test/"], |page: &Page, _: &mut Output<()>| match page.url().path() {
            "/" => Err(Error::msg("nothing found")),
            _ => Ok(()),
        });
    let report = quick(Rules::new(spider).rule(LinkExtractor::new()), &web).run().await.unwrap();
    assert_eq!((report.pages, report.stat("drops/failed/callback_error")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_rule_leads_to_a_route() {
    #[derive(Serialize, Deserialize)]
    enum To {
        Book {
            shelf: u8,
        },
        #[serde(rename = "parse")]
        Start,
    }
    let web = ScriptedDownloader::pages([
        ("http://site.test/", "<a href=/book/1>x</a>"),
        ("http://site.test/book/1", ""),
    ]);
    let spider = spider_fn(["http://site.test/"], |page: &Page, out: &mut Output<u8>| {
        if let To::Book { shelf } = page.route()? {
            out.item(shelf);
        }
        Ok(())
    });
    let rule = Rule::new(links("/book/")).to(To::Book { shelf: 3 }).unwrap();
    let report = quick(Rules::new(spider).rule(rule), &web).run().await.unwrap();
    assert_eq!((report.pages, report.stat("item_scraped_count")), (2, 1));
    let _ = To::Start;
}
