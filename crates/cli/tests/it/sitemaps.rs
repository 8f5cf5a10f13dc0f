//! `huntsman crawl --sitemaps`: which pages it finds, and where the sitemaps themselves are recorded.

use huntsman_testkit::{Answer, RunningSite, Site};
use serde_json::{Value, json};

use crate::common::{crawl, field, huntsman, lines, report, run};

fn xml(body: &str) -> Answer {
    Answer::status(200).header("Content-Type", "application/xml").body(body.to_owned())
}

/// A site whose pages are listed only in its sitemaps.
fn site(robots: &str) -> RunningSite {
    Site::builder()
        .robots(robots)
        .page("/", "<title>Start</title><a href='/linked'>l</a>")
        .page("/linked", "<title>Linked</title>")
        .page("/listed", "<title>Listed</title><a href='/below'>b</a>")
        .page("/below", "<title>Below</title>")
        .answer("/index.xml", xml("<sitemapindex><sitemap><loc>/list.xml</loc></sitemap><sitemap><loc>/gone.xml</loc></sitemap></sitemapindex>"))
        .answer(
            "/list.xml",
            xml("<urlset><url><loc>/listed</loc></url><url><loc>/closed/1</loc></url><url><loc>http://127.0.0.2:1/</loc></url>\
                 <url><loc>javascript:x</loc></url></urlset>"),
        )
        .answer("/sitemap.xml", xml("<urlset><url><loc>/listed</loc></url></urlset>"))
        .start_blocking()
}

/// Paths in the records of a file, sorted.
fn paths(site: &RunningSite, records: &[Value]) -> Vec<String> {
    let root = site.url("/").to_string();
    field(records, "url").iter().map(|url| url.replacen(&root, "/", 1)).collect()
}

const ROBOTS: &str = "User-agent: *\nDisallow: /closed\nSitemap: /index.xml\n";

#[test]
fn sitemaps_of_robots_txt_are_read_and_every_url_is_one_record() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site(ROBOTS));
    let mut command = crawl(dir.path(), &site);
    let said = run(command.args(["--sitemaps", "--set", "robotstxt_obey=true"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let out = dir.path().join("out");
    let (pages, drops) = (lines(out.join("pages.jsonl")), lines(out.join("drops.jsonl")));
    assert_eq!(paths(&site, &pages), ["/", "/below", "/index.xml", "/linked", "/list.xml", "/listed"]);
    assert_eq!(paths(&site, &drops), ["/closed/1", "/gone.xml", "http://127.0.0.2:1/"]);
    assert_eq!(site.count("/robots.txt"), 1, "the one that the crawl obeys");

    let record = |path: &str| pages.iter().find(|page| page["url"] == site.url(path).as_str()).unwrap();
    let list = record("/list.xml");
    assert_eq!(
        (&list["content_type"], &list["links"], &list["depth"], &list["title"], &list["ok"]),
        (&json!("application/xml"), &json!(3), &json!(0), &Value::Null, &json!(true))
    );
    assert_eq!(
        (&list["referer"], &record("/index.xml")["referer"]),
        (&json!(site.url("/index.xml").as_str()), &Value::Null)
    );
    assert_eq!(
        (&record("/listed")["depth"], &record("/listed")["referer"]),
        (&json!(1), &json!(site.url("/list.xml").as_str()))
    );
    let stats = &report(&out)["stats"];
    assert_eq!(
        (&stats["sitemap/files"], &stats["sitemap/failed"], &stats["sitemap/invalid"]),
        (&json!(2), &json!(1), &json!(1))
    );
}

#[test]
fn without_the_flag_no_sitemap_is_asked_for() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site(ROBOTS));
    run(crawl(dir.path(), &site).args(["--set", "robotstxt_obey=true"]));
    assert_eq!(paths(&site, &lines(dir.path().join("out/pages.jsonl"))), ["/", "/linked"]);
}

#[test]
fn a_site_that_names_no_sitemap_has_it_at_the_usual_place() {
    for robots in ["User-agent: *\nDisallow:\n", ""] {
        let (dir, site) = (tempfile::tempdir().unwrap(), site(robots));
        let mut command = crawl(dir.path(), &site);
        let said = run(command.args(["--sitemaps", "--max-depth", "0", "--set", "robotstxt_obey=true"]));
        assert_eq!(said.code, Some(0), "{said:?}");
        let pages = lines(dir.path().join("out/pages.jsonl"));
        assert_eq!(
            paths(&site, &pages),
            ["/", "/listed", "/sitemap.xml"],
            "start and listed pages, no links"
        );
    }
}

#[test]
fn where_robots_txt_is_not_obeyed_it_is_read_as_a_page() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site(ROBOTS));
    let said = run(crawl(dir.path(), &site).args(["--sitemaps", "--max-depth", "0", "--ignore-robots"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let out = dir.path().join("out");
    let pages = lines(out.join("pages.jsonl"));
    assert_eq!(paths(&site, &pages), ["/", "/index.xml", "/list.xml", "/listed", "/robots.txt"]);
    let robots = pages.iter().find(|page| page["url"] == site.url("/robots.txt").as_str()).unwrap();
    assert_eq!((&robots["links"], &robots["content_type"]), (&json!(1), &json!("text/plain")));
    assert_eq!(
        paths(&site, &lines(out.join("drops.jsonl"))),
        ["/closed/1", "/gone.xml", "http://127.0.0.2:1/"],
        "404 twice"
    );
}

#[test]
fn a_site_without_sitemap_and_robots_txt_is_crawled_as_ever() {
    let (dir, site) = (tempfile::tempdir().unwrap(), Site::builder().page("/", "x").start_blocking());
    for obey in ["true", "false"] {
        let setting = format!("robotstxt_obey={obey}");
        let said = run(crawl(dir.path(), &site).args(["--fresh", "--sitemaps", "--set", &setting]));
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(lines(dir.path().join("out/pages.jsonl")).len(), 1);
    }
}

#[test]
fn the_help_says_what_the_flag_does() {
    let dir = tempfile::tempdir().unwrap();
    let help = run(huntsman(dir.path()).args(["crawl", "--help"])).stdout;
    assert!(help.contains("--sitemaps") && help.contains("/sitemap.xml"), "{help}");
    let settings = run(huntsman(dir.path()).arg("settings")).stdout;
    for name in ["sitemap_max_entries", "sitemap_max_files", "sitemap_max_bytes", "sitemap_max_depth"] {
        assert!(settings.contains(name), "{settings}");
    }
}
