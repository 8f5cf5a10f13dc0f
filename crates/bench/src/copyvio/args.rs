//! The flags of `copyvio`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use crate::sheet::FormArgs;

/// Flags of `copyvio`.
#[derive(Debug, Args)]
pub(crate) struct CopyvioArgs {
    /// Only these parts [default: all; with --article speed].
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    pub(crate) only: Vec<Part>,

    /// Where all random numbers begin.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Words of the two texts of which the speed is measured.
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    pub(crate) words: u64,

    /// Measures the speed with this article, a text in UTF-8.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "source")]
    pub(crate) article: Option<PathBuf>,

    /// Measures the speed with this source.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "article")]
    pub(crate) source: Option<PathBuf>,

    /// Texts of the indexes, of 1,000 words each.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [10_000], value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    pub(crate) texts: Vec<u64>,

    #[command(flatten)]
    pub(crate) sources: SourcesArgs,

    /// Pairs of each case that is made.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) pairs: u64,

    #[command(flatten)]
    pub(crate) form: FormArgs,
}

/// Values of `copyvio --only`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// How fast two texts are compared.
    Speed,
    /// Memory and time of an index of windows.
    Index,
    /// What confidence and score say of texts of which it is known what is right.
    Synthetic,
    /// A sweep of a made-up site on this machine.
    Sweep,
}

/// The site that is swept, and where its sources are.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct SourcesArgs {
    /// Articles of the sweep.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) articles: u64,

    /// Sources of each article.
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u64).range(1..=200))]
    pub(crate) sources_each: u64,

    /// Domains that the sources are on.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=500))]
    pub(crate) domains: u64,
}
