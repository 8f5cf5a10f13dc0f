//! `huntsman dedup`, the part between its flags and the crate `huntsman-dedup`: it opens the named inputs, shows
//! results, and chooses the exit code.

mod args;
mod failure;
mod metrics;
mod place;
mod stdout;
mod summary;

pub(crate) use args::{
    AddArgs, BuildArgs, ClusterArgs, DedupCommand, ExportArgs, HashArgs, IndexArgs, InputArgs, JoinArgs,
    QueryArgs, RunArgs, SqlArgs, StatsArgs, distance, features,
};
pub use failure::OrFailure;
pub(crate) use failure::{failure, sources, told};
pub(crate) use metrics::{at_the_end, serve};
pub(crate) use place::place;
pub(crate) use stdout::Stdout;
pub(crate) use summary::Summary;
