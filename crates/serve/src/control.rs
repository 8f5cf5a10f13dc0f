//! The control of a running crawl: what people and programs can see of it and do to it, as an API, and as a page over the same API.
//!
//! | request, below `/api` | answer |
//! | --- | --- |
//! | `GET /status` | whether the crawl runs, and its numbers |
//! | `GET /stats` | all stats by key |
//! | `GET /hosts?limit=100` | hosts with queue, delay, state of the slot and last error |
//! | `GET /queue?host=NAME&limit=100` | the next requests of the queue |
//! | `GET /errors` | the last requests that failed, newest first |
//! | `GET /overview?limit=20` | all of these, with pages and items a minute |
//! | `POST /pause`, `/resume`, `/stop` | the status after it |
//! | `POST /add {"url"}` | `outcome`: `queued`, `duplicate`, or `refused` with the reason |
//! | `POST /remove {"host"}` | `queued`: how many requests its queue had, which are dropped |
//! | `POST /delay {"host", "seconds", "concurrency"}` | the host after it; one of the two values may be left out |
//!
//! All of it needs the token, as [`local`](crate::local) says. Nothing of it runs code: a URL that is added is treated as one that a
//! component has pushed, so scope, filter of duplicates, robots.txt and the address guard hold for it.
//!
//! ```no_run
//! use huntsman_crawler::{CrawlerBuilder, HttpDownloader, Output, Page, Result, spider_fn};
//! use huntsman_serve::control::{Monitor, RecentErrors, serve_crawl};
//! use huntsman_serve::local::LocalServer;
//!
//! # async fn crawl() -> Result<()> {
//! let spider = spider_fn(["https://example.org/"], |_: &Page, _: &mut Output<()>| Ok(()));
//! let errors = RecentErrors::default();
//! let crawler = CrawlerBuilder::new(spider).downloader_with(HttpDownloader::new).observer(errors.clone()).build()?;
//! let mut server = LocalServer::bind(0).await?;
//! server.publish("control.json".as_ref())?;
//! let control = tokio::spawn(serve_crawl(server, Monitor::new(crawler.handle(), errors)));
//! crawler.run().await?;
//! control.abort();
//! # Ok(())
//! # }
//! ```

mod api;
mod monitor;
mod recent;
#[cfg(test)]
mod tests;

use maud::{Markup, html};
use tokio::sync::watch;

use crate::local::{LocalPage, LocalServer};

pub use monitor::Monitor;
pub use recent::{RecentError, RecentErrors};

/// Serves the control of a crawl until the future is dropped.
pub async fn serve_crawl(server: LocalServer, monitor: Monitor) {
    let page = LocalPage { title: "Crawl", content: content(), script: include_str!("control/page.js") };
    let (_running, stop) = watch::channel(false);
    tokio::select! {
        () = monitor.sample() => {}
        () = server.serve(api::routes(monitor.clone()), page, stop) => {}
    }
}

fn content() -> Markup {
    let tiles = [
        ("pages", "pages"),
        ("pages_per_minute", "pages a minute"),
        ("items", "items"),
        ("items_per_minute", "items a minute"),
        ("queued", "queued"),
        ("in_flight", "in flight"),
        ("hosts_active", "active hosts"),
        ("failed", "failed"),
        ("skipped", "skipped"),
        ("wire_bytes", "received"),
    ];
    let head = |names: &[&str]| html! { thead { tr { @for name in names { th { (name) } } } } tbody {} };
    html! {
        div.bar {
            h1 { "Crawl" } span #state .state {} span #elapsed {}
            button #pause type="button" { "Pause" } button #resume type="button" { "Resume" }
            button #stop type="button" { "Stop" }
        }
        div.tiles { @for (id, name) in tiles { div { b #(id) {} span { (name) } } } }
        svg viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label="pages a minute over the last minutes" {
            polyline #chart points="" {}
        }
        div.bar {
            input #url .wide type="url" placeholder="https://example.org/page" aria-label="URL";
            button #add type="button" { "Add URL" }
        }
        h2 { "Hosts" }
        table #hosts {
            (head(&["host", "state", "queued", "in flight", "at once", "delay, s", "requests", "p95, ms", "last error", ""]))
        }
        div.bar {
            input #host .wide type="text" placeholder="host" aria-label="host";
            input #delay .short type="number" min="0" step="0.1" placeholder="delay, s" aria-label="delay in seconds";
            input #concurrency .short type="number" min="1" step="1" placeholder="at once" aria-label="requests at once";
            button #set type="button" { "Set" }
        }
        h2 { "Queue" }
        table #queue { (head(&["next URLs, longest queue first", "depth", "priority", "not before"])) }
        h2 { "Errors" }
        table #errors { (head(&["time", "URL", "reason"])) }
    }
}
