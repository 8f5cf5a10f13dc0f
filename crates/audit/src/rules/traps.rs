//! URLs without an end.

use std::collections::HashMap;

use huntsman_crawler::Timestamp;
use huntsman_text::urlparts::guard::{template_into, years};
use url::{Position, Url};
use xxhash_rust::xxh3::xxh3_128;

use crate::code::Code;
use crate::code::PageClass::Any;
use crate::code::Severity::Notice;
use crate::finding::{Finding, Findings, Place};
use crate::record::EdgeKind;
use crate::rule::Rule;
use crate::site::{Address, Site};

/// URLs of one template with a date far ahead from which on a calendar seems to have no end.
const MIN_DATES: usize = 10;
/// Years that a date may be ahead: events are announced in advance. The guards of a crawl allow as many.
const MAX_YEARS_AHEAD: i32 = 2;
/// Pages of a group whose texts are compared, and the least number of them.
const COMPARED: usize = 2_000;
const MIN_COMPARED: usize = 8;

const CODES: &[Code] = &[
    Code::new("status", "trap-suspect").of_site().severity(Notice)
        .headline("URLs that seem to have no end").judges(Any)
        .text("Links lead to more than [query_variants_max] query strings of one path or to more than [template_urls_max] URLs of one template, more than half of whose pages have the text of another one of them; or to 10 or more URLs of one template with a date more than two years ahead.", "Robots get lost there, and do not come to the pages that matter.", "Let the links end (no next month without events, no combination of filters without a page of its own), or disallow them in robots.txt.")
        .source("Google Search Central: faceted navigation, URL structure").example("/events/2061/07/ linked from /events/2061/06/", "no link to the next month after the last event"),
];

pub(super) struct Traps;

impl Rule for Traps {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        let linked = || {
            let targets = site.targets(|kind| kind == EdgeKind::Link).filter(|target| target.is_own());
            targets.filter_map(|target| Some((Url::parse(&target.url()).ok()?, target)))
        };
        let limits = site.limits();
        let queries = linked().filter(|(url, _)| url.query().is_some());
        let queries = queries.map(|(url, target)| (xxh3_128(url[..Position::AfterPath].as_bytes()), target));
        site.each_group(queries, |group| {
            let path = |url: &Url| url[..Position::AfterPath].to_owned();
            repeating(group, limits.audit_query_variants_max, "query strings", path, findings);
        });
        let templates = linked().map(|(url, target)| (xxh3_128(template(&url).as_bytes()), target));
        site.each_group(templates, |group| {
            repeating(group, limits.audit_template_urls_max, "URLs", template, findings);
        });
        let ahead = linked().filter(|(url, _)| is_far_ahead(url));
        let ahead = ahead.map(|(url, target)| (xxh3_128(template(&url).as_bytes()), target));
        site.each_group(ahead, |group| {
            if group.len() >= MIN_DATES {
                let what = format!("{} URLs with a date far ahead", group.len());
                findings.add(told(group, what, MIN_DATES, template));
            }
        });
    }
}

/// Host and path of a URL without the parts by which the URLs of one kind of page differ.
fn template(url: &Url) -> String {
    let mut template = url[..Position::BeforePath].to_owned();
    template_into(url.path(), &mut template);
    template
}

fn is_far_ahead(url: &Url) -> bool {
    let this_year = Timestamp::wall().to_rfc3339().get(..4).and_then(|year| year.parse::<i32>().ok());
    let latest = this_year.unwrap_or(i32::MAX).saturating_add(MAX_YEARS_AHEAD);
    years(&url[Position::BeforePath..Position::AfterQuery]).any(|year| i32::from(year) > latest)
}

/// Tells a group of URLs if there are too many of them and their pages repeat each other.
fn repeating(
    group: &[Address<'_>],
    limit: usize,
    what: &str,
    name: fn(&Url) -> String,
    findings: &mut Findings,
) {
    if group.len() > limit && pages_repeat(group) {
        findings.add(told(group, format!("{} {what}", group.len()), limit, name));
    }
}

fn told(group: &[Address<'_>], what: String, limit: usize, name: fn(&Url) -> String) -> Finding {
    let first = group[0].url();
    let name = Url::parse(&first).map(|url| name(&url)).unwrap_or_default();
    let finding = Finding::of("trap-suspect").url(&first).group(name).value(what).limit(limit);
    group.iter().fold(finding, |finding, address| {
        finding.at_made(|| Place { page: Some(address.url()), ..Place::default() })
    })
}

/// Whether more than half of the pages of a group have the text of an earlier one; of a large group a sample is read.
fn pages_repeat(group: &[Address<'_>]) -> bool {
    let step = group.len().div_ceil(COMPARED);
    let texts = group
        .iter()
        .step_by(step)
        .filter_map(|address| address.answer()?.html.as_ref().map(|html| html.text_key.clone()));
    let (mut known, mut compared) = (HashMap::new(), 0);
    for text in texts {
        compared += 1;
        *known.entry(text).or_insert(0) += 1;
    }
    compared >= MIN_COMPARED && (compared - known.len()) * 2 > compared
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dates_far_ahead_are_those_of_calendars_without_end() {
        let is = |path: &str| is_far_ahead(&Url::parse(&format!("https://a.example{path}")).unwrap());
        assert!(is("/events/2999/05/") && is("/events?month=2999-05"));
        assert!(!is("/events/1891/05/") && !is("/item/2999") && !is("/events/"));
        let next = Timestamp(Timestamp::wall().0 + 31_536_000_000_000).to_rfc3339();
        assert!(!is(&format!("/events/{}/", &next[..7])), "next year is announced");
    }
}
