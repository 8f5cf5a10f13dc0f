//! Indexes of near-duplicates on disk.

use std::path::Path;

use huntsman_detect::near::IndexCheck;

use super::{Problem, Verdict};
use crate::render::counted;

impl Verdict {
    /// The result of checking an index of near-duplicates.
    pub fn of_near_index(path: &Path, check: &IndexCheck) -> Self {
        let help = || format!("`huntsman dedup repair --index {}` keeps all that is whole", path.display());
        let mut verdict = Self::new("index of near-duplicates", path);
        verdict.count("documents", check.documents);
        verdict.count("writes", check.frames);
        verdict.count("files", check.files);
        for missing in &check.missing {
            verdict.problem(Problem { file: path.to_owned(), at: None, what: missing.clone(), help: help() });
        }
        for damage in &check.damage {
            let bytes = counted(damage.bytes, "byte");
            if damage.is_torn {
                verdict.note(format!(
                    "{bytes} at the end of {} are a write that was cut off; the next command drops them",
                    damage.file.display()
                ));
                continue;
            }
            verdict.problem(Problem {
                file: damage.file.clone(),
                at: Some(damage.at),
                what: format!("{bytes} are missing or not what was written"),
                help: help(),
            });
        }
        verdict
    }
}
