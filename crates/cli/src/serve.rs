//! Flags of `huntsman serve`.

use std::net::SocketAddr;

use clap::Args;

use crate::args::{NetworkArgs, SettingsArgs, listen_address, positive};
use crate::command::jobs::ServeCommand;
use crate::copyvio::{CandidateArgs, PlanArgs};

/// Flags of `serve`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ServeArgs {
    /// What is served in place of checks.
    #[command(subcommand)]
    pub(crate) what: Option<ServeCommand>,

    /// Address to listen on; a port alone means 127.0.0.1, and port 0 a free port. An address that other machines can
    /// reach requires --token.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8765", value_parser = listen_address)]
    pub(crate) listen: SocketAddr,

    /// Token that clients must send, as `Authorization: Bearer TOKEN` or in a field of the forms. Prefer the
    /// environment variable HUNTSMAN_TOKEN: other users of the machine can see command lines.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,

    /// Maximum number of concurrent checks; four times as many may wait, and further ones are refused.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = positive)]
    pub(crate) max_checks: u64,

    /// Another wiki that runs MediaWiki, in addition to those of Wikimedia, by the URL of its scripts (repeatable).
    /// Its pages are read from `index.php?action=raw`, without checking robots.txt.
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
