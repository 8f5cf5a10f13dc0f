//! Flags of `huntsman copyvio`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use huntsman::detect::copyvio::Degree;

use super::candidates::CandidateArgs;
use super::plan::PlanArgs;
use crate::args::{NetworkArgs, SettingsArgs};

/// What is done about copies.
#[derive(Debug, Subcommand)]
pub(crate) enum CopyvioCommand {
    /// Compares an article with given sources: how sure one can be that it copies, what both share and where.
    #[command(before_help = "Examples:\n  \
        huntsman copyvio compare essay.txt https://example.org/page book.pdf\n  \
        huntsman copyvio compare article.wiki source.html --json\n  \
        huntsman copyvio compare essay.txt source.txt --html compared.html")]
    Compare(Box<CompareArgs>),

    /// Looks for the sources of an article, reads them, and tells what it shares with each.
    #[command(before_help = "Examples:\n  \
        huntsman copyvio check https://example.org/article\n  \
        huntsman copyvio check article.wiki --source https://example.org/page --exclude mirrors.txt --json\n  \
        huntsman copyvio check essay.txt --index crawled --search searxng=https://search.example.org/\n  \
        huntsman copyvio check essay.txt --source https://example.org/page --no-short-circuit --html checked.html")]
    Check(Box<CheckArgs>),
}

/// Flags of `copyvio check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The text that may be a copy: a file (.txt, .html, .pdf, .wiki), a URL, or `-` for a text on stdin.
    #[arg(value_name = "ARTICLE", value_hint = ValueHint::AnyPath)]
    pub(crate) article: String,

    #[command(flatten)]
    pub(crate) candidates: CandidateArgs,

    #[command(flatten)]
    pub(crate) plan: PlanArgs,

    /// Prints JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// File that gets a page with both texts side by side, what they share marked.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) network: NetworkArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

/// Flags of `copyvio compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The text that may be a copy: a file (.txt, .html, .pdf, .wiki), a URL, or `-` for a text on stdin.
    #[arg(value_name = "ARTICLE", value_hint = ValueHint::AnyPath)]
    pub(crate) article: String,

    /// What it may be copied from: the same.
    #[arg(value_name = "SOURCE", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) sources: Vec<String>,

    /// Words per window of the confidence.
    #[arg(long, value_name = "N", default_value = "5", value_parser = degree)]
    pub(crate) degree: Degree,

    /// Prints JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// File that gets a page with both texts side by side, what they share marked.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) network: NetworkArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

fn degree(text: &str) -> Result<Degree, String> {
    let words = text.parse::<usize>().map_err(|_| "use a whole number from 1 to 16".to_owned())?;
    // As the reference's tool: 0 is the usual one.
    if words == 0 { Ok(Degree::default()) } else { Degree::new(words).map_err(|error| error.to_string()) }
}
