//! The structure of a site: clicks from the start, folders, links, and where readers end up.

use std::collections::BTreeMap;

use huntsman_output::markup::Web;
use huntsman_output::render::{count, counted};
use maud::{Markup, html};

use super::charts::{bar, histogram};
use super::directories::{Directories, Directory};
use super::graph::Graph;
use super::{link_to_folder, link_to_page};
use crate::tables::PageLine;

/// Pages by rank, and folders, that are shown.
const RANKED: usize = 12;
const FOLDERS: usize = 120;

/// What is known of the structure.
#[derive(Debug, Default)]
pub(super) struct Structure {
    depths: BTreeMap<Option<u16>, usize>,
    orphans: usize,
    ranked: Vec<(f32, String, Option<String>)>,
    directories: Directories,
    /// The same, once all pages were added.
    pub(super) folders: Vec<Directory>,
}

impl Structure {
    pub(super) fn add(&mut self, page: &PageLine<'_>, issues: [usize; 3]) {
        *self.depths.entry(page.depth).or_default() += 1;
        self.orphans += usize::from(page.depth.is_none() && page.is_html());
        let rank = page.rank.unwrap_or(0.0);
        self.directories.add(page.url, page.indexable, f64::from(rank), issues);
        if !page.is_html() {
            return;
        }
        let at = self.ranked.partition_point(|(other, ..)| *other >= rank);
        if at < RANKED {
            self.ranked.insert(at, (rank, page.url.to_owned(), page.title.map(str::to_owned)));
            self.ranked.truncate(RANKED);
        }
    }

    /// Ends the sums, after the last page.
    pub(super) fn finish(&mut self) {
        self.folders = std::mem::take(&mut self.directories).finish();
    }

    pub(super) fn view(&self, graph: &mut Graph) -> Markup {
        let linked = self.depths.iter().filter_map(|(depth, number)| Some(((*depth)?, *number)));
        let mut depths: Vec<_> = linked
            .map(|(depth, number)| {
                let name = match depth {
                    0 => "the start".to_owned(),
                    depth => counted(u64::from(depth), "click"),
                };
                (name, number, Some(format!("#pages?depth={depth}")))
            })
            .collect();
        let has_start = self.depths.keys().any(Option::is_some);
        if let Some(number) = self.depths.get(&None) {
            let name = if has_start { "no links lead there" } else { "not known" };
            depths.push((name.to_owned(), *number, Some("#pages?depth=none".to_owned())));
        }
        html! {
            p.lead {
                "How readers and robots get from page to page. "
                @match self.orphans {
                    _ if !has_start => "Where readers begin is not known of these pages, so none has a number of clicks.",
                    0 => "Links lead from the start to every page.",
                    orphans => {
                        a href="#pages?depth=none" { (counted(orphans as u64, "page")) }
                        " cannot be reached from the start by links, only by a sitemap or a redirect."
                    }
                }
            }
            h3 { "Links" }
            (graph.view())
            div.panels {
                (histogram("Clicks from the start", "Clicks", &depths))
                (self.ranked())
            }
            h3 { "Folders" }
            (self.folders())
        }
    }

    fn ranked(&self) -> Markup {
        html! {
            div.panel {
                h3 { "Pages that links favour" }
                p.soft { "PageRank over the links of the site, from 0 to 100." }
                table.ranked {
                    thead.quiet { tr { th scope="col" { "Page" } th scope="col" { "Share" } th.n scope="col" { "PageRank" } } }
                    tbody {
                        @for (rank, url, title) in &self.ranked {
                            tr {
                                th scope="row" { a href=(Web(&link_to_page(url))) title=(Web(url)) { (Web(title.as_deref().filter(|title| !title.is_empty()).unwrap_or(url))) } }
                                td { (bar(&[("part", f64::from(*rank) / 100.0)])) }
                                td.n { (format!("{rank:.1}")) }
                            }
                        }
                    }
                }
            }
        }
    }

    fn folders(&self) -> Markup {
        let shown: Vec<&Directory> = {
            let mut largest: Vec<&Directory> = self.folders.iter().collect();
            largest.sort_by(|a, b| b.pages.cmp(&a.pages).then(a.depth.cmp(&b.depth)).then(a.url.cmp(&b.url)));
            largest.truncate(FOLDERS);
            largest.sort_by(|a, b| a.url.cmp(&b.url));
            largest
        };
        let most = shown.iter().map(|folder| folder.pages).max().unwrap_or(0).max(1) as f64;
        html! {
            table data-sort {
                thead {
                    tr {
                        th scope="col" { "Folder" } th.n scope="col" { "Pages" } th scope="col" { "Share" } th.n scope="col" { "Indexable" }
                        th.n scope="col" { "Errors" } th.n scope="col" { "Warnings" } th.n scope="col" { "PageRank" }
                    }
                }
                tbody {
                    @for folder in &shown {
                        tr {
                            th.url scope="row" data-v=(Web(&folder.url)) {
                                span class={ "indent i" (folder.depth.min(8)) } {}
                                a href=(Web(&link_to_folder(&folder.url))) title=(Web(&folder.url)) { (Web(folder.name())) "/" }
                            }
                            td.n data-v=(folder.pages) { (count(folder.pages as u64)) }
                            td data-v=(folder.pages) { (bar(&[("part", folder.pages as f64 / most)])) }
                            td.n data-v=(folder.indexable) { (count(folder.indexable as u64)) }
                            td.n data-v=(folder.issues[0]) { (count(folder.issues[0] as u64)) }
                            td.n data-v=(folder.issues[1]) { (count(folder.issues[1] as u64)) }
                            td.n data-v=(folder.rank) { (count(folder.rank.round() as u64)) }
                        }
                    }
                }
            }
            @if self.folders.len() > shown.len() { p.soft { "The " (shown.len()) " largest folders are shown." } }
        }
    }
}
