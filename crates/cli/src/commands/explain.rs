//! `huntsman explain`: what the model of a crawl that is not running knows about URLs.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueHint};
use huntsman::SavedJob;
use huntsman::middleware::AvoidDup;
use url::Url;

use crate::directory::inspecting;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::Found;
use crate::render::{escape, escape_document, escape_json};

/// Flags of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The URLs to explain; they need not have been found by the crawl.
    #[arg(value_name = "URL", required = true, value_hint = ValueHint::Url)]
    urls: Vec<Url>,

    /// Directory of the crawl, or the state in it.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    job: PathBuf,

    /// Prints one JSON object per URL and line.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ExplainArgs) -> Outcome {
    let found = Found::of(&args.job).map_err(inspecting)?;
    let job = SavedJob::read(&found.job)?;
    let Some(learnt) = AvoidDup::of_job(&job)? else {
        return Err(Failure::usage(format!(
            "{}: the crawl has no model to explain; it needs --avoid-dup, and not --avoid-dup=reference",
            escape(&args.job.to_string_lossy())
        )));
    };
    let mut out = io::stdout().lock();
    for (number, url) in args.urls.iter().enumerate() {
        let Some(explained) = learnt.explain_url(url) else { continue };
        if args.json {
            writeln!(out, "{}", escape_json(&serde_json::to_string(&explained)?))?;
        } else {
            let blank = if number > 0 { "\n" } else { "" };
            write!(out, "{blank}{}", escape_document(&explained.to_string()))?;
        }
    }
    Ok(Exit::Done)
}
