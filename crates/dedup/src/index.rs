//! `--index`: which index, opened as a command needs it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use huntsman::detect::near::redis::{RedisIndex, RedisSettings};
use huntsman::detect::near::{DiskIndex, Document, Identity, IndexError, IndexErrorKind, NearIndex};
use huntsman::detect::simhash::Features;

use super::args::IndexArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::render::{escape, warn};

/// Where an index is.
#[derive(Debug)]
pub(crate) enum Place {
    Directory(PathBuf),
    Redis(Box<RedisSettings>),
}

/// What is done about an index that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// An empty one is made.
    Make,
    /// It is a mistake of who named it.
    Refuse,
}

/// An index that is open.
#[derive(Debug)]
pub(crate) enum Opened {
    Disk(DiskIndex),
    Redis(RedisIndex),
}

impl Opened {
    /// What an index does.
    pub(crate) fn near(&self) -> &dyn NearIndex {
        match self {
            Opened::Disk(index) => index,
            Opened::Redis(index) => index,
        }
    }

    /// Memory of the server, if there is one and it tells.
    pub(crate) fn server_memory(&self) -> Option<u64> {
        match self {
            Opened::Disk(_) => None,
            Opened::Redis(index) => index.used_memory().ok().flatten(),
        }
    }
}

impl Place {
    /// What `--index` and `--layout` name.
    pub(crate) fn of(args: &IndexArgs) -> Outcome<Self> {
        let name = &args.index;
        if name.starts_with("redis://") || name.starts_with("rediss://") {
            let mut settings: RedisSettings =
                name.parse().map_err(|error: IndexError| Failure::usage(format!("--index: {error}")))?;
            if let Some(layout) = args.layout {
                settings = settings.layout(layout);
            }
            if let Ok(password) = std::env::var("HUNTSMAN_REDIS_PASSWORD") {
                settings = settings.password(password);
            }
            return Ok(Place::Redis(Box::new(settings)));
        }
        if let Some((scheme, _)) = name.split_once("://") {
            let scheme = escape(scheme);
            return Err(Failure::usage(format!(
                "--index {scheme}://...: use a directory, redis:// or rediss://"
            )));
        }
        if args.layout.is_some() {
            return Err(Failure::usage("--layout is for an index in Redis; a directory has one layout only"));
        }
        if name.is_empty() {
            return Err(Failure::usage("--index: name a directory or a Redis server"));
        }
        Ok(Place::Directory(PathBuf::from(name)))
    }

    /// The directory, if it is one.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match self {
            Place::Directory(path) => Some(path),
            Place::Redis(_) => None,
        }
    }

    /// What the index is, or is to be made for: the flags, else what a directory says, else the defaults.
    pub(crate) fn identity(&self, args: &IndexArgs, missing: Missing) -> Outcome<Identity> {
        let found = match self {
            Place::Directory(path) => {
                let found = DiskIndex::identity_of(path).map_err(|error| failure(&error))?;
                if found.is_none() && missing == Missing::Refuse {
                    let path = escape(&path.to_string_lossy()).into_owned();
                    return Err(Failure::usage(format!(
                        "--index {path}: there is no index; `huntsman dedup add` and `build` make one"
                    )));
                }
                found
            }
            Place::Redis(_) => None,
        };
        let base = found.unwrap_or_default();
        let asked = Identity::new(args.k.unwrap_or(base.k()), args.features.unwrap_or(base.features()));
        let asked = asked.map_err(|error| failure(&error))?;
        if let (Some(found), Place::Directory(path)) = (found, self) {
            found.check(&asked).map_err(|error| failure(&error.at(path)))?;
        }
        Ok(asked)
    }

    /// Opens the index.
    ///
    /// # Errors
    /// Usage: it is made for something else. All others: see [`failure`].
    pub(crate) fn open(&self, identity: Identity) -> Outcome<Opened> {
        self.build(identity, [])
    }

    /// Opens the index whatever it is made for, to look at it.
    pub(crate) fn open_any(&self, args: &IndexArgs) -> Outcome<Opened> {
        let identity = self.identity(args, Missing::Refuse)?;
        let Place::Redis(settings) = self else { return self.open(identity) };
        let mut last = None;
        // Redis tells its features only by refusing others.
        for features in Features::ALL.into_iter().filter(|one| args.features.is_none_or(|two| *one == two)) {
            let identity = Identity::new(identity.k(), features).map_err(|error| failure(&error))?;
            match RedisIndex::open((**settings).clone(), identity) {
                Ok(index) => return Ok(Opened::Redis(index)),
                Err(error) if error.kind() == IndexErrorKind::Identity => last = Some(error),
                Err(error) => return Err(failure(&error)),
            }
        }
        Err(last.map_or_else(|| Failure::usage("no such features"), |error| failure(&error)))
    }

    /// Opens the index and inserts documents at once, where that is quicker than inserting them later.
    pub(crate) fn build(
        &self,
        identity: Identity,
        documents: impl IntoIterator<Item = Document>,
    ) -> Outcome<Opened> {
        match self {
            Place::Directory(path) => {
                let index = DiskIndex::build(path, identity, documents).map_err(|error| failure(&error))?;
                if index.torn_bytes() > 0 {
                    warn(&format!(
                        "{}: {} bytes at the end of the log were not written whole, and are dropped",
                        path.display(),
                        index.torn_bytes()
                    ));
                }
                Ok(Opened::Disk(index))
            }
            Place::Redis(settings) => {
                let index = RedisIndex::open((**settings).clone(), identity);
                let index = index.map_err(|error| failure(&error))?;
                let mut documents = documents.into_iter();
                loop {
                    let batch: Vec<Document> = documents.by_ref().take(1_024).collect();
                    if batch.is_empty() {
                        break;
                    }
                    index.insert(&batch).map_err(|error| failure(&error))?;
                }
                Ok(Opened::Redis(index))
            }
        }
    }
}

impl From<Opened> for Arc<dyn NearIndex> {
    fn from(opened: Opened) -> Self {
        match opened {
            Opened::Disk(index) => Arc::new(index),
            Opened::Redis(index) => Arc::new(index),
        }
    }
}

impl From<IndexError> for Failure {
    fn from(error: IndexError) -> Self {
        failure(&error)
    }
}

/// How the command ends for an error of an index, and what to do about it.
pub(crate) fn failure(error: &IndexError) -> Failure {
    let (exit, advice) = match error.kind() {
        IndexErrorKind::Input | IndexErrorKind::Identity => (Exit::Usage, ""),
        IndexErrorKind::Locked => (Exit::Crawl, "; wait for its end, then run the same command again"),
        IndexErrorKind::Unavailable => {
            (Exit::Crawl, "; nothing is lost: run the same command again when the server is back")
        }
        IndexErrorKind::Full => (Exit::Crawl, "; nothing is lost: run the same command again then"),
        _ => (Exit::Crawl, ""),
    };
    Failure { exit, message: format!("index {error}{advice}"), is_broken_pipe: false }
}
