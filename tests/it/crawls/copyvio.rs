//! Checks of articles on the crawl engine: which requests are sent, how many at once, and the result for each source.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, SystemTime};

use huntsman::detect::copyvio::{CheckOptions, Direction, LicenceKind, SourceStatus, Text};
use huntsman::store::MemoryStore;
use huntsman::sweep::{
    Candidate, CandidateError, CandidateSource, CheckCache, CheckPlan, Checked, FindFuture, GivenUrls, Links,
    PdfError, PdfText, Subject, Workspace,
};
use huntsman_testkit::{Reply, ScriptedDownloader};

fn words(from: usize, to: usize) -> String {
    (from..to).map(|n| format!("word{}", (n * 7_919) % 99_991)).collect::<Vec<_>>().join(" ")
}

fn workspace(web: &ScriptedDownloader) -> Workspace {
    Workspace::start(None, |crawler| crawler.downloader(web.clone()).set("robotstxt_obey", false)).unwrap()
}

fn article() -> Arc<Subject> {
    Arc::new(Subject::new(Text::new(words(0, 300))))
}

fn given(urls: &[&str]) -> Arc<dyn CandidateSource> {
    Arc::new(GivenUrls::new(urls.iter().copied()))
}

fn plan(short_circuit: bool) -> CheckPlan {
    CheckPlan { options: CheckOptions { short_circuit, ..CheckOptions::default() }, ..CheckPlan::default() }
}

fn status<'c>(checked: &'c Checked, url: &str) -> &'c SourceStatus {
    let source = checked.result.sources.iter().find(|source| source.url == url);
    &source.unwrap_or_else(|| panic!("{url} is missing")).status
}

/// Responds to each query with one page, slowly.
#[derive(Debug)]
struct Engine {
    asked: AtomicUsize,
    pages: Vec<&'static str>,
    time: Duration,
}

impl Engine {
    fn new(pages: &[&'static str], time: Duration) -> Arc<Self> {
        Arc::new(Self { asked: AtomicUsize::new(0), pages: pages.to_vec(), time })
    }
}

impl CandidateSource for Engine {
    fn name(&self) -> &str {
        "engine"
    }

    fn queries(&self, subject: &Subject) -> Vec<String> {
        let phrases = subject.phrases(self.pages.len());
        (0..self.pages.len()).map(|at| phrases.get(at).cloned().unwrap_or_else(|| at.to_string())).collect()
    }

