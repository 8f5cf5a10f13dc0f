//! Crawls in sessions: what belongs together stays together, blocked sessions end, and a job keeps the rest.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use huntsman::middleware::{CookieJars, Cookies, NewSession, PageSession, ProxyPool, SessionRules, Sessions};
use huntsman::store::Backend;
use huntsman::{
    CrawlerBuilder, Error, FetchErrorKind, Form, Job, Output, Page, Request, Result, Spider, Start, meta,
    spider_fn,
};
use huntsman_testkit::{Fetched, Reply, ScriptedDownloader};
use serde_json::json;

use super::support::{Log, links, quick};

/// A site that gives each visitor without a cookie a new one, and blocks a visitor (403) after this many pages.
fn counting_site(most: usize) -> ScriptedDownloader {
    let visits: Mutex<HashMap<String, usize>> = Mutex::default();
    let next = AtomicUsize::new(0);
    ScriptedDownloader::new().otherwise(move |request, _| {
        let visitor = cookie(request);
        let (visitor, is_new) = match visitor {
            Some(visitor) => (visitor, false),
            None => (format!("v{}", next.fetch_add(1, Ordering::Relaxed)), true),
        };
        let mut visits = visits.lock().unwrap();
        let count = visits.entry(visitor.clone()).or_default();
        *count += 1;
        let reply = if *count > most { Reply::status(403) } else { Reply::html("<title>page</title>") };
        if is_new { reply.header("Set-Cookie", &format!("visitor={visitor}")) } else { reply }
    })
}

fn cookie(request: &Request) -> Option<String> {
    let cookies = request.headers.get("cookie")?.to_str().unwrap();
    cookies.split("; ").find_map(|cookie| cookie.strip_prefix("visitor=")).map(str::to_owned)
}

fn seeds(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("http://a.test/{n}")).collect()
}

fn session(fetched: &Fetched) -> String {
    fetched.request.meta_text(meta::SESSION).unwrap_or_default().to_owned()
}

fn one_by_one<S: Spider>(spider: S, web: &ScriptedDownloader, size: usize) -> CrawlerBuilder<S> {
    quick(spider, web).set("concurrent_requests_per_domain", 1).set("session_pool_size", size)
}

#[tokio::test(start_paused = true)]
async fn cookies_headers_and_proxy_of_a_session_stay_together() {
    let web = counting_site(1_000);
    let agents = json!([
        {"User-Agent": "one/1", "Accept-Language": "de"},
        {"User-Agent": "two/1", "Accept-Language": "fr"},
        {"User-Agent": "three/1"},
    ]);
    let report = one_by_one(links(seeds(60)), &web, 3)
        .set("session_headers", agents)
        .set("proxy_pool", vec!["http://u:p@p1:1", "http://u:p@p2:1", "http://u:p@p3:1"])
        .run()
        .await
        .unwrap();
    assert_eq!(report.pages, 60);
    let mut identities: BTreeMap<String, BTreeSet<(String, String, String, String)>> = BTreeMap::new();
    for fetched in web.requests() {
        let header = |name: &str| fetched.request.headers[name].to_str().unwrap().to_owned();
        let Some(visitor) = cookie(&fetched.request) else { continue };
        let proxy = fetched.request.meta_text(meta::PROXY).unwrap().to_owned();
        let identity = (visitor, header("user-agent"), header("accept-language"), proxy);
        identities.entry(session(&fetched)).or_default().insert(identity);
    }
    assert_eq!(identities.len(), 3, "{identities:?}");
    let all: Vec<_> = identities.values().flatten().collect();
    assert_eq!(all.len(), 3, "one identity for each session: {identities:?}");
    let different: [BTreeSet<&String>; 3] = [
        all.iter().map(|identity| &identity.0).collect(),
        all.iter().map(|identity| &identity.1).collect(),
        all.iter().map(|identity| &identity.3).collect(),
    ];
    assert!(different.iter().all(|values| values.len() == 3), "{all:?}");
    let status = report.component::<Sessions>().unwrap().sessions();
    assert_eq!(status.iter().map(|session| session.uses).collect::<Vec<_>>(), [20, 20, 20]);
}

