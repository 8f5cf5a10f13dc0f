//! The gate: which issues make an audit fail.

use std::collections::BTreeSet;

use huntsman_crawler::{Error, Result};
use serde::Serialize;

use crate::choices::check_name;
use crate::issue::{Issue, severity_of};
use crate::rule::RuleSet;

/// A condition under which an audit fails: a severity, a family or a code; with `new:` before it only issues count that an earlier audit does not
/// have, and with `>N` behind it N of them are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailOn {
    text: String,
    name: String,
    is_new: bool,
    more_than: usize,
}

/// A condition that was met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GateFailure {
    /// The condition as it was given.
    pub condition: String,
    /// Number of issues.
    pub issues: usize,
    /// Number of issues that the condition allows.
    pub allowed: usize,
    /// The codes of the issues.
    #[serde(skip)]
    pub codes: BTreeSet<String>,
}

impl std::fmt::Display for GateFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} issues, allowed are {}", self.condition, self.issues, self.allowed)
    }
}

impl FailOn {
    pub(crate) fn parse(text: &str, rules: &RuleSet) -> Result<Self> {
        let wrong = || {
            let shown = text.escape_debug();
            Error::usage(format!(
                "--fail-on {shown}: use error, warning, notice, a family or a code, such as error, links>5 or new:error"
            ))
        };
        let rest = text.strip_prefix("new:");
        let is_new = rest.is_some();
        let rest = rest.unwrap_or(text);
        let (name, more_than) = match rest.split_once('>') {
            None => (rest, 0),
            Some((name, number)) => (name, number.trim().parse().map_err(|_| wrong())?),
        };
        let name = name.trim();
        if severity_of(name).is_none() {
            check_name(name, rules).map_err(|_| wrong())?;
        }
        Ok(Self { text: text.to_owned(), name: name.to_owned(), is_new, more_than })
    }

    /// Whether it needs an earlier audit.
    pub(crate) fn is_about_new(&self) -> bool {
        self.is_new
    }

    /// Whether an issue counts.
    pub(crate) fn counts(&self, severity: &str, family: &str, code: &str, is_new: bool) -> bool {
        let is_named = severity == self.name || family == self.name || code == self.name;
        is_named && (is_new || !self.is_new)
    }

    /// The failure, if this number of issues is too many. `codes` are those of the issues.
    pub(crate) fn failure(&self, issues: usize, codes: BTreeSet<String>) -> Option<GateFailure> {
        (issues > self.more_than).then(|| GateFailure {
            condition: self.text.clone(),
            issues,
            allowed: self.more_than,
            codes,
        })
    }

    /// Whether an issue of this audit counts.
    pub(crate) fn counts_issue(&self, issue: &Issue) -> bool {
        let is_new = issue.new == Some(true);
        issue.ignored.is_none() && self.counts(issue.severity.name(), &issue.family, &issue.code, is_new)
    }
}
