//! NearDup in whole crawls: which pages are flagged, what happens to them, and what is still known after a restart.

use std::collections::BTreeMap;

use huntsman::detect::simhash::SimHash;
use huntsman::middleware::NearDuplicates;
use huntsman::store::Backend;
use huntsman::{CrawlerBuilder, Job, Output, Page, Spider, spider_fn};
use huntsman_testkit::{Reply, ScriptedDownloader};
use serde::Serialize;

use super::support::{Log, quick};

const PAGES: usize = 240;

/// The words of a story; of three pages, the second is the first with one word replaced, and the third is a story of
/// its own.
fn story(n: usize, words: usize) -> String {
    let of = if n % 3 == 1 { n - 1 } else { n };
    let word = |at: usize| match at == 77 && n != of {
        true => "exchanged ".to_owned(),
        false => format!("w{} ", (of * 7_919 + at * 104_729) % 99_991),
    };
    (0..words).map(word).collect()
}

/// Every fourth page declares Tamil as its language, but has the same words.
fn site() -> ScriptedDownloader {
    ScriptedDownloader::new().otherwise(|request, _| {
        let n = request.url.path().trim_start_matches('/').parse::<usize>().ok().filter(|n| *n < PAGES);
        let Some(n) = n else { return Reply::status(404).body(story(0, 800)) };
        let links: String =
            [2 * n + 1, 2 * n + 2].iter().map(|next| format!("<a href='/{next}'>{next}</a> ")).collect();
        let lang = if n % 4 == 3 { "ta" } else { "en" };
        Reply::html(format!(
            "<html lang={lang}><nav>{links}</nav><main><p>{}</p></main><footer>page {n}</footer>",
            story(n, 800)
        ))
    })
}

#[derive(Clone, Debug, Serialize)]
struct Record {
    url: String,
    hash: String,
    lang: String,
    near: BTreeMap<String, u32>,
}

fn record(page: &Page) -> Record {
    let found = page.extensions.get::<NearDuplicates>().expect("the page has words");
    Record {
        url: page.url().to_string(),
        hash: found.simhash.to_string(),
        lang: found.language.to_string(),
        near: found.matches.iter().map(|near| (near.url.clone(), near.distance)).collect(),
    }
}

fn spider() -> impl Spider<Item = Record> {
    spider_fn(["http://a.test/0"], |page: &Page, out: &mut Output<Record>| {
        out.item(record(page));
        out.follow_links(page);
        Ok(())
    })
}

fn crawler(web: &ScriptedDownloader) -> (CrawlerBuilder<impl Spider<Item = Record>>, Records) {
    let records = Records::default();
    let builder = quick(spider(), web)
        .set("near_dup_enabled", true)
        .set("near_dup_distance", 7)
        .pipeline(records.clone());
    (builder, records)
}

/// Records of items in the order in which they arrived.
#[derive(Clone, Default)]
struct Records(std::sync::Arc<std::sync::Mutex<Vec<Record>>>);

impl huntsman::Pipeline<Record> for Records {
    async fn process_item(
        &mut self,
        item: Record,
        _: &huntsman::Context,
    ) -> huntsman::Result<huntsman::OnItem<Record>> {
        self.0.lock().unwrap().push(item.clone());
        Ok(huntsman::OnItem::Keep(item))
    }
}

impl Records {
    fn get(&self) -> Vec<Record> {
        self.0.lock().unwrap().clone()
    }
}

/// Every pair within k bits in one language is reported with one of the two pages, and nothing else is reported.
fn assert_each_pair_is_reported_once(records: &[Record], k: u32) -> usize {
    let mut pairs = 0;
    let hash = |record: &Record| record.hash.parse::<SimHash>().unwrap();
    for (at, one) in records.iter().enumerate() {
        assert!(!one.near.contains_key(&one.url), "{} is its own near-duplicate", one.url);
        for other in &records[at + 1..] {
            let distance = hash(one).distance(hash(other));
            let told = [one.near.get(&other.url), other.near.get(&one.url)];
            let expected = one.lang == other.lang && distance <= k;
            assert_eq!(
                told.iter().flatten().count(),
                usize::from(expected),
                "{} and {}: {distance} bits, told {told:?}",
                one.url,
                other.url
            );
            assert!(told.into_iter().flatten().all(|told| *told == distance));
            pairs += usize::from(expected);
        }
    }
    pairs
}

