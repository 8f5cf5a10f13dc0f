//! The engine: the builder, the main loop, and the processing of a page.

mod assembly;
mod builder;
mod chain;
mod commits;
mod core;
mod crawler;
mod crawls;
mod gate;
mod handle;
mod inline;
mod items;
mod known_links;
mod limits;
mod nested;
mod parse;
mod persisted_hosts;
mod quota;
mod release_counts;
mod run;
mod seeds;
mod send;
mod tasks;
mod visit;
mod watch;

pub use assembly::ComponentInfo;
pub use builder::CrawlerBuilder;
pub(crate) use commits::load_entries;
pub use crawler::Crawler;
pub use crawls::Crawls;
pub use handle::Handle;
