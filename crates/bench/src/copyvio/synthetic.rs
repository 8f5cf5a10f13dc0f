//! Confidence and score for texts with a known right answer.

use huntsman::detect::copyvio::{
    Article, Band, Chain, Confidence, Degree, Document, Score, Text, Verdict, Windows,
};
use huntsman_cli::exit::Outcome;
use huntsman_cli::pdf_reader;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use super::args::CopyvioArgs;
use super::cases::{self, Case, Pair};
use crate::sheet::Sheet;

/// All cases.
#[derive(Debug, Serialize)]
pub(super) struct Synthetic {
    cases: Vec<Found>,
}

/// The results for the pairs of a case: the confidence is computed with four sources together, the score with the
/// best one.
#[derive(Debug, Serialize)]
struct Found {
    name: String,
    is_copy: bool,
    pairs: usize,
    /// Median over the pairs.
    confidence: f64,
    band: Band,
    score: f64,
    verdict: Verdict,
    /// Number of pairs with the right band or verdict: `none` if nothing was copied, another one if something was.
    confidence_right: usize,
    score_right: usize,
}

pub(super) fn run(args: &CopyvioArgs) -> Outcome<Synthetic> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(args.seed);
    let cases = cases::all(&mut random, args.pairs as usize, pdf_reader())?;
    Ok(Synthetic { cases: cases.into_iter().map(|case| found(&case)).collect() })
}

fn found(case: &Case) -> Found {
    let mut confidences: Vec<Confidence> = case.pairs.iter().map(confidence).collect();
    let mut scores: Vec<Score> = case.pairs.iter().map(score).collect();
    let is_right = |is_flagged: bool| is_flagged == case.is_copy;
    let confidence_right = confidences.iter().filter(|c| is_right(c.band() != Band::None)).count();
    let score_right = scores.iter().filter(|score| is_right(score.verdict() != Verdict::None)).count();
    confidences.sort_by(|a, b| a.value().total_cmp(&b.value()));
    scores.sort_by(|a, b| a.value().total_cmp(&b.value()));
    let (confidence, score) = (confidences[confidences.len() / 2], scores[scores.len() / 2]);
    Found {
        name: case.name.clone(),
        is_copy: case.is_copy,
        pairs: case.pairs.len(),
        confidence: confidence.value(),
        band: confidence.band(),
        score: score.value(),
        verdict: score.verdict(),
        confidence_right,
        score_right,
    }
}

fn confidence(pair: &Pair) -> Confidence {
    let chain = Chain::from(&pair.article.windows(Degree::default()));
    let sources: Vec<Windows> = pair.sources.iter().map(|source| source.windows(Degree::default())).collect();
    Confidence::of(chain.size(), chain.delta_of_all(&sources).size)
}

fn score(pair: &Pair) -> Score {
    let article = Article::new(pair.article.document());
    let documents = pair.sources.iter().map(Text::document);
    let scores = documents.map(|source: Document<'_>| article.compare(&source).score);
    scores.fold(Score::default(), |best, score| if score > best { score } else { best })
}

impl Synthetic {
    pub(super) fn sheet(&self) -> Sheet {
        let head = ["case", "right", "C", "band", "right in", "score", "verdict", "right in"];
        let mut sheet = Sheet::new("What both numbers say of made-up texts", head);
        for found in &self.cases {
            let share = |right: usize| format!("{right} of {}", found.pairs);
            sheet.row([
                found.name.clone(),
                if found.is_copy { "copied" } else { "not" }.to_owned(),
                format!("{:.2}", found.confidence),
                found.band.to_string(),
                share(found.confidence_right),
                format!("{:.2}", found.score),
                found.verdict.to_string(),
                share(found.score_right),
            ]);
        }
        sheet.note(
            "C and score are those of the pair in the middle. The texts of the last rows were written for this; the others are made, with words \
             and frequencies of real ones.",
        )
    }
}
