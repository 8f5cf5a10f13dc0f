//! A [`Frontier`](huntsman_crawler::Frontier) in a [URLFrontier](https://github.com/crawler-commons/url-frontier) server, so that a crawl joins
//! the crawlers of other kinds that work off its queues.
//!
//! The server keeps a queue of URLs for each politeness slot of a job, and serves a URL to one crawler at a time: for twice the time that a
//! page may take, no other crawler gets it. What is found on a page is stored before the page is said to be done, so a page whose node died is
//! fetched again, with its links, and nothing is lost. The request itself, with its callback, its depth and its cookies, is kept with the
//! URL; a URL that another crawler has put is a plain GET.
//!
//! It promises less than the queue in a Redis server (`huntsman-cluster`):
//!
//! - Requests leave in the order in which they were found, in whole seconds; there are no priorities, and start requests do not go last.
//! - Times are whole seconds. A host with a delay is served one URL at a time, about one in its delay rounded up and a second.
//! - A URL is known or not within its slot. An unfiltered request cannot be queued, except as a retry of the request that is fetched; the
//!   engine tells of each that is left out.
//! - Two nodes may fetch a page, and both records count.
//! - Another crawler that is served a request of this one sees its URL only.
//!
//! ```no_run
//! use huntsman_crawler::Order;
//! use huntsman_url_frontier::{UrlFrontier, UrlFrontierSettings};
//!
//! # fn run() -> huntsman_crawler::Result<()> {
//! let settings: UrlFrontierSettings = "urlfrontier://queue.example:7071".parse()?;
//! let frontier = UrlFrontier::join(settings.job("books"), Order::Bfs)?;
//! // CrawlerBuilder::new(spider).frontier(frontier)
//! # drop(frontier);
//! # Ok(()) }
//! ```

mod client;
mod error;
mod frontier;
mod held;
mod item;
mod link;
mod message;
mod node;
mod put;
mod settings;
#[cfg(feature = "test-server")]
pub mod test_server;

pub use error::{Error, ErrorKind};
pub use frontier::UrlFrontier;
pub use settings::UrlFrontierSettings;
