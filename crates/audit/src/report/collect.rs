//! Reads an audit for its report: sums for the views, and the rows of the tables in blocks. Each list of the audit is read once or twice, and what
//! is kept in memory grows only with the pages that the report shows.

use std::collections::HashMap;

use huntsman_crawler::Result;
use huntsman_crawler::terminal::escape;
use huntsman_output::render::shorten;
use serde::Serialize;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::blocks::{Blocks, Located, Rows};
use super::counts::Counts;
use super::custom::Custom;
use super::details::Details;
use super::elsewhere::Elsewhere;
use super::graph::{Graph, PageOfGraph};
use super::hosts::Hosts;
use super::languages::{Languages, Matrix};
use super::logs::Logs;
use super::responses::Responses;
use super::sitemaps::Sitemaps;
use super::structure::Structure;
use super::urls::Urls;
use crate::audit::Audit;
use crate::code::Severity;
use crate::finding::Place;
use crate::issue::Issue;
use crate::record::{EdgeKind, Kind};
use crate::tables::PageLine;

/// Up to so many pages a report shows all that is known of an issue.
const FEW_PAGES: usize = 5_000;
/// Places of an issue, of few pages and of many.
const PLACES: [usize; 2] = [50, 10];
/// Characters of a text.
const TEXT: usize = 300;

/// A code with issues, and where the rows of its issues and of their places are. A code's number is its place among these.
type CodeRows = (String, Located, Located);

/// The row of a page without known headers.
const NO_HEADERS: [(&str, &str); 0] = [];

/// What the views of a report are made of.
pub(super) struct Collected {
    pub(super) counts: Counts,
    pub(super) responses: Responses,
    pub(super) structure: Structure,
    pub(super) graph: Graph,
    pub(super) hosts: Hosts,
    pub(super) sitemaps: Sitemaps,
    pub(super) logs: Option<Logs>,
    pub(super) index: Value,
}

/// A text from the web for a table: control characters and those that reorder text are shown by their numbers.
pub(super) fn text(text: &str) -> String {
    escape(&shorten(text, TEXT)).into_owned()
}

/// Names by their numbers, in the order in which they came.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
struct Names(Vec<String>);

impl Names {
    /// Names that are told apart.
    const MAX: usize = 500;

    /// The number of a name; `None` if there are too many.
    fn number(&mut self, name: &str) -> Option<usize> {
        let name = text(name);
        let known = self.0.iter().position(|known| *known == name);
        known.or_else(|| {
            let is_new = self.0.len() < Self::MAX;
            is_new.then(|| {
                self.0.push(name);
                self.0.len() - 1
            })
        })
    }
}

/// Reads an audit.
pub(super) fn collect(audit: &Audit, blocks: &mut Blocks) -> Result<Collected> {
    let mut collector = Collector::new(audit);
    collector.read_severities()?;
    collector.read_pages(blocks)?;
    collector.read_answers(blocks)?;
    collector.read_issues(blocks)?;
    collector.read_sources(blocks)?;
    collector.finish(blocks)
}

struct Collector<'a> {
    audit: &'a Audit,
    urls: Urls,
    /// Errors, warnings and notices of each URL.
    severities: HashMap<u64, [u32; 3]>,
    pages: Vec<PageOfGraph>,
    page_urls: Vec<Box<str>>,
    page_rows: Option<Located>,
    is_indexable: Vec<bool>,
    types: Names,
    reasons: Names,
    page_languages: Names,
    languages: Languages,
    details: Details,
    elsewhere: Elsewhere,
    custom: Custom<'a>,
    codes: Vec<Value>,
    ignored: Option<Located>,
    headers: Option<Located>,
    done: Collected,
}

impl<'a> Collector<'a> {
    fn new(audit: &'a Audit) -> Self {
        Self {
            audit,
            urls: Urls::new(),
            severities: HashMap::new(),
            pages: Vec::new(),
            page_urls: Vec::new(),
            page_rows: None,
            is_indexable: Vec::new(),
            types: Names::default(),
            reasons: Names::default(),
            page_languages: Names::default(),
            languages: Languages::default(),
            details: Details::default(),
            elsewhere: Elsewhere::default(),
            custom: Custom::new(audit.site.custom_names()),
            codes: Vec::new(),
            ignored: None,
            headers: None,
            done: Collected {
                counts: Counts { refused: audit.refusals(), ..Counts::default() },
                responses: Responses::default(),
                structure: Structure::default(),
                graph: Graph::default(),
                hosts: Hosts::default(),
                sitemaps: Sitemaps::default(),
                logs: None,
                index: Value::Null,
            },
        }
    }

