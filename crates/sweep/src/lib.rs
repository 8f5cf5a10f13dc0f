//! Finds the sources of copied texts: of one article, or of every page of a site.
//!
//! A [`CandidateSource`] finds pages that an article may be taken from: its own links, given URLs, search engines, a
//! full-text index of earlier crawls, an index of near-duplicates. A [`Workspace`] reads these pages with a polite crawl
//! and compares each with the article ([`Checked`]). A [`Sweep`] does that for every article that a crawl finds, and a [`SiteSweep`] writes
//! the results to files, with a report in HTML.
//!
//! This crate is not the comparison (that is [`huntsman_detect::copyvio`]): it brings both texts together. It is not a
//! command and prints nothing: `huntsman copyvio` and `huntsman sweep` are command lines around it, and `huntsman-serve`
//! is a server around it. It does not judge: a result says what two texts share, and a person decides what that means.
//!
//! ```
//! use std::sync::Arc;
//!
//! use huntsman_detect::copyvio::Text;
//! use huntsman_sweep::{Candidate, CandidateSource, CheckPlan, FindFuture, Subject, Workspace};
//!
//! /// Pages whose texts are at hand, so that nothing is fetched.
//! #[derive(Debug)]
//! struct Archive;
//!
//! impl CandidateSource for Archive {
//!     fn name(&self) -> &str {
//!         "archive"
//!     }
//!
//!     fn queries(&self, _: &Subject) -> Vec<String> {
//!         vec![String::new()]
//!     }
//!
//!     fn find<'a>(&'a self, _: &'a Subject, _: &'a str) -> FindFuture<'a> {
//!         let text = "The old mill on the bank of the river ground corn for nine villages until the flood of 1923.";
//!         let page = Candidate { text: Some(Text::new(text)), ..Candidate::new("https://example.org/mill") };
//!         Box::pin(async { Ok(vec![page]) })
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> huntsman_crawler::Result<()> {
//! let article = Subject::new(Text::new(
//!     "Until 1923 the old mill on the bank of the river ground corn for nine villages, and then came the flood.",
//! ));
//! let workspace = Workspace::start(None, |crawler| crawler)?;
//! let checked = workspace.check(Arc::new(article), &[Arc::new(Archive)], CheckPlan::default()).await?;
//! let evidence = &checked.found["https://example.org/mill"].evidence;
//! assert!(evidence.matched >= 10.0, "{} words are in the source", evidence.matched);
//! workspace.finish().await?;
//! # Ok(()) }
//! ```

// Files are written with `huntsman_files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod cache;
mod candidates;
mod check;
mod checked;
mod comparison;
mod cores;
mod findings;
mod full_text;
mod linked_text;
mod memory;
mod near_candidates;
mod pages;
mod pair_finder;
mod pdf;
#[cfg(feature = "pdf")]
pub mod pdf_child;
mod pdf_facts;
mod pending;
mod plan;
mod queries;
mod reading;
mod recent;
mod report;
mod running_check;
mod search;
pub mod service;
pub mod side_by_side;
mod site_sweep;
mod source_reader;
mod sources;
mod sweep;
#[cfg(feature = "text-index")]
mod text_index;
mod text_only;
mod workspace;

pub use cache::CheckCache;
pub use candidates::{Candidate, CandidateError, CandidateSource, FindFuture, GivenUrls, Links, Subject};
pub use checked::{Checked, Found};
pub use comparison::{Compared, Comparison};
pub use findings::{Findings, whole_articles};
pub use linked_text::LinkedText;
pub use memory::{Memory, MemoryPermit};
pub use near_candidates::NearCandidates;
pub use pages::{Copied, Copyvio};
pub use pair_finder::{FoundPair, PairCounts, PairFinder};
pub use pdf::{PdfError, PdfProcess, PdfText};
pub use pdf_facts::PdfFacts;
pub use pending::PendingArticles;
pub use plan::CheckPlan;
pub use reading::{NoText, Reading, TextKind, external_links, links_to_others};
pub use report::{SweepTotals, write_report};
pub use search::{Engine, SearchEngine};
pub use site_sweep::{SiteSweep, SweepFiles, article_of};
pub use source_reader::SourceResult;
pub use sweep::Sweep;
#[cfg(feature = "text-index")]
pub use text_index::{IndexPages, IndexedPage, TextIndex, TextIndexCheck, TextIndexError};
pub use workspace::Workspace;
