//! Local sites, hostile answers, scripted downloader and conformance suites for tests.

mod answer;
mod chaos;
mod record;
mod script;
mod server;
mod site;
pub mod sites;

pub use answer::{After, Answer, Part};
pub use chaos::{Chaos, ChaosBuilder, Family, Listed, Verdict};
pub use record::{Asked, Outcome, Record, Seen};
pub use script::{Fetched, Reply, ScriptedDownloader};
pub use site::{DEFAULT_HOST, RunningSite, Site, SiteBuilder};
