//! A small HTTP/1.1 server whose clients cannot exhaust it, and the metrics of a crawl on it.
//!
//! Routes are [`axum::Router`]s. [`serve`] adds what `axum::serve` leaves to the program: a limit on open connections with a fair share for
//! each address, deadlines for heads, bodies and slow readers, and limits on the memory of all bodies ([`Limits`]). [`HostNames`] refuses
//! requests for other host names, which protects a server on loopback from pages of the web. [`MetricsServer`] shows the numbers of a
//! crawl to Prometheus. With the feature `control`, the module `control` lets people and programs look at a running crawl and steer it, on the
//! guarded server of the module `local`. With the feature `checks`, the module `checks` has the service of `huntsman serve`: copyvio checks for people
//! and programs.
//!
//! The crate has no TLS and no HTTP/2 (a proxy in front of it has both), and no accounts.
//!
//! ```no_run
//! use huntsman_crawler::{CrawlerBuilder, HttpDownloader, Output, Page, Result, Spider, Start};
//! use huntsman_serve::{MetricsServer, Reach};
//!
//! struct Links;
//!
//! impl Spider for Links {
//!     type Item = ();
//!
//!     fn start(&self) -> Start {
//!         Start::urls(["https://example.org/"])
//!     }
//!
//!     fn parse(&self, page: &Page, out: &mut Output<()>) -> Result<()> {
//!         out.follow_links(page);
//!         Ok(())
//!     }
//! }
//!
//! # async fn crawl() -> Result<()> {
//! let crawler = CrawlerBuilder::new(Links).downloader_with(HttpDownloader::new).build()?;
//! let metrics = MetricsServer::bind("127.0.0.1:9100".parse()?, Reach::Loopback).await?;
//! tokio::spawn(metrics.serve_crawl(crawler.handle()));
//! println!("{}", crawler.run().await?);
//! # Ok(())
//! # }
//! ```

// Files are written with `huntsman_files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod access;
#[cfg(feature = "checks")]
pub mod checks;
#[cfg(feature = "control")]
pub mod control;
#[cfg(feature = "control")]
pub mod local;
mod metrics;
mod server;

pub use access::{Access, AccessError};
pub use metrics::{BindError, CrawlNumbers, MetricsServer, Reach, stats_families};
pub use server::{ActiveRequest, DRAIN_TIME, HostNames, Limits, Rejection, serve, serve_pages, serve_routes};
