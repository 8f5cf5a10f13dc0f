//! The queries of a check: to search engines, to indexes, to the article itself.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;

use super::candidates::{Candidate, CandidateError, CandidateSource, Finding, Subject};

/// A query, with the finder that answers it.
pub(crate) type Question<'s> = (&'s dyn CandidateSource, String);

/// The queries of these finders, in order. The empty string does not count as a query; of the others there are at most
/// `max_queries`.
pub(crate) fn plan<'s>(
    subject: &Subject,
    finders: &'s [Arc<dyn CandidateSource>],
    max_queries: usize,
) -> Vec<Question<'s>> {
    let mut left = max_queries;
    let mut plan = Vec::new();
    for finder in finders {
        for question in finder.questions(subject) {
            if !question.is_empty() {
                if left == 0 {
                    break;
                }
                left -= 1;
            }
            plan.push((&**finder, question));
        }
    }
    plan
}

/// Questions that are put one after the other.
pub(crate) struct Questions<'q> {
    subject: &'q Subject,
    plan: &'q [Question<'q>],
    /// The question that waits for its answer.
    current: Option<Finding<'q>>,
    /// How many were put, and how many of them were no query.
    put: usize,
    free: usize,
    answered: usize,
}

/// The answer to a question.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The name of the finder that was asked.
    pub(crate) by: Arc<str>,
    pub(crate) found: Result<Vec<Candidate>, CandidateError>,
}

impl<'q> Questions<'q> {
    pub(crate) fn new(subject: &'q Subject, plan: &'q [Question<'q>]) -> Self {
        Self { subject, plan, current: None, put: 0, free: 0, answered: 0 }
    }

    /// The next answer; `None` if there are no more queries. If this future is dropped, the current query continues
    /// with the next call. If a finder panics, only this query fails.
    pub(crate) async fn next(&mut self) -> Option<Answer> {
        if self.current.is_none() {
            let (finder, question) = self.plan.get(self.put)?;
            self.put += 1;
            self.free += usize::from(question.is_empty());
            self.current = Some(finder.find(self.subject, question));
        }
        let (finder, _) = &self.plan[self.put - 1];
        let found = AssertUnwindSafe(self.current.as_mut()?).catch_unwind().await;
        self.current = None;
        self.answered += usize::from(found.is_ok());
        let panicked = |_| Err(CandidateError::Failed("it panicked".to_owned()));
        Some(Answer { by: finder.name().into(), found: found.unwrap_or_else(panicked) })
    }

    /// Whether a query is not answered yet.
    pub(crate) fn are_left(&self) -> bool {
        self.current.is_some() || self.put < self.plan.len()
    }

    /// Queries that were put.
    pub(crate) fn queries(&self) -> usize {
        self.put - self.free
    }

    /// Whether a query was left out or failed.
    pub(crate) fn may_have_missed(&self) -> bool {
        self.answered < self.plan.len()
    }
}
