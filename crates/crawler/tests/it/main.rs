//! Tests of the crawl engine and of its parts through their public interface.

// What `#[derive(Item)]` makes names the crate that most programs depend on.
extern crate huntsman_crawler as huntsman;

mod client;
mod disk_frontier;
mod engine;
mod frontier;
mod http_client;
mod items;
mod robots;
mod robots_differential;
mod robots_oracle;
mod saved_job;
mod shared_frontier;
mod starts;
