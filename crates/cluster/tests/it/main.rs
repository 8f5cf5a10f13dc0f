//! The shared frontier on real servers, which the tests start and end.

mod conformance;
mod crawls;
mod failover;
mod nodes;
mod scripts;
