//! Checks of links: of files, folders and pages.

use std::fs;

use huntsman_audit::{CheckedLink, LinkFormat, LinkReport, LinkState, links};
use huntsman_crawler::FetchErrorKind;
use huntsman_output::render::Style;
use huntsman_testkit::{Reply, ScriptedDownloader};
use serde_json::Value;
use tempfile::TempDir;

/// A folder with files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// State and reason of each link, in the order of the report.
fn rows(report: &LinkReport) -> Vec<(&str, LinkState, &str)> {
    let rows = report.links.iter().map(|CheckedLink { reference, outcome, .. }| {
        (reference.href.as_str(), outcome.state, outcome.reason.as_deref().unwrap_or_default())
    });
    rows.collect()
}

fn name(folder: &TempDir, file: &str) -> String {
    folder.path().join(file).to_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn links_between_files_lead_to_files_and_headings() {
    use LinkState::{Broken, Good, Skipped};
    let folder = folder(&[
        (
            "a.md",
            "# Top\n[1](b.md) [2](b.md#second-part) [3](b.md#third) [4](gone.md) [5](#top) [6](sub/) [7](c.pdf#page=2)\n[8](mailto:ann@x) <tel:+49> [9](/x)",
        ),
        ("b.md", "## Second part\n"),
        ("c.pdf", "%PDF"),
        ("sub/index.html", "<p id=x>"),
        (".hidden/z.md", "[z](gone)"),
        ("picture.png", "[z](gone)"),
    ]);
    let report = links([folder.path().to_str().unwrap()])
        .unwrap()
        .downloader(ScriptedDownloader::new())
        .run()
        .await
        .unwrap();
    assert_eq!(
        rows(&report),
        [
            ("b.md", Good, ""),
            ("b.md#second-part", Good, ""),
            ("b.md#third", Broken, "the file has nothing named #third"),
            ("gone.md", Broken, "there is no such file"),
            ("#top", Good, ""),
            ("sub/", Good, ""),
            ("c.pdf#page=2", Good, ""),
            ("mailto:ann@x", Broken, "\"ann@x\" is no e-mail address"),
            ("tel:+49", Skipped, ""),
            (
                "/x",
                Broken,
                "an address from the root of a site; name the folder of the site by --root-dir, or its address by --base"
            ),
        ]
    );
    assert!(!report.is_good());
}

#[tokio::test(start_paused = true)]
async fn a_url_is_asked_for_once_by_head_then_by_get_and_five_seconds_later_once_more() {
    let web = ScriptedDownloader::new()
        .respond("https://a.example/good", Reply::status(200))
        .respond("https://a.example/gone", Reply::status(404))
        .respond("https://a.example/refused", Reply::status(403))
        .respond("https://a.example/moved", Reply::status(301).header("location", "/good"))
        .respond("https://a.example/for-now", Reply::status(302).header("location", "/good"));
    let folder = folder(&[
        (
            "a.md",
            "[1](https://a.example/good) [2](https://a.example/good) [3](https://a.example/gone) [4](https://a.example/refused)",
        ),
        ("b.txt", "https://a.example/moved https://a.example/for-now https://a.example/good"),
    ]);
    let log = web.clone();
    let report =
        links([name(&folder, "a.md"), name(&folder, "b.txt")]).unwrap().downloader(web).run().await.unwrap();
    let states: Vec<_> = report
        .links
        .iter()
        .map(|link| {
            (link.reference.href.rsplit('/').next().unwrap(), link.outcome.state, link.outcome.status)
        })
        .collect();
    use LinkState::{Broken, Good, Redirected, Unverified};
    assert_eq!(
        states,
        [
            ("good", Good, Some(200)),
            ("good", Good, Some(200)),
            ("gone", Broken, Some(404)),
            ("refused", Unverified, Some(403)),
            ("moved", Redirected, Some(200)),
            ("for-now", Good, Some(200)),
            ("good", Good, Some(200)),
        ]
    );
    assert_eq!(report.links[4].outcome.to.as_deref(), Some("https://a.example/good"));
    let asked = |path: &str| -> Vec<String> {
        let fetched = log.requests();
        let of_path = fetched.iter().filter(|fetched| fetched.request.url.path() == path);
        of_path.map(|fetched| fetched.request.method.to_string()).collect()
    };
    assert_eq!(asked("/gone"), ["HEAD", "GET", "GET"]);
    assert_eq!((asked("/good"), asked("/moved")), (vec!["HEAD".to_owned()], vec!["HEAD".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn fragments_lead_to_names_of_the_page_unless_scripts_make_it() {
    let words = "word ".repeat(30);
    let web = ScriptedDownloader::new()
        .respond(
            "https://a.example/page",
            Reply::html(format!("<h2 id=there>{words}</h2><a name='user-content-readme'></a>")),
        )
        .respond(
            "https://a.example/app",
            Reply::html("<div id=root></div><script src=app.js></script>".to_owned()),
        );
    let text = "https://a.example/page#there https://a.example/page#gone https://a.example/page#readme https://a.example/page#:~:text=word \
        https://a.example/app#/route https://a.example/app#made";
    let folder = folder(&[("a.txt", text)]);
    let source = [name(&folder, "a.txt")];
    let report = links(&source).unwrap().downloader(web.clone()).run().await.unwrap();
    let broken: Vec<_> = report.of(LinkState::Broken).map(|link| link.reference.href.as_str()).collect();
    assert_eq!(broken, ["https://a.example/page#gone"]);
    let report = links(&source).unwrap().set("links_fragments", false).downloader(web).run().await.unwrap();
    assert!(report.is_good());
}

#[tokio::test(start_paused = true)]
async fn the_links_of_a_page_are_checked_and_not_followed() {
    let web = ScriptedDownloader::pages([
        (
            "https://a.example/",
            "<base href=/sub/><a href=one>One</a><img src=gone.png><a href=https://b.example/>B</a>",
        ),
        ("https://a.example/sub/one", "<a href=/never>Never</a>"),
        ("https://b.example/", "<a href=/never>Never</a>"),
    ]);
    let report = links(["https://a.example/"]).unwrap().downloader(web).run().await.unwrap();
    use LinkState::{Broken, Good};
    assert_eq!(
        rows(&report),
        [("one", Good, ""), ("gone.png", Broken, "the server answers 404"), ("https://b.example/", Good, "")]
    );
    let report = links(["https://a.example/missing"])
        .unwrap()
        .downloader(ScriptedDownloader::pages([("https://a.example/", "")]))
        .run()
        .await
        .unwrap();
    let unread = &report.unread[0];
    assert_eq!(
        (unread.source.as_str(), unread.reason.as_str()),
        ("https://a.example/missing", "the server answers 404")
    );
    assert!(!report.is_good());
}

#[tokio::test(start_paused = true)]
async fn settings_accept_exclude_and_make_rules_for_some_urls() {
    let web = ScriptedDownloader::new()
        .respond("https://a.example/teapot", Reply::status(418))
        .respond("https://b.example/teapot", Reply::status(418));
    let folder = folder(&[(
        "a.txt",
        "https://a.example/teapot https://b.example/teapot https://c.example/ https://d.example/login?x=1",
    )]);
    let report = links([name(&folder, "a.txt")])
        .unwrap()
        .set("links_exclude", serde_json::json!(["https://d.example/login*"]))
        .set("links_rules", serde_json::json!([{"url": "https://a.example/*", "accept": ["418"]}, {"url": "https://c.example/*", "skip": true}]))
        .downloader(web)
        .run()
        .await
        .unwrap();
    use LinkState::{Broken, Good, Skipped};
    let states: Vec<_> = report.links.iter().map(|link| link.outcome.state).collect();
    assert_eq!(states, [Good, Broken, Skipped, Skipped]);
    let wrong = links(["-"])
        .unwrap()
        .set("links_accept", serde_json::json!(["2x"]))
        .downloader(ScriptedDownloader::new())
        .run()
        .await;
    assert!(wrong.unwrap_err().to_string().contains("links_accept"));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_cannot_be_reached_is_the_fault_of_its_links_and_robots_txt_is_obeyed() {
    let web = ScriptedDownloader::new()
        .respond("https://closed.example/robots.txt", Reply::text("User-agent: *\nDisallow: /"))
        .respond("https://closed.example/x", Reply::status(200))
        .respond("https://late.example/robots.txt", Reply::status(404))
        .respond("https://late.example/x", Reply::error(FetchErrorKind::FirstByteTimeout))
        .respond("https://gone.example/robots.txt", Reply::error(FetchErrorKind::Dns))
        .respond("https://gone.example/x", Reply::error(FetchErrorKind::Dns));
    let folder =
        folder(&[("a.txt", "https://closed.example/x https://gone.example/x https://late.example/x")]);
    let report = links([name(&folder, "a.txt")]).unwrap().downloader(web).run().await.unwrap();
    use LinkState::{Broken, Unverified};
    let states: Vec<_> = report.links.iter().map(|link| link.outcome.state).collect();
    assert_eq!(states, [Unverified, Broken, Unverified], "{:?}", rows(&report));
    assert!(rows(&report)[0].2.contains("Disallow"), "{:?}", rows(&report));
}

#[tokio::test(start_paused = true)]
async fn good_answers_are_remembered_until_they_are_too_old_and_broken_ones_are_not() {
    let folder = folder(&[("a.txt", "https://a.example/good https://a.example/gone")]);
    let cache = folder.path().join("links.jsonl");
    let source = [name(&folder, "a.txt")];
    let check = async |max_age: f64| {
        let web = ScriptedDownloader::new().respond("https://a.example/good", Reply::status(200));
        let log = web.clone();
        let file = cache.clone();
        let check = links(&source)
            .unwrap()
            .set("links_max_age", max_age)
            .downloader(web)
            .options(|options| options.cache(Some(file)));
        let report = check.run().await.unwrap();
        assert_eq!(report.totals(), "2 links: 1 broken, 1 good");
        log.count("https://a.example/good") > 0
    };
    assert!(check(86_400.0).await, "nothing is known yet");
    assert!(!check(86_400.0).await, "the answer is known");
    assert!(check(0.0).await, "the answer is too old");
    fs::write(&cache, "{\"url\"\n").unwrap();
    let file = cache.clone();
    let failed = links(&source)
        .unwrap()
        .downloader(ScriptedDownloader::new())
        .options(|options| options.cache(Some(file)))
        .run()
        .await;
    let message = failed.unwrap_err().to_string();
    assert!(message.contains("line 1") && message.contains("delete it"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_report_has_five_forms() {
    let folder = folder(&[("a.md", "# A\n[x<&\"](gone.md) [y](https://a.example/gone|1) [z](a.md)\n")]);
    let source = name(&folder, "a.md");
    let report = links([&source]).unwrap().downloader(ScriptedDownloader::new()).run().await.unwrap();
    let form = |format| report.render(format, Style::none(), true);
    let compact = form(LinkFormat::Compact);
    assert!(
        compact.starts_with(&format!("{source}:2:1: broken gone.md  there is no such file\n")),
        "{compact}"
    );
    assert!(compact.contains("perhaps https://web.archive.org/web/https://a.example/gone|1"), "{compact}");
    assert!(compact.ends_with("3 links: 2 broken, 1 good\n"), "{compact}");
    assert!(form(LinkFormat::Detailed).contains("  good a.md\n"), "{}", form(LinkFormat::Detailed));
    let json: Value = serde_json::from_str(&form(LinkFormat::Json)).unwrap();
    assert_eq!(
        (&json["totals"]["broken"], &json["links"][0]["state"], &json["links"][0]["text"]),
        (&2.into(), &"broken".into(), &"x<&\"".into())
    );
    let junit = form(LinkFormat::Junit);
    assert!(
        junit.contains("tests=\"3\" failures=\"2\"")
            && junit.contains("<failure message=\"there is no such file\">"),
        "{junit}"
    );
    let markdown = form(LinkFormat::Markdown);
    assert!(markdown.contains("### Broken") && markdown.contains("https://a.example/gone\\|1"), "{markdown}");
}
