//! Issues: findings with all that a reader needs, in their final order.

use std::collections::BTreeMap;
use std::collections::HashSet;

use huntsman_crawler::{Error, Result};
use huntsman_middleware::{AuditSettings, UrlPattern};
use serde::Serialize;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::code::{Code, PageClass, Severity};
use crate::finding::{Finding, Findings, Place};
use crate::rule::RuleSet;
use crate::rules::OF_HEADERS;
use crate::site::{Site, authority};

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
    /// Why it is ignored; `None` if it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored: Option<String>,
}

/// Issues that settings accept.
#[derive(Debug)]
pub(crate) struct Choices {
    severities: BTreeMap<String, Option<Severity>>,
    ignored: Vec<Ignored>,
}

#[derive(Debug)]
struct Ignored {
    code: String,
    url: Option<UrlPattern>,
    reason: String,
}

impl Choices {
    /// Reads them from the settings.
    ///
    /// # Errors
    /// A code, a severity or a pattern is unknown; the error names it.
    pub(crate) fn new(limits: &AuditSettings, rules: &RuleSet) -> Result<Self> {
        let known = |code: &str, setting: &str| match rules.code(code) {
            Some(_) => Ok(()),
            None => Err(Error::usage(format!(
                "setting {setting}: there is no code \"{}\"; `huntsman audit codes` lists them",
                code.escape_debug()
            ))),
        };
        let mut severities = BTreeMap::new();
        for (code, severity) in &limits.audit_severity {
            known(code, "audit_severity")?;
            let severity = match severity.as_str() {
                "off" => None,
                name => Some(severity_of(name).ok_or_else(|| {
                    let shown = name.escape_debug();
                    Error::usage(format!(
                        "setting audit_severity: {code} = \"{shown}\": use error, warning, notice or off"
                    ))
                })?),
            };
            severities.insert(code.clone(), severity);
        }
        let mut ignored = Vec::new();
        for rule in &limits.audit_ignore {
            known(&rule.code, "audit_ignore")?;
            let url = rule.url.as_deref().map(UrlPattern::parse).transpose()?;
            let reason = rule.reason.clone().unwrap_or_else(|| "a setting ignores it".to_owned());
            ignored.push(Ignored { code: rule.code.clone(), url, reason });
        }
        Ok(Self { severities, ignored })
    }

    /// The severity of a code; `None` if it is off.
    pub(crate) fn severity(&self, code: &Code) -> Option<Severity> {
        self.severities.get(code.name).copied().unwrap_or(Some(code.severity))
    }

    fn reason(&self, code: &str, url: &str) -> Option<String> {
        let is_meant = |rule: &&Ignored| {
            let matches = |pattern: &UrlPattern| url::Url::parse(url).is_ok_and(|url| pattern.matches(&url));
            rule.code == code && rule.url.as_ref().is_none_or(matches)
        };
        self.ignored.iter().find(is_meant).map(|rule| rule.reason.clone())
    }
}

/// The severity with this name.
pub(crate) fn severity_of(name: &str) -> Option<Severity> {
    [Severity::Error, Severity::Warning, Severity::Notice]
        .into_iter()
        .find(|severity| severity.name() == name)
}

/// Judges a site: the findings of its pages, and those of the rules that need all of it, as issues in the order of severity, code and URL.
pub(crate) fn judge(site: &Site, rules: &RuleSet, choices: &Choices, wanted: &Wanted) -> Vec<Issue> {
    let mut findings = of_pages(site, rules);
    for rule in rules.rules() {
        let mut found = Findings::default();
        rule.site(site, &mut found);
        findings.extend(found.into_vec());
    }
    let pages = site.pages(PageClass::Html).count();
    let mut issues: Vec<Issue> = findings
        .into_iter()
        .filter_map(|finding| {
            let code = rules.code(&finding.code).filter(|code| wanted.has(code))?;
            Some(issue(finding, code, choices.severity(code)?, pages))
        })
        .collect();
    for issue in &mut issues {
        issue.ignored = choices.reason(&issue.code, &issue.url);
    }
    issues.sort_by(|a, b| {
        (a.severity, &a.code, &a.url, &a.target, &a.group)
            .cmp(&(b.severity, &b.code, &b.url, &b.target, &b.group))
    });
    issues
}

/// The findings of single pages, as far as they still apply once the whole site is known. A fault of a header on all pages of a host is told once,
/// for the host.
fn of_pages(site: &Site, rules: &RuleSet) -> Vec<Finding> {
    let mut hosts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut with_fault: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    let mut findings = Vec::new();
    for record in site.pages(PageClass::Html) {
        *hosts.entry(authority(&record.url)).or_default() += 1;
        for finding in &record.findings {
            if OF_HEADERS.contains(&finding.code.as_str()) {
                with_fault.entry((authority(&record.url), &finding.code)).or_default().push(&record.url);
                continue;
            }
            let applies = rules.code(&finding.code).is_some_and(|code| site.is(record, code.judges));
            if applies {
                findings.push(finding.clone().url(&record.url));
            }
        }
    }
    for ((host, code), urls) in with_fault {
        let is_everywhere = urls.len() > 1 && hosts.get(host) == Some(&urls.len());
        if is_everywhere {
            let places = urls.iter().map(|url| Place { page: Some((*url).to_owned()), ..Place::default() });
            let finding = Finding::of(code)
                .url(urls[0])
                .group(host)
                .value(format!("all {} pages of the host", urls.len()));
            findings.push(places.fold(finding, Finding::at));
        } else {
            findings.extend(urls.into_iter().map(|url| Finding::of(code).url(url)));
        }
    }
    findings
}

fn issue(finding: Finding, code: &Code, severity: Severity, pages: usize) -> Issue {
    let Finding { code: name, url, target, group, value, limit, at, places } = finding;
    let key =
        [name.as_str(), &url, target.as_deref().unwrap_or_default(), group.as_deref().unwrap_or_default()]
            .join("\0");
    Issue {
        id: format!("{:016x}", xxh3_64(key.as_bytes())),
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
        ignored: None,
    }
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

/// Which codes are judged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    only: Vec<String>,
    not: Vec<String>,
}

impl Wanted {
    /// Reads families and codes; one that begins with a hyphen is taken out.
    ///
    /// # Errors
    /// A name is neither a family nor a code.
    pub(crate) fn parse(names: &[String], ignored: &[String], rules: &RuleSet) -> Result<Self> {
        let mut wanted = Self::default();
        let names = names.iter().map(|name| match name.strip_prefix('-') {
            Some(name) => (name, true),
            None => (name.as_str(), false),
        });
        for (name, is_out) in names.chain(ignored.iter().map(|name| (name.as_str(), true))) {
            check_name(name, rules)?;
            if is_out { wanted.not.push(name.to_owned()) } else { wanted.only.push(name.to_owned()) }
        }
        Ok(wanted)
    }

    pub(crate) fn has(&self, code: &Code) -> bool {
        let names = |list: &[String]| list.iter().any(|name| name == code.name || name == code.family);
        !names(&self.not) && (self.only.is_empty() || names(&self.only))
    }
}

/// Checks that a name is a family or a code.
pub(crate) fn check_name(name: &str, rules: &RuleSet) -> Result<()> {
    if rules.codes().any(|code| code.name == name || code.family == name) {
        return Ok(());
    }
    Err(Error::usage(format!(
        "\"{}\" is neither a family nor a code; `huntsman audit codes` lists them",
        name.escape_debug()
    )))
}