#[tokio::test(start_paused = true)]
async fn pages_that_nearly_equal_an_earlier_one_are_flagged_as_comparing_all_finds() {
    let (builder, records) = crawler(&site());
    let report = builder.run().await.unwrap();
    let records = records.get();
    assert_eq!((records.len(), report.pages as usize), (PAGES, PAGES), "404 answers are no pages");
    let pairs = assert_each_pair_is_reported_once(&records, 7);
    // Pairs whose pages have the same language: of twelve pages in a row, two of the four pairs.
    assert_eq!(pairs, PAGES / 6);
    assert_eq!(report.stat("near_dup/flagged") as usize, pairs);
    assert_eq!(report.stat("near_dup/indexed") as usize, PAGES);
}

#[tokio::test(start_paused = true)]
async fn menus_and_footers_do_not_make_near_duplicates() {
    let menu = "the same long menu of all pages of the site with many entries ".repeat(40);
    let web = ScriptedDownloader::new().otherwise(move |request, _| {
        let n = request.url.path().trim_start_matches('/').parse::<usize>().unwrap_or(0) * 3;
        let links: String = (1..20).map(|n| format!("<a href='/{n}'>x</a>")).collect();
        Reply::html(format!(
            "<html lang=en><nav>{menu}{links}</nav><p>{}</p><footer>{menu}</footer>",
            story(n, 60)
        ))
    });
    let (builder, records) = crawler(&web);
    let report = builder.run().await.unwrap();
    assert_eq!((records.get().len(), report.stat("near_dup/flagged")), (20, 0));
}

#[tokio::test(start_paused = true)]
async fn short_pages_are_not_flagged_unless_asked_and_pages_without_words_are_passed_over() {
    let web = ScriptedDownloader::new().otherwise(|request, _| match request.url.path() {
        "/" => Reply::html("<a href=/a>a</a><a href=/b>b</a><a href=/c></a>"),
        "/c" => Reply::html("<img src=x.png>"),
        _ => Reply::html("<p>nine words that are the same on both pages"),
    });
    for (least, flagged) in [(50, 0), (9, 1), (10, 0)] {
        let spider = spider_fn(["http://a.test/"], |page: &Page, out: &mut Output<String>| {
            out.follow_links(page);
            Ok(())
        });
        let report = quick(spider, &web)
            .set("near_dup_enabled", true)
            .set("near_dup_min_words", least)
            .run()
            .await
            .unwrap();
        assert_eq!(report.stat("near_dup/flagged"), flagged, "at least {least} words");
        assert_eq!((report.stat("near_dup/indexed"), report.stat("near_dup/empty")), (3, 1));
    }
}

/// Pages 1 and 2 have the same text, and each links to a page of its own.
fn twins() -> ScriptedDownloader {
    ScriptedDownloader::new().otherwise(|request, _| match request.url.path() {
        "/" => Reply::html("<a href=/1>one</a><a href=/2>two</a>"),
        "/1" => Reply::html(format!("<html lang=en><nav><a href=/3>three</a></nav><p>{}", story(0, 800))),
        "/2" => Reply::html(format!("<html lang=en><nav><a href=/4>four</a></nav><p>{}", story(1, 800))),
        _ => Reply::html("<p>end"),
    })
}

