//! The archives that a user names: files, folders, patterns, WACZ files, and those of buckets.

use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
#[cfg(feature = "s3")]
use huntsman_bucket::{Found, Listing};

use crate::archive::Archive;
use crate::wacz::parts::parts;

/// Endings of the files that are taken of folders; texts of pages (WET) are WARC files, too.
const ENDINGS: [&str; 4] = [".warc", ".warc.gz", ".warc.wet", ".warc.wet.gz"];

/// A name that leads to no archive, and why.
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
    #[cfg(feature = "s3")]
    Server(String),
}

#[cfg(feature = "s3")]
impl From<huntsman_bucket::FindError> for What {
    fn from(error: huntsman_bucket::FindError) -> Self {
        if error.is_of_the_server { Self::Server(error.message) } else { Self::Text(error.message) }
    }
}

impl NameError {
    /// What is wrong, without the name.
    pub fn reason(&self) -> String {
        match &self.what {
            What::Io(error) => error.to_string(),
            What::Text(text) => text.clone(),
            #[cfg(feature = "s3")]
            What::Server(text) => text.clone(),
        }
    }

    /// Whether the server of a bucket does not answer, rather than that nothing is there.
    pub fn is_of_the_server(&self) -> bool {
        match &self.what {
            What::Io(_) | What::Text(_) => false,
            #[cfg(feature = "s3")]
            What::Server(_) => true,
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
            _ => None,
        }
    }
}

/// Whether a file of this name is an archive: `.warc`, `.warc.gz`, the texts `.warc.wet` and `.warc.wet.gz`, or `.wacz`.
pub fn is_archive_name(name: &str) -> bool {
    is_warc_name(name) || is_wacz_name(name)
}

pub(crate) fn is_warc_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Whether a file of this name is a WACZ file, which has several archives.
pub fn is_wacz_name(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".wacz")
}

/// Whether a file of this name is an index: `.cdxj`, `.cdx`, also with `.gz`.
pub fn is_index_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.ends_with(".cdxj") || name.ends_with(".cdx")
}

/// The archives that a user names, in the order of the names and of their paths, and their indexes.
#[derive(Debug, Default)]
pub struct Archives {
    files: Vec<Archive>,
    indexes: Vec<Archive>,
    /// Where the files of indexes may be, besides those that are named.
    bases: Vec<Base>,
}

#[derive(Debug)]
enum Base {
    Folder(PathBuf),
    #[cfg(feature = "s3")]
    Prefix(Listing),
}

impl Archives {
    /// Finds what is named. A folder stands for the WARC files in it and below, a pattern (`crawl-*.warc.gz`, `**/*.wacz`, `[ab].warc`) for the files
    /// that it matches; a file that exists is taken whatever its name is. A WACZ file (`.wacz`) stands for the archives in it and their index.
    ///
    /// `s3://BUCKET/KEY` is an object, a pattern or a prefix, if the crate has the feature `s3`. Beside an index, a prefix stands only for the files
    /// that the index names, and nothing is listed.
    ///
    /// # Errors
    /// A name leads to no archive, or a WACZ file has no directory.
    pub fn named<P: AsRef<Path>>(named: &[P]) -> Result<Self, NameError> {
        let mut archives = Self::default();
        for name in named {
            let name = name.as_ref();
            archives.add_named(name).map_err(|what| NameError { name: name.to_owned(), what })?;
        }
        #[cfg(feature = "s3")]
        archives.list_prefixes()?;
        Ok(archives)
    }

    /// The WARC files, also those in WACZ files.
    pub fn files(&self) -> &[Archive] {
        &self.files
    }

    /// The indexes, also those in WACZ files.
    pub fn indexes(&self) -> &[Archive] {
        &self.indexes
    }

    /// The WARC files of which no index tells what they have.
    pub(crate) fn without_index(&self) -> impl Iterator<Item = &Archive> {
        let whole_of = |archive: &Archive| archive.whole().map(|whole| whole.name().to_owned());
        let covered: Vec<Option<String>> = self.indexes.iter().map(whole_of).collect();
        self.files.iter().filter(move |file| !covered.contains(&whole_of(file)))
    }

    /// The file of an index: in the same WACZ file; else beside the index, in the folder `archive` beside its own, among the files that are named, or
    /// below a folder that is named.
    pub fn file_of(&self, index: &Archive, name: &str) -> Option<Archive> {
        let last = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
        if let Some(whole) = index.whole() {
            let of_whole = |file: &&Archive| file.whole().is_some_and(|of| of.name() == whole.name());
            return self.files.iter().filter(of_whole).find(|file| file.file_name() == last(name)).cloned();
        }
        if let Some(folder) = index.folder() {
            let beside = [folder.join(name), folder.join("../archive").join(name)];
            if let Some(path) = beside.into_iter().find(|path| path.is_file()) {
                return Some(Archive::file(path));
            }
        }
        #[cfg(feature = "s3")]
        if let Some(archive) = beside_object(index, name) {
            return Some(archive);
        }
        let is_named = |file: &&Archive| file.whole().is_none() && file.file_name() == last(name);
        self.files
            .iter()
            .find(is_named)
            .cloned()
            .or_else(|| self.bases.iter().find_map(|base| base.file(name)))
    }

