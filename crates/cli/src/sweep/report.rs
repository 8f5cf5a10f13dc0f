//! `sweep.html`: what a sweep found, ranked, with texts side by side.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::copyvio::{FOOT, head};
use crate::html_report::{address, html};
use crate::output::{OutputDir, SWEEP};
use crate::render::{count, shorten};

/// Rows of the list at most.
const ROWS: usize = 500;
/// Pairs of texts that are shown at most, and bytes of all of them.
const PAIRS: usize = 60;
const PAIR_BYTES: u64 = 24 << 20;

/// An article and a source, as the files of a sweep name them.
#[derive(Debug)]
pub(super) struct Pair(u32);

impl Pair {
    pub(super) fn of(article: &str, source: &str) -> Self {
        // Two pairs of one number would share a place; among a thousand there are such once in four thousand reports.
        let mut hash = DefaultHasher::new();
        (article, source).hash(&mut hash);
        Self((hash.finish() >> 33) as u32)
    }

    /// The number under which its places are named.
    pub(super) fn number(&self) -> usize {
        self.0 as usize
    }

    pub(super) fn file(&self) -> String {
        format!("{:08x}.html", self.0)
    }
}

/// A line of `sweep.jsonl`.
#[derive(Clone, Debug, Deserialize)]
struct Line {
    article: String,
    source: String,
    status: String,
    confidence: f64,
    band: String,
    evidence: Evidence,
    #[serde(default)]
    direction: Option<String>,
    #[serde(default)]
    licence: Option<Licence>,
}

#[derive(Clone, Debug, Deserialize)]
struct Evidence {
    score: f64,
    verdict: String,
    coverage: f64,
    longest_run: f64,
}

#[derive(Clone, Debug, Deserialize)]
struct Licence {
    kind: String,
}

impl Line {
    fn is_flagged(&self) -> bool {
        self.band != "none" || self.evidence.verdict != "none"
    }

    /// By the larger of both numbers, then by confidence.
    fn rank(&self) -> (f64, f64) {
        (self.confidence.max(self.evidence.score), self.confidence)
    }
}

/// What a sweep found, in numbers.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Totals {
    /// Articles that have sources.
    pub(crate) articles: usize,
    /// Pairs of an article and a source, by status.
    #[serde(rename = "sources")]
    pub(crate) statuses: BTreeMap<String, u64>,
    /// Articles with a source that is suspected, or at least possible, by confidence or by verdict.
    pub(crate) suspected: usize,
    pub(crate) possible: usize,
}

/// Makes the report of a directory.
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn write_report(directory: &OutputDir, site: &str) -> io::Result<Totals> {
    let (totals, flagged) = read(&directory.file(SWEEP))?;
    let page = page(&totals, &flagged, site, &shown_pairs(&flagged, &directory.pairs())?);
    directory.write(crate::output::SWEEP_REPORT, page.as_bytes())?;
    Ok(totals)
}

/// The numbers, and the flagged pairs, the most suspicious first.
fn read(path: &Path) -> io::Result<(Totals, Vec<Line>)> {
    let mut totals = Totals::default();
    let (mut articles, mut suspected, mut possible) = (HashSet::new(), HashSet::new(), HashSet::new());
    let mut flagged: Vec<Line> = Vec::new();
    let sort = |flagged: &mut Vec<Line>| {
        flagged.sort_by(|a, b| b.rank().partial_cmp(&a.rank()).unwrap_or(std::cmp::Ordering::Equal));
        flagged.truncate(ROWS);
    };
    for line in BufReader::new(File::open(path)?).lines() {
        let line: Line = serde_json::from_str(&line?)?;
        *totals.statuses.entry(line.status.clone()).or_default() += 1;
        articles.insert(line.article.clone());
        let is = |word: &str| line.band == word || line.evidence.verdict == word;
        if is("suspected") {
            suspected.insert(line.article.clone());
        } else if is("possible") {
            possible.insert(line.article.clone());
        }
        if line.is_flagged() {
            flagged.push(line);
            if flagged.len() > 4 * ROWS {
                sort(&mut flagged);
            }
        }
    }
    sort(&mut flagged);
    totals.articles = articles.len();
    totals.suspected = suspected.len();
    totals.possible = possible.difference(&suspected).count();
    Ok((totals, flagged))
}

