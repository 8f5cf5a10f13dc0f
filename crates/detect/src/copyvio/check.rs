//! A check: one article, its sources in any order, and the result of comparing them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::chain::{Chain, Degree, Delta, Windows};
use super::confidence::{Band, Confidence};

/// Options of a check; the defaults are the reference's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CheckOptions {
    /// Words per window. Default 5.
    pub degree: Degree,
    /// A source with at least this confidence is a violation. Default 0.75.
    pub min_confidence: f64,
    /// Sources with at least this confidence are combined for the unified confidence. Default 0.15; above 1 there is no unified confidence,
    /// as in the reference's public tool.
    pub include_threshold: f64,
    /// Whether sources that come after a violation are skipped. Default true.
    pub short_circuit: bool,
    /// Articles whose chain is smaller are not checked. Default 20, which is fewer than 16 words at degree 5. Use 0 to compare an article
    /// with one source, where the reference has no such rule.
    pub min_article: usize,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            degree: Degree::default(),
            min_confidence: Band::SUSPECTED,
            include_threshold: 0.15,
            short_circuit: true,
            min_article: 20,
        }
    }
}

impl CheckOptions {
    /// Options for a comparison with given sources: every article is checked against every source.
    pub fn compare() -> Self {
        Self { min_article: 0, short_circuit: false, ..Self::default() }
    }
}

/// The outcome of a source.
///
/// Deliberately different: the reference does not distinguish a failed source from a late one, and gives no reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", content = "reason", rename_all = "snake_case")]
pub enum SourceStatus {
    /// The source was read; its confidence counts.
    Compared,
    /// The source is a known copy of the article's site: the rule that matched it, or the mirror hint in its HTML.
    Excluded(String),
    /// The source was not started, because another one had been enough or the article is too small.
    Skipped,
    /// The source gave no text; the reason.
    Failed(String),
    /// The time limit passed before the source was read.
    Late,
}

impl SourceStatus {
    /// Whether the reference would call the source excluded.
    pub fn is_excluded(&self) -> bool {
        matches!(self, SourceStatus::Excluded(_))
    }

    /// Whether the reference would call the source skipped: this includes excluded sources, but not failed or late ones.
    pub fn is_skipped(&self) -> bool {
        matches!(self, SourceStatus::Skipped | SourceStatus::Excluded(_))
    }
}

/// A source in a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// Its address.
    pub url: String,
    /// Its confidence; zero unless it was compared.
    pub confidence: Confidence,
    /// Its outcome.
    #[serde(flatten)]
    pub status: SourceStatus,
    /// The number of windows of its text; that of the empty text (k - 1) if it was not compared.
    pub size: usize,
    /// The number of windows that it shares with the article.
    pub shared: usize,
}

/// Sorts sources as the reference does, in descending order and stably: by confidence, not excluded, not skipped, size.
pub fn sort_sources(sources: &mut [Source]) {
    sources.sort_by(|a, b| rank(b, a));
}

fn rank(a: &Source, b: &Source) -> std::cmp::Ordering {
    a.confidence
        .exact()
        .total_cmp(&b.confidence.exact())
        .then((!a.status.is_excluded()).cmp(&!b.status.is_excluded()))
        .then((!a.status.is_skipped()).cmp(&!b.status.is_skipped()))
        .then(a.size.cmp(&b.size))
}

/// An article and the sources with which it was compared so far.
///
/// A check fetches nothing: the caller passes the text of each source, or the reason why there is none. A comparison costs one look-up per
/// window of the source; for sources that may count for the unified confidence, 8 bytes per window are kept.
///
/// ```
/// use huntsman_detect::copyvio::{Check, CheckOptions};
///
/// let text = "The old mill stands on the bank of the river. Every winter it ground the corn of nine villages.";
/// let mut check = Check::new(text, CheckOptions::default());
/// check.compare("http://a.example/", "Nothing of that sort.");
/// check.compare("http://b.example/", &format!("They say: {text}"));
/// let result = check.finish();
/// assert!(result.violation);
/// assert_eq!(result.best().unwrap().url, "http://b.example/");
/// ```
pub struct Check {
    options: CheckOptions,
    article: Chain,
    sources: Vec<Source>,
    /// The windows of the sources that count for the unified confidence.
    included: Vec<Windows>,
    is_finished: bool,
}

