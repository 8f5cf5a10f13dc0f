//! The trace of a simulation: a hash of all events in order, and the last lines.

use std::collections::VecDeque;

use super::seeded_random::hash;

/// Number of lines that are kept for the message of a failure.
const KEPT: usize = 3_000;

#[derive(Debug, Default)]
pub(super) struct Trace {
    hash: u64,
    lines: VecDeque<String>,
}

impl Trace {
    pub(super) fn note(&mut self, line: String) {
        self.hash = hash(self.hash, line.as_bytes());
        if self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.lines.iter().cloned().collect()
    }
}