#[tokio::test(start_paused = true)]
async fn links_of_near_duplicates_are_followed_or_not_and_pages_kept_or_not_as_asked() {
    for (what, pages, refused, dropped) in [("flag", 5, 0, 0), ("no_follow", 4, 1, 0), ("skip", 3, 0, 1)] {
        let (web, log) = (twins(), Log::default());
        let spider = spider_fn(["http://a.test/"], |page: &Page, out: &mut Output<String>| {
            out.follow_links(page);
            Ok(())
        });
        let report = quick(spider, &web)
            .set("near_dup_enabled", true)
            .set("near_dup_distance", 7)
            .set("on_near_duplicate", what)
            .set("concurrent_requests", 1)
            .observer(log.clone())
            .run()
            .await
            .unwrap();
        let near = |all: Vec<huntsman::Dropped>| {
            all.into_iter().filter(|drop| drop.reason == "near_duplicate").collect::<Vec<_>>()
        };
        let (drops, refusals) = (near(log.dropped()), near(log.refused()));
        assert_eq!((report.pages, refusals.len(), drops.len()), (pages, refused, dropped), "{what}");
        for drop in drops {
            assert_eq!(drop.url, "http://a.test/2");
            assert!(drop.detail.unwrap().ends_with(" bits from http://a.test/1"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_crawl_that_goes_on_tells_each_pair_once_over_all_its_runs() {
    let dir = tempfile::tempdir().unwrap();
    let web = site();
    let mut all = Vec::new();
    for run in 0..4_u64 {
        let job = Job::open(dir.path().join("job"), Backend::Redb).unwrap();
        let (builder, records) = crawler(&web);
        let crawl = builder.job(job).set("download_delay", 0.05).build().unwrap();
        let handle = crawl.handle();
        let running = tokio::spawn(crawl.run());
        if run < 3 {
            while handle.stats().get("pages/delivered") < (60 * (run + 1)) as i64 && !running.is_finished() {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            handle.stop("enough");
        }
        running.await.unwrap().unwrap();
        all.extend(records.get());
    }
    assert_eq!(all.len(), PAGES);
    assert_eq!(assert_each_pair_is_reported_once(&all, 7), PAGES / 6);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_fetched_again_keeps_its_place_until_its_text_changes() {
    // Page 1 comes first, then page 2 with the same text, then page 1 again (a duplicate request), with the old text
    // or with that of page 3.
    for (again, expected) in [(0, None), (3, Some("http://a.test/3"))] {
        let web = ScriptedDownloader::new().otherwise(move |request, call| {
            let n = match (request.url.path(), call) {
                ("/1", 0) | ("/2", _) => 0,
                ("/1", _) => again,
                _ => 3,
            };
            Reply::html(format!("<html lang=en><p>{}", story(n, 800)))
        });
        let spider = spider_fn(["http://a.test/1"], |page: &Page, out: &mut Output<Record>| {
            out.item(record(page));
            let next = match page.url().path() {
                "/1" if page.request().depth == 0 => "/3",
                "/3" => "/2",
                "/2" => "/1",
                _ => return Ok(()),
            };
            let url = page.join(next).expect("an address");
            out.request(huntsman::Request::get(url).unfiltered());
            Ok(())
        });
        let records = Records::default();
        quick(spider, &web).set("near_dup_enabled", true).pipeline(records.clone()).run().await.unwrap();
        let records = records.get();
        let near: Vec<Vec<&str>> =
            records.iter().map(|record| record.near.keys().map(String::as_str).collect()).collect();
        assert_eq!(near[..3], [vec![], vec![], vec!["http://a.test/1"]], "{records:?}");
        assert_eq!(near[3], expected.into_iter().collect::<Vec<_>>(), "{records:?}");
    }
}

#[tokio::test]
async fn wrong_settings_are_errors_before_anything_is_fetched() {
    for (name, value, said) in [
        ("near_dup_distance", serde_json::json!(8), "at most 7"),
        ("near_dup_features", serde_json::json!("trigrams"), "words-log, char5, words3, words-tf"),
    ] {
        let (builder, _) = crawler(&site());
        let Err(error) = builder.set(name, value).build() else { panic!("{name} is wrong") };
        let error = error.to_string();
        assert!(error.contains(name) && error.contains(said), "{error}");
    }
}
