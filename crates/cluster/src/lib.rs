//! A frontier in a Redis server, a Valkey server or a cluster of them, which any number of machines share: one crawl on many nodes.
//!
//! The queue of a job is divided into partitions by the politeness slot of requests, so that all requests of a host are in one partition. A
//! node owns partitions for some seconds at a time, and renews its leases; what it does to a partition is refused as soon as another node
//! may own it. So a host gets requests from one node, at the pace of one crawl, and the work of a node that dies goes to the others.
//!
//! Each operation is one script in the server, which has the same effect if it is sent twice. A page that was settled is settled for good,
//! together with the requests that were found on it; those for other partitions wait in an outbox until their partition has them.
//!
//! What it does not promise: a page whose node died before it was settled is fetched again, and duplicates are found within a partition
//! only, as all requests of a host are in one.
//!
//! ```no_run
//! use huntsman_cluster::{ClusterSettings, SharedFrontier};
//! use huntsman_crawler::Order;
//!
//! # fn run() -> huntsman_crawler::Result<()> {
//! let settings: ClusterSettings = "redis://queue.example/0".parse()?;
//! let frontier = SharedFrontier::join(settings.job("books").node("first"), Order::Bfs)?;
//! // CrawlerBuilder::new(spider).frontier(frontier)
//! # drop(frontier);
//! # Ok(()) }
//! ```

mod clock;
mod convert;
mod frontier;
mod job;
mod keeper;
mod keys;
mod nodes;
mod notes;
mod operate;
mod outbox;
mod partition;
mod pump;
mod script;
mod server;
mod settings;
mod watch;

pub use frontier::SharedFrontier;
pub use huntsman_redis::{Error, ErrorKind};
pub use operate::{JobStatus, NodeStatus, Operator, PartitionStatus, Wish};
pub use settings::{ClusterSettings, Durability};
