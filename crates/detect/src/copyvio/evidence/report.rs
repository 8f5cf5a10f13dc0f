//! The passages that two texts share, with their positions in the original texts.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::boilerplate::Boilerplate;
use super::disguise::Disguise;
use super::document::{Document, sorted};
use super::quotation::{is_cited, quotations};
use super::runs::{Seeds, TokenRun, runs};
use super::verdict::{Score, Verdict};

/// The least number of equal words of a passage, in quarters of words.
const MIN_PASSAGE: u32 = 5 * 4;

/// A range of a text, start inclusive, end exclusive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The range in characters (code points) of the original text.
    pub chars: Range<usize>,
    /// The range in bytes of the original text, in UTF-8.
    pub bytes: Range<usize>,
}

/// A passage that both texts contain, possibly with a few different words in between.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Passage {
    /// Its position in the article.
    pub article: Span,
    /// Its position in the source.
    pub source: Span,
    /// The number of equal words.
    pub words: f64,
    /// The number of words of the longest part without a gap.
    pub longest: f64,
    /// Whether it is in quotation marks or in a range that the caller marked as a quotation.
    pub is_quoted: bool,
    /// Whether there is a reference near it.
    pub is_cited: bool,
    /// Whether it is navigation, header or footer, or occurs on many sites.
    pub is_boilerplate: bool,
}

impl Passage {
    /// Whether it is no evidence against the article: a quotation that names its source, or boilerplate.
    pub fn is_excused(&self) -> bool {
        self.is_boilerplate || self.is_quoted && self.is_cited
    }
}

/// An article, prepared for comparison with many sources.
///
/// Passages are found by seeds of three equal words; between the parts of a passage up to six words may differ, on either side. So passages
/// with changed words are found, and moved sentences are passages of their own. A passage has at least five equal words, and at least half
/// of its words are equal. Passages do not overlap in the article.
///
/// A comparison costs a binary search per word of the source, and time for each match; memory is 16 bytes per word of the article in
/// addition to the document's.
///
/// ```
/// use huntsman_detect::copyvio::{Article, Document, Verdict};
///
/// let source = "The old mill on the bank of the river was built by nine villages, which ground their corn there every \
///               winter until the great flood.";
/// let article = Article::new(Document::new(
///     "Nobody knows it now. The old mill by the bank of the river was built by nine poor villages, who ground their corn \
///      there each winter until the great flood.",
/// ));
/// let evidence = article.compare(&Document::new(source));
/// assert_eq!(evidence.verdict, Verdict::Possible);
/// assert_eq!(evidence.passages.len(), 1);
/// assert!(article.document().text()[evidence.passages[0].article.bytes.clone()].starts_with("The old mill by"));
/// ```
#[derive(Debug)]
pub struct Article<'t> {
    document: Document<'t>,
    seeds: Seeds,
    quotations: Vec<Range<usize>>,
}

impl<'t> Article<'t> {
    /// Prepares an article.
    pub fn new(document: Document<'t>) -> Self {
        let quotations =
            sorted(quotations(&document.text).into_iter().chain(document.quotations.iter().cloned()));
        Self { seeds: Seeds::of(&document.tokens), quotations, document }
    }

