//! The command line of a project: its commands and their flags, from which help texts and checks are generated.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueHint};

use crate::command::bench::{BenchArgs, BenchSite};
use crate::command::control::ControlArgs;
use crate::command::flags::{FixtureArgs, Flags, NetworkArgs, SettingsArgs, set};
use crate::command::jobs::{JobsArgs, ServeCommand};
use crate::command::settings::ListingArgs;
use crate::command::shell::ShellArgs;
use crate::command::values::{listen_address, positive_seconds};

/// Crawls with the spiders of this program.
#[derive(Debug, Parser)]
#[command(
    after_help = "Exit codes: 0 finished, 1 crawl error, 2 usage, 3 stopped by a limit (--fail-on-limit), 10 a quality rule failed, 130 interrupted.",
    max_term_width = 100,
    args_override_self = true
)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Lists the spiders.
    List,

    /// Runs a spider, or several at once.
    Crawl(Box<CrawlArgs>),

    /// Looks at a crawl that runs with --control, and steers it.
    Control(ControlArgs),

    /// Serves jobs: runs the spiders of this program from a queue and at the times of cron lines.
    Serve {
        #[command(subcommand)]
        what: ServeCommand,
    },

    /// Asks a daemon of jobs (`serve jobs`), and gives it orders.
    Jobs(JobsArgs),

    /// Fetches one page and prints the items and the requests that its callback gives.
    Parse(Box<ParseArgs>),

    /// Tries selectors on a page, with the settings of a spider: a command a line, or those of -c.
    Shell(Box<ShellCommandArgs>),

    /// Lists the settings of a spider's crawl: values, where they come from, what they do.
    Settings(Box<SettingsCommandArgs>),

    /// Checks spiders, settings and fixtures without fetching anything.
    Check(Box<CheckArgs>),

    /// Measures how fast this program crawls: a generated site on this machine, against fetching alone.
    Bench(BenchArgs),

    /// The server that `bench` measures against; ends when its stdin closes.
    #[command(name = "bench-server", hide = true)]
    BenchServer(BenchSite),

    /// Prints the version.
    Version,
}

/// Flags of `crawl`.
#[derive(Clone, Debug, Args)]
pub(crate) struct CrawlArgs {
    /// The spider; `list` lists all. It may be left out if there is only one. Several run at once and are as polite to a host as one; each has
    /// its own report, and the exit code is that of the worst.
    #[arg(value_name = "SPIDER")]
    pub(crate) spiders: Vec<String>,

    /// Argument of the spider (repeatable).
    #[arg(short = 'a', long = "argument", value_name = "NAME=VALUE")]
    pub(crate) arguments: Vec<String>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) fixtures: FixtureArgs,

    #[command(flatten)]
    pub(crate) log: LogArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    #[command(flatten)]
    pub(crate) network: NetworkArgs,
}

/// What a crawl writes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// File to which items are added: .jsonl, .csv, .json or .xml, also with .gz or .zst after it, .parquet or .sqlite, or such an
    /// object of a bucket, s3://BUCKET/KEY; `-` is stdout (repeatable). Names
    /// may have parameters: `items-%(name)s-%(time)s.jsonl` [default: items.jsonl in --out, or stdout; none if the spider has
    /// a pipeline of its own that keeps items].
    #[arg(short = 'o', long = "items", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) items: Vec<PathBuf>,

    /// The same, but a file that exists is overwritten (repeatable).
    #[arg(short = 'O', long = "overwrite-items", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) overwrite_items: Vec<PathBuf>,

    /// Directory for the state of the crawl, with which the same command goes on after a stop or a crash, and for drops.jsonl and
    /// report.json. Without it a crawl that was stopped is lost. Of several spiders, each has a folder of its name in it.
    #[arg(long, visible_alias = "job", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,

    /// Starts a new crawl if the directory holds an earlier one, whose files are deleted.
    #[arg(long, requires = "out")]
    pub(crate) fresh: bool,

    /// Store of the queue in that directory: `redb` or `sled` on disk, or `memory`, which is lost with the process [default: redb].
    #[arg(long, value_name = "STORE", requires = "out")]
    pub(crate) store: Option<String>,

    /// Also writes the report, as JSON, into this file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,

    /// Exits with code 3 if a limit (pages, items, time, errors) stopped the crawl.
    #[arg(long)]
    pub(crate) fail_on_limit: bool,

    /// Serves metrics as Prometheus text at /metrics while the crawl runs. A port alone means 127.0.0.1.
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    pub(crate) metrics: Option<SocketAddr>,

    /// Allows --metrics to listen on an address that other machines can reach.
    #[arg(long, requires = "metrics")]
    pub(crate) metrics_public: bool,

    /// Lets the command `control` look at the crawl and steer it while it runs (setting control).
    #[arg(long)]
    pub(crate) control: bool,
}

