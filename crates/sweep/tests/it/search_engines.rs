//! Search engines as sources of candidates, with servers that respond as documented, and otherwise.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use huntsman_crawler::{FetchErrorKind, Settings};
use huntsman_detect::copyvio::Text;
use huntsman_sweep::{Candidate, CandidateError, CandidateSource, Engine, SearchEngine, Subject};
use huntsman_testkit::{Answer, Reply, RunningSite, ScriptedDownloader, Site, SiteRequest};
use serde_json::{Value, json};

const KEY: &str = "the-key-that-nobody-may-see";

fn json_answer(value: &Value) -> Answer {
    Answer::status(200).header("content-type", "application/json").body(value.to_string())
}

fn results(urls: &[&str]) -> Value {
    let result = |url: &&str| json!({"url": url, "title": "A title", "content": "Some words", "engine": "x", "score": 1.0});
    json!({"query": "q", "number_of_results": 0, "results": urls.iter().map(result).collect::<Vec<_>>(), "answers": [],
           "corrections": [], "infoboxes": [], "suggestions": [], "unresponsive_engines": []})
}

fn brave(urls: &[&str]) -> Value {
    let result = |url: &&str| json!({"type": "search_result", "title": "A title", "url": url, "description": "Some words"});
    json!({"type": "search", "query": {"original": "q"}, "mixed": {"type": "mixed"},
           "web": {"type": "search", "results": urls.iter().map(result).collect::<Vec<_>>(), "family_friendly": true}})
}

fn google(urls: &[&str]) -> Value {
    let result = |url: &&str| json!({"kind": "customsearch#result", "title": "A title", "link": url, "snippet": "Some words"});
    json!({"kind": "customsearch#search", "url": {"type": "application/json"}, "searchInformation": {"totalResults": "1"},
           "items": urls.iter().map(result).collect::<Vec<_>>()})
}

fn urls(candidates: &[Candidate]) -> Vec<&str> {
    candidates.iter().map(|candidate| candidate.url.as_str()).collect()
}

/// A site with one search page, and the requests that it received.
async fn served(path: &str, answer: impl Fn(&SiteRequest) -> Answer + Send + Sync + 'static) -> RunningSite {
    Site::builder().route(path, answer).start().await
}

/// All three engines at an address.
fn engines(address: &str) -> Vec<Engine> {
    vec![
        Engine::searxng(address).unwrap(),
        Engine::brave(KEY).at(address).unwrap(),
        Engine::google(KEY, "engine-1").at(address).unwrap(),
    ]
}

fn over_http(engine: Engine) -> SearchEngine {
    SearchEngine::new(engine, &Settings::default()).unwrap().pace(Duration::from_millis(1))
}

async fn ask(engine: &SearchEngine, phrase: &str) -> Result<Vec<Candidate>, CandidateError> {
    engine.find(&Subject::default(), phrase).await
}

#[tokio::test]
async fn searxng_is_asked_as_documented_also_below_a_path_and_with_a_password() {
    let site = served("/sub/search", |_| {
        json_answer(&results(&["https://a.example/1", "http://b.example/2", "https://a.example/1"]))
    })
    .await;
    let port = site.port();
    for address in ["sub", "sub/", "sub/search"] {
        let engine = over_http(Engine::searxng(&format!("http://127.0.0.1:{port}/{address}")).unwrap());
        let found = ask(&engine, "the old mill & the \u{fc}").await.unwrap();
        assert_eq!(urls(&found), ["https://a.example/1", "http://b.example/2"]);
        assert!(found.iter().all(|candidate| candidate.text.is_none()));
    }
    let engine = over_http(Engine::searxng(&format!("http://me:pass%20w+rd@127.0.0.1:{port}/sub")).unwrap());
    ask(&engine, "x").await.unwrap();
    let seen = site.requests();
    let asked = &seen[0].request;
    assert_eq!(asked.param("q").as_deref(), Some("\"the old mill & the \u{fc}\""));
    assert_eq!(asked.param("format").as_deref(), Some("json"));
    assert_eq!(asked.header("accept"), Some("application/json"));
    assert!(asked.header("user-agent").unwrap().starts_with("huntsman/"));
    assert_eq!(asked.header("authorization"), None);
    // me:pass w+rd
    assert_eq!(seen[3].request.header("authorization"), Some("Basic bWU6cGFzcyB3K3Jk"));
}

#[tokio::test]
async fn brave_is_asked_with_its_key_in_a_header() {
    let site = served("/web", |_| json_answer(&brave(&["https://a.example/1"]))).await;
    let engine = over_http(Engine::brave(KEY).at(site.url("/web").as_str()).unwrap());
    assert_eq!(urls(&ask(&engine, "old mill").await.unwrap()), ["https://a.example/1"]);
    let asked = site.requests()[0].request.clone();
    assert_eq!(asked.header("x-subscription-token"), Some(KEY));
    assert_eq!(
        (asked.param("q"), asked.param("count")),
        (Some("\"old mill\"".to_owned()), Some("5".to_owned()))
    );
    assert!(!asked.target.contains(KEY));
}

