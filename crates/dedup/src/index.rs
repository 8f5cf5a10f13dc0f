//! The place of an index, and how it is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use huntsman_detect::near::{DiskIndex, Document, Identity, NearIndex};
#[cfg(feature = "redis")]
use huntsman_detect::near::{IndexError, IndexErrorKind};
use huntsman_detect::simhash::Features;

use serde_json::{Map, Value, json};

use crate::error::Error;
#[cfg(feature = "redis")]
use crate::redis::{RedisIndex, RedisSettings};
use crate::warning::{Warning, Warnings};

/// Documents that are sent to a server in one call.
#[cfg(feature = "redis")]
const BATCH: usize = 1_024;

/// The place of an index.
#[derive(Debug)]
pub enum IndexLocation {
    /// The index is in a directory.
    Directory(PathBuf),
    /// The index is in a Redis server.
    #[cfg(feature = "redis")]
    Redis(Box<RedisSettings>),
}

/// What to do if the index does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMissing {
    /// An empty index is made.
    Create,
    /// Opening fails with an error.
    Fail,
}

/// The properties that the caller wants an index to have. A missing property is taken from the existing index, or else from the defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdentityOptions {
    /// The greatest number of differing bits, of 128, between near-duplicates.
    pub k: Option<u32>,
    /// The features of a text that its fingerprint is made of.
    pub features: Option<Features>,
}

/// An open index.
#[derive(Debug)]
pub enum Index {
    /// An index in a directory.
    Disk(DiskIndex),
    /// An index in a Redis server.
    #[cfg(feature = "redis")]
    Redis(RedisIndex),
}

impl Index {
    /// The operations of the index.
    pub fn near(&self) -> &dyn NearIndex {
        match self {
            Self::Disk(index) => index,
            #[cfg(feature = "redis")]
            Self::Redis(index) => index,
        }
    }

    /// Bytes of memory that the server uses; `None` without a server, or if it does not tell.
    pub fn server_memory(&self) -> Option<u64> {
        match self {
            Self::Disk(_) => None,
            #[cfg(feature = "redis")]
            Self::Redis(index) => index.used_memory().ok().flatten(),
        }
    }

    /// The size and the properties of the index as JSON, in total and by language. Blocks on the server of the index.
    ///
    /// # Errors
    /// The disk or the server fails.
    pub fn stats_json(&self) -> Result<Value, Error> {
        let stats = self.near().stats()?;
        let (documents, bytes) = (stats.documents(), stats.total_bytes());
        let per =
            |bytes: u64, documents: u64| if documents == 0 { 0.0 } else { bytes as f64 / documents as f64 };
        let languages: Map<String, Value> = stats
            .languages
            .iter()
            .map(|(language, of)| {
                let bytes: u64 = of.bytes.values().sum();
                let each = per(bytes, of.documents);
                let json = json!({"documents": of.documents, "bytes": bytes, "bytes_per_document": each, "parts": of.bytes});
                (language.to_string(), json)
            })
            .collect();
        let identity = self.near().identity();
        Ok(json!({
            "documents": documents,
            "bytes": bytes,
            "bytes_per_document": per(bytes, documents),
            "k": identity.k(),
            "features": identity.features().name(),
            "languages": languages,
            "parts": stats.bytes,
            "server_memory_bytes": self.server_memory(),
        }))
    }
}

impl IndexLocation {
    /// The directory of the index; `None` for an index in a server.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Directory(path) => Some(path),
            #[cfg(feature = "redis")]
            Self::Redis(_) => None,
        }
    }

    /// The identity of the index: each property as wanted, else as the directory has it, else the default.
    ///
    /// # Errors
    /// The index in the directory has another identity or cannot be read, or it does not exist and `missing` refuses that.
    pub fn identity(&self, options: IdentityOptions, if_missing: IfMissing) -> Result<Identity, Error> {
        let found = match self {
            Self::Directory(path) => {
                let found = DiskIndex::identity_of(path)?;
                if found.is_none() && if_missing == IfMissing::Fail {
                    return Err(Error::NoIndex { path: path.clone() });
                }
                found
            }
            #[cfg(feature = "redis")]
            Self::Redis(_) => None,
        };
        let base = found.unwrap_or_default();
        let asked =
            Identity::new(options.k.unwrap_or(base.k()), options.features.unwrap_or(base.features()))?;
        if let (Some(found), Some(path)) = (found, self.directory()) {
            found.check(&asked).map_err(|error| error.at(path))?;
        }
        Ok(asked)
    }

    /// Opens the index, and makes an empty one if it does not exist.
    ///
    /// # Errors
    /// The index has another identity, another process has it open, or the disk or the server fails.
    pub fn open(&self, identity: Identity, warnings: &Warnings) -> Result<Index, Error> {
        self.build(identity, [], warnings)
    }

    /// Opens an existing index whatever its identity is, for inspection.
    ///
    /// # Errors
    /// As [`open`](Self::open); or the index does not exist.
    pub fn open_any(&self, options: IdentityOptions, warnings: &Warnings) -> Result<Index, Error> {
        let identity = self.identity(options, IfMissing::Fail)?;
        match self {
            Self::Directory(_) => self.open(identity, warnings),
            #[cfg(feature = "redis")]
            Self::Redis(settings) => any_features(settings, identity, options),
        }
    }

    /// Opens the index and inserts these documents in bulk, where that is faster than inserting them later.
    ///
    /// # Errors
    /// As [`open`](Self::open). Documents that were inserted before the error stay.
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

/// Opens an index in Redis without knowing its features. Such an index does not state its features; it only refuses to be opened with
/// others.
#[cfg(feature = "redis")]
fn any_features(
    settings: &RedisSettings,
    identity: Identity,
    options: IdentityOptions,
) -> Result<Index, Error> {
    let mut last = IndexError::new(IndexErrorKind::Identity, "no such features");
    for features in Features::ALL.into_iter().filter(|one| options.features.is_none_or(|two| *one == two)) {
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
