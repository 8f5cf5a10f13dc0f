//! `compare.html`: a comparison for people, as one page without scripts.

use std::collections::BTreeMap;
use std::path::Path;

use huntsman_output::markup::{Web, address};
use huntsman_output::render::{count, counted};
use maud::{Markup, html};
use serde_json::Value;

use super::{Comparison, Standing};
use crate::code::Code;
use crate::report::plain_page;

/// Issues and changes of pages that are listed.
const LISTED: usize = 200;

/// What the page lists: the first rows of what is new, fixed and changed.
#[derive(Debug, Default)]
pub(super) struct Listed {
    new: Vec<Value>,
    fixed: Vec<Value>,
    pages: Vec<Value>,
}

impl Listed {
    pub(super) fn issue(&mut self, row: &Value) {
        let list = match row["standing"].as_str() {
            Some("new") => &mut self.new,
            Some("fixed") => &mut self.fixed,
            _ => return,
        };
        if list.len() < LISTED {
            list.push(row.clone());
        }
    }

    pub(super) fn page(&mut self, row: &Value) {
        if self.pages.len() < LISTED {
            self.pages.push(row.clone());
        }
    }
}

/// The page of a comparison of the audits in two directories.
pub(super) fn page(
    comparison: &Comparison,
    listed: &Listed,
    codes: &[Code],
    [before, after]: [&Path; 2],
) -> String {
    let titles: BTreeMap<&str, String> = codes.iter().map(|code| (code.name, code.title())).collect();
    let title = |code: &str| titles.get(code).cloned().unwrap_or_else(|| code.to_owned());
    let content = html! {
        h2 { "What changed" }
        p.lead { (sentence(comparison)) }
        @if !comparison.gate.is_empty() {
            div.banner.error role="note" {
                strong { "The gate is closed." }
                ul { @for failure in &comparison.gate { li { (Web(&failure.to_string())) } } }
            }
        }
        div.tiles {
            @for standing in Standing::ALL {
                @let number = comparison.number(standing.name());
                div.tile {
                    b class=(if number > 0 { tone(standing) } else { "" }) { (count(number)) }
                    span { (words(standing)) }
                    small { (meaning(standing)) }
                }
            }
        }
        (by_code(comparison, &title))
        (issues("New issues", &listed.new, comparison.number("new"), &title))
        (issues("Fixed issues", &listed.fixed, comparison.number("fixed"), &title))
        (pages(comparison, &listed.pages))
    };
    let (before, after) = (before.display().to_string(), after.display().to_string());
    let heading = html! { h1.site { "Audits compared: " strong { (Web(&before)) } " and then " strong { (Web(&after)) } } };
    plain_page("Audits compared", &heading, &content).into_string()
}

fn sentence(comparison: &Comparison) -> String {
    let (new, fixed) = (comparison.number("new"), comparison.number("fixed"));
    let pages = &comparison.pages;
    let issues = match (new, fixed) {
        (0, 0) => "No issue is new, and none was fixed.".to_owned(),
        (0, fixed) => format!("{} fixed, and none is new.", was(fixed)),
        (new, 0) => format!("{} new, and none was fixed.", is(new)),
        (new, fixed) => format!("{} new, and {} fixed.", is(new), was(fixed).to_lowercase()),
    };
    format!(
        "{issues} {} in both audits, {} of them changed; {} were added and {} are gone.",
        counted(pages.both, "page"),
        count(pages.changed),
        count(pages.added),
        count(pages.removed)
    )
}

fn is(number: u64) -> String {
    format!("{} {}", counted(number, "issue"), if number == 1 { "is" } else { "are" })
}

fn was(number: u64) -> String {
    format!("{} {}", counted(number, "issue"), if number == 1 { "was" } else { "were" })
}

fn words(standing: Standing) -> &'static str {
    match standing {
        Standing::New => "new",
        Standing::Fixed => "fixed",
        Standing::Unchanged => "as before",
        Standing::Gone => "gone with their pages",
        Standing::NotReached => "not reached",
        Standing::NotJudged => "not judged",
    }
}

