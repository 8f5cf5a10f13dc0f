//! An article compared with its sources, ready to be shown or written.

use std::sync::Arc;
use std::time::SystemTime;

use huntsman_crawler::Timestamp;
use huntsman_detect::copyvio::{
    Article, Band, Boilerplate, Check, CheckOptions, CheckResult, Degree, Evidence, Passage, Source,
    SourceStatus, Text, Verdict,
};
use serde_json::{Value, json};

use super::candidates::Subject;
use super::checked::{Checked, Found};
use super::reading::Reading;

/// An article compared with its sources: by given texts ([`Comparison::of`]), or by a check
/// ([`Comparison::of_check`]).
#[derive(Debug)]
#[non_exhaustive]
pub struct Comparison {
    /// The name under which the article was given: a file, a URL, a title.
    pub name: String,
    /// The text of the article.
    pub article: Text,
    /// Number of words of the article; a character of a script without spaces counts as a part of a word.
    words: f64,
    /// The result of the reference's algorithm.
    pub result: CheckResult,
    /// The sources in the order in which they were given; those of a check with the most suspicious first.
    pub sources: Vec<Compared>,
    /// The check that found the sources, if there was one.
    pub check: Option<Checked>,
}

/// A source that an article was compared with, or that could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub struct Compared {
    /// The name under which the source was given or found: a file, a URL.
    pub name: String,
    /// The result of the reference's algorithm: status and confidence.
    pub source: Source,
    /// The shared passages; `None` if the source has no text.
    pub found: Option<Found>,
    /// The name of the candidate source that found it.
    found_by: Option<Arc<str>>,
    /// Why the source was not read: it was skipped, or it came too late.
    unread: Option<&'static str>,
}

impl Comparison {
    /// Compares an article with sources, each a text or the reason why there is none. `boilerplate` is text that is known
    /// to occur on many sites. The texts of the sources are kept.
    ///
    /// It takes some milliseconds per source of 20 kB, and up to 80 bytes of memory per byte of text.
    pub fn of(
        name: String,
        subject: &Subject,
        degree: Degree,
        boilerplate: Option<&Boilerplate>,
        sources: Vec<(String, Result<Reading, String>)>,
    ) -> Self {
        let mut check = Check::new(subject.text.exact(), CheckOptions { degree, ..CheckOptions::compare() });
        let prepared = Article::new(subject.text.document());
        let mut compared = Vec::with_capacity(sources.len());
        for (name, reading) in sources {
            let source = match &reading {
                Ok(reading) => check.compare(name.clone(), reading.text.exact()).clone(),
                Err(why) => check.record_failed(name.clone(), why.clone()).clone(),
            };
            let found =
                reading.ok().map(|reading| Found::of(&prepared, subject, &reading, boilerplate, true));
            compared.push(Compared { name, source, found, found_by: None, unread: None });
        }
        let words = prepared.document().words();
        Self {
            name,
            words,
            result: check.finish(),
            sources: compared,
            article: subject.text.clone(),
            check: None,
        }
    }

    /// The result of a check, with its sources in the order of that result. A source has its text only if the check's
    /// plan says to keep texts.
    pub fn of_check(name: String, subject: &Subject, mut checked: Checked) -> Self {
        let skipped = match () {
            () if checked.short_circuit => "short_circuit",
            () if checked.result.article_size < CheckOptions::default().min_article => "article_too_small",
            () => "too_many_sources",
        };
        let compared = |source: &Source| Compared {
            name: source.url.clone(),
            source: source.clone(),
            found: checked.found.remove(&source.url),
            found_by: checked.found_by.remove(&source.url),
            unread: match source.status {
                SourceStatus::Skipped => Some(skipped),
                SourceStatus::Late => Some("time_over"),
                _ => None,
            },
        };
        let sources = checked.result.sources.iter().map(compared).collect();
        let words = subject.text.document().words();
        let result = checked.result.clone();
        Self { name, words, result, sources, article: subject.text.clone(), check: Some(checked) }
    }

    /// The sources, the most suspicious first: by confidence, then by the score of the evidence.
    pub fn ranked(&self) -> Vec<&Compared> {
        let score = |compared: &Compared| compared.evidence().map_or(-1.0, |evidence| evidence.score.value());
        let key = |compared: &Compared| (compared.source.confidence.exact(), score(compared));
        let mut ranked: Vec<&Compared> = self.sources.iter().collect();
        ranked.sort_by(|a, b| key(b).partial_cmp(&key(a)).unwrap_or(std::cmp::Ordering::Equal));
        ranked
    }

    /// The JSON output of `copyvio compare --json`; its shape is a stable contract.
    pub fn json(&self) -> Value {
        let best = self.result.best();
        let mut out = json!({
            "article": {"words": self.words, "size": self.result.article_size},
            "sources": self.sources.iter().map(Compared::json).collect::<Vec<_>>(),
            "unified_confidence": self.result.unified.map(|confidence| confidence.value()),
            "best": best.map(|source| source.url.as_str()),
            "violation": self.result.violation,
        });
        if let Some(checked) = &self.check {
            let errors = checked.errors.iter().map(|(by, error)| json!({"by": by, "error": error}));
            out["queries"] = json!(checked.queries);
            out["possible_miss"] = json!(checked.possible_miss);
            out["errors"] = errors.collect();
            out["elapsed_s"] = json!(checked.time.as_secs_f64());
            out["cached_at"] = json!(checked.cached.map(rfc3339));
        }
        out
    }
}

