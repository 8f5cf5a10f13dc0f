//! Which job on which server, and how long leases last.

use std::str::FromStr;
use std::time::Duration;

use huntsman_redis::{Error, ErrorKind, Settings};

/// The server, the job, and the name of this node.
///
/// Parsed from an address as [`huntsman_redis::Settings`], with `handover` and `lease` in seconds as further settings.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    pub(crate) server: Settings,
    pub(crate) job: String,
    pub(crate) node: String,
    pub(crate) lease: Duration,
    pub(crate) handover: Duration,
    pub(crate) partitions: Option<u32>,
    pub(crate) urls: u64,
    pub(crate) durability: Option<Durability>,
}

/// When a change of the queue counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When the server has replied. A server that loses its memory loses the last changes.
    Ack,
    /// When the server has replied, and the server writes its log to the disk before it does (`appendfsync always`). The default.
    Fsync,
    /// When a replica of the server has it, too.
    Replica,
}

impl Durability {
    /// All levels, weakest first.
    pub const ALL: [Self; 3] = [Self::Ack, Self::Fsync, Self::Replica];

    /// The name in flags and in the server: `ack`, `fsync`, `replica`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ack => "ack",
            Self::Fsync => "fsync",
            Self::Replica => "replica",
        }
    }

    /// The level of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// The greatest length of the name of a job or a node.
const NAME: usize = 64;
/// The number of partitions of a job that is made without one.
pub(crate) const PARTITIONS: u32 = 64;
/// The greatest number of partitions.
const MAX_PARTITIONS: u32 = 16_384;

impl ClusterSettings {
    /// Sets the name of the job; default `crawl`.
    pub fn job(mut self, name: impl Into<String>) -> Self {
        self.job = name.into();
        self
    }

    /// Sets the name of this node, which no other node of the job may have; default `node`.
    pub fn node(mut self, name: impl Into<String>) -> Self {
        self.node = name.into();
        self
    }

    /// Sets the password of the server.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.server = self.server.password(password);
        self
    }

    /// Sets how long a partition belongs to a node that is no longer heard of; default 15 s, at least 300 ms. A node renews its leases
    /// three times as often, and starts no request in the last fifth.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease.max(Duration::from_millis(300));
        self
    }

    /// Sets how long a node that leaves waits for a server that does not answer; default 5 s. As long as the server answers, the node gives
    /// back what it owns, however long that takes. What it could not give back, other nodes take when its leases end.
    pub fn handover(mut self, handover: Duration) -> Self {
        self.handover = handover;
        self
    }

    /// Sets the number of partitions of the job, 1 to 16,384; 64 unless set. A job keeps the number that it was made with, and a node that
    /// asks for another one is refused.
    pub fn partitions(mut self, partitions: u32) -> Self {
        self.partitions = Some(partitions.clamp(1, MAX_PARTITIONS));
        self
    }

    /// Sets the number of URLs for which a job that is new is made; default 1,000,000. With ten times as many, a known URL takes some 70
    /// bytes in the server instead of 10.
    pub fn urls(mut self, urls: u64) -> Self {
        self.urls = urls.max(1);
        self
    }

    /// Sets when a change of the queue of a job that is new counts as done; default [`Durability::Fsync`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// Scheme, host, port and database, without credentials, as in error messages.
    pub fn address(&self) -> String {
        self.server.address()
    }

    /// Checks the names.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        for (what, name) in [("job", &self.job), ("node", &self.node)] {
            if name.is_empty() || name.len() > NAME || !name.chars().all(is_word) {
                let message = format!(
                    "{name:?} is no name of a {what}: use 1 to {NAME} letters, digits, dots, hyphens and underscores"
                );
                return Err(Error::new(ErrorKind::Input, message));
            }
        }
        Ok(())
    }
}

impl FromStr for ClusterSettings {
    type Err = Error;

    /// Parses an address.
    ///
    /// # Errors
    /// The text is not a valid address. The error says why and does not repeat the text, because it may contain a password.
    fn from_str(address: &str) -> Result<Self, Error> {
        let (mut lease, mut handover) = (Duration::from_secs(15), Duration::from_secs(5));
        let server = Settings::parse(address, "handover, lease", |name, value| {
            let set = match name {
                "handover" => &mut handover,
                "lease" => &mut lease,
                _ => return Ok(false),
            };
            let seconds = value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            *set = seconds.ok_or_else(|| format!("{name} is a number of seconds"))?;
            Ok(true)
        })?;
        let (job, node) = ("crawl".to_owned(), "node".to_owned());
        let settings =
            Self { server, job, node, lease, handover, partitions: None, urls: 1_000_000, durability: None };
        Ok(settings.lease(lease))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_say_how_long_leases_and_goodbyes_last() {
        let settings: ClusterSettings = "redis://a.example/2?lease=3&timeout=5&handover=0.5".parse().unwrap();
        assert_eq!((settings.lease, settings.handover), (Duration::from_secs(3), Duration::from_millis(500)));
        assert_eq!(settings.address(), "redis://a.example:6379/2");
        let usual: ClusterSettings = "redis://a.example".parse().unwrap();
        assert_eq!((usual.lease, usual.handover), (Duration::from_secs(15), Duration::from_secs(5)));
        for (wrong, why) in
            [("redis://a?lease=x", "lease"), ("redis://a?lent=3", "lease, ca"), ("http://a", "redis://")]
        {
            let error = wrong.parse::<ClusterSettings>().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_name_that_would_break_a_key_is_refused() {
        let settings: ClusterSettings = "redis://a.example".parse().unwrap();
        assert!(settings.clone().job("books-2.a_b").node("n1").check().is_ok());
        for wrong in ["", "a b", "a}", "{a}", "a:b", &"x".repeat(65)] {
            assert!(settings.clone().job(wrong).check().is_err(), "{wrong:?}");
            assert!(settings.clone().node(wrong).check().is_err(), "{wrong:?}");
        }
    }
}
