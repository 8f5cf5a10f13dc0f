//! Indexes in a Redis server, which several machines share.
//!
//! [`RedisIndex`] keeps an index in a server or in a cluster, in one of three [`Layout`]s:
//!
//! | layout | bytes a document | looks | for |
//! |---|---|---|---|
//! | [`Compact`](Layout::Compact) | some 90 | in the server | the default |
//! | [`Seed`](Layout::Seed) | 190 to 240 | in the server | reading and writing what exists already |
//! | [`Log`](Layout::Log) | 25 to 30 | in each process, which needs memory of its own | many queries, few machines |
//!
//! All layouts find the same documents: exactly those within k bits. The stored data serves every k up to 7; of the [`Identity`] only the
//! features are stored and checked.
//!
//! Any number of processes on any number of machines may read and write at the same time, as long as each id is inserted or removed by one
//! of them at a time. Within a process any number of threads may do so; writing threads take turns.
//!
//! Inserted documents are in the server's memory. Whether they survive a restart of the server depends on its persistence: set `appendonly
//! yes` there. `flush` waits until they are on the server's disk if the server can report that (`WAITAOF`, Redis 7.2).
//!
//! Eviction must be off (`maxmemory-policy noeviction`, the default), because a server that evicts keys would lose documents.

mod client;
mod compact;
mod latest;
mod log;
mod meta;
mod mix;
mod sample;
mod seed;
mod server;
mod settings;
mod tally;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

#[doc(hidden)]
pub use huntsman_redis::fuzz;
pub use settings::{HashTag, Layout, ParseHashTagError, ParseLayoutError, RedisSettings};

use self::client::Batch;
use self::compact::Compact;
use self::log::Log;
use self::seed::Seed;
use self::server::Server;
use huntsman_detect::near::{
    DocId, Document, Identity, IndexError, IndexStats, Language, NearIndex, NearMatch,
};
use huntsman_detect::simhash::SimHash;

/// The key of the spellings of languages, by name. The compact and the log layout use it; both may be in one database.
const SPELLINGS: &[u8] = b"sh:spellings";

/// An index in a Redis server or in a Redis cluster.
///
/// Commands are sent in pipelines: the more documents and queries a call has, the less each of them waits. Pass some hundred at once. If a
/// connection is lost, also in the middle of a batch, it is made again, and commands without a reply are sent again, for as long as
/// [`RedisSettings::patience`] says; nothing is lost or doubled by that.
///
/// ```no_run
/// use huntsman_dedup::redis::RedisIndex;
/// use huntsman_detect::near::{Document, Identity, Language, NearIndex};
/// use huntsman_detect::simhash::SimHash;
/// use huntsman_detect::words::Words;
///
/// let index = RedisIndex::open("redis://localhost/3".parse()?, Identity::default())?;
/// let english = Language::parse("en")?;
/// let hash = SimHash::of(&Words::of("A text that was fetched today"));
/// let near = index.near(&[(english, hash)])?;
/// index.insert(&[Document { language: english, id: 17.into(), hash }])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RedisIndex(Kind);

#[derive(Debug)]
enum Kind {
    Compact(Compact),
    Seed(Seed),
    Log(Log),
}

/// Forwards a call to the layout.
macro_rules! layout {
    ($index:expr, $layout:ident => $call:expr) => {
        match &$index.0 {
            Kind::Compact($layout) => $call,
            Kind::Seed($layout) => $call,
            Kind::Log($layout) => $call,
        }
    };
}

impl RedisIndex {
    /// Connects and opens the index, which is created with its first document. The log layout reads its whole log.
    ///
    /// # Errors
    /// [`Unavailable`](huntsman_detect::near::IndexErrorKind::Unavailable): the server cannot be reached.
    /// [`Refused`](huntsman_detect::near::IndexErrorKind::Refused): it does not accept the credentials, or is not to be trusted.
    /// [`Identity`](huntsman_detect::near::IndexErrorKind::Identity): the existing index was made with other features, or with another
    /// [`HashTag`]. [`Format`](huntsman_detect::near::IndexErrorKind::Format), [`Damaged`](huntsman_detect::near::IndexErrorKind::Damaged):
    /// the existing data is not an index.
    pub fn open(settings: RedisSettings, identity: Identity) -> Result<Self, IndexError> {
        let layout = settings.layout;
        let server = Server::connect(settings)?;
        Ok(Self(match layout {
            Layout::Compact => Kind::Compact(Compact::open(server, identity)?),
            Layout::Seed => Kind::Seed(Seed::open(server, identity)?),
            Layout::Log => Kind::Log(Log::open(server, identity)?),
        }))
    }

