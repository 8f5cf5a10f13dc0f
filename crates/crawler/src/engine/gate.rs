//! The gate: a visit is inside from handing over its items until its page is settled. Work that must not happen in
//! between waits until no visit is inside.

use std::sync::Arc;

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Visits enter it to hand over items and settle; a commit, and the end of a crawl, wait until no visit is inside.
/// Clones share one gate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate(Arc<RwLock<()>>);

impl Gate {
    /// Enters the gate; a page is settled while the guard is held.
    pub(crate) async fn enter(&self) -> RwLockReadGuard<'_, ()> {
        self.0.read().await
    }

    /// Like [`enter`](Gate::enter), but fails if a task waits to close the gate. The loop uses it, because visits
    /// inside may be waiting for the loop.
    pub(crate) fn try_enter(&self) -> Option<RwLockReadGuard<'_, ()>> {
        self.0.try_read().ok()
    }

    /// Waits until no page is being settled, and keeps others from entering.
    pub(crate) async fn close(&self) -> RwLockWriteGuard<'_, ()> {
        self.0.write().await
    }
}
