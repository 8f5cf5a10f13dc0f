//! The command line: the commands, from which help texts, checks and shell completions are generated. The flags of
//! each command are defined beside it.

use clap::{Parser, Subcommand};
use clap_complete::Shell;

#[cfg(feature = "cluster")]
use crate::commands::ClusterCommand;
use crate::commands::{
    AuditArgs, Bench, CacheCommand, CrawlArgs, DemoArgs, ExplainArgs, FetchArgs, GenspiderArgs, JobCommand,
    LinksArgs, NewArgs, ParseArgs, RobotsArgs, SettingsCommandArgs, ShellCommandArgs, VerifyArgs, ViewArgs,
    WarcCommand,
};
use crate::copyvio::CopyvioCommand;
use crate::dedup::DedupCommand;
use crate::serve::ServeArgs;
use crate::sweep::SweepArgs;

use crate::command::control::ControlArgs;
pub(crate) use crate::command::flags::{Flags, NetworkArgs, SettingsArgs, list, set};
use crate::command::jobs::JobsArgs;
pub(crate) use crate::command::values::{listen_address, positive, positive_seconds, seconds, share, span};

/// A polite, fast web crawler.
#[derive(Debug, Parser)]
#[command(
    name = "huntsman",
    version,
    before_help = "Examples:\n  \
        huntsman demo\n  \
        huntsman crawl https://example.org/ --max-pages 100\n  \
        huntsman robots https://example.org/ /private/",
    after_help = "Exit codes: 0 finished, 1 crawl error, 2 usage, 3 stopped by a limit (--fail-on-limit), 10 a quality rule failed, 130 interrupted.\n\
        `huntsman COMMAND --help` shows an example and all flags of a command.",
    max_term_width = 100,
    args_override_self = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Crawls sites and writes one record per page.
    #[command(before_help = "Examples:\n  \
        huntsman crawl https://example.org/ --max-pages 100\n  \
        huntsman crawl http://127.0.0.1:8000/ --profile test --allow-address 127.0.0.1:8000 --out local\n  \
        printf 'https://example.org/\\n' | huntsman crawl --seeds - --max-depth 1 --out -")]
    Crawl(Box<CrawlArgs>),

    /// Judges sites: broken links, redirects, what search engines index, titles, texts, images, security, access. Each issue says where it is, why
    /// it matters and what to change.
    #[command(before_help = "Examples:\n  \
        huntsman audit https://example.org/\n  \
        huntsman audit https://example.org/ --no-external --fail-on error\n  \
        huntsman audit codes title-long")]
    Audit(Box<AuditArgs>),

    /// Checks the links of files (HTML, Markdown, text), of folders with such files, and of single pages.
    #[command(before_help = "Examples:\n  \
        huntsman links README.md docs\n  \
        huntsman links https://example.org/ --exclude 'https://example.org/login*'\n  \
        huntsman links site --root-dir site --format junit --out links.xml")]
    Links(Box<LinksArgs>),

    /// Fetches one page with all middlewares and prints it.
    #[command(before_help = "Examples:\n  \
        huntsman fetch https://example.org/ --text\n  \
        huntsman fetch https://example.org/ --json")]
    Fetch(FetchArgs),

    /// Tries selectors on a page: a command a line, or those of -c.
    #[command(before_help = "Examples:\n  \
        huntsman shell https://example.org/\n  \
        huntsman shell https://example.org/ -c 'css title::text'\n  \
        printf 'css h1::text\\nlinks\\n' | huntsman shell page.html")]
    Shell(Box<ShellCommandArgs>),

    /// Opens a page as a crawl gets it in a browser, as a private copy without scripts; without a browser it prints the path of the copy.
    #[command(before_help = "Example:\n  huntsman view https://example.org/")]
    View(ViewArgs),

    /// Fetches one page, or a few that it leads to, and prints what a spider file gives for it.
    #[command(before_help = "Examples:\n  \
        huntsman parse spider.toml https://example.org/\n  \
        huntsman parse spider.toml https://example.org/ --depth 1 --json")]
    Parse(ParseArgs),

    /// Shows what a robots.txt says about paths, and which line decides.
    #[command(before_help = "Examples:\n  \
        huntsman robots https://example.org/ /private/ /public/page.html\n  \
        huntsman robots ./robots.txt /private/ --agent mybot")]
    Robots(RobotsArgs),

    /// Lists the settings of a crawl: values, where they come from, what they do.
    #[command(before_help = "Examples:\n  \
        huntsman settings --profile broad\n  \
        huntsman settings --get download_delay --explain")]
    Settings(SettingsCommandArgs),

    /// Makes a project of spiders: a Rust package with a spider, a settings file and a test.
    #[command(
        visible_alias = "startproject",
        before_help = "Examples:\n  huntsman new bookshop\n  huntsman new bookshop --path ../huntsman"
    )]
    New(NewArgs),

    /// Adds a spider to the project in this folder.
    #[command(before_help = "Examples:\n  \
        huntsman genspider shop https://shop.example/\n  \
        huntsman genspider -t rules shop https://shop.example/")]
    Genspider(GenspiderArgs),

    /// Lists, prints, removes and exports the responses in an HTTP cache (setting httpcache_dir).
    #[command(before_help = "Examples:\n  \
        huntsman cache ls .huntsman/httpcache 'https://example.org/*'\n  \
        huntsman cache get .huntsman/httpcache https://example.org/ > page.html\n  \
        huntsman cache export-warc .huntsman/httpcache --out example.warc.gz")]
    Cache {
        #[command(subcommand)]
        what: CacheCommand,
    },

    /// Lists, prints, checks, indexes and packs the records of WARC files, as `crawl --warc` writes them.
    #[command(before_help = "Examples:\n  \
        huntsman warc ls archive\n  \
        huntsman warc get archive https://example.org/ > page.html\n  \
        huntsman warc check archive\n  \
        huntsman warc index archive --out index.cdxj\n  \
        huntsman warc pack archive --wacz site.wacz")]
    Warc {
        #[command(subcommand)]
        what: WarcCommand,
    },

    /// Looks at a crawl that runs with --control, and steers it.
    #[command(before_help = "Examples:\n  \
        huntsman control example.org-crawl status\n  \
        huntsman control example.org-crawl delay slow.example.org 5\n  \
        huntsman control example.org-crawl open")]
    Control(ControlArgs),

    /// Looks at a crawl that several machines share (`crawl --frontier`), and steers it.
    #[cfg(feature = "cluster")]
    #[command(before_help = "Examples:\n  \
        huntsman cluster status --frontier redis://queue.example/0 --job books\n  \
        huntsman cluster pause --frontier redis://queue.example/0 --job books\n  \
        huntsman cluster init --frontier redis://queue.example/0 --job books --urls 100000000")]
    Cluster {
        #[command(subcommand)]
        what: ClusterCommand,
    },

    /// Shows and changes the state of a crawl that is not running.
    #[command(before_help = "Examples:\n  \
        huntsman job info example.org-crawl\n  \
        huntsman job ls-queue example.org-crawl --limit 20\n  \
        huntsman job drop-host example.org-crawl slow.example.org")]
    Job {
        #[command(subcommand)]
        what: JobCommand,
    },

    /// Asks a daemon of jobs (`huntsman serve jobs`), and gives it orders.
    #[command(before_help = "Examples:\n  \
        huntsman jobs list --dir jobs\n  \
        huntsman jobs schedule bookshop books -a shelf=poetry --dir jobs\n  \
        huntsman jobs open --dir jobs")]
    Jobs(JobsArgs),

    /// Explains what the model of a crawl with --avoid-dup knows about URLs: what ties each to pages that were fetched, by which evidence,
    /// and whether it would be skipped. The crawl is not running; it may be finished or interrupted.
    #[command(before_help = "Examples:\n  \
        huntsman explain 'https://example.org/wiki/start?do=diff' --job example.org-crawl\n  \
        huntsman explain 'https://example.org/wiki/start?do=diff' --job example.org-crawl --json")]
    Explain(ExplainArgs),

    /// Checks a directory that a command wrote, without changing it: the output of a crawl, a sweep or a demo, a job, a text index, an
    /// index of near-duplicates, an HTTP cache, known pages, or results of checks. Reports what is missing or damaged. Exits with 0 if
    /// the directory is whole, 1 if it is damaged, 2 if no command wrote it.
    #[command(before_help = "Examples:\n  \
        huntsman verify example.org-crawl\n  \
        huntsman verify stories --json")]
    Verify(VerifyArgs),

    /// Finds near-duplicates among documents: fingerprints, an index of them, flags.
    #[command(before_help = "Examples:\n  \
        huntsman dedup build stories.jsonl.zst --index stories\n  \
        huntsman dedup add today.jsonl --index stories --flags flags.jsonl\n  \
        huntsman dedup stats --index stories")]
    Dedup {
        #[command(subcommand)]
        what: Box<DedupCommand>,
    },

    /// Checks whether texts were copied from others.
    #[command(
        before_help = "Example:\n  huntsman copyvio compare essay.txt https://example.org/page book.html"
    )]
    Copyvio {
        #[command(subcommand)]
        what: CopyvioCommand,
    },

    /// Serves checks for copied texts over HTTP: forms for a browser, a JSON API in the shape of Earwig's, and metrics. `serve jobs` is a daemon
    /// that runs spiders.
    #[command(before_help = "Examples:\n  \
        huntsman serve\n  \
        huntsman serve jobs --dir jobs --config jobs.toml\n  \
        huntsman serve --listen 8080 --exclude mirrors.txt --wiki manual:en=https://wiki.example/w\n  \
        HUNTSMAN_TOKEN=... huntsman serve --listen 0.0.0.0:8765")]
    Serve(Box<ServeArgs>),

    /// Crawls a site, and compares every page with text with the pages that it links to and those that an index or a search engine finds.
    #[command(before_help = "Examples:\n  \
        huntsman sweep https://example.org/articles/ --scope prefix --max-pages 200\n  \
        huntsman sweep https://example.org/ --no-links --index crawled --exclude-sources mirrors.txt\n  \
        huntsman sweep https://example.org/ --search searxng=https://search.example.org --max-queries 4")]
    Sweep(Box<SweepArgs>),

    /// Crawls a built-in forum on this machine and writes a report; it needs no network.
    #[command(before_help = "Example:\n  huntsman demo --out demo-crawl")]
    Demo(DemoArgs),

    /// Measures the speed of this build on this machine.
    #[command(before_help = "Example:\n  huntsman bench crawl --pages 2000")]
    Bench {
        #[command(subcommand)]
        what: Bench,
    },

    /// Prints the version.
    #[command(before_help = "Example:\n  huntsman version -v")]
    Version {
        /// Also prints the kind of build, its stores and the machine.
        #[arg(short, long)]
        verbose: bool,
    },

    /// Prints a completion script for a shell.
    #[command(before_help = "Example:\n  \
        huntsman completions bash > ~/.local/share/bash-completion/completions/huntsman")]
    Completions {
        /// The shell.
        shell: Shell,
    },

    /// Prints the text of a PDF file on stdin, for the commands that compare it.
    #[cfg(feature = "pdf")]
    #[command(name = "pdf-text", hide = true)]
    PdfText {
        /// Tries instead what its sandbox forbids, with what is named on stdin, and prints what of it could be done.
        #[arg(long)]
        attempts: bool,
        /// Also prints the title and the links, before the text.
        #[arg(long, conflicts_with = "attempts")]
        facts: bool,
    },

    /// The server that `bench crawl` measures against; ends when its stdin closes.
    #[command(name = "bench-server", hide = true)]
    BenchServer(crate::command::bench::BenchSite),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_an_example_first() {
        let mut cli = Cli::command();
        cli.build();
        let mut commands: Vec<_> = cli.get_subcommands().filter(|c| !c.is_hide_set()).cloned().collect();
        commands.extend(cli.find_subcommand("bench").unwrap().get_subcommands().cloned());
        for mut command in commands.into_iter().filter(|command| command.get_name() != "help") {
            let help = command.render_long_help().to_string();
            assert!(help.starts_with("Example"), "{}: {help}", command.get_name());
        }
    }
}
