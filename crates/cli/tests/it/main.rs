//! Tests that run the real command against local sites.

mod audit;
mod audit_sources;
mod avoid_dup;
mod cache;
#[cfg(all(target_os = "linux", feature = "cluster"))]
mod cluster;
mod commands;
mod common;
mod control;
mod copyvio;
mod copyvio_candidates;
mod crash;
mod crawl;
mod declared;
mod dedup;
mod dedup_bulk;
mod dedup_metrics;
mod dedup_s3;
mod dedup_tables;
mod directory;
mod from_warc;
mod job;
#[cfg(target_os = "linux")]
mod jobs;
mod links;
mod metrics;
mod near_dup;
mod new;
mod pdf_text;
mod record;
mod refusals;
#[cfg(feature = "render")]
mod rendering;
mod resume;
mod serve;
mod sessions;
mod shell;
mod signals;
mod sitemaps;
mod sweep;
mod templates;
#[cfg(all(target_os = "linux", feature = "urlfrontier"))]
mod url_frontier;
mod warc;
mod warc_s3;
