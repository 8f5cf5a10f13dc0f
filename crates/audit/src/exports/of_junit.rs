//! The codes of an audit as test cases.

use std::collections::BTreeMap;

use crate::audit::Audit;
use crate::causes::Cause;
use crate::junit::{Case, CaseResult, Suite, document};

impl Audit {
    /// The audit as JUnit XML: a suite for each family and a case for each code that was judged. A case fails only if the gate fails on its code.
    pub fn junit(&self) -> String {
        let mut suites: BTreeMap<&str, Vec<Case>> = BTreeMap::new();
        for code in &self.codes {
            let cause = self.causes.iter().find(|cause| cause.code == code.name);
            let failed = self.gate.iter().find(|failure| failure.codes.contains(code.name));
            let result = match failed {
                Some(failure) => {
                    CaseResult::Failed(failure.to_string(), cause.map(listed).unwrap_or_default())
                }
                None => CaseResult::Passed,
            };
            suites.entry(code.family).or_default().push(Case { name: code.name.to_owned(), result });
        }
        for failure in &self.budget {
            let result = CaseResult::Failed(failure.to_string(), String::new());
            suites.entry("budget").or_default().push(Case { name: failure.condition.clone(), result });
        }
        let suites: Vec<Suite> =
            suites.into_iter().map(|(name, cases)| Suite { name: name.to_owned(), cases }).collect();
        document("huntsman audit", &suites)
    }
}

/// What to mend, and the first URLs.
fn listed(cause: &Cause) -> String {
    let mut lines: Vec<String> = cause.first.iter().map(super::sarif::message).collect();
    if cause.issues > cause.first.len() {
        lines.push(format!("and {} more in issues.jsonl", cause.issues - cause.first.len()));
    }
    lines.join("\n")
}
