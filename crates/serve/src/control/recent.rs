//! The last requests that failed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use huntsman_crawler::{DropState, Event, Observer};
use serde::Serialize;

/// Number of failed requests that are kept.
const KEPT: usize = 50;
/// Longest kept text of a reason or a URL, in bytes.
const MAX_TEXT: usize = 500;

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RecentError {
    /// When it failed, RFC 3339.
    pub at: String,
    /// Its URL, without user and password.
    pub url: String,
    /// The reason with its detail: `http_status: 404`.
    pub why: String,
}

/// Keeps the last 50 requests of a crawl that failed, for [`Monitor`](super::Monitor). Add it to the crawl with
/// [`CrawlerBuilder::observer`](huntsman_crawler::CrawlerBuilder::observer); clones share what is kept.
#[derive(Clone, Debug, Default)]
pub struct RecentErrors(Arc<Mutex<VecDeque<RecentError>>>);

impl RecentErrors {
    /// The failed requests, newest first.
    pub fn all(&self) -> Vec<RecentError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().rev().cloned().collect()
    }
}

impl Observer for RecentErrors {
    fn event(&self, event: &Event<'_>) {
        let Event::RequestDropped(dropped) = event else { return };
        if dropped.state != DropState::Failed {
            return;
        }
        let cut = |text: &str| text[..text.floor_char_boundary(MAX_TEXT)].to_owned();
        let error = RecentError { at: dropped.at.clone(), url: cut(&dropped.url), why: cut(&dropped.why()) };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back(error);
    }
}
