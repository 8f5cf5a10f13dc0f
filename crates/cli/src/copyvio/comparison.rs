//! What an article and its sources have in common, as it is told.

use huntsman::detect::copyvio::{
    Article, Check, CheckOptions, CheckResult, Degree, Evidence, Source, SourceStatus, Text,
};
use huntsman::middleware::copyvio::Checked;
use serde_json::{Value, json};

/// An article with its sources, compared.
#[derive(Debug)]
pub(crate) struct Comparison {
    /// As it was named.
    pub(crate) name: String,
    pub(crate) article: Text,
    words: f64,
    pub(crate) result: CheckResult,
    /// In the order in which they were named.
    pub(crate) sources: Vec<Compared>,
}

/// A source.
#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) name: String,
    pub(crate) text: Option<Text>,
    pub(crate) source: Source,
    /// None if there is no text.
    pub(crate) evidence: Option<Evidence>,
}

impl Comparison {
    /// Compares an article with sources, each a text or the reason why there is none.
    pub(crate) fn of(
        name: String,
        article: Text,
        degree: Degree,
        sources: Vec<(String, Result<Text, String>)>,
    ) -> Self {
        let mut check = Check::new(article.exact(), CheckOptions { degree, ..CheckOptions::compare() });
        let prepared = Article::new(article.document());
        let words = prepared.document().words();
        let mut compared = Vec::with_capacity(sources.len());
        for (name, text) in sources {
            let source = match &text {
                Ok(text) => check.compare(name.clone(), text.exact()).clone(),
                Err(why) => check.fail(name.clone(), why.clone()).clone(),
            };
            let text = text.ok();
            let evidence = text.as_ref().map(|text| prepared.compare(&text.document()));
            compared.push(Compared { name, text, source, evidence });
        }
        drop(prepared);
        Self { name, words, result: check.finish(), sources: compared, article }
    }

    /// What came of a check of sources, in the order in which they were found.
    pub(crate) fn of_check(name: String, article: Text, sources: &[String], mut checked: Checked) -> Self {
        let words = article.document().words();
        let compared = |name: &String| {
            let source = checked.result.sources.iter().find(|source| source.url == *name)?.clone();
            let (evidence, text) = match checked.found.remove(name) {
                Some(found) => (Some(found.evidence), found.text),
                None => (None, None),
            };
            Some(Compared { name: name.clone(), text, source, evidence })
        };
        let sources = sources.iter().filter_map(compared).collect();
        Self { name, words, result: checked.result.clone(), sources, article }
    }

    /// The sources, the most suspicious first.
    pub(crate) fn ranked(&self) -> Vec<&Compared> {
        let score =
            |compared: &Compared| compared.evidence.as_ref().map_or(-1.0, |evidence| evidence.score.value());
        let key = |compared: &Compared| (compared.source.confidence.exact(), score(compared));
        let mut ranked: Vec<&Compared> = self.sources.iter().collect();
        ranked.sort_by(|a, b| key(b).partial_cmp(&key(a)).unwrap_or(std::cmp::Ordering::Equal));
        ranked
    }

    /// Contract of `copyvio compare --json`.
    pub(crate) fn json(&self) -> Value {
        let best = self.result.best();
        json!({
            "article": {"words": self.words, "size": self.result.article_size},
            "sources": self.sources.iter().map(Compared::json).collect::<Vec<_>>(),
            "unified_confidence": self.result.unified.map(|confidence| confidence.value()),
            "best": best.map(|source| source.url.as_str()),
            "violation": self.result.violation,
        })
    }
}

impl Compared {
    /// Why it was not compared.
    pub(crate) fn reason(&self) -> String {
        match &self.source.status {
            SourceStatus::Failed(why) | SourceStatus::Excluded(why) => {
                format!("{}: {why}", status(&self.source.status))
            }
            other => status(other).to_owned(),
        }
    }

    fn json(&self) -> Value {
        let mut out = json!({
            "source": self.name,
            "status": status(&self.source.status),
            "size": self.source.size,
            "delta": self.source.shared,
            "confidence": self.source.confidence.value(),
            "band": self.source.confidence.band().to_string(),
            "evidence": evidence(self.evidence.as_ref()),
            "spans": self.evidence.as_ref().map_or_else(Vec::new, spans),
        });
        if let SourceStatus::Failed(reason) | SourceStatus::Excluded(reason) = &self.source.status {
            out["reason"] = json!(reason);
        }
        out
    }
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

/// What a source has in common with the article; nothing if it was not read.
fn evidence(evidence: Option<&Evidence>) -> Value {
    let Some(evidence) = evidence else {
        return json!({
            "score": 0.0, "verdict": "none", "coverage": 0.0, "longest_run": 0.0, "quoted_share": 0.0,
            "boilerplate_share": 0.0,
        });
    };
    let share = |is: fn(&huntsman::detect::copyvio::Passage) -> bool| {
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
    let span = |passage: &huntsman::detect::copyvio::Passage| {
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
