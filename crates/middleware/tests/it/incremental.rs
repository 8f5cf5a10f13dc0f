//! Repeated crawls of one site, in virtual time.

use std::path::Path;
use std::sync::{Arc, Mutex};

use huntsman_crawler::{
    Backend, Context, CrawlReport, CrawlerBuilder, Job, OnItem, Output, Page, Pipeline, Request, Result,
    Spider, Start,
};
use huntsman_middleware::{Defaults, Revisit};
use huntsman_testkit::{Reply, ScriptedDownloader};
use serde_json::Value;

/// Follows every link, and gives an item for each page whose path begins with `/item`.
#[derive(Default)]
struct Site {
    /// The result for each page: path, status, revisit.
    seen: Arc<Mutex<Vec<String>>>,
    /// The distances between the old and new text of the pages that changed.
    distances: Arc<Mutex<Vec<Option<u32>>>>,
    /// The path of a page whose callback fails.
    fails_at: Option<&'static str>,
}

impl Spider for Site {
    type Item = String;

    fn start(&self) -> Start {
        Start::requests([Request::parse("http://h/").unwrap()])
    }

    fn parse(&self, page: &Page, out: &mut Output<String>) -> Result<()> {
        let path = page.url().path().to_owned();
        let revisit = match page.extensions.get() {
            Some(Revisit::New) => "New",
            Some(Revisit::Changed { distance }) => {
                self.distances.lock().unwrap().push(*distance);
                "Changed"
            }
            Some(Revisit::Unchanged) => "Unchanged",
            Some(Revisit::NotModified) => "NotModified",
            None => "-",
        };
        self.seen.lock().unwrap().push(format!("{path} {} {revisit}", page.response().status.as_u16()));
        if path.starts_with("/item") {
            out.item(path.clone());
        }
        out.follow_links(page);
        if self.fails_at == Some(&*path) {
            return Err(huntsman_crawler::Error::msg("as asked"));
        }
        Ok(())
    }
}

struct Kept(Arc<Mutex<Vec<String>>>);

impl Pipeline<String> for Kept {
    async fn process_item(&mut self, item: String, _: &Context) -> Result<OnItem<String>> {
        self.0.lock().unwrap().push(item.clone());
        Ok(OnItem::Keep(item))
    }
}

struct Done {
    report: CrawlReport,
    seen: Vec<String>,
    items: Vec<String>,
}

impl Done {
    fn stat(&self, key: &str) -> i64 {
        self.report.stats.get(key).and_then(Value::as_i64).unwrap_or(0)
    }
}

