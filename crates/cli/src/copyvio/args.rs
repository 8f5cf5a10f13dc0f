//! Flags of `huntsman copyvio`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use huntsman::detect::copyvio::Degree;

use super::candidates::CandidateArgs;
use super::common::CommonArgs;
use super::plan::PlanArgs;
use crate::args::{NetworkArgs, SettingsArgs};

/// The commands about copied texts.
#[derive(Debug, Subcommand)]
pub(crate) enum CopyvioCommand {
    /// Compares an article with given sources: reports how likely it is a copy, and which passages they share.
    #[command(before_help = "Examples:\n  \
        huntsman copyvio compare essay.txt https://example.org/page book.pdf\n  \
        huntsman copyvio compare article.wiki source.html --json\n  \
        huntsman copyvio compare essay.txt source.txt --html compared.html")]
    Compare(Box<CompareArgs>),

    /// Searches for the sources of an article, fetches them, and reports what it shares with each.
    #[command(before_help = "Examples:\n  \
        huntsman copyvio check https://example.org/article\n  \
        huntsman copyvio check article.wiki --url https://wiki.example/wiki/Article --exclude mirrors.txt --json\n  \
        huntsman copyvio check essay.txt --index crawled --search searxng=https://search.example.org/\n  \
        huntsman copyvio check essay.txt --source https://example.org/page --no-short-circuit --html checked.html")]
    Check(Box<CheckArgs>),

    /// Finds which of many texts share passages with each other or with other texts, without a network.
    #[command(before_help = "Examples:\n  \
        huntsman copyvio among essays/ --out copied.jsonl\n  \
        huntsman copyvio among essays/ --against library.jsonl.zst\n  \
        huntsman copyvio among example.org-crawl/pages.jsonl --run 30")]
    Among(AmongArgs),
}

/// Flags of `copyvio among`.
#[derive(Debug, Args)]
pub(crate) struct AmongArgs {
    /// Texts: files of JSON lines with `id` or `url` and `text` or `html` (also .gz, .zst; the records of a crawl
    /// with --text), folders of .txt and .html files, `-` for JSON lines on stdin, s3://BUCKET/PREFIX.
    #[arg(value_name = "INPUT", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) inputs: Vec<String>,

    /// Texts that the inputs may be copied from, given in the same way (repeatable) [default: the inputs are compared
    /// with each other, and the later text of a pair counts as the article].
    #[arg(long, value_name = "INPUT", value_hint = ValueHint::AnyPath)]
    pub(crate) against: Vec<String>,

    /// Length in words of a run of equal words that is found for certain. Shorter runs take more memory: about 8,000
    /// / (N - 4) windows for 1,000 texts of 1,000 words.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(5..=10_000))]
    pub(crate) run: u64,

    /// Minimum number of windows that two texts must share to be compared.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) min_shared: usize,

    /// Also lists pairs without any sign of copying.
    #[arg(long)]
    pub(crate) all: bool,

    /// File for one JSON line per pair [default: stdout].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,

    /// Maximum size of a document in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    pub(crate) max_document: u64,

    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Flags of `copyvio check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The text that may be a copy: a file (.txt, .html, .pdf, .wiki), a URL, or `-` for a text on stdin.
    #[arg(value_name = "ARTICLE", value_hint = ValueHint::AnyPath)]
    pub(crate) article: String,

    /// URL of the article if it is read from a file: that page is not used as a source, links to its site are not
    /// links to other sites, and mirrors of its wiki are excluded.
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: Option<String>,

    #[command(flatten)]
    pub(crate) candidates: CandidateArgs,

    #[command(flatten)]
    pub(crate) plan: PlanArgs,

    #[command(flatten)]
    pub(crate) show: ShowArgs,

    #[command(flatten)]
    pub(crate) network: NetworkArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

/// How a comparison is shown.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Prints JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// File for a page that shows both texts side by side, with the shared passages marked.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
}

/// Flags of `copyvio compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The text that may be a copy: a file (.txt, .html, .pdf, .wiki), a URL, or `-` for a text on stdin.
    #[arg(value_name = "ARTICLE", value_hint = ValueHint::AnyPath)]
    pub(crate) article: String,

    /// Texts that it may be copied from, given in the same way.
    #[arg(value_name = "SOURCE", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) sources: Vec<String>,

    /// Number of words per window of the confidence.
    #[arg(long, value_name = "N", default_value = "5", value_parser = degree)]
    pub(crate) degree: Degree,

    #[command(flatten)]
    pub(crate) common: CommonArgs,

    #[command(flatten)]
    pub(crate) show: ShowArgs,

    #[command(flatten)]
    pub(crate) network: NetworkArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

pub(crate) fn degree(text: &str) -> Result<Degree, String> {
    let words = text.parse::<usize>().map_err(|_| "use a whole number from 1 to 16".to_owned())?;
    // As in the reference's tool, 0 means the default.
    if words == 0 { Ok(Degree::default()) } else { Degree::new(words).map_err(|error| error.to_string()) }
}
