//! A client for a Redis server, a Valkey server, or a cluster of them.
//!
//! It is made for commands that have the same effect if they are sent twice: after a lost connection, a moved slot or a failover it sends
//! again what has no reply, and the caller sees replies only. Commands go in batches, over as many connections as there are nodes. It is
//! synchronous and knows no layout of data.
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
