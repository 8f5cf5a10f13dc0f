//! Saves files in the job, so that a restart does not request them again before they expire.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use huntsman_crawler::robots::{MAX_BYTES, Robots, RobotsAgent};
use huntsman_crawler::{Change, Component, HandOver, HostKey, HostNote, Persist, Result, Timestamp};

use super::{CachedVerdict, Entry, FetchedRules, Inner, RobotsTxt};

/// The default level of zstd.
const LEVEL: i32 = 3;
/// Marks a file; the compressed file follows the time.
const FILE: u8 = b'f';
/// Marks that there is no file: everything is allowed.
const NONE: u8 = b'n';

/// Serializes a file that is valid until a time: the kind, the time in microseconds (little-endian), the file.
pub(super) fn file(until: Timestamp, body: &[u8]) -> Vec<u8> {
    let body = &body[..body.len().min(MAX_BYTES + 1)];
    let mut stored = vec![FILE];
    stored.extend_from_slice(&until.0.to_le_bytes());
    // Compression in memory fails only for lack of memory; an empty file has the same rules as a missing one.
    stored.extend(zstd::bulk::compress(body, LEVEL).unwrap_or_default());
    stored
}

/// Serializes the fact that there is no file, valid until a time.
pub(super) fn none(until: Timestamp) -> Vec<u8> {
    let mut stored = vec![NONE];
    stored.extend_from_slice(&until.0.to_le_bytes());
    stored
}

/// The kind, the time, and the rules for a product token.
fn read(stored: &[u8], token: &str) -> Option<(Timestamp, RobotsAgent)> {
    let (&kind, rest) = stored.split_first()?;
    let (until, file) = rest.split_first_chunk()?;
    let until = Timestamp(u64::from_le_bytes(*until));
    match kind {
        NONE => Some((until, RobotsAgent::allow_all())),
        FILE => {
            let mut body = Vec::new();
            let decoder = zstd::stream::read::Decoder::new(file).ok()?;
            decoder.take(MAX_BYTES as u64 + 1).read_to_end(&mut body).ok()?;
            Some((until, Robots::parse(&body).agent(token)))
        }
        _ => None,
    }
}

/// Saves the files of a crawl in its job, one entry each.
impl Persist for RobotsTxt {
    fn name(&self) -> String {
        Self::NAME.to_owned()
    }

    fn load(&self, _: Option<&[u8]>) -> Result<()> {
        self.0.cache().changes = Some(Vec::new());
        Ok(())
    }

    fn load_entry(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.restore(key, value, Timestamp::wall());
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn save_entries(&self) -> Result<Vec<Change>> {
        Ok(self.0.cache().changes.as_mut().map(std::mem::take).unwrap_or_default())
    }
}

/// What a file is noted under: the name of the component, and its key in the cache.
pub(super) fn note(host: &HostKey, key: &str, stored: &[u8]) -> HostNote {
    HostNote { host: host.clone(), about: format!("{} {key}", RobotsTxt::NAME), value: stored.to_owned() }
}

/// Hands files over with their hosts.
impl HandOver for RobotsTxt {
    fn begin(&self) {
        self.0.cache().notes = Some(Vec::new());
    }

    fn learnt(&self) -> Vec<HostNote> {
        self.0.cache().notes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn take_over(&self, note: &HostNote) {
        let key = note.about.strip_prefix(Self::NAME).and_then(|rest| rest.strip_prefix(' '));
        if let Some(key) = key {
            self.0.restore(key.as_bytes(), &note.value, Timestamp::wall());
        }
    }
}

impl Inner {
    /// Loads a saved file into the cache, unless it has expired or cannot be read: then it is deleted, and requested
    /// again when it is needed.
    fn restore(&self, key: &[u8], value: &[u8], now: Timestamp) {
        let read = std::str::from_utf8(key).ok().and_then(|name| {
            let (_, token) = name.rsplit_once(' ')?;
            Some((name, read(value, token)?))
        });
        let mut cache = self.cache();
        match read {
            Some((name, (until, rules))) if until > now => {
                // The clock may have been wrong, or the limit may be shorter now than it was then.
                let until = until.min(now + self.ttl.max(Duration::from_secs(1)));
                let fetched = FetchedRules::from(self.verdict(rules, until));
                cache.restore(name, fetched.cached);
            }
            _ => {
                if let Some(changes) = &mut cache.changes {
                    changes.push((key.to_vec(), None));
                }
            }
        }
    }
}

impl super::Cache {
    /// Adds a result of an earlier run to the cache.
    fn restore(&mut self, key: &str, cached: CachedVerdict) {
        self.clock += 1;
        let bytes = cached.bytes();
        let entry = Entry { cached: cached.into(), failures: 0 };
        self.entries.insert(key.to_owned(), (Arc::new(entry), self.clock));
        self.add_bytes(bytes);
    }
}
