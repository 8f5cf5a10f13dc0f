//! The first view: how the site does, what to mend first, and what was looked at.

use huntsman_output::markup::Web;
use huntsman_output::render::{count, counted};
use maud::{Markup, html};

use super::charts::{bar, grade, line, ring};
use super::counts::Counts;
use crate::audit::Audit;
use crate::causes::Cause;
use crate::code::{PageClass, Severity};
use crate::score::Score;

/// Causes that are shown.
const CAUSES: usize = 10;
/// Codes that were not judged that are named.
const NOT_JUDGED: usize = 60;

/// Whether the overview stands beside the other views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    /// It links to them.
    ToViews,
    /// It stands alone.
    None,
}

impl Links {
    /// A link to a view, or its text alone.
    fn to(self, view: &str, class: &str, content: &Markup) -> Markup {
        html! {
            @match self {
                Self::ToViews => a class=[(!class.is_empty()).then_some(class)] href={ "#" (Web(view)) } { (content) },
                Self::None => span class=[(!class.is_empty()).then_some(class)] { (content) },
            }
        }
    }
}

pub(super) fn view(audit: &Audit, counts: &Counts, links: Links) -> Markup {
    let score = audit.score();
    html! {
        (summary(audit, &score, links))
        (banners(audit, counts))
        div.tiles {
            @if let Some(overall) = score.overall {
                div.tile.score { (ring(overall)) }
            }
            (tile(counts.html, &links.to("pages", "", &noun(counts.html, "page")), "", Some(format!("{} may be indexed", count(audit.count(PageClass::Indexable) as u64)))))
            @for (severity, name) in [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Notice, "notice")] {
                @let number = audit.issues.number_of(severity);
                @let of = audit.causes.iter().filter(|cause| cause.number_of(severity) > 0).count();
                @let kinds = (of > 0).then(|| counted(of as u64, "cause"));
                (tile(number, &links.to(&format!("issues?severity={}", severity.name()), "", &noun(number, name)), severity.name(), kinds))
            }
            (changes(audit))
        }
        section aria-labelledby="first" {
            h3 #first { "What to mend first" }
            (causes(&audit.causes, links))
        }
        (families(audit, &score, links))
        (trend(audit))
        (coverage(audit, counts, links))
    }
}

/// What the audit found, in a sentence or two.
fn summary(audit: &Audit, score: &Score, links: Links) -> Markup {
    let issues: usize = audit.causes.iter().map(|cause| cause.issues).sum();
    let pages = counted(audit.count(PageClass::Html) as u64, "page");
    html! {
        p.lead {
            @match (audit.causes.first(), issues) {
                (Some(worst), issues) => {
                    "The audit looked at " (pages) " and found " (counted(issues as u64, "issue")) " with "
                    (counted(audit.causes.len() as u64, "cause")) ". "
                    @if worst.points > 0.0 {
                        "What costs the most: " (links.to(&format!("issue/{}", worst.code), "", &html! { (Web(&worst.title)) })) "."
                    }
                },
                _ => { "The audit looked at " (pages) " and found nothing that is wrong." }
            }
            @if score.overall.is_some_and(|score| score >= 9.5) { " The site is in very good order." }
        }
    }
}

fn banners(audit: &Audit, counts: &Counts) -> Markup {
    let failures: Vec<String> = audit.failures().collect();
    html! {
        @if !failures.is_empty() {
            div.banner.error role="note" {
                strong { "The gate is closed." }
                ul { @for failure in &failures { li { (Web(failure)) } } }
            }
        }
        @if !audit.site.is_complete() {
            div.banner.warning role="note" {
                strong { "Not all of the site was looked at" @if let Some(reason) = &audit.ended_by { " (" (Web(reason)) ")" } "." }
                " Pages that were not reached are not in this report, and what could only be missing was not judged."
            }
        }
        @if counts.shown < counts.pages {
            div.banner.warning role="note" {
                strong { "The worst " (count(counts.shown as u64)) " of " (count(counts.pages as u64)) " pages are in this report." }
                " The numbers count all of them, and pages.jsonl and csv/pages.csv have all."
            }
        }
        @for note in &audit.notes { div.banner.notice role="note" { (Web(note)) } }
    }
}

