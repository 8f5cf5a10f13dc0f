//! Sitemaps: which there are, what they list, and what they lack.

use huntsman_output::markup::Web;
use huntsman_output::render::{count, counted};
use maud::{Markup, html};

use crate::record::Record;
use crate::tables::PageLine;

/// Sitemaps that are shown.
const SHOWN: usize = 200;

/// A sitemap.
#[derive(Debug)]
struct Found {
    url: String,
    answer: String,
    is_well: bool,
    entries: usize,
    /// Entries that are pages which search engines may index.
    indexable: usize,
}

/// The sitemaps of a site.
#[derive(Debug, Default)]
pub(super) struct Sitemaps {
    found: Vec<Found>,
    number: usize,
    indexable: usize,
    listed: usize,
    not_indexable_but_listed: usize,
}

impl Sitemaps {
    pub(super) fn add_page(&mut self, page: &PageLine<'_>) {
        self.indexable += usize::from(page.indexable);
        self.listed += usize::from(page.indexable && page.in_sitemap);
        self.not_indexable_but_listed += usize::from(!page.indexable && page.in_sitemap);
    }

    pub(super) fn add(&mut self, record: &Record) {
        self.number += 1;
        if self.found.len() < SHOWN {
            let answer = match (&record.status, &record.error) {
                (Some(status), _) => status.to_string(),
                (None, error) => error.clone().unwrap_or_default(),
            };
            let is_well = record.status.is_some_and(|status| (200..300).contains(&status));
            self.found.push(Found { url: record.url.clone(), answer, is_well, entries: 0, indexable: 0 });
        }
    }

    pub(super) fn add_entries(&mut self, url: &str, entries: usize, indexable: usize) {
        if let Some(found) = self.found.iter_mut().find(|found| found.url == url) {
            (found.entries, found.indexable) = (entries, indexable);
        }
    }

    pub(super) fn view(&self) -> Markup {
        let missing = self.indexable - self.listed;
        html! {
            @if self.found.is_empty() {
                p.lead { "No sitemap was read: none was found, or the audit did not look for them." }
            } @else {
                p.lead {
                    (counted(self.number as u64, "sitemap")) " listed " (count(self.listed as u64)) " of "
                    (counted(self.indexable as u64, "page")) " that search engines may index"
                    @if missing > 0 { "; " a href="#pages?sitemap=no&index=yes" { (count(missing as u64)) " are missing" } }
                    @if self.not_indexable_but_listed > 0 {
                        "; " a href="#pages?sitemap=yes&index=no" { (count(self.not_indexable_but_listed as u64)) " listed ones may not be indexed" }
                    }
                    "."
                }
                table data-sort {
                    thead { tr { th scope="col" { "Sitemap" } th scope="col" { "Answer" } th.n scope="col" { "Entries" } th.n scope="col" { "Indexable pages" } } }
                    tbody {
                        @for found in &self.found {
                            tr {
                                th.url scope="row" { (Web(&found.url)) }
                                td { span class=(if found.is_well { "ok" } else { "bad" }) { (Web(&found.answer)) } }
                                td.n data-v=(found.entries) { (count(found.entries as u64)) }
                                td.n data-v=(found.indexable) { (count(found.indexable as u64)) }
                            }
                        }
                    }
                }
                @if self.number > SHOWN { p.soft { "The first " (SHOWN) " of " (count(self.number as u64)) " sitemaps are shown." } }
            }
        }
    }
}