impl Check {
    /// Starts a check of an article's text, which is prepared once here.
    pub fn new(article: &str, options: CheckOptions) -> Self {
        Self {
            options,
            article: Chain::of(article, options.degree),
            sources: Vec::new(),
            included: Vec::new(),
            is_finished: false,
        }
    }

    /// The article's chain.
    pub fn article(&self) -> &Chain {
        &self.article
    }

    /// Whether the article has too few words for a check. Then every source is skipped, and no search queries are needed.
    pub fn is_too_small(&self) -> bool {
        self.article.size() < self.options.min_article
    }

    /// Whether further sources would be skipped.
    pub fn is_over(&self) -> bool {
        self.is_too_small() || self.is_finished && self.options.short_circuit
    }

    /// Compares a source's text. Sources that were being fetched when the check was over still count; for sources that were not begun call
    /// [`Check::record_skipped`].
    ///
    /// The empty text is never compared, because it would share the marks around texts; a text without words is compared.
    pub fn compare(&mut self, url: impl Into<String>, text: &str) -> &Source {
        if text.is_empty() {
            return self.record_failed(url, "no text");
        }
        if self.is_too_small() {
            return self.record_skipped(url);
        }
        let windows = Windows::of(text, self.options.degree);
        let Delta { size: shared, .. } = self.article.delta(&windows);
        let confidence = Confidence::of(self.article.size(), shared);
        self.is_finished |= confidence.exact() >= self.options.min_confidence;
        let size = windows.size();
        if confidence.exact() >= self.options.include_threshold {
            self.included.push(windows);
        }
        self.push(Source { url: url.into(), confidence, status: SourceStatus::Compared, size, shared })
    }

    /// Records a source that is a known copy of the article's site.
    pub fn record_excluded(&mut self, url: impl Into<String>, why: impl Into<String>) -> &Source {
        self.unread(url, SourceStatus::Excluded(why.into()))
    }

    /// Records a source that did not have to be read any more.
    pub fn record_skipped(&mut self, url: impl Into<String>) -> &Source {
        self.unread(url, SourceStatus::Skipped)
    }

    /// Records a source that gave no text.
    pub fn record_failed(&mut self, url: impl Into<String>, why: impl Into<String>) -> &Source {
        self.unread(url, SourceStatus::Failed(why.into()))
    }

    /// Records a source that was not read in time.
    pub fn record_late(&mut self, url: impl Into<String>) -> &Source {
        self.unread(url, SourceStatus::Late)
    }

    fn unread(&mut self, url: impl Into<String>, status: SourceStatus) -> &Source {
        let size = self.options.degree.get() - 1;
        self.push(Source { url: url.into(), confidence: Confidence::ZERO, status, size, shared: 0 })
    }

    fn push(&mut self, source: Source) -> &Source {
        self.sources.push(source);
        self.sources.last().expect("it was pushed")
    }

    /// Ends the check and returns its result.
    pub fn finish(self) -> CheckResult {
        let unified = (!self.included.is_empty()).then(|| {
            let shared = self.article.delta_of_all(&self.included).size;
            Confidence::of(self.article.size(), shared)
        });
        let mut sources = self.sources;
        sort_sources(&mut sources);
        CheckResult {
            violation: self.is_finished,
            article_size: self.article.size(),
            include_threshold: self.options.include_threshold,
            unified,
            sources,
        }
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check")
            .field("options", &self.options)
            .field("article", &self.article)
            .field("sources", &self.sources.len())
            .finish_non_exhaustive()
    }
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CheckResult {
    /// Whether a source has the confidence of a violation.
    pub violation: bool,
    /// The number of windows of the article.
    pub article_size: usize,
    /// The confidence that the article copies the included sources taken as one; `None` if none is included.
    pub unified: Option<Confidence>,
    /// All sources, the most suspicious first.
    pub sources: Vec<Source>,
    include_threshold: f64,
}

impl CheckResult {
    /// The most suspicious source.
    pub fn best(&self) -> Option<&Source> {
        self.sources.first()
    }

