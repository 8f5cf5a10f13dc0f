//! Measures the bytes that reading a feed takes.

use http::StatusCode;
use huntsman_crawler::{CsvRows, FeedReport, Page, Request, Response, XmlNodes};

use crate::{ALLOCATOR, TURN};

const MIB: usize = 1 << 20;

fn page(body: String) -> Page {
    let request = Request::parse("http://shop.example/feed").unwrap();
    Page::new(request.clone(), Response::new(request.url, StatusCode::OK, body))
}

/// The summary, and the greatest number of bytes that were allocated at once besides the body.
fn measured(read: impl FnOnce() -> FeedReport) -> (FeedReport, usize) {
    let before = ALLOCATOR.bytes();
    ALLOCATOR.watch_peak();
    let report = read();
    (report, ALLOCATOR.peak() - before)
}

#[test]
fn feeds_of_50_mb_are_read_in_pieces() {
    let _turn = TURN.blocking_lock();
    let entry =
        format!("<item><title>Mill</title><description>{}</description></item>\n", "word ".repeat(200));
    let xml = page(format!("<rss>{}</rss>", entry.repeat(50 * MIB / entry.len())));
    let (report, peak) = measured(|| {
        let mut nodes = XmlNodes::new(&xml, "item");
        nodes.by_ref().for_each(drop);
        nodes.report().clone()
    });
    println!("XML: {peak} bytes to read {} entries", report.entries);
    assert_eq!((report.entries as usize, report.problems), (50 * MIB / entry.len(), 0));
    assert!(peak < 3 * MIB, "{peak}");

    let row = format!("1,{}\n", "word ".repeat(200));
    let csv = page(format!("id,text\n{}", row.repeat(50 * MIB / row.len())));
    let (report, peak) = measured(|| {
        let mut rows = CsvRows::<(u32, String)>::new(&csv);
        rows.by_ref().for_each(drop);
        rows.report().clone()
    });
    println!("CSV: {peak} bytes to read {} rows", report.entries);
    assert_eq!((report.entries as usize, report.problems), (50 * MIB / row.len(), 0));
    assert!(peak < 3 * MIB, "{peak}");
}

#[test]
fn hostile_feeds_take_no_more_than_some_entries() {
    let _turn = TURN.blocking_lock();
    let bodies = [
        format!("<rss><item {}", "a='b' ".repeat(10_000_000)),
        format!("<rss><item>{}", "x".repeat(60 * MIB)),
        "<rss>".to_owned() + &"<a>".repeat(20_000_000),
        format!("<rss><item>{}", "<a>".repeat(20_000_000)),
        format!("<rss><!--{}", "<item>".repeat(10_000_000)),
    ];
    for body in bodies {
        let begins: String = body.chars().take(20).collect();
        let page = page(body);
        let (report, peak) = measured(|| {
            let mut nodes = XmlNodes::new(&page, "item");
            nodes.by_ref().for_each(drop);
            nodes.report().clone()
        });
        println!("{begins}: {peak} bytes, {} problems", report.problems);
        assert!(report.problems > 0, "{begins}");
        assert!(peak < 64 * MIB, "{begins}: {peak}");
    }
}
