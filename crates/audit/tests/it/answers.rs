//! What is judged only in the whole site: answers to what is not there, a robots.txt that cannot be read, texts that are nearly the same.

use std::time::Duration;

use huntsman_audit::{Audit, audit};
use huntsman_testkit::{Reply, ScriptedDownloader};
use serde_json::Value;

use crate::{issues_of, urls_of};

const START: &str = "https://a.example/";
const MISSING: &str = "https://a.example/huntsman-audit-looks-for-a-page-that-is-missing";

async fn run(web: ScriptedDownloader) -> Audit {
    audit([START]).downloader(web).run().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_site_that_answers_200_for_every_path_is_told_once() {
    let front = "<a href=/b>B</a>";
    for (reply, expected) in [
        (Reply::html("<h1>Welcome</h1>"), 1),
        (Reply::status(404), 0),
        (Reply::redirect(302, START), 0),
        (Reply::status(410), 0),
    ] {
        let web = ScriptedDownloader::new().respond(START, Reply::html(front));
        let web = web.respond("https://a.example/b", Reply::html(front)).respond(MISSING, reply);
        let found = urls_of(&run(web).await, "not-found-200");
        assert_eq!(found, vec![START; expected]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_robots_txt_that_cannot_be_read_is_told_and_one_that_is_missing_is_not() {
    for (reply, expected) in [(Reply::status(503), 1), (Reply::status(404), 0), (Reply::status(403), 0)] {
        let web = ScriptedDownloader::new()
            .respond("https://a.example/robots.txt", reply)
            .respond(START, Reply::html("<p>front"));
        assert_eq!(issues_of(&run(web).await, "robots-unreachable").len(), expected);
    }
}

/// A text of 400 words that differs from the others in some.
fn page(own: &str, changed: usize) -> Reply {
    let word = |at: usize| if at < changed { format!("{own}{at}") } else { format!("word{at}") };
    let text = (0..400).map(word).collect::<Vec<_>>().join(" ");
    Reply::html(format!(
        "<html lang=en><title>{own}</title><nav><a href=/1>1</a><a href=/2>2</a><a href=/3>3</a><a href=/4>4</a></nav><main><p>{text}</p></main>"
    ))
}

#[tokio::test(start_paused = true)]
async fn all_pages_of_a_group_of_near_duplicates_are_told() {
    let web = ScriptedDownloader::new()
        .respond(START, page("front", 200))
        .respond("https://a.example/1", page("one", 1))
        .respond("https://a.example/2", page("two", 1))
        .respond("https://a.example/3", page("three", 1))
        .respond("https://a.example/4", page("four", 300));
    let audit = run(web).await;
    let issues = issues_of(&audit, "near-duplicate");
    let told: Vec<&str> = issues.iter().map(|issue| issue.url.as_str()).collect();
    assert_eq!(told, ["https://a.example/1", "https://a.example/2", "https://a.example/3"]);
    assert!(issues.iter().all(|issue| issue.evidence.value == 3 && issue.group == issues[0].group));
}

#[tokio::test(start_paused = true)]
async fn the_line_of_a_page_names_the_page_with_the_most_similar_text() {
    let web = ScriptedDownloader::new()
        .respond(START, page("front", 200))
        .respond("https://a.example/1", page("one", 2))
        .respond("https://a.example/2", page("two", 0))
        .respond("https://a.example/3", page("three", 0))
        .respond("https://a.example/4", page("four", 300));
    let folder = tempfile::tempdir().unwrap();
    run(web).await.write(folder.path()).unwrap();
    let lines = std::fs::read_to_string(folder.path().join("pages.jsonl")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let nearest = |path: &str| {
        let line = lines.iter().find(|line| line["url"] == format!("https://a.example{path}")).unwrap();
        (line["near_duplicate"].as_str(), line["similarity"].as_f64())
    };
    // Two and three are copies, of which the first one is compared with the others.
    assert_eq!(nearest("/2"), (Some("https://a.example/3"), Some(1.0)));
    assert_eq!(nearest("/3"), (Some("https://a.example/2"), Some(1.0)));
    let (url, similarity) = nearest("/1");
    assert_eq!(url, Some("https://a.example/2"));
    assert!((0.94..1.0).contains(&similarity.unwrap()), "{similarity:?}");
    assert_eq!((nearest("/"), nearest("/4")), ((None, None), (None, None)));
}

#[tokio::test(start_paused = true)]
async fn copies_are_no_near_duplicates_of_each_other() {
    let web = ScriptedDownloader::new()
        .respond(START, page("front", 200))
        .respond("https://a.example/1", page("one", 0))
        .respond("https://a.example/2", page("two", 0));
    let audit = run(web).await;
    assert_eq!(
        (issues_of(&audit, "near-duplicate").len(), issues_of(&audit, "exact-duplicate").len()),
        (0, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn many_urls_of_one_template_are_a_trap_only_if_their_pages_repeat() {
    for (changed, expected) in [(0, 1), (300, 0)] {
        let links: String = (1..=12).map(|number| format!("<a href=/p/{number}>{number}</a>")).collect();
        let web = ScriptedDownloader::new().respond(START, Reply::html(links));
        let web = (1..=12).fold(web, |web, number| {
            let url = format!("https://a.example/p/{number}");
            web.respond(&url, page(&format!("own{}", char::from(b'a' + number)), changed))
        });
        let audit = audit([START]).set("audit_template_urls_max", 11).downloader(web).run().await.unwrap();
        let found = issues_of(&audit, "trap-suspect");
        assert_eq!(found.len(), expected);
        if let Some(issue) = found.first() {
            assert_eq!(issue.group.as_deref(), Some("https://a.example/p/{n}"));
            assert_eq!((issue.evidence.value.as_str(), issue.sources), (Some("12 URLs"), 12));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn slow_pages_are_asked_again_one_after_the_other_when_the_rest_is_done() {
    let late = |html: &str| Reply::html(html.to_owned()).after(Duration::from_secs(3));
    let links: String = (1..=6).map(|number| format!("<a href=/{number}>{number}</a>")).collect();
    let web = ScriptedDownloader::new().respond(START, late(&links));
    let web = (1..=6).fold(web, |web, number| {
        let url = format!("https://a.example/{number}");
        if number < 4 {
            web.respond(&url, late("<p>late"))
        } else {
            web.respond(&url, Reply::html("<p>at once"))
        }
    });
    let audit = run(web.clone()).await;
    let slow = urls_of(&audit, "ttfb-slow");
    assert_eq!(slow, [START, "https://a.example/1", "https://a.example/2", "https://a.example/3"]);
    let requests = web.requests();
    let again = requests.len() - slow.len();
    let (first, second) = requests.split_at(again);
    let end = first.iter().filter_map(|fetched| fetched.ended).max();
    assert!(second.iter().all(|fetched| slow.iter().any(|url| url == fetched.url())));
    assert!(second.iter().all(|fetched| Some(fetched.started) >= end), "the rest was done");
    assert!(second.windows(2).all(|pair| Some(pair[1].started) >= pair[0].ended), "one at a time");
}

#[tokio::test(start_paused = true)]
async fn a_local_host_that_the_user_names_is_a_site_like_others() {
    let web = || {
        ScriptedDownloader::new()
            .respond(
                "https://a.example/",
                Reply::html("<html lang=en><title>A</title><a href='http://127.0.0.9:81/gone'>B</a><a href='http://127.0.0.8/page'>C</a>"),
            )
            .respond("http://127.0.0.9:81/gone", Reply::status(404))
            .respond("http://127.0.0.8/page", Reply::html("<title>C</title>"))
    };
    let starts = ["https://a.example/", "http://127.0.0.8/page"];
    let audit =
        audit(starts).downloader(web()).set("allow_addresses", vec!["127.0.0.9:81"]).run().await.unwrap();
    assert_eq!(urls_of(&audit, "external-broken"), ["http://127.0.0.9:81/gone"]);
    assert!(urls_of(&audit, "localhost-link").is_empty(), "{:?}", issues_of(&audit, "localhost-link"));

    let other = huntsman_audit::audit(["https://a.example/"]).downloader(web()).run().await.unwrap();
    assert!(urls_of(&other, "external-broken").is_empty(), "it is not asked");
    assert_eq!(issues_of(&other, "localhost-link").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_robots_txt_that_redirects_to_itself_is_told() {
    let robots = "https://a.example/robots.txt";
    let web = ScriptedDownloader::new()
        .respond(robots, Reply::redirect(302, robots))
        .respond(START, Reply::html("<p>front"));
    assert_eq!(urls_of(&run(web).await, "robots-unreachable"), [robots]);
}

#[tokio::test(start_paused = true)]
async fn a_redirect_without_a_target_is_told_with_why_it_leads_nowhere() {
    let paths = ["none", "empty", "no-url", "script", "raw", "mail"];
    let links: String = paths.iter().map(|path| format!("<a href=/{path}>{path}</a>")).collect();
    let at = |path: &str| format!("https://a.example/{path}");
    let raw = Reply::status(301).header("location", "/caf\u{e9}");
    let web = ScriptedDownloader::new()
        .respond(START, Reply::html(links))
        .respond(&at("none"), Reply::status(307))
        .respond(&at("empty"), Reply::redirect(302, " "))
        .respond(&at("no-url"), Reply::redirect(301, "https://[/"))
        .respond(&at("script"), Reply::redirect(303, "javascript:void(0)"))
        .respond(&at("raw"), raw)
        .respond(&at("caf%C3%A9"), Reply::html("here"))
        .respond(&at("mail"), Reply::redirect(302, "mailto:a@a.example"));
    let audit = run(web).await;
    let told = issues_of(&audit, "redirect-to-error");
    let told: Vec<(&str, &str)> = told
        .iter()
        .map(|issue| (issue.url.as_str(), issue.evidence.value.as_str().unwrap_or_default()))
        .collect();
    let expected = [
        (at("empty"), "302: the Location is empty"),
        (at("no-url"), "301: Location \"https://[/\": invalid IPv6 address"),
        (at("none"), "307 without a Location"),
        (at("script"), "303: the Location is a javascript: URL, which browsers do not follow"),
    ];
    let expected: Vec<(&str, &str)> = expected.iter().map(|(url, why)| (url.as_str(), *why)).collect();
    assert_eq!(told, expected);
    assert_eq!(urls_of(&audit, "link-to-redirect"), [at("raw")], "letters as they are lead somewhere");
}
