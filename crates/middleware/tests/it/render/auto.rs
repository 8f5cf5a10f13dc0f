//! `render = auto`: which pages are rendered, in whole crawls.

use huntsman_testkit::ScriptedDownloader;
use serde_json::json;

use super::{Crawled, crawl_of};
use huntsman_crawler::Request;

fn words(of: &str, count: usize) -> String {
    (0..count).map(|n| format!("{of}{n} ")).collect()
}

/// A site of static pages, of pages that scripts fill, and of pages that are whole but for some of them.
pub(super) fn site(per_kind: usize) -> ScriptedDownloader {
    let mut pages = vec![("http://h/".to_owned(), words("start", 60))];
    for n in 0..per_kind {
        for kind in ["text", "app", "mixed"] {
            pages[0].1.push_str(&format!("<a href='/{kind}/{n}'></a>"));
        }
        pages.push((format!("http://h/text/{n}"), format!("<p>{}</p>", words(&format!("t{n}x"), 80))));
        pages.push((
            format!("http://h/app/{n}"),
            format!("<div id=root></div><p data-fetch=\"/data/{n}\"></p>"),
        ));
        pages.push((format!("http://h/data/{n}"), format!("<p>{}</p>", words(&format!("d{n}x"), 80))));
        // Every second page of a shape that is one to the eye is empty without its script.
        let mixed = match n % 2 {
            0 => format!("<p>{}</p>", words(&format!("m{n}x"), 80)),
            _ => format!("<div id=root></div><p data-fetch=\"/data/{n}\"></p>"),
        };
        pages.push((format!("http://h/mixed/{n}"), mixed));
    }
    ScriptedDownloader::pages(pages)
}

async fn crawl(web: &ScriptedDownloader) -> Crawled {
    let set = [("render", json!("auto")), ("max_links_per_page", json!(100_000)), ("render_pages", json!(8))];
    crawl_of(web, vec![Request::parse("http://h/").unwrap()], &set).await
}

#[tokio::test(start_paused = true)]
async fn pages_that_scripts_fill_are_rendered_and_others_are_not() {
    const PER_KIND: usize = 200;
    let web = site(PER_KIND);
    let crawled = crawl(&web).await;
    assert_eq!(crawled.report.pages as usize, 3 * PER_KIND + 1);
    let of = |kind: &str, odd: Option<bool>| -> (usize, usize) {
        let pages = crawled.pages.iter().filter(|(url, _)| url.contains(&format!("/{kind}/")));
        let number = |url: &str| url.rsplit('/').next().unwrap().parse::<usize>().unwrap();
        let pages: Vec<_> =
            pages.filter(|(url, _)| odd.is_none_or(|odd| (number(url) % 2 == 1) == odd)).collect();
        (pages.iter().filter(|(_, page)| page.is_rendered).count(), pages.len())
    };
    assert_eq!(of("app", None), (PER_KIND, PER_KIND), "no page is lost");
    assert_eq!(of("mixed", Some(true)), (PER_KIND / 2, PER_KIND / 2));
    for (kind, odd) in [("text", None), ("mixed", Some(false))] {
        let (rendered, all) = of(kind, odd);
        assert!(rendered >= 3 && rendered * 10 <= all, "{kind}: {rendered} of {all}");
    }
    assert!(crawled.pages.values().all(|page| page.times == 1), "a callback sees each page once");
    let told = &crawled.report.sections["render"];
    // The start page is a shape as well.
    assert_eq!((told["shapes"].as_u64(), told["wrong"].as_u64()), (Some(5), Some(0)), "{told}");
    let app = told["by_shape"].as_array().unwrap().iter().find(|shape| shape["shape"] == "/app/{n}").unwrap();
    assert_eq!((app["renders"].as_bool(), app["needed"].as_u64()), (Some(true), Some(PER_KIND as u64)));
}

#[tokio::test(start_paused = true)]
async fn pages_that_are_cut_by_robots_or_by_time_teach_nothing() {
    for cut in ["data-incomplete", "data-fetch=\"/private/x\""] {
        let text = words("t", 80);
        let mut pages = vec![("http://h/".to_owned(), String::new())];
        for n in 0..12 {
            pages[0].1.push_str(&format!("<a href='/text/{n}'></a>"));
            pages.push((format!("http://h/text/{n}"), format!("<p {cut}>{text}</p>")));
        }
        let web = ScriptedDownloader::pages(pages).respond(
            "http://h/robots.txt",
            huntsman_testkit::Reply::text("User-agent: *\nDisallow: /private/"),
        );
        let crawled = crawl(&web).await;
        let told = &crawled.report.sections["render"];
        let text =
            told["by_shape"].as_array().unwrap().iter().find(|shape| shape["shape"] == "/text/{n}").unwrap();
        assert_eq!(text["compared"], 0, "{told}");
        assert_eq!(crawled.report.pages, 13, "and none waits for them");
    }
}
