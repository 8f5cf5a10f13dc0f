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
//! Servers listen on loopback addresses only, on free ports, and bound every answer in time and size.

mod answer;
pub mod browser;
mod chaos;
pub mod conformance;
#[cfg(target_os = "linux")]
pub mod crash;
pub mod load;
pub mod moto;
pub mod pdf;
pub mod prometheus;
mod record;
pub mod redis;
mod script;
mod server;
pub mod simulation;
mod site;
pub mod sites;

pub use answer::{After, Answer, Part};
pub use chaos::{Chaos, ChaosBuilder, Family, Listed, Verdict};
pub use record::{Asked, Outcome, Record, Seen};
pub use script::{Fetched, Reply, ScriptedDownloader};
pub use site::{DEFAULT_HOST, RunningSite, Site, SiteBuilder};
