//! A client for a Redis server, a Valkey server, or a cluster of them.
//!
//! It is made for commands that have the same effect if they are sent twice: after a lost connection, a moved slot or a failover it sends
//! again what has no reply, and the caller sees replies only. Commands go in batches, over as many connections as there are nodes. It is
//! synchronous and knows no layout of data.
//!
//! # Why it is not the `redis` crate
//! That crate (1.8.1) was put under [`Client`], and all suites that stand on it were run: indexes and queues with connections that are cut
//! at any byte, with servers that are killed, with slots that move, and with masters that are replaced.
//!
//! With its `Connection` for each node, and the slots and repetitions of this crate, all of them hold; TLS was not tried. But its parser makes a
//! value of each member of a set, and a query of an index of the default layout reads some 400 of them. With 100,000 documents, medians of
//! five paired runs in release builds on two processors that were busy otherwise:
//!
//! | | this crate | `redis` | end to end | processor time of the client |
//! |---|---|---|---|---|
//! | queries with k = 3, 1,000 at once | 37 us | 149 us | 4.0 times | 10.5 us, 70 us |
//! | queries with k = 7, 1,000 at once | 1,491 us | 4,177 us | 2.8 times | 327 us, 2,170 us |
//! | insertions, 4,096 at once | 8.1 us | 10.3 us | 1.3 times | 1.4 us, 2.0 us |
//!
//! And it takes whatever a server sends: of a string that claims a terabyte it had 3 GiB in memory when the server of the test stopped
//! sending. Here a string has at most 512 MiB, a line 64 KiB, and a reply 2 GiB and 2^26 items.
//!
//! Its `ClusterConnection` cannot be used at all. A pipeline to whose second node nothing can be sent leaves the replies of the first one
//! unread: in a cluster of three of whose masters one was killed, 52 of 120 later `GET`s got the value of another key. In a pipeline `MOVED`
//! and `ASK` are errors that are not followed, again and again until a single command is sent to that slot. (That its pipelines handle errors
//! in another way than its single commands is an open issue there: redis-rs/redis-rs, 847.)
//!
//! # Example
//!
//! ```no_run
//! let settings: huntsman_redis::Settings = "redis://localhost/3".parse()?;
//! let mut client = huntsman_redis::Client::connect(settings.into())?;
//! let mut batch = huntsman_redis::Batch::new();
//! batch.push(&[b"SADD", b"seen", b"1"]);
//! batch.push(&[b"SCARD", b"seen"]);
//! let replies = client.run(&batch)?;
//! assert_eq!(replies[1].number(), Some(1));
//! # Ok::<(), huntsman_redis::Error>(())
//! ```

mod client;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod link;
mod refusal;
mod resp;
mod settings;
mod slots;

pub use client::{Batch, Client};
pub use error::{Error, ErrorKind};
pub use resp::{Reply, Shape};
pub use settings::Settings;
