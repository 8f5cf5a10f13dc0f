//! Local sites, hostile responses, a scripted downloader and conformance suites for tests.
//!
//! | subject of the test | use | clock |
//! |---|---|---|
//! | decisions of the engine and the middlewares, delays and back-off | [`ScriptedDownloader`] | virtual |
//! | HTTP on the wire, whole crawls, a binary | [`Site`] and [`sites`] | real |
//! | crawls through proxies | [`ForwardProxy`] | real |
//! | that hostile sites do not break the crawler | [`Chaos`] | real |
//! | data in a Redis server or cluster | [`redis`] | real |
//! | objects in an S3 bucket | [`moto`] | real |
//! | PDF files | [`pdf`] | none |
//! | metrics as a Prometheus server reads them | [`prometheus`] | real |
//! | a binary: its exit code and output | [`command`] | real |
//! | a binary's files after a crash or on a failing disk | [`crash`] | real |
//! | looks and behaviour of a page in a browser | [`browser`] | real |
//! | that a crawl keeps its promises through mishaps of all kinds | [`simulation`] | virtual |
//! | an implementation of one of the crawler's traits | [`conformance`] | none |
//!
//! ```
//! # #[cfg(feature = "kit")]
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use huntsman_testkit::{Answer, Site};
//!
//! let site = Site::builder().page("/", "<a href='/b'>b</a>").answer("/b", Answer::text("b")).start().await;
//! assert!(site.url("/b").as_str().starts_with("http://127.0.0.1:"));
//! assert_eq!(site.count("/b"), 0, "nothing has asked for it yet");
//! # }
//! # #[cfg(not(feature = "kit"))] fn main() {}
//! ```
//!
//! Without its default feature `kit`, the crate contains only [`sites::Harbour`] and [`sites::Uniform`], which the
//! command `huntsman` serves as well.
//!
//! The kit is for tests: it is not a server for programs, and its downloaders fetch nothing from the web.
//!
//! All servers listen only on loopback addresses and on free ports, and limit every response in time and size.

#[cfg(feature = "kit")]
mod answer;
#[cfg(feature = "kit")]
pub mod browser;
#[cfg(feature = "kit")]
mod chaos;
#[cfg(feature = "kit")]
pub mod command;
#[cfg(feature = "kit")]
pub mod conformance;
#[cfg(all(feature = "kit", target_os = "linux"))]
pub mod crash;
#[cfg(feature = "kit")]
mod gate;
#[cfg(feature = "kit")]
pub mod load;
#[cfg(feature = "kit")]
pub mod moto;
#[cfg(feature = "kit")]
pub mod pdf;
#[cfg(feature = "kit")]
pub mod prometheus;
#[cfg(feature = "kit")]
mod proxy;
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
pub use chaos::{BehaviourInfo, Chaos, ChaosBuilder, Family, Verdict};
#[cfg(feature = "kit")]
pub use gate::Gate;
#[cfg(feature = "kit")]
pub use proxy::{ForwardProxy, ProxyBehaviour};
#[cfg(feature = "kit")]
pub use record::{Outcome, Record, RecordedRequest, SiteRequest};
#[cfg(feature = "kit")]
pub use script::{Fetched, Reply, ScriptedDownloader};
#[cfg(feature = "kit")]
pub use site::{DEFAULT_HOST, RunningSite, Site, SiteBuilder};
