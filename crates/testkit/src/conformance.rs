//! Conformance suites: each one tests what a trait promises against any implementation.

pub mod frontier;
pub mod near_index;
pub mod store;
