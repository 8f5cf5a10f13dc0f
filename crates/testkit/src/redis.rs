//! Redis servers for tests: real processes on free ports, which end with the test.
//!
//! They need the program `redis-server`; without it a test fails with a message that says how to get it.

mod cluster;
mod process;
mod proxy;

pub use cluster::Cluster;
pub(crate) use process::free_port;
pub use process::{Server, ServerBuilder};
pub use proxy::{Counted, Cuts, Proxy};