#[tokio::test]
async fn google_is_asked_with_key_and_engine() {
    let site = served("/v1", |_| json_answer(&google(&["https://a.example/1"]))).await;
    let engine = over_http(Engine::google(KEY, "engine-1").at(site.url("/v1").as_str()).unwrap()).results(3);
    assert_eq!(urls(&ask(&engine, "old mill").await.unwrap()), ["https://a.example/1"]);
    let asked = site.requests()[0].request.clone();
    for (name, value) in [("key", KEY), ("cx", "engine-1"), ("q", "\"old mill\""), ("num", "3")] {
        assert_eq!(asked.param(name).as_deref(), Some(value), "{name}");
    }
}

#[tokio::test]
async fn nothing_found_is_no_error() {
    let answers =
        [results(&[]), json!({"type": "search", "query": {}}), json!({"kind": "customsearch#search"})];
    let site = Site::builder();
    let site = answers.iter().enumerate().fold(site, |site, (at, answer)| {
        let answer = answer.clone();
        site.route(&format!("/{at}"), move |_| json_answer(&answer)).route(&format!("/{at}/search"), {
            let answer = answers[at].clone();
            move |_| json_answer(&answer)
        })
    });
    let site = site.start().await;
    for at in 0..3 {
        let engine = engines(site.url(&format!("/{at}")).as_str()).remove(at);
        assert_eq!(ask(&over_http(engine), "x").await.unwrap(), []);
    }
}

/// The error of each engine for a response.
async fn refusals(answer: impl Fn(&SiteRequest) -> Answer + Send + Sync + 'static) -> Vec<CandidateError> {
    let answer = Arc::new(answer);
    let same = Arc::clone(&answer);
    let site =
        Site::builder().route("/x", move |asked| answer(asked)).route("/x/search", move |asked| same(asked));
    let site = site.start().await;
    let mut errors = Vec::new();
    for engine in engines(site.url("/x").as_str()) {
        let engine = over_http(engine);
        let error = ask(&engine, "x").await.expect_err("an error");
        for text in [error.to_string(), format!("{error:?}"), format!("{engine:?}")] {
            assert!(!text.contains(KEY), "{text}");
        }
        errors.push(error);
    }
    errors
}

fn all_failed(errors: &[CandidateError], words: [&str; 3]) {
    for (error, word) in errors.iter().zip(words) {
        assert!(
            matches!(error, CandidateError::Failed(why) if why.contains(word)),
            "{error:?} has no {word}"
        );
    }
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let forbidden = refusals(|_| Answer::status(403).body("<!doctype html><h1>Forbidden</h1>")).await;
    all_failed(&forbidden, ["search.formats", "BRAVE_API_KEY", "GOOGLE_API_KEY"]);
    let html = refusals(|_| Answer::html("<!doctype html><p>A page of results")).await;
    all_failed(&html, ["search.formats", "as documented", "as documented"]);
    let moved = refusals(|_| Answer::redirect(302, "https://elsewhere.example/")).await;
    all_failed(&moved, ["redirect", "redirect", "redirect"]);
    let broken = refusals(|_| Answer::status(502)).await;
    all_failed(&broken, ["502", "502", "502"]);
    let invalid = json!({"error": {"code": 400, "message": format!("API key {KEY} not valid"), "errors": [
        {"reason": "badRequest", "message": KEY}], "status": "INVALID_ARGUMENT"}});
    let invalid = refusals(move |_| Answer::status(400).body(invalid.to_string())).await;
    all_failed(&invalid, ["400", "400", "GOOGLE_API_KEY"]);
}

#[tokio::test]
async fn a_metasearch_without_engines_that_answer_is_an_error_and_not_an_empty_answer() {
    let mut none = results(&[]);
    none["unresponsive_engines"] =
        json!([["google", "Suspended: access denied"], ["bing\u{1b}[2J", "timeout"], 7]);
    let site = served("/search", move |_| json_answer(&none)).await;
    let engine = over_http(Engine::searxng(site.url("/").as_str()).unwrap());
    let error = ask(&engine, "x").await.unwrap_err().to_string();
    assert!(error.contains("google, bing2J") && !error.contains('\u{1b}'), "{error}");
}

