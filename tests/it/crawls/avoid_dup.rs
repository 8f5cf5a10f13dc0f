//! AvoidDup in whole crawls: which requests are skipped, what is recorded, and what is still known after a restart.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use huntsman::middleware::{AvoidDup, Defaults};
use huntsman::store::Backend;
use huntsman::{
    Context, CrawlerBuilder, Delays, Job, OnItem, Output, Page, Pipeline, Request, Result, Simulated, Spider,
    Timestamp, meta, spider_fn,
};
use huntsman_testkit::{Reply, ScriptedDownloader};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use url::Url;

use super::support::Log;

/// Pages of the site; each links to the next ones and, with another session id each time, to itself.
const PAGES: usize = 400;

fn words(n: usize) -> String {
    (0..40).map(|word| format!("w{}", (n * 7_919 + word * 104_729) % 99_991)).collect::<Vec<_>>().join(" ")
}

fn site() -> ScriptedDownloader {
    site_with(|_| String::new())
}

/// The site with more text on each page.
fn site_with(beside: impl Fn(&Url) -> String + Send + Sync + 'static) -> ScriptedDownloader {
    ScriptedDownloader::new().otherwise(move |request, _| {
        let id = request.url.query_pairs().find(|(name, _)| name == "id");
        let Some(n) = id.and_then(|(_, value)| value.parse::<usize>().ok()).filter(|n| *n < PAGES) else {
            return Reply::status(404);
        };
        let next: String = [2 * n + 1, 2 * n + 2]
            .into_iter()
            .filter(|next| *next < PAGES)
            .map(|next| {
                format!("<li><a href='/p?id={next}'>x</a> <a href='/p?id={next}&sid=s{n}x{next}'>y</a>")
            })
            .collect();
        let (words, beside) = (words(n), beside(&request.url));
        Reply::html(format!(
            "<title>{n}</title><aside>{beside}</aside><main><p>{words}</p></main><ul>{next}</ul>"
        ))
    })
}

fn spider() -> impl Spider<Item = String> {
    spider_fn(["http://a.test/p?id=0"], |page: &Page, out: &mut Output<String>| {
        out.item(page.title().unwrap_or_default().to_owned());
        out.follow_links(page);
        Ok(())
    })
}

fn crawler<S: Spider>(spider: S, web: &ScriptedDownloader) -> CrawlerBuilder<S> {
    CrawlerBuilder::new(spider)
        .plugin(Defaults)
        .downloader(web.clone())
        .set("seed", 7)
        .set("download_delay", 0.0)
        .set("concurrent_requests_per_domain", 16)
        .set("robotstxt_obey", false)
        .set("avoid_dup_content_enabled", true)
        .set("avoid_dup_content_initial_queue_limit", 60)
}

