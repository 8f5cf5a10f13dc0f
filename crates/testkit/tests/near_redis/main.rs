//! Indexes of near-duplicates in Redis servers: real ones, which are killed, cut off, secured and clustered.

mod cluster;
mod compact;
mod failures;
mod model;
mod secrets;
mod seed;
