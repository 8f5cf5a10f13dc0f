//! A shell for pages: it fetches one, tries selectors on it, follows its links, saves it as a fixture and derives an item from what was tried.
//!
//! ```
//! use huntsman_crawler::{CrawlClient, CrawlerBuilder, OnDemand};
//! use huntsman_middleware::Defaults;
//! use huntsman_shell::{Reply, Shell, Surroundings};
//! # use huntsman_testkit::ScriptedDownloader;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! # let web = ScriptedDownloader::pages([("http://a.test/", "<title>Mills</title>")]);
//! let crawl = CrawlerBuilder::new(OnDemand::new()).plugin(Defaults).downloader(web);
//! let client = CrawlClient::start(crawl).map_err(|error| error.into_boxed())?;
//! let mut shell = Shell::new(Surroundings::new(client));
//! shell.run("fetch http://a.test/").await?;
//! assert_eq!(shell.run("css title::text").await?, Reply::Values(vec!["Mills".to_owned()]));
//! # Ok(()) }
//! ```
//!
//! It has no flags, no settings of its own and no exit codes: commands are built around it. It prints nothing but in [`Prompt`], which reads lines;
//! everything that a page may contain is escaped there, or by [`Reply::lines`].

// Files are written with `huntsman_files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod command;
mod derive;
mod prompt;
mod shell;
mod tried;
mod view;

pub use command::Complaint;
pub use prompt::{Prompt, history_file};
pub use shell::{Reply, Shell, Surroundings};
pub use view::{Opened, view};
