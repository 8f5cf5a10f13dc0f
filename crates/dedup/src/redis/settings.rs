//! Settings: the address of the server, and the layout of the index in it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use huntsman_detect::near::{IndexError, Language};
use huntsman_redis::Settings;

use super::client::index_error;

/// The address of a Redis server, the credentials, and the layout of the index.
///
/// Parsed from an address, `redis://[[USER]:PASSWORD@]HOST[:PORT][/DB][?NAME=VALUE&...]`, with `rediss://` for TLS. Each name after the `?`
/// has a method, too: `layout`, `tag`, `design_size` (a number, or `HINDI:4000000` for one language, any number of times), `ca` (a file of
/// certificates), `patience` and `timeout` in seconds. A cluster is detected automatically; any of its nodes will do.
///
/// A password in a command line can be read by every user of the machine: take it from elsewhere and set it with
/// [`password`](Self::password). It is never shown, neither by `Debug` nor in an error.
///
/// ```
/// use huntsman_dedup::redis::{Layout, RedisSettings};
///
/// let settings: RedisSettings = "rediss://crawler@db.example:6380/2?tag=band".parse().unwrap();
/// let settings = settings.layout(Layout::Log).password("a secret");
/// assert_eq!(settings.address(), "rediss://db.example:6380/2");
/// assert!(!format!("{settings:?}").contains("secret"));
/// assert!("redis://:a secret@host:port".parse::<RedisSettings>().is_err_and(|e| !e.to_string().contains("secret")));
/// ```
#[derive(Clone)]
pub struct RedisSettings {
    pub(super) server: Settings,
    pub(super) layout: Layout,
    pub(super) tag: HashTag,
    pub(super) design_size: u64,
    pub(super) design_sizes: Vec<(Language, u64)>,
    pub(super) segment_bytes: u64,
}

/// The layout of an index in a Redis server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// Four bands in sets of packed numbers, rows of 24 bytes: some 90 bytes a document. The default.
    #[default]
    Compact,
    /// Eight bands in plain sets of ids, as in older deployments: some 200 bytes per document, readable by people.
    Seed,
    /// A log of 24 bytes per document in the server; the index itself is in the memory of each process that opens it.
    Log,
}

/// The distribution of keys over a Redis Cluster: keys with the same part in braces are on one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum HashTag {
    /// All keys of a language together, `{HINDI}`: the largest language decides how large a machine must be. The default.
    #[default]
    Language,
    /// All keys of a band of a language together, `{HINDI:2}`: documents and their ids form one group each as well.
    Band,
    /// Each key by itself, `{HINDI:2:3f}`: the load is even on any number of machines.
    Bucket,
}

impl RedisSettings {
    /// Sets the layout; default [`Layout::Compact`]. Indexes of different layouts are independent and may be in the same server.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// Sets the distribution of keys over the machines of a cluster; default [`HashTag::Language`].
    ///
    /// Keys have this form without a cluster, too, so that the data can be moved to one. For an existing language the tag is checked. The
    /// keys of the seed layout are fixed and have no braces: in a cluster each of them is placed by itself.
    pub fn tag(mut self, tag: HashTag) -> Self {
        self.tag = tag;
        self
    }

    /// Sets the number of documents of a language for which the compact layout is made; default 1,000,000, at least 1.
    ///
    /// At this size, buckets have 64 to 128 documents. With more than three times as many documents, sets outgrow the packed form and take
    /// several times the memory; with far fewer, each document takes some 400 bytes. The setting is used when a language gets its first
    /// document.
    pub fn design_size(mut self, documents: u64) -> Self {
        self.design_size = documents.max(1);
        self
    }

    /// As [`design_size`](Self::design_size), for one language.
    pub fn design_size_of(mut self, language: Language, documents: u64) -> Self {
        self.design_sizes.push((language, documents.max(1)));
        self
    }

    /// Sets the user name, for servers with access control lists.
    pub fn user(mut self, name: impl Into<String>) -> Self {
        self.server = self.server.user(name);
        self
    }

    /// Sets the password of the user, or of the server (`requirepass`) if no user is set.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.server = self.server.password(password);
        self
    }

    /// Sets a file of PEM certificates that must have issued the server's certificate, instead of those that the system trusts. Only with
    /// `rediss://`.
    pub fn ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.server = self.server.ca(file);
        self
    }

    /// Sets the time limit for a reply, and for connecting; default 30 s, at least a millisecond.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.server = self.server.timeout(timeout);
        self
    }

    /// Sets how long to retry without any reply if a connection is lost or a server is loading its data; default 30 s.
    ///
    /// A connection is retried after 50 ms, 100 ms and so on, with at most 2 s between attempts. Commands without a reply are sent again,
    /// which doubles nothing.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.server = self.server.patience(patience);
        self
    }

    /// Sets the size up to which a segment of the log layout grows; default 64 MiB, at least 24 bytes, at most 256 MiB.
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = bytes.clamp(24, 256 << 20);
        self
    }

    /// Scheme, host, port and database, without credentials, as in error messages.
    pub fn address(&self) -> String {
        self.server.address()
    }

    pub(super) fn design_size_for(&self, language: Language) -> u64 {
        let own = self.design_sizes.iter().rev().find(|(name, _)| *name == language);
        own.map_or(self.design_size, |(_, size)| *size)
    }
}

/// The names of settings in an address, besides those of the server.
const NAMES: &str = "layout, tag, design_size";