    /// The article's text.
    pub fn document(&self) -> &Document<'t> {
        &self.document
    }

    /// Compares the article with a source.
    pub fn compare(&self, source: &Document<'_>) -> Evidence {
        self.compare_with(source, None)
    }

    /// Compares the article with a source, given the text that is known to occur on many sites.
    pub fn compare_knowing(&self, source: &Document<'_>, boilerplate: &Boilerplate) -> Evidence {
        self.compare_with(source, Some(boilerplate))
    }

    fn compare_with(&self, source: &Document<'_>, boilerplate: Option<&Boilerplate>) -> Evidence {
        let runs = runs(&self.document, &self.seeds, source, MIN_PASSAGE);
        let words = self.document.words();
        let passages = self.passages(&runs, source, boilerplate);
        let all: Vec<f64> = passages.iter().map(|passage| passage.words).collect();
        let counted: Vec<f64> =
            passages.iter().filter(|passage| !passage.is_excused()).map(|passage| passage.words).collect();
        let sum = |words: &[f64]| words.iter().fold(0.0, |sum, words| sum + words);
        let share = |matched: f64| if words > 0.0 { (matched / words).min(1.0) } else { 0.0 };
        let score = Score::of(counted.iter().copied(), words);
        Evidence {
            words,
            matched: sum(&all),
            coverage: share(sum(&all)),
            coverage_counted: share(sum(&counted)),
            longest: all.iter().copied().fold(0.0, f64::max),
            score,
            score_with_excused: Score::of(all.iter().copied(), words),
            verdict: score.verdict(),
            article_disguise: self.document.disguise(),
            source_disguise: source.disguise(),
            is_manipulated: self.document.disguise().is_suspicious(words)
                || source.disguise().is_suspicious(source.words()),
            passages,
        }
    }

    fn passages(
        &self,
        runs: &[TokenRun],
        source: &Document<'_>,
        common: Option<&Boilerplate>,
    ) -> Vec<Passage> {
        let bytes = |document: &Document<'_>, (from, to): (usize, usize)| {
            document.tokens[from].start as usize..document.tokens[to - 1].end as usize
        };
        let articles: Vec<Range<usize>> = runs.iter().map(|run| bytes(&self.document, run.article)).collect();
        let sources: Vec<Range<usize>> = runs.iter().map(|run| bytes(source, run.source)).collect();
        let article_spans = spans(&self.document.text, &articles);
        let source_spans = spans(&source.text, &sources);
        let passages =
            runs.iter().zip(article_spans).zip(source_spans).map(|((run, article), source_span)| Passage {
                words: f64::from(run.matched) / 4.0,
                longest: f64::from(run.longest) / 4.0,
                is_quoted: mostly_within(&article.bytes, &self.quotations),
                is_cited: is_cited(&self.document.text, article.bytes.clone()),
                is_boilerplate: mostly_within(&article.bytes, &self.document.boilerplate)
                    || mostly_within(&source_span.bytes, &source.boilerplate)
                    || common.is_some_and(|common| {
                        common.is_common(&self.document.tokens[run.article.0..run.article.1])
                    }),
                article,
                source: source_span,
            });
        passages.collect()
    }
}

/// Whether at least four fifths of a range are covered by `ranges`, which do not overlap.
fn mostly_within(range: &Range<usize>, ranges: &[Range<usize>]) -> bool {
    let overlap =
        |other: &Range<usize>| other.end.min(range.end).saturating_sub(other.start.max(range.start));
    let within: usize = ranges.iter().map(overlap).sum();
    within * 5 >= range.len() * 4 && within > 0
}

/// Converts byte ranges of a text to spans with character positions, in one pass over the text.
fn spans(text: &str, ranges: &[Range<usize>]) -> Vec<Span> {
    let mut places: Vec<usize> = ranges.iter().flat_map(|range| [range.start, range.end]).collect();
    places.sort_unstable();
    places.dedup();
    let mut chars = Vec::with_capacity(places.len());
    let (mut byte, mut count) = (0, 0);
    for place in &places {
        count += text[byte..*place].chars().count();
        byte = *place;
        chars.push(count);
    }
    let char_at = |byte: usize| chars[places.binary_search(&byte).expect("every end was collected")];
    let span =
        |range: &Range<usize>| Span { chars: char_at(range.start)..char_at(range.end), bytes: range.clone() };
    ranges.iter().map(span).collect()
}

/// The result of comparing an article with a source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Evidence {
    /// The number of words of the article.
    pub words: f64,
    /// The number of words of the article that are equal in a passage of the source.
    pub matched: f64,
    /// The share of the article's words that are equal in a passage, from 0 to 1.
    pub coverage: f64,
    /// The coverage without boilerplate and without quotations that are cited.
    pub coverage_counted: f64,
    /// The number of equal words of the largest passage.
    pub longest: f64,
    /// The probability that the article copies, from the passages that are not excused.
    pub score: Score,
    /// The probability that the article copies, with the excused passages included.
    pub score_with_excused: Score,
    /// The verdict that follows from the score.
    pub verdict: Verdict,
    /// The unusual characters in the article's words.
    pub article_disguise: Disguise,
    /// The unusual characters in the source's words.
    pub source_disguise: Disguise,
    /// Whether one of the texts was probably manipulated so that its words compare unequal.
    pub is_manipulated: bool,
    /// The passages, in the order of the article.
    pub passages: Vec<Passage>,
}
