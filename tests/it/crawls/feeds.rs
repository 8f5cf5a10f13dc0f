//! Crawls of feeds, compared with what Scrapy's feed spiders give for the same files (`tests/data/feeds/make.py`).

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use flate2::Compression;
use flate2::write::GzEncoder;
use huntsman::{
    Context, CsvFeed, Error, OnItem, Output, Page, PageNode, Pipeline, Request, Result, XmlFeed, spider_fn,
};
use huntsman_testkit::{Answer, Reply, ScriptedDownloader, Site};
use serde_json::{Value, json};

use super::support::{Log, on_site, quick};

/// Keeps items as JSON.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Value>>>);

impl Kept {
    fn all(&self) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }
}

impl<T: serde::Serialize + Send + 'static> Pipeline<T> for Kept {
    async fn process_item(&mut self, item: T, _: &Context) -> Result<OnItem<T>> {
        self.0.lock().unwrap().push(serde_json::to_value(&item)?);
        Ok(OnItem::Keep(item))
    }
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/feeds")
}

fn read_json(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(data().join(name)).unwrap()).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// The file of a case as a page that is served at an address.
fn serving(case: &Value) -> (String, ScriptedDownloader) {
    let file = text(&case["file"]);
    let url = format!("http://shop.test/{file}");
    let kind = if file.ends_with("xml") { "application/xml" } else { "text/csv" };
    let kind = match case["charset"].as_str() {
        Some(charset) => format!("{kind}; charset={charset}"),
        None => kind.to_owned(),
    };
    let body = std::fs::read(data().join(file)).unwrap();
    let web =
        ScriptedDownloader::new().respond(&url, Reply::status(200).header("Content-Type", &kind).body(body));
    (url, web)
}

#[tokio::test(start_paused = true)]
async fn entries_of_xml_are_those_of_scrapy() {
    let (cases, expected) = (read_json("cases.json"), read_json("expected.json"));
    for case in cases["xml"].as_array().unwrap() {
        let (url, web) = serving(case);
        let queries: Vec<String> =
            case["queries"].as_array().unwrap().iter().map(|query| text(query).to_owned()).collect();
        let mut feed = XmlFeed::new(
            [url],
            text(&case["tag"]),
            move |node: PageNode<'_>, _: &Page, out: &mut Output<Vec<Vec<String>>>| {
                let found = queries.iter().map(|query| Ok(node.xpath(query)?.get_all().to_vec()));
                out.item(found.collect::<Result<_>>()?);
                Ok(())
            },
        );
        for pair in case["namespaces"].as_array().unwrap() {
            feed = feed.namespace(text(&pair[0]), text(&pair[1]));
        }
        let kept = Kept::default();
        quick(feed, &web).pipeline(kept.clone()).run().await.unwrap();
        assert_eq!(json!(kept.all()), expected[text(&case["file"])], "{}", case["file"]);
    }
}

#[tokio::test(start_paused = true)]
async fn rows_of_csv_are_those_of_scrapy() {
    let (cases, expected) = (read_json("cases.json"), read_json("expected.json"));
    for case in cases["csv"].as_array().unwrap() {
        let (url, web) = serving(case);
        let mut feed = CsvFeed::<BTreeMap<String, String>>::items([url]);
        if let Some(delimiter) = case["delimiter"].as_str() {
            feed = feed.delimiter(delimiter.as_bytes()[0]);
        }
        if let Some(quote) = case["quote"].as_str() {
            feed = feed.quote(quote.as_bytes()[0]);
        }
        if let Some(headers) = case["headers"].as_array() {
            feed = feed.headers(headers.iter().map(text));
        }
        let kept = Kept::default();
        quick(feed, &web).pipeline(kept.clone()).run().await.unwrap();
        assert_eq!(json!(kept.all()), expected[text(&case["file"])], "{}", case["file"]);
    }
}

fn gzip(body: &str) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(body.as_bytes()).unwrap();
    packer.finish().unwrap()
}

