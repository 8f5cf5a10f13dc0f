//! The interface of all stores: ordered keys and values, atomic batches.

use crate::error::StoreError;

/// An ordered map of byte strings that outlives the process.
///
/// Every write is one [`Batch`], applied atomically: after a crash it is stored completely or not at all. A batch whose
/// `write` returned survives a killed process and, with [`Durability::Full`], a power cut. Calls block; they should be
/// made on worker threads, or be short.
pub trait Store: Send + Sync + std::fmt::Debug + 'static {
    /// The value of a key.
    ///
    /// # Errors
    /// The disk fails, or what is stored is damaged: its checksum is wrong.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Calls `visit` with the entries whose keys begin with `prefix`, in ascending order of their bytes, until it
    /// returns `false`. A scan sees one state of the store, whatever is written meanwhile; `visit` may read and write
    /// itself.
    ///
    /// # Errors
    /// As [`Store::get`].
    fn scan(&self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError>;

    /// Writes a batch atomically, and hands it to the system.
    ///
    /// # Errors
    /// The disk fails or is full. Everything before the batch is stored. This store shows nothing of the batch, and a
    /// later process finds it completely or not at all. A backend on disk refuses every later write with the same
    /// error.
    fn write(&self, batch: &Batch, durability: Durability) -> Result<(), StoreError>;

    /// Reclaims the space of deleted entries, if the backend can; called when a job is closed.
    ///
    /// # Errors
    /// As [`Store::write`].
    fn compact(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// What a write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A killed process.
    #[default]
    Process,
    /// A power cut too, if the disk really stores what it acknowledges.
    Full,
}

/// Puts and deletes that are written together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    operations: Vec<Operation>,
    bytes: usize,
}

/// One step of a batch; later steps override earlier ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Sets the value of a key.
    Put {
        /// Any bytes, at most 64 KiB.
        key: Vec<u8>,
        /// Any bytes.
        value: Vec<u8>,
    },
    /// Deletes a key, if it is there.
    Delete {
        /// The key.
        key: Vec<u8>,
    },
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of a key.
    pub fn put(&mut self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        let (key, value) = (key.into(), value.into());
        self.bytes += key.len() + value.len();
        self.operations.push(Operation::Put { key, value });
    }

    /// Deletes a key, if it is there.
    pub fn delete(&mut self, key: impl Into<Vec<u8>>) {
        let key = key.into();
        self.bytes += key.len();
        self.operations.push(Operation::Delete { key });
    }

    /// Appends the steps of another batch.
    pub fn append(&mut self, mut other: Self) {
        self.bytes += other.bytes;
        self.operations.append(&mut other.operations);
    }

    /// The steps in their order.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Total bytes of keys and values.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
}
