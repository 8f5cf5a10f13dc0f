//! Annotations of a build on GitHub: lines that its log turns into marks at files.

use std::fmt::Write;

use huntsman_crawler::Result;

use super::sarif::{SourceMap, message};
use crate::audit::Audit;
use crate::code::Severity;
use crate::issue::Issue;

/// Annotations that a step of a build may have of each level.
const MAX: usize = 10;

impl Audit {
    /// The ten worst issues as workflow commands of GitHub Actions, a line each. Those in files that `sources` names are marked there.
    ///
    /// # Errors
    /// The issues cannot be read.
    pub fn annotations(&self, sources: &SourceMap) -> Result<String> {
        let mut text = String::new();
        self.first_issues(MAX, &mut |issue| {
            let level = match issue.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Notice => "notice",
            };
            let _ = writeln!(
                text,
                "::{level} title={}{}::{}",
                property(&issue.code),
                place(issue, sources),
                data(&message(issue))
            );
            Ok(())
        })?;
        Ok(text)
    }
}

/// File, line and column of an issue, if it is in a file of the repository.
fn place(issue: &Issue, sources: &SourceMap) -> String {
    let first = issue.at.first();
    let url = first.and_then(|place| place.page.as_deref()).unwrap_or(&issue.url);
    let Some(file) = sources.file(url) else { return String::new() };
    let mut text = format!(",file={}", property(&file));
    if let Some(place) = first.filter(|place| place.line > 0) {
        let _ = write!(text, ",line={},col={}", place.line, place.column);
    }
    text
}

/// A text after `::`, in which only these characters have a meaning.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_the_web_begins_no_command() {
        assert_eq!(data("a%\n::error::x"), "a%25%0A::error::x");
        assert_eq!(property("a:b,c"), "a%3Ab%2Cc");
    }
}
