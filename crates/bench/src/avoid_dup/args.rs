//! The flags of `avoid-dup`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{ArgGroup, Args, ValueEnum, ValueHint};
use huntsman::detect::avoid::evaluation::{Case, Order, View};

/// The text below the flags in the help.
pub(crate) const HELP: &str = "\
Made-up sites: recall is the share of the requests for known contents that were not sent, the warm-up included; lost are contents \
that never came; the estimate is the model's own, with the upper end of its 95 % interval. Ranges are over the seeds.\n\n\
A recorded crawl: one JSON object a line with url, status, ctype, location and body. Our own model and MaybeDont's \
rules each crawl it without a network. Every duplicate that our own model fetches is counted by its cause, and every content that either loses \
by the rule that skipped it.\n\n\
A site that runs: each crawl is that of\n  \
huntsman crawl URL --profile test --no-cookies --only LIST --concurrency N --per-host N --avoid-dup[=reference] --seed N\n\
with the address of the site allowed. LIST is --list, or the URLs of the truth. Downloads are url and final_url of \
pages.jsonl.\n\n\
The truth is a text of lines (.gz is unpacked) with four columns, separated by tabs:\n  \
1  number of the content, compared by the area with the content proper\n  \
2  number of the content, compared by all visible text but what most pages have\n  \
3  kind: page; all others (redirect, other, error) are not scored and have -1 in both numbers\n  \
4  path and query, such as /viewtopic.php?t=7\n\
Pages with the same number show the same. Lines that begin with # are comments.\n\n\
--make-truth writes it for a crawl that `huntsman crawl --record` recorded: in the order of the crawl, a page has the number of the \
earliest other one of which at least nine tenths of the runs of four words agree (Jaccard) with its own.";

/// Flags of `avoid-dup`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("measured").args(["site", "recording"]).conflicts_with("make_truth"))]
pub(crate) struct AvoidDupArgs {
    /// Made-up site (repeatable) [default: all].
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Case::ALL.map(case_value)))]
    pub(crate) case: Vec<String>,

    /// Requests in flight when the next one is decided (repeatable) [default: 0 and 16; of the forums 0, 1, 4 and 16].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub(crate) in_flight: Vec<u64>,

    /// This seed only.
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    pub(crate) seed: Option<u64>,

    /// So many seeds, from 1 on.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub(crate) seeds: u64,

    /// Which model: our own, MaybeDont's rules, or both side by side.
    #[arg(long, value_name = "MODE", default_value = "both")]
    pub(crate) mode: Modes,

    /// A site that runs, by its start URL.
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, requires = "truth", conflicts_with_all = ["case", "in_flight"])]
    pub(crate) site: Option<url::Url>,

    /// A recorded crawl (NAME.jsonl or NAME.jsonl.zst), or a directory of them, each with its truth (NAME.tsv or NAME.tsv.gz).
    #[arg(long, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath, conflicts_with = "case")]
    pub(crate) recording: Option<PathBuf>,

    /// Which of the URLs show the same: see below [default: the file beside the recording].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "measured")]
    pub(crate) truth: Option<PathBuf>,

    /// Finds out which URLs of this recorded crawl show the same, and writes the truth; measures nothing. The crawl should be one without
    /// AvoidDup.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["case", "in_flight"])]
    pub(crate) make_truth: Option<PathBuf>,

    /// CSS selector of the area with the content proper; a page on which it matches nothing is compared as a whole [default: all visible
    /// text but what most pages have].
    #[arg(long, value_name = "SELECTOR", requires = "make_truth")]
    pub(crate) area: Option<String>,

    /// Writes the truth to this file, packed if it ends with .gz [default: stdout].
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "make_truth")]
    pub(crate) output: Option<PathBuf>,

    /// The order in which the URLs of a recorded crawl are fetched (repeatable) [default: bfs].
    #[arg(long, value_name = "ORDER", requires = "recording")]
    pub(crate) order: Vec<OrderArg>,

    /// Fetches only URLs of this list [default: those of the truth].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "site", conflicts_with = "recording")]
    pub(crate) list: Option<PathBuf>,

    /// By which numbers of the truth the table is.
    #[arg(long, value_name = "VIEW", default_value = "area", requires = "measured")]
    pub(crate) view: ViewArg,

    /// Requests in flight, in all and per host.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..), requires = "site")]
    pub(crate) concurrency: u64,

    /// Keeps the files of the crawls, each in a directory of its own in this one.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "site", conflicts_with = "recording")]
    pub(crate) out: Option<PathBuf>,

    /// Starts anew where the directories hold earlier crawls.
    #[arg(long, requires = "out")]
    pub(crate) fresh: bool,

    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

impl AvoidDupArgs {
    /// The seeds that the flags ask for.
    pub(crate) fn seeds(&self) -> Vec<u64> {
        self.seed.map_or_else(|| (1..=self.seeds).collect(), |seed| vec![seed])
    }
}

fn case_value(case: Case) -> PossibleValue {
    PossibleValue::new(case.name()).help(case.about())
}

/// Values of `avoid-dup --mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Modes {
    /// Our own model.
    Default,
    /// MaybeDont's rules.
    Reference,
    /// Both.
    Both,
}

impl Modes {
    /// The modes, one by one.
    pub(crate) fn each(self) -> &'static [Mode] {
        match self {
            Self::Default => &[Mode::Default],
            Self::Reference => &[Mode::Reference],
            Self::Both => &[Mode::Default, Mode::Reference],
        }
    }
}

/// One of the two models, named as in `crawl --avoid-dup`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Our own model.
    Default,
    /// MaybeDont's rules.
    Reference,
}

impl Mode {
    /// The name as used in commands and settings.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Reference => "reference",
        }
    }
}

/// Values of `avoid-dup --order`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum OrderArg {
    /// Breadth-first.
    Bfs,
    /// Any order, by the seed.
    Random,
    /// Depth-first.
    Dfs,
}

impl From<OrderArg> for Order {
    fn from(order: OrderArg) -> Self {
        match order {
            OrderArg::Bfs => Self::Breadth,
            OrderArg::Random => Self::Random,
            OrderArg::Dfs => Self::Depth,
        }
    }
}

/// Values of `avoid-dup --view`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ViewArg {
    /// The area with the content proper.
    Area,
    /// All visible text but what most pages have.
    Page,
}

impl From<ViewArg> for View {
    fn from(view: ViewArg) -> Self {
        match view {
            ViewArg::Area => Self::Area,
            ViewArg::Page => Self::Page,
        }
    }
}
