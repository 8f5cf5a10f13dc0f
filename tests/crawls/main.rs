//! Whole crawls with the polite stack: engine, middlewares and downloader together, one topic a file.
//!
//! What the crawler decides is judged over scripted answers in virtual time, what goes over the wire on local servers.

mod accounting;
mod avoid_dup;
mod client;
mod components;
mod contract;
mod copyvio;
mod duplicates;
mod failures;
mod guards;
mod jobs;
mod life_cycle;
mod losses;
mod near_dup;
mod observers;
mod pace;
mod process;
mod redirects;
mod requests;
mod robots;
mod settings;
mod sitemaps;
mod support;
