//! What was learnt about hosts, which goes with their partition to the next node.

use std::collections::{BTreeMap, HashMap};
use std::sync::{MutexGuard, PoisonError};

use huntsman_crawler::{HostKey, HostNote, SavedPoliteness};
use huntsman_redis::Error;

use crate::convert::Items;
use crate::frontier::Shared;
use crate::keeper::Keeper;
use crate::script::{Call, NOTE};

/// Bytes of a note that is stored; what is longer, the next node learns again.
const LONGEST: usize = 8 << 10;
/// Notes that are read at once.
const PAGE: &[u8] = b"500";
/// Stands between a host and what a note is about; neither has such a character.
const BETWEEN: char = '\0';

/// What a node has learnt about hosts and has not stored yet.
#[derive(Debug, Default)]
pub(crate) struct Learnt {
    /// The pace of hosts; `None` if there is nothing to keep any more.
    pub(crate) paces: HashMap<HostKey, Option<SavedPoliteness>>,
    /// What components noted, by the host and by what it is about.
    notes: HashMap<(HostKey, String), Vec<u8>>,
}

impl Learnt {
    /// Adds notes. A later one of the same host about the same replaces the one before it.
    pub(crate) fn note(&mut self, notes: Vec<HostNote>) {
        self.notes.extend(notes.into_iter().map(|note| ((note.host, note.about), note.value)));
    }

    /// Takes back what could not be stored, unless something newer was learnt meanwhile.
    fn take_back(&mut self, earlier: Self) {
        for (host, pace) in earlier.paces {
            self.paces.entry(host).or_insert(pace);
        }
        for (key, value) in earlier.notes {
            self.notes.entry(key).or_insert(value);
        }
    }
}

impl Shared {
    pub(crate) fn learnt(&self) -> MutexGuard<'_, Learnt> {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keeper {
    /// Stores what was learnt about hosts of own partitions. What cannot be stored is kept for the next time.
    pub(crate) fn store_learnt(&mut self) -> Result<(), Error> {
        let learnt = std::mem::take(&mut *self.shared.learnt());
        let stored = self.store(&learnt);
        if stored.is_err() {
            self.shared.learnt().take_back(learnt);
        }
        stored
    }

    fn store(&mut self, learnt: &Learnt) -> Result<(), Error> {
        let mut calls: BTreeMap<(u32, &str), Call> = BTreeMap::new();
        let mut store = |host: &HostKey, what: &'static str, field: &str, value: Vec<u8>| {
            let partition = self.shared.partition(host);
            let Some(epoch) = self.shared.partitions.get(partition).epoch() else { return };
            let call = calls
                .remove(&(partition, what))
                .unwrap_or_else(|| self.shared.fenced(&NOTE, partition, &epoch).arg(what));
            calls.insert((partition, what), call.arg(field).arg(value));
        };
        let clock = self.shared.clock();
        for (host, pace) in &learnt.paces {
            let value = pace.map(|pace| clock.to_server(pace).to_bytes()).unwrap_or_default();
            store(host, "pace", host.as_str(), value);
        }
        for ((host, about), value) in &learnt.notes {
            let value = if value.len() <= LONGEST { value.clone() } else { Vec::new() };
            store(host, "notes", &format!("{}{BETWEEN}{about}", host.as_str()), value);
        }
        // A partition that was lost meanwhile is noticed at the next beat.
        self.runner.run(&calls.into_values().collect::<Vec<_>>()).map(drop)
    }

    /// Gives components what others noted about the hosts of a partition.
    pub(crate) fn read_notes(&mut self, partition: u32) -> Result<(), Error> {
        let Some(link) = self.shared.link.get() else { return Ok(()) };
        let key = self.shared.job.keys.notes(partition);
        let mut cursor = b"0".to_vec();
        loop {
            let reply = self.runner.client.call(&[b"HSCAN", key.as_bytes(), &cursor, b"COUNT", PAGE])?;
            let mut items = Items::of(reply, "the notes about hosts")?;
            cursor = items.bytes()?;
            let found = items.strings()?;
            let note = |pair: &[Vec<u8>]| {
                let field = std::str::from_utf8(&pair[0]).ok()?;
                let (host, about) = field.split_once(BETWEEN)?;
                Some(HostNote { host: HostKey::new(host), about: about.to_owned(), value: pair[1].clone() })
            };
            let notes: Vec<HostNote> = found.chunks_exact(2).filter_map(note).collect();
            link.noted(&notes);
            if cursor == b"0" {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_could_not_be_stored_is_kept_unless_something_newer_was_learnt() {
        let pace = |seconds| {
            Some(SavedPoliteness { delay: Duration::from_secs(seconds), ..SavedPoliteness::default() })
        };
        let note = |host: &str, about: &str, value: &str| HostNote {
            host: HostKey::new(host),
            about: about.to_owned(),
            value: value.into(),
        };
        let mut earlier = Learnt::default();
        earlier.paces.extend([(HostKey::new("a.example"), pace(1)), (HostKey::new("b.example"), pace(2))]);
        earlier.note(vec![note("a.example", "robots", "old"), note("b.example", "robots", "only")]);
        let mut learnt = Learnt::default();
        learnt.paces.extend([(HostKey::new("a.example"), None)]);
        learnt.note(vec![note("a.example", "robots", "new"), note("a.example", "cookies", "more")]);
        learnt.take_back(earlier);
        assert_eq!(learnt.paces[&HostKey::new("a.example")], None, "a newer word counts");
        assert_eq!(learnt.paces[&HostKey::new("b.example")], pace(2));
        let mut notes: Vec<_> = learnt.notes.values().map(|value| String::from_utf8_lossy(value)).collect();
        notes.sort_unstable();
        assert_eq!(notes, ["more", "new", "only"]);
    }
}
