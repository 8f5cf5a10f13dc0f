//! Findings: what a rule tells of a page or a site.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use crate::code::Severity;
use crate::measure::Measure;
use crate::sorted::FindingSorter;

/// Places of one finding that are kept; further ones are only counted.
const MAX_PLACES: usize = 100;

/// A place in the source of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Place {
    /// Line in the decoded source, from 1; 0, and left out of files, if the place is the page as a whole.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub line: u32,
    /// Column in characters, from 1; 0 as the line.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub column: u32,
    /// The page, if it is not that of the finding: for links to a broken URL, the page with the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// The text of the link, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The landmark around it: `nav`, `header`, `footer`, `main` or `aside`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The source there, at most 160 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// One fault, with the places where it shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finding {
    /// The name of its code.
    pub code: String,
    /// The URL of the page to mend; empty for the page that is judged.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// The other URL that it is about, such as the target of a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// What several findings have in common, such as the title that two pages share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What was found.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub value: Value,
    /// What would be right, or the limit that was passed.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub limit: Value,
    /// How bad it is, if it is less bad than its code says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// The places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<Place>,
    /// Number of all places.
    #[serde(default)]
    pub places: usize,
}

impl Finding {
    /// A finding with this code.
    pub fn of(code: &str) -> Self {
        Self { code: code.to_owned(), ..Self::default() }
    }

    /// Names the page to mend.
    pub fn url(mut self, url: &str) -> Self {
        url.clone_into(&mut self.url);
        self
    }

    /// Names the other URL that it is about.
    pub fn target(mut self, target: &str) -> Self {
        self.target = Some(target.to_owned());
        self
    }

    /// Says what several findings have in common.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Says what was found.
    pub fn value(mut self, value: impl Into<Value>) -> Self {
        self.value = value.into();
        self
    }

    /// Says what would be right.
    pub fn limit(mut self, limit: impl Into<Value>) -> Self {
        self.limit = limit.into();
        self
    }

    /// Says that it is less bad than its code says. If several findings about the same become one issue, the worst of them counts, and a setting
    /// for the code counts for all of its findings.
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = Some(severity);
        self
    }

    /// Adds a place.
    pub fn at(mut self, place: Place) -> Self {
        self.add_place(place);
        self
    }

    /// Adds a place, which is made only if it is kept.
    pub(crate) fn at_made(mut self, place: impl FnOnce() -> Place) -> Self {
        self.places += 1;
        if self.at.len() < MAX_PLACES {
            self.at.push(place());
        }
        self
    }

    fn add_place(&mut self, place: Place) {
        self.places += 1;
        if self.at.len() < MAX_PLACES {
            self.at.push(place);
        }
    }

    /// Adds the places of another finding about the same.
    pub(crate) fn merge(&mut self, other: Self) {
        let not_kept = other.places.saturating_sub(other.at.len());
        // One without a severity of its own is as bad as the code says.
        self.severity = self.severity.zip(other.severity).map(|(one, another)| one.min(another));
        other.at.into_iter().for_each(|place| self.add_place(place));
        self.places += not_kept;
    }

    /// What it is about, as text: equal for findings that are one issue.
    pub(crate) fn key(&self) -> String {
        issue_key(&self.code, &self.url, self.target.as_deref(), self.group.as_deref())
    }
}

/// What an issue is about, as text.
pub(crate) fn issue_key(code: &str, url: &str, target: Option<&str>, group: Option<&str>) -> String {
    [code, url, target.unwrap_or_default(), group.unwrap_or_default()].join("\0")
}

/// The findings of a rule. Several of one code about the same page, target and group become one with several places.
#[derive(Debug, Default)]
pub struct Findings {
    found: Vec<Finding>,
    /// The places of findings in the list, by hashes of what they are about.
    known: HashMap<u128, usize>,
    measures: Vec<Measure>,
    /// Where the findings of a site go, which may be more than fit into memory.
    sorter: Option<Box<FindingSorter>>,
}

impl Findings {
    /// Findings of a whole site.
    pub(crate) fn sorted(sorter: FindingSorter) -> Self {
        Self { sorter: Some(Box::new(sorter)), ..Self::default() }
    }

    /// Adds a finding.
    pub fn add(&mut self, finding: Finding) {
        if let Some(sorter) = &mut self.sorter {
            return sorter.add(&finding);
        }
        match self.known.entry(xxh3_128(finding.key().as_bytes())) {
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(self.found.len());
                self.found.push(finding);
            }
            std::collections::hash_map::Entry::Occupied(entry) => self.found[*entry.get()].merge(finding),
        }
    }

    /// The findings about a page, in the order in which they were added. Those about a site are sorted on disk, and not among them.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.found.iter()
    }

    /// Notes a number of the page that a limit of the settings is compared with after the crawl.
    pub(crate) fn measure(&mut self, measure: Measure) {
        self.measures.push(measure);
    }

    pub(crate) fn into_parts(self) -> (Vec<Finding>, Vec<Measure>) {
        (self.found, self.measures)
    }

    /// What sorts the findings of a site.
    pub(crate) fn into_sorter(self) -> Option<FindingSorter> {
        self.sorter.map(|sorter| *sorter)
    }
}
