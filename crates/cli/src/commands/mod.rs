//! One file per command.

mod audit;
mod bench;
mod cache;
#[cfg(feature = "cluster")]
mod cluster;
mod completions;
mod copyvio;
mod crawl;
mod dedup;
mod demo;
mod explain;
mod fetch;
mod job;
mod links;
mod new;
#[cfg(feature = "pdf")]
mod pdf_text;
mod robots;
mod serve;
mod settings;
mod shell;
mod sweep;
mod verify;
mod version;
mod warc;

use std::ffi::OsString;

use clap::Parser;

use crate::args::{Cli, Command};
use crate::command::attended::Ended;
use crate::command::{bench as command_bench, control, jobs, on_runtime};
use crate::exit::{Exit, Failure, Outcome};
use crate::reachable::advice;

pub(crate) use audit::AuditArgs;
pub(crate) use bench::Bench;
pub(crate) use cache::CacheCommand;
#[cfg(feature = "cluster")]
pub(crate) use cluster::ClusterCommand;
pub(crate) use crawl::{CrawlArgs, SiteArgs};
pub(crate) use demo::DemoArgs;
pub(crate) use explain::ExplainArgs;
pub(crate) use fetch::FetchArgs;
pub(crate) use job::JobCommand;
pub(crate) use links::LinksArgs;
pub(crate) use new::{GenspiderArgs, NewArgs};
pub(crate) use robots::RobotsArgs;
pub(crate) use settings::SettingsCommandArgs;
pub(crate) use shell::{ParseArgs, ShellCommandArgs, ViewArgs};
pub(crate) use verify::VerifyArgs;
pub(crate) use warc::WarcCommand;

/// Crawls as `huntsman crawl` does with these arguments, but does not print the final lines on stderr. Returns `None`
/// if the directory holds a finished crawl; a message says so.
///
/// # Errors
/// The arguments are wrong, or the crawl failed.
pub async fn crawl(arguments: Vec<OsString>) -> Outcome<Option<Exit>> {
    let words = ["huntsman", "crawl"].map(OsString::from).into_iter().chain(arguments);
    let args = match Cli::try_parse_from(words).map(|cli| cli.command) {
        Ok(Command::Crawl(args)) => args.site,
        Ok(_) => unreachable!("the command is named above"),
        Err(error) => return Err(Failure::usage(error.to_string())),
    };
    let Some(crawled) = crawl::crawl(args, crawl::CrawlExtras::default()).await? else { return Ok(None) };
    Ok(Some(exit_of(&crawled.finish()?, false)))
}

/// The exit code of a crawl of a site, with advice by its flags.
fn exit_of(ended: &Ended, fail_on_limit: bool) -> Exit {
    ended.exit(fail_on_limit, advice)
}

/// Runs the command that was given.
pub(crate) fn run(cli: Cli) -> Outcome {
    match cli.command {
        Command::Crawl(args) => on_runtime(crawl::run(*args)),
        Command::Audit(args) => on_runtime(audit::run(*args)),
        Command::Links(args) => on_runtime(links::run(*args)),
        Command::Fetch(args) => on_runtime(fetch::run(args)),
        Command::View(args) => on_runtime(shell::view(args)),
        Command::Shell(args) => on_runtime(shell::shell(*args)),
        Command::Parse(args) => shell::parse(args),
        Command::Robots(args) => on_runtime(robots::run(args)),
        Command::Cache { what } => cache::run(what),
        Command::Warc { what } => warc::run(what),
        Command::Copyvio { what } => on_runtime(copyvio::run(what)),
        Command::Dedup { what } => dedup::run(*what),
        #[cfg(feature = "cluster")]
        Command::Cluster { what } => cluster::run(what),
        Command::Control(args) => on_runtime(control::run(args)),
        Command::Job { what } => job::run(what),
        Command::Jobs(args) => on_runtime(jobs::run(args)),
        Command::New(args) => new::project(&args),
        Command::Genspider(args) => new::spider(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Serve(args) => on_runtime(serve::run(*args)),
        Command::Sweep(args) => on_runtime(sweep::run(*args)),
        Command::Settings(args) => settings::run(&args),
        Command::Demo(args) => on_runtime(demo::run(args)),
        Command::Bench { what: Bench::Crawl(args) } => on_runtime(bench::crawl(args)),
        Command::Bench { what: Bench::Audit(args) } => bench::audit(&args),
        #[cfg(feature = "render")]
        Command::Bench { what: Bench::Render(args) } => bench::render(args),
        #[cfg(feature = "cluster")]
        Command::Bench { what: Bench::Cluster(args) } => on_runtime(bench::cluster(args)),
        Command::BenchServer(site) => on_runtime(command_bench::serve(site)),
        #[cfg(feature = "pdf")]
        Command::PdfText { attempts, facts } => pdf_text::run(attempts, facts),
        Command::Verify(args) => verify::run(&args),
        Command::Version { verbose } => version::run(verbose),
        Command::Completions { shell } => completions::run(shell),
    }
}
