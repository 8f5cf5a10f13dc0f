//! The scripts and styles that are kept for the crawl, so that each costs its host one request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use huntsman_browser::{Answer, Refused};
use huntsman_crawler::{SentMark, Timestamp};
use tokio::sync::OnceCell;

/// How long an answer is kept at least, whatever its headers say: pages of one crawl shall see one version of a script.
const LEAST: Duration = Duration::from_secs(3_600);

/// Answers by cookie jar and address. Requests for one address share one fetch.
pub(super) struct Kept {
    limit: u64,
    state: Mutex<State>,
}

/// The name of the cookie jar, and the address.
pub(super) type Key = (String, String);

#[derive(Default)]
struct State {
    entries: HashMap<Key, Entry>,
    bytes: u64,
    /// Counts uses.
    clock: u64,
}

struct Entry {
    fetch: Arc<Fetch>,
    bytes: u64,
    used: u64,
    until: Timestamp,
}

/// A fetch that may be under way.
#[derive(Default)]
struct Fetch {
    answer: OnceCell<Result<Answer, Refused>>,
    sent: SentMark,
}

impl Kept {
    /// Keeps at most so many bytes.
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, state: Mutex::default() }
    }

    /// The answer of this address, and whether it was there or fetched by another page. `join` is called with the mark of the fetch that is
    /// waited for.
    pub(super) async fn answer<F>(
        &self,
        key: Key,
        now: Timestamp,
        join: impl FnOnce(SentMark),
        fetch: impl FnOnce(SentMark) -> F,
    ) -> (Result<Answer, Refused>, bool)
    where
        F: Future<Output = Result<Answer, Refused>>,
    {
        let shared = self.lock().fetch(&key, now);
        join(shared.sent.clone());
        let mut is_ours = false;
        let fetched = async {
            is_ours = true;
            fetch(shared.sent.clone()).await
        };
        // If the page that fetches is given up, the next one that waits fetches.
        let answer = shared.answer.get_or_init(|| fetched).await.clone();
        if is_ours {
            self.lock().fetched(&key, &shared, &answer, now, self.limit);
        }
        (answer, !is_ours)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The fetch of this address; a new one if there is none, or its answer is too old.
    fn fetch(&mut self, key: &Key, now: Timestamp) -> Arc<Fetch> {
        self.clock += 1;
        if let Some(entry) = self.entries.get_mut(key)
            && (entry.fetch.answer.get().is_none() || now < entry.until)
        {
            entry.used = self.clock;
            return Arc::clone(&entry.fetch);
        }
        self.remove(key);
        let fetch = Arc::new(Fetch::default());
        let entry = Entry { fetch: Arc::clone(&fetch), bytes: 0, used: self.clock, until: now + LEAST };
        self.entries.insert(key.clone(), entry);
        fetch
    }

    /// Keeps an answer that was fetched, if another page may use it.
    fn fetched(
        &mut self,
        key: &Key,
        fetch: &Arc<Fetch>,
        answer: &Result<Answer, Refused>,
        now: Timestamp,
        limit: u64,
    ) {
        let Some(entry) = self.entries.get_mut(key).filter(|entry| Arc::ptr_eq(&entry.fetch, fetch)) else {
            return;
        };
        let Some(answer) = answer.as_ref().ok().filter(|answer| answer.status == 200) else {
            self.remove(key);
            return;
        };
        entry.bytes = answer.body.len() as u64;
        entry.until = now + max_age(answer).max(LEAST);
        self.bytes += entry.bytes;
        while self.bytes > limit {
            let done = self.entries.iter().filter(|(_, entry)| entry.fetch.answer.get().is_some());
            let Some(oldest) = done.min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone()) else {
                return;
            };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }
}