#[tokio::test]
async fn quotas_are_distinguished_from_errors() {
    let too_many = refusals(|_| Answer::status(429).header("retry-after", "17")).await;
    for error in &too_many {
        assert!(matches!(error, CandidateError::Quota(why) if why.contains("17 seconds")), "{error:?}");
    }
    // The windows of a plan: the first one resets soon, the second one much later.
    let windows = refusals(|_| {
        let answer = Answer::status(429)
            .header("x-ratelimit-remaining", "0, 12")
            .header("x-ratelimit-reset", "1, 1419704");
        answer.body(r#"{"type":"ErrorResponse","error":{"status":429,"code":"RATE_LIMITED"}}"#)
    })
    .await;
    assert!(matches!(&windows[1], CandidateError::Quota(why) if why.contains("1 seconds")), "{windows:?}");
    for reason in ["dailyLimitExceeded", "rateLimitExceeded"] {
        let body = json!({"error": {"code": 403, "errors": [{"domain": "usageLimits", "reason": reason}]}})
            .to_string();
        let error = refusals(move |_| Answer::status(403).body(body.clone())).await.remove(2);
        assert!(matches!(&error, CandidateError::Quota(_)), "{error:?}");
    }
}

#[tokio::test]
async fn hostile_answers_cost_an_error() {
    let huge = refusals(|_| Answer::status(200).body(vec![b'['; 3 << 20]).chunked(1 << 16)).await;
    all_failed(&huge, ["2097152", "2097152", "2097152"]);
    let deep = refusals(|_| Answer::status(200).body(vec![b'['; 1 << 20])).await;
    assert!(deep.iter().all(|error| matches!(error, CandidateError::Failed(_))));
    for wrong in [
        json!([]),
        json!(null),
        json!("x"),
        json!({"results": 7, "web": 7, "items": 7}),
        json!({"results": {"url": "http://a/"}, "web": {"results": "x"}, "items": {"link": "http://a/"}}),
    ] {
        let errors = refusals(move |_| json_answer(&wrong)).await;
        assert!(errors.iter().all(|error| matches!(error, CandidateError::Failed(_))), "{errors:?}");
    }
    let closed = refusals(|_| Answer::raw("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")).await;
    assert!(closed.iter().all(|error| matches!(error, CandidateError::Failed(_))));
}

#[tokio::test]
async fn results_that_are_no_pages_are_left_out_and_five_are_taken() {
    let long = format!("https://long.example/{}", "x".repeat(9_000));
    let mut answer =
        results(&["javascript:alert(1)", "ftp://f.example/", "", "relative", "file:///etc/passwd", &long]);
    answer["results"].as_array_mut().unwrap().extend([
        json!(7),
        json!({"url": 7}),
        json!({"title": "no url"}),
        json!(null),
    ]);
    for at in 0..8 {
        answer["results"].as_array_mut().unwrap().push(json!({"url": format!("https://p.example/{at}")}));
    }
    let site = served("/search", move |_| json_answer(&answer)).await;
    let engine = over_http(Engine::searxng(site.url("/").as_str()).unwrap());
    let found = ask(&engine, "x").await.unwrap();
    assert_eq!(urls(&found), (0..5).map(|at| format!("https://p.example/{at}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_address_guard_opens_for_the_named_engine_only() {
    // Both are on loopback, which the guard refuses, but the user set the engine's own address.
    let site = served("/search", |_| json_answer(&results(&["https://a.example/"]))).await;
    let engine = over_http(Engine::searxng(site.url("/").as_str()).unwrap());
    assert_eq!(ask(&engine, "x").await.unwrap().len(), 1);
    // The default address of an API was not set by the user.
    let mut settings = Settings::default();
    settings.resolve = vec!["api.search.brave.com:443:127.0.0.1".to_owned()];
    let engine = SearchEngine::new(Engine::brave(KEY), &settings).unwrap();
    let error = ask(&engine, "x").await.unwrap_err().to_string();
    assert!(error.contains("address_refused"), "{error}");
}

#[test]
fn addresses_and_keys_that_are_none_are_refused_and_not_repeated() {
    for address in ["", "search.example.org", "ftp://search.example.org/", "http://:secret@", "file:///x"] {
        let error = Engine::searxng(address).unwrap_err().to_string();
        assert!(error.contains("http://") && !error.contains("secret"), "{error}");
    }
    assert!(Engine::brave(KEY).at("nonsense").is_err());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let engine = SearchEngine::with_downloader(Engine::brave("a\nkey"), ScriptedDownloader::new());
    let error = runtime.block_on(engine.find(&Subject::default(), "x")).unwrap_err().to_string();
    assert!(error.contains("BRAVE_API_KEY") && !error.contains("a\nkey"), "{error}");
}

#[test]
fn questions_are_sentences_without_quotes_or_line_breaks() {
    let engine = SearchEngine::with_downloader(
        Engine::searxng("http://s.example/").unwrap(),
        ScriptedDownloader::new(),
    );
    let text = "He said \"no more of it\" and left.\nThe old mill\nstands on the bank of the river.  Nobody knows why it does.";
    let questions = engine.queries(&Subject::new(Text::new(text)));
    assert!(!questions.is_empty());
    assert!(questions.iter().all(|question| !question.contains(['"', '\n'])), "{questions:?}");
    assert!(
        questions.iter().any(|question| question.starts_with("He said no more of it and left")),
        "{questions:?}"
    );
    // Sentences are chosen as in the reference: the first, the last, the one in the middle.
    let sentence = |at: usize| format!("This is the sentence number {at} of an article");
    let text: String = (10..50).map(|at| sentence(at) + ". ").collect();
    let picked = engine.max_queries(3).queries(&Subject::new(Text::new(text)));
    let numbers = picked.iter().map(|question| question.split(' ').nth(5).unwrap()).collect::<Vec<_>>();
    assert_eq!(numbers, ["10", "49", "30"]);
}

fn scripted(reply: impl Fn(u64) -> Reply + Send + Sync + 'static) -> ScriptedDownloader {
    let count = Mutex::new(0);
    ScriptedDownloader::new().otherwise(move |_, _| {
        let mut count = count.lock().unwrap();
        *count += 1;
        reply(*count - 1)
    })
}

#[tokio::test(start_paused = true)]
async fn there_is_a_second_between_two_queries_of_any_callers() {
    let web = scripted(|_| Reply::status(200).body(results(&[]).to_string()));
    let engine = SearchEngine::with_downloader(Engine::searxng("http://s.example/").unwrap(), web.clone());
    let subject = Subject::default();
    let ten = futures(&engine, &subject, 10).await;
    assert!(ten.iter().all(Result::is_ok));
    let starts = web.starts("s.example");
    assert_eq!(starts.len(), 10);
    for two in starts.windows(2) {
        let gap = two[1] - two[0];
        assert!(gap >= Duration::from_millis(999) && gap < Duration::from_millis(1_100), "{gap:?}");
    }
}

/// Sends the same query this many times at once.
async fn futures<D: huntsman_crawler::Downloader>(
    engine: &SearchEngine<D>,
    subject: &Subject,
    number: usize,
) -> Vec<Result<Vec<Candidate>, CandidateError>> {
    let mut waiting: Vec<_> = (0..number).map(|_| engine.find(subject, "x")).collect();
    let mut done = Vec::new();
    std::future::poll_fn(|cx| {
        waiting.retain_mut(|one| match one.as_mut().poll(cx) {
            std::task::Poll::Ready(answer) => {
                done.push(answer);
                false
            }
            std::task::Poll::Pending => true,
        });
        if waiting.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_refuses_is_left_alone_for_as_long_as_it_says() {
    let web = scripted(|nth| match nth {
        0 => Reply::status(429).header("retry-after", "30"),
        1 => Reply::status(429),
        _ => Reply::status(200).body(results(&["https://a.example/"]).to_string()),
    });
    let engine = SearchEngine::with_downloader(Engine::searxng("http://s.example/").unwrap(), web.clone());
    let subject = Subject::default();
    let ask = || engine.find(&subject, "x");
    assert!(matches!(ask().await, Err(CandidateError::Quota(_))));
    for wait in [0, 10, 19] {
        tokio::time::advance(Duration::from_secs(wait)).await;
        let error = ask().await.unwrap_err().to_string();
        assert!(error.contains("more seconds"), "{error}");
    }
    assert_eq!(web.requests().len(), 1);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(
        matches!(ask().await, Err(CandidateError::Quota(_))),
        "it refuses again, and does not say for how long"
    );
    tokio::time::advance(Duration::from_secs(58)).await;
    ask().await.unwrap_err();
    assert_eq!(web.requests().len(), 2);
    tokio::time::advance(Duration::from_secs(3)).await;
    assert_eq!(ask().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_budget_limits_the_number_of_queries() {
    let web = scripted(|_| Reply::status(200).body(results(&[]).to_string()));
    let engine =
        SearchEngine::with_downloader(Engine::searxng("http://s.example/").unwrap(), web.clone()).budget(3);
    let answers = futures(&engine, &Subject::default(), 6).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 3);
    assert!(
        answers
            .iter()
            .filter_map(|answer| answer.as_ref().err())
            .all(|error| error.to_string().contains("budget of 3"))
    );
    assert_eq!(web.requests().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn network_errors_do_not_show_the_url_of_the_query() {
    for kind in
        [FetchErrorKind::Dns, FetchErrorKind::Tls, FetchErrorKind::TotalTimeout, FetchErrorKind::Reset]
    {
        let web = scripted(move |_| Reply::error(kind));
        let engine = SearchEngine::with_downloader(Engine::google(KEY, "engine-1"), web);
        let error = engine.find(&Subject::default(), "x").await.unwrap_err().to_string();
        assert!(error.contains("www.googleapis.com") && !error.contains(KEY), "{error}");
    }
}