/// What a crawl tells while it runs.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Log")]
pub(crate) struct LogArgs {
    /// off, error, warn, info, debug or trace, or levels per component such as info,huntsman_crawler=debug (setting log_level).
    #[arg(short = 'L', long, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,

    /// File to which the log is added, in place of stderr (setting log_file).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) log_file: Option<String>,

    /// text or json (setting log_format).
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
    pub(crate) log_format: Option<String>,

    /// Shows a dashboard on all of the terminal in place of the progress line: hosts, queue, errors, log.
    #[arg(long, conflicts_with = "no_progress")]
    pub(crate) tui: bool,

    /// Shows no progress line. There is none either if stderr is no terminal.
    #[arg(long)]
    pub(crate) no_progress: bool,
}

/// Flags of `parse`.
#[derive(Debug, Args)]
pub(crate) struct ParseArgs {
    /// URL of the page.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: String,

    /// The spider [default: the one that has the host among its allowed domains, or the only one].
    #[arg(long, value_name = "SPIDER")]
    pub(crate) spider: Option<String>,

    /// Label of the callback, or name of the variant of a callback enum [default: parse].
    #[arg(short = 'c', long, value_name = "LABEL")]
    pub(crate) callback: Option<String>,

    /// Arguments of the callback: an object of JSON.
    #[arg(long = "callback-arguments", value_name = "JSON", requires = "callback")]
    pub(crate) arguments_of_callback: Option<String>,

    /// Argument of the spider (repeatable).
    #[arg(short = 'a', long = "argument", value_name = "NAME=VALUE")]
    pub(crate) arguments: Vec<String>,

    /// Also fetches the requests that the callback gives, and theirs, this many links deep.
    #[arg(short = 'd', long, value_name = "LINKS", default_value_t = 0)]
    pub(crate) depth: u16,

    /// Number of pages at which --depth ends.
    #[arg(long, value_name = "N", default_value_t = 50, requires = "depth")]
    pub(crate) max_pages: u64,

    /// Passes the items through the pipelines of the spider, and prints what comes out of them. Pipelines write their files.
    #[arg(long)]
    pub(crate) pipelines: bool,

    /// Prints each item and each request as an object of JSON, one a line.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    #[command(flatten)]
    pub(crate) network: NetworkArgs,
}

/// Flags of `shell`.
#[derive(Debug, Args)]
pub(crate) struct ShellCommandArgs {
    #[command(flatten)]
    pub(crate) shell: ShellArgs,

    /// The spider [default: the one that has the host among its allowed domains, or the only one].
    #[arg(long, value_name = "SPIDER")]
    pub(crate) spider: Option<String>,

    /// Argument of the spider (repeatable).
    #[arg(short = 'a', long = "argument", value_name = "NAME=VALUE")]
    pub(crate) arguments: Vec<String>,

    /// Folder of the fixtures; those of a spider are in a folder of its name.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = "fixtures")]
    pub(crate) fixtures: PathBuf,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    #[command(flatten)]
    pub(crate) network: NetworkArgs,
}

/// Flags of `settings`.
#[derive(Debug, Args)]
pub(crate) struct SettingsCommandArgs {
    /// The spider [default: the only one; with several, the settings that do not depend on a spider].
    #[arg(value_name = "SPIDER")]
    pub(crate) spider: Option<String>,

    /// Argument of the spider (repeatable).
    #[arg(short = 'a', long = "argument", value_name = "NAME=VALUE")]
    pub(crate) arguments: Vec<String>,

    #[command(flatten)]
    pub(crate) listing: ListingArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

/// Flags of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The spider [default: all].
    #[arg(value_name = "SPIDER")]
    pub(crate) spider: Option<String>,

