//! A downloader middleware of your own: it gives up on a host after too many server errors.
//!
//! Starts its own site: `cargo run --example own_middleware`.

use std::collections::HashMap;
use std::sync::Mutex;

use huntsman::HostKey;
use huntsman::prelude::*;
use huntsman_testkit::{Answer, Site};

/// Gives up on a host after `limit` server errors.
struct GiveUp {
    limit: u32,
    errors: Mutex<HashMap<HostKey, u32>>,
}

impl DownloaderMiddleware for GiveUp {
    // Between RobotsTxt (100) and Retry (550): this middleware sees every attempt, and drops requests before anything
    // is sent.
    fn order(&self) -> i32 {
        570
    }

    async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
        let errors = self.errors.lock().expect("no holder panics").get(&request.host()).copied().unwrap_or(0);
        if errors >= self.limit {
            cx.stats().inc("give_up/dropped");
            return Ok(OnRequest::drop("host_is_failing"));
        }
        Ok(OnRequest::Continue)
    }

    async fn process_response(
        &self,
        request: &Request,
        response: &mut Response,
        _: &Context,
    ) -> Result<OnResponse> {
        if response.status.is_server_error() {
            *self.errors.lock().expect("no holder panics").entry(request.host()).or_default() += 1;
        }
        Ok(OnResponse::Continue)
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let links: String = (0..20).map(|n| format!("<a href=/broken/{n}>{n}</a>")).collect();
    let mut site = Site::builder().page("/", links);
    for n in 0..20 {
        site = site.answer(&format!("/broken/{n}"), Answer::status(500));
    }
    let site = site.start().await;

    let spider = spider_fn([site.url("/").to_string()], |page: &Page, out: &mut Output<()>| {
        out.follow_links(page);
        Ok(())
    });
    let report = huntsman::crawl(spider)
        .profile(Profile::Test)
        .set("allow_addresses", vec![format!("127.0.0.1:{}", site.port())])
        .set("retry_enabled", false)
        // With one request at a time, a response has passed the middlewares before the next request begins; with more,
        // some are on their way when the limit is reached.
        .concurrency(1)
        .middleware(GiveUp { limit: 5, errors: Mutex::default() })
        .run()
        .await?;

    println!("{report}");
    println!("dropped by the middleware: {}", report.stat("give_up/dropped"));
    assert_eq!(report.stat("give_up/dropped"), 15);
    assert_eq!(report.stat("drops/skipped/host_is_failing"), 15);
    Ok(())
}