/// The noun for a number of things: its plural if there is not just one.
fn noun(number: usize, name: &str) -> Markup {
    html! { (name) @if number != 1 { "s" } }
}

fn tile(number: usize, name: &Markup, class: &str, more: Option<String>) -> Markup {
    html! {
        div.tile {
            b class=(if number > 0 { class } else { "" }) { (count(number as u64)) }
            span { (name) }
            @if let Some(more) = more { small { (more) } }
        }
    }
}

/// What changed since the audit that this one is compared with.
fn changes(audit: &Audit) -> Markup {
    html! {
        @if let Some(new) = audit.new_issues() {
            div.tile {
                b { (count(new as u64)) }
                span { "new since the baseline" }
                @if let Some(comparison) = &audit.comparison {
                    small {
                        (count(comparison.number("fixed"))) " fixed, " (count(comparison.number("gone"))) " gone with their pages"
                    }
                }
            }
        }
    }
}

fn causes(causes: &[Cause], links: Links) -> Markup {
    let most = causes.first().map_or(1.0, |cause| cause.points).max(0.01);
    html! {
        @if causes.is_empty() { p { "Nothing." } }
        ol.causes {
            @for cause in causes.iter().take(CAUSES) {
                li {
                    span class={ "mark " (cause.severity.name()) } title=(cause.severity.name()) { (cause.severity.name()) }
                    div {
                        (links.to(&format!("issue/{}", cause.code), "title", &html! { (Web(&cause.title)) }))
                        p { (numbers(cause)) }
                    }
                    div.cost title="Points that it takes from the score of its family" {
                        @if cause.points > 0.0 { (bar(&[(cause.severity.name(), cause.points / most)])) span { "\u{2212}" (format!("{:.2}", cause.points)) } }
                    }
                }
            }
        }
        @if causes.len() > CAUSES {
            p { (links.to("issues", "", &html! { "All " (causes.len()) " causes" })) @if links == Links::None { " are in the report." } }
        }
    }
}

/// How much there is of a cause.
pub(super) fn numbers(cause: &Cause) -> Markup {
    html! {
        (counted(cause.issues as u64, "issue"))
        @if cause.places > cause.issues { " at " (counted(cause.places as u64, "place")) }
        @if cause.templates > 0 {
            @if cause.templates == cause.issues { ", all of them in a template" } @else { ", " (count(cause.templates as u64)) " of them in a template" }
        }
        @if cause.new > 0 { ", " (count(cause.new as u64)) " new" }
    }
}

