//! The findings of a site in their final order, sorted on disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use huntsman_crawler::{Error, Result};

use crate::choices::CodeSeverity;
use crate::code::Severity;
use crate::finding::Finding;
use huntsman_disk::{Entry, Fields, Scratch, Sorted, Sorter, put_bytes, put_number};

/// How bad each code is that is judged. Findings of others are dropped.
pub(crate) type Severities = BTreeMap<String, CodeSeverity>;

/// Sorts findings by severity, code, URL, target and group.
#[derive(Debug)]
pub(crate) struct FindingSorter {
    sorter: Sorter<Told>,
    severities: Arc<Severities>,
    failure: Option<Error>,
}

/// A finding to be sorted.
#[derive(Debug)]
struct Told {
    /// Bytes in the order of issues. Equal ones are about the same.
    key: Vec<u8>,
    /// The finding as JSON.
    finding: Vec<u8>,
}

impl PartialEq for Told {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Told {}

impl PartialOrd for Told {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Told {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl Entry for Told {
    fn heap_size(&self) -> usize {
        self.key.len() + self.finding.len() + 32
    }

    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        let before = before.map_or(&[][..], |before| &before.key);
        let common = before.iter().zip(&self.key).take_while(|(a, b)| a == b).count();
        put_number(common as u64, out);
        put_bytes(&self.key[common..], out);
        put_bytes(&self.finding, out);
    }

    fn read(before: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
        let common = usize::try_from(from.number()?).ok()?;
        let mut key = before.map_or(&[][..], |before| &before.key).get(..common)?.to_vec();
        key.extend_from_slice(from.bytes()?);
        Some(Self { key, finding: from.bytes()?.to_vec() })
    }
}

impl FindingSorter {
    /// A sorter that keeps so many bytes of findings in memory.
    pub(crate) fn new(scratch: &Scratch, limit: usize, severities: Arc<Severities>) -> Self {
        Self { sorter: Sorter::new(scratch, limit), severities, failure: None }
    }

    /// Adds a finding. An error is told by [`finish`](Self::finish).
    pub(crate) fn add(&mut self, finding: &Finding) {
        let Some(severity) = self.severities.get(&finding.code) else { return };
        let told = serde_json::to_vec(finding).map_err(Error::from);
        let told = told.map(|json| Told { key: key(severity.of(finding), finding), finding: json });
        if let Err(error) = told.and_then(|told| Ok(self.sorter.push(told)?)) {
            self.failure.get_or_insert(error);
        }
    }

    /// All findings in order; those about the same are one.
    pub(crate) fn finish(self) -> Result<SortedFindings> {
        match self.failure {
            Some(error) => Err(error),
            None => Ok(SortedFindings { sorted: self.sorter.finish()?, ahead: None }),
        }
    }
}

/// A text that is not there comes before an empty one.
fn key(severity: Severity, finding: &Finding) -> Vec<u8> {
    let mut key = vec![severity as u8];
    for text in [Some(&finding.code), Some(&finding.url), finding.target.as_ref(), finding.group.as_ref()] {
        match text {
            None => key.push(0),
            Some(text) => {
                key.push(1);
                key.extend(text.bytes().filter(|byte| *byte != 0));
                key.push(0);
            }
        }
    }
    key
}

/// Findings in order.
#[derive(Debug)]
pub(crate) struct SortedFindings {
    sorted: Sorted<Told>,
    ahead: Option<Told>,
}

impl SortedFindings {
    fn next_finding(&mut self) -> Result<Option<Finding>> {
        let first = match self.ahead.take() {
            Some(told) => Some(told),
            None => self.sorted.next().transpose()?,
        };
        let Some(first) = first else { return Ok(None) };
        let mut finding: Finding = serde_json::from_slice(&first.finding)?;
        for told in self.sorted.by_ref() {
            let told = told?;
            if told.key != first.key {
                self.ahead = Some(told);
                break;
            }
            finding.merge(serde_json::from_slice(&told.finding)?);
        }
        Ok(Some(finding))
    }
}

impl Iterator for SortedFindings {
    type Item = Result<Finding>;

    fn next(&mut self) -> Option<Result<Finding>> {
        self.next_finding().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Place;

    #[test]
    fn findings_about_the_same_become_one_and_all_stand_in_order() {
        let severities = [("a", Severity::Warning), ("b", Severity::Error)];
        let of_code = |severity| CodeSeverity { severity, is_set: false };
        let severities: Severities =
            severities.map(|(code, severity)| (code.to_owned(), of_code(severity))).into();
        for limit in [1 << 20, 600] {
            let mut sorter = FindingSorter::new(&Scratch::temporary(), limit, Arc::new(severities.clone()));
            let place = |line| Place { line, ..Place::default() };
            for line in 0..250 {
                sorter.add(&Finding::of("a").url("https://x.example/2").at(place(line)).value(line));
                sorter.add(&Finding::of("b").url("https://x.example/9").target("t"));
                sorter.add(&Finding::of("not-judged").url("https://x.example/1"));
            }
            sorter.add(&Finding::of("b").url("https://x.example/9"));
            sorter.add(&Finding::of("b").url("https://x.example/9").target(""));
            sorter.add(&Finding::of("a").url("https://x.example/10"));
            let found: Vec<Finding> = sorter.finish().unwrap().collect::<Result<_>>().unwrap();
            let about: Vec<(&str, &str, Option<&str>)> = found
                .iter()
                .map(|one| (one.code.as_str(), one.url.as_str(), one.target.as_deref()))
                .collect();
            let (nine, ten, two) = ("https://x.example/9", "https://x.example/10", "https://x.example/2");
            let expected = [
                ("b", nine, None),
                ("b", nine, Some("")),
                ("b", nine, Some("t")),
                ("a", ten, None),
                ("a", two, None),
            ];
            assert_eq!(about, expected);
            let last = &found[4];
            assert_eq!((last.places, last.at.len(), last.at[99].line), (250, 100, 99));
            assert_eq!(last.value, 0, "the first one says what was found");
        }
    }
}
