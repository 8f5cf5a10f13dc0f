//! The state of a spider: a map that lives as long as its job.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Result;
use crate::job::Persist;

/// Values by name that a spider gets back when its job is resumed, like Scrapy's `spider.state`: counters, the last
/// page of a listing, a session. It is cheap to clone, and clones share one map.
///
/// With a job the whole map is written with every commit after a change, so it is meant for kilobytes; growing data
/// should be items or a [`Persist`]. A callback changes the map before its page is settled, so a page that is fetched
/// again after a crash changes it a second time.
///
/// ```
/// use huntsman_crawler::State;
///
/// let state = State::default();
/// state.set("last_page", 7)?;
/// state.update("seen", |seen: Option<u64>| seen.unwrap_or(0) + 1)?;
/// assert_eq!(state.get::<u64>("seen")?, Some(1));
/// # Ok::<(), huntsman_crawler::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct State(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    values: Mutex<BTreeMap<String, Value>>,
    has_changed: AtomicBool,
}

impl State {
    /// A value, if it is set.
    ///
    /// # Errors
    /// The value has another type.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let value = self.lock().get(name).cloned();
        value.map(|value| typed(name, value)).transpose()
    }

    /// Sets a value.
    ///
    /// # Errors
    /// The value cannot be written as JSON.
    pub fn set(&self, name: &str, value: impl Serialize) -> Result<()> {
        let value = serde_json::to_value(value)?;
        self.lock().insert(name.to_owned(), value);
        self.0.has_changed.store(true, Ordering::Release);
        Ok(())
    }

    /// Sets a value computed from its current value, in one step. The closure must not use the state itself.
    ///
    /// # Errors
    /// The current value has another type, or the new value cannot be written as JSON; nothing is changed then.
    pub fn update<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        change: impl FnOnce(Option<T>) -> T,
    ) -> Result<()> {
        let mut values = self.lock();
        let old = values.get(name).cloned().map(|value| typed(name, value)).transpose()?;
        values.insert(name.to_owned(), serde_json::to_value(change(old))?);
        self.0.has_changed.store(true, Ordering::Release);
        Ok(())
    }

    /// Removes a value of any type and returns it.
    pub fn remove(&self, name: &str) -> Option<Value> {
        let removed = self.lock().remove(name);
        self.0.has_changed.fetch_or(removed.is_some(), Ordering::AcqRel);
        removed
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Value>> {
        self.0.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn typed<T: DeserializeOwned>(name: &str, value: Value) -> Result<T> {
    let wrong = |error| crate::Error::from(error).context(format!("the state \"{}\"", name.escape_debug()));
    serde_json::from_value(value).map_err(wrong)
}

impl Persist for State {
    fn name(&self) -> String {
        "spider".to_owned()
    }

    fn load(&self, state: Option<&[u8]>) -> Result<()> {
        if let Some(state) = state {
            *self.lock() = serde_json::from_slice(state)?;
        }
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        if !self.0.has_changed.swap(false, Ordering::AcqRel) {
            return Ok(None);
        }
        Ok(Some(serde_json::to_vec(&*self.lock())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_and_only_changes_are_saved() {
        let state = State::default();
        assert_eq!(state.save().unwrap(), None);
        state.set("name", "a").unwrap();
        state.update("pages", |pages: Option<u32>| pages.unwrap_or(0) + 2).unwrap();
        state.clone().update("pages", |pages: Option<u32>| pages.unwrap_or(0) + 2).unwrap();
        let saved = state.save().unwrap().unwrap();
        assert_eq!((state.save().unwrap(), state.remove("none")), (None, None));
        assert_eq!(state.save().unwrap(), None);
        let next = State::default();
        next.load(Some(&saved)).unwrap();
        assert_eq!(next.get::<u32>("pages").unwrap(), Some(4));
        assert_eq!(next.remove("name"), Some("a".into()));
        assert_eq!(next.get::<String>("name").unwrap(), None);
        assert!(next.save().unwrap().is_some());
    }

    #[test]
    fn a_value_of_another_type_is_an_error_that_names_it() {
        let state = State::default();
        state.set("name", "a").unwrap();
        let error = state.get::<u32>("name").unwrap_err();
        assert!(error.to_string().contains("\"name\""), "{error}");
        assert!(state.update("name", |n: Option<u32>| n.unwrap_or(0)).is_err());
        assert_eq!(state.get::<String>("name").unwrap().as_deref(), Some("a"), "as it was");
    }
}