    /// How many issues of each severity each URL has.
    fn read_severities(&mut self) -> Result<()> {
        self.audit.each_issue(&mut |issue| {
            let of = self.severities.entry(xxh3_64(issue.url.as_bytes())).or_default();
            of[issue.severity.place()] += 1;
            self.done.hosts.add_issue(issue);
            self.languages.add_issue(issue);
            Ok(())
        })
    }

    fn severities_of(&self, url: &str) -> [u32; 3] {
        self.severities.get(&xxh3_64(url.as_bytes())).copied().unwrap_or_default()
    }

    fn weight(&self, url: &str) -> u64 {
        let numbers =
            self.severities_of(url).into_iter().zip([Severity::Error, Severity::Warning, Severity::Notice]);
        numbers.map(|(number, severity)| u64::from(number) * severity.weight() as u64).sum()
    }

    /// The least weight of a page that is shown, and how many pages with just this weight are.
    fn choice(&self) -> Result<(u64, usize)> {
        let mut weights: Vec<u64> = Vec::new();
        self.audit.each_page(&mut |page| {
            weights.push(self.weight(page.url));
            Ok(())
        })?;
        let most = self.most();
        if weights.len() <= most {
            return Ok((0, usize::MAX));
        }
        weights.sort_unstable_by(|a, b| b.cmp(a));
        let least = weights[most - 1];
        let heavier = weights.partition_point(|weight| *weight > least);
        Ok((least, most - heavier))
    }

    /// Pages that are shown, and issues of one code.
    fn most(&self) -> usize {
        self.audit.site.limits().audit_report_pages.max(1)
    }

    fn read_pages(&mut self, blocks: &mut Blocks) -> Result<()> {
        let (least, mut with_least) = self.choice()?;
        let audit = self.audit;
        let mut rows = Rows::new("pages");
        // URLs that pages name get their numbers when all pages have theirs.
        let mut named: Vec<(usize, [Option<String>; 2])> = Vec::new();
        audit.each_page(&mut |page| {
            let weight = self.weight(page.url);
            let severities = self.severities_of(page.url);
            self.done.counts.add_page(page);
            self.done.responses.add(page);
            self.done.structure.add(page, severities.map(|number| number as usize));
            self.done.hosts.add_page(page);
            self.done.sitemaps.add_page(page);
            page.custom.iter().for_each(|found| self.custom.add(found));
            if weight < least || (weight == least && with_least == 0) {
                return Ok(());
            }
            with_least -= usize::from(weight == least);
            self.urls.add_page(page.url, blocks)?;
            if let (Some(found), Some(number)) = (page.custom, self.urls.page(page.url)) {
                self.custom.add_row(number, found, blocks)?;
            }
            self.page_urls.push(page.url.into());
            self.is_indexable.push(page.indexable);
            self.pages.push(PageOfGraph {
                rank: page.rank.unwrap_or(0.0),
                depth: page.depth,
                errors: severities[0],
                warnings: severities[1],
            });
            let canonical = page.canonical.filter(|url| *url != page.url);
            if canonical.is_some() || page.redirect.is_some() {
                named.push((
                    self.pages.len() - 1,
                    [canonical, page.redirect].map(|url| url.map(str::to_owned)),
                ));
            }
            rows.add(&self.page_row(page, severities), blocks)
        })?;
        self.page_rows = Some(rows.finish(blocks)?);
        self.done.counts.shown = self.pages.len();
        self.done.structure.finish();
        self.done.graph = Graph::new(&self.pages, &self.page_urls, &self.done.structure.folders);
        self.details.begin(self.pages.iter().map(|page| page.depth));
        for (page, [canonical, redirect]) in named {
            for (url, is_redirect) in [(canonical, false), (redirect, true)] {
                if let Some(number) = url.map(|url| self.urls.any(&url, blocks)).transpose()?.flatten() {
                    self.details.name(page, number, is_redirect);
                }
            }
        }
        Ok(())
    }

