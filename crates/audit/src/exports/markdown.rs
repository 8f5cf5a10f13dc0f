//! A summary in Markdown, for the page of a build.

use std::fmt::Write;

use huntsman_output::render::counted;

use crate::audit::Audit;
use crate::code::{PageClass, Severity};
use crate::markdown::cell;

/// Causes and URLs of a cause that are listed.
const CAUSES: usize = 30;
const URLS: usize = 10;

impl Audit {
    /// A summary in Markdown: the numbers, the score, what the gate says, and the causes with their first URLs.
    pub fn markdown(&self) -> String {
        let number = |severity: Severity| counted(self.issues.number_of(severity) as u64, severity.name());
        let mut text = format!("## Audit of {}\n\n", cell(&self.name()));
        let _ = writeln!(
            text,
            "{}: {}, {}, {}{}",
            counted(self.count(PageClass::Html) as u64, "page"),
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
        let failures: Vec<String> = self.failures().collect();
        if !failures.is_empty() {
            text.push_str("\n### Failed\n\n");
            failures.iter().for_each(|failure| {
                let _ = writeln!(text, "- {}", cell(failure));
            });
        }
        for cause in self.causes.iter().take(CAUSES) {
            let numbers = cause
                .severities()
                .map(|severity| format!("{} {}", cause.number_of(severity), severity.name()));
            let numbers = numbers.collect::<Vec<_>>().join(", ");
            let _ = writeln!(text, "\n### {} ({}, {numbers})\n", cell(&cause.title), cell(&cause.code));
            for issue in cause.first.iter().take(URLS) {
                let target = issue.target.as_ref().map(|target| format!(" -> {}", cell(target)));
                let _ = writeln!(text, "- {}{}", cell(&issue.url), target.unwrap_or_default());
            }
            if cause.issues > URLS {
                let _ = writeln!(text, "- and {} more", cause.issues - URLS);
            }
        }
        if self.causes.len() > CAUSES {
            let _ = writeln!(text, "\nAnd {}.", counted((self.causes.len() - CAUSES) as u64, "further code"));
        }
        text
    }
}