impl Compared {
    /// The shared passages; `None` if the source was not compared.
    pub fn evidence(&self) -> Option<&Evidence> {
        self.found.as_ref().map(|found| &found.evidence)
    }

    /// The status of the source: `compared`, `excluded`, `skipped`, `failed` or `late`.
    pub fn status(&self) -> &'static str {
        status(&self.source.status)
    }

    /// The more serious of confidence and verdict: `suspected`, `possible` or `none`. If one of them misses something,
    /// the source must not look harmless.
    pub fn level(&self) -> &'static str {
        match (self.source.confidence.band(), self.evidence().map(|evidence| evidence.verdict)) {
            (Band::Suspected, _) | (_, Some(Verdict::Suspected)) => "suspected",
            (Band::Possible, _) | (_, Some(Verdict::Possible)) => "possible",
            (Band::None, _) => "none",
        }
    }

    /// Whether the confidence or the verdict is more than `none`.
    pub fn is_flagged(&self) -> bool {
        self.level() != "none"
    }

    /// Whether the text of the source was kept.
    pub fn has_text(&self) -> bool {
        self.found.as_ref().is_some_and(|found| found.text.is_some())
    }

    /// Why the source was not compared: its status, and the reason behind a colon if there is one.
    pub fn reason(&self) -> String {
        match &self.source.status {
            SourceStatus::Failed(why) | SourceStatus::Excluded(why) => {
                format!("{}: {why}", status(&self.source.status))
            }
            other => self.unread.map_or(status(other).to_owned(), |why| format!("{}: {why}", status(other))),
        }
    }

    /// The source's part of the JSON output; its shape is a stable contract.
    pub fn json(&self) -> Value {
        let mut out = json!({
            "source": self.name,
            "status": status(&self.source.status),
            "size": self.source.size,
            "delta": self.source.shared,
            "confidence": self.source.confidence.value(),
            "band": self.source.confidence.band().to_string(),
            "evidence": evidence(self.evidence()),
            "spans": self.evidence().map_or_else(Vec::new, spans),
        });
        if let Some(found) = &self.found {
            out["direction"] = json!(found.direction);
            out["licence"] = json!(found.licence);
        }
        if let Some(by) = &self.found_by {
            out["found_by"] = json!(by);
        }
        if let SourceStatus::Failed(reason) | SourceStatus::Excluded(reason) = &self.source.status {
            out["reason"] = json!(reason);
        } else if let Some(reason) = self.unread {
            out["reason"] = json!(reason);
        }
        out
    }
}

fn rfc3339(at: SystemTime) -> String {
    let micros = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros();
    Timestamp(u64::try_from(micros).unwrap_or(u64::MAX)).to_rfc3339()
}

fn status(status: &SourceStatus) -> &'static str {
    match status {
        SourceStatus::Compared => "compared",
        SourceStatus::Excluded(_) => "excluded",
        SourceStatus::Skipped => "skipped",
        SourceStatus::Failed(_) => "failed",
        SourceStatus::Late => "late",
    }
}

/// The evidence in numbers; zeros if the source was not compared.
fn evidence(evidence: Option<&Evidence>) -> Value {
    let Some(evidence) = evidence else {
        return json!({
            "score": 0.0, "verdict": "none", "coverage": 0.0, "longest_run": 0.0, "quoted_share": 0.0,
            "boilerplate_share": 0.0,
        });
    };
    let share = |is: fn(&Passage) -> bool| {
        let words: f64 =
            evidence.passages.iter().filter(|passage| is(passage)).map(|passage| passage.words).sum();
        if words > 0.0 { words / evidence.matched } else { 0.0 }
    };
    json!({
        "score": evidence.score.value(),
        "verdict": evidence.verdict.to_string(),
        "coverage": evidence.coverage,
        "longest_run": evidence.passages.iter().map(|passage| passage.longest).fold(0.0, f64::max),
        "quoted_share": share(|passage| passage.is_quoted),
        "boilerplate_share": share(|passage| passage.is_boilerplate),
        "score_with_excused": evidence.score_with_excused.value(),
        "runs": evidence.passages.len(),
        "manipulated": evidence.is_manipulated,
    })
}

fn spans(evidence: &Evidence) -> Vec<Value> {
    let span = |passage: &Passage| {
        json!({
            "article": [passage.article.chars.start, passage.article.chars.end],
            "source": [passage.source.chars.start, passage.source.chars.end],
            "quoted": passage.is_quoted,
            "cited": passage.is_cited,
            "boilerplate": passage.is_boilerplate,
        })
    };
    evidence.passages.iter().map(span).collect()
}