fn families(audit: &Audit, score: &Score, links: Links) -> Markup {
    html! {
        @if !score.families.is_empty() {
            section aria-labelledby="families" {
                h3 #families { "Score by family" }
                p.soft { "Each family begins with ten points. An error takes 1 to 5 of them and a warning 0.2 to 1.5, depending on how many pages have it." }
                table.families {
                    thead { tr { th scope="col" { "Family" } th.n scope="col" { "Score" } th scope="col" { span.hidden { "Share" } } th scope="col" { "What was taken off" } } }
                    tbody {
                        @for (name, family) in &score.families {
                            tr {
                                th scope="row" { (links.to(&format!("issues?family={name}"), "", &html! { (name) })) }
                                td.n { strong { (format!("{:.1}", family.score)) } }
                                td { (bar(&[(grade(family.score), family.score / 10.0)])) }
                                td {
                                    @for deduction in &family.deductions {
                                        @let title = audit.causes.iter().find(|cause| cause.code == deduction.code).map(|cause| cause.title.as_str());
                                        @let shown = html! { (Web(title.unwrap_or(deduction.code))) " " span { "\u{2212}" (format!("{:.2}", deduction.points)) } };
                                        (links.to(&format!("issue/{}", deduction.code), "deduction", &shown))
                                    }
                                    @if family.deductions.is_empty() { span.soft { "nothing" } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn trend(audit: &Audit) -> Markup {
    let trend = audit.trend();
    let numbers = |of: fn(&crate::history::Past) -> f64| trend.iter().map(of).collect::<Vec<f64>>();
    let most = |values: &[f64]| values.iter().copied().fold(1.0, f64::max);
    let lines = [
        ("Score", numbers(|past| past.score.unwrap_or(0.0)), true),
        ("Errors", numbers(|past| past.errors as f64), false),
        ("Warnings", numbers(|past| past.warnings as f64), false),
        ("Pages", numbers(|past| past.pages as f64), false),
    ];
    html! {
        @if trend.len() > 1 {
            section aria-labelledby="trend" {
                h3 #trend { "Trend over " (trend.len()) " audits" }
                div.trend {
                    @for (name, values, is_score) in &lines {
                        @let last = values.last().copied().unwrap_or(0.0);
                        figure {
                            figcaption { (name) " " strong { @if *is_score { (format!("{last:.1}")) } @else { (count(last as u64)) } } }
                            (line(name, values, if *is_score { 10.0 } else { most(values) }))
                        }
                    }
                }
                details {
                    summary { "The same as a table" }
                    table data-sort {
                        thead { tr { th scope="col" { "Audit" } th.n scope="col" { "Score" } th.n scope="col" { "Pages" } th.n scope="col" { "Errors" } th.n scope="col" { "Warnings" } th.n scope="col" { "Notices" } } }
                        tbody {
                            @for past in &trend {
                                tr {
                                    th scope="row" { (Web(&past.at)) }
                                    td.n { @if let Some(score) = past.score { (format!("{score:.2}")) } }
                                    td.n data-v=(past.pages) { (count(past.pages)) }
                                    td.n data-v=(past.errors) { (count(past.errors)) }
                                    td.n data-v=(past.warnings) { (count(past.warnings)) }
                                    td.n data-v=(past.notices) { (count(past.notices)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn coverage(audit: &Audit, counts: &Counts, links: Links) -> Markup {
    let looked_at = [
        ("pages of the site that answered", counts.pages),
        ("of these, HTML pages that were judged", counts.html),
        ("images, scripts and styles", counts.resources),
        ("links to other sites", counts.external),
        ("sitemaps", counts.sitemaps),
        ("URLs of the site that did not answer", counts.unanswered),
    ];
    html! {
        section aria-labelledby="coverage" {
            h3 #coverage { "What was looked at" }
            div.panels {
                div.panel {
                    table {
                        thead.quiet { tr { th scope="col" { "What" } th.n scope="col" { "Number" } } }
                        tbody { @for (name, number) in looked_at { tr { th scope="row" { (name) } td.n { (count(number as u64)) } } } }
                    }
                }
                div.panel {
                    table {
                        thead.quiet { tr { th scope="col" { "Not requested, because of" } th.n scope="col" { "Number" } } }
                        tbody {
                            @for (reason, number) in &counts.refused { tr { th scope="row" { (Web(reason)) } td.n { (count(*number as u64)) } } }
                            @if counts.refused.is_empty() { tr { td.soft colspan="2" { "Every URL was requested." } } }
                        }
                    }
                }
            }
            p.soft {
                (counted(audit.codes.len() as u64, "code")) " were judged."
                @if !audit.not_judged.is_empty() {
                    " Not judged, because what they need was not looked at: "
                    (Web(&audit.not_judged.iter().take(NOT_JUDGED).cloned().collect::<Vec<_>>().join(", "))) "."
                }
                @if audit.number_of_ignored() > 0 { " " (links.to("ignored", "", &html! { "Settings accept " (counted(audit.number_of_ignored() as u64, "issue")) })) "." }
            }
        }
    }
}
