//! Crawls whose callbacks are the variants of an enum.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use huntsman::store::Backend;
use huntsman::{
    CrawlerBuilder, DropState, Error, Job, Output, Page, Request, Result, Rule, Rules, Spider, Start,
    spider_fn,
};
use huntsman_testkit::{Reply, ScriptedDownloader};
use serde::{Deserialize, Serialize};

use super::support::{Log, quick};

#[derive(Debug, Serialize, Deserialize)]
enum To {
    List { page: u32 },
    Author { of: String, tags: Vec<String> },
    Gone,
}

/// Gives an item for each author: the name of the callback's argument, and the heading of the page.
#[derive(Clone, Default)]
struct Authors {
    /// Stops the crawl at the first page.
    stops: bool,
    items: Arc<Mutex<Vec<String>>>,
    failures: Arc<Mutex<Vec<String>>>,
}

impl Spider for Authors {
    type Item = String;

    fn start(&self) -> Start {
        Start::urls(["http://a.test/list/1"]).to(To::List { page: 1 })
    }

    fn parse(&self, page: &Page, out: &mut Output<String>) -> Result<()> {
        if self.stops {
            out.context().stop("enough");
        }
        match page.route()? {
            To::List { page: number } => {
                for link in page.select("a.author")? {
                    out.go(
                        link.href()?,
                        To::Author { of: link.text(), tags: vec![format!("page {number}")] },
                    )?;
                }
                out.go_all(page, "a.next", To::List { page: number + 1 })?;
            }
            To::Author { of, tags } => {
                let item = format!("{of}, {}: {}", tags.join("+"), page.css("h1::text")?.get_or("-"));
                self.items.lock().unwrap().push(item.clone());
                out.item(item);
            }
            To::Gone => unreachable!("nothing leads here"),
        }
        Ok(())
    }

    fn failed(&self, request: &Request, _: &Error, _: &mut Output<String>) -> Result<()> {
        let To::Author { of, .. } = request.route()? else { return Ok(()) };
        self.failures.lock().unwrap().push(of);
        Ok(())
    }
}

/// Ten lists of two authors each; the page of the last author is missing.
fn web() -> ScriptedDownloader {
    let mut pages = Vec::new();
    for list in 1..=10 {
        let authors: String = (0..2)
            .map(|n| format!("<a class=author href=/author/{list}-{n}>Author {list}-{n}</a>"))
            .collect();
        let next =
            if list < 10 { format!("<a class=next href=/list/{}>next</a>", list + 1) } else { String::new() };
        pages.push((format!("http://a.test/list/{list}"), format!("{authors}{next}")));
        for n in 0..2 {
            pages.push((format!("http://a.test/author/{list}-{n}"), format!("<h1>About {list}-{n}</h1>")));
        }
    }
    pages.pop();
    ScriptedDownloader::pages(pages).respond("http://a.test/author/10-1", Reply::status(404))
}

fn expected() -> Vec<String> {
    let mut items: Vec<String> = (1..=10)
        .flat_map(|list| (0..2).map(move |n| format!("Author {list}-{n}, page {list}: About {list}-{n}")))
        .collect();
    items.pop();
    items.sort();
    items
}

fn sorted(items: &Mutex<Vec<String>>) -> Vec<String> {
    let mut items = items.lock().unwrap().clone();
    items.sort();
    items
}

