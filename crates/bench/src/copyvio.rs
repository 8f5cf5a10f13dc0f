//! `huntsman-bench copyvio`: measures on this machine what the documentation promises about copied texts.
//!
//! It measures how fast two texts are compared, the cost of an index of windows, and the two numbers, confidence and
//! score, for texts with a known right answer; finally the cost of a sweep. Nothing is fetched from elsewhere: texts
//! are made from those in the build.

mod args;
mod cases;
mod index;
mod pdf;
mod speed;
mod sweep;
mod synthetic;
mod texts;

use huntsman_cli::exit::{Exit, Outcome};
use huntsman_cli::render::{count, say};
use serde::Serialize;

use crate::BUILD;
use crate::sheet::Sheet;

/// All figures; parts that were not asked for are missing.
#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    build: &'static str,
    seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    speed: Option<speed::Speed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<Vec<index::Index>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    synthetic: Option<synthetic::Synthetic>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<sweep::Sweep>,
}

pub(crate) use args::{CopyvioArgs, SourcesArgs};
pub(crate) use sweep::sources;

use args::Part;

pub(crate) fn run(args: &CopyvioArgs) -> Outcome {
    if cfg!(debug_assertions) {
        say("this is a debug build: its times say little; measure with cargo build --release");
    }
    let mut report = Report {
        version: env!("CARGO_PKG_VERSION"),
        build: BUILD,
        seed: args.seed,
        speed: None,
        index: None,
        synthetic: None,
        sweep: None,
    };
    let is_asked_for = |part: &Part| match args.only.as_slice() {
        // Texts given by the user are only for the speed.
        [] => args.article.is_none() || *part == Part::Speed,
        only => only.contains(part),
    };
    for part in [Part::Speed, Part::Index, Part::Synthetic, Part::Sweep].iter().filter(|p| is_asked_for(p)) {
        match part {
            Part::Speed => {
                say("speed of comparisons");
                report.speed = Some(speed::run(args)?);
            }
            Part::Index => {
                let mut indexes = Vec::new();
                for texts in &args.texts {
                    say(&format!("index of {} texts", count(*texts)));
                    indexes.push(index::run(args, *texts)?);
                }
                report.index = Some(indexes);
            }
            Part::Synthetic => {
                say(&format!("synthetic: {} pairs for each case", count(args.pairs)));
                report.synthetic = Some(synthetic::run(args)?);
            }
            Part::Sweep => {
                say(&format!("sweep of {} articles", count(args.sources.articles)));
                report.sweep = Some(sweep::run(args)?);
            }
        }
    }
    args.form.print(&report, &report.sheets(), args.seed)?;
    Ok(Exit::Done)
}

impl Report {
    fn sheets(&self) -> Vec<Sheet> {
        let mut sheets = Vec::new();
        sheets.extend(self.speed.as_ref().map(speed::Speed::sheet));
        sheets.extend(self.index.as_deref().map(index::sheet));
        sheets.extend(self.synthetic.as_ref().map(synthetic::Synthetic::sheet));
        sheets.extend(self.sweep.as_ref().map(sweep::Sweep::sheet));
        sheets
    }
}
