//! Counts how often each request was returned to the queue in this run, so that no request is fetched for ever.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::request::Fingerprint;

/// A request that was returned to the queue this often without being settled is dropped with the reason `given_back`.
pub(crate) const MAX_RELEASES: u32 = 3;

/// The counts of one run. Runs that were killed do not count, because a slow page may be in flight at every kill.
#[derive(Debug, Default)]
pub(crate) struct ReleaseCounts(Mutex<HashMap<Fingerprint, u32>>);

impl ReleaseCounts {
    /// Counts a request that is about to be returned to the queue. Returns whether the limit is reached.
    pub(crate) fn count_release(&self, request: Fingerprint) -> bool {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(request).or_default();
        *count += 1;
        *count >= MAX_RELEASES
    }

    /// Forgets a request that was settled.
    pub(crate) fn forget(&self, request: Fingerprint) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Fingerprinter, Request};
    use crate::settings::Settings;

    #[test]
    fn each_request_has_its_own_count_which_is_forgotten_when_it_is_settled() {
        let fingerprinter = Fingerprinter::from_settings(&Settings::default()).unwrap();
        let [a, b] = ["http://h.example/a", "http://h.example/b"]
            .map(|url| fingerprinter.of(&Request::parse(url).unwrap()));
        let counts = ReleaseCounts::default();
        assert_eq!([a, b, a, a].map(|request| counts.count_release(request)), [false, false, false, true]);
        counts.forget(a);
        assert_eq!([a, b, b].map(|request| counts.count_release(request)), [false, false, true]);
    }
}