fn with_job<S: Spider>(spider: S, web: &ScriptedDownloader, directory: &Path) -> CrawlerBuilder<S> {
    quick(spider, web).job(Job::open(directory.join("job"), Backend::Redb).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_variant_is_the_callback_and_its_arguments() {
    let spider = Authors::default();
    let report = quick(spider.clone(), &web()).run().await.unwrap();
    assert_eq!(sorted(&spider.items), expected());
    assert_eq!(report.pages, 29);
    assert_eq!(sorted(&spider.failures), ["Author 10-1"], "a failed request gives its route back");
}

#[tokio::test(start_paused = true)]
async fn routes_survive_the_end_of_their_program() {
    let dir = tempfile::tempdir().unwrap();
    let spider = Authors::default();
    let ended = with_job(spider.clone(), &web(), dir.path())
        .set("download_delay", 1.0)
        .set("concurrent_requests_per_domain", 1)
        .build()
        .unwrap();
    let handle = ended.handle();
    let running = tokio::spawn(ended.run());
    tokio::time::sleep(Duration::from_secs(15)).await;
    handle.abort();
    running.await.unwrap().unwrap();
    let before = spider.items.lock().unwrap().len();
    assert!((1..19).contains(&before), "ended in the middle: {before}");

    // In the second run nothing but the stored requests says what the pages are for.
    let again = Authors::default();
    with_job(again.clone(), &web(), dir.path()).run().await.unwrap();
    let mut all = sorted(&spider.items);
    all.extend(sorted(&again.items));
    all.sort();
    // Pages since the last commit are fetched again.
    all.dedup();
    assert_eq!(all, expected());
    assert!(again.items.lock().unwrap().len() < 19, "it went on");
}

#[tokio::test(start_paused = true)]
async fn a_job_of_an_older_program_never_calls_the_wrong_code() {
    #[derive(Debug, Deserialize)]
    enum Newer {
        List {
            #[serde(rename = "page")]
            _page: u32,
        },
        Author {
            #[serde(rename = "name")]
            _name: String,
        },
    }

    let dir = tempfile::tempdir().unwrap();
    let stopping = Authors { stops: true, ..Authors::default() };
    let stopped = with_job(stopping, &web(), dir.path()).run().await.unwrap();
    assert_eq!((stopped.pages, &*stopped.finish_reason), (1, "enough"));

    let log = Log::default();
    let newer = spider_fn([""; 0], |page: &Page, out: &mut Output<String>| {
        match page.route()? {
            Newer::List { .. } => out.item("list".to_owned()),
            Newer::Author { .. } => out.item("author".to_owned()),
        }
        Ok(())
    });
    let report = with_job(newer, &web(), dir.path()).observer(log.clone()).run().await.unwrap();
    assert_eq!(report.stat("drops/failed/callback_arguments"), 2);
    let drop = log.drop_of("http://a.test/author/1-0");
    assert_eq!(drop.state, DropState::Failed);
    let detail = drop.detail.unwrap();
    for part in ["http://a.test/author/1-0", "Newer::Author", "\"of\"", "expected: name"] {
        assert!(detail.contains(part), "{part}: {detail}");
    }

    // A variant that is gone.
    #[derive(Debug, Serialize)]
    enum Older {
        Shelf { number: u32 },
    }
    let log = Log::default();
    let spider = spider_fn([""; 0], |page: &Page, _: &mut Output<String>| page.route::<Newer>().map(|_| ()));
    struct Begins<S>(S);
    impl<S: Spider> Spider for Begins<S> {
        type Item = S::Item;
        fn start(&self) -> Start {
            Start::urls(["http://a.test/list/1"]).to(Older::Shelf { number: 1 })
        }
        fn parse(&self, page: &Page, out: &mut Output<S::Item>) -> Result<()> {
            self.0.parse(page, out)
        }
    }
    let report = quick(Begins(spider), &web()).observer(log.clone()).run().await.unwrap();
    assert_eq!((report.pages, report.stat("drops/failed/unknown_callback")), (0, 1));
    let detail = log.drop_of("http://a.test/list/1").detail.unwrap();
    assert!(detail.contains("\"Shelf\" is not one of the callbacks of Newer: List, Author"), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn a_start_that_is_no_variant_is_a_start_error() {
    let spider = || {
        struct Wrong;
        impl Spider for Wrong {
            type Item = ();
            fn start(&self) -> Start {
                Start::urls(["http://a.test/list/1"]).to("List")
            }
            fn parse(&self, _: &Page, _: &mut Output<()>) -> Result<()> {
                Ok(())
            }
        }
        Wrong
    };
    let report = quick(spider(), &web()).run().await;
    let told = match report {
        Ok(report) => report.to_string(),
        Err(error) => error.to_string(),
    };
    assert!(told.contains("variant of an enum"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn the_default_callback_needs_no_entry_in_the_list_of_labels() {
    struct Shop;
    impl Spider for Shop {
        type Item = String;
        fn start(&self) -> Start {
            Start::urls(["http://a.test/list/1"])
        }
        fn callbacks(&self) -> &[&str] {
            &["author"]
        }
        fn parse(&self, page: &Page, out: &mut Output<String>) -> Result<()> {
            match page.callback() {
                "author" => out.item(page.url().to_string()),
                _ => {
                    for request in page.follow_all("a.author")? {
                        out.request(request.callback("author"));
                    }
                }
            }
            Ok(())
        }
    }
    let report = quick(Shop, &web()).run().await.unwrap();
    assert_eq!((report.pages, report.stat("item_scraped_count")), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn a_wrapper_notices_labels_that_nobody_handles() {
    let closure = || {
        spider_fn(["http://a.test/list/1"], |page: &Page, out: &mut Output<String>| {
            out.item(page.url().to_string());
            Ok(())
        })
    };
    let links = || huntsman::LinkExtractor::new().allow("/author/").unwrap();
    let rules = Rules::new(closure()).rule(Rule::new(links()).callback("author"));
    let report = quick(rules, &web()).run().await.unwrap();
    assert_eq!((report.pages, report.stat("drops/failed/unknown_callback")), (1, 2));
}
