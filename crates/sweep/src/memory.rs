//! A limit on the memory that all comparisons take together.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Size of the pieces in which memory is counted, in bytes.
const PIECE: usize = 64 << 10;

/// A limit on the memory that all comparisons take together: a comparison waits until enough of it is free, in order of
/// arrival. Cheap to clone; clones share the limit.
#[derive(Clone, Debug)]
pub struct Memory {
    pieces: Arc<Semaphore>,
    total: u32,
}

/// Memory that is reserved for a comparison until this value is dropped.
#[derive(Debug)]
pub struct MemoryPermit {
    _pieces: OwnedSemaphorePermit,
}

impl Memory {
    /// A limit of this many bytes.
    pub fn new(bytes: usize) -> Self {
        let total = u32::try_from((bytes / PIECE).clamp(1, Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        Self { pieces: Arc::new(Semaphore::new(total as usize)), total }
    }

    /// Waits until this many bytes are free and reserves them; a request beyond the limit reserves all of it.
    pub async fn reserve(&self, bytes: usize) -> MemoryPermit {
        let pieces = u32::try_from(bytes.div_ceil(PIECE)).unwrap_or(u32::MAX).min(self.total);
        let pieces = Arc::clone(&self.pieces).acquire_many_owned(pieces).await;
        MemoryPermit { _pieces: pieces.expect("it is never closed") }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_has_no_room_waits_and_what_is_too_large_gets_all() {
        let memory = Memory::new(10 * PIECE);
        let waits = async |bytes| timeout(Duration::from_secs(1), memory.reserve(bytes)).await.is_err();
        let half = memory.reserve(5 * PIECE - 1).await;
        assert!(!waits(5 * PIECE).await && waits(5 * PIECE + 1).await);
        assert!(waits(usize::MAX).await);
        drop(half);
        let all = memory.reserve(usize::MAX).await;
        assert!(waits(1).await && !waits(0).await);
        drop(all);
        assert!(!waits(10 * PIECE).await);
    }
}
