//! `huntsman shell`, `huntsman view` and `huntsman parse`: work on single pages, with the commands of projects.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use huntsman::{DeclaredSpider, Project};

use crate::args::{NetworkArgs, SettingsArgs};
use crate::command::shell::{ShellArgs, run_plain, settings_of};
use crate::config::Config;
use crate::exit::Outcome;
use crate::logging;
use crate::progress::Screen;

/// Flags of `shell`.
#[derive(Debug, Args)]
pub(crate) struct ShellCommandArgs {
    #[command(flatten)]
    shell: ShellArgs,

    /// Folder into which `save fixture` writes.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = "fixtures")]
    fixtures: PathBuf,

    #[command(flatten)]
    network: NetworkArgs,

    #[command(flatten)]
    settings: SettingsArgs,
}

/// Flags of `view`.
#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    /// The page: a URL, a saved file, or a fixture.
    #[arg(value_name = "URL|FILE", value_hint = ValueHint::AnyPath)]
    target: String,

    #[command(flatten)]
    network: NetworkArgs,

    #[command(flatten)]
    settings: SettingsArgs,
}

/// Flags of `parse`.
#[derive(Debug, Args)]
pub(crate) struct ParseArgs {
    /// The spider file, which ends with .toml.
    #[arg(value_name = "SPIDER", value_hint = ValueHint::FilePath)]
    spider: String,

    /// URL of the page, and flags: -c LABEL, -d LINKS, --max-pages N, --pipelines, --json, and those for settings and the network.
    #[arg(value_name = "URL [FLAGS]", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

pub(crate) async fn shell(args: ShellCommandArgs) -> Outcome {
    let config = config(&args.shell, &args.network, &args.settings)?;
    run_plain(&args.shell, args.fixtures, config).await
}

pub(crate) async fn view(args: ViewArgs) -> Outcome {
    let shell = ShellArgs { target: Some(args.target), commands: vec!["view".to_owned()] };
    let config = config(&shell, &args.network, &args.settings)?;
    run_plain(&shell, PathBuf::from("fixtures"), config).await
}

fn config(shell: &ShellArgs, network: &NetworkArgs, settings: &SettingsArgs) -> Outcome<Config> {
    let mut flags = network.settings();
    flags.extend(settings_of(shell));
    let config = Config::load(settings, Vec::new(), flags)?;
    logging::start(&config.settings, &Screen::plain())?;
    Ok(config)
}

pub(crate) fn parse(args: ParseArgs) -> Outcome {
    let ParseArgs { spider, rest } = args;
    // It is read once before, so that a mistake in the file is told as one of the file.
    DeclaredSpider::load(&spider)?;
    let load = spider.clone();
    let project = Project::new("huntsman").spider(spider, move |_| DeclaredSpider::load(&load));
    Ok(project.run([OsString::from("huntsman"), OsString::from("parse")].into_iter().chain(rest)))
}
