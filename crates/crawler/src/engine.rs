//! The engine: builder, loop, and the path of a page.

mod builder;

pub use builder::CrawlerBuilder;