    /// The memory that the server uses for all of its data, in bytes; for a cluster, the sum over its nodes.
    ///
    /// `None` if the user may not ask for it (`INFO`).
    ///
    /// # Errors
    /// The server cannot be reached.
    pub fn used_memory(&self) -> Result<Option<u64>, IndexError> {
        self.server().used_memory()
    }

    /// The spellings of languages in the input, as written by [`store_spellings`](Self::store_spellings).
    ///
    /// # Errors
    /// The server cannot be reached, or has data of another kind under that key.
    pub fn spellings(&self) -> Result<BTreeMap<Language, String>, IndexError> {
        if matches!(self.0, Kind::Seed(_)) {
            return Ok(BTreeMap::new());
        }
        let wrong = || self.server().damaged(SPELLINGS, "no spellings of languages");
        let values =
            self.server().client().call(&[b"HGETALL", SPELLINGS])?.into_values().ok_or_else(wrong)?;
        let text = |value: &Option<Vec<u8>>| std::str::from_utf8(value.as_deref()?).ok().map(str::to_owned);
        let pair =
            |pair: &[Option<Vec<u8>>]| Some((Language::parse(&text(&pair[0])?).ok()?, text(&pair[1])?));
        values.chunks_exact(2).map(pair).collect::<Option<_>>().ok_or_else(wrong)
    }

    /// Stores the spellings of languages in the input; the first spelling of a language stays. They serve callers that export languages as
    /// they were given, and have no meaning for the index. The seed layout stores none, because its keys are only those that older
    /// deployments know.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub fn store_spellings<'a>(
        &self,
        spellings: impl IntoIterator<Item = (Language, &'a str)>,
    ) -> Result<(), IndexError> {
        if matches!(self.0, Kind::Seed(_)) {
            return Ok(());
        }
        let mut batch = Batch::new();
        for (language, spelling) in spellings {
            batch.push(&[b"HSETNX", SPELLINGS, language.as_str().as_bytes(), spelling.as_bytes()]);
        }
        if batch.is_empty() { Ok(()) } else { self.server().client().run(&batch).map(drop) }
    }

    fn server(&self) -> &Server {
        layout!(self, layout => layout.server())
    }
}

impl NearIndex for RedisIndex {
    fn identity(&self) -> &Identity {
        layout!(self, layout => layout.identity())
    }

    fn near(&self, queries: &[(Language, SimHash)]) -> Result<Vec<Vec<NearMatch>>, IndexError> {
        layout!(self, layout => layout.near(queries))
    }

    fn get(&self, language: &Language, ids: &[DocId]) -> Result<Vec<Option<SimHash>>, IndexError> {
        layout!(self, layout => layout.get(*language, ids))
    }

    fn insert(&self, documents: &[Document]) -> Result<(), IndexError> {
        layout!(self, layout => layout.insert(documents))
    }

    fn remove(&self, language: &Language, ids: &[DocId]) -> Result<usize, IndexError> {
        layout!(self, layout => layout.remove(*language, ids))
    }

    /// As documented for the trait. Bytes are estimated from some hundred keys of each kind, and missing if the user may not ask for them
    /// (`MEMORY USAGE`).
    fn stats(&self) -> Result<IndexStats, IndexError> {
        layout!(self, layout => layout.stats())
    }

    fn for_each(&self, each: &mut dyn FnMut(&Document) -> ControlFlow<()>) -> Result<(), IndexError> {
        layout!(self, layout => layout.for_each(each))
    }

    fn flush(&self) -> Result<(), IndexError> {
        if let Kind::Compact(compact) = &self.0 {
            compact.flush()?;
        }
        self.server().sync()
    }
}
