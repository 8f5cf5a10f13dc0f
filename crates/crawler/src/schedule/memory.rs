//! Remembers rules of forgotten slots that could not be restored from the settings.

use hashbrown::HashMap;

use crate::host::HostKey;

use super::rules::SlotRules;

/// Number of hosts in each of the two generations. It is ten times the size of the robots.txt cache: a crawl delay
/// that is lost here came from a file that is fetched again anyway.
const GENERATION: usize = 100_000;

/// Rules of a forgotten slot.
#[derive(Debug)]
pub(super) struct RememberedSlot {
    pub(super) own: Option<Box<SlotRules>>,
    pub(super) gave_up: Option<&'static str>,
}

/// A bounded memory of two generations. When the young generation is full it becomes the old one, and the former old
/// one is dropped: at least the last 100,000 hosts are remembered, and at most twice as many.
#[derive(Debug, Default)]
pub(super) struct Memory {
    young: HashMap<HostKey, RememberedSlot, foldhash::fast::RandomState>,
    old: HashMap<HostKey, RememberedSlot, foldhash::fast::RandomState>,
}

impl Memory {
    pub(super) fn insert(&mut self, host: HostKey, rules: RememberedSlot) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(host, rules);
    }

    pub(super) fn take(&mut self, host: &HostKey) -> Option<RememberedSlot> {
        self.young.remove(host).or_else(|| self.old.remove(host))
    }

    pub(super) fn get(&self, host: &HostKey) -> Option<&RememberedSlot> {
        self.young.get(host).or_else(|| self.old.get(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_hosts_are_remembered_and_no_more_than_two_generations() {
        let mut memory = Memory::default();
        let host = |n: usize| HostKey::new(&format!("h{n}.example"));
        for n in 0..3 * GENERATION {
            memory.insert(host(n), RememberedSlot { own: None, gave_up: Some("x") });
        }
        assert!(memory.young.len() + memory.old.len() <= 2 * GENERATION);
        assert!((2 * GENERATION..3 * GENERATION).all(|n| memory.get(&host(n)).is_some()));
        assert!(memory.get(&host(0)).is_none());
        assert!(memory.take(&host(3 * GENERATION - 1)).is_some());
        assert!(memory.get(&host(3 * GENERATION - 1)).is_none());
    }
}