/// How long the answer is fresh by its `Cache-Control`; nothing if it does not say.
fn max_age(answer: &Answer) -> Duration {
    let controls = answer.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("cache-control"));
    let mut parts = controls.flat_map(|(_, value)| value.split(','));
    let seconds = parts.find_map(|part| part.trim().strip_prefix("max-age=")?.parse().ok());
    Duration::from_secs(seconds.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;

    use super::*;

    const NOW: Timestamp = Timestamp(1_700_000_000_000_000);

    fn answer(status: u16, bytes: usize) -> Answer {
        Answer { status, headers: Vec::new(), body: Bytes::from(vec![b'x'; bytes]) }
    }

    fn key(url: &str) -> Key {
        (String::new(), url.to_owned())
    }

    /// Asks for an address at a time; returns whether that fetched it.
    async fn fetches(kept: &Kept, url: &str, at: Timestamp, answer: Answer) -> bool {
        let (given, was_there) = kept.answer(key(url), at, |_| (), |_| async { Ok(answer) }).await;
        given.unwrap();
        !was_there
    }

    #[tokio::test]
    async fn pages_that_start_together_share_one_fetch() {
        let kept = Kept::new(1_000);
        let fetched = AtomicUsize::new(0);
        let ask = || {
            kept.answer(
                key("/a.js"),
                NOW,
                |_| (),
                |_| async {
                    tokio::task::yield_now().await;
                    fetched.fetch_add(1, Ordering::Relaxed);
                    Ok(answer(200, 10))
                },
            )
        };
        let (first, second, third) = tokio::join!(ask(), ask(), ask());
        assert_eq!((first.1, second.1, third.1), (false, true, true));
        assert_eq!(fetched.into_inner(), 1);
        assert_eq!(second.0.unwrap().body.len(), 10);
    }

    #[tokio::test]
    async fn an_answer_is_kept_for_an_hour_whatever_it_says_and_longer_if_it_says_so() {
        let kept = Kept::new(1_000);
        let mut says_no = answer(200, 10);
        says_no.headers.push(("Cache-Control".to_owned(), "no-store, max-age=0".to_owned()));
        assert!(fetches(&kept, "/a.js", NOW, says_no.clone()).await);
        assert!(!fetches(&kept, "/a.js", NOW + Duration::from_secs(3_599), says_no.clone()).await);
        assert!(fetches(&kept, "/a.js", NOW + Duration::from_secs(3_600), says_no).await);
        let mut says_long = answer(200, 10);
        says_long.headers.push(("cache-control".to_owned(), "public, max-age=7200".to_owned()));
        assert!(fetches(&kept, "/b.js", NOW, says_long.clone()).await);
        assert!(!fetches(&kept, "/b.js", NOW + Duration::from_secs(7_199), says_long).await);
    }

    #[tokio::test]
    async fn failures_are_shared_but_not_kept() {
        let kept = Kept::new(1_000);
        assert!(fetches(&kept, "/a.js", NOW, answer(503, 10)).await);
        assert!(fetches(&kept, "/a.js", NOW, answer(200, 10)).await);
        let refused = Refused { reason: "robots".to_owned() };
        let (given, _) = kept.answer(key("/b.js"), NOW, |_| (), |_| async { Err(refused) }).await;
        assert_eq!(given.unwrap_err().reason, "robots");
        assert!(fetches(&kept, "/b.js", NOW, answer(200, 10)).await);
        assert_eq!(kept.lock().bytes, 20);
    }

    #[tokio::test]
    async fn what_was_not_used_for_longest_goes_first() {
        let kept = Kept::new(25);
        assert!(fetches(&kept, "/a.js", NOW, answer(200, 10)).await);
        assert!(fetches(&kept, "/b.js", NOW, answer(200, 10)).await);
        assert!(!fetches(&kept, "/a.js", NOW, answer(200, 10)).await);
        assert!(fetches(&kept, "/c.js", NOW, answer(200, 10)).await);
        assert!(!fetches(&kept, "/a.js", NOW, answer(200, 10)).await);
        assert!(fetches(&kept, "/b.js", NOW, answer(200, 10)).await);
        assert!(fetches(&kept, "/huge.js", NOW, answer(200, 26)).await, "more than the limit is not kept");
        assert!(kept.lock().bytes <= 25);
    }

    #[tokio::test]
    async fn a_page_that_is_given_up_leaves_its_fetch_to_the_next() {
        let kept = Kept::new(1_000);
        let never = kept.answer(key("/a.js"), NOW, |_| (), |_| std::future::pending());
        let given_up = tokio::time::timeout(Duration::ZERO, never).await;
        assert!(given_up.is_err());
        assert!(fetches(&kept, "/a.js", NOW, answer(200, 10)).await);
    }
}
