//! A service that fetches on demand: previews of links, as politely as a crawl, however many users ask at once.
//!
//! Starts its own site: `cargo run --example client`.

use huntsman::prelude::*;
use huntsman::{ClientError, CrawlClient, OnDemand};
use huntsman_testkit::{Answer, Site};

/// What a user sees of a link.
#[derive(Clone, Debug)]
struct Preview {
    title: String,
    words: usize,
}

/// Called on a worker thread of the crawl, once for each page.
fn preview(page: &Page, _: &Context) -> Preview {
    Preview { title: page.title().unwrap_or("-").to_owned(), words: page.words().len() }
}

/// Handles one user's question. Each caller decides how long it waits.
async fn ask(client: &CrawlClient<Preview>, url: &Url) -> String {
    let fetch = client.fetch(Request::get(url.clone()));
    match tokio::time::timeout(Duration::from_secs(2), fetch).await {
        Ok(Ok(Preview { title, words })) => format!("{title}, {words} words"),
        // There is no page: robots.txt forbids it, the site failed, or a limit was reached. For a 404, the error
        // carries the response.
        Ok(Err(error @ ClientError::Dropped { .. })) => format!("no preview: {error}"),
        Ok(Err(error)) => format!("the service is closing: {error}"),
        // Dropping the future cancelled the fetch: no work goes on for a user who no longer waits.
        Err(_) => "no preview in time".to_owned(),
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let site = Site::builder()
        .robots("User-agent: *\nDisallow: /private\n")
        .page("/mill", "<title>The old mill</title><p>It stands on the bank of the river.")
        .page("/private", "<title>Nobody reads this</title>")
        .route("/slow", |_| Answer::html("late").delay(Duration::from_secs(60)))
        .start()
        .await;

    // The builder accepts everything that any crawl accepts: settings, middlewares, observers, a job.
    let crawl = huntsman::crawl(OnDemand::reading(preview))
        .set("allow_addresses", vec![format!("127.0.0.1:{}", site.port())])
        .delay(Duration::from_millis(100));
    let client = CrawlClient::start(crawl)?;

    // Twenty users ask at once, most of them for the same page, which is fetched once.
    let paths = ["/mill", "/missing", "/private", "/slow"];
    let mut users = tokio::task::JoinSet::new();
    for user in 0..20_usize {
        let (client, url) = (client.clone(), site.url(paths[user.saturating_sub(16)]));
        users.spawn(async move { (user, ask(&client, &url).await) });
    }
    let mut answers = users.join_all().await;
    answers.sort();
    for (user, answer) in answers.iter().filter(|(user, _)| *user >= 15) {
        println!("user {user:2}: {answer}");
    }
    println!("{}", client.finish().await?);
    assert_eq!((site.count("/mill"), site.count("/private")), (1, 0));
    Ok(())
}
