//! Tests of the test kit, and crawls that it simulates.

mod chaos;
mod crawl;
mod downloader;
mod near_index;
mod script;
mod simulation;
mod site;
mod store;
