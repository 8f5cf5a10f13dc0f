//! Components that act when a crawl has ended: they judge its report, or tell others of it.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

use crate::context::Context;
use crate::error::{Result, panic_message};
use crate::fetch::BoxFuture;
use crate::log;
use crate::report::CrawlReport;

/// The end of a crawl.
#[derive(Debug)]
pub struct CrawlEnd {
    /// Name of the spider.
    pub spider: String,
    /// The report, or the error that broke the crawl off. What a component changes here is the result of the crawl.
    pub result: Result<CrawlReport>,
}

/// Acts when the crawl has ended, whether it finished or broke off: all pipelines are closed, the job is saved, and the stats are final.
///
/// A component names it with [`Hooks::at_end`](crate::Hooks::at_end). Components act one after the other, in the order in which they were
/// added; the report is returned when the last one is done, so one that waits needs a deadline. A panic is logged and changes nothing.
///
/// ```
/// use huntsman_crawler::{AtEnd, Component, Context, CrawlEnd, FailedRule, Hooks};
///
/// /// A crawl at night must not be short.
/// struct Nightly;
///
/// impl Component for Nightly {
///     const NAME: &'static str = "nightly";
///     type Settings = ();
///
///     fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
///         hooks.at_end()
///     }
/// }
///
/// impl AtEnd for Nightly {
///     async fn at_end(&self, end: &mut CrawlEnd, _: &Context) {
///         if let Ok(report) = &mut end.result
///             && report.pages < 1_000
///         {
///             let why = format!("it has {}", report.pages);
///             report.failed_rules.push(FailedRule { rule: "a thousand pages".to_owned(), why });
///         }
///     }
/// }
/// ```
pub trait AtEnd: Send + Sync + 'static {
    /// Called once per crawl. Downloads through the context fail, because the engine has ended.
    fn at_end(&self, end: &mut CrawlEnd, cx: &Context) -> impl Future<Output = ()> + Send;
}

/// Object-safe version of [`AtEnd`].
pub(crate) trait DynAtEnd: Send + Sync {
    fn at_end<'a>(&'a self, end: &'a mut CrawlEnd, cx: &'a Context) -> BoxFuture<'a, ()>;
}

impl<T: AtEnd> DynAtEnd for T {
    fn at_end<'a>(&'a self, end: &'a mut CrawlEnd, cx: &'a Context) -> BoxFuture<'a, ()> {
        Box::pin(AtEnd::at_end(self, end, cx))
    }
}

/// Lets all parts act on the end of a crawl.
pub(crate) async fn act(parts: &[std::sync::Arc<dyn DynAtEnd>], end: &mut CrawlEnd, cx: &Context) {
    for part in parts {
        let acted = AssertUnwindSafe(async { part.at_end(end, cx).await }).catch_unwind().await;
        if let Err(panic) = acted {
            log::error!("a component panicked at the end of the crawl: {}", panic_message(&*panic));
        }
    }
}
