//! Articles that were found and not yet checked, in a folder.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use huntsman_crawler::{Error, Result};
use xxhash_rust::xxh3::xxh3_128;

use super::candidates::Subject;

/// Articles in files, each until it is checked: so that a crawl need not wait for a check, and a kill loses none.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    folder: PathBuf,
}

/// JSON of an article at most; its text is what a page of 2 MiB says.
const MOST: usize = 64 << 20;
const LEVEL: i32 = 1;
const END: &str = "article";

impl Pending {
    pub(crate) fn open(folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
        Ok(Self { folder })
    }

    /// Keeps an article; it is whole or not there.
    pub(crate) fn keep(&self, article: &Subject) -> Result<()> {
        let path = self.path(article);
        let packed = zstd::bulk::compress(&serde_json::to_vec(article)?, LEVEL)?;
        let beside = path.with_extension("tmp");
        fs::write(&beside, packed)
            .and_then(|()| fs::rename(&beside, &path))
            .map_err(|error| failed(&path, error))
    }

    /// It was checked.
    pub(crate) fn done(&self, article: &Subject) -> Result<()> {
        let path = self.path(article);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(&path, error)),
            _ => Ok(()),
        }
    }

    /// Those of an earlier run, in no order. A file that is damaged is an error: its article would be lost.
    pub(crate) fn all(&self) -> Result<Vec<Subject>> {
        let mut articles = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(|error| failed(&self.folder, error))? {
            let path = entry?.path();
            if path.extension().is_none_or(|end| end != END) {
                continue;
            }
            let packed = fs::read(&path).map_err(|error| failed(&path, error))?;
            let json = zstd::bulk::decompress(&packed, MOST).map_err(|error| failed(&path, error))?;
            articles.push(serde_json::from_slice(&json)?);
        }
        Ok(articles)
    }

    fn path(&self, article: &Subject) -> PathBuf {
        let name = xxh3_128(article.url.as_deref().unwrap_or(article.text.exact()).as_bytes());
        self.folder.join(format!("{name:032x}.{END}"))
    }
}

fn failed(path: &std::path::Path, error: std::io::Error) -> Error {
    Error::from(error).context(format!("articles that wait for their check, {}", path.display()))
}