#[tokio::test(start_paused = true)]
async fn copies_are_skipped_with_a_reason_and_no_content_is_lost() {
    let (web, log) = (site(), Log::default());
    let report = crawler(spider(), &web).observer(log.clone()).run().await.unwrap();
    let mut ids: Vec<_> =
        web.urls().iter().map(|url| url.split(['=', '&']).nth(1).unwrap().to_owned()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), PAGES, "every content came");
    let skipped: Vec<_> =
        log.dropped().into_iter().filter(|drop| drop.reason == "duplicate_content").collect();
    assert!(skipped.len() > PAGES / 2, "{} of {} copies were skipped", skipped.len(), PAGES - 1);
    assert_eq!(report.pages as usize + skipped.len(), 2 * PAGES - 1, "each URL has one record");
    let learnt = report.component::<AvoidDup>().unwrap();
    let totals = learnt.totals().unwrap();
    assert_eq!((totals.skipped as usize, totals.learnt), (skipped.len(), report.pages));
    assert!(totals.explored > 0 && totals.lost == 0, "{totals:?}");
    let (estimate, most) = totals.loss().unwrap();
    assert!(estimate == 0.0 && most > 0.0 && most < 0.5, "{most}");
    let rules = learnt.rules();
    assert!(rules.iter().any(|rule| rule.dropped == ["sid"]), "{rules:?}");
    assert!(skipped.iter().all(|drop| &*drop.component == "avoid_dup" && drop.detail.is_some()));
    let detail = skipped[0].detail.clone().unwrap();
    assert!(detail.contains("sid") && detail.contains("like http://a.test/p?id="), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn text_that_changes_from_visit_to_visit_is_no_content() {
    for (changes, revisits, fetched_again) in [(true, true, 3), (true, false, 0), (false, true, 1)] {
        let visits = AtomicUsize::new(PAGES);
        // Twelve words that no other visit has, or no other URL.
        let beside = move |url: &Url| {
            let of_url =
                url.as_str().bytes().fold(PAGES, |sum, byte| (sum * 31 + usize::from(byte)) % 99_991);
            let number = if changes { visits.fetch_add(1, Ordering::Relaxed) } else { of_url };
            words(number).split(' ').take(12).collect::<Vec<_>>().join(" ")
        };
        let (web, log) = (site_with(beside), Log::default());
        let crawl = crawler(spider(), &web).set("avoid_dup_content_revisits", revisits);
        let report = crawl.observer(log.clone()).run().await.unwrap();
        let ids: HashSet<String> =
            web.urls().iter().map(|url| url.split(['=', '&']).nth(1).unwrap().to_owned()).collect();
        assert_eq!(ids.len(), PAGES, "every content came");
        assert_eq!(report.stat("avoid_dup/fetched_again"), fetched_again);
        let skipped = log.dropped().iter().filter(|drop| drop.reason == "duplicate_content").count();
        match changes && revisits {
            true => assert!(skipped > PAGES / 2, "{skipped} of {} copies were skipped", PAGES - 1),
            false => assert_eq!(skipped, 0, "no two pages are the same"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_marked_requests_are_judged_if_that_is_asked_for() {
    let web = site();
    let report = crawler(spider(), &web).set("avoid_dup_content_scope", "marked").run().await.unwrap();
    assert_eq!(report.pages as usize, 2 * PAGES - 1);
    assert_eq!(report.stat("avoid_dup/learnt"), 0);
    let marking = spider_fn(["http://a.test/p?id=0"], |page: &Page, out: &mut Output<String>| {
        for url in page.links() {
            out.request(Request::get(url).with_meta(meta::AVOID_DUP_CONTENT, true));
        }
        Ok(())
    });
    let marked = crawler(marking, &site()).set("avoid_dup_content_scope", "marked");
    let report = marked.run().await.unwrap();
    assert!(report.stat("avoid_dup/skipped") > 100, "{:?}", report.stats);
}

#[tokio::test(start_paused = true)]
async fn errors_are_not_learnt_from() {
    let web = ScriptedDownloader::new().otherwise(|request, _| match request.url.path() {
        "/" => Reply::html((0..200).map(|n| format!("<a href='/x?n={n}'>x</a>")).collect::<String>()),
        _ => Reply::status(403).body(words(1)),
    });
    let spider = spider_fn(["http://a.test/"], |page: &Page, out: &mut Output<String>| {
        out.follow_links(page);
        Ok(())
    });
    let report = crawler(spider, &web).set("avoid_dup_content_initial_queue_limit", 0).run().await.unwrap();
    assert_eq!((web.urls().len(), report.stat("avoid_dup/learnt")), (201, 1));
}

/// 300 articles under two addresses. Those under the second address link to notes of their own. Another page links to the first of the notes, too.
fn articles_with_notes() -> ScriptedDownloader {
    ScriptedDownloader::new().otherwise(|request, _| {
        let (mut id, mut is_copy) = (None, false);
        for (name, value) in request.url.query_pairs() {
            id = id.or_else(|| value.trim_start_matches("id").parse::<usize>().ok());
            is_copy |= name == "sid";
        }
        Reply::html(match (request.url.path(), id) {
            ("/", _) => {
                let article = |n| format!("<a href='/p?id=id{n}'>x</a> <a href='/p?id=id{n}&sid=s{n}'>y</a>");
                (0..300).map(article).collect::<String>() + "<a href='/more'>more</a>"
            }
            ("/more", _) => (20..22).map(|n| format!("<a href='/notes?of=id{n}'>notes</a>")).collect(),
            ("/notes", Some(n)) => format!("<p>{}", words(1_000 + n)),
            ("/p", Some(n)) => {
                let notes = if is_copy { format!("/notes?of=id{n}") } else { "/".to_owned() };
                format!("<main><p>{}</main><a href='{notes}'>notes</a>", words(n))
            }
            _ => return Reply::status(404),
        })
    })
}

#[tokio::test(start_paused = true)]
async fn copies_are_not_fetched_for_links_of_which_most_are_not_followed() {
    // What is fetched in vain depends on the order of pages, and that on the delays of the work on pages, which are random here.
    let explored = |follows_all: bool, seed: u64| async move {
        let mut random = SmallRng::seed_from_u64(seed);
        let delays = move || {
            let before = Duration::from_millis(random.random_range(0..30));
            Delays { before, after: Duration::ZERO }
        };
        let _simulated = Simulated::begin(Timestamp::wall(), delays);
        let web = articles_with_notes();
        let spider = spider_fn(["http://a.test/"], move |page: &Page, out: &mut Output<String>| {
            let is_followed = |url: &Url| {
                let is_first = ["id20", "id21"].iter().any(|id| url.as_str().ends_with(id));
                follows_all || is_first || url.path() != "/notes"
            };
            page.links().into_iter().filter(is_followed).for_each(|url| out.request(Request::get(url)));
            Ok(())
        });
        let report = crawler(spider, &web).set("avoid_dup_content_exploration", 0.0).run().await.unwrap();
        let notes = web.urls().iter().filter(|url| url.contains("/notes")).count();
        (notes, report.stat("avoid_dup/explored"))
    };
    for seed in 0..3 {
        let (notes, explored_all) = explored(true, seed).await;
        let is_found = notes == 300 && explored_all > 200;
        assert!(is_found, "seed {seed}: {notes} notes, {explored_all} copies for them");
        let (notes, explored) = explored(false, seed).await;
        assert!(notes == 2 && explored <= 2, "seed {seed}: {notes} notes, {explored} copies in vain");
    }
}

/// Takes a while for each item.
struct Slow(Duration);

impl Pipeline<String> for Slow {
    async fn process_item(&mut self, item: String, _: &Context) -> Result<OnItem<String>> {
        tokio::time::sleep(self.0).await;
        Ok(OnItem::Keep(item))
    }
}

#[tokio::test(start_paused = true)]
async fn no_copy_is_dropped_while_the_links_of_a_page_are_on_their_way_to_the_queue() {
    // With the longer time, most copies wait longer than the time after which they are decided with what is known.
    for millis in [20, 2_000] {
        let web = articles_with_notes();
        let spider = spider_fn(["http://a.test/"], |page: &Page, out: &mut Output<String>| {
            if page.url().as_str().contains("sid") {
                out.item(page.url().to_string());
            }
            out.follow_links(page);
            Ok(())
        });
        let crawl = crawler(spider, &web).set("avoid_dup_content_exploration", 0.0);
        let report = crawl.pipeline(Slow(Duration::from_millis(millis))).run().await.unwrap();
        let notes = web.urls().iter().filter(|url| url.contains("/notes")).count();
        let skipped = report.stat("avoid_dup/skipped");
        assert_eq!(notes, 300, "{millis} ms for each item, {skipped} copies were dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_stays_in_a_pipeline_is_not_waited_for_longer_than_three_minutes() {
    let web = site();
    let spider = spider_fn(["http://a.test/p?id=0"], |page: &Page, out: &mut Output<String>| {
        if page.url().as_str().ends_with("id=7") {
            out.item("slow".to_owned());
        }
        out.follow_links(page);
        Ok(())
    });
    let log = Log::default();
    let crawl = crawler(spider, &web).set("item_timeout", 0.0).observer(log.clone());
    let began = tokio::time::Instant::now();
    let running = tokio::spawn(crawl.pipeline(Slow(Duration::from_secs(400))).run());
    tokio::time::sleep(Duration::from_secs(170)).await;
    let skipped = || log.dropped().iter().filter(|drop| drop.reason == "duplicate_content").count();
    assert_eq!(skipped(), 0, "its links may matter");
    tokio::time::sleep(Duration::from_secs(200)).await;
    let before_its_end = skipped();
    let report = running.await.unwrap().unwrap();
    assert!(began.elapsed() >= Duration::from_secs(400), "the page was processed to its end");
    assert!(before_its_end > 100, "{before_its_end} copies were dropped before");
    assert_eq!(report.stat("avoid_dup/not_waited_for"), before_its_end as i64);
}

#[tokio::test(start_paused = true)]
async fn the_reference_mode_skips_by_maybedonts_rules() {
    let (web, log) = (site(), Log::default());
    let builder = crawler(spider(), &web).observer(log.clone());
    // One request at a time, because the reference's rules do not know of requests in flight.
    let builder = builder.set("concurrent_requests", 1).set("avoid_dup_content_threshold", 0.9);
    builder.set("avoid_dup_content_mode", "reference").run().await.unwrap();
    let skipped: Vec<_> =
        log.dropped().into_iter().filter(|drop| drop.reason == "duplicate_content").collect();
    assert!(skipped.len() > 100, "{}", skipped.len());
    let detail = skipped[0].detail.clone().unwrap();
    assert!(detail.starts_with("`sid` changes nothing"), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn a_crawl_that_goes_on_knows_what_it_learnt() {
    let dir = tempfile::tempdir().unwrap();
    let with_job = |builder: CrawlerBuilder<_>, path: &Path| {
        builder.job(Job::open(path.join("job"), Backend::Redb).unwrap())
    };
    let web = site();
    let crawler_of = || crawler(spider(), &web).set("download_delay", 0.05);
    let first = with_job(crawler_of(), dir.path()).build().unwrap();
    let handle = first.handle();
    let running = tokio::spawn(first.run());
    while handle.stats().get("pages/delivered") < 300 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    handle.stop("enough");
    let report = running.await.unwrap().unwrap();
    let before = report.component::<AvoidDup>().unwrap().totals().unwrap();
    assert!(before.learnt >= 300 && before.explored > 0, "{before:?}");

    let second = with_job(crawler_of(), dir.path()).build().unwrap();
    assert_eq!(second.component::<AvoidDup>().unwrap().totals().unwrap(), before, "it goes on counting");
    let report = second.run().await.unwrap();
    let after = report.component::<AvoidDup>().unwrap().totals().unwrap();
    assert_eq!(report.pages + after.skipped, 2 * PAGES as u64 - 1, "each URL has one record over both runs");
    assert_eq!((after.learnt, after.lost), (report.pages, 0));
    let unique: std::collections::BTreeSet<_> = web.urls().into_iter().collect();
    assert_eq!(unique.len(), web.urls().len(), "nothing was fetched twice");
}

#[tokio::test(start_paused = true)]
async fn skipped_requests_of_a_job_of_the_version_before_are_skipped_once() {
    // Its priorities for them were those that delayed requests have now.
    let is_far = |url: &Url| url.query().is_some_and(|query| query.starts_with("id=150"));
    let links = "<a href='/p?id=1&sid=old'>x</a> <a href='/p?id=2&sid=old'>y</a>";
    let web = site_with(move |url| if is_far(url) { links.to_owned() } else { String::new() });
    let log = Log::default();
    let spider = spider_fn(["http://a.test/p?id=0"], move |page: &Page, out: &mut Output<()>| {
        if is_far(page.url()) {
            for (n, priority) in [(1, -2_000_000), (2, -2_000_001 - (3 << 24))] {
                let old = Request::get(Url::parse(&format!("http://a.test/p?id={n}&sid=old"))?);
                out.request(old.priority(priority).with_meta(meta::AVOID_DUP_SKIPPED, true));
            }
        }
        out.follow_links(page);
        Ok(())
    });
    let report = crawler(spider, &web).observer(log.clone()).run().await.unwrap();
    let skipped: Vec<_> =
        log.dropped().into_iter().filter(|drop| drop.reason == "duplicate_content").collect();
    let mut old: Vec<_> = skipped.iter().map(|drop| &*drop.url).filter(|url| url.ends_with("=old")).collect();
    old.sort_unstable();
    assert_eq!(old, ["http://a.test/p?id=1&sid=old", "http://a.test/p?id=2&sid=old"]);
    assert!(web.urls().iter().all(|url| !url.ends_with("=old")), "{:?}", web.urls());
    let totals = report.component::<AvoidDup>().unwrap().totals().unwrap();
    assert_eq!((totals.skipped as usize, totals.lost), (skipped.len(), 0));
}

#[tokio::test(start_paused = true)]
async fn eight_pages_behind_endless_session_ids_cost_less_than_700_requests() {
    for seed in [1, 2, 3] {
        let made = std::sync::atomic::AtomicU64::new(0);
        let web = ScriptedDownloader::new().otherwise(move |request, _| {
            let page = request.url.path().rsplit('p').next().and_then(|n| n.parse().ok()).unwrap_or(0);
            // Each link of each response has a session id of its own, so the addresses are endless.
            let links: String = (0..8)
                .map(|n| {
                    let id = made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    format!(
                        "<a href='/in;jsessionid={:x}/p{n}'>x</a>",
                        id.wrapping_mul(0x9E37_79B9_7F4A_7C15)
                    )
                })
                .collect();
            Reply::html(format!("<main><p>{}</p></main><nav>{links}</nav>", words(page)))
        });
        let spider = spider_fn(["http://a.test/in/p0"], |page: &Page, out: &mut Output<String>| {
            out.follow_links(page);
            Ok(())
        });
        let report = crawler(spider, &web)
            .set("seed", seed)
            .set("avoid_dup_content_initial_queue_limit", 300)
            .set("closespider_pagecount", 5_000)
            .run()
            .await
            .unwrap();
        let requests = web.urls().len();
        println!("seed {seed}: {requests} requests");
        assert!(requests <= 700, "seed {seed}: {requests}");
        assert_eq!(report.finish_reason, "finished");
    }
}

#[tokio::test(start_paused = true)]
async fn links_that_redirect_to_their_own_page_are_not_followed_for_ever() {
    let web = ScriptedDownloader::new().otherwise(|request, _| {
        let path = request.url.path();
        if let Some(post) = path.strip_prefix("/post/") {
            let topic = post.parse::<usize>().unwrap() / 10;
            return Reply::redirect(302, &format!("/topic/{topic}"));
        }
        let Some(topic) = path.strip_prefix("/topic/").and_then(|n| n.parse::<usize>().ok()) else {
            let topics: String = (0..200).map(|n| format!("<li><a href='/topic/{n}'>t</a></li>")).collect();
            return Reply::html(format!("<ul>{topics}</ul>"));
        };
        let posts: String =
            (0..5).map(|n| format!("<h3><a href='/post/{}'>#</a></h3>", topic * 10 + n)).collect();
        Reply::html(format!("<main><p>{}</p></main>{posts}", words(topic)))
    });
    let log = Log::default();
    let spider = spider_fn(["http://a.test/"], |page: &Page, out: &mut Output<String>| {
        out.follow_links(page);
        Ok(())
    });
    crawler(spider, &web).observer(log.clone()).run().await.unwrap();
    let asked = |start: &str| web.urls().iter().filter(|url| url.contains(start)).count();
    assert_eq!(asked("/topic/"), 200);
    assert!(asked("/post/") < 400, "{} of 1,000 redirects were asked for", asked("/post/"));
    assert!(log.dropped().iter().any(|drop| drop.reason == "duplicate_content"));
}

#[tokio::test(start_paused = true)]
async fn a_pinned_parameter_is_skipped_from_the_start_and_a_forbidden_one_never() {
    for (setting, fetched) in
        [("avoid_dup_content_pinned", PAGES), ("avoid_dup_content_forbidden", 2 * PAGES - 1)]
    {
        let web = site();
        crawler(spider(), &web).set(setting, vec!["sid"]).run().await.unwrap();
        assert_eq!(web.urls().len(), fetched, "{setting}");
    }
}
