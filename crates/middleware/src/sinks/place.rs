//! Where a feed writes: the file that is named, or a file that is uploaded when it is whole.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use huntsman_crawler::{Error, Result};

/// Folder of the files that are uploaded, below the current directory.
pub(super) const UPLOADS: &str = "uploads";

const SCHEME: &str = "s3://";

/// The places of one file of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// As the user names it, for messages.
    pub(super) name: String,
    /// The file that items are written to: a journal, if the format has one.
    pub(super) written: PathBuf,
    /// The file that is there in the end.
    pub(super) file: PathBuf,
    /// The object that the file becomes.
    pub(super) object: Option<Object>,
}

/// An object of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) bucket: String,
    pub(super) key: String,
}

impl Place {
    /// The places for a name without parameters. Its folder is made if the file will be uploaded.
    ///
    /// # Errors
    /// The name is no valid address of an object, or this build has no storage for objects.
    pub(super) fn of(name: String, is_journaled: bool) -> Result<Self> {
        let object = Object::of_name(&name)?;
        let file = match &object {
            Some(object) => object.local(),
            None => PathBuf::from(&name),
        };
        let written = if is_journaled { with_suffix(&file, ".jsonl") } else { file.clone() };
        Ok(Self { name, written, file, object })
    }

    /// Makes the folder of a file that will be uploaded.
    pub(super) fn make_folder(&self) -> std::io::Result<()> {
        match (&self.object, self.file.parent()) {
            (Some(_), Some(folder)) => huntsman_files::create_dir_all(folder),
            _ => Ok(()),
        }
    }

    pub(super) fn has_journal(&self) -> bool {
        self.written != self.file
    }

    /// Whether a file of an earlier run is in one of the places.
    pub(super) fn exists(&self) -> bool {
        self.written.exists() || self.file.exists()
    }
}

impl Object {
    fn of_name(name: &str) -> Result<Option<Self>> {
        let Some(address) = name.strip_prefix(SCHEME) else { return Ok(None) };
        if !cfg!(feature = "s3") {
            return Err(Error::usage(format!(
                "file name {name}: this program is built without the feature s3"
            )));
        }
        let (bucket, key) = address.split_once('/').unwrap_or((address, ""));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        // A part like `..` would also lead out of the folder of uploads.
        let is_part = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0']);
        if bucket.starts_with('.')
            || bucket.is_empty()
            || !bucket.bytes().all(is_name)
            || !key.split('/').all(is_part)
        {
            return Err(Error::usage(format!(
                "file name {name}: use s3://BUCKET/KEY, with no empty part, `.` or `..` in the key"
            )));
        }
        Ok(Some(Self { bucket: bucket.to_owned(), key: key.to_owned() }))
    }

    fn local(&self) -> PathBuf {
        Path::new(UPLOADS).join(&self.bucket).join(&self.key)
    }
}

/// Whether a name is the address of an object.
pub(super) fn is_remote(name: &str) -> bool {
    name.starts_with(SCHEME)
}

/// A path with something after its name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_stands_beside_its_file() {
        let plain = Place::of("out/a.jsonl".to_owned(), false).unwrap();
        assert_eq!((plain.written.as_path(), plain.has_journal()), (Path::new("out/a.jsonl"), false));
        let table = Place::of("out/a.parquet".to_owned(), true).unwrap();
        assert_eq!(table.written, Path::new("out/a.parquet.jsonl"));
        assert_eq!(table.file, Path::new("out/a.parquet"));
    }

    #[cfg(feature = "s3")]
    #[test]
    fn an_object_has_a_local_file_that_stays_in_the_folder_of_uploads() {
        let place = Place::of("s3://shop/2026/items.parquet".to_owned(), true).unwrap();
        assert_eq!(place.written, Path::new("uploads/shop/2026/items.parquet.jsonl"));
        assert_eq!(
            place.object,
            Some(Object { bucket: "shop".to_owned(), key: "2026/items.parquet".to_owned() })
        );
        for wrong in [
            "s3://",
            "s3://shop",
            "s3://shop/",
            "s3://../a",
            "s3://shop/a/../../b",
            "s3://shop//b",
            "s3://a b/c",
        ] {
            let error = Place::of(wrong.to_owned(), false).unwrap_err();
            assert!(error.is_usage() && error.to_string().contains("s3://BUCKET/KEY"), "{wrong}: {error}");
        }
    }
}
