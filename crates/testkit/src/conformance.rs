//! Suites that judge an implementation of a trait by what the trait promises: one suite, every implementation.

pub mod frontier;
pub mod near_index;
pub mod store;
