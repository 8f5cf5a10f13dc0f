//! Files that say which URLs of a site show the same.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use huntsman::detect::avoid::evaluation::{Truth, TruthError};
use huntsman_cli::exit::{Failure, Outcome};
use huntsman_cli::render::escape;

/// Reads a truth; `.gz` is unpacked.
pub(super) fn read(path: &Path) -> Outcome<Truth> {
    let shown = escape(&path.to_string_lossy()).into_owned();
    let file = File::open(path).map_err(|error| Failure::usage(format!("--truth {shown}: {error}")))?;
    let is_packed = path.extension().is_some_and(|extension| extension == "gz");
    let text: Box<dyn BufRead> = match is_packed {
        true => Box::new(BufReader::new(MultiGzDecoder::new(file))),
        false => Box::new(BufReader::new(file)),
    };
    Truth::read(text).map_err(|error| match error {
        TruthError::Io(error) => Failure::usage(format!("--truth {shown}: {error}")),
        wrong => Failure::usage(format!("--truth {shown}: {wrong}")),
    })
}
