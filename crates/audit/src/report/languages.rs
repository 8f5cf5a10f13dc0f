//! Languages: for each page with translations, which languages it or a sitemap names, and whether that works.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use huntsman_crawler::Result;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::blocks::{Blocks, Located, Rows};
use super::urls::Urls;
use crate::issue::Issue;
use crate::record::{Alternate, Record};

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
    /// Pages with translations, by hashes of their URLs: a sitemap may name those of pages that name them, too.
    pages: HashSet<u64>,
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

    /// Adds the translations that an answer names: those of a page, or those of the entries of a sitemap.
    pub(super) fn add(&mut self, record: &Record) {
        if let Some(html) = &record.html {
            self.add_page(&record.url, &html.alternates);
        }
        for entry in record.sitemap.iter().flat_map(|file| &file.translations) {
            self.add_page(&entry.url, &entry.alternates);
        }
    }

    fn add_page(&mut self, page: &str, alternates: &[Alternate]) {
        if alternates.is_empty() {
            return;
        }
        let is_new = self.pages.insert(xxh3_64(page.as_bytes()));
        if is_new && self.pages.len() > MAX_PAGES {
            return;
        }
        let urls = alternates.iter().map(|alternate| alternate.url.as_str()).chain([page]);
        // Pages that name the same set share its first URL.
        let key = urls.min().unwrap_or_default().to_owned();
        let set = self.sets.entry(key).or_default();
        for alternate in alternates {
            set.urls.entry(alternate.lang.clone()).or_insert_with(|| alternate.url.clone());
            if let Some(fault) = self.faults.get(&(page.to_owned(), alternate.url.clone())) {
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
            pages: self.pages.len(),
            pages_left_out: self.pages.len().saturating_sub(MAX_PAGES),
        })
    }
}
