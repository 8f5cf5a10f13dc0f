//! Boilerplate: text that stands on many sites and therefore is no sign of copying.

use std::ops::ControlFlow;
use std::sync::Arc;

use clap::{Args, ValueHint};
use huntsman::dedup::ReadOptions;
use huntsman::detect::copyvio::Boilerplate;
use url::Url;

use super::documents::{document, is_left_out};
use crate::dedup::sources;
use crate::exit::Outcome;
use crate::render::{counted, escape, warn};

/// Texts that are known to stand on many sites; the same flags for all commands that compare texts.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Boilerplate")]
pub(crate) struct CommonArgs {
    /// Pages of many sites, from which the check learns texts that stand everywhere (notices, licences, menus) and
    /// are no sign of copying: records of crawls with --text, or other JSON lines with `url` and `text` or `html`
    /// (also .gz, .zst; repeatable). Such texts are excused; they do not change the confidence.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) common: Vec<String>,

    /// Minimum number of hosts that must have a text for that.
    #[arg(long, value_name = "N", default_value_t = 5, requires = "common", value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) common_hosts: u32,
}

/// Maximum number of windows that are remembered; each takes 24 bytes.
const MOST_WINDOWS: usize = 8_000_000;
/// Maximum size of a page, in bytes.
const MOST_BYTES: u64 = 16 << 20;

impl CommonArgs {
    /// The boilerplate that was learnt; `None` if the flags name no files to learn from.
    ///
    /// # Errors
    /// A file does not exist. Lines that cannot be read are reported and skipped.
    pub(crate) fn boilerplate(&self) -> Outcome<Option<Arc<Boilerplate>>> {
        if self.common.is_empty() {
            return Ok(None);
        }
        let mut boilerplate = Boilerplate::new(self.common_hosts, MOST_WINDOWS);
        let mut unread = 0;
        let options = ReadOptions { max_document: MOST_BYTES, ..ReadOptions::default() };
        for source in sources(&self.common)? {
            let _ = source.read(&options, &mut |raw| {
                if is_left_out(&raw) {
                    return ControlFlow::Continue(());
                }
                match raw.map_err(|broken| broken.to_string()).and_then(document) {
                    Ok((id, text)) => {
                        let host = Url::parse(&id).ok().and_then(|url| url.host_str().map(str::to_owned));
                        // An id that is not a URL counts as a host of its own.
                        boilerplate.observe(&host.unwrap_or(id), &text.document());
                    }
                    Err(why) => {
                        unread += 1;
                        if unread == 1 {
                            warn(&format!("--common: {}", escape(&why)));
                        }
                    }
                }
                ControlFlow::Continue(())
            });
        }
        if unread > 1 {
            warn(&format!("--common: {} could not be read", counted(unread, "document")));
        }
        Ok(Some(Arc::new(boilerplate)))
    }
}
