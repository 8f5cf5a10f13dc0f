//! Which index, and how it is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use huntsman_detect::near::{DiskIndex, Document, Identity, NearIndex};
#[cfg(feature = "redis")]
use huntsman_detect::near::{IndexError, IndexErrorKind};
use huntsman_detect::simhash::Features;

use crate::error::Error;
#[cfg(feature = "redis")]
use crate::redis::{RedisIndex, RedisSettings};
use crate::warning::{Warning, Warnings};

/// Documents that are sent to a server at once.
#[cfg(feature = "redis")]
const BATCH: usize = 1_024;

/// Where an index is.
#[derive(Debug)]
pub enum Place {
    /// In a directory.
    Directory(PathBuf),
    /// In a Redis server.
    #[cfg(feature = "redis")]
    Redis(Box<RedisSettings>),
}

/// What is done about an index that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// An empty one is made.
    Make,
    /// It is a mistake of the caller.
    Refuse,
}

/// What an index is to be made for, as far as the caller says: what is missing is what the index is made for, or the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// In how many of 128 bits near-duplicates differ at most.
    pub k: Option<u32>,
    /// What texts are seen as.
    pub features: Option<Features>,
}

/// An index that is open.
#[derive(Debug)]
pub enum Index {
    /// One in a directory.
    Disk(DiskIndex),
    /// One in a Redis server.
    #[cfg(feature = "redis")]
    Redis(RedisIndex),
}

impl Index {
    /// What an index does.
    pub fn near(&self) -> &dyn NearIndex {
        match self {
            Self::Disk(index) => index,
            #[cfg(feature = "redis")]
            Self::Redis(index) => index,
        }
    }

    /// Bytes of memory of the server, if there is one and it tells.
    pub fn server_memory(&self) -> Option<u64> {
        match self {
            Self::Disk(_) => None,
            #[cfg(feature = "redis")]
            Self::Redis(index) => index.used_memory().ok().flatten(),
        }
    }
}

impl Place {
    /// The directory, if it is one.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Directory(path) => Some(path),
            #[cfg(feature = "redis")]
            Self::Redis(_) => None,
        }
    }

    /// What the index is, or is to be made for: what is wanted, else what a directory says, else the defaults.
    ///
    /// # Errors
    /// The index in the directory is made for something else or cannot be read; it is not there and must be.
    pub fn identity(&self, wanted: Wanted, missing: Missing) -> Result<Identity, Error> {
        let found = match self {
            Self::Directory(path) => {
                let found = DiskIndex::identity_of(path)?;
                if found.is_none() && missing == Missing::Refuse {
                    return Err(Error::NoIndex { path: path.clone() });
                }
                found
            }
            #[cfg(feature = "redis")]
            Self::Redis(_) => None,
        };
        let base = found.unwrap_or_default();
        let asked = Identity::new(wanted.k.unwrap_or(base.k()), wanted.features.unwrap_or(base.features()))?;
        if let (Some(found), Some(path)) = (found, self.directory()) {
            found.check(&asked).map_err(|error| error.at(path))?;
        }
        Ok(asked)
    }

    /// Opens the index, and makes an empty one if there is none.
    ///
    /// # Errors
    /// It is made for something else, another process works on it, or the disk or the server fails.
    pub fn open(&self, identity: Identity, warnings: &Warnings) -> Result<Index, Error> {
        self.build(identity, [], warnings)
    }

    /// Opens the index whatever it is made for, to look at it.
    ///
    /// # Errors
    /// As [`open`](Self::open); or there is none.
    pub fn open_any(&self, wanted: Wanted, warnings: &Warnings) -> Result<Index, Error> {
        let identity = self.identity(wanted, Missing::Refuse)?;
        match self {
            Self::Directory(_) => self.open(identity, warnings),
            #[cfg(feature = "redis")]
            Self::Redis(settings) => any_features(settings, identity, wanted),
        }
    }

    /// Opens the index and inserts documents at once, where that is quicker than inserting them later.
    ///
    /// # Errors
    /// As [`open`](Self::open). What was inserted until then stays.
    pub fn build(
        &self,
        identity: Identity,
        documents: impl IntoIterator<Item = Document>,
        warnings: &Warnings,
    ) -> Result<Index, Error> {
        match self {
            Self::Directory(path) => {
                let index = DiskIndex::build(path, identity, documents)?;
                if index.torn_bytes() > 0 {
                    let bytes = index.torn_bytes();
                    warnings.tell(&Warning::TornIndex { path: path.clone(), bytes });
                }
                Ok(Index::Disk(index))
            }
            #[cfg(feature = "redis")]
            Self::Redis(settings) => {
                let index = RedisIndex::open((**settings).clone(), identity)?;
                let mut documents = documents.into_iter();
                loop {
                    let batch: Vec<Document> = documents.by_ref().take(BATCH).collect();
                    if batch.is_empty() {
                        break;
                    }
                    index.insert(&batch)?;
                }
                Ok(Index::Redis(index))
            }
        }
    }
}

/// Opens an index in Redis, which tells its features only by refusing others.
#[cfg(feature = "redis")]
fn any_features(settings: &RedisSettings, identity: Identity, wanted: Wanted) -> Result<Index, Error> {
    let mut last = IndexError::new(IndexErrorKind::Identity, "no such features");
    for features in Features::ALL.into_iter().filter(|one| wanted.features.is_none_or(|two| *one == two)) {
        match RedisIndex::open(settings.clone(), Identity::new(identity.k(), features)?) {
            Ok(index) => return Ok(Index::Redis(index)),
            Err(error) if error.kind() == IndexErrorKind::Identity => last = error,
            Err(error) => return Err(error.into()),
        }
    }
    Err(last.into())
}

impl From<Index> for Arc<dyn NearIndex> {
    fn from(index: Index) -> Self {
        match index {
            Index::Disk(index) => Arc::new(index),
            #[cfg(feature = "redis")]
            Index::Redis(index) => Arc::new(index),
        }
    }
}