    /// Argument of the spider (repeatable).
    #[arg(short = 'a', long = "argument", value_name = "NAME=VALUE", requires = "spider")]
    pub(crate) arguments: Vec<String>,

    /// Folder of the fixtures; those of a spider are in a folder of its name.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = "fixtures")]
    pub(crate) fixtures: PathBuf,

    /// Writes what the callbacks give now as what is expected of the fixtures. Read the changes before you commit them.
    #[arg(long)]
    pub(crate) accept: bool,

    /// The longest time for the callback of a fixture.
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = positive_seconds)]
    pub(crate) timeout: f64,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

impl CrawlArgs {
    /// The settings that these flags stand for.
    pub(crate) fn settings(&self) -> Flags {
        let mut flags = self.network.settings();
        flags.extend(self.fixtures.settings());
        set(&mut flags, "log_level", self.log.log_level.as_deref());
        set(&mut flags, "log_file", self.log.log_file.as_deref());
        set(&mut flags, "log_format", self.log.log_format.as_deref());
        set(&mut flags, "control", self.output.control.then_some(true));
        flags
    }
}

/// The command line of a program with this name and version; `spider` is the name of one for the examples.
pub(crate) fn command_line(name: &'static str, version: &'static str, spider: &str) -> clap::Command {
    let example = |lines: &[String]| {
        let head = if lines.len() == 1 { "Example:" } else { "Examples:" };
        let lines: String = lines.iter().map(|line| format!("\n  {name} {line}")).collect();
        format!("{head}{lines}")
    };
    let crawl = [
        format!("crawl {spider} -o items.jsonl"),
        format!("crawl {spider} -a NAME=VALUE -s download_delay=2 --out {spider}-crawl"),
    ];
    let control =
        [format!("control {spider}-crawl status"), format!("control {spider}-crawl delay slow.example 5")];
    let serve = ["serve jobs --dir jobs --config jobs.toml".to_owned()];
    let jobs = [format!("jobs schedule {name} {spider} -a NAME=VALUE"), "jobs list --dir jobs".to_owned()];
    let parse = [
        format!("parse https://example.org/ --spider {spider}"),
        "parse https://example.org/1 --callback Item --depth 1 --pipelines".to_owned(),
    ];
    let shell = [
        "shell https://example.org/".to_owned(),
        "shell https://example.org/ -c 'css title::text'".to_owned(),
    ];
    let check = [format!("check {spider}"), "check --accept".to_owned()];
    let settings = [format!("settings {spider} --get download_delay --explain")];
    let of = |text: String| move |command: clap::Command| command.before_help(text);
    CommandLine::command()
        .name(name)
        .bin_name(name)
        .version(version)
        .mut_subcommand("list", of(example(&["list".to_owned()])))
        .mut_subcommand("crawl", of(example(&crawl)))
        .mut_subcommand("control", of(example(&control)))
        .mut_subcommand("serve", of(example(&serve)))
        .mut_subcommand("jobs", of(example(&jobs)))
        .mut_subcommand("parse", of(example(&parse)))
        .mut_subcommand("shell", of(example(&shell)))
        .mut_subcommand("settings", of(example(&settings)))
        .mut_subcommand("check", of(example(&check)))
        .mut_subcommand("bench", of(example(&["bench --pages 2000".to_owned()])))
        .mut_subcommand("version", of(example(&["version".to_owned()])))
}

/// The arguments of a command of the program.
pub(crate) const REST: &str = "ARGUMENTS";

/// A command of the program; it reads its arguments itself.
pub(crate) fn own_command(name: &'static str, help: &'static str) -> clap::Command {
    let rest = clap::Arg::new(REST).num_args(0..).trailing_var_arg(true).allow_hyphen_values(true);
    clap::Command::new(name)
        .about(help)
        .arg(rest.value_parser(clap::value_parser!(std::ffi::OsString)).help("Arguments of the command"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent_and_every_command_shows_an_example_first() {
        let mut cli = command_line("bookshop", "0.1.0", "books");
        cli.clone().debug_assert();
        cli.build();
        for mut command in cli
            .get_subcommands()
            .filter(|command| command.get_name() != "help" && !command.is_hide_set())
            .cloned()
        {
            let help = command.render_long_help().to_string();
            assert!(
                help.starts_with("Example") && help.contains("bookshop "),
                "{}: {help}",
                command.get_name()
            );
        }
    }
}
