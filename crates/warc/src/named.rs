//! The files that a user names: files, folders and patterns.

use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

/// Endings of the files that are taken of folders; texts of pages (WET) are WARC files, too.
const ENDINGS: [&str; 4] = [".warc", ".warc.gz", ".warc.wet", ".warc.wet.gz"];

/// A name that leads to no file, and why.
#[derive(Debug)]
pub struct NameError {
    /// The name as it was given.
    pub name: PathBuf,
    what: What,
}

#[derive(Debug)]
enum What {
    Io(io::Error),
    Text(String),
}

impl NameError {
    /// What is wrong, without the name.
    pub fn reason(&self) -> String {
        match &self.what {
            What::Io(error) => error.to_string(),
            What::Text(text) => text.clone(),
        }
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name.display(), self.reason())
    }
}

impl std::error::Error for NameError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.what {
            What::Io(error) => Some(error),
            What::Text(_) => None,
        }
    }
}

/// Whether a file of this name is a WARC file: `.warc`, `.warc.gz`, and the texts `.warc.wet` and `.warc.wet.gz`.
pub fn is_archive_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// The archives that are named, in the order of the names and of their paths. A folder stands for the archives in it and below, a pattern
/// (`crawl-*.warc.gz`, `**/*.warc`, `[ab].warc`) for the files that it matches; a file that exists is taken whatever its name is.
///
/// # Errors
/// A name leads to no file.
pub fn named_files<P: AsRef<Path>>(named: &[P]) -> Result<Vec<PathBuf>, NameError> {
    let mut files = Vec::new();
    for name in named {
        let name = name.as_ref();
        let before = files.len();
        let error = |what| NameError { name: name.to_owned(), what };
        if name.is_dir() {
            walk(name, &mut files, &|path: &Path| is_archive_name(&path.to_string_lossy()))
                .map_err(|cause| error(What::Io(cause)))?;
            if files.len() == before {
                let what = format!("no file in it ends with {}", ENDINGS.join(", "));
                return Err(error(What::Text(what)));
            }
        } else if let Some((folder, pattern)) = pattern_of(name).map_err(|what| error(What::Text(what)))? {
            walk(&folder, &mut files, &|path: &Path| pattern.is_match(path))
                .map_err(|cause| error(What::Io(cause)))?;
            if files.len() == before {
                return Err(error(What::Text("no file matches the pattern".to_owned())));
            }
        } else {
            std::fs::metadata(name).map_err(|cause| error(What::Io(cause)))?;
            files.push(name.to_owned());
        }
    }
    Ok(files)
}

/// The folder below which a pattern can match, and the pattern; `None` if the name is none, or if there is a file of this name.
fn pattern_of(name: &Path) -> Result<Option<(PathBuf, GlobMatcher)>, String> {
    let is_pattern = |part: &str| part.contains(['*', '?', '[', '{']);
    let Some(text) = name.to_str().filter(|text| is_pattern(text) && !name.exists()) else { return Ok(None) };
    let fixed = name.components().take_while(|part| !part.as_os_str().to_str().is_some_and(is_pattern));
    let folder: PathBuf = fixed.filter(|part| *part != Component::CurDir).collect();
    let text = text.strip_prefix("./").unwrap_or(text);
    let glob = GlobBuilder::new(text).literal_separator(true).build();
    let glob = glob.map_err(|error| format!("the pattern is not valid: {}", error.kind()))?;
    Ok(Some((folder, glob.compile_matcher())))
}

/// Adds the wanted files of a folder and of the folders in it, by name. Links to folders are not followed, because they may form cycles.
fn walk(folder: &Path, files: &mut Vec<PathBuf>, is_wanted: &dyn Fn(&Path) -> bool) -> io::Result<()> {
    let at = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut entries = std::fs::read_dir(at)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            walk(&path, files, is_wanted)?;
        } else if is_wanted(&path) {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_folders_and_patterns_name_archives() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("deep/er")).unwrap();
        let names = [
            "a1.warc.gz",
            "a2.warc",
            "b.warc.wet.gz",
            "c.warc.gz.open",
            "odd[1].warc",
            "deep/er/d.WARC.GZ",
            "notes.txt",
        ];
        for name in names {
            std::fs::write(root.join(name), "").unwrap();
        }
        let found = |name: &str| -> Result<Vec<String>, String> {
            let files = named_files(&[root.join(name)]).map_err(|error| error.to_string())?;
            let name = |path: PathBuf| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            Ok(files.into_iter().map(name).collect())
        };
        let all = ["a1.warc.gz", "a2.warc", "b.warc.wet.gz", "deep/er/d.WARC.GZ", "odd[1].warc"];
        assert_eq!(found("").unwrap(), all);
        assert_eq!(found("a*").unwrap(), ["a1.warc.gz", "a2.warc"]);
        assert_eq!(found("a[2-9].warc").unwrap(), ["a2.warc"]);
        assert_eq!(found("**/*.WARC.GZ").unwrap(), ["deep/er/d.WARC.GZ"]);
        assert_eq!(found("notes.txt").unwrap(), ["notes.txt"], "a named file is believed");
        assert_eq!(found("odd[1].warc").unwrap(), ["odd[1].warc"], "a file of this name exists");
        assert!(found("x*").unwrap_err().ends_with("x*: no file matches the pattern"));
        assert!(found("a[").unwrap_err().contains("not valid"));
        assert!(found("missing.warc").unwrap_err().contains("missing.warc: "));
    }
}
