//! Tests of audits through their public interface.

use huntsman_audit::{Audit, Issue};

mod answers;
mod catalogue;
mod compare;
mod custom;
mod documents;
mod encrypted;
mod exports;
mod external;
mod issues;
mod links;
mod logs;
mod structured;

/// The issues that count.
fn all_issues(audit: &Audit) -> Vec<Issue> {
    audit.issues.iter().map(Result::unwrap).collect()
}

/// The issues of a code.
fn issues_of(audit: &Audit, code: &str) -> Vec<Issue> {
    audit.of(code).unwrap()
}

/// The URLs of the issues of a code.
fn urls_of(audit: &Audit, code: &str) -> Vec<String> {
    issues_of(audit, code).into_iter().map(|issue| issue.url).collect()
}
