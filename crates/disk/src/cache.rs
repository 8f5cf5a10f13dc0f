//! A cache of a few values that were read lately.

use std::sync::{Arc, Mutex, PoisonError};

/// Places of the cache. Reading in order needs only one; values that are read at random rarely come again soon.
const PLACES: usize = 64;

/// Keeps what was made for a key until another key needs its place.
pub struct Cache<T>(Mutex<Vec<Place<T>>>);

/// A key with what was made for it.
type Place<T> = Option<(u64, Arc<T>)>;

impl<T> std::fmt::Debug for Cache<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cache")
    }
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self(Mutex::new((0..PLACES).map(|_| None).collect()))
    }
}

impl<T> Cache<T> {
    /// The value of a key; `make` is called if the cache does not have it.
    pub fn get<E>(&self, key: u64, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let place = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58) as usize % PLACES;
        if let Some((found, value)) = &self.0.lock().unwrap_or_else(PoisonError::into_inner)[place]
            && *found == key
        {
            return Ok(Arc::clone(value));
        }
        let value = Arc::new(make()?);
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[place] = Some((key, Arc::clone(&value)));
        Ok(value)
    }
}
