//! Faults that may be those of a whole host.

use std::collections::{BTreeMap, HashMap};

use crate::finding::{Finding, Place};
use crate::site::{authority, front_of};

/// How many answers of each host could have a fault, and how many have it. A fault of all of them is one fault of the host.
#[derive(Debug, Default)]
pub(crate) struct HostCounts(HashMap<String, Host>);

#[derive(Debug, Default)]
struct Host {
    answers: u64,
    faults: BTreeMap<&'static str, u64>,
}

impl HostCounts {
    fn host(&mut self, url: &str) -> &mut Host {
        let name = authority(url);
        if !self.0.contains_key(name) {
            self.0.insert(name.to_owned(), Host::default());
        }
        self.0.get_mut(name).expect("it was added above")
    }

    /// Counts an answer that could have a fault.
    pub(crate) fn count(&mut self, url: &str) {
        self.host(url).answers += 1;
    }

    /// Counts an answer that has it.
    pub(crate) fn count_fault(&mut self, url: &str, code: &'static str) {
        *self.host(url).faults.entry(code).or_default() += 1;
    }

    /// Whether any answer has a fault.
    pub(crate) fn has_faults(&self) -> bool {
        self.0.values().any(|host| !host.faults.is_empty())
    }

    /// The finding about an answer with a fault, after all were counted. Those of one host are one finding if all of its answers have it.
    pub(crate) fn told(&self, url: &str, code: &str) -> Finding {
        let name = authority(url);
        let answers = self.0.get(name).map_or(0, |host| host.answers);
        let faulty = self.0.get(name).and_then(|host| host.faults.get(code)).copied().unwrap_or(0);
        if answers < 2 || faulty < answers {
            return Finding::of(code).url(url);
        }
        let finding = Finding::of(code).url(&front_of(url)).group(name);
        finding
            .value(format!("all {answers} of the host"))
            .at(Place { page: Some(url.to_owned()), ..Place::default() })
    }
}
