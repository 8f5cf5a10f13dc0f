//! Indexes of near-duplicates in Redis servers: real ones, which are killed, cut off, secured and clustered.

mod cluster;
mod compact;
mod conformance;
mod failures;
mod log;
mod model;
mod secrets;
mod seed;
