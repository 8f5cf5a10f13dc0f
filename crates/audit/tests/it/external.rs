//! Links to other sites: how often they are asked for, and what is told of hosts that refuse or cannot be reached.

use std::collections::BTreeMap;
use std::time::Duration;

use huntsman_audit::{Audit, Issue, LinkState, audit, links};
use huntsman_crawler::FetchErrorKind;
use huntsman_testkit::{Reply, ScriptedDownloader};
use tokio::time::Instant;

use crate::{issues_of, urls_of};

const START: &str = "https://a.example/";

/// A site whose front page links to these URLs.
fn site(urls: &[String]) -> ScriptedDownloader {
    let links: String = urls.iter().map(|url| format!("<a href=\"{url}\">{url}</a>")).collect();
    ScriptedDownloader::new().respond(START, Reply::html(links))
}

async fn run(web: &ScriptedDownloader) -> Audit {
    audit([START]).downloader(web.clone()).run().await.unwrap()
}

/// The methods by which each URL of a host was asked for, without robots.txt.
fn asked(web: &ScriptedDownloader, host: &str) -> BTreeMap<String, Vec<String>> {
    let mut asked: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for fetched in web.requests() {
        let url = &fetched.request.url;
        if url.host_str() == Some(host) && url.path() != "/robots.txt" {
            asked.entry(url.path().to_owned()).or_default().push(fetched.request.method.to_string());
        }
    }
    asked
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_overloaded_is_left_alone_and_its_links_are_not_verified() {
    for (reply, name) in [
        (Reply::status(503), "503"),
        (Reply::status(429).header("retry-after", "1"), "429"),
        (Reply::error(FetchErrorKind::FirstByteTimeout), "timeout"),
    ] {
        let urls: Vec<String> = (1..=40).map(|number| format!("https://b.example/{number}")).collect();
        let web = urls.iter().fold(site(&urls), |web, url| web.respond(url, reply.clone()));
        let began = Instant::now();
        let audit = run(&web).await;
        assert!(began.elapsed() < Duration::from_secs(60), "{name}: {:?}", began.elapsed());
        let asked = asked(&web, "b.example");
        assert!((3..=8).contains(&asked.len()), "{name}: {asked:?}");
        assert!(asked.values().all(|methods| methods == &["HEAD"]), "{name}: {asked:?}");
        let issues = issues_of(&audit, "external-unverified");
        let left = |issue: &&Issue| {
            issue.evidence.value.as_str().is_some_and(|said| said.starts_with("its host answered"))
        };
        assert_eq!(issues.iter().filter(left).count(), 40 - asked.len(), "{name}");
        let mut told = urls_of(&audit, "external-unverified");
        let mut expected = urls;
        told.sort();
        expected.sort();
        assert_eq!(told, expected, "{name}");
        assert!(issues_of(&audit, "external-broken").is_empty(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_is_found_on_a_host_that_refuses_other_urls() {
    let urls: Vec<String> =
        ["gone", "1", "2", "3", "4"].iter().map(|name| format!("https://b.example/{name}")).collect();
    let web = urls[1..].iter().fold(site(&urls), |web, url| web.respond(url, Reply::status(503)));
    let web = web.respond(&urls[0], Reply::status(404));
    let audit = run(&web).await;
    assert_eq!(urls_of(&audit, "external-broken"), ["https://b.example/gone"]);
    assert_eq!(asked(&web, "b.example")["/gone"], ["HEAD", "GET", "GET"]);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_refuses_some_urls_and_answers_others_is_asked_on() {
    let url = |number: u32| format!("https://b.example/{number:02}");
    let urls: Vec<String> = (0..12).map(url).collect();
    let web = (0..12).fold(site(&urls), |web, number| {
        let status = if number % 2 == 0 { 503 } else { 404 };
        web.respond(&url(number), Reply::status(status))
    });
    let audit = run(&web).await;
    assert_eq!(urls_of(&audit, "external-broken").len(), 6, "{:?}", issues_of(&audit, "external-unverified"));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_head_is_asked_once_more_and_one_of_get_is_not() {
    let urls: Vec<String> =
        ["head", "both", "limit"].iter().map(|name| format!("https://b.example/{name}")).collect();
    let web = site(&urls)
        .respond("https://b.example/head", Reply::status(403))
        .then(Reply::html("here"))
        .respond("https://b.example/both", Reply::status(403))
        .respond("https://b.example/limit", Reply::status(999));
    let audit = run(&web).await;
    let asked = asked(&web, "b.example");
    assert!(asked.values().all(|methods| methods == &["HEAD", "GET"]), "{asked:?}");
    assert_eq!(urls_of(&audit, "external-unverified"), ["https://b.example/both", "https://b.example/limit"]);
    assert!(issues_of(&audit, "external-broken").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_port_that_refuses_connections_is_told_though_its_host_rests_because_of_another_port() {
    for (kind, said) in [
        (FetchErrorKind::Connect, "connect"),
        (FetchErrorKind::Tls, "TLS failed: "),
        (FetchErrorKind::Dns, "the name does not resolve: "),
    ] {
        let dead = "https://b.example:8443/page".to_owned();
        let mut urls: Vec<String> = (1..=4).map(|number| format!("https://b.example/{number}")).collect();
        urls.push(dead.clone());
        let busy = Reply::status(429).header("retry-after", "100");
        let web = urls.iter().fold(site(&urls), |web, url| web.respond(url, busy.clone()));
        let web = web
            .respond(&dead, Reply::error(kind))
            .respond("https://b.example:8443/robots.txt", Reply::error(kind));
        let audit = run(&web).await;
        let code = if kind == FetchErrorKind::Dns { "dns-failure" } else { "external-broken" };
        let issues = issues_of(&audit, code);
        assert_eq!(issues.iter().map(|issue| issue.url.as_str()).collect::<Vec<_>>(), [dead.as_str()]);
        let value = issues[0].evidence.value.as_str().unwrap_or_default();
        let begins = value.starts_with(said) || said == "connect" && value.starts_with("no connection: ");
        assert!(begins, "{value}");
        assert_eq!(urls_of(&audit, "external-unverified").len(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_of_links_leaves_such_hosts_alone_too() {
    let urls: Vec<String> = (1..=40).map(|number| format!("https://b.example/{number}")).collect();
    let web = urls.iter().fold(site(&urls), |web, url| web.respond(url, Reply::status(503)));
    let began = Instant::now();
    let report = links([START]).unwrap().downloader(web.clone()).run().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert_eq!(report.of(LinkState::Unverified).count(), 40);
    assert!(asked(&web, "b.example").len() <= 8);
}

#[tokio::test(start_paused = true)]
async fn how_often_a_host_may_refuse_is_a_setting_and_the_evidence_names_it() {
    let urls: Vec<String> = (1..=20).map(|number| format!("https://b.example/{number}")).collect();
    let web = || urls.iter().fold(site(&urls), |web, url| web.respond(url, Reply::status(503)));
    for (in_a_row, in_all, asked_for, name) in [
        (1, 12, 1, Some("audit_host_refusals_in_a_row = 1")),
        (0, 2, 2, Some("audit_host_refusals = 2")),
        (0, 0, 20, None),
    ] {
        let web = web();
        let audit = audit([START]).set("audit_host_refusals_in_a_row", in_a_row);
        let audit = audit.set("audit_host_refusals", in_all).set("concurrent_requests_per_domain", 1);
        let audit = audit.downloader(web.clone()).run().await.unwrap();
        assert_eq!(asked(&web, "b.example").len(), asked_for);
        let issues = issues_of(&audit, "external-unverified");
        let left = issues.iter().filter_map(|issue| issue.evidence.value.as_str());
        let left: Vec<&str> = left.filter(|said| said.starts_with("its host answered")).collect();
        assert_eq!((issues.len(), left.len()), (20, 20 - asked_for));
        assert!(left.iter().all(|said| name.is_some_and(|name| said.contains(name))), "{left:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_redirect_of_another_site_without_a_target_is_not_verified() {
    let urls = ["head", "both"].map(|name| format!("https://b.example/{name}"));
    let web = site(&urls)
        .respond(&urls[0], Reply::status(302))
        .then(Reply::redirect(302, START))
        .respond(&urls[1], Reply::status(302));
    let audit = run(&web).await;
    assert!(asked(&web, "b.example").values().all(|methods| methods == &["HEAD", "GET"]));
    let issues = issues_of(&audit, "external-unverified");
    assert_eq!(issues.iter().map(|issue| issue.url.as_str()).collect::<Vec<_>>(), ["https://b.example/both"]);
    assert_eq!(issues[0].evidence.value, "302 without a Location");
}

#[tokio::test(start_paused = true)]
async fn why_a_robots_txt_cannot_be_had_reads_as_a_sentence() {
    let url = "https://b.example/page".to_owned();
    let web = site(std::slice::from_ref(&url))
        .respond("https://b.example/robots.txt", Reply::error(FetchErrorKind::Connect))
        .respond(&url, Reply::html("here"));
    let audit = run(&web).await;
    let issues = issues_of(&audit, "external-broken");
    let said = issues[0].evidence.value.as_str().unwrap();
    let begins = "no connection: robots.txt of https://b.example cannot be had: ";
    assert!(said.starts_with(begins) && !said.contains("downloader"), "{said}");
}
