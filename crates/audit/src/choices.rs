//! What a user chooses: severities, issues that are accepted, and the codes that are judged.

use std::collections::BTreeMap;

use huntsman_crawler::{Error, Result, Timestamp};
use huntsman_middleware::{AuditSettings, UrlPattern};

use crate::code::{Code, Severity};
use crate::finding::Finding;
use crate::issue::{Issue, severity_of};
use crate::rule::RuleSet;

/// Severities, and issues that settings accept.
#[derive(Debug)]
pub(crate) struct Choices {
    severities: BTreeMap<String, Option<Severity>>,
    ignored: Vec<Ignored>,
}

#[derive(Debug)]
struct Ignored {
    code: String,
    url: Option<UrlPattern>,
    target: Option<UrlPattern>,
    reason: String,
    /// The last day on which it holds.
    until: Option<String>,
    is_over: bool,
    is_used: bool,
}

impl Choices {
    /// Reads them from the settings. Of rules with an end those hold that are not over on the day of `now`, in UTC.
    ///
    /// # Errors
    /// A code, a severity, a pattern or a date is wrong; the error names it.
    pub(crate) fn new(limits: &AuditSettings, rules: &RuleSet, now: Timestamp) -> Result<Self> {
        let known = |code: &str, setting: &str| match rules.code(code) {
            Some(_) => Ok(()),
            None => Err(Error::usage(format!(
                "setting {setting}: there is no code \"{}\"; `huntsman audit codes` lists them",
                code.escape_debug()
            ))),
        };
        let today = now.to_rfc3339().chars().take(10).collect::<String>();
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
            let target = rule.target.as_deref().map(UrlPattern::parse).transpose()?;
            let until = rule.until.as_deref().map(day).transpose()?;
            let is_over = until.as_ref().is_some_and(|until| *until < today);
            let reason = rule.reason.clone().unwrap_or_else(|| "a setting ignores it".to_owned());
            let code = rule.code.clone();
            ignored.push(Ignored { code, url, target, reason, until, is_over, is_used: false });
        }
        Ok(Self { severities, ignored })
    }

    /// The severity of a code; `None` if it is off.
    pub(crate) fn severity(&self, code: &Code) -> Option<CodeSeverity> {
        match self.severities.get(code.name) {
            Some(set) => set.map(|severity| CodeSeverity { severity, is_set: true }),
            None => Some(CodeSeverity { severity: code.severity, is_set: false }),
        }
    }

    /// Why an issue is accepted, if it is.
    pub(crate) fn reason(&mut self, issue: &Issue) -> Option<String> {
        let matches = |pattern: &Option<UrlPattern>, url: Option<&str>| match pattern {
            None => true,
            Some(pattern) => {
                url.and_then(|url| url::Url::parse(url).ok()).is_some_and(|url| pattern.matches(&url))
            }
        };
        let is_meant = |rule: &&mut Ignored| {
            !rule.is_over
                && rule.code == issue.code
                && matches(&rule.url, Some(&issue.url))
                && matches(&rule.target, issue.target.as_deref())
        };
        let rule = self.ignored.iter_mut().find(is_meant)?;
        rule.is_used = true;
        Some(rule.reason.clone())
    }

    /// What is to be said of the rules for accepted issues: that one is over, or that nothing matches it.
    pub(crate) fn notes(&self) -> Vec<String> {
        let note = |rule: &Ignored| {
            let name = format!("the rule of audit_ignore for {} (\"{}\")", rule.code, rule.reason);
            match &rule.until {
                Some(until) if rule.is_over => {
                    Some(format!("{name} was over on {until}: remove or renew it"))
                }
                _ => (!rule.is_used).then(|| format!("{name} matches no issue")),
            }
        };
        self.ignored.iter().filter_map(note).collect()
    }
}

/// A date as YYYY-MM-DD.
fn day(text: &str) -> Result<String> {
    let midnight = format!("{text}T00:00:00.000Z");
    match Timestamp::from_rfc3339(&midnight) {
        Some(_) if text.len() == 10 => Ok(text.to_owned()),
        _ => Err(Error::usage(format!(
            "setting audit_ignore: until = \"{}\": use a date such as 2027-03-31",
            text.escape_debug()
        ))),
    }
}

/// How bad the issues of a code are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodeSeverity {
    /// The severity that the code has, or that a setting gives it.
    pub(crate) severity: Severity,
    /// Whether a setting gives it, so that it holds for all findings.
    pub(crate) is_set: bool,
}

impl CodeSeverity {
    /// How bad a finding of the code is.
    pub(crate) fn of(self, finding: &Finding) -> Severity {
        finding.severity.filter(|_| !self.is_set).map_or(self.severity, |own| own.max(self.severity))
    }
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
