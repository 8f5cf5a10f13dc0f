//! A crawl as several visitors: each session logs in once, has its own cookies, headers and proxy, and ends if the site blocks it.
//!
//! Starts its own site and proxies: `cargo run --example sessions`.

use std::collections::HashMap;
use std::sync::Mutex;

use huntsman::middleware::{NewSession, ProxyPool, SessionRules, Sessions};
use huntsman::prelude::*;
use huntsman_testkit::{Answer, ForwardProxy, RunningSite, Site, SiteRequest};
use serde_json::json;

/// The site blocks a visitor after this many pages.
const PATIENCE: usize = 15;

/// A shop that shows its pages to users who are logged in, and blocks those who see too many of them.
async fn shop() -> RunningSite {
    let seen: Mutex<HashMap<String, usize>> = Mutex::default();
    let visitor = |asked: &SiteRequest| asked.header("cookie").map(str::to_owned);
    Site::builder()
        .page("/login", "<form id=login method=post action=/welcome><input name=user><input name=password type=password></form>")
        .route("/welcome", |asked| {
            Answer::html("<p>Log out").header("Set-Cookie", format!("visitor=connection{}", asked.connection))
        })
        .page("/", (0..60).map(|n| format!("<a href=/product/{n}>{n}</a>")).collect::<String>())
        .route("/product/*", move |asked| {
            let Some(visitor) = visitor(asked) else { return Answer::status(401) };
            let mut seen = seen.lock().expect("no handler panics");
            let count = seen.entry(visitor).or_default();
            *count += 1;
            if *count > PATIENCE { Answer::status(403) } else { Answer::html("<h1>A mill</h1>") }
        })
        .start()
        .await
}

/// Called before a session is used; its requests have the cookies, the headers and the proxy of the session.
async fn log_in(session: NewSession, login: Url) -> Result<()> {
    let form = session
        .read(Request::get(login), |page| {
            Form::of(page, "#login")?.set("user", "ann")?.set("password", "secret")?.request()
        })
        .await?;
    session
        .read(form, |page| match page.text().contains("Log out") {
            true => Ok(()),
            false => Err(Error::msg("the login was refused")),
        })
        .await
}

#[tokio::main]
async fn main() -> Result<()> {
    let site = shop().await;
    let proxies = [ForwardProxy::start(site.port()), ForwardProxy::start(site.port())];

    let spider = spider_fn([site.url("/")], |page: &Page, out: &mut Output<String>| {
        if let Some(title) = page.css("h1::text")?.get() {
            out.item(title);
        }
        out.follow_links(page);
        Ok(())
    });
    let login = site.url("/login");
    let rules = SessionRules::new().on_new_session(move |session| log_in(session, login.clone()));
    let report = huntsman::crawl(spider)
        .set("allow_addresses", vec![format!("127.0.0.1:{}", site.port())])
        .set("robotstxt_obey", false)
        .delay(Duration::from_millis(5))
        .set("session_pool_size", 3)
        .set(
            "session_headers",
            json!([{"Accept-Language": "de"}, {"Accept-Language": "fr"}, {"Accept-Language": "it"}]),
        )
        .set("proxy_pool", proxies.iter().map(|proxy| proxy.url("")).collect::<Vec<_>>())
        .set("retry_backoff_base", 0.01)
        .component(move |settings| Sessions::with_rules(settings, rules))
        .run()
        .await?;

    println!("{report}");
    for key in ["session/created", "session/setups", "session/blocked", "session/retried"] {
        println!("{key}: {}", report.stat(key));
    }
    let sessions = report.component::<Sessions>().expect("session_pool_size is set");
    for session in sessions.sessions() {
        println!(
            "session {} has had {} requests through {}",
            session.name,
            session.uses,
            session.proxy.unwrap_or_default()
        );
    }
    let pool = report.component::<ProxyPool>().expect("proxy_pool is set");
    for proxy in pool.proxies() {
        println!("proxy {}: {} requests, {} failures", proxy.name, proxy.requests, proxy.failures);
    }
    assert_eq!((report.stat("item_scraped_count"), report.stat("session/gave_up")), (60, 0));
    Ok(())
}
