//! Start requests: a lazy source of them, from lists, files or any iterator.

use serde::Serialize;

use crate::error::{Error, Result};
use crate::request::Request;
use crate::route::StoredRoute;

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

    /// Gives every request of this source a route: `Start::urls(urls).to(To::List)`; see [`Request::to`].
    ///
    /// A value that is no variant of an enum in serde's default form is reported as a start error.
    pub fn to<T: Serialize>(self, route: T) -> Self {
        match StoredRoute::of(&route) {
            Ok(route) => Self(Box::new(self.0.map(move |request| {
                let mut request = request?;
                route.put(&mut request);
                Ok(request)
            }))),
            Err(error) => Self(Box::new(std::iter::once(Err(error)))),
        }
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
