//! The gate: which issues make an audit fail.

use huntsman_crawler::{Error, Result};
use serde::Serialize;

use crate::issue::{Issue, check_name, severity_of};
use crate::rule::RuleSet;

/// A condition under which an audit fails: a severity, a family or a code, with `>N` behind it for more than N issues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailOn {
    name: String,
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
                "--fail-on {shown}: use error, warning, notice, a family or a code, such as error or links>5"
            ))
        };
        let (name, more_than) = match text.split_once('>') {
            None => (text, 0),
            Some((name, number)) => (name, number.trim().parse().map_err(|_| wrong())?),
        };
        let name = name.trim();
        if severity_of(name).is_none() {
            check_name(name, rules).map_err(|_| wrong())?;
        }
        Ok(Self { name: name.to_owned(), more_than })
    }

    pub(crate) fn judge(&self, issues: &[Issue]) -> Option<GateFailure> {
        let is_meant = |issue: &&Issue| {
            let is_named =
                issue.severity.name() == self.name || issue.family == self.name || issue.code == self.name;
            is_named && issue.ignored.is_none()
        };
        let found = issues.iter().filter(is_meant).count();
        (found > self.more_than).then(|| GateFailure {
            condition: self.name.clone(),
            issues: found,
            allowed: self.more_than,
        })
    }
}
