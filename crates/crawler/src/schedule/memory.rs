//! What is remembered of slots that were forgotten: rules that the settings could not bring back.

use hashbrown::HashMap;

use crate::host::HostKey;

use super::rules::Own;

/// Hosts in each of the two generations. Ten times the robots.txt cache: a crawl delay that is lost here was learnt from
/// a file that is asked for again anyhow.
const GENERATION: usize = 100_000;

/// Rules of a forgotten slot.
#[derive(Debug)]
pub(super) struct Remembered {
    pub(super) own: Option<Box<Own>>,
    pub(super) gave_up: Option<&'static str>,
}

/// A bounded memory. When the young generation is full it becomes the old one, and what the old one held is lost: at
/// least the last 100,000 hosts are remembered, at most twice as many.
#[derive(Debug, Default)]
pub(super) struct Memory {
    young: HashMap<HostKey, Remembered, foldhash::fast::RandomState>,
    old: HashMap<HostKey, Remembered, foldhash::fast::RandomState>,
}

impl Memory {
    pub(super) fn insert(&mut self, host: HostKey, rules: Remembered) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(host, rules);
    }

    pub(super) fn take(&mut self, host: &HostKey) -> Option<Remembered> {
        self.young.remove(host).or_else(|| self.old.remove(host))
    }

    pub(super) fn get(&self, host: &HostKey) -> Option<&Remembered> {
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
            memory.insert(host(n), Remembered { own: None, gave_up: Some("x") });
        }
        assert!(memory.young.len() + memory.old.len() <= 2 * GENERATION);
        assert!((2 * GENERATION..3 * GENERATION).all(|n| memory.get(&host(n)).is_some()));
        assert!(memory.get(&host(0)).is_none());
        assert!(memory.take(&host(3 * GENERATION - 1)).is_some());
        assert!(memory.get(&host(3 * GENERATION - 1)).is_none());
    }
}
