//! What was learnt about hosts, which goes with their partition to the next node.

use std::collections::{BTreeMap, HashMap};
use std::sync::PoisonError;

use huntsman_crawler::{HostKey, HostNote};
use huntsman_redis::Error;

use crate::convert::Items;
use crate::keeper::Keeper;
use crate::script::{Call, NOTE};

/// Bytes of a note that is stored; what is longer, the next node learns again.
const LONGEST: usize = 8 << 10;
/// Notes that are read at once.
const PAGE: &[u8] = b"500";
/// Stands between a host and what a note is about; neither has such a character.
const BETWEEN: char = '\0';

impl Keeper {
    /// Stores what was learnt about hosts of own partitions.
    pub(crate) fn store_learnt(&mut self) -> Result<(), Error> {
        let learnt: HashMap<_, _> =
            std::mem::take(&mut *self.shared.learnt.lock().unwrap_or_else(PoisonError::into_inner));
        let notes: Vec<HostNote> =
            std::mem::take(&mut *self.shared.notes.lock().unwrap_or_else(PoisonError::into_inner));
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
        for (host, pace) in learnt {
            let value = pace.map(|pace| clock.to_server(pace).to_bytes()).unwrap_or_default();
            store(&host, "pace", host.as_str(), value);
        }
        for HostNote { host, about, value } in notes {
            let value = if value.len() <= LONGEST { value } else { Vec::new() };
            store(&host, "notes", &format!("{}{BETWEEN}{about}", host.as_str()), value);
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
