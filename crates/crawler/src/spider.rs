//! Spiders: they name the start requests and handle pages.

use crate::error::{Error, Result};
use crate::middleware::short_type_name;
use crate::output::Output;
use crate::page::Page;
use crate::request::Request;

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

    /// Returns the labels that `parse` handles; empty (default) means any. A queued request with an unknown label
    /// causes an error that names the label, instead of a call of the wrong code.
    fn callbacks(&self) -> &[&str] {
        &[]
    }

    /// Handles a page. Branch on `page.callback()` if requests have labels. Items and requests given before an error
    /// are kept.
    ///
    /// # Errors
    /// An error affects only this page: it is logged, counted under `spider_exceptions/` and recorded as a drop.
    fn parse(&self, page: &Page, out: &mut Output<Self::Item>) -> Result<()>;

    /// Handles a request that failed: there was no response, or its status is not passed to `parse`.
    ///
    /// # Errors
    /// An error is logged and counted.
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

/// A lazy source of start requests.
pub struct Start(Box<dyn Iterator<Item = Result<Request>> + Send>);

impl Start {
    /// Start requests from a list of URLs. A text that is not a URL is reported and ends the crawl as a start error.
    pub fn urls<I>(urls: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
        I::IntoIter: Send + 'static,
    {
        Self(Box::new(urls.into_iter().map(|url| Request::parse(url.as_ref()))))
    }

    /// Start requests that are given as values.
    pub fn requests<I>(requests: I) -> Self
    where
        I: IntoIterator<Item = Request>,
        I::IntoIter: Send + 'static,
    {
        Self(Box::new(requests.into_iter().map(Ok)))
    }

    /// Start requests from any iterator, such as several sources chained. An error is reported as a start error.
    pub fn new(requests: impl Iterator<Item = Result<Request>> + Send + 'static) -> Self {
        Self(Box::new(requests))
    }

    /// Start requests from text with one URL per line, which is read lazily during the crawl. Empty lines and lines
    /// that begin with `#` are skipped.
    pub fn lines(reader: impl std::io::BufRead + Send + 'static) -> Self {
        let requests = reader.lines().enumerate().filter_map(|(index, line)| match line {
            Ok(line) if line.trim().is_empty() || line.trim_start().starts_with('#') => None,
            Ok(line) => {
                let at = || format!("seed line {}", index + 1);
                Some(Request::parse(&line).map_err(|error| error.context(at())))
            }
            Err(error) => Some(Err(Error::from(error).context(format!("reading seed line {}", index + 1)))),
        });
        Self(Box::new(requests.fuse()))
    }

    /// No start requests: requests are pushed through the [`Handle`](crate::Handle).
    pub fn none() -> Self {
        Self(Box::new(std::iter::empty()))
    }
}

impl Iterator for Start {
    type Item = Result<Request>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Start(..)")
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
