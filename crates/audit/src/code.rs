//! Codes of issues: what is wrong, how bad it is, why it matters, and what to change.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// How bad an issue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Readers or robots meet something that is broken.
    Error,
    /// Something works worse than it could.
    Warning,
    /// Something to know, which may be meant.
    Notice,
}

impl Severity {
    /// The name in files and settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Notice => "notice",
        }
    }

    /// How much worse an error is than a warning, and that than a notice, when the worst are chosen.
    pub(crate) fn weight(self) -> usize {
        match self {
            Self::Error => 100,
            Self::Warning => 10,
            Self::Notice => 1,
        }
    }

    /// The place in lists of errors, warnings and notices.
    pub(crate) fn place(self) -> usize {
        match self {
            Self::Error => 0,
            Self::Warning => 1,
            Self::Notice => 2,
        }
    }
}

/// What has to be known before a code can be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// One page.
    Page,
    /// The whole site.
    Site,
}

/// The class of pages that a code judges. Each class is a part of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PageClass {
    /// Every URL that was fetched.
    Any,
    /// A page of the site: status 2xx, HTML by its content, received whole.
    Html,
    /// Such a page that search engines may index: without noindex, and without a canonical that names another page.
    Indexable,
    /// Such a page with content of its own: not a later page of a series, and no error page that answers 200.
    Content,
}

/// A code of issues. Its name never changes its meaning.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct Code {
    /// The name: words of lower-case letters with hyphens.
    pub name: &'static str,
    /// What it is called in reports, such as `Broken images`; empty for a code without one.
    pub headline: &'static str,
    /// The family that it belongs to, such as `links`.
    pub family: &'static str,
    /// How bad it is, unless a setting says otherwise.
    pub severity: Severity,
    /// What is needed to judge it.
    pub level: Level,
    /// The class of pages that it judges.
    pub judges: PageClass,
    /// When it is reported.
    pub when: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// What to change.
    pub fix: &'static str,
    /// The standard or guideline behind it.
    pub source: &'static str,
    /// An example of the fault.
    pub wrong: &'static str,
    /// The same without the fault.
    pub right: &'static str,
}

impl Code {
    /// A code of this family, which judges each HTML page alone and is a warning.
    pub const fn new(family: &'static str, name: &'static str) -> Self {
        Self {
            name,
            headline: "",
            family,
            severity: Severity::Warning,
            level: Level::Page,
            judges: PageClass::Html,
            when: "",
            why: "",
            fix: "",
            source: "",
            wrong: "",
            right: "",
        }
    }

    /// The limits in the settings that it compares with, without their `audit_`: those that `when` names in brackets.
    pub fn limits(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.when.split('[').skip(1).filter_map(|rest| Some(rest.split_once(']')?.0))
    }

    /// When it is reported, with the values of its limits in place of their names.
    pub(crate) fn when_with(&self, limits: &BTreeMap<&'static str, Value>) -> String {
        self.limits().fold(self.when.to_owned(), |text, name| match limits.get(name) {
            Some(value) => text.replace(&format!("[{name}]"), &value.to_string()),
            None => text,
        })
    }

    /// Says what it is called in reports: a few words, in the plural.
    pub const fn headline(mut self, headline: &'static str) -> Self {
        self.headline = headline;
        self
    }

    /// What it is called in reports: its headline, or else the words of its name.
    pub(crate) fn title(&self) -> String {
        if !self.headline.is_empty() {
            return self.headline.to_owned();
        }
        let words = self.name.replace('-', " ");
        let mut letters = words.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
    }

    /// Sets the severity.
    pub const fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Judges the whole site instead of single pages.
    pub const fn of_site(mut self) -> Self {
        self.level = Level::Site;
        self
    }

    /// Sets the class of pages that are judged.
    pub const fn judges(mut self, class: PageClass) -> Self {
        self.judges = class;
        self
    }

    /// Says when it is reported, why it matters, and what to change.
    pub const fn text(mut self, when: &'static str, why: &'static str, fix: &'static str) -> Self {
        self.when = when;
        self.why = why;
        self.fix = fix;
        self
    }

    /// Names the standard or guideline behind it.
    pub const fn source(mut self, source: &'static str) -> Self {
        self.source = source;
        self
    }

    /// Gives an example of the fault, and the same without it.
    pub const fn example(mut self, wrong: &'static str, right: &'static str) -> Self {
        self.wrong = wrong;
        self.right = right;
        self
    }
}
