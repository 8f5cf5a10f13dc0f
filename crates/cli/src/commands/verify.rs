//! `huntsman verify`: checks whether a directory that a command wrote is intact.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use huntsman::detect::near::DiskIndex;
use huntsman::middleware::StoredCheck;
use huntsman::sweep::CheckCache;

use crate::exit::{Failure, Outcome};
use crate::output;
use crate::render::escape;
use crate::verify::Verdict;

/// Flags of `verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The directory.
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,

    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &VerifyArgs) -> Outcome {
    look(&args.dir)?.print(args.json)
}

/// Checks a directory of any kind.
fn look(dir: &Path) -> Outcome<Verdict> {
    if !dir.is_dir() {
        let what = if dir.exists() { "it is no directory" } else { "there is no such directory" };
        return Err(Failure::usage(format!("{}: {what}", escape(&dir.to_string_lossy()))));
    }
    // If the directory is the state in an output directory, the output directory is checked.
    let above = dir.join("..");
    for out in [dir, above.as_path()] {
        if (out == dir || dir.join(output::STATUS_NAME).is_file())
            && let Some(status) = output::held(out)?
        {
            return Verdict::of_output(out, &status);
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
    let check = huntsman::sweep::TextIndex::verify(dir).map_err(crate::text_index::failure)?;
    Ok(Verdict::of_text_index(dir, check))
}

#[cfg(not(feature = "text-index"))]
fn text_index(_: &Path) -> Outcome<Verdict> {
    Err(Failure::usage("this build has no text index; build it with the feature text-index"))
}
