//! Crawls that read sitemaps.

use std::io::Write;
use std::time::Duration;

use huntsman::middleware::RobotsSitemaps;
use huntsman::store::Backend;
use huntsman::{Crawler, Job, Output, Page, Sitemaps, Spider, spider_fn};
use huntsman_testkit::{Answer, Reply, RunningSite, ScriptedDownloader, Site};

use super::support::{Log, links, on_site, quick};

/// A spider that returns callback and path of every page, and follows nothing.
fn pages() -> impl Spider<Item = String> {
    spider_fn([] as [&str; 0], |page: &Page, out: &mut Output<String>| {
        out.item(format!("{} {}", page.callback(), page.url().path()));
        Ok(())
    })
}

fn xml(body: &str) -> Answer {
    Answer::status(200).header("Content-Type", "application/xml").body(body.to_owned())
}

fn xml_reply(body: String) -> Reply {
    Reply::status(200).header("Content-Type", "text/xml").body(body)
}

fn urlset(paths: &[&str]) -> String {
    let urls: String = paths.iter().map(|path| format!("<url><loc>{path}</loc></url>")).collect();
    format!("<?xml version='1.0'?><urlset>{urls}</urlset>")
}

fn index(paths: &[&str]) -> String {
    let urls: String = paths.iter().map(|path| format!("<sitemap><loc>{path}</loc></sitemap>")).collect();
    format!("<?xml version='1.0'?><sitemapindex>{urls}</sitemapindex>")
}

fn gzip(text: &str) -> Vec<u8> {
    // One stored block (RFC 1951, 3.2.4), which needs no compressor.
    let length = u16::try_from(text.len()).unwrap();
    let mut out = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01".to_vec();
    out.extend(length.to_le_bytes());
    out.extend((!length).to_le_bytes());
    out.write_all(text.as_bytes()).unwrap();
    out.extend(crc32(text.as_bytes()).to_le_bytes());
    out.extend(u32::from(length).to_le_bytes());
    out
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step))
}

