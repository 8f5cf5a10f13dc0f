//! How a check is done.

use std::sync::Arc;
use std::time::Duration;

use huntsman_detect::copyvio::{Boilerplate, CheckOptions, Exclusions};

use super::cache::CheckCache;
use super::memory::Memory;

/// The options and limits of a check.
#[derive(Clone, Debug)]
pub struct CheckPlan {
    /// What counts as a violation, and whether one is enough.
    pub options: CheckOptions,
    /// How long it may take, the texts of the last sources included. 30 s.
    pub max_time: Duration,
    /// How long one source may take. 5 s.
    pub source_time: Duration,
    /// Questions to search engines and indexes, in all. 8.
    pub max_queries: usize,
    /// Sources that are read, in all; more are skipped. 200.
    pub max_sources: usize,
    /// Sources that are not read.
    pub exclusions: Option<Arc<Exclusions>>,
    /// Whether texts are given back with the result.
    pub keep_texts: bool,
    /// Results of earlier checks.
    pub cache: Option<Arc<CheckCache>>,
    /// What is known to stand on many sites, and so is no evidence.
    pub boilerplate: Option<Arc<Boilerplate>>,
    /// What checks that are done at the same time may take together to compare texts; without it, whatever they need.
    pub memory: Option<Memory>,
}

impl Default for CheckPlan {
    fn default() -> Self {
        Self {
            options: CheckOptions::default(),
            max_time: Duration::from_secs(30),
            source_time: Duration::from_secs(5),
            max_queries: 8,
            max_sources: 200,
            exclusions: None,
            keep_texts: false,
            cache: None,
            boilerplate: None,
            memory: None,
        }
    }
}