#[tokio::test(start_paused = true)]
async fn a_blocked_session_ends_and_its_request_is_retried_in_another() {
    let web = counting_site(10);
    let log = Log::default();
    let report = one_by_one(links(seeds(200)), &web, 4)
        .set("retry_times", 5)
        .observer(log.clone())
        .run()
        .await
        .unwrap();
    assert_eq!((report.pages, log.dropped().len()), (200, 0), "{:?}", log.dropped());
    let blocked = report.stat("session/blocked");
    assert!((16..=20).contains(&blocked), "a visitor is blocked after ten pages: {blocked}");
    assert_eq!(
        ["session/retired/blocked", "session/retried", "session/blocked_status_count/403", "retry/count"]
            .map(|key| report.stat(key)),
        [blocked; 4]
    );
    assert_eq!(report.stat("session/created") - report.stat("session/retired"), 4);
    let jars = report.component::<Cookies>().unwrap().jars().names();
    assert!(jars.len() <= 4, "the cookies of a session end with it: {jars:?}");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_blocked_in_every_session_ends_as_blocked() {
    let web = ScriptedDownloader::new()
        .respond("http://a.test/0", Reply::status(429))
        .otherwise(|_, _| Reply::html("x"));
    let log = Log::default();
    let report = one_by_one(links(seeds(3)), &web, 10).observer(log.clone()).run().await.unwrap();
    assert_eq!((report.pages, web.count("http://a.test/0")), (2, 3), "as often as retry_times allows");
    let drop = log.drop_of("http://a.test/0");
    assert_eq!((&*drop.reason, drop.status), ("blocked", Some(429)));
    assert!(drop.detail.unwrap().contains("3 sessions were blocked"));
    let used: BTreeSet<String> =
        web.requests().iter().filter(|fetched| fetched.url() == "http://a.test/0").map(session).collect();
    assert_eq!((used.len(), report.stat("session/gave_up"), report.stat("retry/max_reached")), (3, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn statuses_that_the_callback_handles_are_left_to_it() {
    struct Handles;
    impl Spider for Handles {
        type Item = u16;

        fn start(&self) -> Start {
            Start::new(
                [Ok(Request::parse("http://a.test/0").unwrap().meta("handle_httpstatus_list", vec![403]))]
                    .into_iter(),
            )
        }

        fn parse(&self, page: &Page, out: &mut Output<u16>) -> Result<()> {
            out.item(page.response().status.as_u16());
            Ok(())
        }
    }
    let web = ScriptedDownloader::new().respond("http://a.test/0", Reply::status(403));
    let report = one_by_one(Handles, &web, 2).run().await.unwrap();
    assert_eq!((report.pages, report.stat("session/blocked"), web.requests().len()), (1, 0, 1));
}

/// A site that shows a captcha with status 200 to the first three visitors.
fn captcha_site() -> ScriptedDownloader {
    let next = AtomicUsize::new(0);
    ScriptedDownloader::new().otherwise(move |request, _| {
        let visitor = cookie(request).unwrap_or_else(|| format!("v{}", next.fetch_add(1, Ordering::Relaxed)));
        let is_blocked = ["v0", "v1", "v2"].contains(&visitor.as_str());
        let title = if is_blocked { "Are you human?" } else { "page" };
        Reply::html(format!("<title>{title}</title>")).header("Set-Cookie", &format!("visitor={visitor}"))
    })
}

#[tokio::test(start_paused = true)]
async fn a_rule_of_the_program_says_what_is_a_block() {
    let web = captcha_site();
    let rules =
        SessionRules::new().blocked_if(|response| response.body.starts_with(b"<title>Are you human?"));
    let report = one_by_one(links(seeds(10)), &web, 2)
        .component(move |settings| Sessions::with_rules(settings, rules))
        .set("retry_times", 5)
        .run()
        .await
        .unwrap();
    assert_eq!((report.pages, report.stat("session/blocked"), web.requests().len()), (10, 3, 13));
}

#[tokio::test(start_paused = true)]
async fn a_callback_ends_the_session_of_its_page() {
    let web = captcha_site();
    let spider = spider_fn(seeds(10), |page: &Page, out: &mut Output<String>| {
        if page.title() == Some("Are you human?") {
            out.request(
                page.retry_in_new_session("captcha", out.context()).ok_or_else(|| Error::msg("given up"))?,
            );
            return Ok(());
        }
        assert!(page.session().name().is_some_and(|name| name.starts_with('#')));
        out.item(page.url().to_string());
        Ok(())
    });
    // No request leaves before the callback has judged the page before it.
    let crawl = one_by_one(spider, &web, 2).set("retry_times", 5).set("scraper_slot_max_active_size", 1);
    let report = crawl.run().await.unwrap();
    assert_eq!((report.stat("item_scraped_count"), report.stat("session/blocked")), (10, 3));
    assert_eq!(web.requests().len(), 13);
    assert_eq!(["session/retried", "retry/reason_count/captcha"].map(|key| report.stat(key)), [3; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_asks_for_the_session_works_without_sessions() {
    let web = ScriptedDownloader::new().otherwise(|_, _| Reply::html("x"));
    let spider = spider_fn(seeds(1), |page: &Page, out: &mut Output<bool>| {
        page.session().mark_blocked();
        out.item(page.session().name().is_none());
        Ok(())
    });
    let report = quick(spider, &web).run().await.unwrap();
    assert_eq!((report.pages, report.stat("session/blocked"), report.stat("session/retired")), (1, 0, 0));
    assert!(
        report.component::<Sessions>().is_none() && report.component::<ProxyPool>().is_none(),
        "off by default"
    );
}

/// A site whose pages need a login: a form with a token that belongs to the visitor. Only the password `right` is taken.
fn login_site() -> ScriptedDownloader {
    let next = AtomicUsize::new(0);
    ScriptedDownloader::new().latency(Duration::from_millis(50)).otherwise(move |request, _| match request.url.path() {
        "/login" if request.method == "POST" => {
            let visitor = cookie(request).unwrap_or_default();
            let body = String::from_utf8_lossy(&request.body).into_owned();
            match body == format!("token={visitor}&password=right") {
                true => Reply::redirect(303, "/welcome").header("Set-Cookie", &format!("auth={visitor}")),
                false => Reply::html("wrong password"),
            }
        }
        "/login" => {
            let visitor = format!("v{}", next.fetch_add(1, Ordering::Relaxed));
            let form = format!("<form method=post><input type=hidden name=token value={visitor}><input name=password></form>");
            Reply::html(form).header("Set-Cookie", &format!("visitor={visitor}"))
        }
        _ => {
            let cookies = request.headers.get("cookie").map(|value| value.to_str().unwrap().to_owned());
            match (cookie(request), cookies) {
                (Some(visitor), Some(cookies)) if cookies.contains(&format!("auth={visitor}")) => Reply::html("<p>Log out"),
                _ => Reply::status(401),
            }
        }
    })
}

async fn log_in(session: NewSession, password: &'static str) -> Result<()> {
    let form = session
        .read(Request::parse("http://a.test/login")?, |page| {
            Form::of(page, "form")?.set("password", password)?.request()
        })
        .await?;
    session
        .read(form, |page| match page.text().contains("Log out") {
            true => Ok(()),
            false => Err(Error::msg(format!("the login of session {} was refused", page.url()))),
        })
        .await
}

#[tokio::test(start_paused = true)]
async fn each_session_logs_in_once_before_it_is_used() {
    for concurrency in [1, 2, 16] {
        let web = login_site();
        let rules = SessionRules::new().on_new_session(|session| log_in(session, "right"));
        let report = quick(links(seeds(50)), &web)
            .component(move |settings| Sessions::with_rules(settings, rules))
            .set("concurrent_requests_per_domain", concurrency)
            .set("concurrent_requests", concurrency)
            .set("session_pool_size", 3)
            .run()
            .await
            .unwrap();
        assert_eq!(
            (report.pages, report.stat("session/setups"), report.stat("session/blocked")),
            (50, 3, 0),
            "{report}"
        );
        assert_eq!((web.count("http://a.test/login"), web.count("http://a.test/welcome")), (6, 3));
    }
}

#[tokio::test(start_paused = true)]
async fn a_login_that_fails_ends_its_session_and_the_request_says_why() {
    let web = login_site();
    let log = Log::default();
    let rules = SessionRules::new().on_new_session(|session| log_in(session, "wrong"));
    let report = one_by_one(links(seeds(1)), &web, 2)
        .component(move |settings| Sessions::with_rules(settings, rules))
        .observer(log.clone())
        .run()
        .await
        .unwrap();
    assert_eq!(
        (report.pages, report.stat("session/setup_failed"), report.stat("session/retired/setup")),
        (0, 3, 3)
    );
    let drop = log.drop_of("http://a.test/0");
    assert_eq!((&*drop.reason, &*drop.component), ("session_setup", "sessions"));
    assert!(drop.detail.unwrap().contains("was refused"));
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_login_costs_one_request() {
    let web = counting_site(100);
    let calls = Arc::new(AtomicUsize::new(0));
    let rules = SessionRules::new().on_new_session(move |_| {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        async move {
            assert!(call > 0, "the first login panics");
            Ok(())
        }
    });
    let report = one_by_one(links(seeds(10)), &web, 1)
        .component(move |settings| Sessions::with_rules(settings, rules))
        .run()
        .await
        .unwrap();
    assert_eq!((report.pages, report.stat("session/setups")), (9, 2));
}

#[tokio::test(start_paused = true)]
async fn a_form_keeps_the_session_of_its_page_and_links_do_not() {
    let web = ScriptedDownloader::new().otherwise(|request, _| match request.url.path() {
        "/" => Reply::html("<a href=/a>a</a><a href=/b>b</a><a href=/c>c</a><form method=post action=/form><input name=q></form>"),
        "/form" => Reply::redirect(302, "/result"),
        _ => Reply::html("x"),
    });
    let spider = || {
        spider_fn(["http://a.test/"], |page: &Page, out: &mut Output<()>| {
            // Requests that the spider makes are treated as links that are followed automatically.
            for request in page.follow_all("a")? {
                out.request(request);
            }
            if let Ok(form) = Form::of(page, "form") {
                out.request(form.request()?);
            }
            Ok(())
        })
    };
    for (sticky, links_in_it) in [("forms", 0), ("all", 3), ("none", 0)] {
        let web = web.clone();
        let before = web.requests().len();
        one_by_one(spider(), &web, 50).set("session_sticky", sticky).run().await.unwrap();
        let of: BTreeMap<String, String> = web.requests()[before..]
            .iter()
            .map(|fetched| (fetched.request.url.path().to_owned(), session(fetched)))
            .collect();
        let links = ["/a", "/b", "/c"].iter().filter(|path| of[**path] == of["/"]).count();
        assert_eq!((links, of["/form"] == of["/"]), (links_in_it, sticky != "none"), "{sticky}: {of:?}");
        assert_eq!(of["/form"], of["/result"], "a redirect stays in its session");
    }
}

/// Requests in sessions that the spider names, and outside of all.
struct Named;

impl Spider for Named {
    type Item = ();

    fn start(&self) -> Start {
        let of = |path: &str, key: &str, value: serde_json::Value| {
            Ok(Request::parse(&format!("http://a.test/{path}"))?.meta(key, value))
        };
        let mut all = Vec::new();
        for n in 0..60 {
            all.push(of(&format!("ann/{n}"), "session", "ann".into()));
        }
        all.push(of("ben", "session", "ben".into()));
        all.push(of("outside", "dont_use_session", true.into()));
        all.push(of("jar", "cookiejar", 1.into()));
        Start::new(all.into_iter())
    }

    fn parse(&self, page: &Page, out: &mut Output<()>) -> Result<()> {
        if page.url().path() == "/ann/0" {
            out.follow(page.url().join("/ann/child").unwrap());
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_with_a_name_is_shared_by_who_names_it_and_has_no_limit_of_uses() {
    let web = counting_site(1_000);
    let report = one_by_one(Named, &web, 2).set("session_max_uses", 5).run().await.unwrap();
    assert_eq!(report.pages, 64);
    let of: BTreeMap<String, (String, Option<String>)> = web
        .requests()
        .iter()
        .map(|fetched| (fetched.request.url.path().to_owned(), (session(fetched), cookie(&fetched.request))))
        .collect();
    let visitors: BTreeSet<_> = (1..60).map(|n| of[&format!("/ann/{n}")].clone()).collect();
    assert_eq!(visitors.len(), 1, "one visitor: {visitors:?}");
    assert_eq!(of["/ann/child"], of["/ann/1"], "links of its pages stay in it");
    assert_eq!((of["/ben"].0.as_str(), of["/outside"].0.as_str(), of["/jar"].0.as_str()), ("ben", "", ""));
    assert_eq!(report.stat("session/created"), 2);
}

#[tokio::test(start_paused = true)]
async fn named_sessions_beyond_the_limit_end_and_that_is_told() {
    let web = counting_site(1_000);
    let requests: Vec<_> = (0..30)
        .map(|n| Request::parse(&format!("http://a.test/{n}")).unwrap().meta("session", format!("user {n}")))
        .collect();
    struct Many(Vec<Request>);
    impl Spider for Many {
        type Item = ();

        fn start(&self) -> Start {
            Start::new(self.0.clone().into_iter().map(Ok))
        }

        fn parse(&self, _: &Page, _: &mut Output<()>) -> Result<()> {
            Ok(())
        }
    }
    let report = one_by_one(Many(requests), &web, 1).set("session_max_named", 10).run().await.unwrap();
    assert_eq!((report.pages, report.stat("session/retired/evicted")), (30, 20));
    assert_eq!(report.component::<Cookies>().unwrap().jars().names().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_proxy_dies_gives_way_to_one_with_a_proxy_that_works() {
    let web = ScriptedDownloader::new().otherwise(|request, _| {
        let dead =
            request.meta_text(meta::PROXY).is_some_and(|proxy| proxy.contains("p1") || proxy.contains("p2"));
        if dead { Reply::error(FetchErrorKind::Proxy) } else { Reply::html("x") }
    });
    let log = Log::default();
    let report = one_by_one(links(seeds(40)), &web, 3)
        .set("proxy_pool", vec!["http://p1:1", "http://p2:1", "http://p3:1"])
        .set("proxy_backoff_base", 3_600.0)
        .set("proxy_backoff_max", 3_600.0)
        .observer(log.clone())
        .run()
        .await
        .unwrap();
    assert_eq!(
        (report.pages, log.dropped().len(), report.stat("retry/count")),
        (40, 0, 0),
        "{:?}",
        log.dropped()
    );
    assert_eq!((report.stat("proxy/taken_out"), report.stat("proxy/switched")), (2, 2));
    let sessions: BTreeMap<String, BTreeSet<String>> =
        web.requests().iter().fold(BTreeMap::new(), |mut all, fetched| {
            let proxy = fetched.request.meta_text(meta::PROXY).unwrap().to_owned();
            all.entry(session(fetched)).or_insert_with(BTreeSet::new).insert(proxy);
            all
        });
    assert!(
        sessions.values().all(|proxies| proxies.len() == 1),
        "a session never changes its proxy: {sessions:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_named_session_goes_on_with_another_proxy() {
    let web = ScriptedDownloader::new().otherwise(|request, _| {
        let dead = request.meta_text(meta::PROXY).is_some_and(|proxy| proxy.contains("p1"));
        if dead { Reply::error(FetchErrorKind::Proxy) } else { Reply::html("x") }
    });
    let report =
        one_by_one(Named, &web, 1).set("proxy_pool", vec!["http://p1:1", "http://p2:1"]).run().await.unwrap();
    assert_eq!((report.pages, report.stat("session/proxy_changed")), (64, 1));
}

#[tokio::test(start_paused = true)]
async fn sessions_end_after_their_uses_and_their_time() {
    let web = counting_site(1_000).latency(Duration::from_secs(1));
    let report = one_by_one(links(seeds(100)), &web, 2).set("session_max_uses", 10).run().await.unwrap();
    assert_eq!((report.stat("session/created"), report.stat("session/retired/uses")), (10, 8));
    let web = counting_site(1_000).latency(Duration::from_secs(1));
    let report = one_by_one(links(seeds(100)), &web, 2)
        .set("session_max_age", 20.0)
        .set("session_max_uses", 0)
        .run()
        .await
        .unwrap();
    assert_eq!(report.pages, 100);
    assert!((8..=12).contains(&report.stat("session/created")), "{report}");
}

fn with_job<S: Spider>(builder: CrawlerBuilder<S>, directory: &Path) -> CrawlerBuilder<S> {
    builder.job(Job::open(directory.join("job"), Backend::Redb).unwrap())
}

#[tokio::test(start_paused = true)]
async fn sessions_and_their_cookies_survive_a_restart_of_the_job() {
    let dir = tempfile::tempdir().unwrap();
    let web = login_site();
    let run = |seeds: Vec<String>| {
        let rules = SessionRules::new().on_new_session(|session| log_in(session, "right"));
        let builder = one_by_one(links(seeds), &web, 3)
            .component(move |settings| Sessions::with_rules(settings, rules));
        with_job(builder.set("proxy_pool", vec!["http://ann:SECRET@p1:1"]), dir.path()).run()
    };
    let first = run(seeds(20)).await.unwrap();
    let names = |report: &huntsman::CrawlReport| -> Vec<(String, u64)> {
        let sessions = report.component::<Sessions>().unwrap().sessions();
        sessions.into_iter().map(|session| (session.name, session.uses)).collect()
    };
    let shares = names(&first);
    assert!(shares.iter().map(|(_, uses)| uses).sum::<u64>() == 20 && shares.len() == 3, "{shares:?}");
    let again = run((20..41).map(|n| format!("http://a.test/{n}")).collect()).await.unwrap();
    assert_eq!(again.stat("session/setups"), 3, "nobody logs in again: the count is that of both runs");
    assert_eq!(web.count("http://a.test/login"), 6);
    let uses: u64 = names(&again).iter().map(|(_, uses)| uses).sum();
    assert_eq!((again.pages, uses, names(&again).len()), (41, 41, 3));
    let stored = std::fs::read(dir.path().join("job/store.redb")).unwrap();
    assert!(!stored.windows(6).any(|part| part == b"SECRET"), "no password of a proxy is stored");
}

#[tokio::test(start_paused = true)]
async fn seeded_jars_and_sessions_do_not_mix() {
    let web = counting_site(100);
    let jars = CookieJars::new();
    let same = jars.clone();
    one_by_one(links(seeds(10)), &web, 2)
        .component(move |settings| Cookies::with_jars(settings, same))
        .run()
        .await
        .unwrap();
    assert_eq!(jars.names(), ["session #1", "session #2"], "the jar without a name stays empty");
}
