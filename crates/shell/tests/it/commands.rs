//! The commands, on a site in memory.

use std::path::Path;

use huntsman_crawler::{CrawlClient, CrawlerBuilder, OnDemand};
use huntsman_middleware::{Defaults, Expectation, Fixture};
use huntsman_shell::{Complaint, Reply, Shell, Surroundings};
use huntsman_testkit::{Reply as Answer, ScriptedDownloader};
use serde_json::json;

const BOOK: &str = "<title>A Light</title><h1>A <b>Light</b></h1><p class=price>£51.77</p><p class=price>£7.00</p>\
    <a href=/>home</a> <a href=/next>next page</a><a href=mailto:x@y>mail</a>\
    <form id=f action=/find><input name=q value=old><input type=hidden name=t value=1></form>";

fn surroundings() -> Surroundings {
    let web = ScriptedDownloader::pages([
        ("http://h/", "<title>Home</title><p>home</p>"),
        ("http://h/book", BOOK),
        ("http://h/next", "<h1>Next</h1>"),
        ("http://h/bad", "<title>a\u{1b}[31m\u{9b}2Jb</title><h1>x\u{1b}]0;t\u{7}\ny</h1>"),
    ])
    .respond("http://h/robots.txt", Answer::text("User-agent: *\nDisallow: /closed"))
    .respond("http://h/gone", Answer::status(404).header("content-type", "text/html").body("<h1>Gone</h1>"))
    .respond(
        "http://h/api",
        Answer::status(200)
            .header("content-type", "application/json")
            .header("set-cookie", "sid=hunter2")
            .body(r#"{"items": [{"id": 1}, {"id": 2}]}"#),
    );
    let crawl = CrawlerBuilder::new(OnDemand::new()).plugin(Defaults).downloader(web);
    let crawl = crawl.set("httperror_allow_all", true).set("download_binary", true);
    Surroundings::new(CrawlClient::start(crawl).unwrap())
}

async fn shell_at(url: &str) -> Shell {
    let mut shell = Shell::new(surroundings());
    shell.run(&format!("fetch {url}")).await.unwrap();
    shell
}

async fn text(shell: &mut Shell, line: &str) -> String {
    match shell.run(line).await {
        Ok(reply) => reply.lines(shell.limit()),
        Err(complaint) => panic!("{line}: {complaint}"),
    }
}

async fn complaint(shell: &mut Shell, line: &str) -> Complaint {
    shell.run(line).await.expect_err(line)
}

fn values(values: &[&str]) -> Result<Reply, Complaint> {
    Ok(Reply::Values(values.iter().map(|value| (*value).to_owned()).collect()))
}

#[tokio::test(start_paused = true)]
async fn selectors_give_values_and_errors_point_at_their_place() {
    let mut shell = shell_at("http://h/book").await;
    assert_eq!(shell.run("css p.price::text").await, values(&["£51.77", "£7.00"]));
    assert_eq!(shell.run(r"re £([\d.]+)").await, values(&["51.77", "7.00"]));
    assert_eq!(shell.run(r"re \d\d").await, values(&["51", "77", "00"]), "of the values, not of the result");
    assert_eq!(shell.run("xpath //a/@href").await, values(&["/", "/next", "mailto:x@y"]));
    assert_eq!(text(&mut shell, "css p.price::text").await, "   0  £51.77\n   1  £7.00");
    assert!(complaint(&mut shell, "css p::txt").await.message.starts_with("  p::txt\n   ^ "));
    assert!(complaint(&mut shell, "re (").await.is_usage);
    let nothing = complaint(&mut shell, "css h7").await;
    assert!(!nothing.is_usage && nothing.message.contains("nothing on the page matches h7"), "{nothing}");

    shell.run("fetch http://h/api").await.unwrap();
    assert_eq!(shell.run("json $.items[*].id").await, values(&["1", "2"]));
    assert!(text(&mut shell, "json").await.contains("\"items\": ["));
    assert!(!complaint(&mut shell, "re items").await.is_usage, "it reads the last values, not the body");
}

#[tokio::test(start_paused = true)]
async fn links_are_numbered_and_followed() {
    let mut shell = shell_at("http://h/book").await;
    assert_eq!(text(&mut shell, "links").await, "   0  http://h/  home\n   1  http://h/next  next page");
    assert_eq!(text(&mut shell, "links next").await, "   1  http://h/next  next page");
    assert!(complaint(&mut shell, "follow 2").await.message.contains("the page has 2 links"));
    assert!(text(&mut shell, "follow 1").await.starts_with("http://h/next\n  200 OK, text/html"));
    assert_eq!(shell.run("css h1::text").await, values(&["Next"]));
    assert!(complaint(&mut shell, "links").await.message.contains("no such link"));
}

#[tokio::test(start_paused = true)]
async fn forms_headers_text_and_robots_are_shown() {
    let mut shell = shell_at("http://h/book").await;
    assert_eq!(text(&mut shell, "form #f").await, "GET http://h/find?q=old&t=1\n  q = old\n  t = 1");
    assert!(!complaint(&mut shell, "form #g").await.is_usage);
    assert!(text(&mut shell, "headers").await.starts_with("HTTP/1.1 200 OK\n"));
    assert!(text(&mut shell, "text").await.starts_with("A Light\n£51.77"));
    assert!(text(&mut shell, "page").await.contains("A Light"));
    assert_eq!(
        text(&mut shell, "robots /closed/x").await,
        "forbidden for huntsman: /closed/x (line 2: Disallow: /closed)"
    );
    assert!(text(&mut shell, "robots").await.starts_with("allowed for huntsman: http://h/book"));
    assert!(text(&mut shell, "help").await.contains("save fixture NAME"));
    assert_eq!(shell.run("quit").await, Ok(Reply::End));
    assert_eq!(shell.run("# a comment").await, Ok(Reply::Text(String::new())));
}

#[tokio::test(start_paused = true)]
async fn every_status_is_a_page_and_what_cannot_be_fetched_is_told() {
    let mut shell = Shell::new(surroundings());
    assert!(complaint(&mut shell, "css h1").await.message.contains("fetch URL|FILE"));
    assert!(complaint(&mut shell, "fetch nowhere").await.message.contains("neither a file nor a URL"));
    assert!(text(&mut shell, "fetch http://h/gone").await.contains("404 Not Found"));
    assert_eq!(shell.run("css h1::text").await, values(&["Gone"]));
    let refused = complaint(&mut shell, "fetch http://h/closed").await;
    assert!(!refused.is_usage && refused.message.contains("Disallow: /closed"), "{refused}");
    assert_eq!(shell.run("css h1::text").await, values(&["Gone"]), "the page stays");
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_page_steers_a_terminal() {
    let mut shell = Shell::new(surroundings());
    let mut said = text(&mut shell, "fetch http://h/bad").await;
    for line in ["css h1", "css title::text", "xpath //h1/text()", "text", "page", "derive"] {
        said += &text(&mut shell, line).await;
    }
    assert!(said.contains("\\u{1b}]0;t") && said.chars().all(|c| c == '\n' || !c.is_control()), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn many_values_are_cut_and_the_cut_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.html");
    let many: String =
        (0..60).map(|n| format!("<p>{n}</p>")).chain(["<h1>".to_owned() + &"x".repeat(900)]).collect();
    std::fs::write(&path, many).unwrap();
    let mut shell = Shell::new(surroundings());
    shell.run(&format!("fetch {}", path.display())).await.unwrap();
    assert!(
        text(&mut shell, "css p::text").await.ends_with("  49  49\n      10 more; `limit 60` shows them")
    );
    assert!(text(&mut shell, "css h1::text").await.ends_with("x… (900 characters)"));
    shell.run("limit 60").await.unwrap();
    assert!(text(&mut shell, "css p::text").await.ends_with("  59  59"));
    assert!(complaint(&mut shell, "limit none").await.is_usage);
}

#[tokio::test(start_paused = true)]
async fn an_item_is_derived_from_what_was_tried() {
    let mut shell = shell_at("http://h/book").await;
    assert!(complaint(&mut shell, "derive").await.message.contains("nothing was tried"));
    for line in
        ["css h1 as title", "css p.price::text as prices", r"re £([\d.]+)", "xpath //a[1]/@href", "css em"]
    {
        let _ = shell.run(line).await;
    }
    shell.run("forget em").await.unwrap();
    let expected = "#[derive(Debug, Item, Serialize)]
struct Book {
    // \"<h1>A <b>Light</b></h1>\"
    #[item(css = \"h1\")]
    title: String,
    // 2 values, the first \"51.77\"
    #[item(css = \"p.price::text\", re = r\"£([\\d.]+)\")]
    prices: Vec<f64>,
    // \"/\"
    #[item(xpath = \"//a[1]/@href\")]
    href: Url,
}";
    assert_eq!(text(&mut shell, "derive Book").await, expected);
    assert!(complaint(&mut shell, "derive book").await.is_usage);
    assert!(complaint(&mut shell, "forget book").await.is_usage);
}

#[tokio::test(start_paused = true)]
async fn a_page_is_saved_as_a_fixture_with_what_its_spider_gives() {
    let folder = tempfile::tempdir().unwrap();
    let fixtures = folder.path().join("fixtures/books");
    let names = vec!["depth_limit".to_owned()];
    let tell = |name: Option<&str>| Ok(format!("{} = 3", name.unwrap_or("all")));
    let with_spider = surroundings().fixtures(&fixtures).settings(names, tell).spider(|page| {
        let items = match page.callback() {
            "parse" => vec![json!(page.title())],
            label => vec![json!(label), json!(1)],
        };
        Ok(Expectation { items, ..Expectation::default() })
    });
    let mut shell = Shell::new(with_spider);
    shell.run("fetch http://h/api").await.unwrap();
    let told = text(&mut shell, "save fixture api").await;
    assert!(told.contains("1 items and 0 requests are expected"), "{told}");
    assert!(told.contains("left out: the response header set-cookie"), "{told}");
    let path = fixtures.join("api.fixture.json");
    assert_eq!(Fixture::file(&path).unwrap().page().json_path("$.items").unwrap().nodes().len(), 1);
    assert!(Expectation::read(&Expectation::path_of(&path)).unwrap().is_some());
    assert_eq!(text(&mut shell, "parse").await, "1 items\n  null\n0 requests");
    assert_eq!(text(&mut shell, "parse book").await, "2 items\n  \"book\"\n  1\n0 requests");
    let told = text(&mut shell, "save fixture book book").await;
    assert!(told.contains("2 items and 0 requests are expected"), "{told}");
    let saved = Fixture::file(fixtures.join("book.fixture.json")).unwrap();
    assert_eq!(saved.page().callback(), "book", "checks call the same callback");
    assert_eq!(text(&mut shell, "settings depth_limit").await, "depth_limit = 3");
    assert_eq!(shell.completions("settings d").1, ["depth_limit"]);

    // The fixture is a page without a network.
    shell.run(&format!("fetch {}", path.display())).await.unwrap();
    assert_eq!(shell.run("json $.items[0].id").await, values(&["1"]));
    for wrong in ["../a", "a/b", ".hidden"] {
        assert!(complaint(&mut shell, &format!("save fixture {wrong}")).await.is_usage);
    }
    assert!(!Path::new("fixtures").exists(), "nothing is written elsewhere");
}