/// Consecutive crawls with one directory.
struct Crawls {
    folder: tempfile::TempDir,
    set: Vec<(&'static str, Value)>,
}

impl Crawls {
    fn new(set: &[(&'static str, Value)]) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), set: set.to_vec() }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn builder(&self, site: Site, web: &ScriptedDownloader) -> CrawlerBuilder<Site> {
        let builder = CrawlerBuilder::new(site)
            .plugin(Defaults)
            .downloader(web.clone())
            .set("seed", 7)
            .set("robotstxt_obey", false)
            .set("incremental_dir", self.path("known"));
        self.set.iter().fold(builder, |builder, (name, value)| builder.set(name, value.clone()))
    }

    async fn run_with(&self, site: Site, web: &ScriptedDownloader, job: Option<&Path>) -> Done {
        let (seen, items) = (Arc::clone(&site.seen), Arc::<Mutex<Vec<String>>>::default());
        let mut builder = self.builder(site, web).pipeline(Kept(Arc::clone(&items)));
        if let Some(job) = job {
            builder = builder.job(Job::open(job, Backend::Redb).unwrap());
        }
        let report = builder.run().await.unwrap();
        let take = |list: &Mutex<Vec<String>>| {
            let mut list = std::mem::take(&mut *list.lock().unwrap());
            list.sort();
            list
        };
        Done { report, seen: take(&seen), items: take(&items) }
    }

    async fn run(&self, web: &ScriptedDownloader) -> Done {
        self.run_with(Site::default(), web, None).await
    }
}

/// A site whose pages have the hash of their content as `ETag`; the `changed` pages have other content.
fn web(changed: &'static [&'static str]) -> ScriptedDownloader {
    ScriptedDownloader::new().otherwise(move |request, _| {
        let path = request.url.path();
        let new = changed.contains(&path);
        let tag = format!("\"{path}{}\"", u8::from(new));
        if request.headers.get("if-none-match").is_some_and(|have| *have == tag) {
            return Reply::status(304);
        }
        let body = match path {
            "/" => "<a href='/item/1'>1</a><a href='/b'>b</a><a href='/untagged'>u</a>",
            // These links are known when the page is parsed: from the front page, and from the page itself.
            "/b" => "<a href='/item/1'>1</a><a href='/item/2'>2</a><a href='/b'>b</a>",
            "/item/1" => "one",
            "/item/2" => "two",
            "/untagged" => "<a href='/old'>old</a>",
            "/old" => return Reply::redirect(301, "/item/3"),
            "/item/3" => "three",
            _ => return Reply::status(404),
        };
        let body = if new { format!("{body} new <a href='/item/2'>again</a>") } else { body.to_owned() };
        let reply = Reply::html(body);
        if path == "/untagged" { reply } else { reply.header("etag", &tag) }
    })
}

#[tokio::test(start_paused = true)]
async fn pages_that_did_not_change_are_skipped_and_their_links_followed() {
    let crawls = Crawls::new(&[("incremental_enabled", true.into())]);
    let first = crawls.run(&web(&[])).await;
    assert_eq!((first.report.pages, first.stat("incremental/new")), (6, 6));
    assert_eq!(first.items, ["/item/1", "/item/2", "/item/3"]);

    let second = crawls.run(&web(&[])).await;
    assert_eq!(second.seen, ["/untagged 200 Unchanged"], "it has no validators");
    assert_eq!((second.stat("incremental/not_modified"), second.stat("incremental/unchanged")), (5, 1));
    assert_eq!(second.stat("drops/skipped/not_modified"), 5);
    assert!(second.report.failed_seeds.is_empty(), "{:?}", second.report.failed_seeds);

    let third = crawls.run(&web(&["/item/2"])).await;
    assert_eq!(third.seen, ["/item/2 200 Changed", "/untagged 200 Unchanged"]);
    assert_eq!(third.items, ["/item/2"]);
    let fourth = crawls.run(&web(&["/item/2"])).await;
    assert_eq!(fourth.seen, ["/untagged 200 Unchanged"], "the new tag is remembered");
}

#[tokio::test(start_paused = true)]
async fn links_are_known_of_every_page_that_has_them() {
    let crawls = Crawls::new(&[("incremental_enabled", true.into())]);
    crawls.run(&web(&[])).await;
    // The front page was the first with a link to /item/1, but /b has the link as well.
    let without = web(&[]).respond("http://h/", Reply::html("<a href='/b'>b</a>"));
    let second = crawls.run(&without).await;
    assert_eq!(second.seen, ["/ 200 Changed"]);
    assert_eq!((without.count("http://h/item/1"), without.count("http://h/item/2")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_callback_may_be_called_with_the_flag() {
    let crawls = Crawls::new(&[("incremental_enabled", true.into()), ("on_not_modified", "call".into())]);
    let first = crawls.run(&web(&[])).await;
    let second = crawls.run(&web(&[])).await;
    let expected = [
        "/ 304 NotModified",
        "/b 304 NotModified",
        "/item/1 304 NotModified",
        "/item/2 304 NotModified",
        "/item/3 304 NotModified",
        "/untagged 200 Unchanged",
    ];
    assert_eq!(second.seen, expected);
    assert_eq!((first.report.pages, second.report.pages), (6, 6));
    let third = crawls.run(&web(&[])).await;
    assert_eq!(third.seen, expected, "their links are still known");
}

#[tokio::test(start_paused = true)]
async fn the_http_cache_may_answer_in_place_of_the_server() {
    for (policy, asked) in [("dummy", 0), ("rfc", 6)] {
        let mut crawls = Crawls::new(&[("incremental_enabled", true.into())]);
        crawls.set.push(("httpcache_enabled", true.into()));
        crawls.set.push(("httpcache_policy", policy.into()));
        crawls.set.push(("httpcache_dir", crawls.path("cache").into()));
        crawls.run(&web(&[])).await;
        let again = web(&[]);
        let second = crawls.run(&again).await;
        assert_eq!(second.stat("incremental/unchanged"), 6, "{policy}: {:?}", second.seen);
        assert_eq!(again.requests().len(), asked, "{policy}: {:?}", again.urls());
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_page_tells_how_far_it_is_from_what_it_was() {
    let crawls = Crawls::new(&[("incremental_enabled", true.into())]);
    let words = |from: u32| (from..from + 300).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ");
    let (text, other) = (words(0), words(1000));
    let visit = async |reply: Reply| {
        let site = Site::default();
        let distances = Arc::clone(&site.distances);
        crawls.run_with(site, &ScriptedDownloader::new().respond("http://h/", reply), None).await;
        std::mem::take(&mut *distances.lock().unwrap())
    };
    let page = |text: &str| Reply::html(format!("<p>{text}"));
    assert_eq!(visit(page(&text)).await, [], "it is new");
    assert_eq!(visit(page(&text)).await, [], "it did not change");
    // This is compared with the record of the crawl before, through an unchanged visit.
    assert_eq!(visit(Reply::html(format!("<div class=new>{text}</div>"))).await, [Some(0)], "markup only");
    let edited = text.replace("w7 ", "edited ");
    let near = visit(page(&edited)).await[0].unwrap();
    assert!((1..=20).contains(&near), "{near}");
    let far = visit(page(&other)).await[0].unwrap();
    assert!(far > 40, "{far}");
    assert_eq!(visit(page("")).await, [None], "no words");
    assert_eq!(visit(page(&text)).await, [None], "there were none");
    assert_eq!(visit(Reply::status(404)).await, []);
    assert_eq!(visit(page(&text)).await, [None], "an error was remembered last");
    assert_eq!(visit(page(&edited)).await, [Some(near)]);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_was_not_modified_keeps_its_fingerprint() {
    let crawls = Crawls::new(&[("incremental_enabled", true.into())]);
    crawls.run(&web(&[])).await;
    assert_eq!(crawls.run(&web(&[])).await.stat("incremental/not_modified"), 5);
    let site = Site::default();
    let distances = Arc::clone(&site.distances);
    crawls.run_with(site, &web(&["/item/2"]), None).await;
    assert!(matches!(distances.lock().unwrap()[..], [Some(1..)]), "{distances:?}");
}

#[tokio::test(start_paused = true)]
async fn a_page_whose_callback_failed_is_not_remembered() {
    let crawls = Crawls::new(&[("incremental_enabled", true.into()), ("delta_enabled", true.into())]);
    let failing = Site { fails_at: Some("/item/2"), ..Site::default() };
    crawls.run_with(failing, &web(&[]), None).await;
    let second = crawls.run(&web(&[])).await;
    assert_eq!(second.seen, ["/item/2 200 New", "/untagged 200 Unchanged"]);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_gone_is_asked_for_without_validators_when_it_comes_back() {
    let crawls = Crawls::new(&[("incremental_enabled", true.into())]);
    crawls.run(&web(&[])).await;
    let gone = web(&[]).respond("http://h/item/1", Reply::status(404));
    let second = crawls.run(&gone).await;
    assert_eq!(second.stat("incremental/gone"), 1);
    let third = crawls.run(&web(&[])).await;
    assert_eq!(third.seen, ["/item/1 200 Changed", "/untagged 200 Unchanged"]);
}

#[tokio::test(start_paused = true)]
async fn a_failing_server_makes_nothing_forgotten() {
    let crawls = Crawls::new(&[("incremental_enabled", true.into())]);
    crawls.run(&web(&[])).await;
    let broken = ScriptedDownloader::new().otherwise(|_, _| Reply::status(500));
    let second = crawls.run(&broken).await;
    assert!(second.seen.is_empty());
    let third = crawls.run(&web(&[])).await;
    assert_eq!(third.seen, ["/untagged 200 Unchanged"]);
}

#[tokio::test(start_paused = true)]
async fn delta_skips_what_gave_items() {
    let crawls = Crawls::new(&[("delta_enabled", true.into())]);
    let first = crawls.run(&web(&[])).await;
    assert_eq!(first.items, ["/item/1", "/item/2", "/item/3"]);
    let again = web(&[]);
    let second = crawls.run(&again).await;
    assert_eq!(second.seen, ["/ 200 -", "/b 200 -", "/untagged 200 -"]);
    assert_eq!((second.stat("drops/skipped/delta"), second.stat("delta/skipped")), (3, 3));
    assert_eq!(again.count("http://h/old"), 0, "the address before the redirect is known, too");
}

#[tokio::test(start_paused = true)]
async fn delta_can_be_reset_and_can_include_start_requests() {
    let crawls = Crawls::new(&[("delta_enabled", true.into())]);
    crawls.run(&web(&[])).await;
    let reset = Crawls { set: vec![("delta_enabled", true.into()), ("delta_reset", true.into())], ..crawls };
    assert_eq!(reset.run(&web(&[])).await.items.len(), 3);

    let front = ScriptedDownloader::pages([("http://h/", "front"), ("http://h/item/0", "zero")]);
    let moved = ScriptedDownloader::new()
        .respond("http://h/", Reply::redirect(302, "/item/0"))
        .respond("http://h/item/0", Reply::html("zero"));
    let delta = Crawls { set: vec![("delta_enabled", true.into())], ..reset };
    assert_eq!(delta.run(&front).await.seen, ["/ 200 -"]);
    assert_eq!(delta.run(&moved).await.items, ["/item/0"]);
    assert_eq!(delta.run(&moved).await.items, ["/item/0"], "a start request");
    let set = vec![("delta_enabled", true.into()), ("delta_include_start", true.into())];
    let included = Crawls { set, ..delta };
    let last = included.run(&moved).await;
    assert!(last.items.is_empty() && last.report.failed_seeds.is_empty(), "{:?}", last.report.failed_seeds);
}

#[tokio::test(start_paused = true)]
async fn a_key_of_the_request_tells_delta_requests_apart() {
    struct Keyed(&'static str);
    impl Spider for Keyed {
        type Item = String;
        fn start(&self) -> Start {
            Start::requests([Request::parse("http://h/").unwrap()])
        }
        fn parse(&self, page: &Page, out: &mut Output<String>) -> Result<()> {
            match page.url().path() {
                "/" => out.request(Request::parse(self.0).unwrap().meta("delta_key", "product 7")),
                path => out.item(path.to_owned()),
            }
            Ok(())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let known = folder.path().join("known");
    for (url, asked) in [("http://h/p?id=7", 1), ("http://h/product/7", 0)] {
        let web = ScriptedDownloader::new().otherwise(|_, _| Reply::html("x"));
        let builder = CrawlerBuilder::new(Keyed(url)).plugin(Defaults).downloader(web.clone());
        let builder = builder.set("robotstxt_obey", false).set("delta_enabled", true);
        builder.set("incremental_dir", known.to_str().unwrap()).run().await.unwrap();
        assert_eq!(web.count(url), asked, "{url}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_is_remembered_after_its_commits_and_at_its_end() {
    let crawls = Crawls::new(&[("incremental_enabled", true.into()), ("delta_enabled", true.into())]);
    let (one, two) = (crawls.folder.path().join("one"), crawls.folder.path().join("two"));
    let first = crawls.run_with(Site::default(), &web(&[]), Some(&one)).await;
    assert_eq!(first.items.len(), 3);
    let second = crawls.run_with(Site::default(), &web(&[]), Some(&two)).await;
    assert_eq!(second.seen, ["/untagged 200 Unchanged"]);
    assert!(second.items.is_empty());
}

#[tokio::test]
async fn downloads_within_callbacks_get_whole_answers() {
    struct Nested(Arc<Mutex<Vec<String>>>);
    impl Spider for Nested {
        type Item = String;
        fn start(&self) -> Start {
            Start::requests([Request::parse("http://h/untagged").unwrap()])
        }
        fn parse(&self, page: &Page, out: &mut Output<String>) -> Result<()> {
            if page.url().path() == "/untagged" {
                let request = Request::parse("http://h/item/1").unwrap();
                let cx = out.context().clone();
                let inner = cx.block_on(cx.download(request))?;
                self.0.lock().unwrap().push(String::from_utf8_lossy(&inner.body).into_owned());
                out.request(Request::parse("http://h/item/1").unwrap());
            }
            Ok(())
        }
    }
    let crawls = Crawls::new(&[]);
    let bodies = Arc::<Mutex<Vec<String>>>::default();
    for _ in 0..2 {
        let builder = CrawlerBuilder::new(Nested(Arc::clone(&bodies))).plugin(Defaults).downloader(web(&[]));
        let builder = builder.set("robotstxt_obey", false).set("incremental_enabled", true);
        let builder = builder.set("download_delay", 0.0);
        builder.set("incremental_dir", crawls.path("known")).run().await.unwrap();
    }
    assert_eq!(*bodies.lock().unwrap(), ["one", "one"]);
}
