//! The codes of an audit as test cases.

use std::collections::BTreeMap;

use crate::audit::Audit;
use crate::issue::Issue;
use crate::junit::{Case, CaseResult, Suite, document};

/// Issues that a failed case lists.
const LISTED: usize = 50;

impl Audit {
    /// The audit as JUnit XML: a suite for each family and a case for each code that was judged. A case fails only if the gate fails on its code.
    pub fn junit(&self) -> String {
        let mut by_code: BTreeMap<&str, Vec<&Issue>> = BTreeMap::new();
        self.issues.iter().for_each(|issue| by_code.entry(&issue.code).or_default().push(issue));
        let mut suites: BTreeMap<&str, Vec<Case>> = BTreeMap::new();
        for code in &self.codes {
            let issues = by_code.get(code.name).map(Vec::as_slice).unwrap_or_default();
            let failed = self.gate.iter().find(|failure| failure.codes.contains(code.name));
            let result = match failed {
                Some(failure) => CaseResult::Failed(failure.to_string(), listed(issues)),
                None => CaseResult::Passed,
            };
            suites.entry(code.family).or_default().push(Case { name: code.name.to_owned(), result });
        }
        for failure in self.budget.iter() {
            let result = CaseResult::Failed(failure.to_string(), String::new());
            suites.entry("budget").or_default().push(Case { name: failure.condition.clone(), result });
        }
        let suites: Vec<Suite> =
            suites.into_iter().map(|(name, cases)| Suite { name: name.to_owned(), cases }).collect();
        document("huntsman audit", &suites)
    }
}

fn listed(issues: &[&Issue]) -> String {
    let mut lines: Vec<String> = issues.iter().take(LISTED).map(|issue| issue.url.clone()).collect();
    if issues.len() > LISTED {
        lines.push(format!("and {} more", issues.len() - LISTED));
    }
    lines.join("\n")
}
