//! Flags that say where the sources of an article are looked for.

use std::sync::Arc;

use clap::{Args, ValueHint};
use huntsman::Settings;
use huntsman::middleware::copyvio::{CandidateSource, Given, Links};

use crate::exit::Outcome;

/// Where the sources of an article are looked for; the same for all commands that check articles.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Sources")]
pub(crate) struct CandidateArgs {
    /// A page that it may be copied from (repeatable).
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) source: Vec<String>,

    /// Leaves out the links of the article to other sites, which are sources otherwise.
    #[arg(long)]
    pub(crate) no_links: bool,

    /// Questions to search engines, in all.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) max_queries: usize,
}

impl CandidateArgs {
    /// All of them, in the order in which they are asked: those that cost nothing first, search engines last.
    ///
    /// # Errors
    /// One of them cannot be used as it was named.
    pub(crate) fn sources(&self, _settings: &Settings) -> Outcome<Vec<Arc<dyn CandidateSource>>> {
        let mut sources: Vec<Arc<dyn CandidateSource>> = vec![Arc::new(Given::new(&self.source))];
        if !self.no_links {
            sources.push(Arc::new(Links));
        }
        Ok(sources)
    }
}
