//! Flags of `huntsman serve`.

use std::net::SocketAddr;

use clap::Args;

use crate::args::{NetworkArgs, SettingsArgs, listen_address, positive};
use crate::copyvio::{CandidateArgs, PlanArgs};

/// Flags of `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen; a port alone means 127.0.0.1, port 0 takes a free one. An address that other machines reach needs --token.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8765", value_parser = listen_address)]
    pub(crate) listen: SocketAddr,

    /// What callers must know: `Authorization: Bearer TOKEN`, or a field of the forms. Better in the environment, as HUNTSMAN_TOKEN:
    /// command lines are seen by others.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,

    /// Checks at once; more wait, and four times as many are refused.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = positive)]
    pub(crate) max_checks: u64,

    /// A wiki of MediaWiki beside those of Wikimedia, by the address of its scripts (repeatable). Its pages are read by
    /// `index.php?action=raw`, without asking robots.txt.
    #[arg(long, value_name = "PROJECT:LANG=SCRIPT_URL")]
    pub(crate) wiki: Vec<String>,

    #[command(flatten)]
    pub(crate) candidates: CandidateArgs,

    #[command(flatten)]
    pub(crate) plan: PlanArgs,

    #[command(flatten)]
    pub(crate) network: NetworkArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}
