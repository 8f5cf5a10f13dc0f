//! What people and programs are told of a check.

use std::fmt::Write;

use huntsman_output::render::{Style, counted, escape};
use serde_json::json;

use super::answer::LinkState;
use super::check::{CheckedLink, LinkReport};
use super::reference::Target;
use super::source::UnreadSource;
use crate::junit::{Case, CaseResult, Suite, document};
use crate::markdown::cell;

/// States, the worst first.
const STATES: [LinkState; 5] =
    [LinkState::Broken, LinkState::Unverified, LinkState::Redirected, LinkState::Good, LinkState::Skipped];

/// The form of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkFormat {
    /// A line for each broken link, as compilers write errors, and the totals.
    #[default]
    Compact,
    /// A line for each link with its result, by source.
    Detailed,
    /// One JSON object with all links.
    Json,
    /// A suite for each source and a case for each link, for the displays of build servers.
    Junit,
    /// Tables for a page of a build.
    Markdown,
}

impl LinkReport {
    /// Writes the report. With `suggest`, a broken URL is followed by the address at which the Wayback Machine may have a copy; it is not asked for.
    pub fn render(&self, format: LinkFormat, style: Style, suggest: bool) -> String {
        match format {
            LinkFormat::Compact => self.compact(style, suggest),
            LinkFormat::Detailed => self.detailed(style, suggest),
            LinkFormat::Json => self.json(suggest),
            LinkFormat::Junit => self.junit(),
            LinkFormat::Markdown => self.markdown(suggest),
        }
    }

    /// The number of links of each state, as a line.
    pub fn totals(&self) -> String {
        let states = STATES.into_iter().map(|state| (state, self.of(state).count()));
        let shown: Vec<String> = states
            .filter(|(_, count)| *count > 0)
            .map(|(state, count)| format!("{count} {}", state.name()))
            .collect();
        let links = counted(self.links.len() as u64, "link");
        if shown.is_empty() { links } else { format!("{links}: {}", shown.join(", ")) }
    }

    fn compact(&self, style: Style, suggest: bool) -> String {
        let mut text = self.unread_lines(style);
        for link in self.of(LinkState::Broken) {
            let place =
                format!("{}:{}:{}", link.reference.source, link.reference.line, link.reference.column);
            let _ = writeln!(text, "{}: {}", style.bold(&escape(&place)), told(link, style, suggest));
        }
        let _ = writeln!(text, "{}", self.totals());
        text
    }

    fn detailed(&self, style: Style, suggest: bool) -> String {
        let mut text = self.unread_lines(style);
        for links in self.links.chunk_by(|a, b| a.reference.source == b.reference.source) {
            let _ = writeln!(text, "{}", style.bold(&escape(&links[0].reference.source)));
            for link in links {
                let place = format!("{}:{}", link.reference.line, link.reference.column);
                let _ = writeln!(text, "  {place:>8}  {}", told(link, style, suggest));
            }
        }
        let _ = writeln!(text, "{}", self.totals());
        text
    }

    fn unread_lines(&self, style: Style) -> String {
        let lines = self.unread.iter();
        lines.fold(String::new(), |mut text, UnreadSource { source, reason }| {
            let _ = writeln!(
                text,
                "{}: {} {}",
                style.bold(&escape(source)),
                style.red("not read"),
                escape(reason)
            );
            text
        })
    }

    fn json(&self, suggest: bool) -> String {
        let links: Vec<_> = self
            .links
            .iter()
            .map(|link| {
                let mut value = json!(link);
                if let (true, Some(copy)) = (suggest, copy_of(link)) {
                    value["copy"] = copy.into();
                }
                value
            })
            .collect();
        let totals: serde_json::Map<String, serde_json::Value> = STATES
            .into_iter()
            .map(|state| (state.name().to_owned(), self.of(state).count().into()))
            .collect();
        let mut text = format!("{:#}", json!({"totals": totals, "unread": self.unread, "links": links}));
        text.push('\n');
        text
    }

    fn junit(&self) -> String {
        let mut suites: Vec<Suite> = Vec::new();
        for UnreadSource { source, reason } in &self.unread {
            let result = CaseResult::Failed(reason.clone(), String::new());
            suites
                .push(Suite { name: source.clone(), cases: vec![Case { name: "read".to_owned(), result }] });
        }
        for links in self.links.chunk_by(|a, b| a.reference.source == b.reference.source) {
            let cases = links.iter().map(|link| {
                let reference = &link.reference;
                let result = match link.outcome.state {
                    LinkState::Broken => CaseResult::Failed(reason(link), String::new()),
                    LinkState::Unverified | LinkState::Skipped => CaseResult::Skipped(reason(link)),
                    LinkState::Good | LinkState::Redirected => CaseResult::Passed,
                };
                Case { name: format!("{}:{} {}", reference.line, reference.column, reference.href), result }
            });
            suites.push(Suite { name: links[0].reference.source.clone(), cases: cases.collect() });
        }
        document("huntsman links", &suites)
    }

    fn markdown(&self, suggest: bool) -> String {
        let mut text = format!("## Links\n\n{}\n", self.totals());
        if !self.unread.is_empty() {
            text.push_str("\n### Not read\n\n| source | why |\n|---|---|\n");
            for UnreadSource { source, reason } in &self.unread {
                let _ = writeln!(text, "| {} | {} |", cell(source), cell(reason));
            }
        }
        for state in [LinkState::Broken, LinkState::Unverified, LinkState::Redirected] {
            if self.of(state).next().is_none() {
                continue;
            }
            let _ =
                writeln!(text, "\n### {}\n\n| where | link | why |\n|---|---|---|", capital(state.name()));
            for link in self.of(state) {
                let place = format!("{}:{}", link.reference.source, link.reference.line);
                let copy = copy_of(link).filter(|_| suggest).map(|copy| format!(" (perhaps <{copy}>)"));
                let why = cell(&reason(link));
                let _ = writeln!(
                    text,
                    "| {} | {} | {why}{} |",
                    cell(&place),
                    cell(&link.reference.href),
                    copy.unwrap_or_default()
                );
            }
        }
        text
    }
}

/// A link with its result, on a line.
fn told(link: &CheckedLink, style: Style, suggest: bool) -> String {
    let name = link.outcome.state.name();
    let state = match link.outcome.state {
        LinkState::Broken => style.red(name),
        LinkState::Unverified | LinkState::Redirected => style.yellow(name),
        LinkState::Good => style.green(name),
        LinkState::Skipped => style.dim(name),
    };
    let mut line = format!("{state} {}", escape(&link.reference.href));
    let reason = reason(link);
    if !reason.is_empty() {
        let _ = write!(line, "  {}", style.dim(&escape(&reason)));
    }
    if let Some(copy) = copy_of(link).filter(|_| suggest) {
        let _ = write!(line, "  perhaps {}", escape(&copy));
    }
    line
}

/// Why a link has its result, or where it leads to.
fn reason(link: &CheckedLink) -> String {
    let to = link.outcome.to.as_ref().map(|to| format!("leads to {to}"));
    [link.outcome.reason.clone(), to].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Where an archive may have a copy of a broken page.
fn copy_of(link: &CheckedLink) -> Option<String> {
    match &link.reference.target {
        Target::Web(url) if link.outcome.state == LinkState::Broken => {
            Some(format!("https://web.archive.org/web/{url}"))
        }
        _ => None,
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
