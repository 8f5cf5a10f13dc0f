//! `report.html`: an audit for people, as one file that loads nothing.
//!
//! The page has its data as JSON and draws its tables by a script of its own, so that a table of thousands of rows opens at once. Its policy admits
//! only that script, by its hash. What came from the web becomes text nodes, never markup.

use std::collections::{BTreeMap, HashMap};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use huntsman_crawler::Timestamp;
use huntsman_output::markup::Web;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::audit::Audit;
use crate::code::{PageClass, Severity};
use crate::issue::Issue;
use crate::record::{EdgeKind, Kind};
use crate::site::End;

const SCRIPT: &str = include_str!("report/report.js");
const STYLE: &str = include_str!("report/report.css");

/// The most pages, issues and links that the page has; the files beside it have all of them.
const MAX_PAGES: usize = 5_000;
const MAX_ISSUES: usize = 20_000;
const MAX_LINKS: usize = 50_000;
/// Places of an issue that the page has.
const MAX_PLACES: usize = 20;
/// Characters of a text that the page has.
const MAX_TEXT: usize = 300;
/// Causes on the first view.
const CAUSES: usize = 10;

/// URLs by their numbers in the data.
#[derive(Default)]
struct Urls<'a> {
    all: Vec<&'a str>,
    known: HashMap<&'a str, usize>,
}

impl<'a> Urls<'a> {
    fn number(&mut self, url: &'a str) -> usize {
        *self.known.entry(url).or_insert_with(|| {
            self.all.push(url);
            self.all.len() - 1
        })
    }
}

impl Audit {
    /// The report as one HTML page. It shows at most 5,000 pages and 20,000 issues, the worst ones, and says so if there are more.
    pub fn html(&self) -> String {
        let data = self.data().to_string().replace('<', "\\u003c");
        let hash = STANDARD.encode(Sha256::digest(SCRIPT.as_bytes()));
        let policy = format!(
            "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'"
        );
        let title = format!("Audit of {}", self.name());
        let page = html! {
            (DOCTYPE) "\n"
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (Web(&title)) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    a.skip href="#view" { "Skip to the content" }
                    header {
                        h1 { (Web(&title)) }
                        nav aria-label="Views" id="tabs" {}
                        button #theme type="button" { "Dark" }
                    }
                    main #view tabindex="-1" { (self.overview()) }
                    footer { "Made by Huntsman on " (Timestamp::wall().to_rfc3339()) ". All rows are in the files beside this page." }
                    script #data type="application/json" { (PreEscaped(&data)) }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
            "\n"
        };
        page.into_string()
    }

    /// The host that was audited.
    fn name(&self) -> String {
        let start = self.site.records().find(|record| record.is_start).or_else(|| self.site.records().next());
        start.map(|record| crate::site::authority(&record.url).to_owned()).unwrap_or_default()
    }

