//! A summary in Markdown, for the page of a build.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::audit::Audit;
use crate::code::{PageClass, Severity};
use crate::issue::Issue;
use crate::markdown::cell;

/// Codes and URLs of a code that are listed.
const CODES: usize = 30;
const URLS: usize = 10;

impl Audit {
    /// A summary in Markdown: the numbers, the score, what the gate says, and the codes with their first URLs.
    pub fn markdown(&self) -> String {
        let number = |severity| self.issues.iter().filter(|issue| issue.severity == severity).count();
        let mut text = String::from("## Audit\n\n");
        let _ = writeln!(
            text,
            "{} pages, {} errors, {} warnings, {} notices{}",
            self.site.pages(PageClass::Html).count(),
            number(Severity::Error),
            number(Severity::Warning),
            number(Severity::Notice),
            self.new_issues().map(|new| format!("; {new} new")).unwrap_or_default()
        );
        let score = self.score();
        if let Some(overall) = score.overall {
            let _ = writeln!(text, "\nScore **{overall:.1}** of 10\n\n| family | score |\n|---|---:|");
            for (name, points) in score.worst_first() {
                let _ = writeln!(text, "| {name} | {points:.1} |");
            }
        }
        if !self.site.is_complete() {
            text.push_str("\nThe crawl ended early: what is missing was not judged.\n");
        }
        let failures: Vec<String> = self
            .gate
            .iter()
            .map(ToString::to_string)
            .chain(self.budget.iter().map(ToString::to_string))
            .collect();
        if !failures.is_empty() {
            text.push_str("\n### Failed\n\n");
            failures.iter().for_each(|failure| {
                let _ = writeln!(text, "- {}", cell(failure));
            });
        }
        let mut codes: BTreeMap<(Severity, &str), Vec<&Issue>> = BTreeMap::new();
        for issue in &self.issues {
            codes.entry((issue.severity, &issue.code)).or_default().push(issue);
        }
        let mut codes: Vec<_> = codes.into_iter().collect();
        codes.sort_by_key(|((severity, code), issues)| (*severity, std::cmp::Reverse(issues.len()), *code));
        for ((severity, code), issues) in codes.iter().take(CODES) {
            let _ = writeln!(text, "\n### {} {code} ({})\n", severity.name(), issues.len());
            for issue in issues.iter().take(URLS) {
                let target = issue.target.as_ref().map(|target| format!(" -> {}", cell(target)));
                let _ = writeln!(text, "- {}{}", cell(&issue.url), target.unwrap_or_default());
            }
            if issues.len() > URLS {
                let _ = writeln!(text, "- and {} more", issues.len() - URLS);
            }
        }
        if codes.len() > CODES {
            let _ = writeln!(text, "\nAnd {} further codes.", codes.len() - CODES);
        }
        text
    }
}
