//! Directories with a store in them: jobs, HTTP caches, known pages, results of checks.

use std::path::Path;

use huntsman_middleware::StoredCheck;

use super::{Problem, Verdict};

impl Verdict {
    /// The result of checking all entries of a store.
    pub fn of_stored(path: &Path, check: &StoredCheck) -> Self {
        let kind = check.kind;
        let mut verdict = Self::new(kind.name, path);
        if let Some(name) = kind.records {
            verdict.count(name, check.records);
        }
        verdict.count("entries", check.entries);
        verdict.count("bytes", check.bytes);
        for what in &check.damage {
            verdict.problem(Problem {
                file: path.to_owned(),
                at: None,
                what: what.clone(),
                help: kind.help.to_owned(),
            });
        }
        verdict
    }
}