    /// A row of the table of pages. The script knows its fields by their places.
    fn page_row(&mut self, page: &PageLine<'_>, severities: [u32; 3]) -> Value {
        let reason = page.reason.map_or(0, |reason| 1 + self.reasons.number(reason).unwrap_or(0));
        json!([
            page.status,
            page.content_type.and_then(|name| self.types.number(name)),
            page.bytes,
            page.wire_bytes,
            page.ttfb_ms,
            page.depth,
            page.rank,
            page.inlinks,
            page.unique_inlinks,
            page.outlinks_internal,
            page.outlinks_external,
            reason,
            page.title.map(text),
            page.description.map(text),
            page.h1.map(text),
            page.words,
            page.lang.and_then(|lang| self.page_languages.number(lang)),
            severities[0],
            severities[1],
            severities[2],
            u8::from(page.in_sitemap),
            page.last_modified.map(text),
            u8::from(page.is_html()),
        ])
    }

    fn read_answers(&mut self, blocks: &mut Blocks) -> Result<()> {
        let audit = self.audit;
        let mut headers = Rows::new("headers");
        audit.each_answer(&mut |record, fault| {
            self.done.counts.add(record);
            if let (Kind::Page, Some(page)) = (record.kind, self.urls.page(&record.url)) {
                while headers.len() < page as usize {
                    headers.add(&NO_HEADERS, blocks)?;
                }
                headers.add(&told(&record.headers), blocks)?;
            }
            match record.kind {
                Kind::Sitemap => self.done.sitemaps.add(record),
                Kind::External => self.elsewhere.add_external(record, fault, &mut self.urls, blocks)?,
                _ => {}
            }
            self.languages.add(record);
            if record.kind == Kind::Page && record.redirect.is_some() {
                self.elsewhere.add_redirect(record, &audit.landing(&record.url), &mut self.urls, blocks)?;
            }
            Ok(())
        })?;
        self.headers = Some(headers.finish(blocks)?);
        Ok(())
    }

    fn read_issues(&mut self, blocks: &mut Blocks) -> Result<()> {
        let audit = self.audit;
        let most_issues = self.most();
        let is_large = self.pages.len() > FEW_PAGES;
        let is_all = self.done.counts.shown == self.done.counts.pages;
        let mut located: Vec<CodeRows> = Vec::new();
        for code in audit.issues.names() {
            let number = located.len();
            let [mut rows, mut places] =
                ["issues", "places"].map(|name| Rows::new(format!("{name}-{number}")));
            let worst = audit.causes.iter().find(|cause| cause.code == code).map(|cause| cause.severity);
            for issue in audit.issues.of(code) {
                let issue = issue?;
                let is_of_shown = |url: &str| self.urls.page(url).is_some();
                let shows = || {
                    issue.at.iter().filter_map(|place| place.page.as_deref()).any(is_of_shown)
                        || is_of_shown(&issue.url)
                };
                if rows.len() >= most_issues || !(is_all || shows()) {
                    continue;
                }
                self.details.add_issue(&issue, number, rows.len(), &self.urls);
                rows.add(&issue_row(&issue, worst, &mut self.urls, blocks)?, blocks)?;
                let most = PLACES[usize::from(is_large)];
                let at = &issue.at[..issue.at.len().min(most)];
                places.add(&place_rows(at, &mut self.urls, blocks)?, blocks)?;
            }
            located.push((code.to_owned(), rows.finish(blocks)?, places.finish(blocks)?));
        }
        self.codes = located.iter().filter_map(|rows| self.describe_code(rows)).collect();
        let mut ignored = Rows::new("ignored");
        audit.each_ignored(&mut |issue| {
            let url = self.urls.any(&issue.url, blocks)?;
            ignored.add(&(&issue.code, url, issue.ignored.as_deref().map(text)), blocks)
        })?;
        self.ignored = Some(ignored.finish(blocks)?);
        Ok(())
    }

    fn describe_code(&self, (code, rows, places): &CodeRows) -> Option<Value> {
        let cause = self.audit.causes.iter().find(|cause| cause.code == *code)?;
        let about = cause.about.as_ref();
        Some(json!({
            "code": cause.code, "title": cause.title, "family": cause.family, "severity": cause.severity,
            "when": about.map(|code| code.when_with(&self.audit.limits)),
            "why": about.map(|code| code.why), "fix": about.map(|code| code.fix),
            "source": about.map(|code| code.source), "wrong": about.map(|code| code.wrong),
            "right": about.map(|code| code.right), "issues": cause.issues, "places": cause.places,
            "templates": cause.templates, "points": cause.points, "rows": rows, "at": places,
        }))
    }

