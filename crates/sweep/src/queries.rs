//! The queries of a check: to search engines, to indexes, to the article itself.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;

use super::candidates::{Candidate, CandidateError, CandidateSource, FindFuture, Subject};

/// A query, with the candidate source that gets it.
pub(crate) type Query<'s> = (&'s dyn CandidateSource, String);

/// The queries to these candidate sources, in order. The empty string does not count as a query; of the others there
/// are at most `max_queries`.
pub(crate) fn plan<'s>(
    subject: &Subject,
    sources: &'s [Arc<dyn CandidateSource>],
    max_queries: usize,
) -> Vec<Query<'s>> {
    let mut left = max_queries;
    let mut plan = Vec::new();
    for source in sources {
        for query in source.queries(subject) {
            if !query.is_empty() {
                if left == 0 {
                    break;
                }
                left -= 1;
            }
            plan.push((&**source, query));
        }
    }
    plan
}

/// Queries that run one after the other.
pub(crate) struct Queries<'q> {
    subject: &'q Subject,
    plan: &'q [Query<'q>],
    /// The query in progress.
    current: Option<FindFuture<'q>>,
    /// Number of queries that were started, and how many of them were the empty string.
    started: usize,
    free: usize,
    /// Number of queries that ended without a panic.
    answered: usize,
}

/// The result of a query.
#[derive(Debug)]
pub(crate) struct QueryResult {
    /// The name of the candidate source.
    pub(crate) by: Arc<str>,
    pub(crate) found: Result<Vec<Candidate>, CandidateError>,
}

impl<'q> Queries<'q> {
    pub(crate) fn new(subject: &'q Subject, plan: &'q [Query<'q>]) -> Self {
        Self { subject, plan, current: None, started: 0, free: 0, answered: 0 }
    }

    /// The next result; `None` if there are no more queries. If this future is dropped, the current query continues
    /// with the next call. If a candidate source panics, only this query fails.
    pub(crate) async fn next(&mut self) -> Option<QueryResult> {
        if self.current.is_none() {
            let (source, query) = self.plan.get(self.started)?;
            self.started += 1;
            self.free += usize::from(query.is_empty());
            self.current = Some(source.find(self.subject, query));
        }
        let (source, _) = &self.plan[self.started - 1];
        let found = AssertUnwindSafe(self.current.as_mut()?).catch_unwind().await;
        self.current = None;
        self.answered += usize::from(found.is_ok());
        let panicked = |_| Err(CandidateError::Failed("it panicked".to_owned()));
        Some(QueryResult { by: source.name().into(), found: found.unwrap_or_else(panicked) })
    }

    /// Whether a query has no result yet.
    pub(crate) fn are_left(&self) -> bool {
        self.current.is_some() || self.started < self.plan.len()
    }

    /// Number of queries that were started.
    pub(crate) fn count(&self) -> usize {
        self.started - self.free
    }

    /// Whether a query was left out or failed.
    pub(crate) fn may_have_missed(&self) -> bool {
        self.answered < self.plan.len()
    }
}
