//! The fetches of a client that are queued or in flight, and the callers that wait for them.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::error::ClientError;
use crate::drop::Dropped;
use crate::request::{Fingerprint, Request};
use crate::response::Response;

/// The meta key of a request that callers of a client wait for.
const META: &str = "client_fetch";

/// Identifies one fetch of one client. It is stored in the meta of the request and kept through redirects and
/// retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FetchId(u64);

impl FetchId {
    /// The fetch that a request belongs to. A request that a middleware sends in addition (robots.txt) belongs to
    /// none.
    pub(crate) fn of(request: &Request) -> Option<Self> {
        if request.meta.is_empty() || request.is_nested() {
            return None;
        }
        request.meta.get(META)?.as_u64().map(Self)
    }

    /// Assigns the fetch of a request to the request that replaces it, even if a middleware created that one from
    /// scratch.
    pub(crate) fn inherit_fetch(from: &Request, to: &mut Request) {
        if let Some(Self(id)) = Self::of(from) {
            to.meta.insert(META.to_owned(), id.into());
        }
    }

    pub(super) fn mark(self, request: Request) -> Request {
        request.meta(META, self.0)
    }
}

/// Two requests with the same key, fingerprint and label, are for the same page.
type Key = (Fingerprint, Arc<str>);

type Outcome<T> = Option<Result<T, ClientError>>;

/// All fetches of a client.
pub(super) struct Fetches<T>(Mutex<State<T>>);

struct State<T> {
    last: u64,
    fetches: HashMap<FetchId, Arc<OpenFetch<T>>>,
    by_key: HashMap<Key, FetchId>,
    /// Why the crawl has ended; `None` while it runs.
    ended: Option<Arc<str>>,
}

/// One fetch. Its callers hold the receivers of its result.
pub(super) struct OpenFetch<T> {
    key: Key,
    outcome: watch::Sender<Outcome<T>>,
    has_begun: AtomicBool,
    /// A response that does not become a page; kept until the record of the drop arrives.
    response: Mutex<Option<Response>>,
}

/// The registration of one caller of a fetch.
pub(super) struct Registration<T> {
    pub(super) shared: Arc<OpenFetch<T>>,
    pub(super) outcome: watch::Receiver<Outcome<T>>,
    /// Set for the first caller: the fetch has to be queued under this id.
    pub(super) to_queue: Option<FetchId>,
}

impl<T> OpenFetch<T> {
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }
}

impl<T> Fetches<T> {
    pub(super) fn new() -> Self {
        // A job may still have requests of an earlier client; their ids must not collide with new ones.
        let last = rand::random::<u64>() >> 1;
        let state = State { last, fetches: HashMap::new(), by_key: HashMap::new(), ended: None };
        Self(Mutex::new(state))
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_ended(&self) -> bool {
        self.lock().ended.is_some()
    }

    /// Registers a caller for a page that other callers already wait for, or as the first caller.
    pub(super) fn join(&self, key: Key) -> Result<Registration<T>, ClientError> {
        let mut state = self.lock();
        if let Some(reason) = &state.ended {
            return Err(ClientError::Ended { reason: Arc::clone(reason) });
        }
        if let Some(shared) = state.by_key.get(&key).and_then(|id| state.fetches.get(id)) {
            let outcome = shared.outcome.subscribe();
            return Ok(Registration { shared: Arc::clone(shared), outcome, to_queue: None });
        }
        state.last += 1;
        let id = FetchId(state.last);
        let (sender, outcome) = watch::channel(None);
        let shared = Arc::new(OpenFetch {
            key: key.clone(),
            outcome: sender,
            has_begun: AtomicBool::new(false),
            response: Mutex::new(None),
        });
        state.by_key.insert(key, id);
        state.fetches.insert(id, Arc::clone(&shared));
        Ok(Registration { shared, outcome, to_queue: Some(id) })
    }

    /// Whether a caller waits for a fetch. If there is none, the fetch is forgotten in the same step, so that the
    /// next caller starts a new one.
    pub(super) fn is_wanted(&self, id: FetchId) -> bool {
        self.lock().wanted(id).is_some()
    }

    /// Marks that a fetch leaves the queue. Returns whether a caller still waits for it.
    pub(super) fn begin(&self, id: FetchId) -> bool {
        let mut state = self.lock();
        let wanted = state.wanted(id);
        wanted.inspect(|shared| shared.has_begun.store(true, Ordering::Relaxed)).is_some()
    }

    /// Returns when a fetch has had no callers for as long as `grace`; the fetch is forgotten then.
    pub(super) async fn given_up(&self, id: FetchId, grace: Duration) {
        let Some(shared) = self.lock().fetches.get(&id).map(Arc::clone) else { return };
        loop {
            shared.outcome.closed().await;
            tokio::time::sleep(grace).await;
            if !self.is_wanted(id) {
                return;
            }
        }
    }

    /// Stores a response that does not become a page.
    pub(super) fn store_response(&self, id: FetchId, response: Response) {
        if let Some(shared) = self.lock().fetches.get(&id) {
            *shared.response.lock().unwrap_or_else(PoisonError::into_inner) = Some(response);
        }
    }

    /// Delivers the page of a fetch to its callers.
    pub(super) fn deliver(&self, id: FetchId, page: T) {
        if let Some(shared) = self.lock().remove(id) {
            shared.outcome.send_replace(Some(Ok(page)));
        }
    }

    /// Reports to the callers that the request of a fetch ended without a page.
    pub(super) fn fail(&self, id: FetchId, dropped: &Dropped) {
        let Some(shared) = self.lock().remove(id) else { return };
        let response = shared.response.lock().unwrap_or_else(PoisonError::into_inner).take().map(Arc::new);
        let error = ClientError::Dropped { dropped: Arc::new(dropped.clone()), response };
        shared.outcome.send_replace(Some(Err(error)));
    }

    /// Reports to all callers, present and later ones, that the crawl has ended. If it is called again, the first
    /// reason is kept.
    pub(super) fn end(&self, reason: &str) {
        let mut state = self.lock();
        let reason = Arc::clone(state.ended.get_or_insert_with(|| reason.into()));
        state.by_key.clear();
        let fetches = std::mem::take(&mut state.fetches);
        drop(state);
        for shared in fetches.into_values() {
            shared.outcome.send_replace(Some(Err(ClientError::Ended { reason: Arc::clone(&reason) })));
        }
    }
}

impl<T> State<T> {
    fn wanted(&mut self, id: FetchId) -> Option<&OpenFetch<T>> {
        if self.fetches.get(&id)?.outcome.receiver_count() == 0 {
            self.remove(id);
        }
        self.fetches.get(&id).map(|shared| &**shared)
    }

    fn remove(&mut self, id: FetchId) -> Option<Arc<OpenFetch<T>>> {
        let shared = self.fetches.remove(&id)?;
        self.by_key.remove(&shared.key);
        Some(shared)
    }
}

impl<T> fmt::Debug for Fetches<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetches").field("open", &self.lock().fetches.len()).finish_non_exhaustive()
    }
}
