//! A crawl with a directory of its own, as `huntsman crawl` has it: records, drops, a job that goes on after a kill, and a report to
//! open in a browser.
//!
//! Starts its own site: `cargo run --example output_directory`.

use huntsman::logging::LogCount;
use huntsman::output::{EarlierRun, HTML_REPORT, Plan, Report, Run, State, html_report};
use huntsman::prelude::*;
use huntsman::{Backend, Timestamp};
use huntsman_testkit::sites;

/// A line of `pages.jsonl`. The HTML report reads these fields; there may be more.
#[derive(Serialize)]
struct Record {
    url: String,
    final_url: String,
    status: u16,
    depth: u16,
    bytes: usize,
    title: Option<String>,
    fetched_at: String,
    elapsed_ms: f64,
}

fn record(page: &Page, cx: &Context) -> Record {
    let (request, response) = (page.request(), page.response());
    Record {
        url: request.requested_url().to_owned(),
        final_url: page.url().to_string(),
        status: response.status.as_u16(),
        depth: request.depth,
        bytes: response.body.len(),
        title: page.title().map(str::to_owned),
        fetched_at: cx.now().to_rfc3339(),
        elapsed_ms: response.timings.total.as_secs_f64() * 1_000.0,
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let site = sites::linked(50, 6).start().await;
    let temporary = tempfile::tempdir()?;
    let path = temporary.path().join("crawl");
    let seed = site.url("/");

    // What may be done with the directory: it is new, its run goes on, or its run is finished.
    let plan = match Plan::of(&path, EarlierRun::Continue, Run::Crawl, Backend::default())? {
        Plan::Use(plan) => plan,
        Plan::Finished(status) => {
            println!("there is nothing to do: {} pages are there", status.pages);
            return Ok(());
        }
    };
    let mut directory = plan.create(&seed, Timestamp::wall().to_rfc3339())?;

    let spider = spider_fn([seed.to_string()], |page: &Page, out: &mut Output<Record>| {
        out.item(record(page, out.context()));
        out.follow_links(page);
        Ok(())
    });
    let builder = huntsman::crawl(spider)
        .profile(Profile::Test)
        .set("allow_addresses", vec![format!("127.0.0.1:{}", site.port())]);
    let (builder, drops) = directory.attach(builder)?;
    let crawler = builder.build()?;

    // From here on the files count: the same program goes on with them after a kill.
    directory.begin()?;
    let report = Report::of(crawler.run().await?, &LogCount::default());
    drops.finish()?;
    let page = html_report(directory.path(), &report)?;
    directory.write(HTML_REPORT, page.as_bytes())?;
    directory.finish(State::Finished, &report.finish_reason, report.pages, &report.to_json()?)?;

    println!("{}", directory.file(HTML_REPORT).display());
    assert!(page.contains("Crawl report") && report.pages == 50);
    Ok(())
}
