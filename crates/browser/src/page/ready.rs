//! When a page is ready.

use std::time::{Duration, Instant};

use super::Page;
use super::script::{Fault, literal};
use crate::Ready;

/// Time without a request in flight.
const NO_REQUEST: Duration = Duration::from_millis(500);
/// Time without a change of the tree.
const NO_CHANGE: Duration = Duration::from_millis(300);
/// How often a selector or an expression is tried.
const LOOK: Duration = Duration::from_millis(100);

impl Page {
    /// Returns when the page is ready.
    pub(super) async fn ready(&self, ready: &Ready) -> Result<(), Fault> {
        match ready {
            Ready::Quiet => self.quiet().await,
            Ready::Selector(selector) => {
                let expression = format!("!!huntsman.find({})", literal(selector));
                self.until_true(|| self.look(&expression), true).await
            }
            Ready::Expression(expression) => {
                let expression = format!("!!({expression})");
                self.until_true(|| self.evaluate(&expression), false).await
            }
        }
    }

    /// Returns when the page is loaded, asks for nothing, and does not change.
    pub(super) async fn quiet(&self) -> Result<(), Fault> {
        loop {
            let idle_since = self.idle().await;
            // What it asks waits until the page has time, so all that it had to do is done.
            let unchanged = match self.look("huntsman.unchanged()").await {
                Ok(unchanged) => Duration::from_millis(unchanged.as_f64().unwrap_or_default() as u64),
                Err(Fault::Gone) => Duration::ZERO,
                Err(fault) => return Err(fault),
            };
            let is_same = {
                let state = self.state();
                state.is_idle() && state.idle_since == idle_since
            };
            if is_same && unchanged >= NO_CHANGE {
                return Ok(());
            }
            tokio::time::sleep(NO_CHANGE.saturating_sub(unchanged)).await;
        }
    }

    /// Returns when no request was in flight for a while; since when.
    async fn idle(&self) -> Instant {
        loop {
            let since = self.until(|state| state.is_idle().then_some(state.idle_since)).await;
            tokio::time::sleep(NO_REQUEST.saturating_sub(since.elapsed())).await;
            let state = self.state();
            if state.is_idle() && state.idle_since == since {
                return since;
            }
        }
    }

    async fn until_true<F>(&self, look: impl Fn() -> F, is_strict: bool) -> Result<(), Fault>
    where
        F: Future<Output = Result<serde_json::Value, Fault>>,
    {
        self.until(|state| state.document.is_some().then_some(())).await;
        loop {
            match look().await {
                Ok(value) if value == true => return Ok(()),
                Err(Fault::Thrown(reason)) if is_strict => return Err(Fault::Thrown(reason)),
                Err(Fault::Ended) => return Err(Fault::Ended),
                _ => tokio::time::sleep(LOOK).await,
            }
        }
    }
}