    fn read_sources(&mut self, blocks: &mut Blocks) -> Result<()> {
        let audit = self.audit;
        audit.each_source(&mut |url, kind, edges| {
            if kind == Kind::Sitemap {
                let pages = edges.iter().filter_map(|edge| self.urls.page(&edge.to));
                let indexable = pages.filter(|page| self.is_indexable[*page as usize]).count();
                self.done.sitemaps.add_entries(url, edges.len(), indexable);
                return Ok(());
            }
            let Some(source) = self.urls.page(url) else { return Ok(()) };
            for edge in edges.iter().filter(|edge| edge.kind == EdgeKind::Link) {
                match self.urls.page(&edge.to) {
                    Some(target) => {
                        self.done.graph.link(source, target);
                        self.details.link(source, target, edge);
                    }
                    None => self.elsewhere.link(&edge.to, &self.urls),
                }
            }
            self.details.links_of(source, edges, &mut self.urls, blocks)
        })
    }

    fn finish(mut self, blocks: &mut Blocks) -> Result<Collected> {
        let details = self.details.finish(blocks)?;
        let matrix: Matrix = self.languages.finish(&mut self.urls, blocks)?;
        let elsewhere = self.elsewhere.finish(blocks)?;
        let custom = self.custom.finish(self.audit.site.limits(), blocks)?;
        let urls = self.urls.finish(blocks)?;
        self.done.logs = Logs::of(self.audit)?;
        self.done.index = json!({
            "beside": matches!(blocks, Blocks::Beside(_)),
            "site": self.audit.name(),
            "all": self.done.counts.pages,
            "urls": urls, "pages": self.page_rows, "details": details.of_pages, "links": details.links,
            "headers": self.headers, "most_links": details.most, "codes": self.codes, "ignored": self.ignored,
            "redirects": elsewhere.redirects, "external": elsewhere.external, "hosts": elsewhere.hosts,
            "all_redirects": elsewhere.all_redirects, "all_external": elsewhere.all_external,
            "custom": custom,
            "languages": matrix, "types": self.types, "reasons": self.reasons, "page_languages": self.page_languages,
            "is_compared": self.audit.new_issues().is_some(),
        });
        Ok(self.done)
    }
}

/// Headers for a table.
fn told(headers: &[(String, String)]) -> Vec<(String, String)> {
    headers.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

/// A row of the issues of a code, the worst of which have this severity. Of another one the severity is told, too.
fn issue_row(issue: &Issue, worst: Option<Severity>, urls: &mut Urls, blocks: &mut Blocks) -> Result<Value> {
    let shown = |value: &Value| match value {
        Value::String(found) => text(found).into(),
        Value::Array(found) => {
            let parts =
                found.iter().map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned));
            text(&parts.collect::<Vec<_>>().join(", ")).into()
        }
        other => other.clone(),
    };
    let target = match &issue.target {
        Some(target) => urls.any(target, blocks)?,
        None => None,
    };
    let mut row = vec![
        json!(urls.any(&issue.url, blocks)?),
        json!(target),
        json!(issue.group.as_deref().map(text)),
        shown(&issue.evidence.value),
        shown(&issue.evidence.limit),
        json!(issue.sources),
        json!(u8::from(issue.template)),
        json!(issue.new.map(u8::from)),
        json!(issue.id),
    ];
    if worst.is_some_and(|worst| worst != issue.severity) {
        row.push(json!(issue.severity));
    }
    Ok(row.into())
}

/// The places of an issue.
fn place_rows(places: &[Place], urls: &mut Urls, blocks: &mut Blocks) -> Result<Vec<Value>> {
    let mut rows = Vec::new();
    for place in places {
        let page = match &place.page {
            Some(page) => urls.any(page, blocks)?,
            None => None,
        };
        let link = place.link.as_deref().map(text);
        rows.push(json!([
            page,
            place.line,
            place.column,
            link,
            place.region,
            place.excerpt.as_deref().map(text)
        ]));
    }
    Ok(rows)
}
