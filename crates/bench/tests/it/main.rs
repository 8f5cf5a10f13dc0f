//! Tests of the benches: each runs the program on little data.

mod avoid_dup;
mod common;
mod copyvio;
mod selectors;
mod simhash;
mod store;
