//! The summary of an audit on a terminal.

use std::fmt::Write as _;

use huntsman_crawler::terminal::escape;
use huntsman_output::render::{Style, count, counted, shorten};

use crate::audit::Audit;
use crate::code::{PageClass, Severity};
use crate::record::Kind;
use crate::site::Address;

/// Causes that are listed, and characters of their titles.
const CAUSES: usize = 10;
const TITLE: usize = 48;
/// Families whose score is shown.
const FAMILIES: usize = 4;
/// Notes that are shown, and their characters.
const NOTES: usize = 2;
const NOTE: usize = 120;
/// Start URLs that answer by an error which are shown.
const STARTS: usize = 3;
/// Reasons why URLs were not requested that are shown.
const REASONS: usize = 4;

impl Audit {
    /// What was looked at besides pages, and what was not requested, with the most frequent reasons. `None` if there is neither.
    fn coverage(&self) -> Option<String> {
        let answered = |kind: Kind| {
            let of_kind =
                self.site.addresses().filter(|found| found.is_answered() && found.kind() == Some(kind));
            of_kind.count() as u64
        };
        let (files, links) = (answered(Kind::Resource), answered(Kind::External));
        let mut refused: Vec<(String, usize)> = self.refusals().into_iter().collect();
        refused.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        let total: usize = refused.iter().map(|(_, number)| number).sum();
        if files + links == 0 && total == 0 {
            return None;
        }
        let mut text =
            format!("{} and {} to other sites looked at", counted(files, "file"), counted(links, "link"));
        if total > 0 {
            let reasons = refused.iter().take(REASONS);
            let reasons: Vec<String> = reasons
                .map(|(reason, number)| format!("{} {}", escape(reason), count(*number as u64)))
                .collect();
            let _ = write!(text, "; {} not requested: {}", counted(total as u64, "URL"), reasons.join(", "));
        }
        Some(text)
    }

    /// The URLs where the crawl began that answer by an error. No link leads there, so that no issue tells them.
    fn failed_starts(&self) -> impl Iterator<Item = Address<'_>> {
        let has_failed = |start: &Address<'_>| start.status().is_some_and(|status| status >= 400);
        self.site.addresses().filter(|address| address.is_start()).filter(has_failed)
    }

    /// The summary: coverage, score, the worst codes, and the gate, in at most 25 lines.
    pub fn summary(&self, style: Style) -> String {
        let mut text = String::new();
        let pages = self.count(PageClass::Html);
        let indexable = self.count(PageClass::Indexable);
        let number = |severity: Severity| self.issues.number_of(severity) as u64;
        let _ = writeln!(
            text,
            "  {} judged by {}, {indexable} of them indexable",
            counted(pages as u64, "page"),
            counted(self.codes.len() as u64, "code")
        );
        for start in self.failed_starts().take(STARTS) {
            let status = start.status().unwrap_or_default();
            let note = format!("the start URL {} answers {status}", escape(&start.url()));
            let _ = writeln!(text, "  {}", style.yellow(&shorten(&note, NOTE)));
        }
        if let Some(coverage) = self.coverage() {
            let _ = writeln!(text, "  {coverage}");
        }
        if !self.site.is_complete() {
            let reason = self.ended_by.as_ref().map(|reason| format!(" ({})", escape(reason)));
            let reason = reason.unwrap_or_default();
            let note = format!("the crawl ended early{reason}: what is missing was not judged");
            let _ = writeln!(text, "  {}", style.yellow(&note));
        }
        for note in self.notes.iter().take(NOTES) {
            let _ = writeln!(text, "  {}", style.yellow(&shorten(&escape(note), NOTE)));
        }
        let errors = counted(number(Severity::Error), "error");
        let errors = if number(Severity::Error) > 0 { style.red(&errors) } else { errors };
        let _ = writeln!(
            text,
            "  {errors}, {}, {}{}",
            counted(number(Severity::Warning), "warning"),
            counted(number(Severity::Notice), "notice"),
            match (self.new_issues(), self.ignored.len()) {
                (None, 0) => String::new(),
                (None, ignored) => format!(", {ignored} ignored"),
                (Some(new), 0) => format!("; {new} of them new"),
                (Some(new), ignored) => format!("; {new} of them new; {ignored} ignored"),
            }
        );
        let score = self.score();
        if let Some(overall) = score.overall {
            let families = score.worst_first();
            let shown: Vec<String> =
                families.iter().take(FAMILIES).map(|(name, points)| format!("{name} {points:.1}")).collect();
            let _ = writeln!(text, "  score {overall:.1} of 10; lowest: {}", shown.join(", "));
        }
        for cause in self.causes.iter().take(CAUSES) {
            let mark = match cause.severity {
                Severity::Error => style.red("error  "),
                Severity::Warning => style.yellow("warning"),
                Severity::Notice => style.dim("notice "),
            };
            let title = shorten(&cause.title, TITLE);
            let code = escape(&cause.code);
            let _ = writeln!(
                text,
                "  {mark} {:>6}  {title:<TITLE$}  {}",
                count(cause.issues as u64),
                style.dim(&code)
            );
        }
        if self.causes.len() > CAUSES {
            let _ = writeln!(
                text,
                "  and {}; `huntsman audit codes CODE` explains one",
                counted((self.causes.len() - CAUSES) as u64, "further code")
            );
        }
        for failure in self.failures().take(4) {
            let _ = writeln!(text, "  {}", style.red(&format!("failed on {failure}")));
        }
        text
    }
}
