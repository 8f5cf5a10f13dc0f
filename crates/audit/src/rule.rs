//! Rules: what finds issues, on single pages and on the whole site.

use std::collections::BTreeMap;

use crate::code::Code;
use crate::finding::Findings;
use crate::page::AuditedPage;
use crate::rules;
use crate::site::Site;
use crate::spider::SharedRules;

/// Finds issues of some codes. The built-in rules are implementations of this trait, a file for each family.
///
/// ```
/// use huntsman_audit::{AuditedPage, Code, Finding, Findings, Rule, Severity};
///
/// /// Every page has to name its author.
/// struct Author;
///
/// const CODES: &[Code] = &[Code::new("house", "author-missing").severity(Severity::Notice)];
///
/// impl Rule for Author {
///     fn codes(&self) -> &[Code] {
///         CODES
///     }
///
///     fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
///         if !page.metas().any(|meta| meta.name == Some("author")) {
///             findings.add(Finding::of("author-missing"));
///         }
///     }
/// }
/// ```
pub trait Rule: Send + Sync + 'static {
    /// The codes of its findings. A finding with another code is dropped, and so is one of a page that is not of the class which its code
    /// judges.
    fn codes(&self) -> &[Code];

    /// Judges a page of the site, on a worker thread of the crawl. It does nothing by default.
    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        let _ = (page, findings);
    }

    /// Judges the site after the crawl. It does nothing by default.
    fn site(&self, site: &Site, findings: &mut Findings) {
        let _ = (site, findings);
    }
}

/// The rules of an audit, with their codes.
#[derive(Clone)]
pub(crate) struct RuleSet {
    rules: SharedRules,
    codes: BTreeMap<&'static str, Code>,
}

impl RuleSet {
    pub(crate) fn new(own: Vec<Box<dyn Rule>>) -> Self {
        let rules: Vec<Box<dyn Rule>> = rules::built_in().into_iter().chain(own).collect();
        let codes =
            rules.iter().flat_map(|rule| rule.codes().iter().map(|code| (code.name, *code))).collect();
        Self { rules: rules.into(), codes }
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = &dyn Rule> {
        self.rules.iter().map(|rule| &**rule)
    }

    pub(crate) fn code(&self, name: &str) -> Option<&Code> {
        self.codes.get(name)
    }

    pub(crate) fn codes(&self) -> impl Iterator<Item = &Code> {
        self.codes.values()
    }
}

/// The codes of the built-in rules, by family and name.
pub fn codes() -> Vec<Code> {
    let mut codes: Vec<Code> = rules::built_in().iter().flat_map(|rule| rule.codes().to_vec()).collect();
    codes.sort_by_key(|code| (code.family, code.name));
    codes
}
