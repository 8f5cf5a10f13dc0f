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
    /// Time limit for the check, the texts of the last sources included. Default: 30 s.
    pub max_time: Duration,
    /// Time limit for one source. Default: 5 s.
    pub source_time: Duration,
    /// Maximum number of queries to search engines and indexes. Default: 8.
    pub max_queries: usize,
    /// Maximum number of sources that are read; more are skipped. Default: 200.
    pub max_sources: usize,
    /// Rules for sources that are not read.
    pub exclusions: Option<Arc<Exclusions>>,
    /// Whether texts are returned with the result.
    pub keep_texts: bool,
    /// Cached results of earlier checks.
    pub cache: Option<Arc<CheckCache>>,
    /// Text that is known to occur on many sites, and so is no evidence.
    pub boilerplate: Option<Arc<Boilerplate>>,
    /// Memory limit for the comparisons of all concurrent checks; `None` is no limit.
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
