//! A program made of spiders: [`Project`] gives it the commands `list`, `crawl`, `serve jobs`, `parse`, `shell`, `settings`, `check`, `bench` and `version`, and all that a crawl by
//! hand or by a timer needs: a settings file, variables of the environment, a log, gentle stops, progress, jobs that go on, metrics,
//! reports and exit codes.
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use huntsman_crawler::{Output, Page, Result, Spider, Start};
//! use huntsman_project::{Arguments, Project};
//!
//! struct Books {
//!     pages: u32,
//! }
//!
//! impl Books {
//!     fn new(arguments: &Arguments) -> Result<Self> {
//!         Ok(Self { pages: arguments.parse_or("pages", 10)? })
//!     }
//! }
//!
//! impl Spider for Books {
//!     type Item = String;
//!
//!     fn start(&self) -> Start {
//!         Start::urls((1..=self.pages).map(|page| format!("https://books.example/page/{page}")))
//!     }
//!
//!     fn parse(&self, page: &Page, out: &mut Output<String>) -> Result<()> {
//!         out.items(page.css("h3::text")?.get_all().to_vec());
//!         Ok(())
//!     }
//! }
//!
//! fn main() -> ExitCode {
//!     Project::new("bookshop").version("0.1.0").spider("books", Books::new).main()
//! }
//! ```
//!
//! The module [`command`] is what these commands are made of, for programs that have commands of their own; `huntsman` itself is one.
//! The crate has no crawl that does without a spider of yours, and no way to crawl without a terminal or a timer: that is the library.

// Files are written with `huntsman_files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod arguments;
mod bench;
mod command_line;
mod crawl;
mod feeds;
mod fixtures;
mod parse;
mod project;
mod shell;
mod typed;

pub mod command;

pub use arguments::Arguments;
pub use project::Project;
