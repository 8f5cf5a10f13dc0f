//! What the report tells of a single page besides its row in the table: the way from the start, issues, links to it and from it.

use std::collections::HashMap;

use huntsman_crawler::Result;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::blocks::{Blocks, Located, Rows};
use super::collect::text;
use super::urls::Urls;
use crate::issue::Issue;
use crate::record::{Edge, EdgeKind};

/// Links of all pages together that are kept, in each direction.
const MAX_LINKS: usize = 2_000_000;
/// Links of a page that are kept: at least, and at most.
const OF_PAGE: [usize; 2] = [10, 100];
/// Issues of a page that are kept: those about it, and those of other URLs that show on it.
const ISSUES: [usize; 2] = [100, 50];
/// Different texts of links that are kept.
const MAX_TEXTS: usize = 300_000;
/// The regions of a page, by their numbers.
pub(super) const REGIONS: [&str; 6] = ["", "header", "nav", "main", "aside", "footer"];

/// A link to a page.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    source: u32,
    text: u32,
    line: u32,
    region: u8,
    nofollow: bool,
}

/// What is known of a page.
#[derive(Debug, Default)]
struct Page {
    depth: Option<u16>,
    /// The page from which it is reached with the fewest clicks.
    parent: Option<u32>,
    /// A page that redirects to it and is as many clicks away.
    moved_from: Option<u32>,
    canonical: Option<u32>,
    redirect: Option<u32>,
    incoming: Vec<Incoming>,
    /// The number of a code and the row of an issue.
    about: Vec<(u16, u32)>,
    shows: Vec<(u16, u32)>,
}

/// Where details are.
pub(super) struct OfPages {
    pub(super) of_pages: Located,
    pub(super) links: Located,
    /// Links of a page that are shown at most.
    pub(super) most: usize,
}

/// Details of pages, by their numbers.
#[derive(Debug)]
pub(super) struct Details {
    pages: Vec<Page>,
    texts: Vec<String>,
    known: HashMap<u64, u32>,
    links: Rows,
    most: usize,
}

impl Default for Details {
    fn default() -> Self {
        Self {
            pages: Vec::new(),
            texts: vec![String::new()],
            known: HashMap::new(),
            links: Rows::new("links"),
            most: OF_PAGE[1],
        }
    }
}

impl Details {
    /// Begins with pages that have these depths.
    pub(super) fn begin(&mut self, depths: impl Iterator<Item = Option<u16>>) {
        self.pages = depths.map(|depth| Page { depth, ..Page::default() }).collect();
        self.most = (MAX_LINKS / self.pages.len().max(1)).clamp(OF_PAGE[0], OF_PAGE[1]);
    }

    /// Notes the canonical URL of a page, or where it redirects.
    pub(super) fn name(&mut self, page: usize, url: u32, is_redirect: bool) {
        let depth = self.pages[page].depth;
        if !is_redirect {
            self.pages[page].canonical = Some(url);
            return;
        }
        self.pages[page].redirect = Some(url);
        if let Some(target) = self.pages.get_mut(url as usize)
            && target.depth == depth
            && depth.is_some()
        {
            target.moved_from.get_or_insert(page as u32);
        }
    }

    /// Notes an issue: its code, by number, and its row.
    pub(super) fn add_issue(&mut self, issue: &Issue, code: usize, row: usize, urls: &Urls) {
        let (Ok(code), Ok(row)) = (u16::try_from(code), u32::try_from(row)) else { return };
        let own = urls.page(&issue.url);
        if let Some(page) = own.and_then(|page| self.pages.get_mut(page as usize))
            && page.about.len() < ISSUES[0]
        {
            page.about.push((code, row));
        }
        for url in issue.at.iter().filter_map(|place| place.page.as_deref()) {
            let at = urls.page(url).filter(|at| Some(*at) != own);
            if let Some(page) = at.and_then(|at| self.pages.get_mut(at as usize))
                && page.shows.len() < ISSUES[1]
                && page.shows.last() != Some(&(code, row))
            {
                page.shows.push((code, row));
            }
        }
    }

    /// Notes a link from one page to another.
    pub(super) fn link(&mut self, source: u32, target: u32, edge: &Edge) {
        if source == target {
            return;
        }
        let depth = self.pages[source as usize].depth;
        let region = edge.place.region.as_deref().unwrap_or_default();
        let has_room = self.pages[target as usize].incoming.len() < self.most;
        let incoming = has_room.then(|| Incoming {
            source,
            text: self.number_of(edge.place.link.as_deref().unwrap_or_default()),
            line: edge.place.line,
            region: REGIONS.iter().position(|name| *name == region).unwrap_or(0) as u8,
            nofollow: edge.nofollow,
        });
        let page = &mut self.pages[target as usize];
        page.incoming.extend(incoming);
        if let (Some(from), Some(to)) = (depth, page.depth)
            && from.checked_add(1) == Some(to)
        {
            page.parent.get_or_insert(source);
        }
    }

    fn number_of(&mut self, found: &str) -> u32 {
        if found.is_empty() {
            return 0;
        }
        let (texts, known) = (&mut self.texts, &mut self.known);
        if let Some(number) = known.get(&xxh3_64(found.as_bytes())) {
            return *number;
        }
        if texts.len() >= MAX_TEXTS {
            return 0;
        }
        let number = u32::try_from(texts.len()).unwrap_or(0);
        texts.push(text(found));
        known.insert(xxh3_64(found.as_bytes()), number);
        number
    }

    /// Writes the references of a page. Pages come in order.
    pub(super) fn links_of(
        &mut self,
        source: u32,
        edges: &[Edge],
        urls: &mut Urls,
        blocks: &mut Blocks,
    ) -> Result<()> {
        self.fill_up(source as usize, blocks)?;
        let mut row: Vec<Value> = Vec::new();
        // Links first: of the rest there may be much.
        let (links, files): (Vec<&Edge>, Vec<&Edge>) =
            edges.iter().partition(|edge| edge.kind == EdgeKind::Link);
        let number = [links.len(), files.len()];
        for edge in links.into_iter().take(self.most).chain(files.into_iter().take(self.most)) {
            let Some(to) = urls.any(&edge.to, blocks)? else { continue };
            let link = edge.place.link.as_deref().map(text);
            row.push(json!([
                to,
                edge.kind,
                link,
                edge.place.line,
                edge.place.region,
                u8::from(edge.nofollow)
            ]));
        }
        self.links.add(&(number, row), blocks)
    }

    /// Writes empty rows for pages without references.
    fn fill_up(&mut self, until: usize, blocks: &mut Blocks) -> Result<()> {
        while self.links.len() < until {
            self.links.add(&([0, 0], Vec::<Value>::new()), blocks)?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self, blocks: &mut Blocks) -> Result<OfPages> {
        self.fill_up(self.pages.len(), blocks)?;
        let mut rows = Rows::new("details");
        for page in &self.pages {
            let incoming: Vec<Value> = page
                .incoming
                .iter()
                .map(|link| {
                    let text = &self.texts[link.text as usize];
                    json!([link.source, text, link.line, link.region, u8::from(link.nofollow)])
                })
                .collect();
            let parent = page.parent.or(page.moved_from);
            let row = (parent, page.canonical, page.redirect, &page.about, &page.shows, incoming);
            rows.add(&row, blocks)?;
        }
        let links = self.links.finish(blocks)?;
        Ok(OfPages { of_pages: rows.finish(blocks)?, links, most: self.most })
    }
}
