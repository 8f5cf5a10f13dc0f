//! `huntsman-bench`: measures the promises of Huntsman's documentation, except the speed of a crawl.
//!
//! | bench | measures |
//! |---|---|
//! | `simhash` | which changes of a text are found, the speed of fingerprints, what indexes of near-duplicates cost |
//! | `copyvio` | the speed of comparisons, what an index of windows costs, what confidence and score say of known texts, a sweep |
//! | `avoid-dup` | what the avoidance of duplicates saves and loses, on made-up sites or on one that runs |
//! | `feeds` | items a second into files, by format |
//! | `store` | what the stores of jobs cost on a disk |
//! | `warc` | megabytes a second that are read from archives |
//! | `selectors` | what CSS and XPath find on given pages and what they cost, for a comparison with parsel |
//!
//! It is not part of the command that users install, and it measures no other program. `huntsman bench crawl`
//! measures a crawl, and the scripts in the folder `bench` of the repository compare it with other programs.
//!
//! If a bench runs a command of `huntsman`, it starts its own executable: all arguments other than those above are a
//! command line of `huntsman`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use huntsman_cli::exit::{Failure, Outcome};

// The files of a bench are generated and thrown away, so they may be written directly: clippy.toml is not enforced in
// this crate.
mod avoid_dup;
mod clock;
mod copyvio;
mod feeds;
mod selectors;
mod sheet;
mod simhash;
mod store;
mod stories;
mod warc;

/// Measures this machine and this build.
#[derive(Debug, Parser)]
#[command(
    name = "huntsman-bench",
    version,
    before_help = "Examples:\n  \
        cargo run --release -p huntsman-bench -- simhash\n  \
        cargo run --release -p huntsman-bench -- copyvio --only synthetic --markdown\n  \
        cargo run --release -p huntsman-bench -- avoid-dup --case forum-adjacent\n  \
        cargo run --release -p huntsman-bench -- store",
    max_term_width = 100,
    args_override_self = true
)]
struct Cli {
    #[command(subcommand)]
    bench: Bench,
}

/// What is measured.
#[derive(Debug, Subcommand)]
enum Bench {
    /// Measures the avoidance of duplicates: what is saved and what is lost, beside MaybeDont's rules, on made-up or
    /// recorded sites without a network, or on a site that runs.
    #[command(
        name = "avoid-dup",
        before_help = "Examples:\n  \
        huntsman-bench avoid-dup\n  \
        huntsman-bench avoid-dup --case forum-adjacent --case tracking --in-flight 16 --seed 7 --json\n  \
        huntsman-bench avoid-dup --site http://127.0.0.1:8104/ --truth forum.tsv.gz --out runs\n  \
        huntsman-bench avoid-dup --make-truth wiki.jsonl.zst --area '#content' -o wiki.tsv.gz\n  \
        huntsman-bench avoid-dup --recording wiki.jsonl.zst --truth wiki.tsv.gz",
        after_help = avoid_dup::HELP
    )]
    AvoidDup(Box<avoid_dup::AvoidDupArgs>),

    /// Measures near-duplicates: which changes of a text are found, how fast fingerprints are, what an index costs in memory, on the
    /// disk and in Redis, how many stories a run takes. Without a network.
    #[command(
        before_help = "Examples:\n  \
        huntsman-bench simhash\n  \
        huntsman-bench simhash --documents 15896966 --json\n  \
        huntsman-bench simhash --only quality --pairs pairs.jsonl",
        after_help = simhash::HELP
    )]
    Simhash(Box<simhash::SimhashArgs>),

    /// Measures copied texts: how fast two are compared, what an index of windows costs, and what confidence and score say of texts of
    /// which it is known what is right. Without a network.
    #[command(before_help = "Examples:\n  \
        huntsman-bench copyvio\n  \
        huntsman-bench copyvio --only synthetic --markdown\n  \
        huntsman-bench copyvio --only index --texts 10000,1000000\n  \
        huntsman-bench copyvio --article article.txt --source source.txt --json")]
    Copyvio(copyvio::CopyvioArgs),

    /// Measures the stores of jobs: writing in batches, reading, walking through, opening anew, bytes on disk.
    #[command(before_help = "Examples:\n  \
        huntsman-bench store\n  \
        huntsman-bench store --only redb --entries 5000000 --dir /var/tmp --json")]
    Store(store::StoreArgs),

    /// Measures feeds: items a second into JSON lines, CSV, SQLite and Parquet. The folder `bench/feeds` of the repository compares them with
    /// the usual libraries of Python.
    #[command(before_help = "Examples:\n  \
        huntsman-bench feeds\n  \
        huntsman-bench feeds --items 1000000 --out files")]
    Feeds(feeds::FeedsArgs),

    /// Measures reading archives: records alone, with their digests, for their captures, and for an index.
    #[command(before_help = "Example:\n  \
        huntsman bench crawl --pages 20000 --warc archive\n  \
        huntsman-bench warc archive")]
    Warc(warc::WarcArgs),

    /// Asks the pages of a folder queries in CSS and XPath: what is found, or what it costs, as a JSON line for each page. The
    /// folder `bench/selectors` of the repository compares it with parsel.
    #[command(before_help = "Examples:\n  \
        huntsman-bench selectors --pages pages --queries queries.tsv --trees trees > found.jsonl\n  \
        huntsman-bench selectors --pages page.html --queries queries.tsv --full\n  \
        huntsman-bench selectors --pages pages --queries queries.tsv --time")]
    Selectors(selectors::SelectorsArgs),

    /// The site and the sources of `copyvio --only sweep`; ends when its stdin closes.
    #[command(hide = true)]
    Sources(copyvio::SourcesArgs),

    /// A command of `huntsman`.
    #[command(external_subcommand)]
    Huntsman(Vec<OsString>),
}

fn main() -> ExitCode {
    huntsman_cli::start(|cli: Cli| match cli.bench {
        Bench::AvoidDup(args) => avoid_dup::run(*args),
        Bench::Simhash(args) => simhash::run(&args),
        Bench::Copyvio(args) => copyvio::run(&args),
        Bench::Store(args) => store::run(&args),
        Bench::Feeds(args) => feeds::run(&args),
        Bench::Warc(args) => warc::run(&args),
        Bench::Selectors(args) => selectors::run(&args),
        Bench::Sources(args) => copyvio::sources(args),
        Bench::Huntsman(words) => huntsman_cli::command(words),
    })
}

/// The build profile of this program, on which its times depend.
const BUILD: &str = huntsman_cli::process::BUILD;

/// A runtime for a bench that fetches.
fn on_runtime<T>(work: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Failure::crawl(format!("starting the runtime: {error}")))?.block_on(work)
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
    fn every_bench_shows_an_example_first() {
        let mut cli = Cli::command();
        cli.build();
        let benches =
            cli.get_subcommands().filter(|bench| !bench.is_hide_set() && bench.get_name() != "help");
        for mut bench in benches.cloned().collect::<Vec<_>>() {
            let help = bench.render_long_help().to_string();
            assert!(help.starts_with("Example"), "{}: {help}", bench.get_name());
        }
    }
}
