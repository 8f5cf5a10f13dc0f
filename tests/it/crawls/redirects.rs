//! Redirects: there is one record under the requested URL, every hop passes all filters, and credentials stay on
//! their origin.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use huntsman::{Error, Output, Page, Request, Result, Spider, Start, spider_fn};
use huntsman_testkit::{Reply, ScriptedDownloader};

use super::support::{Log, links, polite, quick};

#[tokio::test(start_paused = true)]
async fn a_redirect_is_one_record_and_its_target_is_seen() {
    let web = ScriptedDownloader::new()
        .respond("http://a.test/old", Reply::redirect(301, "/new"))
        .respond("http://a.test/new", Reply::html("<a href=/last>l</a>"))
        .respond("http://a.test/last", Reply::html("<a href=/new>n</a><a href=/old>o</a>"));
    let log = Log::default();
    let report = quick(links(["http://a.test/old"]), &web).observer(log.clone()).run().await.unwrap();
    assert_eq!(log.delivered(), ["http://a.test/old", "http://a.test/last"]);
    assert_eq!(web.count("http://a.test/new"), 1, "the target counts as seen");
    assert_eq!((report.pages, log.dropped().len()), (2, 0));
    assert_eq!(report.stat("dupefilter/filtered"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_redirect_to_a_known_page_is_recorded_and_not_fetched() {
    let web = ScriptedDownloader::pages([("http://a.test/", "<a href=/old>o</a>")])
        .respond("http://a.test/old", Reply::redirect(302, "/"));
    let log = Log::default();
    quick(links(["http://a.test/"]), &web).observer(log.clone()).run().await.unwrap();
    let drop = log.drop_of("http://a.test/old");
    assert_eq!((&*drop.reason, &*drop.component), ("redirect_duplicate", "dupefilter"));
    assert!(drop.detail.as_deref().is_some_and(|detail| detail.contains("http://a.test/")), "{drop:?}");
    assert_eq!(web.count("http://a.test/"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_redirect_to_a_known_page_is_delivered_when_asked_for() {
    let web = ScriptedDownloader::pages([("http://a.test/", "<a href=/old>o</a>")])
        .respond("http://a.test/old", Reply::redirect(302, "/"));
    let log = Log::default();
    let crawl = quick(links(["http://a.test/"]), &web).set("redirect_dupe", "deliver");
    crawl.observer(log.clone()).run().await.unwrap();
    assert_eq!(log.delivered(), ["http://a.test/", "http://a.test/old"]);
}

#[tokio::test(start_paused = true)]
async fn the_page_that_a_form_leads_to_is_its_answer_although_its_address_is_known() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let shown = Arc::clone(&seen);
    let spider = spider_fn(["http://a.test/login"], move |page: &Page, out: &mut Output<()>| {
        shown.lock().unwrap().push(format!("{} {}", page.callback(), page.url().path()));
        if page.callback() == "parse" {
            out.request(Request::form(page.url().clone(), [("password", "wrong")]).callback("inside"));
        }
        Ok(())
    });
    let web = ScriptedDownloader::new().otherwise(|request, _| {
        match (request.method.as_str(), request.url.path()) {
            ("POST", _) => Reply::redirect(302, "/home"),
            (_, "/home") => Reply::redirect(302, "/login"),
            _ => Reply::html("<h1>Login</h1>"),
        }
    });
    let report = quick(spider, &web).run().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["parse /login", "inside /login"]);
    assert_eq!(report.pages, 2);
}

/// Records failures.
struct Failing(&'static str, Arc<Mutex<Vec<String>>>);

impl Spider for Failing {
    type Item = ();
    fn start(&self) -> Start {
        Start::urls([self.0])
    }
    fn parse(&self, _: &Page, _: &mut Output<()>) -> Result<()> {
        Ok(())
    }
    fn failed(&self, request: &Request, error: &Error, _: &mut Output<()>) -> Result<()> {
        self.1.lock().unwrap().push(format!("{} {error}", request.requested_url()));
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_redirect_to_itself_is_a_loop_and_fails_its_request() {
    let web = ScriptedDownloader::new().respond("http://a.test/loop", Reply::redirect(302, "/loop"));
    let (log, failed) = (Log::default(), Arc::default());
    let spider = Failing("http://a.test/loop", Arc::clone(&failed));
    quick(spider, &web).observer(log.clone()).run().await.unwrap();
    assert_eq!(log.drop_of("http://a.test/loop").reason, "redirect_loop");
    assert_eq!(web.requests().len(), 1);
    let failed = failed.lock().unwrap();
    assert!(failed.len() == 1 && failed[0].starts_with("http://a.test/loop redirect_loop"), "{failed:?}");
}

#[tokio::test(start_paused = true)]
async fn an_endless_chain_ends_after_twenty_redirects() {
    let web = ScriptedDownloader::new().otherwise(|request, _| {
        let n: u32 = request.url.path().trim_start_matches('/').parse().unwrap();
        Reply::redirect(302, &format!("/{}", n + 1))
    });
    let (log, failed) = (Log::default(), Arc::default());
    let spider = Failing("http://a.test/0", Arc::clone(&failed));
    quick(spider, &web).observer(log.clone()).run().await.unwrap();
    assert_eq!(log.drop_of("http://a.test/0").reason, "max_redirects");
    assert_eq!(web.requests().len(), 21);
    assert_eq!(failed.lock().unwrap().len(), 1);
    let last = web.requests().pop().unwrap().request;
    assert_eq!(last.priority, 40, "each hop adds 2");
}

#[tokio::test(start_paused = true)]
async fn a_post_survives_a_307_and_becomes_a_get_after_a_302() {
    struct Forms;
    impl Spider for Forms {
        type Item = ();
        fn start(&self) -> Start {
            let form = |path: &str| {
                let url = format!("http://a.test{path}").parse().unwrap();
                Request::form(url, [("q", "a b"), ("n", "1")])
            };
            Start::requests([form("/keep"), form("/see")])
        }
        fn parse(&self, _: &Page, _: &mut Output<()>) -> Result<()> {
            Ok(())
        }
    }
    let web = ScriptedDownloader::new()
        .respond("http://a.test/keep", Reply::redirect(307, "/kept"))
        .respond("http://a.test/see", Reply::redirect(302, "/seen"))
        .otherwise(|_, _| Reply::html("x"));
    let report = quick(Forms, &web).run().await.unwrap();
    assert_eq!(report.pages, 2);
    let sent = |path: &str| {
        let found = web.requests().into_iter().find(|f| f.request.url.path() == path).unwrap();
        (found.request.method.to_string(), String::from_utf8(found.request.body.to_vec()).unwrap())
    };
    assert_eq!(sent("/kept"), ("POST".to_owned(), "q=a+b&n=1".to_owned()));
    assert_eq!(sent("/seen"), ("GET".to_owned(), String::new()));
    let seen = web.requests().into_iter().find(|f| f.request.url.path() == "/seen").unwrap();
    assert!(!seen.request.headers.contains_key("content-type"));
}

#[tokio::test(start_paused = true)]
async fn credentials_stay_with_their_origin_over_a_redirect() {
    struct Secret;
    impl Spider for Secret {
        type Item = ();
        fn start(&self) -> Start {
            let request = |path: &str| Request::parse(&format!("http://a.test{path}")).unwrap();
            Start::requests([
                request("/out").header("authorization", "Bearer by-hand").unwrap(),
                request("/in").header("authorization", "Bearer by-hand").unwrap(),
                request("/bound"),
            ])
        }
        fn parse(&self, _: &Page, _: &mut Output<()>) -> Result<()> {
            Ok(())
        }
    }
    let web = ScriptedDownloader::new()
        .respond("http://a.test/out", Reply::redirect(302, "http://b.test/caught"))
        .respond("http://a.test/in", Reply::redirect(302, "/inside"))
        .respond("http://a.test/bound", Reply::redirect(302, "http://b.test/caught-too"))
        .otherwise(|_, _| Reply::html("x"));
    quick(Secret, &web).set("http_auth", vec!["http://a.test=user:password"]).run().await.unwrap();
    let authorization = |path: &str| {
        let fetched = web.requests().into_iter().find(|f| f.request.url.path() == path).unwrap();
        fetched.request.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(authorization("/inside").as_deref(), Some("Bearer by-hand"));
    assert!(authorization("/bound").is_some_and(|value| value.starts_with("Basic ")));
    assert_eq!(authorization("/caught"), None);
    assert_eq!(authorization("/caught-too"), None);
}

#[tokio::test(start_paused = true)]
async fn every_hop_of_a_redirect_passes_robots_txt_and_scope() {
    let web = ScriptedDownloader::new()
        .respond("http://a.test/to-b", Reply::redirect(302, "http://b.test/private"))
        .respond("http://a.test/to-c", Reply::redirect(302, "http://c.test/"))
        .respond("http://b.test/robots.txt", Reply::text("User-agent: *\nDisallow: /private"))
        .respond("http://b.test/private", Reply::html("x"))
        .respond("http://c.test/", Reply::html("x"));
    let log = Log::default();
    polite(links(["http://a.test/to-b", "http://a.test/to-c"]), &web)
        .set("scope", "host")
        .set("allow_hosts", vec!["b.test"])
        .observer(log.clone())
        .run()
        .await
        .unwrap();
    assert_eq!(log.drop_of("http://a.test/to-b").reason, "robots");
    assert_eq!(log.drop_of("http://a.test/to-c").component, "offsite");
    assert!(web.starts("c.test").is_empty(), "not even its robots.txt");
    assert_eq!(web.count("http://b.test/private"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_redirect_keeps_the_depth_of_its_request() {
    let web = ScriptedDownloader::pages([("http://a.test/", "<a href=/old>o</a>")])
        .respond("http://a.test/old", Reply::redirect(301, "/new"))
        .respond("http://a.test/new", Reply::html("x").after(Duration::from_millis(5)));
    let depths = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&depths);
    let spider = spider_fn(["http://a.test/"], move |page: &Page, out: &mut Output<()>| {
        seen.lock().unwrap().push((page.url().path().to_owned(), page.request().depth));
        out.follow_links(page);
        Ok(())
    });
    quick(spider, &web).run().await.unwrap();
    assert_eq!(*depths.lock().unwrap(), [("/".to_owned(), 0), ("/new".to_owned(), 1)]);
}
