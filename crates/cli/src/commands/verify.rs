//! `huntsman verify`: checks whether a directory that a command wrote is intact.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use huntsman::detect::near::DiskIndex;
use huntsman::middleware::StoredCheck;
use huntsman::output::verify::Verdict;
use huntsman::sweep::{CheckCache, whole_articles};

use crate::directory::inspecting;
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::render::{Style, escape, escape_json};

/// Flags of `verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Directory to check.
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,

    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &VerifyArgs) -> Outcome {
    print(&verified(&args.dir)?, args.json)
}

/// Prints a verdict; the exit code says whether everything is intact.
pub(super) fn print(verdict: &Verdict, as_json: bool) -> Outcome {
    let text = match as_json {
        true => format!("{}\n", escape_json(&verdict.json().to_string())),
        false => verdict.text(Style::stdout()),
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(if verdict.is_whole() { Exit::Done } else { Exit::Crawl })
}

/// Checks a directory of any kind.
fn verified(dir: &Path) -> Outcome<Verdict> {
    if !dir.is_dir() {
        let what = if dir.exists() { "it is no directory" } else { "there is no such directory" };
        return Err(Failure::usage(format!("{}: {what}", escape(&dir.to_string_lossy()))));
    }
    // If the directory is the state in an output directory, the output directory is checked.
    let above = dir.join("..");
    for out in [dir, above.as_path()] {
        if (out == dir || dir.join(output::STATUS_NAME).is_file())
            && let Some(status) = output::held(out).map_err(inspecting)?
        {
            return Ok(Verdict::of_output(out, &status, &whole_articles)?);
        }
    }
    let has = |name: &str| dir.join(name).exists();
    if has("format.json") {
        return Ok(Verdict::of_stored(dir, &StoredCheck::of(dir, &[CheckCache::STORED])?));
    }
    if has("index.txt") || has("log-0000000001") {
        let check = DiskIndex::verify(dir).map_err(|error| crate::dedup::failure(&error))?;
        return Ok(Verdict::of_near_index(dir, &check));
    }
    if has("huntsman-text-index.json") {
        return text_index(dir);
    }
    Err(Failure::usage(format!(
        "{}: it is no directory that huntsman writes: neither the output of a crawl, a sweep or a demo, nor a job, an index or a cache",
        escape(&dir.to_string_lossy())
    )))
}

#[cfg(feature = "text-index")]
fn text_index(dir: &Path) -> Outcome<Verdict> {
    use huntsman::output::verify::Problem;

    let check = huntsman::sweep::TextIndex::verify(dir).map_err(crate::text_index::failure)?;
    let mut verdict = Verdict::new("text index", dir);
    verdict.count("pages", check.pages);
    verdict.count("pages that wait to be committed", check.waiting);
    if check.is_unfinished {
        verdict.note("it was not made to its end; the next `huntsman crawl --index` makes it");
    }
    for (file, what) in check.damage {
        let help = "put the file back from a copy, or crawl into another index".to_owned();
        verdict.problem(Problem { file, at: None, what, help });
    }
    Ok(verdict)
}

#[cfg(not(feature = "text-index"))]
fn text_index(_: &Path) -> Outcome<Verdict> {
    Err(Failure::usage("this build has no text index; build it with the feature text-index"))
}
