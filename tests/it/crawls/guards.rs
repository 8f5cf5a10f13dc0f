//! Guards against traps: they apply to links that no code of the user checked, and cut links are reported.

use huntsman::{LossKind, Output, Page, Request, Spider, spider_fn};
use huntsman_testkit::{Reply, ScriptedDownloader};

use super::support::{Log, links, polite, quick};

/// Sixty pages of a listing, each with a link to the next one.
fn listing() -> ScriptedDownloader {
    ScriptedDownloader::pages((0..60).map(|n| {
        let next = if n < 59 { format!("<li class=next><a href=/{}>next</a>", n + 1) } else { String::new() };
        (format!("http://a.test/{n}"), format!("<h1>{n}</h1>{next}"))
    }))
}

/// The spider of the README.
fn next_links() -> impl Spider<Item = String> {
    spider_fn(["http://a.test/0"], |page: &Page, out: &mut Output<String>| {
        out.item(page.css("h1::text")?.get_or(""));
        for next in page.select("li.next a")? {
            out.follow(next.href()?);
        }
        Ok(())
    })
}

#[tokio::test(start_paused = true)]
async fn a_loop_over_next_links_goes_through_all_pages_of_a_listing() {
    let report = polite(next_links(), &listing()).set("robotstxt_obey", false).run().await.unwrap();
    assert_eq!((report.pages, report.stat("item_scraped_count")), (60, 60));
    assert_eq!((report.losses.len(), report.outcome().as_str()), (0, "finished"), "{report}");
}

#[tokio::test(start_paused = true)]
async fn a_spider_may_ask_for_guards_and_a_limit_is_for_all() {
    let report = quick(next_links(), &listing()).set("guard_spider_requests", true).run().await.unwrap();
    assert_eq!(report.pages, 21);
    let report = quick(next_links(), &listing()).set("depth_limit", 9).run().await.unwrap();
    assert_eq!(report.pages, 10);
}

#[tokio::test(start_paused = true)]
async fn what_a_guard_cuts_is_a_line_of_the_report() {
    let report = quick(links(["http://a.test/0"]), &listing()).run().await.unwrap();
    assert_eq!((report.pages, report.finish_reason.as_str()), (21, "finished"));
    let [loss] = &report.losses[..] else { panic!("{:?}", report.losses) };
    assert_eq!((loss.kind, loss.name.as_str(), loss.count), (LossKind::Links, "depth_guard", 1));
    assert_eq!(loss.first, "http://a.test/21: depth 21 is beyond 20");
    let printed = report.to_string();
    assert!(printed.starts_with("finished with losses after"), "{printed}");
    assert!(printed.contains("1 link cut by depth_guard, first: http://a.test/21: depth 21"), "{printed}");
    assert!(report.failure().is_none());
}

#[tokio::test(start_paused = true)]
async fn redirects_and_retries_keep_the_origin_of_the_request() {
    const TRAP: &str = "http://a.test/x/1/x/2/x/3/x";
    let web = || {
        ScriptedDownloader::new()
            .respond("http://a.test/", Reply::html("<a href=/there>x</a>"))
            .respond("http://a.test/there", Reply::status(503))
            .then(Reply::redirect(302, TRAP))
            .respond(TRAP, Reply::html("x"))
    };
    let named = spider_fn(["http://a.test/"], |page: &Page, out: &mut Output<String>| {
        page.links().into_iter().for_each(|link| out.request(Request::get(link)));
        Ok(())
    });
    let report = quick(named, &web()).run().await.unwrap();
    assert_eq!((report.pages, report.stat("retry/count")), (2, 1), "the spider named it");

    let log = Log::default();
    let report = quick(links(["http://a.test/"]), &web()).observer(log.clone()).run().await.unwrap();
    assert_eq!((report.pages, report.stat("retry/count")), (1, 1));
    assert_eq!(log.drop_of("http://a.test/there").reason, "path_repeats");
    assert_eq!(report.losses[0].name, "path_max_repeats");
}

#[tokio::test(start_paused = true)]
async fn links_of_one_page_are_counted_however_they_leave_its_callback() {
    // More links than two batches of the output hold.
    let html: String = (0..3_000).map(|n| format!("<a href=/{n}>x</a>")).collect();
    let web = || {
        ScriptedDownloader::new()
            .respond("http://a.test/", Reply::html(html.clone()))
            .otherwise(|_, _| Reply::html("x"))
    };
    let report =
        quick(links(["http://a.test/"]), &web()).set("max_links_per_page", 1_500).run().await.unwrap();
    assert_eq!((report.pages, report.stat("links/cut")), (1_501, 1_500));
    assert_eq!((report.losses[0].name.as_str(), report.losses[0].count), ("max_links_per_page", 1_500));

    let named = spider_fn(["http://a.test/"], |page: &Page, out: &mut Output<String>| {
        out.follow_all(page.links());
        Ok(())
    });
    let report = quick(named, &web()).set("max_links_per_page", 1_500).run().await.unwrap();
    assert_eq!(report.pages, 3_001);
}

#[tokio::test(start_paused = true)]
async fn links_that_are_no_pages_are_passed_over() {
    let web = ScriptedDownloader::new()
        .respond(
            "http://a.test/",
            Reply::html(
                "<a href='mailto:x@y'>1</a><a href='javascript:void(0)'>2</a><a href='tel:+1 2'>3</a><a href=/z>4</a>",
            ),
        )
        .respond("http://a.test/z", Reply::html("x"));
    let spider = spider_fn(["http://a.test/"], |page: &Page, out: &mut Output<String>| {
        for link in page.select("a")? {
            out.item(link.text());
            out.follow(link.href()?);
        }
        Ok(())
    });
    let report = quick(spider, &web).run().await.unwrap();
    assert_eq!((report.pages, report.stat("item_scraped_count")), (2, 4));
    assert_eq!((report.stat("links/no_page"), report.stat("spider_exceptions/count")), (3, 0));
}
