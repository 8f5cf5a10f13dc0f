//! A store in memory: for tests, and for crawls that leave nothing behind.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{PoisonError, RwLock};

use crate::error::StoreError;
use crate::store::{Batch, Durability, Operation, Store};

/// A [`Store`] that ends with the process.
#[derive(Default)]
pub struct MemoryStore {
    entries: RwLock<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner).len();
        f.debug_struct("MemoryStore").field("entries", &entries).finish()
    }
}

impl Store for MemoryStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.entries.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned())
    }

    fn scan(&self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
        // The entries are copied, so that `visit` may write.
        let found: Vec<_> = {
            let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
            let from = entries.range(prefix.to_vec()..);
            from.take_while(|(key, _)| key.starts_with(prefix))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect()
        };
        for (key, value) in found {
            if !visit(&key, &value) {
                break;
            }
        }
        Ok(())
    }

    fn write(&self, batch: &Batch, _: Durability) -> Result<(), StoreError> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        for operation in batch.operations() {
            match operation {
                Operation::Put { key, value } => drop(entries.insert(key.clone(), value.clone())),
                Operation::Delete { key } => drop(entries.remove(key)),
            }
        }
        Ok(())
    }
}
