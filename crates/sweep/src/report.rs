//! The results of a sweep as an HTML page: in order of rank, with texts side by side.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use huntsman_output::markup::{Web, address, file};
use huntsman_output::render::{count, shorten};
use maud::{Markup, PreEscaped, html};
use serde::{Deserialize, Serialize};

use super::side_by_side::STYLE;
use super::site_sweep::SweepFiles;

/// Maximum number of rows in the list.
const ROWS: usize = 500;
/// Maximum number of pairs of texts that are shown, and (below) of their bytes together.
const PAIRS: usize = 60;
const PAIR_BYTES: u64 = 24 << 20;

/// The file of a pair of an article and a source, named by a hash of both.
#[derive(Debug)]
pub(super) struct PairFile(u32);

impl PairFile {
    pub(super) fn of(article: &str, source: &str) -> Self {
        // Two pairs with the same number would share an anchor; with a thousand pairs this happens in one of four
        // thousand reports.
        let mut hash = DefaultHasher::new();
        (article, source).hash(&mut hash);
        Self((hash.finish() >> 33) as u32)
    }

    /// The number by which the anchors of the pair are named.
    pub(super) fn number(&self) -> usize {
        self.0 as usize
    }

    pub(super) fn name(&self) -> String {
        format!("{:08x}.html", self.0)
    }
}

/// A line of the results.
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

    fn rank(&self) -> Rank {
        Rank::of(self.confidence, self.evidence.score)
    }
}

/// The place of a pair in the report; the greatest comes first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rank {
    /// The larger of confidence and score.
    suspicion: f64,
    confidence: f64,
}