impl Default for Index {
    fn default() -> Self {
        Self {
            layout: Layout::default(),
            tag: HashTag::default(),
            design_size: 1_000_000,
            design_sizes: Vec::new(),
        }
    }
}

/// The settings of an index in an address.
struct Index {
    layout: Layout,
    tag: HashTag,
    design_size: u64,
    design_sizes: Vec<(Language, u64)>,
}

impl Index {
    /// Sets one setting by its name in an address; returns whether there is such a name.
    fn set(&mut self, name: &str, value: &str) -> Result<bool, String> {
        let size = |value: &str| {
            let size = value.parse::<u64>().map_err(|_| format!("{name} is a number of documents"))?;
            Ok::<u64, String>(size.max(1))
        };
        match name {
            "layout" => self.layout = value.parse().map_err(|error: ParseLayoutError| error.to_string())?,
            "tag" => self.tag = value.parse().map_err(|error: ParseHashTagError| error.to_string())?,
            "design_size" => match value.split_once(':') {
                None => self.design_size = size(value)?,
                Some((language, value)) => {
                    let language = Language::parse(language).map_err(|error| error.to_string())?;
                    self.design_sizes.push((language, size(value)?));
                }
            },
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl FromStr for RedisSettings {
    type Err = IndexError;

    /// Parses an address.
    ///
    /// # Errors
    /// [`Input`](huntsman_detect::near::IndexErrorKind::Input): the text is not a valid address. The error says why and does not repeat the
    /// text, because it may contain a password.
    fn from_str(address: &str) -> Result<Self, IndexError> {
        let mut index = Index::default();
        let server =
            Settings::parse(address, NAMES, |name, value| index.set(name, value)).map_err(index_error)?;
        let Index { layout, tag, design_size, design_sizes } = index;
        Ok(Self { server, layout, tag, design_size, design_sizes, segment_bytes: 64 << 20 })
    }
}

impl fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisSettings")
            .field("server", &self.server)
            .field("layout", &self.layout)
            .field("tag", &self.tag)
            .field("design_size", &self.design_size)
            .field("design_sizes", &self.design_sizes)
            .finish_non_exhaustive()
    }
}

/// The error for a text that names no layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseLayoutError;

/// The error for a text that names no hash tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseHashTagError;

impl Layout {
    /// All layouts, the default first.
    pub const ALL: [Layout; 3] = [Layout::Compact, Layout::Seed, Layout::Log];

    /// The name in settings: `compact`, `seed`, `log`.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Compact => "compact",
            Layout::Seed => "seed",
            Layout::Log => "log",
        }
    }
}

impl HashTag {
    /// All hash tags, the default first.
    pub const ALL: [HashTag; 3] = [HashTag::Language, HashTag::Band, HashTag::Bucket];

    /// The name in settings: `language`, `band`, `bucket`.
    pub fn name(self) -> &'static str {
        match self {
            HashTag::Language => "language",
            HashTag::Band => "band",
            HashTag::Bucket => "bucket",
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for HashTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Layout {
    type Err = ParseLayoutError;

    fn from_str(name: &str) -> Result<Self, ParseLayoutError> {
        Self::ALL.into_iter().find(|layout| layout.name() == name).ok_or(ParseLayoutError)
    }
}

impl FromStr for HashTag {
    type Err = ParseHashTagError;

    fn from_str(name: &str) -> Result<Self, ParseHashTagError> {
        Self::ALL.into_iter().find(|tag| tag.name() == name).ok_or(ParseHashTagError)
    }
}

impl fmt::Display for ParseLayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("layouts are compact, seed and log")
    }
}

impl fmt::Display for ParseHashTagError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hash tags are language, band and bucket")
    }
}

impl std::error::Error for ParseLayoutError {}
impl std::error::Error for ParseHashTagError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_all() {
        let address = "redis://me:a%2Fb+c%40@[::1]:7000/3?tag=bucket&layout=seed&design_size=5&design_size=hi:9\
                       &patience=0.5&timeout=2";
        let settings: RedisSettings = address.parse().expect("an address");
        assert_eq!(settings.address(), "redis://[::1]:7000/3");
        assert_eq!((settings.layout, settings.tag), (Layout::Seed, HashTag::Bucket));
        let hindi = Language::parse("hi").expect("a language");
        let tamil = Language::parse("ta").expect("a language");
        assert_eq!((settings.design_size_for(hindi), settings.design_size_for(tamil)), (9, 5));
    }

    #[test]
    fn what_is_no_address_is_refused_and_never_repeated() {
        for (wrong, why) in [
            ("http://me:secret@host", "redis://"),
            ("redis://me:secret@host?tags=band", "tag"),
            ("redis://me:secret@host?tag=all", "band"),
            ("redis://me:secret@host?layout=all", "compact"),
            ("redis://me:secret@host?design_size=many", "design_size"),
            ("redis://me:secret@host?timeout=-1", "timeout"),
        ] {
            let error = wrong.parse::<RedisSettings>().expect_err(wrong);
            let message = error.to_string();
            assert_eq!(error.kind(), huntsman_detect::near::IndexErrorKind::Input, "{wrong}");
            assert!(message.contains(why) && !message.contains("secret"), "{wrong}: {message}");
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let settings: RedisSettings = "redis://me:hush1@host".parse().expect("an address");
        assert!(!format!("{settings:#?} {}", settings.address()).contains("hush1"));
        assert!(!format!("{:?}", settings.password("hush2")).contains("hush2"));
    }
}