    fn find<'a>(&'a self, _: &'a Subject, _: &'a str) -> FindFuture<'a> {
        Box::pin(async move {
            let at = self.asked.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(self.time).await;
            match self.pages[at] {
                "" => Err(CandidateError::Quota("the quota of today is used up".to_owned())),
                "panic" => panic!("a bug of whoever wrote the source"),
                page => Ok(vec![Candidate::new(page)]),
            }
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_domain_has_two_requests_at_once_even_from_several_checks() {
    // Sources of eight domains, each with two hosts, requested by twelve checks at once.
    let url = |n: usize| format!("http://{}.site{}.example/{n}", ["a", "b"][n % 2], n % 8);
    let web = ScriptedDownloader::new()
        .otherwise(|request, _| Reply::html(format!("<p>{}", words(1_000, 1_200 + request.url.path().len()))))
        .latency(Duration::from_millis(5));
    let workspace = workspace(&web);
    let mut checks = tokio::task::JoinSet::new();
    for check in 0..12 {
        let workspace = workspace.clone();
        let urls: Vec<String> = (0..40).map(|n| url((n * 7 + check * 3) % 64)).collect();
        checks.spawn(async move {
            let given: Arc<dyn CandidateSource> = Arc::new(GivenUrls::new(urls));
            workspace.check(article(), &[given], plan(true)).await.unwrap()
        });
    }
    while let Some(checked) = checks.join_next().await {
        let sources = checked.unwrap().result.sources;
        assert_eq!(sources.len(), 40);
        assert!(sources.iter().all(|source| source.status == SourceStatus::Compared));
    }
    let fetched = web.requests();
    let domain = |host: &str| host.split_once('.').unwrap().1.to_owned();
    for (at, one) in fetched.iter().enumerate() {
        assert!(fetched[..at].iter().all(|other| other.url() != one.url()), "{} was read twice", one.url());
        for other in &fetched[..at] {
            let same =
                domain(one.request.url.host_str().unwrap()) == domain(other.request.url.host_str().unwrap());
            let apart = one.started >= other.ended.unwrap() || other.started >= one.ended.unwrap();
            assert!(!same || apart, "{} and {} at once", one.url(), other.url());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_violation_saves_the_questions_that_are_left_and_says_so() {
    let web = ScriptedDownloader::pages([("http://copy.example/", format!("<p>{}", words(0, 300)))]);
    let workspace = workspace(&web);
    let pages = ["http://copy.example/", "http://never.example/", "http://never.example/2"];
    let engine = Engine::new(&pages, Duration::from_millis(300));
    let sources: Vec<Arc<dyn CandidateSource>> = vec![engine.clone()];
    let checked = workspace.check(article(), &sources, plan(true)).await.unwrap();
    assert!(checked.result.violation && checked.possible_miss);
    assert!(checked.queries <= 2 && web.count("http://never.example/2") == 0);
    // All sources are read if the options say so; a failed query affects nothing else.
    let engine = Engine::new(&["", "http://copy.example/", "http://gone.example/"], Duration::ZERO);
    let checked = workspace.check(article(), &[engine], plan(false)).await.unwrap();
    assert_eq!((checked.queries, checked.possible_miss), (3, false));
    assert_eq!(&*checked.errors[0].0, "engine");
    assert!(checked.errors[0].1.contains("quota"));
    assert_eq!(checked.found_by["http://copy.example/"].as_ref(), "engine");
    assert!(
        matches!(status(&checked, "http://gone.example/"), SourceStatus::Failed(why) if why.contains("404"))
    );
    // At most the allowed number of queries is sent, and none for an article that is too small.
    let engine = Engine::new(&pages, Duration::ZERO);
    let few = CheckPlan { max_queries: 2, ..plan(false) };
    assert_eq!(workspace.check(article(), &[engine], few).await.unwrap().queries, 2);
    let small = Arc::new(Subject::new(Text::new(words(0, 10))));
    let engine = Engine::new(&pages, Duration::ZERO);
    let checked =
        workspace.check(small, &[engine, given(&["http://copy.example/"])], plan(false)).await.unwrap();
    assert_eq!((checked.queries, checked.possible_miss), (0, false));
    assert_eq!(status(&checked, "http://copy.example/"), &SourceStatus::Skipped);
}

#[tokio::test(flavor = "multi_thread")]
async fn time_that_is_over_ends_questions_and_sources_and_a_panic_costs_its_questions() {
    let web = ScriptedDownloader::new()
        .respond("http://slow.example/", Reply::html("late").after(Duration::from_millis(600)))
        .respond("http://copy.example/", Reply::html(words(0, 300)));
    let workspace = workspace(&web);
    let engine = Engine::new(&["http://copy.example/"; 3], Duration::from_secs(3_600));
    let hurried = CheckPlan { max_time: Duration::from_millis(300), ..plan(true) };
    let sources = [given(&["http://slow.example/"]), engine.clone()];
    let checked = workspace.check(article(), &sources, hurried).await.unwrap();
    assert_eq!(status(&checked, "http://slow.example/"), &SourceStatus::Late);
    assert_eq!((checked.queries, checked.possible_miss), (1, true));
    let engine = Engine::new(&["panic", "http://copy.example/"], Duration::ZERO);
    let checked =
        workspace.check(article(), &[given(&["http://copy.example/"]), engine], plan(false)).await.unwrap();
    assert!(checked.result.violation && checked.possible_miss);
    // The next check finds the domain free.
    let checked =
        workspace.check(article(), &[given(&["http://slow.example/other"])], plan(true)).await.unwrap();
    assert!(matches!(status(&checked, "http://slow.example/other"), SourceStatus::Failed(_)));
    let report = workspace.finish().await.unwrap();
    assert_eq!(report.finish_reason, "finished");
    assert!(workspace.check(article(), &[], plan(true)).await.is_err(), "it is finished");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_used_again_while_its_best_source_says_the_same() {
    let copy = AtomicUsize::new(0);
    let web = ScriptedDownloader::new().otherwise(move |request, _| match request.url.host_str() {
        // The page changes after the third fetch.
        Some("copy.example") if copy.fetch_add(1, Ordering::Relaxed) < 3 => Reply::html(words(40, 140)),
        _ => Reply::html(words(2_000, 2_100)),
    });
    let cache = Arc::new(CheckCache::new(Arc::new(MemoryStore::default())));
    let sources = [given(&["http://other.example/", "http://copy.example/"])];
    let check = |short_circuit: bool| {
        // Each check has a workspace of its own, so only results are remembered.
        let workspace = workspace(&web);
        let plan = CheckPlan { cache: Some(Arc::clone(&cache)), ..plan(short_circuit) };
        let sources = sources.clone();
        async move { workspace.check(article(), &sources, plan).await.unwrap() }
    };
    let first = check(true).await;
    assert_eq!(first.cached, None);
    let second = check(true).await;
    assert!(second.cached.is_some_and(|at| at <= SystemTime::now()));
    assert_eq!(second.result, first.result);
    assert_eq!(second.found["http://other.example/"].evidence, first.found["http://other.example/"].evidence);
    assert_eq!((web.count("http://other.example/"), web.count("http://copy.example/")), (1, 2));
    assert!(check(false).await.cached.is_some(), "nothing was skipped");
    let changed = check(true).await;
    assert_eq!((changed.cached, changed.result.confidence().value()), (None, 0.0));
    assert_eq!(web.count("http://other.example/"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cached_result_with_skipped_sources_is_not_used_for_a_check_of_all() {
    let web = ScriptedDownloader::new()
        .otherwise(|_, _| Reply::html(words(0, 300)))
        .latency(Duration::from_millis(50));
    let cache = Arc::new(CheckCache::new(Arc::new(MemoryStore::default())));
    let urls: Vec<String> = (0..20).map(|n| format!("http://one.example/{n}")).collect();
    let sources: [Arc<dyn CandidateSource>; 1] = [Arc::new(GivenUrls::new(urls))];
    let with = |short_circuit| CheckPlan { cache: Some(Arc::clone(&cache)), ..plan(short_circuit) };
    let first = workspace(&web).check(article(), &sources, with(true)).await.unwrap();
    assert!(first.result.sources.iter().any(|source| source.status == SourceStatus::Skipped));
    assert!(workspace(&web).check(article(), &sources, with(true)).await.unwrap().cached.is_some());
    let all = workspace(&web).check(article(), &sources, with(false)).await.unwrap();
    assert_eq!(all.cached, None);
    assert!(all.result.sources.iter().all(|source| source.status == SourceStatus::Compared));
    assert!(workspace(&web).check(article(), &sources, with(false)).await.unwrap().cached.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_age_and_licence_of_a_source_are_reported_and_an_article_is_no_source_of_itself() {
    let page = format!(
        "<meta property='article:published_time' content='2020-05-01T10:00:00Z'>\
         <link rel=license href='https://creativecommons.org/licenses/by-sa/4.0/'><p>{}",
        words(0, 300)
    );
    let web = ScriptedDownloader::pages([("http://old.example/", page)]);
    let mut subject = Subject::new(Text::new(words(0, 300)));
    subject.url = Some("http://article.example/a?x=1&y=2".to_owned());
    subject.links = vec!["http://article.example/a?y=2&x=1#top".to_owned(), "http://old.example/".to_owned()];
    subject.dates.published = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(20_000 * 86_400));
    let links: Arc<dyn CandidateSource> = Arc::new(Links);
    let checked = workspace(&web).check(Arc::new(subject), &[links], plan(true)).await.unwrap();
    assert_eq!(checked.result.sources.len(), 1);
    let found = &checked.found["http://old.example/"];
    assert_eq!(found.direction, Direction::SourceOlder);
    assert_eq!(found.licence.as_ref().unwrap().kind, LicenceKind::ShareAlike);
}

#[tokio::test(flavor = "multi_thread")]
async fn blogs_and_archives_that_show_text_elsewhere_are_read_there() {
    let post = serde_json::json!({"entry": {"content": {"$t": format!("<p>{}</p>", words(0, 300))}}});
    let web = ScriptedDownloader::new()
        .respond(
            "http://mills.blogspot.com/2011/05/old.html",
            Reply::html("<body><script>var blog = {'postId': '1234567890123456789', 'x': 1}</script></body>"),
        )
        .respond(
            "http://mills.blogspot.com/feeds/posts/default/1234567890123456789?alt=json&v=2&dynamicviews=1&rewriteforssl=true",
            Reply::status(200).header("content-type", "application/json; charset=UTF-8").body(post.to_string()),
        )
        .respond(
            "http://web.archive.org/web/2011/http://a.example/x.pdf",
            Reply::html("<body><iframe id=playback src='/web/2011id_/http://a.example/x.pdf'></iframe></body>"),
        )
        .respond("http://web.archive.org/web/2011id_/http://a.example/x.pdf", Reply::text(words(0, 200)))
        .respond(
            "http://web.archive.org/web/loop.pdf",
            Reply::html("<body><iframe id=playback src='loop.pdf'></iframe></body>"),
        );
    let urls = [
        "http://mills.blogspot.com/2011/05/old.html",
        "http://web.archive.org/web/2011/http://a.example/x.pdf",
        "http://web.archive.org/web/loop.pdf",
    ];
    let checked = workspace(&web).check(article(), &[given(&urls)], plan(false)).await.unwrap();
    let statuses = urls.map(|url| status(&checked, url).clone());
    assert_eq!(statuses[..2], [SourceStatus::Compared, SourceStatus::Compared], "{checked:?}");
    assert!(matches!(&statuses[2], SourceStatus::Failed(_)), "{checked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn downloads_that_can_have_no_text_are_ended_and_say_why() {
    let large = "x ".repeat(1_100_000);
    let web = ScriptedDownloader::new()
        .respond("http://a.example/", Reply::status(200).header("content-type", "image/png").body("PNG"))
        .respond("http://b.example/", Reply::html("x").header("content-length", "3000000"))
        .respond("http://c.example/", Reply::html(large.clone()))
        .respond("http://d.example/", Reply::status(404).header("content-type", "image/png"));
    let urls = ["http://a.example/", "http://b.example/", "http://c.example/", "http://d.example/"];
    let workspace = workspace(&web);
    let checked = workspace.check(article(), &[given(&urls)], plan(false)).await.unwrap();
    let told = urls.map(|url| match status(&checked, url) {
        SourceStatus::Failed(why) => why.as_str(),
        other => panic!("{url}: {other:?}"),
    });
    let too_large = "it has more than 2097152 bytes";
    assert_eq!(told, ["image/png has no text that is read", too_large, too_large, "http_status: 404"]);
    assert_eq!(workspace.finish().await.unwrap().stat("drops/skipped/download_stopped"), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_violation_sources_in_flight_count_and_those_in_the_queue_are_skipped() {
    let web = ScriptedDownloader::new()
        .respond("http://copy.example/", Reply::html(words(0, 300)).after(Duration::from_millis(100)))
        .otherwise(|_, _| Reply::html(words(2_000, 2_300)).after(Duration::from_millis(400)));
    let urls =
        ["http://copy.example/", "http://slow.example/1", "http://slow.example/2", "http://slow.example/3"];
    let checked = workspace(&web).check(article(), &[given(&urls)], plan(true)).await.unwrap();
    assert!(checked.short_circuit);
    let statuses = urls.map(|url| status(&checked, url).clone());
    use SourceStatus::{Compared, Skipped};
    assert_eq!(statuses, [Compared, Compared, Skipped, Skipped]);
    assert_eq!(web.urls().len(), 2);
}

/// A PDF reader that blocks until it is released.
#[derive(Debug, Default)]
struct Hanging {
    is_over: Mutex<bool>,
    over: Condvar,
}

impl PdfText for Hanging {
    fn text(&self, _: &[u8]) -> Result<String, PdfError> {
        let is_over = self.is_over.lock().unwrap();
        drop(self.over.wait_while(is_over, |is_over| !*is_over).unwrap());
        Err(PdfError::NoText)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_read_for_ever_hold_up_no_other_source() {
    let url = |n: usize| format!("http://site{n}.example/");
    let web = ScriptedDownloader::new()
        .respond("http://copy.example/", Reply::html(words(0, 300)).after(Duration::from_millis(100)))
        .otherwise(|_, _| Reply::status(200).header("content-type", "application/pdf").body("%PDF-1.4"));
    let pdf = Arc::new(Hanging::default());
    let workspace = Workspace::start(Some(Arc::clone(&pdf) as Arc<dyn PdfText>), |crawler| {
        crawler.downloader(web.clone()).set("robotstxt_obey", false).set("callback_threads", 2)
    })
    .unwrap();
    let urls: Vec<String> = (0..5).map(url).chain(["http://copy.example/".to_owned()]).collect();
    let given = given(&urls.iter().map(String::as_str).collect::<Vec<_>>());
    let plan = CheckPlan { max_time: Duration::from_secs(2), ..plan(false) };
    let checked = workspace.check(article(), &[given], plan).await.unwrap();
    *pdf.is_over.lock().unwrap() = true;
    pdf.over.notify_all();
    assert_eq!(status(&checked, "http://copy.example/"), &SourceStatus::Compared);
    for url in &urls[..5] {
        assert!(!matches!(status(&checked, url), SourceStatus::Compared), "{url}");
    }
}

/// A candidate source that knows the texts of its pages.
#[derive(Debug)]
struct Library(Vec<Candidate>);

impl CandidateSource for Library {
    fn name(&self) -> &str {
        "library"
    }

    fn queries(&self, _: &Subject) -> Vec<String> {
        vec!["all".to_owned()]
    }

    fn find<'a>(&'a self, _: &'a Subject, _: &'a str) -> FindFuture<'a> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_and_not_compared_when_the_time_is_over_is_late() {
    let (web, text) = (ScriptedDownloader::new(), Text::new(words(0, 90_000)));
    let page = |n: usize| Candidate {
        text: Some(text.clone()),
        ..Candidate::new(format!("http://site{n}.example/"))
    };
    // Comparing all of them takes a multiple of the time limit.
    let library: Arc<dyn CandidateSource> = Arc::new(Library((0..150).map(page).collect()));
    let subject = Arc::new(Subject::new(text.clone()));
    let plan = CheckPlan { max_time: Duration::from_secs(1), ..plan(false) };
    let checked = workspace(&web).check(subject, &[library], plan).await.unwrap();
    assert_eq!(checked.result.sources.len(), 150);
    assert_eq!(status(&checked, "http://site149.example/"), &SourceStatus::Late);
}
