//! A plugin: one value that installs several hooks together.

use crate::engine::CrawlerBuilder;
use crate::spider::Spider;

/// Installs middlewares, observers or settings that belong together (AvoidDup is both a downloader and a spider
/// middleware).
pub trait Plugin {
    /// Adds its parts to the builder.
    fn install<S: Spider>(self, builder: CrawlerBuilder<S>) -> CrawlerBuilder<S>;
}
