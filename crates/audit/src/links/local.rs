//! Links to files.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::answer::{LinkOutcome, LinkState, is_there};
use super::extract::{self, Format};
use super::source::read;

/// Looks up files, and remembers their anchors.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Anchors of files; `None` for files whose fragments mean something else, such as the page of a PDF file.
    anchors: HashMap<PathBuf, Option<Vec<String>>>,
}

impl Files {
    /// The result of a link to a file. A folder is there by itself; its fragments are those of its `index.html` or `README.md`.
    pub(crate) fn look_up(&mut self, path: &Path, fragment: Option<&str>) -> LinkOutcome {
        let file = match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                ["index.html", "README.md"].iter().map(|name| path.join(name)).find(|file| file.is_file())
            }
            Ok(_) => Some(path.to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return LinkOutcome::because(LinkState::Broken, "there is no such file");
            }
            Err(error) => return LinkOutcome::because(LinkState::Unverified, error.to_string()),
        };
        let (Some(file), Some(fragment)) = (file, fragment) else { return LinkOutcome::of(LinkState::Good) };
        let anchors = self.anchors.entry(file).or_insert_with_key(|file| {
            let format =
                Format::of_name(&file.to_string_lossy()).filter(|format| *format != Format::Plain)?;
            Some(extract::anchors(&read(file).ok()?, format))
        });
        match anchors {
            Some(anchors) if !is_there(anchors, fragment) => {
                LinkOutcome::because(LinkState::Broken, format!("the file has nothing named #{fragment}"))
            }
            _ => LinkOutcome::of(LinkState::Good),
        }
    }
}
