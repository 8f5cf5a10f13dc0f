//! Checks on demand, with bounded resources: what a server needs to compare and check articles for its clients.
//!
//! A [`Checker`] takes orders from any number of callers. It reads the article that an order names (a text, a URL, a
//! page of a wiki) and compares it with one source ([`Checker::compare`]) or looks for its sources
//! ([`Checker::search`]). A limited number of orders runs at once, and all of them share the memory for comparisons;
//! further orders wait, and beyond four times as many are refused. Errors are [`Refusal`]s: codes in the manner of
//! Earwig's Copyvio Detector with a sentence each.
//!
//! This module knows no HTTP: `huntsman serve` is a server around it.
//!
//! ```no_run
//! # async fn run() -> huntsman_crawler::Result<()> {
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use huntsman_crawler::Request;
//! use huntsman_sweep::service::{ArticleOrder, ArticleReader, Checker, SearchOrder};
//! use huntsman_sweep::{CheckPlan, Links, Workspace};
//!
//! let workspace = Workspace::start(None, |crawler| crawler)?;
//! let reader = ArticleReader::start(None, Duration::from_secs(20), |crawler| crawler)?;
//! let checker = Checker::new(workspace, reader, CheckPlan::default(), vec![Arc::new(Links)], 8);
//! let article = ArticleOrder::Page(Request::parse("https://example.org/mill")?.url);
//! match checker.search(SearchOrder::of(article), false).await {
//!     Ok(found) => println!("{:?}", found.comparison.result.best()),
//!     Err(refusal) => println!("{}: {refusal}", refusal.code),
//! }
//! # Ok(()) }
//! ```

mod article;
mod checker;
mod order;
mod reader;
mod refusal;
mod wiki;

pub use article::{Article, NamedPage};
pub use checker::{Checker, OrderResult, PASTED};
pub use order::{ArticleOrder, CompareOrder, SearchOrder, SourceOrder};
pub use reader::{ArticleReader, FetchedArticle, ReadError};
pub use refusal::Refusal;
pub use wiki::{Wiki, Wikis};
