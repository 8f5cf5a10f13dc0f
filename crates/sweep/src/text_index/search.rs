//! Finds the pages of an index that an article may be taken from.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime};

use huntsman_crawler::Timestamp;
use huntsman_detect::copyvio::{Article, Dates};
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{IndexRecordOption, Value};
use tantivy::{DocAddress, Searcher, TantivyDocument, Term};

use super::page::{IndexedPage, body};
use super::terms::terms;
use super::{Fields, Subject};
use crate::candidates::Candidate;

/// Maximum number of terms of the article that are used.
const MOST_TERMS: usize = 50_000;
/// Number of terms in a passage, and maximum number of passages that are searched for; in a longer article the passages
/// are further apart.
const PASSAGE: usize = 60;
const MOST_PASSAGES: usize = 64;
/// Number of terms that are searched for in each passage, the rarest ones: enough that some are left if words were
/// changed.
const RAREST: usize = 24;
/// Maximum number of pages found for a passage, of pages whose text is read, and of candidates.
const MOST_HITS: usize = 10;
const MOST_READ: usize = 80;
const MOST: usize = 20;
/// Minimum number of terms that a candidate shares with the article; fewer if the article has fewer.
const FEWEST_TERMS: usize = 4;

/// Pages that share passages with the article, the most likely source first.
pub(super) fn find(
    searcher: &Searcher,
    fields: Fields,
    subject: &Subject,
) -> tantivy::Result<Vec<Candidate>> {
    let mut words = terms(&body(&subject.text));
    words.truncate(MOST_TERMS);
    let own = subject.url.as_deref().map(IndexedPage::key_of);
    let has_own = match &own {
        Some(own) => searcher.doc_freq(&Term::from_field_text(fields.url, own))? > 0,
        None => false,
    };
    let query =
        ArticleQuery { searcher, fields, words: &words, frequencies: frequencies(searcher, fields, &words)? };
    let mut best: HashMap<DocAddress, f32> = HashMap::new();
    for passage in passages(words.len()) {
        for (score, page) in query.pages(passage, if has_own { 2 } else { 1 })? {
            let known = best.entry(page).or_default();
            *known = known.max(score);
        }
    }
    let mut pages: Vec<(DocAddress, f32)> = best.into_iter().collect();
    // Pages with equal scores are in the order of the index, so that the same query has the same result.
    pages.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let distinct: HashSet<&str> = words.iter().map(String::as_str).collect();
    let fewest = FEWEST_TERMS.min(distinct.len());
    let prepared = Article::new(subject.text.document());
    let mut ranked = Vec::new();
    for (address, _) in pages.into_iter().take(MOST_READ) {
        let document: TantivyDocument = searcher.doc(address)?;
        let record = document.get_first(fields.page).and_then(|value| value.as_bytes());
        let Some(page) = record.and_then(IndexedPage::of_record) else { continue };
        if own.as_ref().is_some_and(|own| *own == IndexedPage::key_of(&page.url)) {
            continue;
        }
        let its: HashSet<String> = terms(&body(&page.text)).into_iter().collect();
        if distinct.iter().filter(|term| its.contains(**term)).count() >= fewest {
            // Large pages share many terms with everything, so pages are ranked by shared passages.
            let evidence = prepared.compare(&page.text.document());
            if evidence.matched > 0.0 {
                ranked.push((evidence.matched, page));
            }
        }
    }
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    // The page existed when it was crawled, whatever date it states.
    let seen = |at: Timestamp| SystemTime::UNIX_EPOCH + Duration::from_micros(at.0);
    let candidate = |page: IndexedPage| Candidate {
        url: page.url,
        text: Some(page.text),
        dates: Dates { first_seen: page.fetched_at.map(seen), ..Dates::default() },
    };
    Ok(ranked.into_iter().take(MOST).map(|(_, page)| candidate(page)).collect())
}

/// Number of pages that have each term.
fn frequencies<'w>(
    searcher: &Searcher,
    fields: Fields,
    words: &'w [String],
) -> tantivy::Result<HashMap<&'w str, u64>> {
    let mut frequencies = HashMap::new();
    for word in words {
        if !frequencies.contains_key(word.as_str()) {
            let frequency = searcher.doc_freq(&Term::from_field_text(fields.body, word))?;
            frequencies.insert(word.as_str(), frequency);
        }
    }
    Ok(frequencies)
}

/// The passages of a text as ranges of its terms: overlapping by half, or further apart if these would be too many.
fn passages(terms: usize) -> Vec<std::ops::Range<usize>> {
    let last = terms.saturating_sub(PASSAGE);
    let number = last.div_ceil(PASSAGE / 2).min(MOST_PASSAGES - 1);
    let start = |at: usize| (at * last).checked_div(number).unwrap_or(0);
    (0..=number)
        .map(|at| start(at)..(start(at) + PASSAGE).min(terms))
        .filter(|passage| !passage.is_empty())
        .collect()
}

/// The terms of an article, and how often each occurs in the index.
struct ArticleQuery<'a> {
    searcher: &'a Searcher,
    fields: Fields,
    words: &'a [String],
    frequencies: HashMap<&'a str, u64>,
}

impl ArticleQuery<'_> {
    fn frequency(&self, word: &str) -> u64 {
        self.frequencies.get(word).copied().unwrap_or(0)
    }

    /// The pages that have most of the rarest terms of a passage. Terms in fewer than `least` pages are not searched for:
    /// if the index has the article's own page, terms in a single page find only that one.
    fn pages(&self, passage: std::ops::Range<usize>, least: u64) -> tantivy::Result<Vec<(f32, DocAddress)>> {
        let distinct: HashSet<&str> = self.words[passage].iter().map(String::as_str).collect();
        let mut rare: Vec<(u64, &str)> =
            distinct.into_iter().map(|word| (self.frequency(word), word)).collect();
        rare.retain(|(frequency, _)| *frequency >= least);
        rare.sort_unstable();
        let clauses: Vec<(Occur, Box<dyn Query>)> = rare
            .into_iter()
            .take(RAREST)
            .map(|(_, word)| {
                let term = Term::from_field_text(self.fields.body, word);
                let query: Box<dyn Query> = Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs));
                (Occur::Should, query)
            })
            .collect();
        if clauses.is_empty() {
            return Ok(Vec::new());
        }
        self.searcher.search(&BooleanQuery::new(clauses), &TopDocs::with_limit(MOST_HITS).order_by_score())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_cover_a_text_and_are_bounded() {
        assert!(passages(0).is_empty());
        assert_eq!(passages(1).first(), Some(&(0..1)));
        assert_eq!((passages(60).len(), passages(60)[0].end), (1, 60));
        assert_eq!(passages(61), [0..60, 1..61]);
        assert_eq!(passages(120), [0..60, 30..90, 60..120]);
        for terms in [500, 1_000, 50_000] {
            let made = passages(terms);
            assert!(made.len() <= MOST_PASSAGES);
            assert_eq!((made[0].start, made[made.len() - 1].end), (0, terms));
            if terms <= 1_000 {
                assert!(made.windows(2).all(|two| two[1].start - two[0].start <= PASSAGE / 2));
            }
        }
    }
}
