//! Text indexes of crawled pages.

use std::path::Path;

use huntsman::sweep::TextIndexCheck;

use super::{Problem, Verdict};

impl Verdict {
    /// The result of checking a text index.
    pub(crate) fn of_text_index(path: &Path, check: TextIndexCheck) -> Self {
        let mut verdict = Self::new("text index", path);
        verdict.count("pages", check.pages);
        verdict.count("pages that wait to be committed", check.waiting);
        if check.is_unfinished {
            verdict.note("it was not made to its end; the next `huntsman crawl --index` makes it");
        }
        for (file, what) in check.damage {
            verdict.problem(Problem {
                file,
                at: None,
                what,
                help: "put the file back from a copy, or crawl into another index".to_owned(),
            });
        }
        verdict
    }
}
