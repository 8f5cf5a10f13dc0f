//! Whole crawls with the polite stack: engine, middlewares and downloader together, one topic a file.
//!
//! Decisions of the crawler are tested with scripted responses in virtual time, traffic on the wire with local
//! servers.

mod accounting;
mod avoid_dup;
mod client;
mod components;
mod contract;
mod control;
mod copyvio;
mod duplicates;
mod failures;
mod feeds;
mod guards;
mod jobs;
mod life_cycle;
mod losses;
mod media;
mod near_dup;
mod observers;
mod pace;
mod process;
mod proxies;
mod quality;
mod redirects;
#[cfg(feature = "render")]
mod rendering;
mod requests;
mod robots;
mod routes;
mod rules;
mod sessions;
mod settings;
mod sitemaps;
mod support;
