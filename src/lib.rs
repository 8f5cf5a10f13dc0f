//! Huntsman: a polite, fast crawler framework that recognises duplicate content while it crawls.
//!
//! This crate is the facade: it combines a spider with the HTTP client and the built-in, polite middlewares. It has no
//! algorithm of its own: each of its modules is a crate that can be used without it. The command line is another crate,
//! `huntsman-cli`.
//!
//! ```no_run
//! use huntsman::prelude::*;
//!
//! struct Titles;
//!
//! impl Spider for Titles {
//!     type Item = (String, String);
//!
//!     fn start(&self) -> Start {
//!         Start::urls(["https://example.org/"])
//!     }
//!
//!     fn parse(&self, page: &Page, out: &mut Output<Self::Item>) -> Result<()> {
//!         out.item((page.url().to_string(), page.title().unwrap_or_default().to_owned()));
//!         out.follow_links(page);
//!         Ok(())
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<()> {
//!     let report = huntsman::crawl(Titles)
//!         .set("scope", "host")
//!         .pipeline(JsonLines::create("titles.jsonl")?)
//!         .run()
//!         .await?;
//!     println!("{report}");
//!     Ok(())
//! }
//! ```

// Files are written through `huntsman_files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

#[cfg(doctest)]
mod guide;
#[cfg(feature = "spider")]
pub mod spider;

pub use huntsman_audit as audit;
pub use huntsman_audit::audit;
#[cfg(feature = "bulk")]
pub use huntsman_bulk as bulk;
#[cfg(feature = "cluster")]
pub use huntsman_cluster as cluster;
pub use huntsman_crawler::*;
pub use huntsman_dedup as dedup;
pub use huntsman_detect as detect;
pub use huntsman_files as files;
pub use huntsman_html as html;
#[cfg(feature = "project")]
pub use huntsman_jobs as jobs;
pub use huntsman_metrics as metrics;
pub use huntsman_middleware as middleware;
#[cfg(feature = "render")]
pub use huntsman_middleware::browser;
pub use huntsman_middleware::{DeclaredItem, DeclaredSpider};
pub use huntsman_output as output;
#[cfg(feature = "project")]
pub use huntsman_project as project;
#[cfg(feature = "project")]
pub use huntsman_project::Project;
pub use huntsman_serve as serve;
pub use huntsman_store as store;
pub use huntsman_sweep as sweep;
pub use huntsman_text as text;
#[cfg(feature = "urlfrontier")]
pub use huntsman_url_frontier as url_frontier;
pub use huntsman_warc as warc;

/// The names that most spiders need.
pub mod prelude {
    pub use std::time::Duration;

    pub use huntsman_crawler::{
        ConcurrentPipeline, Context, CrawlReport, CsvFeed, DownloaderMiddleware, Error, Form, Item,
        LinkExtractor, OnException, OnFollow, OnItem, OnPage, OnRequest, OnResponse, Output, Page, PageNode,
        Pipeline, Plugin, Profile, Request, Response, Result, Rule, Rules, Spider, SpiderMiddleware, Start,
        XPathScope, XmlFeed, spider_fn,
    };
    #[cfg(feature = "render")]
    pub use huntsman_middleware::browser::Rendering;
    pub use huntsman_middleware::sinks::{Csv, Json, JsonLines};
    pub use huntsman_middleware::{
        Faults, FromWarcBuilder, ItemChecks, Media, MediaItem, StoredFile, Validate, Validation, Warc,
        WarcBuilder,
    };
    #[cfg(feature = "render")]
    pub use huntsman_middleware::{RenderRequest, RenderedPage};
    #[cfg(feature = "project")]
    pub use huntsman_project::{Arguments, Project};
    pub use serde::{Deserialize, Serialize};
    pub use url::Url;
}

/// A crawler for a spider with the polite defaults: the HTTP client, robots.txt, retries, redirects, cookies and the
/// other built-in middlewares, in Scrapy's order.
pub fn crawl<S: Spider>(spider: S) -> CrawlerBuilder<S> {
    CrawlerBuilder::new(spider).plugin(huntsman_middleware::Defaults).downloader_with(HttpDownloader::new)
}