impl Rank {
    pub(super) fn of(confidence: f64, score: f64) -> Self {
        Self { suspicion: confidence.max(score), confidence }
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_suspicion = self.suspicion.total_cmp(&other.suspicion);
        by_suspicion.then(self.confidence.total_cmp(&other.confidence))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rank {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Rank {}

/// The ranks of the pairs whose texts the report would show if the sweep ended now.
#[derive(Debug, Default)]
pub(super) struct ShownPairs(BinaryHeap<Reverse<Rank>>);

impl ShownPairs {
    /// Those of a file of results.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn of(results: &Path) -> io::Result<Self> {
        let (_, flagged) = read(results)?;
        Ok(Self(flagged.iter().take(PAIRS).map(|line| Reverse(line.rank())).collect()))
    }

    /// Adds a pair. `false` if the report will not show it, because enough others come before it.
    pub(super) fn add(&mut self, rank: Rank) -> bool {
        if self.0.len() == PAIRS {
            if self.0.peek().is_some_and(|Reverse(last)| rank <= *last) {
                return false;
            }
            self.0.pop();
        }
        self.0.push(Reverse(rank));
        true
    }
}

/// The counts of a sweep.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct SweepTotals {
    /// Number of articles that have sources.
    pub articles: usize,
    /// Number of pairs of an article and a source, by status (`compared`, `failed` and so on).
    #[serde(rename = "sources")]
    pub statuses: BTreeMap<String, u64>,
    /// Number of articles with a source that is suspected, by confidence or by verdict.
    pub suspected: usize,
    /// Number of other articles with a source that is possible, by confidence or by verdict.
    pub possible: usize,
}

/// Writes the report of a sweep to a file: an HTML page without scripts that loads nothing. It lists the 500 most
/// suspicious pairs, and shows the texts of the first 60 side by side as far as they have 24 MiB together. `site` is the
/// name in the heading. Returns the counts.
///
/// # Errors
/// A file cannot be read or written.
pub fn write_report(files: &SweepFiles, site: &str, report: &Path) -> io::Result<SweepTotals> {
    let (totals, flagged) = read(&files.results)?;
    let page = page(&totals, &flagged, site, &shown_pairs(&flagged, &files.pairs)?);
    huntsman_files::write(report, page)?;
    Ok(totals)
}

/// The counts, and the flagged pairs with the most suspicious first.
fn read(path: &Path) -> io::Result<(SweepTotals, Vec<Line>)> {
    let mut totals = SweepTotals::default();
    let (mut articles, mut suspected, mut possible) = (HashSet::new(), HashSet::new(), HashSet::new());
    let mut flagged: Vec<Line> = Vec::new();
    let sort = |flagged: &mut Vec<Line>| {
        flagged.sort_by_key(|line| Reverse(line.rank()));
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

fn page(totals: &SweepTotals, flagged: &[Line], site: &str, shown: &[Option<String>]) -> String {
    let of = |status: &str| count(totals.statuses.get(status).copied().unwrap_or(0));
    let content = html! {
        h1 { "Copies on " (Web(&shorten(site, 160))) }
        p.sub {
            (count(totals.articles as u64)) " articles with " (count(totals.statuses.values().sum())) " sources: "
            (of("compared")) " compared, " (of("failed")) " failed, " (of("excluded")) " excluded, "
            (of("skipped")) " skipped, " (of("late")) " late. "
            b {
                (count(totals.suspected as u64)) " articles suspected, "
                (count(totals.possible as u64)) " possible."
            }
        }
        (chart(totals))
        table.list {
            tr {
                th { "#" }
                th { "article" }
                th { "source" }
                th.n { "confidence" }
                th { "verdict" }
                th.n { "score" }
                th.n { "coverage" }
                th.n { "longest run" }
                th { "hints" }
            }
            @for (at, line) in flagged.iter().enumerate() {
                (row(at + 1, line, shown.get(at).is_some_and(Option::is_some)))
            }
        }
        @if flagged.is_empty() { p { "Nothing was found that stands elsewhere." } }
        @for pair in shown.iter().flatten() { (PreEscaped(pair)) }
    };
    file("Sweep", STYLE, &content).into_string()
}

/// The texts of the first pairs, if they exist and fit into the limit.
fn shown_pairs(flagged: &[Line], pairs: &Path) -> io::Result<Vec<Option<String>>> {
    let mut left = PAIR_BYTES;
    let mut read = |line: &Line| {
        let path = pairs.join(PairFile::of(&line.article, &line.source).name());
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

fn row(at: usize, line: &Line, is_shown: bool) -> Markup {
    let number = PairFile::of(&line.article, &line.source).number();
    // The more serious of confidence and verdict.
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
    html! {
        tr class=(Web(band)) {
            td { @if is_shown { a href={ "#source-" (number) } { (at) } } @else { (at) } }
            td { (address(&line.article)) }
            td { (address(&line.source)) }
            td.n { (format!("{:.1} %", 100.0 * line.confidence)) }
            td { (Web(&line.evidence.verdict)) }
            td.n { (format!("{:.2}", line.evidence.score)) }
            td.n { (format!("{:.1} %", 100.0 * line.evidence.coverage)) }
            td.n { (format!("{:.0} words", line.evidence.longest_run)) }
            td { (Web(&hints.join("; "))) }
        }
    }
}

/// The statuses of the sources, as one bar.
fn chart(totals: &SweepTotals) -> Markup {
    let all: u64 = totals.statuses.values().sum();
    if all == 0 {
        return Markup::default();
    }
    let (mut x, mut parts) = (0.0, Vec::new());
    for (status, number) in &totals.statuses {
        let width = 1000.0 * *number as f64 / all as f64;
        parts.push((x, width, status, number));
        x += width;
    }
    html! {
        svg viewBox="0 0 1000 34" width="100%" role="img" aria-label="Sources by status" {
            @for (at, (x, width, status, number)) in parts.iter().enumerate() {
                rect x=(format!("{x:.1}")) y="0" width=(format!("{width:.1}")) height="14" fill="currentColor"
                    opacity=(format!("{:.2}", 0.75 - 0.15 * at as f64)) {
                    title { (Web(status)) ": " (number) }
                }
            }
            @for (x, _, status, number) in parts.iter().filter(|(_, width, ..)| *width > 70.0) {
                text x=(format!("{x:.1}")) y="30" font-size="13" fill="currentColor" {
                    (Web(status)) " " (number)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pair_is_kept_exactly_if_the_report_would_show_it_at_the_time() {
        let seed = rand::random();
        println!("seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sweep.jsonl");
        let mut results = String::new();
        let (mut pairs, mut kept) = (ShownPairs::default(), HashSet::new());
        for number in 0..400 {
            // Many have the same rank; the earlier one comes first.
            let (confidence, score) =
                (f64::from(random.random_range(0..20)) / 20.0, f64::from(random.random_range(0..20)) / 20.0);
            let is_kept = pairs.add(Rank::of(confidence, score));
            let line = json!({"article": "a", "source": number.to_string(), "status": "compared", "confidence": confidence,
                "band": "possible", "evidence": {"score": score, "verdict": "none", "coverage": 0.5, "longest_run": 9.0}});
            results.push_str(&format!("{line}\n"));
            fs::write(&path, &results).unwrap();
            let (_, flagged) = read(&path).unwrap();
            let is_shown = flagged.iter().take(PAIRS).any(|line| line.source == number.to_string());
            assert_eq!(is_kept, is_shown, "pair {number}");
            if is_kept {
                kept.insert(number.to_string());
            }
            if random.random_ratio(1, 50) {
                pairs = ShownPairs::of(&path).unwrap();
            }
        }
        let (_, flagged) = read(&path).unwrap();
        assert!(flagged.iter().take(PAIRS).all(|line| kept.contains(&line.source)));
        assert!(kept.len() < 300, "{}", kept.len());
    }
}
