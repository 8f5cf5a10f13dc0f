//! Spiders: they name the start requests and handle pages.

use crate::error::{Error, Result};
use crate::middleware::short_type_name;
use crate::output::Output;
use crate::page::Page;
use crate::request::{DEFAULT_CALLBACK, Request};
use crate::route::RouteError;
use crate::start::Start;

/// Defines a crawl: its start requests and its callbacks.
///
/// `parse` is synchronous: it is CPU work, runs on a worker thread beside the network tasks, and may use a tree that
/// is not `Send`. A callback that has to wait for a future uses [`Context::block_on`](crate::Context::block_on).
pub trait Spider: Send + Sync + 'static {
    /// The type of the items. A spider with several kinds of items uses an enum.
    type Item: Send + 'static;

    /// Name in logs and reports; by default the name of the type.
    fn name(&self) -> &str {
        short_type_name::<Self>()
    }

    /// Returns the start requests. They are pulled lazily while the frontier has room.
    fn start(&self) -> Start;

    /// Returns the labels that `parse` handles besides [`DEFAULT_CALLBACK`]; empty (default) means any. A queued request with an unknown label
    /// causes an error that names the label, instead of a call of the wrong code. A spider whose callbacks are an enum
    /// ([`Page::route`]) needs no such list.
    fn callbacks(&self) -> &[&str] {
        &[]
    }

    /// Handles a page. Branch on [`Page::route`] or [`Page::callback`] if there is more than one callback. Items and requests given before an error
    /// are kept.
    ///
    /// # Errors
    /// An error affects only this page: it is logged, counted under `spider_exceptions/` and recorded as a drop.
    #[doc(alias = "parse_start_url")]
    fn parse(&self, page: &Page, out: &mut Output<Self::Item>) -> Result<()>;

    /// Handles a request that failed: there was no response, or its status is not passed to `parse`. [`Request::route`] gives its route back.
    ///
    /// # Errors
    /// An error is logged and counted.
    #[doc(alias = "errback")]
    fn failed(&self, request: &Request, error: &Error, out: &mut Output<Self::Item>) -> Result<()> {
        let _ = (request, error, out);
        Ok(())
    }

    /// Returns the hosts that links and redirects may lead to, including their subdomains; empty (default) means all.
    /// The engine calls this for every page and before every download, so the result may change during the crawl. Start
    /// requests, unfiltered requests and requests with meta `allow_offsite` are always allowed.
    fn allowed_domains(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the settings that this spider changes. They override the project file and are overridden by the command
    /// line.
    fn settings(&self) -> Vec<(&'static str, serde_json::Value)> {
        Vec::new()
    }
}

/// Checks the label of a page for a wrapper around a spider. The engine cannot: the wrapper has labels of its own.
pub(crate) fn check_label<S: Spider + ?Sized>(spider: &S, page: &Page) -> Result<()> {
    let (labels, label) = (spider.callbacks(), &*page.requested().callback);
    match labels.is_empty() || label == DEFAULT_CALLBACK || labels.contains(&label) {
        true => Ok(()),
        false => Err(RouteError::unknown_label(page.requested(), labels).into()),
    }
}

/// A spider made of seeds and a closure, for short programs.
///
/// The types of the closure's arguments must be written out: `|page: &Page, out: &mut Output<T>| { .. }`.
pub fn spider_fn<T, F, I>(seeds: I, parse: F) -> SpiderFn<F, T>
where
    T: Send + 'static,
    F: Fn(&Page, &mut Output<T>) -> Result<()> + Send + Sync + 'static,
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    let seeds = seeds.into_iter().map(|seed| seed.as_ref().to_owned()).collect();
    SpiderFn { seeds, parse, item: std::marker::PhantomData }
}

/// The spider that [`spider_fn`] makes.
pub struct SpiderFn<F, T> {
    seeds: Vec<String>,
    parse: F,
    item: std::marker::PhantomData<fn() -> T>,
}

impl<F, T> std::fmt::Debug for SpiderFn<F, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpiderFn").field("seeds", &self.seeds).finish_non_exhaustive()
    }
}

impl<F, T> Spider for SpiderFn<F, T>
where
    T: Send + 'static,
    F: Fn(&Page, &mut Output<T>) -> Result<()> + Send + Sync + 'static,
{
    type Item = T;

    fn name(&self) -> &str {
        "spider_fn"
    }

    fn start(&self) -> Start {
        Start::urls(self.seeds.clone())
    }

    fn parse(&self, page: &Page, out: &mut Output<T>) -> Result<()> {
        (self.parse)(page, out)
    }
}