#[tokio::test]
async fn a_packed_feed_leads_to_pages_with_a_spider_of_their_own() {
    let items: String = (0..3_000).map(|n| format!("<item><link>/page/{}</link></item>", n % 3)).collect();
    let feed = gzip(&format!("<rss>{items}</rss>"));
    let site = Site::builder()
        .answer("/feed.xml.gz", Answer::status(200).header("Content-Type", "application/gzip").body(feed))
        .route("/page/*", |asked| Answer::html(format!("<h1>{}</h1>", asked.path())))
        .start()
        .await;
    let pages = spider_fn([""; 0], |page: &Page, out: &mut Output<String>| {
        if page.callback() == "page" {
            out.item(page.css("h1::text")?.get_or("-"));
        }
        Ok(())
    });
    let feed = XmlFeed::new(
        [site.url("/feed.xml.gz")],
        "item",
        |item: PageNode<'_>, _: &Page, out: &mut Output<String>| {
            let link = &item.nodes("link")?[0];
            out.request(Request::get(link.href()?).callback("page"));
            Ok(())
        },
    );
    let kept = Kept::default();
    let report = on_site(feed.pages(pages), &site).pipeline(kept.clone()).run().await.unwrap();
    let mut items: Vec<String> = kept.all().iter().map(|item| text(item).to_owned()).collect();
    items.sort();
    assert_eq!(items, ["/page/0", "/page/1", "/page/2"], "{report}");
    assert_eq!((report.stat("feed/files"), report.stat("feed/entries")), (1, 3_000));
}

#[tokio::test(start_paused = true)]
async fn what_is_damaged_is_told_and_the_rest_is_read() {
    let xml = "<rss>\n<item>1</item>\n<item>2<br></item>\n<item a='3>\n</item>\n<item>4</item></rss>";
    let csv = "name,price\nMill,12\nDam,cheap\nWeir\nLock,3\n";
    let web =
        ScriptedDownloader::pages([("http://shop.test/feed.xml", xml), ("http://shop.test/prices.csv", csv)]);
    let log = Log::default();
    let kept = Kept::default();
    let feed = XmlFeed::new(
        ["http://shop.test/feed.xml"],
        "item",
        |item: PageNode<'_>, _: &Page, out: &mut Output<String>| {
            out.item(item.text().to_owned());
            Ok(())
        },
    );
    let report = quick(feed, &web).observer(log.clone()).pipeline(kept.clone()).run().await.unwrap();
    assert_eq!(json!(kept.all()), json!(["1", "2", "4"]));
    assert_eq!(report.stat("feed/damaged"), 1);
    let detail = log.drop_of("http://shop.test/feed.xml").detail.unwrap();
    assert!(detail.contains("http://shop.test/feed.xml") && detail.contains("line 3: </item>"), "{detail}");

    let kept = Kept::default();
    let prices = CsvFeed::<(String, u32)>::items(["http://shop.test/prices.csv"]);
    quick(prices, &web).observer(log.clone()).pipeline(kept.clone()).run().await.unwrap();
    assert_eq!(json!(kept.all()), json!([["Mill", 12], ["Lock", 3]]));
    let detail = log.drop_of("http://shop.test/prices.csv").detail.unwrap();
    for part in ["http://shop.test/prices.csv", "2 places", "line 3", "\"price\""] {
        assert!(detail.contains(part), "{part}: {detail}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_entry_for_which_the_callback_fails_costs_no_other() {
    let web = ScriptedDownloader::pages([(
        "http://shop.test/feed.xml",
        "<r>\n<i>1</i>\n<i>x</i>\n<i>3</i>\n<i>y</i></r>",
    )]);
    let log = Log::default();
    let feed = XmlFeed::new(
        ["http://shop.test/feed.xml"],
        "i",
        |item: PageNode<'_>, _: &Page, out: &mut Output<u32>| {
            out.item(item.text().parse().map_err(|_| Error::msg(format!("{} is no number", item.text())))?);
            Ok(())
        },
    );
    let report = quick(feed, &web).observer(log.clone()).run().await.unwrap();
    assert_eq!((report.stat("item_scraped_count"), report.stat("feed/entries_failed")), (2, 2));
    let detail = log.drop_of("http://shop.test/feed.xml").detail.unwrap();
    assert!(detail.contains("2 of 4 entries: entry 2, line 3: x is no number"), "{detail}");
}
