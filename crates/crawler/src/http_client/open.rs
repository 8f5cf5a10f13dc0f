//! The connections of a downloader that are open: idle ones are closed before there are too many.
//!
//! The pool bounds idle connections per host and in time, but a broad crawl meets hundreds of hosts a second.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::wire::Peer;

/// Connections above which the oldest idle ones are closed. Below the usual limit of 1,024 files, with room for a
/// store and for names being resolved; connections at work are bounded by the concurrency and never closed.
const MOST_OPEN: usize = 256;

/// Oldest first; those that are closed stay until they are met.
#[derive(Debug, Default)]
pub(crate) struct Open(Mutex<VecDeque<Weak<Peer>>>);

impl Open {
    /// Notes a new connection and makes room for it.
    pub(crate) fn add(&self, peer: &Arc<Peer>) {
        let mut open = self.lock();
        open.push_back(Arc::downgrade(peer));
        let surplus = open.len().saturating_sub(MOST_OPEN);
        retire(&mut open, surplus);
    }

    /// Closes the oldest idle connections, so many at most.
    pub(crate) fn retire(&self, most: usize) {
        retire(&mut self.lock(), most);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Weak<Peer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn retire(open: &mut VecDeque<Weak<Peer>>, most: usize) {
    let mut left = most;
    if left > 0 {
        open.retain(|peer| {
            let goes = left > 0 && peer.upgrade().is_none_or(|peer| peer.retire());
            left -= usize::from(goes);
            !goes
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::ConnectTimes;
    use super::*;

    #[test]
    fn the_oldest_idle_ones_go_and_busy_ones_stay() {
        let open = Open::default();
        let peers: Vec<_> = (0..MOST_OPEN + 10)
            .map(|n| {
                let peer = Peer::new(None, None, ConnectTimes::default(), n == 1);
                if n != 0 {
                    peer.finished();
                }
                open.add(&peer);
                peer
            })
            .collect();
        let retired: Vec<usize> = (0..peers.len()).filter(|n| peers[*n].is_retired()).collect();
        assert_eq!(retired, (2..12).collect::<Vec<_>>(), "0 is busy, 1 may be: HTTP/2");
        assert_eq!(open.lock().len(), MOST_OPEN);
        drop(peers);
        open.retire(3);
        assert_eq!(open.lock().len(), MOST_OPEN - 3, "closed ones are forgotten");
    }
}
