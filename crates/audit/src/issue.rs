//! Issues: findings with all that a reader needs, in their final order.

use std::collections::HashSet;
use std::sync::Arc;

use huntsman_crawler::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::code::{Code, Severity};
use crate::finding::{Finding, Findings, Place, issue_key};
use crate::hosts::HostCounts;
use crate::measure;
use crate::rule::RuleSet;
use crate::rules::OF_HEADERS;
use crate::site::Site;
use crate::sorted::{FindingSorter, Severities, SortedFindings};

/// Sites with fewer pages have no template to speak of.
const MIN_TEMPLATE_PAGES: usize = 5;

/// What was found, and what would be right.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Evidence {
    /// What was found.
    pub value: Value,
    /// What would be right, or the limit that was passed.
    pub limit: Value,
}

/// An issue: one cause, to be mended at one place. The fields stand in this order in `issues.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<bool>,
    /// Why it is ignored; `None` if it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<String>,
}

#[cfg(test)]
impl Issue {
    pub(crate) fn empty() -> Self {
        let finding = Finding::default();
        issue(finding, &Code::new("", ""), Severity::Error, 0)
    }
}

/// The severity with this name.
pub(crate) fn severity_of(name: &str) -> Option<Severity> {
    [Severity::Error, Severity::Warning, Severity::Notice]
        .into_iter()
        .find(|severity| severity.name() == name)
}

/// The findings of a site: those of its pages, and those of the rules that need all of it. Those of codes that are not in `severities` are left
/// out.
pub(crate) fn findings(site: &Site, rules: &RuleSet, severities: Severities) -> Result<SortedFindings> {
    let sorter = FindingSorter::new(site.scratch(), site.limits().audit_sorted_bytes, Arc::new(severities));
    let mut findings = Findings::sorted(sorter);
    of_pages(site, rules, &mut findings)?;
    for rule in rules.rules() {
        rule.site(site, &mut findings);
        site.check()?;
    }
    findings.into_sorter().expect("it was made with one").finish()
}

/// The findings of single pages, as far as they still apply once the whole site is known. A fault of a header on all pages of a host is told once,
/// for the host.
fn of_pages(site: &Site, rules: &RuleSet, findings: &mut Findings) -> Result<()> {
    let mut hosts = HostCounts::default();
    site.each_judged(|page, judged| {
        hosts.count(&page.url);
        let measured = measure::findings(&judged.measures, site.limits());
        for finding in judged.findings.into_iter().chain(measured) {
            if let Some(code) = OF_HEADERS.iter().find(|code| **code == finding.code) {
                hosts.count_fault(&page.url, code);
            } else if rules.code(&finding.code).is_some_and(|code| page.address().is(code.judges)) {
                findings.add(finding.url(&page.url));
            }
        }
        Ok(())
    })?;
    if !hosts.has_faults() {
        return Ok(());
    }
    site.each_judged(|page, judged| {
        let of_headers = judged.findings.iter().filter(|finding| OF_HEADERS.contains(&finding.code.as_str()));
        of_headers.for_each(|finding| findings.add(hosts.told(&page.url, &finding.code)));
        Ok(())
    })
}

/// The issue of a finding. `pages` is the number of HTML pages of the site.
pub(crate) fn issue(finding: Finding, code: &Code, severity: Severity, pages: usize) -> Issue {
    let Finding { code: name, url, target, group, value, limit, severity: _, at, places } = finding;
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
