//! Tests of the built-in components through their public interface.

mod crawl;
mod hostile_web;
mod http_cache;
mod incremental;
mod noise;
mod record_replay;
mod recording;
#[cfg(feature = "render")]
mod render;
mod replay;
mod warc;
mod warc_judges;
