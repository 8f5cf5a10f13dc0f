//! Issues: findings with all that a reader needs, in their final order.

use std::collections::BTreeMap;
use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::choices::{Choices, Wanted};
use crate::code::{Code, PageClass, Severity};
use crate::finding::{Finding, Findings, Place, issue_key};
use crate::measure;
use crate::rule::RuleSet;
use crate::rules::OF_HEADERS;
use crate::site::{Site, authority, front_of};

/// Sites with fewer pages have no template to speak of.
const MIN_TEMPLATE_PAGES: usize = 5;

/// What was found, and what would be right.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Evidence {
    /// What was found.
    pub value: Value,
    /// What would be right, or the limit that was passed.
    pub limit: Value,
}

/// An issue: one cause, to be mended at one place. The fields stand in this order in `issues.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Issue {
    /// Hash of code, URL, target and group: the same in every audit.
    pub id: String,
    /// The name of its code.
    pub code: String,
    /// The family of the code.
    pub family: String,
    /// How bad it is.
    pub severity: Severity,
    /// The URL that it is about.
    pub url: String,
    /// The other URL that it is about, such as the target of a redirect.
    pub target: Option<String>,
    /// What several issues have in common, such as the title that two pages share.
    pub group: Option<String>,
    /// The places where it shows, at most 100. For a broken link these are the links.
    pub at: Vec<Place>,
    /// What was found.
    pub evidence: Evidence,
    /// Number of all places.
    pub sources: usize,
    /// Whether its places are in one landmark of most pages, so that one change of the template mends it.
    pub template: bool,
    /// Whether the audit that this one is compared with does not have it; `None` without such an audit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<bool>,
    /// Why it is ignored; `None` if it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored: Option<String>,
}

/// The severity with this name.
pub(crate) fn severity_of(name: &str) -> Option<Severity> {
    [Severity::Error, Severity::Warning, Severity::Notice]
        .into_iter()
        .find(|severity| severity.name() == name)
}

/// Judges a site: the findings of its pages, and those of the rules that need all of it, as issues in the order of severity, code and URL.
/// No two of them have the same code, URL, target and group, so the order is the same in every audit.
pub(crate) fn judge(site: &Site, rules: &RuleSet, choices: &mut Choices, wanted: &Wanted) -> Vec<Issue> {
    let mut findings = of_pages(site, rules);
    for rule in rules.rules() {
        rule.site(site, &mut findings);
    }
    let pages = site.pages(PageClass::Html).count();
    let mut issues: Vec<Issue> = findings
        .into_vec()
        .into_iter()
        .filter_map(|finding| {
            let code = rules.code(&finding.code).filter(|code| wanted.has(code))?;
            Some(issue(finding, code, choices.severity(code)?, pages))
        })
        .collect();
    for issue in &mut issues {
        issue.ignored = choices.reason(issue);
    }
    issues.sort_by(|a, b| {
        (a.severity, &a.code, &a.url, &a.target, &a.group)
            .cmp(&(b.severity, &b.code, &b.url, &b.target, &b.group))
    });
    issues
}

/// The findings of single pages, as far as they still apply once the whole site is known. A fault of a header on all pages of a host is told once,
/// for the host.
fn of_pages(site: &Site, rules: &RuleSet) -> Findings {
    let mut hosts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut with_fault: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
    let mut findings = Findings::default();
    for record in site.pages(PageClass::Html) {
        *hosts.entry(authority(&record.url)).or_default() += 1;
        let measured = measure::findings(&record.measures, site.limits());
        for finding in record.findings.iter().cloned().chain(measured) {
            if OF_HEADERS.contains(&finding.code.as_str()) {
                with_fault.entry((authority(&record.url), finding.code)).or_default().push(&record.url);
                continue;
            }
            let applies = rules.code(&finding.code).is_some_and(|code| site.is(record, code.judges));
            if applies {
                findings.add(finding.url(&record.url));
            }
        }
    }
    for ((host, code), urls) in with_fault {
        let is_everywhere = urls.len() > 1 && hosts.get(host) == Some(&urls.len());
        if is_everywhere {
            let places = urls.iter().map(|url| Place { page: Some((*url).to_owned()), ..Place::default() });
            let finding = Finding::of(&code)
                .url(&front_of(urls[0]))
                .group(host)
                .value(format!("all {} pages of the host", urls.len()));
            findings.add(places.fold(finding, Finding::at));
        } else {
            urls.into_iter().for_each(|url| findings.add(Finding::of(&code).url(url)));
        }
    }
    findings
}

fn issue(finding: Finding, code: &Code, severity: Severity, pages: usize) -> Issue {
    let Finding { code: name, url, target, group, value, limit, at, places } = finding;
    Issue {
        id: format!("{:016x}", issue_id(&name, &url, target.as_deref(), group.as_deref())),
        code: name,
        family: code.family.to_owned(),
        severity,
        template: is_of_template(&at, places, pages),
        url,
        target,
        group,
        at,
        evidence: Evidence { value, limit },
        sources: places,
        new: None,
        ignored: None,
    }
}

/// The number of an issue, of which `id` is the hexadecimal form.
pub(crate) fn issue_id(code: &str, url: &str, target: Option<&str>, group: Option<&str>) -> u64 {
    xxh3_64(issue_key(code, url, target, group).as_bytes())
}

/// Whether the places are in one landmark, and on most pages. Of places that were not kept only the number is known.
fn is_of_template(at: &[Place], places: usize, pages: usize) -> bool {
    let regions: HashSet<Option<&str>> = at.iter().map(|place| place.region.as_deref()).collect();
    let distinct: HashSet<&Option<String>> = at.iter().map(|place| &place.page).collect();
    let is_landmark = regions.len() == 1
        && at.first().is_some_and(|place| place.region.as_deref().is_some_and(|region| region != "main"));
    let is_most = if places > at.len() { places } else { distinct.len() } * 2 > pages;
    pages >= MIN_TEMPLATE_PAGES && is_landmark && is_most
}
