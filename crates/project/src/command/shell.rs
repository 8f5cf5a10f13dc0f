//! The command `shell`: its flags, its settings, and its exit codes.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use huntsman_crawler::{CrawlClient, CrawlerBuilder, Error, HttpDownloader, OnDemand};
use huntsman_middleware::Defaults;
use huntsman_shell::{Complaint, Prompt, Shell, Surroundings, history_file};
use serde_json::json;

use super::Config;
use super::exit::{Exit, Failure, Outcome};
use super::flags::Flags;
use super::reachable::advice;
use super::render::{escape_document, say};
use super::settings::{ListingArgs, listing};

/// The page of a shell, and what is done with it.
#[derive(Debug, Default, Args)]
pub struct ShellArgs {
    /// The page: a URL, a saved file, or a fixture (NAME.fixture.json). The command `fetch` of the shell gets another one.
    #[arg(value_name = "URL|FILE", value_hint = ValueHint::AnyPath)]
    pub target: Option<String>,

    /// Runs this command of the shell, prints what it gives, and exits: with 0 if it found something, 1 if there was nothing, and 2 if the command is
    /// wrong (repeatable; the first that fails ends it).
    #[arg(short = 'c', long = "command", value_name = "COMMAND")]
    pub commands: Vec<String>,
}

/// The settings of a shell, whatever the settings file says about crawls: a person looks at single pages, of every status and kind.
pub fn settings_of(args: &ShellArgs) -> Flags {
    let mut flags = vec![
        ("httperror_allow_all", json!(true)),
        ("download_binary", json!(true)),
        ("robots_retry_delays", json!([])),
        ("max_parked_wait", json!(30.0)),
        ("metarefresh_enabled", json!(false)),
        ("log_level", json!("off")),
    ];
    // Commands of -c are for one page, or for a person who waits; lines of a pipe may be any number.
    if !args.commands.is_empty() {
        flags.push(("download_delay", json!(0.0)));
    }
    flags
}

/// Runs a shell whose pages are fetched with these settings, without a spider.
///
/// # Errors
/// Those of [`run`], or the settings make no crawl.
pub async fn run_plain(args: &ShellArgs, fixtures: PathBuf, config: Config) -> Outcome {
    let crawl = CrawlerBuilder::new(OnDemand::new()).plugin(Defaults).downloader_with(HttpDownloader::new);
    let client = CrawlClient::start(crawl.layers(config.layers.clone()))?;
    run(args, with_settings(Surroundings::new(client).fixtures(fixtures), config)).await
}

/// Surroundings whose command `settings` tells of these.
pub fn with_settings(surroundings: Surroundings, config: Config) -> Surroundings {
    let names = config.table.iter().map(|info| info.name.to_owned()).collect();
    surroundings.settings(names, move |name| {
        let args = ListingArgs {
            get: name.map(str::to_owned),
            explain: name.is_some(),
            components: false,
            json: false,
        };
        let none = || Err(Failure::usage("components are listed by the command settings of the program"));
        listing(&config, &args, none).map_err(|failure| Error::usage(failure.message))
    })
}

/// Runs a shell in these surroundings.
///
/// # Errors
/// A command of `-c` failed, or stdout cannot be written.
pub async fn run(args: &ShellArgs, surroundings: Surroundings) -> Outcome {
    let mut shell = Shell::new(surroundings.advice(advice));
    let mut fetched = Ok(());
    if let Some(target) = &args.target {
        let reply = shell.run(&format!("fetch {target}")).await;
        match reply {
            Ok(reply) if args.commands.is_empty() => {
                Prompt::new().show(&reply, &shell)?;
            }
            Ok(_) => {}
            Err(complaint) if args.commands.is_empty() => {
                say(&escape_document(&complaint.message));
                fetched = Err(complaint);
            }
            Err(complaint) => return Err(failure(complaint)),
        }
    }
    if !args.commands.is_empty() {
        let done = Prompt::new().once(&mut shell, &args.commands).await?;
        return done.map(|()| Exit::Done).map_err(failure);
    }
    let read = Prompt::new().history(history_file()).read(&mut shell).await?;
    // The complaints were printed where they came.
    Ok(fetched.and(read).map_or_else(|complaint| exit_of(&complaint), |()| Exit::Done))
}

fn exit_of(complaint: &Complaint) -> Exit {
    if complaint.is_usage { Exit::Usage } else { Exit::Crawl }
}

fn failure(complaint: Complaint) -> Failure {
    match complaint.is_usage {
        true => Failure::usage(complaint.message),
        false => Failure::crawl(complaint.message),
    }
}
