//! Local sites, hostile answers, scripted downloader and conformance suites for tests.
//!
//! | to test | take | clock |
//! |---|---|---|
//! | what the engine and the middlewares decide, delays and back-off | [`ScriptedDownloader`] | virtual |
//! | what goes over the wire, whole crawls, a binary | [`Site`] and [`sites`] | real |
//! | that nothing on the web breaks the crawler | [`Chaos`] | real |
//! | what is kept in a Redis server, or in a cluster | [`redis`] | real |
//! | what is read from a bucket | [`moto`] | real |
//! | what is read from a PDF file | [`pdf`] | none |
//! | what a monitoring makes of metrics | [`prometheus`] | real |
//! | what a crash or a failing disk does to a binary's files | [`crash`] | real |
//! | what a page looks like and does | [`browser`] | real |
//! | that a crawl keeps its promises through mishaps of all kinds | [`simulation`] | virtual |
//! | an implementation of one of the crawler's traits | [`conformance`] | none |
//!
//! Without its default feature `kit` the crate is no more than [`sites::Harbour`] and [`sites::Uniform`], which the command serves, too.
//!
//! Servers listen on loopback addresses only, on free ports, and bound every answer in time and size.

#[cfg(feature = "kit")]
mod answer;
#[cfg(feature = "kit")]
pub mod browser;
#[cfg(feature = "kit")]
mod chaos;
#[cfg(feature = "kit")]
pub mod conformance;
#[cfg(all(feature = "kit", target_os = "linux"))]
pub mod crash;
#[cfg(feature = "kit")]
pub mod load;
#[cfg(feature = "kit")]
pub mod moto;
#[cfg(feature = "kit")]
pub mod pdf;
#[cfg(feature = "kit")]
pub mod prometheus;
#[cfg(feature = "kit")]
mod record;
#[cfg(feature = "kit")]
pub mod redis;
#[cfg(feature = "kit")]
mod script;
#[cfg(feature = "kit")]
mod server;
#[cfg(feature = "kit")]
pub mod simulation;
#[cfg(feature = "kit")]
mod site;
pub mod sites;

#[cfg(feature = "kit")]
pub use answer::{After, Answer, Part};
#[cfg(feature = "kit")]
pub use chaos::{Chaos, ChaosBuilder, Family, Listed, Verdict};
#[cfg(feature = "kit")]
pub use record::{Asked, Outcome, Record, Seen};
#[cfg(feature = "kit")]
pub use script::{Fetched, Reply, ScriptedDownloader};
#[cfg(feature = "kit")]
pub use site::{DEFAULT_HOST, RunningSite, Site, SiteBuilder};
