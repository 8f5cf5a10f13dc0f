//! Flags of crawls over archives.

use clap::{Args, ValueHint};
use huntsman::middleware::{ArchivePages, FromWarcSettings};
use huntsman::{Settings, Start, StartUrls};
use serde_json::json;

use crate::args::{Flags, list, set};

/// Where pages come from in place of a network.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Archives")]
pub(crate) struct ArchiveArgs {
    /// Crawls archives instead of the network: WARC files, folders with such files, WACZ files, CDXJ indexes, patterns in quotes, and the same in buckets
    /// (s3://BUCKET/KEY) (repeatable). Nothing is sent; what the archives do not have is dropped as not_archived (setting from_warc).
    #[arg(long, value_name = "FILE|DIR|GLOB|s3://", value_hint = ValueHint::AnyPath, conflicts_with_all = ["replay", "warc"])]
    pub(crate) from_warc: Vec<String>,

    /// If the archives have several captures of a URL, takes the one nearest to this time: up to 14 digits, or RFC 3339 [default: the last one]
    /// (setting from_warc_at).
    #[arg(long, value_name = "TIME", requires = "from_warc")]
    pub(crate) at: Option<String>,

    /// Begins with every page of HTML with status 200 that the archives have, instead of with start URLs, and follows no links; robots.txt is not asked
    /// (setting from_warc_all).
    #[arg(long, requires = "from_warc", conflicts_with_all = ["urls", "seeds"])]
    pub(crate) all: bool,
}

impl ArchiveArgs {
    /// The settings that these flags stand for.
    pub(crate) fn settings(&self) -> Flags {
        let mut flags = Flags::new();
        list(&mut flags, "from_warc", &self.from_warc);
        set(&mut flags, "from_warc_at", self.at.as_deref());
        if !self.from_warc.is_empty() {
            // A slot for each address would ask for the addresses of hosts.
            flags.push(("slot_by", json!("host")));
        }
        if self.all {
            flags.push(("from_warc_all", json!(true)));
        }
        flags
    }

    /// The pages of the archives as start URLs.
    pub(crate) fn pages(&self) -> huntsman::Result<StartUrls> {
        let pages = ArchivePages::of(&self.from_warc, self.at.as_deref());
        let pages = pages.map_err(|error| error.context("--from-warc"))?;
        Ok(StartUrls::listed(pages.first().clone(), Start::new(pages)))
    }
}

/// Whether the pages of a crawl come from archives, so that nothing is to be learnt of the network.
pub(in crate::commands) fn is_offline(settings: &Settings) -> huntsman::Result<bool> {
    Ok(!settings.of::<FromWarcSettings>()?.from_warc.is_empty())
}
