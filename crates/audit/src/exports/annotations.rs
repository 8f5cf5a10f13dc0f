//! Annotations of a build on GitHub: lines that its log turns into marks at files.

use std::fmt::Write;

use super::sarif::message;
use crate::audit::Audit;
use crate::code::Severity;

/// Annotations that a step of a build may have of each level.
const MAX: usize = 10;

impl Audit {
    /// The ten worst issues as workflow commands of GitHub Actions, a line each.
    pub fn annotations(&self) -> String {
        let mut text = String::new();
        for issue in self.issues.iter().take(MAX) {
            let level = match issue.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Notice => "notice",
            };
            let _ = writeln!(text, "::{level} title={}::{}", property(&issue.code), data(&message(issue)));
        }
        text
    }
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
