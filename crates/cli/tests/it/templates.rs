//! The templates of projects and spiders, as they stand: they are compiled here, their own tests run, and they crawl a site.

use std::fs;
use std::path::Path;

use huntsman::middleware::Exchange;
use huntsman::project::Project;
use huntsman::project::command::exit::Exit;
use huntsman::{Fingerprinter, Settings};
use huntsman_testkit::{Answer, Site};

// `cargo fmt` in a generated project has the usual settings, and not those of this workspace.
macro_rules! templates {
    ($($name:ident: $path:literal,)*) => {
        $(#[rustfmt::skip]
        #[allow(clippy::duplicate_mod, dead_code, unreachable_pub)]
        #[path = $path]
        mod $name;)*
    };
}

templates! {
    main_program: "../../templates/project/src/main.rs",
    spiders: "../../templates/project/src/spiders/mod.rs",
    basic: "../../templates/spiders/basic.rs",
    rules: "../../templates/spiders/rules.rs",
    sitemap: "../../templates/spiders/sitemap.rs",
    xmlfeed: "../../templates/spiders/xmlfeed.rs",
    csvfeed: "../../templates/spiders/csvfeed.rs",
    api: "../../templates/spiders/api.rs",
}

/// An answer with this media type.
fn typed(kind: &str, body: impl Into<String>) -> Answer {
    Answer::status(200).header("content-type", kind).body(body.into())
}

#[test]
fn every_template_crawls_a_site_without_an_edit() {
    let quotes = include_str!("../../templates/project/fixtures/quotes/first.body.html");
    let site = Site::builder()
        .page("/", "<title>Home</title><a href=/item/1>1</a> <a href=/category/a>A</a>")
        .page("/item/1", "<title>Item</title><h1>One</h1>")
        .page("/category/a", "<title>A</title><a href=/item/2>2</a>")
        .page("/item/2", "<title>Item</title><h1>Two</h1>")
        .page("/quotes", quotes)
        .page("/page/2/", quotes.replace("next", "last"))
        .route("/robots.txt", |asked| {
            let host = asked.header("host").unwrap_or_default().to_owned();
            Answer::text(format!("User-agent: *\nAllow: /\nSitemap: http://{host}/sitemap.xml\n"))
        })
        .route("/sitemap.xml", |asked| {
            let host = asked.header("host").unwrap_or_default().to_owned();
            typed("application/xml", format!("<urlset><url><loc>http://{host}/item/1</loc></url></urlset>"))
        })
        .answer("/feed.xml", typed("application/xml", "<rss><item><title>One</title></item></rss>"))
        .answer("/feed.csv", typed("text/csv", "name,price\nOne,1\nTwo,2\nThree,3\n"))
        .answer("/api", typed("application/json", r#"{"items": [{"id": 1}], "next": "/api/2"}"#))
        .answer("/api/2", typed("application/json", r#"{"items": [{"id": 2}]}"#))
        .start_blocking();
    let dir = tempfile::tempdir().unwrap();
    let project = Project::new("templates")
        .spider("quotes", spiders::quotes::spider)
        .spider("basic", basic::spider)
        .spider("rules", rules::spider)
        .spider("sitemap", sitemap::spider)
        .spider("xmlfeed", xmlfeed::spider)
        .spider("csvfeed", csvfeed::spider)
        .spider("api", api::spider);
    let address = format!("127.0.0.1:{}", site.port());
    for (spider, start, items) in [
        ("quotes", "/quotes", 4),
        ("basic", "/", 4),
        ("rules", "/", 2),
        ("sitemap", "/", 1),
        ("xmlfeed", "/feed.xml", 1),
        ("csvfeed", "/feed.csv", 3),
        ("api", "/api", 2),
    ] {
        let file = dir.path().join(format!("{spider}.jsonl"));
        let (file, start) = (file.to_str().unwrap(), format!("start={}", site.url(start)));
        let words = ["templates", "crawl", spider, "-o", file, "-a", &start, "-s", "download_delay=0"];
        let exit =
            project.run(words.into_iter().chain(["--allow-address", &address, "-s", "log_level=error"]));
        assert_eq!(exit, Exit::Done, "{spider}");
        let written = fs::read_to_string(file).unwrap();
        assert_eq!(written.lines().count(), items, "{spider}: {written}");
    }
}

#[test]
fn the_fixture_of_a_new_project_is_as_it_is_stored_and_its_check_passes() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/project/fixtures");
    let project = Project::new("templates").spider("quotes", spiders::quotes::spider);
    assert_eq!(project.run(["templates", "check", "quotes", "--fixtures", folder]), Exit::Done);
    let stored = Path::new(folder).join("quotes/first.fixture.json");
    let exchange = Exchange::read(&stored).unwrap();
    let fingerprinter = Fingerprinter::from_settings(&Settings::default()).unwrap();
    assert_eq!(exchange.fingerprint, fingerprinter.of(&exchange.request), "a replay finds it");
    let again = tempfile::tempdir().unwrap();
    let written = exchange.write(again.path(), "first").unwrap();
    assert_eq!(fs::read_to_string(written).unwrap(), fs::read_to_string(stored).unwrap());
}
