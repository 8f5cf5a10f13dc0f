//! The real downloader against the hostile web: a response that is not a whole page is never returned as one.

use std::time::Duration;

use http::StatusCode;
use huntsman_crawler::{Downloader, FetchError, HttpDownloader, Request, Response, Settings};
use huntsman_testkit::{BehaviourInfo, Chaos, Family, Verdict};

const HOLD: Duration = Duration::from_secs(5);

/// Behaviours that are not handled correctly yet: interim responses are limited by the first-byte deadline and not by
/// their number (`crawl.rs` has the test that waits for a fix).
const OPEN: [&str; 2] = ["interim_flood", "continue_flood"];

fn client(chaos: &Chaos) -> HttpDownloader {
    let mut settings = Settings::default();
    settings.allow_addresses = chaos.exceptions();
    settings.first_byte_timeout = 1.0;
    settings.read_idle_timeout = 1.0;
    settings.download_timeout = 3.0;
    HttpDownloader::new(&settings).expect("valid settings")
}

async fn fetch(client: &HttpDownloader, url: &url::Url) -> Result<Response, FetchError> {
    client.fetch(&Request::get(url.clone())).await
}

/// The page's text if the response would be passed to a callback: a whole page with a status of success.
fn text_of_page(answer: &Result<Response, FetchError>) -> Option<String> {
    let response = answer.as_ref().ok()?;
    let is_page = response.status == StatusCode::OK && !response.has_flag("unread");
    let text = response.decoded.as_ref().unwrap_or(&response.body);
    is_page.then(|| String::from_utf8_lossy(text).into_owned())
}

fn complaint(listed: &BehaviourInfo, answer: &Result<Response, FetchError>) -> Option<String> {
    let text = text_of_page(answer);
    let has = |url: &Option<url::Url>| {
        url.as_ref().is_some_and(|url| text.as_ref().is_some_and(|text| text.contains(url.path())))
    };
    let outcome = match answer {
        Ok(response) => format!("{} {:?}", response.status, response.flags),
        Err(error) => format!("{:?}: {error}", error.kind()),
    };
    if has(&listed.poison) && listed.kept.is_none() {
        Some(format!("{} ({}): came back as a page: {outcome}", listed.name, listed.about))
    } else if listed.kept.is_some() && !has(&listed.kept) {
        Some(format!("{} ({}): was no page: {outcome}", listed.name, listed.about))
    } else {
        None
    }
}

/// Requests every behaviour of a family once, four at a time, and then the marked links of those that returned pages.
async fn assert_all_well(family: Family) {
    let chaos = Chaos::builder().hold(HOLD).family(family).start().await;
    let client = std::sync::Arc::new(client(&chaos));
    let mut complaints = Vec::new();
    let mut tasks = tokio::task::JoinSet::new();
    for listed in chaos.behaviours() {
        let client = std::sync::Arc::clone(&client);
        tasks.spawn(async move {
            let answer = fetch(&client, &listed.url).await;
            let complaint = complaint(&listed, &answer);
            let follows =
                |url: &url::Url| text_of_page(&answer).is_some_and(|text| text.contains(url.path()));
            for url in [&listed.kept, &listed.poison].into_iter().flatten().filter(|url| follows(url)) {
                let _ = fetch(&client, url).await;
            }
            complaint
        });
        if tasks.len() >= 4
            && let Some(complaint) = tasks.join_next().await
        {
            complaints.extend(complaint.expect("no panic"));
        }
    }
    while let Some(complaint) = tasks.join_next().await {
        complaints.extend(complaint.expect("no panic"));
    }
    let start = std::time::Instant::now();
    while chaos.record().requests.iter().any(|seen| seen.ended.is_none()) {
        assert!(start.elapsed() < 3 * HOLD, "requests still run");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let failed = chaos.verdict().into_iter().filter(|verdict: &Verdict| {
        verdict.family.is_some() && !verdict.pass && !OPEN.contains(&verdict.name)
    });
    complaints.extend(failed.map(|verdict| verdict.to_string()));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[tokio::test]
async fn bodies_that_are_not_whole_never_come_back_as_pages() {
    assert_all_well(Family::Bodies).await;
}

#[tokio::test]
async fn broken_heads_fail_and_odd_ones_do_not() {
    assert_all_well(Family::Headers).await;
}

#[tokio::test]
async fn bombs_end_at_the_limit_and_false_declarations_are_errors() {
    assert_all_well(Family::Codings).await;
}

#[tokio::test]
async fn each_deadline_ends_the_delays_that_only_it_can_end() {
    assert_all_well(Family::Time).await;
}

#[tokio::test]
async fn answers_that_break_http_fail_and_leave_nothing_behind() {
    assert_all_well(Family::Protocol).await;
}
