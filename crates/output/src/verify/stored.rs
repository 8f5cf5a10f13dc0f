//! Directories with a store in them: jobs, HTTP caches, known pages, results of checks.

use std::path::Path;

use huntsman_middleware::{StoredCheck, StoredKind};

use super::{Problem, Verdict};

impl Verdict {
    /// The result of checking all entries of a store.
    pub fn of_stored(path: &Path, check: &StoredCheck) -> Self {
        let (kind, records, help) = match check.kind {
            StoredKind::Job => {
                ("job of a crawl", None, "restore it from a copy, or start the crawl anew with --fresh")
            }
            StoredKind::HttpCache => (
                "HTTP cache",
                Some("answers"),
                "remove the directory: a crawl fetches and stores answers again",
            ),
            StoredKind::KnownPages => (
                "known pages of earlier crawls",
                Some("pages"),
                "remove the directory: a crawl fetches all pages again",
            ),
            StoredKind::CheckResults => {
                ("results of checks", Some("results"), "remove the directory: checks are done again")
            }
            _ => ("store without an entry", None, "remove the directory"),
        };
        let mut verdict = Self::new(kind, path);
        if let Some(name) = records {
            verdict.count(name, check.records);
        }
        verdict.count("entries", check.entries);
        verdict.count("bytes", check.bytes);
        for what in &check.damage {
            verdict.problem(Problem {
                file: path.to_owned(),
                at: None,
                what: what.clone(),
                help: help.to_owned(),
            });
        }
        verdict
    }
}
