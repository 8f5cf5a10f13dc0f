//! The gate: from handing over items to the settled page a visit is within, and what must not come between waits until none is.

use std::sync::Arc;

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Shared by visits that hand over items and settle; a commit, and the end of a crawl, wait until there is none. Clones are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate(Arc<RwLock<()>>);

impl Gate {
    /// Between this and its end a page is settled.
    pub(crate) async fn enter(&self) -> RwLockReadGuard<'_, ()> {
        self.0.read().await
    }

    /// As [`enter`](Gate::enter), but not if somebody waits to close it: for the loop, which those who are within may be waiting for.
    pub(crate) fn try_enter(&self) -> Option<RwLockReadGuard<'_, ()>> {
        self.0.try_read().ok()
    }

    /// Waits until no page is being settled, and lets none begin to be.
    pub(crate) async fn close(&self) -> RwLockWriteGuard<'_, ()> {
        self.0.write().await
    }
}
