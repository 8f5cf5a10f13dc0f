//! `huntsman settings`: lists the settings of `huntsman crawl` and where each value comes from.

use std::io::{self, Write};

use clap::Args;

use crate::args::SettingsArgs;
use crate::command::settings::{ListingArgs, listing};
use crate::config::Config;
use crate::exit::{Exit, Outcome};
use crate::job;

mod reference;

/// Flags of `settings`.
#[derive(Debug, Args)]
pub(crate) struct SettingsCommandArgs {
    #[command(flatten)]
    pub(crate) listing: ListingArgs,

    /// Prints the settings reference of the guide instead: all settings with types, defaults and values in profiles,
    /// and all components with their orders.
    #[arg(long, conflicts_with_all = ["get", "explain", "components", "json"])]
    pub(crate) markdown: bool,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

pub(crate) fn run(args: &SettingsCommandArgs) -> Outcome {
    let text = if args.markdown {
        reference::page()
    } else {
        let config = Config::load(&args.settings, super::crawl::defaults(), Vec::new())?;
        listing(&config, &args.listing, || job::check(&config))?
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Exit::Done)
}