    fn add_named(&mut self, name: &Path) -> Result<(), What> {
        if let Some(address) = name.to_str().filter(|name| name.starts_with("s3://")) {
            return self.add_address(address);
        }
        if name.is_dir() {
            let mut files = Vec::new();
            walk(name, &mut files, &|path: &Path| is_warc_name(&path.to_string_lossy())).map_err(What::Io)?;
            self.bases.push(Base::Folder(name.to_owned()));
            if files.is_empty() {
                return Err(What::Text(format!("no file in it ends with {}", ENDINGS.join(", "))));
            }
            self.files.extend(files.into_iter().map(Archive::file));
        } else if let Some((folder, pattern)) = pattern_of(name).map_err(What::Text)? {
            let mut files = Vec::new();
            walk(&folder, &mut files, &|path: &Path| pattern.is_match(path)).map_err(What::Io)?;
            if files.is_empty() {
                return Err(What::Text("no file matches the pattern".to_owned()));
            }
            files.into_iter().try_for_each(|path| self.add(Archive::file(path)))?;
        } else {
            std::fs::metadata(name).map_err(What::Io)?;
            self.add(Archive::file(name))?;
        }
        Ok(())
    }

    /// Adds a file by what its name says that it is.
    fn add(&mut self, archive: Archive) -> Result<(), What> {
        if is_index_name(archive.name()) {
            self.indexes.push(archive);
        } else if is_wacz_name(archive.name()) {
            let name = archive.name().to_owned();
            let (indexes, files) = parts(archive).map_err(|error| What::Text(format!("{name}: {error}")))?;
            self.indexes.extend(indexes);
            self.files.extend(files);
        } else {
            self.files.push(archive);
        }
        Ok(())
    }

    #[cfg(not(feature = "s3"))]
    fn add_address(&mut self, _: &str) -> Result<(), What> {
        Err(What::Text(
            "this build does not read s3://: build it with the feature s3, or copy the objects".to_owned(),
        ))
    }

    #[cfg(feature = "s3")]
    fn add_address(&mut self, address: &str) -> Result<(), What> {
        match huntsman_bucket::find(address)? {
            Found::One(object) => self.add(Archive::object(object)),
            Found::Many(listing) if listing.has_pattern() => {
                let objects = listing.objects(|_| true).map_err(What::Text)?;
                if objects.is_empty() {
                    return Err(What::Text("no object matches the pattern".to_owned()));
                }
                objects.into_iter().try_for_each(|object| self.add(Archive::object(object)))
            }
            Found::Many(listing) => {
                self.bases.push(Base::Prefix(listing));
                Ok(())
            }
        }
    }

    /// Lists the prefixes, unless an index tells what is below them.
    #[cfg(feature = "s3")]
    fn list_prefixes(&mut self) -> Result<(), NameError> {
        if self.indexes.iter().any(|index| index.whole().is_none()) {
            return Ok(());
        }
        for base in &self.bases {
            let Base::Prefix(listing) = base else { continue };
            let name = listing.bucket().address(listing.prefix());
            let error = |what| NameError { name: name.clone().into(), what: What::Text(what) };
            let objects = listing.objects(is_warc_name).map_err(error)?;
            if objects.is_empty() {
                return Err(error(format!("no object below it ends with {}", ENDINGS.join(", "))));
            }
            self.files.extend(objects.into_iter().map(Archive::object));
        }
        Ok(())
    }
}

impl Base {
    fn file(&self, name: &str) -> Option<Archive> {
        match self {
            Self::Folder(folder) => Some(folder.join(name)).filter(|path| path.is_file()).map(Archive::file),
            // Whether it is there turns out when it is read, so that an index of many files costs no request for each.
            #[cfg(feature = "s3")]
            Self::Prefix(listing) => {
                listing.bucket().object(&format!("{}{name}", listing.prefix())).ok().map(Archive::object)
            }
        }
    }
}

/// The file of an index in a bucket, if it is beside it or in the folder `archive` beside its own.
#[cfg(feature = "s3")]
fn beside_object(index: &Archive, name: &str) -> Option<Archive> {
    let index = index.as_object()?;
    let folder = index.key().rsplit_once('/').map_or("", |(folder, _)| folder);
    let above = folder.rsplit_once('/').map_or("", |(above, _)| above);
    let keys =
        [folder, above].map(|folder| if folder.is_empty() { String::new() } else { format!("{folder}/") });
    let keys = [format!("{}{name}", keys[0]), format!("{}archive/{name}", keys[1])];
    let objects = keys.iter().filter_map(|key| index.bucket().object(key).ok());
    objects.into_iter().find(|object| object.size().is_ok()).map(Archive::object)
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
            "e.cdxj",
        ];
        for name in names {
            std::fs::write(root.join(name), "").unwrap();
        }
        let found = |name: &str| -> Result<Vec<String>, String> {
            let archives = Archives::named(&[root.join(name)]).map_err(|error| error.to_string())?;
            let name = |file: &Archive| {
                Path::new(file.name()).strip_prefix(root).unwrap().to_str().unwrap().to_owned()
            };
            Ok(archives.files().iter().map(name).collect())
        };
        let all = ["a1.warc.gz", "a2.warc", "b.warc.wet.gz", "deep/er/d.WARC.GZ", "odd[1].warc"];
        assert_eq!(found("").unwrap(), all);
        assert_eq!(found("a*").unwrap(), ["a1.warc.gz", "a2.warc"]);
        assert_eq!(found("a[2-9].warc").unwrap(), ["a2.warc"]);
        assert_eq!(found("**/*.WARC.GZ").unwrap(), ["deep/er/d.WARC.GZ"]);
        assert_eq!(found("notes.txt").unwrap(), ["notes.txt"], "a named file is believed");
        assert_eq!(found("odd[1].warc").unwrap(), ["odd[1].warc"], "a file of this name exists");
        let named = Archives::named(&[root.join("*.{cdxj,warc}")]).unwrap();
        assert_eq!((named.files().len(), named.indexes().len()), (2, 1), "an index is none of the files");
        assert!(found("x*").unwrap_err().ends_with("x*: no file matches the pattern"));
        assert!(found("a[").unwrap_err().contains("not valid"));
        assert!(found("missing.warc").unwrap_err().contains("missing.warc: "));
    }
}