fn page(totals: &Totals, flagged: &[Line], site: &str, shown: &[Option<String>]) -> String {
    let mut out = head("Sweep");
    let _ = write!(out, "<h1>Copies on {}</h1>", html(&shorten(site, 160)));
    let of = |status: &str| totals.statuses.get(status).copied().unwrap_or(0);
    let all: u64 = totals.statuses.values().sum();
    let _ = write!(
        out,
        "<p class=\"sub\">{} articles with {} sources: {} compared, {} failed, {} excluded, {} skipped, {} late. \
         <b>{} articles suspected, {} possible.</b></p>",
        count(totals.articles as u64),
        count(all),
        count(of("compared")),
        count(of("failed")),
        count(of("excluded")),
        count(of("skipped")),
        count(of("late")),
        count(totals.suspected as u64),
        count(totals.possible as u64),
    );
    chart(&mut out, totals);
    out.push_str(
        "<table class=\"list\"><tr><th>#<th>article<th>source<th class=\"n\">confidence<th>verdict<th class=\"n\">score\
         <th class=\"n\">coverage<th class=\"n\">longest run<th>hints</tr>",
    );
    for (at, line) in flagged.iter().enumerate() {
        row(&mut out, at + 1, line, shown.get(at).is_some_and(Option::is_some));
    }
    out.push_str("</table>");
    if flagged.is_empty() {
        out.push_str("<p>Nothing was found that stands elsewhere.</p>");
    }
    shown.iter().flatten().for_each(|text| out.push_str(text));
    out.push_str(FOOT);
    out
}

/// The texts of the first pairs, as far as they are there and have room.
fn shown_pairs(flagged: &[Line], pairs: &Path) -> io::Result<Vec<Option<String>>> {
    let mut left = PAIR_BYTES;
    let mut read = |line: &Line| {
        let path = pairs.join(Pair::of(&line.article, &line.source).file());
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(io::Error::new(error.kind(), format!("reading {}: {error}", path.display())));
            }
            Ok(text) => text,
        };
        let Some(rest) = left.checked_sub(text.len() as u64) else { return Ok(None) };
        left = rest;
        Ok(Some(text))
    };
    flagged.iter().take(PAIRS).map(&mut read).collect()
}

fn row(out: &mut String, at: usize, line: &Line, is_shown: bool) {
    let number = Pair::of(&line.article, &line.source).number();
    let number = if is_shown { format!("<a href=\"#source-{number}\">{at}</a>") } else { at.to_string() };
    // The stronger of both.
    let band = if line.band == "suspected" { &line.band } else { &line.evidence.verdict };
    let mut hints = Vec::new();
    match line.direction.as_deref() {
        Some("source_older") => hints.push("the source is older".to_owned()),
        Some("source_newer") => hints.push("the source is newer".to_owned()),
        _ => {}
    }
    if let Some(licence) = &line.licence {
        hints.push(format!("licence: {}", licence.kind));
    }
    let _ = write!(
        out,
        "<tr class=\"{band}\"><td>{number}<td>{}<td>{}<td class=\"n\">{:.1} %<td>{}<td class=\"n\">{:.2}\
         <td class=\"n\">{:.1} %<td class=\"n\">{:.0} words<td>{}</tr>",
        address(&line.article),
        address(&line.source),
        100.0 * line.confidence,
        html(&line.evidence.verdict),
        line.evidence.score,
        100.0 * line.evidence.coverage,
        line.evidence.longest_run,
        html(&hints.join("; ")),
    );
}

/// What became of the sources, as one bar.
fn chart(out: &mut String, totals: &Totals) {
    let all: u64 = totals.statuses.values().sum();
    if all == 0 {
        return;
    }
    out.push_str(
        "<svg viewBox=\"0 0 1000 34\" width=\"100%\" role=\"img\" aria-label=\"Sources by status\">",
    );
    let (mut x, mut labels) = (0.0, String::new());
    for (at, (status, number)) in totals.statuses.iter().enumerate() {
        let width = 1000.0 * *number as f64 / all as f64;
        let _ = write!(
            out,
            "<rect x=\"{x:.1}\" y=\"0\" width=\"{width:.1}\" height=\"14\" fill=\"currentColor\" opacity=\"{:.2}\"><title>{}: {number}</title></rect>",
            0.75 - 0.15 * at as f64,
            html(status),
        );
        if width > 70.0 {
            let _ = write!(
                labels,
                "<text x=\"{x:.1}\" y=\"30\" font-size=\"13\" fill=\"currentColor\">{} {number}</text>",
                html(status)
            );
        }
        x += width;
    }
    let _ = write!(out, "{labels}</svg>");
}
