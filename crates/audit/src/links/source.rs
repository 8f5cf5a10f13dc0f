//! The sources of a check: files, folders, standard input, and URLs of pages.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use huntsman_crawler::{Error, Result, parse_web_url};
use serde::Serialize;
use url::Url;

use super::extract::{self, Format};
use super::options::LinkOptions;
use super::reference::{Base, Reference};

/// Largest size of a file that is read.
const MAX_FILE: u64 = 64 << 20;
/// Folders inside of folders.
const MAX_DEPTH: usize = 64;

/// A source that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnreadSource {
    /// The file or the URL.
    pub source: String,
    /// Why.
    pub reason: String,
}

/// Sources by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) pages: Vec<Url>,
    pub(crate) stdin: bool,
}

impl Sources {
    /// Finds out what names mean: `-` is standard input, a name with `http:` or `https:` a page, everything else a file, or a folder with all its
    /// files that may have links.
    ///
    /// # Errors
    /// A name is no file and no URL.
    pub(crate) fn of<S: AsRef<str>>(names: &[S]) -> Result<Self> {
        let mut sources = Self::default();
        for name in names.iter().map(AsRef::as_ref) {
            let path = Path::new(name);
            if name == "-" {
                sources.stdin = true;
            } else if name.starts_with("http://") || name.starts_with("https://") {
                sources.pages.push(parse_web_url(name)?);
            } else if path.is_dir() {
                sources.add_folder(path, 0)?;
            } else {
                fs::metadata(path).map_err(|error| Error::usage(format!("{name}: {error}")))?;
                sources.files.push(path.to_owned());
            }
        }
        sources.files.dedup();
        Ok(sources)
    }

    /// Adds the files of a folder that may have links, in the order of their names. Hidden names and symbolic links are left out.
    fn add_folder(&mut self, folder: &Path, depth: usize) -> Result<()> {
        let failed = |error: io::Error| Error::usage(format!("{}: {error}", folder.display()));
        let mut entries =
            fs::read_dir(folder).map_err(failed)?.collect::<io::Result<Vec<_>>>().map_err(failed)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().map_err(failed)?;
            if name.starts_with('.') || name == "node_modules" {
                continue;
            }
            if kind.is_dir() && depth < MAX_DEPTH {
                self.add_folder(&entry.path(), depth + 1)?;
            } else if kind.is_file() && Format::of_name(&name).is_some() {
                self.files.push(entry.path());
            }
        }
        Ok(())
    }

    /// The references of the files and of standard input, and the files that could not be read.
    ///
    /// # Errors
    /// Standard input cannot be read.
    pub(crate) fn references(&self, options: &LinkOptions) -> Result<(Vec<Reference>, Vec<UnreadSource>)> {
        let (mut references, mut unread) = (Vec::new(), Vec::new());
        for file in &self.files {
            let name = file.to_string_lossy();
            match read(file) {
                Ok(text) => {
                    let format = Format::of_name(&name).unwrap_or_else(|| guess(&text));
                    let base = base_of(file, options);
                    references.extend(extract::references(&name, &text, format, base));
                }
                Err(error) => {
                    unread.push(UnreadSource { source: name.into_owned(), reason: error.to_string() })
                }
            }
        }
        if self.stdin {
            let mut bytes = Vec::new();
            io::stdin()
                .lock()
                .take(MAX_FILE)
                .read_to_end(&mut bytes)
                .map_err(|error| Error::usage(format!("standard input: {error}")))?;
            let text = String::from_utf8_lossy(&bytes);
            let base = base_of(Path::new("-"), options);
            references.extend(extract::references("-", &text, guess(&text), base));
        }
        Ok((references, unread))
    }
}

fn base_of(file: &Path, options: &LinkOptions) -> Base {
    match &options.base {
        Some(url) => Base::Url(url.clone()),
        None => Base::File { file: file.to_owned(), root: options.root.clone() },
    }
}

/// The format of a text without a name that tells it.
fn guess(text: &str) -> Format {
    let begin: String = text.trim_start().chars().take(14).collect::<String>().to_ascii_lowercase();
    match begin.starts_with("<!doctype html") || begin.starts_with("<html") {
        true => Format::Html,
        false => Format::Markdown,
    }
}

/// The text of a file; bytes that are no UTF-8 are replaced.
pub(crate) fn read(file: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    fs::File::open(file)?.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(io::Error::other(format!("larger than {} MiB", MAX_FILE >> 20)));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
