//! Tests of the crawl engine and of its parts through their public interface.

mod client;
mod disk_frontier;
mod engine;
mod frontier;
mod http_client;
mod robots;
mod robots_differential;
mod robots_oracle;
mod saved_job;
mod starts;