fn meaning(standing: Standing) -> &'static str {
    match standing {
        Standing::New => "only the later audit has them",
        Standing::Fixed => "looked for again, and not found",
        Standing::Unchanged => "both audits have them",
        Standing::Gone => "the pages answer 404, 410 or a redirect",
        Standing::NotReached => "the later audit did not look at the pages",
        Standing::NotJudged => "the code was left out, or has other limits",
    }
}

fn tone(standing: Standing) -> &'static str {
    match standing {
        Standing::New => "error",
        Standing::Fixed => "ok",
        _ => "",
    }
}

fn by_code(comparison: &Comparison, title: &dyn Fn(&str) -> String) -> Markup {
    let of = |counts: &BTreeMap<&'static str, u64>, standing: Standing| {
        counts.get(standing.name()).copied().unwrap_or(0)
    };
    let mut codes: Vec<_> = comparison.codes.iter().collect();
    codes.sort_by_key(|(name, counts)| {
        let changed = of(counts, Standing::New) + of(counts, Standing::Fixed);
        (std::cmp::Reverse(changed), *name)
    });
    html! {
        @if !codes.is_empty() {
            h3 { "By cause" }
            table {
                thead { tr { th scope="col" { "Cause" } @for standing in Standing::ALL { th.n scope="col" { (words(standing)) } } } }
                tbody {
                    @for (code, counts) in codes {
                        tr {
                            th scope="row" { strong { (Web(&title(code))) } " " code.soft { (Web(code)) } }
                            @for standing in Standing::ALL {
                                @let number = of(counts, standing);
                                td.n { @if number > 0 { span class=(tone(standing)) { (count(number)) } } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn issues(heading: &str, rows: &[Value], all: u64, title: &dyn Fn(&str) -> String) -> Markup {
    html! {
        @if !rows.is_empty() {
            h3 { (heading) }
            table {
                thead { tr { th scope="col" { "Severity" } th scope="col" { "Cause" } th scope="col" { "URL" } th scope="col" { "Other URL, or in common" } } }
                tbody {
                    @for row in rows {
                        tr {
                            @let severity = row["severity"].as_str().unwrap_or_default();
                            td { span class={ "mark " (Web(severity)) } { (Web(severity)) } }
                            td { (Web(&title(row["code"].as_str().unwrap_or_default()))) }
                            td.url { (address(row["url"].as_str().unwrap_or_default())) }
                            td.url { (Web(row["target"].as_str().or(row["group"].as_str()).unwrap_or_default())) }
                        }
                    }
                }
            }
            @if all > rows.len() as u64 { p.soft { (count(rows.len() as u64)) " of " (count(all)) " are shown; issues.csv has all of them." } }
        }
    }
}

fn pages(comparison: &Comparison, rows: &[Value]) -> Markup {
    let shown = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    html! {
        h3 { "Pages" }
        div.panels {
            div.panel {
                table {
                    thead.quiet { tr { th scope="col" { "What changed" } th.n scope="col" { "Pages" } } }
                    tbody {
                        @for (field, number) in &comparison.fields { tr { th scope="row" { (field) } td.n { (count(*number)) } } }
                        @if comparison.fields.is_empty() { tr { td.soft colspan="2" { "Nothing." } } }
                    }
                }
            }
            div.panel {
                p {
                    "95 of 100 pages had their first byte within " (comparison.ttfb_p95_ms.0) " ms before, and within "
                    (comparison.ttfb_p95_ms.1) " ms after."
                }
                @if comparison.pages.not_reached > 0 {
                    p { (counted(comparison.pages.not_reached, "page")) " of the earlier audit were not reached by the later one, which ended early." }
                }
            }
        }
        @if !rows.is_empty() {
            table {
                thead { tr { th scope="col" { "Page" } th scope="col" { "Change" } th scope="col" { "Before" } th scope="col" { "After" } } }
                tbody {
                    @for row in rows {
                        tr {
                            td.url { (address(row["url"].as_str().unwrap_or_default())) }
                            td { (Web(row["field"].as_str().filter(|field| !field.is_empty()).or(row["change"].as_str()).unwrap_or_default())) }
                            td.url { (Web(&shown(&row["before"]))) }
                            td.url { (Web(&shown(&row["after"]))) }
                        }
                    }
                }
            }
            p.soft { "The first " (LISTED) " changes are shown; pages.csv has all of them." }
        }
    }
}
