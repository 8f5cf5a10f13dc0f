//! Tests of indexes of near-duplicates in real Redis servers, which are killed, cut off, secured and clustered.

mod cluster;
mod compact;
mod conformance;
mod failures;
mod log;
mod model;
mod secrets;
mod seed;
