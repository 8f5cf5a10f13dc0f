//! Audits of sites: what is wrong with the pages, links and answers of a site, where, and how to mend it.
//!
//! An audit is a crawl with rules. While it crawls, each page is scanned once, and [`Rule`]s judge it; what the site as a whole needs is kept as a
//! [`Record`] of each answer. After the crawl the rules judge the [`Site`], and the findings become [`Issue`]s with their places in the source.
//! Each [`Code`] says why an issue matters and what to change.
//!
//! ```
//! # use huntsman_testkit::{Reply, ScriptedDownloader};
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> huntsman_crawler::Result<()> {
//! # let web = ScriptedDownloader::pages([("https://site.example/", "<a href=/gone>Prices</a>")]);
//! let audit = huntsman_audit::audit(["https://site.example/"]).downloader(web).run().await?;
//! let broken = audit.of("broken-internal-link")?;
//! assert_eq!(broken[0].url, "https://site.example/gone");
//! # Ok(()) }
//! ```
//!
//! The crate has no engine and no terminal: it stands on the crawler like any spider, and the command `huntsman audit` prints what it finds.

// Files are written by `huntsman_files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod answer_record;
mod audit;
mod budget;
mod causes;
mod choices;
mod code;
mod compare;
mod custom;
mod documents;
mod earlier;
mod edges;
mod exports;
mod facts;
mod failure;
mod feed;
mod finding;
mod found;
mod gate;
mod given;
mod history;
mod hosts;
mod issue;
mod issues;
mod junit;
mod likeness;
mod links;
mod links_table;
mod lists;
mod logs;
mod look;
mod markdown;
mod measure;
mod page;
mod place;
mod reading;
mod record;
mod refusals;
mod rendering;
mod report;
mod robots_files;
mod rule;
mod rules;
mod score;
mod second_look;
mod segment;
mod site;
mod soft_404;
mod sorted;
mod spider;
mod structured;
mod summary;
mod tables;
mod tls;
mod xml;

pub use audit::{Audit, AuditBuilder, AuditOptions, settings};
pub use budget::{Budget, BudgetFailure};
pub use code::{Code, Level, PageClass, Severity};
pub use compare::{Compare, Comparison, PageCounts, Standing};
pub use custom::Custom;
pub use documents::{Document, DocumentKind, PdfFacts, ReadPdf};
pub use earlier::Earlier;
pub use exports::{Export, SourceMap};
pub use finding::{Finding, Findings, Place};
pub use found::Found;
pub use gate::{FailOn, GateFailure};
pub use history::Past;
pub use issue::{Evidence, Issue};
pub use issues::Issues;
pub use likeness::Likeness;
pub use links::{
    CheckedLink, LinkCheck, LinkFormat, LinkOptions, LinkOutcome, LinkReport, LinkState, Reference,
    StatusRanges, Target, UnreadSource,
};
pub use logs::{LogFile, LogReader, Logs};
pub use measure::{Measure, Measured};
pub use page::{AuditedPage, Canonical};
pub use record::{Alternate, Answered, Edge, EdgeKind, HtmlRecord, Kind, NamedFile, NamedFor, Record};
pub use robots_files::{RobotsFile, RobotsLine, SitemapFile, Translations};
pub use rule::{Rule, codes};
pub use score::{Deduction, FamilyScore, Score};
pub use segment::Segment;
pub use site::{Address, Answer, End, Fault, Mention, Refused, Resolution, Site};
pub use spider::AuditSpider;
pub use structured::{DataFormat, DataItem};
pub use tls::TlsRecord;

/// An audit of the sites of these URLs, with the built-in rules and the profile `audit`.
pub fn audit<I>(urls: I) -> AuditBuilder
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    AuditBuilder::new(urls.into_iter().map(|url| url.as_ref().to_owned()).collect())
}

/// A check of the links in these sources: files, folders with such files, pages (`https://...`), and standard input (`-`). HTML, Markdown and plain
/// text are read. The links of a page are checked, and those pages are not crawled further.
///
/// # Errors
/// A source is neither a file nor a URL.
pub fn links<I>(sources: I) -> huntsman_crawler::Result<LinkCheck>
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    LinkCheck::new(&sources.into_iter().collect::<Vec<_>>())
}
