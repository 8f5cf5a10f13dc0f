//! Stores in the job what the scheduler learnt about hosts, so that the next run can begin with it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::host::HostKey;
use crate::job::{Change, Persist};
use crate::schedule::{SavedPoliteness, Scheduler};

/// First what the last run learnt, until the scheduler has taken it over; then what this run learns, until it is
/// saved.
#[derive(Clone, Debug, Default)]
pub(crate) struct PersistedHosts(Arc<Mutex<Hosts>>);

#[derive(Debug, Default)]
struct Hosts {
    restored: HashMap<HostKey, SavedPoliteness>,
    changes: HashMap<HostKey, Option<SavedPoliteness>>,
}

impl PersistedHosts {
    /// Passes the stored knowledge to the scheduler.
    pub(crate) fn restore(&self, scheduler: &mut Scheduler) {
        scheduler.resume_with(std::mem::take(&mut self.lock().restored));
    }

    /// Collects what the scheduler learnt.
    pub(crate) fn take(&self, scheduler: &mut Scheduler) {
        let mut changes = scheduler.changes().peekable();
        if changes.peek().is_some() {
            self.lock().changes.extend(changes);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Hosts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Persist for PersistedHosts {
    fn name(&self) -> String {
        "hosts".to_owned()
    }

    fn load(&self, _: Option<&[u8]>) -> Result<()> {
        Ok(())
    }

    fn load_entry(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut hosts = self.lock();
        let host = HostKey::new(&String::from_utf8_lossy(key));
        match SavedPoliteness::from_bytes(value) {
            Some(politeness) if !politeness.delay.is_zero() || politeness.sleep_until > Timestamp::wall() => {
                hosts.restored.insert(host, politeness);
            }
            // The entry is outdated or not readable; the scheduler learns it again.
            _ => {
                hosts.changes.insert(host, None);
            }
        }
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn save_entries(&self) -> Result<Vec<Change>> {
        let changes = std::mem::take(&mut self.lock().changes);
        let bytes = |(host, politeness): (HostKey, Option<SavedPoliteness>)| {
            (host.as_str().as_bytes().to_vec(), politeness.map(SavedPoliteness::to_bytes))
        };
        Ok(changes.into_iter().map(bytes).collect())
    }
}
