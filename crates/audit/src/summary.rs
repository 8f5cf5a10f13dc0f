//! The summary of an audit on a terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use huntsman_crawler::terminal::escape;
use huntsman_output::render::{Style, counted, shorten};

use crate::audit::Audit;
use crate::code::{PageClass, Severity};
use crate::issue::Issue;

/// Codes that are listed.
const CODES: usize = 10;
/// Families whose score is shown.
const FAMILIES: usize = 4;
/// Notes that are shown, and their characters.
const NOTES: usize = 2;
const NOTE: usize = 120;
/// Characters of a URL that are shown.
const URL: usize = 60;

impl Audit {
    /// The summary: coverage, score, the worst codes, and the gate, in at most 24 lines.
    pub fn summary(&self, style: Style) -> String {
        let mut text = String::new();
        let pages = self.site.pages(PageClass::Html).count();
        let indexable = self.site.pages(PageClass::Indexable).count();
        let number =
            |severity: Severity| self.issues.iter().filter(|issue| issue.severity == severity).count() as u64;
        let _ = writeln!(
            text,
            "  {} judged by {}, {indexable} of them indexable",
            counted(pages as u64, "page"),
            counted(self.codes.len() as u64, "code")
        );
        if !self.site.is_complete() {
            let note = "the crawl ended early: what is missing was not judged";
            let _ = writeln!(text, "  {}", style.yellow(note));
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
        let mut codes: BTreeMap<(Severity, &str), Vec<&Issue>> = BTreeMap::new();
        self.issues
            .iter()
            .for_each(|issue| codes.entry((issue.severity, &issue.code)).or_default().push(issue));
        let mut codes: Vec<_> = codes.into_iter().collect();
        codes.sort_by_key(|((severity, code), issues)| (*severity, std::cmp::Reverse(issues.len()), *code));
        for ((severity, code), issues) in codes.iter().take(CODES) {
            let mark = match severity {
                Severity::Error => style.red("error  "),
                Severity::Warning => style.yellow("warning"),
                Severity::Notice => style.dim("notice "),
            };
            let url = escape(&issues[0].url).into_owned();
            let _ = writeln!(text, "  {mark} {:>5} {code:<26} {}", issues.len(), shorten(&url, URL));
        }
        if codes.len() > CODES {
            let _ = writeln!(
                text,
                "  and {}; `huntsman audit codes CODE` explains one",
                counted((codes.len() - CODES) as u64, "further code")
            );
        }
        let failures = self.gate.iter().map(ToString::to_string);
        for failure in failures.chain(self.budget.iter().map(ToString::to_string)).take(5) {
            let _ = writeln!(text, "  {}", style.red(&format!("failed on {failure}")));
        }
        text
    }
}