    /// The first view. It needs no script, so it is also what a browser without scripts shows.
    fn overview(&self) -> Markup {
        let number = |severity| self.issues.iter().filter(|issue| issue.severity == severity).count();
        let cards = [
            ("pages", self.site.pages(PageClass::Html).count(), ""),
            ("indexable", self.site.pages(PageClass::Indexable).count(), ""),
            ("errors", number(Severity::Error), "error"),
            ("warnings", number(Severity::Warning), "warning"),
            ("notices", number(Severity::Notice), "notice"),
        ];
        let score = self.score();
        let mut causes: BTreeMap<(Severity, &str), Vec<&Issue>> = BTreeMap::new();
        for issue in &self.issues {
            causes.entry((issue.severity, &issue.code)).or_default().push(issue);
        }
        let mut causes: Vec<_> = causes.into_iter().collect();
        causes.sort_by_key(|((severity, code), issues)| (*severity, std::cmp::Reverse(issues.len()), *code));
        let failures =
            self.gate.iter().map(ToString::to_string).chain(self.budget.iter().map(ToString::to_string));
        let failures: Vec<String> = failures.collect();
        html! {
            h2 { "Overview" }
            @if !self.site.is_complete() {
                p.note { "The crawl ended early: what could only be missing was not judged." }
            }
            @for note in &self.notes { p.note { (Web(note)) } }
            @for failure in &failures { p.failed { "Failed on " (Web(failure)) } }
            div.cards {
                @if let Some(overall) = score.overall { div.card { (ring(overall)) span { "score of 10" } } }
                @for (name, count, class) in cards {
                    div.card { strong class=(class) { (count) } span { (name) } }
                }
                @if let Some(new) = self.new_issues() { div.card { strong { (new) } span { "new issues" } } }
            }
            h3 { "What to mend first" }
            @if causes.is_empty() { p { "No issue was found by " (self.codes.len()) " codes." } } @else {
                table {
                    thead { tr { th scope="col" { "Issue" } th scope="col" { "Severity" } th.n scope="col" { "Number" } th scope="col" { "First" } } }
                    tbody {
                        @for ((severity, code), issues) in causes.iter().take(CAUSES) {
                            tr {
                                td { a href=(format!("#issues/{code}")) { (Web(code)) } }
                                td { span class=(format!("tag {}", severity.name())) { (severity.name()) } }
                                td.n { (issues.len()) }
                                td.url { (Web(&cut(&issues[0].url))) }
                            }
                        }
                    }
                }
            }
            @if !score.families.is_empty() {
                h3 { "Score by family" }
                table {
                    thead { tr { th scope="col" { "Family" } th.n scope="col" { "Score" } th scope="col" { "" } th scope="col" { "Deductions" } } }
                    tbody {
                        @for (name, family) in &score.families {
                            tr {
                                td { (name) }
                                td.n { (format!("{:.1}", family.score)) }
                                td { (bar(family.score)) }
                                td {
                                    @for deduction in &family.deductions {
                                        a.deduction href=(format!("#issues/{}", deduction.code)) { (deduction.code) " \u{2212}" (deduction.points) } " "
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// What the script draws its tables from.
    fn data(&self) -> Value {
        let mut urls = Urls::default();
        let mut per_page: HashMap<&str, usize> = HashMap::new();
        self.issues.iter().for_each(|issue| *per_page.entry(&issue.url).or_default() += 1);
        let mut pages: Vec<_> = self
            .site
            .records()
            .filter(|record| record.kind == Kind::Page && record.status.is_some())
            .collect();
        let all_pages = pages.len();
        if all_pages > MAX_PAGES {
            pages.sort_by_key(|record| {
                std::cmp::Reverse(per_page.get(record.url.as_str()).copied().unwrap_or(0))
            });
            pages.truncate(MAX_PAGES);
        }
        pages.sort_by(|a, b| a.url.cmp(&b.url));
        let rows: Vec<Value> = pages
            .iter()
            .map(|record| {
                let html = record.html.as_ref();
                let out = record.edges.iter().filter(|edge| edge.kind == EdgeKind::Link);
                let (own, other): (Vec<_>, Vec<_>) = out.partition(|edge| self.site.is_own(&edge.to));
                let text = |text: Option<&String>| text.map(|text| cut(text));
                json!([
                    urls.number(&record.url),
                    record.status,
                    record.content_type,
                    record.bytes,
                    record.ttfb_ms,
                    self.site.depth(&record.url),
                    self.site.rank(&record.url).map(|rank| (rank * 10.0).round() / 10.0),
                    self.site.links(&record.url).count(),
                    own.len(),
                    other.len(),
                    self.site.is(record, PageClass::Indexable),
                    text(html.and_then(|html| html.title.as_ref())),
                    text(html.and_then(|html| html.description.as_ref())),
                    text(html.and_then(|html| html.h1.as_ref())),
                    html.map(|html| html.words),
                    html.and_then(|html| html.lang.as_ref()),
                    per_page.get(record.url.as_str()).copied().unwrap_or(0),
                    html.and_then(|html| html.canonical.as_ref()),
                ])
            })
            .collect();
        let issues: Vec<Value> =
            self.issues.iter().take(MAX_ISSUES).map(|issue| row(issue, &mut urls)).collect();
        let mut links: Vec<Value> = Vec::new();
        let mut all_links = 0_usize;
        for record in &pages {
            for edge in record.edges.iter().filter(|edge| edge.kind == EdgeKind::Link) {
                all_links += 1;
                if links.len() < MAX_LINKS {
                    let text = edge.place.link.as_deref().map(cut);
                    links.push(json!([
                        urls.number(&record.url),
                        urls.number(&edge.to),
                        text,
                        edge.place.line
                    ]));
                }
            }
        }
        let redirects: Vec<Value> = self
            .site
            .records()
            .filter(|record| record.redirect.is_some())
            .take(MAX_PAGES)
            .map(|record| {
                let found = self.site.resolve(&record.url);
                let (end, status) = match found.end {
                    End::At(end) => (Some(urls.number(&end.url)), end.status),
                    End::Loop => (None, None),
                    End::Unknown => (record.redirect.as_deref().map(|to| urls.number(to)), None),
                };
                let is_loop = matches!(found.end, End::Loop);
                json!([urls.number(&record.url), record.status, found.hops.len(), end, status, is_loop])
            })
            .collect();
        let external: Vec<Value> = self
            .site
            .records()
            .filter(|record| record.kind == Kind::External)
            .take(MAX_PAGES)
            .map(|record| {
                json!([
                    urls.number(&record.url),
                    record.status,
                    record.error,
                    self.site.links(&record.url).count()
                ])
            })
            .collect();
        let codes: BTreeMap<&str, Value> = self.codes.iter().map(|code| (code.name, json!(code))).collect();
        let left_out: Vec<String> = [
            (all_pages, rows.len(), "pages", "pages.jsonl"),
            (self.issues.len(), issues.len(), "issues", "issues.jsonl"),
            (all_links, links.len(), "links", "csv/inlinks.csv"),
        ]
        .into_iter()
        .filter(|(all, shown, ..)| shown < all)
        .map(|(all, shown, what, file)| format!("{shown} of {all} {what} are shown; {file} has all of them."))
        .collect();
        json!({
            "codes": codes, "issues": issues, "pages": rows, "links": links, "redirects": redirects, "external": external,
            "ignored": self.ignored.iter().take(MAX_ISSUES).map(|issue| json!([issue.code, urls.number(&issue.url), issue.ignored])).collect::<Vec<_>>(),
            "left_out": left_out, "not_judged": self.not_judged,
            "urls": urls.all,
        })
    }
}

fn row<'a>(issue: &'a Issue, urls: &mut Urls<'a>) -> Value {
    let places: Vec<Value> = issue
        .at
        .iter()
        .take(MAX_PLACES)
        .map(|place| {
            let page = place.page.as_deref().map(|page| urls.number(page));
            json!([page, place.line, place.column, place.link, place.region, place.excerpt])
        })
        .collect();
    let value = match &issue.evidence.value {
        Value::String(text) => cut(text).into(),
        other => other.clone(),
    };
    json!([
        issue.code,
        issue.severity.name(),
        urls.number(&issue.url),
        issue.target.as_deref().map(|target| urls.number(target)),
        issue.group.as_deref().map(cut),
        value,
        issue.evidence.limit,
        issue.sources,
        issue.template,
        issue.new,
        places
    ])
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

/// A ring that is as full as the score.
fn ring(score: f64) -> Markup {
    const AROUND: f64 = 2.0 * std::f64::consts::PI * 26.0;
    let class = if score >= 8.0 {
        "good"
    } else if score >= 5.0 {
        "fair"
    } else {
        "poor"
    };
    html! {
        svg class=(format!("ring {class}")) viewBox="0 0 64 64" role="img" aria-label=(format!("Score {score:.1} of 10")) {
            circle cx="32" cy="32" r="26" {}
            circle.part cx="32" cy="32" r="26" transform="rotate(-90 32 32)" stroke-dasharray=(format!("{:.1} {AROUND:.1}", AROUND * score / 10.0)) {}
            text x="32" y="38" text-anchor="middle" { (format!("{score:.1}")) }
        }
    }
}

fn bar(score: f64) -> Markup {
    let class = if score >= 8.0 {
        "good"
    } else if score >= 5.0 {
        "fair"
    } else {
        "poor"
    };
    html! {
        svg class=(format!("bar {class}")) viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
            rect width="100" height="8" {}
            rect.part width=(format!("{:.1}", score * 10.0)) height="8" {}
        }
    }
}