    /// The sources that counted for the unified confidence.
    pub fn included(&self) -> impl Iterator<Item = &Source> {
        let is_included = |source: &&Source| {
            source.status == SourceStatus::Compared && source.confidence.exact() >= self.include_threshold
        };
        self.sources.iter().filter(is_included)
    }

    /// The unified confidence if there is one, else that of the best source, else zero.
    pub fn confidence(&self) -> Confidence {
        self.unified.or(self.best().map(|best| best.confidence)).unwrap_or(Confidence::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen";

    #[test]
    fn an_article_of_fifteen_words_is_not_checked_and_one_of_sixteen_is() {
        let (fifteen, _) = TEXT.rsplit_once(' ').unwrap();
        let mut check = Check::new(fifteen, CheckOptions::default());
        assert!(check.is_too_small() && check.is_over());
        assert_eq!(check.compare("http://a.example/", fifteen).status, SourceStatus::Skipped);
        assert_eq!(check.finish().confidence(), Confidence::ZERO);
        let mut check = Check::new(TEXT, CheckOptions::default());
        assert_eq!(check.compare("http://a.example/", TEXT).confidence.band(), Band::Suspected);
        let mut compare = Check::new(fifteen, CheckOptions::compare());
        assert_eq!(compare.compare("http://a.example/", fifteen).confidence.band(), Band::Suspected);
    }

    #[test]
    fn a_violation_ends_the_check_unless_all_sources_are_wanted() {
        for (short_circuit, is_over) in [(true, true), (false, false)] {
            let mut check = Check::new(TEXT, CheckOptions { short_circuit, ..CheckOptions::default() });
            assert!(!check.is_over());
            check.compare("http://a.example/", TEXT);
            assert_eq!(check.is_over(), is_over);
            assert!(check.finish().violation);
        }
    }

    #[test]
    fn an_empty_source_is_not_compared_and_one_without_words_is() {
        let mut check = Check::new("", CheckOptions::compare());
        assert_eq!(check.compare("http://a.example/", "").confidence, Confidence::ZERO);
        assert_eq!(check.compare("http://b.example/", "!!!").confidence.value(), 1.0);
        let result = check.finish();
        assert_eq!(result.sources[1].status, SourceStatus::Failed("no text".to_owned()));
        assert_eq!(result.sources[1].size, 4);
    }

    #[test]
    fn without_included_sources_the_best_one_gives_the_confidence() {
        let source = "zero one two three four five";
        let options = CheckOptions { include_threshold: 1.1, ..CheckOptions::default() };
        let mut check = Check::new(TEXT, options);
        check.compare("http://a.example/", source);
        let result = check.finish();
        assert_eq!(result.unified, None);
        assert_eq!(result.confidence(), result.best().unwrap().confidence);
        assert!(result.confidence().value() > 0.0);
    }

    #[test]
    fn a_result_has_the_status_of_each_source() {
        let mut check = Check::new(TEXT, CheckOptions::default());
        check.record_excluded("http://a.example/", "*.a.example");
        check.record_late("http://b.example/");
        let json = serde_json::to_value(check.finish()).unwrap();
        assert_eq!(json["sources"][0]["status"], "late");
        assert_eq!(json["sources"][1]["status"], "excluded");
        assert_eq!(json["sources"][1]["reason"], "*.a.example");
        assert_eq!(json["unified"], serde_json::Value::Null);
    }
}
