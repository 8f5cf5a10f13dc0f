//! JUnit XML: the results of a run as build servers show them.

use std::fmt::Write;

use crate::xml::escape;

/// A group of cases.
pub(crate) struct Suite {
    pub(crate) name: String,
    pub(crate) cases: Vec<Case>,
}

/// Something that was looked at.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) result: CaseResult,
}

pub(crate) enum CaseResult {
    Passed,
    /// What is wrong, in a line, and in full.
    Failed(String, String),
    /// Why it was not judged.
    Skipped(String),
}

/// The document with these suites.
pub(crate) fn document(name: &str, suites: &[Suite]) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let all: Vec<&Case> = suites.iter().flat_map(|suite| &suite.cases).collect();
    let _ = writeln!(text, "<testsuites name=\"{}\" {}>", escape(name), numbers(&all));
    for Suite { name, cases } in suites {
        let _ = writeln!(
            text,
            "  <testsuite name=\"{}\" {}>",
            escape(name),
            numbers(&cases.iter().collect::<Vec<_>>())
        );
        for case in cases {
            let end = match &case.result {
                CaseResult::Passed => "/>".to_owned(),
                CaseResult::Failed(line, full) => {
                    format!("><failure message=\"{}\">{}</failure></testcase>", escape(line), escape(full))
                }
                CaseResult::Skipped(reason) => {
                    format!("><skipped message=\"{}\"/></testcase>", escape(reason))
                }
            };
            let _ = writeln!(
                text,
                "    <testcase name=\"{}\" classname=\"{}\"{end}",
                escape(&case.name),
                escape(name)
            );
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

fn numbers(cases: &[&Case]) -> String {
    let number = |is: fn(&CaseResult) -> bool| cases.iter().filter(|case| is(&case.result)).count();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
        cases.len(),
        number(|result| matches!(result, CaseResult::Failed(..))),
        number(|result| matches!(result, CaseResult::Skipped(_)))
    )
}
