//! The causes of issues: a table of all, and each with its first URLs, for paper and for browsers without scripts.

use huntsman_output::markup::Web;
use huntsman_output::render::count;
use maud::{Markup, html};

use super::charts::bar;
use super::overview::numbers;
use crate::audit::Audit;
use crate::causes::Cause;
use crate::code::{Code, Severity};

pub(super) fn view(audit: &Audit) -> Markup {
    let most = audit.causes.first().map_or(1.0, |cause| cause.points).max(0.01);
    html! {
        @if audit.causes.is_empty() {
            p.lead { "No issue was found by " (audit.codes.len()) " codes." }
        } @else {
            p.lead.screen { "All issues by their causes, those that cost the most first. One cause is mended in one way." }
            table.issues.screen data-sort data-filter="causes" {
                thead {
                    tr {
                        th scope="col" { "Severity" } th scope="col" { "Cause" } th scope="col" { "Family" } th.n scope="col" { "Issues" }
                        th.n scope="col" { "Places" } @if audit.new_issues().is_some() { th.n scope="col" { "New" } } th scope="col" { "Costs" }
                    }
                }
                tbody {
                    @for cause in &audit.causes {
                        @let severities: Vec<&str> = cause.severities().map(Severity::name).collect();
                        tr data-severity=(severities.join(" ")) data-family=(Web(&cause.family)) {
                            td data-v=(cause.severity.place()) { span class={ "mark " (cause.severity.name()) } { (cause.severity.name()) } }
                            th scope="row" { a.title href={ "#issue/" (Web(&cause.code)) } { (Web(&cause.title)) } " " code.soft { (Web(&cause.code)) } }
                            td { (Web(&cause.family)) }
                            td.n data-v=(cause.issues) { (count(cause.issues as u64)) }
                            td.n data-v=(cause.places) { (count(cause.places as u64)) }
                            @if audit.new_issues().is_some() { td.n data-v=(cause.new) { (count(cause.new as u64)) } }
                            td.costs data-v=(cause.points) {
                                @if cause.points > 0.0 { (bar(&[(cause.severity.name(), cause.points / most)])) " \u{2212}" (format!("{:.2}", cause.points)) }
                            }
                        }
                    }
                }
            }
            div.in-full { @for cause in &audit.causes { (in_full(cause, audit)) } }
        }
    }
}

fn in_full(cause: &Cause, audit: &Audit) -> Markup {
    html! {
        article.cause {
            h3 { (Web(&cause.title)) }
            p { span class={ "mark " (cause.severity.name()) } { (cause.severity.name()) } " " code { (Web(&cause.code)) } " · " (numbers(cause)) }
            @if let Some(code) = &cause.about { (about(code, audit)) }
            ul {
                @for issue in &cause.first {
                    li {
                        (Web(&issue.url))
                        @if let Some(target) = &issue.target { " \u{2192} " (Web(target)) }
                    }
                }
            }
            @if cause.issues > cause.first.len() { p.soft { "and " (count((cause.issues - cause.first.len()) as u64)) " more in csv/" (Web(&cause.code)) ".csv" } }
        }
    }
}

fn about(code: &Code, audit: &Audit) -> Markup {
    html! {
        p { (Web(&code.when_with(&audit.limits))) " " (Web(code.why)) }
        @if !code.fix.is_empty() { p { strong { "What to change: " } (Web(code.fix)) } }
    }
}
