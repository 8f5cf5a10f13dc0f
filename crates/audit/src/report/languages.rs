//! Languages: for each page with translations, which languages it names, and whether that works.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use huntsman_crawler::Result;
use serde::Serialize;

use super::blocks::{Blocks, Located, Rows};
use super::urls::Urls;
use crate::issue::Issue;
use crate::record::Record;

/// Pages with translations that are looked at, and languages that have a column.
const MAX_PAGES: usize = 5_000;
const MAX_LANGUAGES: usize = 40;
/// Faults of translations that are kept.
const MAX_FAULTS: usize = 100_000;

/// The matrix of translations.
#[derive(Debug, Default)]
pub(super) struct Languages {
    /// The state of a translation by page and target; it is the name of a code without `hreflang-`.
    faults: HashMap<(String, String), String>,
    sets: BTreeMap<String, Set>,
    pages: usize,
}

/// Pages that are translations of each other.
#[derive(Debug, Default)]
struct Set {
    /// URLs by language.
    urls: BTreeMap<String, String>,
    /// The worst fault of each language.
    faults: BTreeMap<String, String>,
}

/// Where the matrix is.
#[derive(Debug, Default, Serialize)]
pub(super) struct Matrix {
    languages: Vec<String>,
    rows: Located,
    /// Number of pages with translations.
    pages: usize,
    /// Numbers of pages and languages that are left out.
    pages_left_out: usize,
    languages_left_out: usize,
}

impl Languages {
    pub(super) fn add_issue(&mut self, issue: &Issue) {
        let Some(name) = issue.code.strip_prefix("hreflang-") else { return };
        if self.faults.len() < MAX_FAULTS
            && let Some(target) = &issue.target
        {
            self.faults.insert((issue.url.clone(), target.clone()), name.to_owned());
        }
    }

    /// Adds a page, if it has translations.
    pub(super) fn add(&mut self, record: &Record) {
        let Some(html) = record.html.as_ref().filter(|html| !html.alternates.is_empty()) else { return };
        self.pages += 1;
        if self.pages > MAX_PAGES {
            return;
        }
        let urls = html.alternates.iter().map(|alternate| &alternate.url).chain([&record.url]);
        // Pages that name the same set share its first URL.
        let key = urls.min().cloned().unwrap_or_default();
        let set = self.sets.entry(key).or_default();
        for alternate in &html.alternates {
            set.urls.entry(alternate.lang.clone()).or_insert_with(|| alternate.url.clone());
            if let Some(fault) = self.faults.get(&(record.url.clone(), alternate.url.clone())) {
                set.faults.entry(alternate.lang.clone()).or_insert_with(|| fault.clone());
            }
        }
    }

    /// Writes a row for each set: the URL of each language, and what is wrong with it.
    pub(super) fn finish(self, urls: &mut Urls, blocks: &mut Blocks) -> Result<Matrix> {
        let mut number: BTreeMap<&String, usize> = BTreeMap::new();
        self.sets
            .values()
            .flat_map(|set| set.urls.keys())
            .for_each(|lang| *number.entry(lang).or_default() += 1);
        let mut languages: Vec<(&String, usize)> = number.into_iter().collect();
        languages.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let shown: BTreeSet<&String> = languages.iter().take(MAX_LANGUAGES).map(|(lang, _)| *lang).collect();
        let shown: Vec<&String> = shown.into_iter().collect();
        let mut rows = Rows::new("languages");
        for set in self.sets.values() {
            let mut row: Vec<Option<(Option<u32>, Option<&String>)>> = Vec::new();
            for lang in &shown {
                let cell = match set.urls.get(*lang) {
                    None => None,
                    Some(url) => Some((urls.any(url, blocks)?, set.faults.get(*lang))),
                };
                row.push(cell);
            }
            rows.add(&row, blocks)?;
        }
        Ok(Matrix {
            languages_left_out: languages.len() - shown.len(),
            languages: shown.into_iter().cloned().collect(),
            rows: rows.finish(blocks)?,
            pages: self.pages,
            pages_left_out: self.pages.saturating_sub(MAX_PAGES),
        })
    }
}