async fn shop() -> RunningSite {
    let html = || Answer::html("<p>page <a href=/linked>x</a>");
    Site::builder()
        .robots("User-agent: *\nDisallow: /closed\nSitemap: /index.xml\nSitemap: /closed.xml\nSitemap: http://127.0.0.2:1/x.xml\n")
        .answer("/index.xml", xml(&index(&["/products.xml.gz", "/feed.rss", "/broken.xml", "/gone.xml", "/page", "/index.xml"])))
        .answer(
            "/products.xml.gz",
            Answer::status(200)
                .header("Content-Type", "application/x-gzip")
                .body(gzip(&urlset(&["/product/1", "/product/2#top", "/product/2", "/closed/product/3", "file:///etc/passwd", "http://127.0.0.2:1/product/9"]))),
        )
        .answer("/feed.rss", xml("<rss><channel><item><link>/news/1</link></item></channel></rss>"))
        .answer("/broken.xml", xml("<urlset><url><loc>/news/2</loc></url><url><loc>/ne"))
        .route("/*", move |asked| match asked.path() {
            "/" | "/page" | "/linked" => html(),
            path if path.starts_with("/product/") || path.starts_with("/news/") => html(),
            _ => Answer::status(404),
        })
        .start()
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crawl_from_a_robots_txt_finds_the_pages_of_all_its_sitemaps() {
    let site = shop().await;
    let log = Log::default();
    let spider = Sitemaps::new(pages())
        .sitemap_urls([site.url("/robots.txt")])
        .rule("/product/", "product")
        .unwrap()
        .rule("/(product|news)/", "parse")
        .unwrap();
    let report = on_site(spider, &site).set("scope", "host").observer(log.clone()).run().await.unwrap();
    let mut delivered = log.delivered();
    delivered.sort();
    let expected = [
        "/broken.xml",
        "/feed.rss",
        "/index.xml",
        "/news/1",
        "/news/2",
        "/page",
        "/product/1",
        "/product/2",
        "/products.xml.gz",
        "/robots.txt",
    ];
    assert_eq!(delivered, expected.map(|path| site.url(path).to_string()));
    assert_eq!(report.stat("item_scraped_count"), 4, "the spider sees pages only");
    assert_eq!(report.stat("sitemap/files"), 5);
    assert_eq!(
        (report.stat("sitemap/unknown"), report.stat("sitemap/damaged")),
        (1, 1),
        "/page and /broken.xml"
    );
    assert_eq!(report.stat("sitemap/failed"), 1, "/gone.xml");
    assert_eq!(report.stat("sitemap/invalid"), 2, "file:, and the entry that is cut off");
    // The usual chain applies: rules of robots.txt, the scope, the duplicate filter.
    assert_eq!(
        (site.count("/closed.xml"), site.count("/closed/product/3"), site.count("/index.xml")),
        (0, 0, 1)
    );
    assert_eq!(report.stat("drops/skipped/robots"), 2);
    assert_eq!(report.stat("refused/offsite"), 2, "a sitemap and a page of another host");
    assert_eq!(report.finish_reason, "finished");
}

#[tokio::test(start_paused = true)]
async fn rules_follow_filter_and_alternates_choose() {
    let with_alternate = "<urlset><url><loc>/a/old</loc><lastmod>2020</lastmod></url><url><loc>/a/1</loc>\
                          <xhtml:link rel='alternate' hreflang='de' href='/b/de'/></url><url><loc>/c</loc></url></urlset>";
    let web = ScriptedDownloader::new()
        .respond("http://a.test/index.xml", Reply::text(index(&["/yes-1.xml", "/no.xml", "/yes-2.xml"])))
        .respond("http://a.test/yes-1.xml", Reply::text(with_alternate))
        .respond("http://a.test/yes-2.xml", Reply::text("http://a.test/b/text\n# no\nhttp://a.test/a/text"))
        .otherwise(|_, _| Reply::html("x"));
    let spider = || Sitemaps::new(pages()).sitemap_urls(["http://a.test/index.xml"]);
    let log = Log::default();
    let chosen = spider()
        .follow("/yes-")
        .unwrap()
        .rule("/a/", "first")
        .unwrap()
        .rule("/[ab]/", "second")
        .unwrap()
        .filter(|entry| entry.lastmod.as_deref() != Some("2020"))
        .follow_alternates(true);
    quick(chosen, &web).observer(log.clone()).run().await.unwrap();
    let mut urls: Vec<String> = log.delivered();
    urls.retain(|url| !url.ends_with(".xml"));
    urls.sort();
    assert_eq!(urls, ["/a/1", "/a/text", "/b/de", "/b/text"].map(|path| format!("http://a.test{path}")));
    assert_eq!(web.count("http://a.test/no.xml"), 0);

    let report = quick(spider(), &web).run().await.unwrap();
    assert_eq!(report.stat("item_scraped_count"), 5, "without rules all pages, without alternates");
    assert!(spider().rule("(", "x").is_err() && spider().follow("[").is_err());
}

#[tokio::test(start_paused = true)]
async fn pages_of_a_sitemap_are_as_deep_as_links_of_a_start_page() {
    let web = ScriptedDownloader::new()
        .respond("http://a.test/index.xml", Reply::text(index(&["/inner.xml"])))
        .respond("http://a.test/inner.xml", Reply::text(index(&["/list.xml"])))
        .respond("http://a.test/list.xml", Reply::text(urlset(&["/1"])))
        .otherwise(|_, _| Reply::html("<a href=/2>x</a>"));
    let spider = Sitemaps::new(links([] as [&str; 0])).sitemap_urls(["http://a.test/index.xml"]);
    let report = quick(spider, &web).set("depth_limit", 1).run().await.unwrap();
    assert_eq!((web.count("http://a.test/1"), web.count("http://a.test/2")), (1, 0));
    assert_eq!(report.stat("request_depth_max"), 1);
}

#[tokio::test(start_paused = true)]
async fn indexes_end_at_the_depth_and_the_number_of_files() {
    let chain = |url: &str| {
        let number: u32 = url.rsplit('/').next().and_then(|name| name.parse().ok()).unwrap_or(0);
        Reply::text(index(&[&format!("/{}", number + 1), "/0", &format!("/{number}")]))
    };
    let web = ScriptedDownloader::new().otherwise(move |request, _| chain(request.url.as_str()));
    let spider = || Sitemaps::new(pages()).sitemap_urls(["http://a.test/0"]);
    for (depth, files) in [(0, 1), (1, 2), (2, 3), (5, 6)] {
        let report = quick(spider(), &web).set("sitemap_max_depth", depth).run().await.unwrap();
        assert_eq!((report.pages, report.finish_reason.as_str()), (files, "finished"), "depth {depth}");
        assert!(report.stat("sitemap/depth_cut") > 0);
    }
    let many: Vec<String> = (0..300).map(|n| format!("/{n}.xml")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let flood = index(&[&many[..], &many[..]].concat());
    let web = ScriptedDownloader::new()
        .respond("http://a.test/0", Reply::text(flood))
        .otherwise(|_, _| Reply::text("<urlset></urlset>"));
    let report = quick(spider(), &web).run().await.unwrap();
    assert_eq!((report.pages, report.stat("sitemap/files_cut")), (101, 400), "the start is not counted");
}

#[tokio::test(start_paused = true)]
async fn robots_files_that_name_each_other_end() {
    let web = ScriptedDownloader::new().otherwise(|request, _| {
        let host = request.url.host_str().unwrap_or_default();
        Reply::text(format!("Sitemap: http://a{host}/robots.txt"))
    });
    for obey in [true, false] {
        let spider = Sitemaps::new(links(["http://a.test/"]))
            .sitemap_urls(["http://b.test/robots.txt"])
            .read_linked(true);
        let discovery = RobotsSitemaps::of(&spider);
        let report = quick(spider, &web).plugin(discovery).set("robotstxt_obey", obey).run().await.unwrap();
        assert_eq!(report.finish_reason, "finished");
        assert!(web.urls().len() < 30, "{:?}", web.urls());
    }
}

#[tokio::test(start_paused = true)]
async fn pages_in_other_languages_are_at_most_as_many_as_entries() {
    let alternates: String = (0..40).map(|n| format!("<xhtml:link rel='alternate' href='/{n}'/>")).collect();
    let sitemap = format!("<urlset><url><loc>/a</loc>{alternates}</url><url><loc>/b</loc></url></urlset>");
    let web = ScriptedDownloader::new()
        .respond("http://a.test/s.xml", Reply::text(sitemap))
        .otherwise(|_, _| Reply::html("x"));
    let spider = Sitemaps::new(pages()).sitemap_urls(["http://a.test/s.xml"]).follow_alternates(true);
    let report = quick(spider, &web).set("sitemap_max_entries", 10).run().await.unwrap();
    assert_eq!((report.stat("item_scraped_count"), report.stat("sitemap/entries_cut")), (12, 30));
}

#[tokio::test(start_paused = true)]
async fn a_site_names_its_sitemaps_or_has_one_at_the_usual_place() {
    let named = "User-agent: *\nDisallow:\nSitemap: /named.xml";
    for (obey, robots, sitemap) in [
        (true, Reply::text(named), "/named.xml"),
        (true, Reply::text("User-agent: *\nDisallow:"), "/sitemap.xml"),
        (true, Reply::status(404), "/sitemap.xml"),
        (false, Reply::text(named), "/named.xml"),
        (false, Reply::text(""), "/sitemap.xml"),
        (false, Reply::status(404), "/sitemap.xml"),
    ] {
        let sitemap = format!("http://a.test{sitemap}");
        let web = ScriptedDownloader::new()
            .respond("http://a.test/robots.txt", robots)
            .respond(&sitemap, xml_reply(urlset(&["/only-there"])))
            .otherwise(|_, _| Reply::html("<a href=/sitemap.xml>x</a>"));
        // The pages link to it, too: it makes no difference which request comes first.
        let spider = Sitemaps::new(links(["http://a.test/", "http://a.test/2"])).read_linked(true);
        let discovery = RobotsSitemaps::of(&spider);
        let report = quick(spider, &web).plugin(discovery).set("robotstxt_obey", obey).run().await.unwrap();
        assert_eq!(web.count("http://a.test/robots.txt"), 1, "{sitemap}");
        assert_eq!((web.count(&sitemap), web.count("http://a.test/only-there")), (1, 1), "{sitemap}, {obey}");
        assert_eq!(report.finish_reason, "finished");
        assert!(report.failed_seeds.is_empty(), "a missing robots.txt is no missing start page");
    }
}

#[tokio::test(start_paused = true)]
async fn a_sitemap_on_another_host_is_out_of_scope_and_on_record() {
    let web = ScriptedDownloader::new()
        .respond("http://a.test/robots.txt", Reply::text("Sitemap: http://b.test/s.xml\nSitemap: /s.xml"))
        .respond("http://a.test/s.xml", Reply::text(urlset(&["http://b.test/1", "/1"])))
        .otherwise(|_, _| Reply::html("x"));
    let spider = Sitemaps::new(links(["http://a.test/"]));
    let discovery = RobotsSitemaps::of(&spider);
    let report = quick(spider, &web)
        .plugin(discovery)
        .set("robotstxt_obey", true)
        .set("scope", "host")
        .run()
        .await
        .unwrap();
    assert!(web.urls().iter().all(|url| url.starts_with("http://a.test/")), "{:?}", web.urls());
    assert_eq!((report.pages, report.stat("refused/offsite")), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn fifty_thousand_entries_are_followed_and_the_rest_is_counted() {
    let entries: String = (0..60_000).map(|n| format!("<url><loc>/{n}</loc></url>")).collect();
    let web = ScriptedDownloader::new()
        .respond("http://a.test/s.xml", Reply::text(format!("<urlset>{entries}</urlset>")))
        .otherwise(|_, _| Reply::html("x"));
    let spider = Sitemaps::new(pages()).sitemap_urls(["http://a.test/s.xml"]);
    let report = quick(spider, &web).run().await.unwrap();
    assert_eq!((report.pages, report.stat("sitemap/entries_cut")), (50_001, 10_000));
}

/// A crawler with a job in a directory, which stops after a sitemap.
fn in_job(directory: &std::path::Path, web: &ScriptedDownloader, last: &'static str) -> Crawler {
    let spider = Sitemaps::new(pages()).sitemap_urls(["http://a.test/index.xml"]).on_sitemap(
        move |page, _, out: &mut Output<String>| {
            if page.url().path() == last {
                out.context().stop("enough");
            }
        },
    );
    let files = spider.files();
    let job = Job::open(directory, Backend::Redb).unwrap();
    quick(spider, web)
        .job(job)
        .persist(files)
        .set("sitemap_max_files", 3)
        .set("concurrent_requests_per_domain", 1)
        .build()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_goes_on_with_its_sitemaps_and_their_number() {
    let index_of = |name: &str| {
        let paths: Vec<String> = (0..3).map(|n| format!("/{name}-{n}.xml")).collect();
        Reply::text(index(&paths.iter().map(String::as_str).collect::<Vec<_>>()))
    };
    let web = ScriptedDownloader::new()
        .respond("http://a.test/index.xml", index_of("a"))
        .respond("http://a.test/a-0.xml", index_of("b"))
        // The stop, which the file before this one triggers, comes first.
        .respond("http://a.test/a-1.xml", index_of("c").after(Duration::from_millis(300)))
        .otherwise(|_, _| Reply::text(urlset(&[])));
    let directory = tempfile::tempdir().unwrap();
    let job = directory.path().join("job");
    let first = in_job(&job, &web, "/a-0.xml").run().await.unwrap();
    assert_eq!(first.finish_reason, "enough");
    assert!((2..4).contains(&web.urls().len()), "{:?}", web.urls());
    in_job(&job, &web, "none").run().await.unwrap();
    let mut urls = web.urls();
    urls.sort();
    let expected = ["a-0.xml", "a-1.xml", "a-2.xml", "index.xml"].map(|name| format!("http://a.test/{name}"));
    assert_eq!(urls, expected, "three files of the host, over both runs");
}
