//! Fixtures: pages that are stored with a project, so that callbacks are tested without a network.

use std::path::Path;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use huntsman_crawler::{Context, Error, Output, Page, Request, Response, Result, Settings, Spider};
use serde::Serialize;
use url::Url;

mod exchange;
mod expected;
mod failure;
mod secrets;

pub use exchange::{EXCHANGE_ENDING, Exchange, exchanges_in};
pub use expected::{Contract, Count, Expectation, ExpectedRequest};

pub(crate) use exchange::Head;
pub(crate) use failure::{FailedDownload, FailureHead, failures_in};

/// A page for tests of a callback: a stored exchange, a saved file or a text.
///
/// ```
/// use huntsman_crawler::{Output, Page, Result, spider_fn};
/// use huntsman_middleware::Fixture;
///
/// let titles = spider_fn(["https://books.example/"], |page: &Page, out: &mut Output<String>| {
///     out.items(page.css("h3::text")?.get_all().to_vec());
///     out.requests(page.follow_all("li.next a")?);
///     Ok(())
/// });
/// let page = Fixture::html("https://books.example/", "<h3>Mills</h3><h3>Dams</h3><li class=next><a href=/2>more</a>")?;
/// let given = page.parse(&titles).ok()?;
/// assert_eq!(given.items, ["Mills", "Dams"]);
/// assert_eq!(given.requests[0].url.as_str(), "https://books.example/2");
/// # Ok::<(), huntsman_crawler::Error>(())
/// ```
///
/// `Fixture::file("fixtures/books.fixture.json")` reads an exchange that `crawl --record` or the shell's `save fixture` stored, and
/// `Fixture::file("pages/books.html")?.at("https://books.example/")` a page that was saved otherwise.
#[derive(Clone, Debug)]
pub struct Fixture {
    request: Request,
    response: Response,
    settings: Settings,
}

/// What a callback gave for a fixture. Items and requests that were given before an error are kept.
#[derive(Debug)]
pub struct Given<I> {
    /// The items, in their order.
    pub items: Vec<I>,
    /// The requests, in their order, as the callback gave them: nothing was filtered.
    pub requests: Vec<Request>,
    /// The error of the callback.
    pub error: Option<Error>,
}

impl Fixture {
    /// A page of HTML.
    ///
    /// # Errors
    /// The URL is not valid.
    pub fn html(url: &str, body: impl Into<Bytes>) -> Result<Self> {
        let request = Request::parse(url)?;
        let response = Response::html(request.url.clone(), body);
        Ok(Self { request, response, settings: Settings::default() })
    }

    /// A stored exchange, if the name ends with `.fixture.json`, or else a saved page, whose media type the end of its name says. A saved page does
    /// not know its URL: [`at`](Self::at) gives it one.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged; the error names file and place.
    pub fn file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(EXCHANGE_ENDING) {
            return Ok(Self::of(Exchange::read(path)?));
        }
        let body = std::fs::read(path).map_err(|error| exchange::fault(path, &error.to_string()))?;
        let mut url = Url::parse("http://fixture.invalid/").expect("it is a URL");
        url.set_path(&name);
        let kind = match path.extension().and_then(|ending| ending.to_str()) {
            Some("json") => "application/json",
            Some("xml" | "rss" | "atom") => "application/xml",
            Some("txt" | "csv") => "text/plain",
            Some("html" | "htm" | "xhtml") => "text/html",
            _ => "",
        };
        let mut response = Response::new(url.clone(), StatusCode::OK, body);
        // Without a media type, the first bytes decide.
        if !kind.is_empty() {
            response.headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        Ok(Self { request: Request::get(url), response, settings: Settings::default() })
    }

    /// The page of an exchange.
    pub fn of(exchange: Exchange) -> Self {
        Self { request: exchange.request, response: exchange.response, settings: Settings::default() }
    }

    /// Sets the URL of the page, against which its links are resolved.
    ///
    /// # Errors
    /// The URL is not valid.
    pub fn at(mut self, url: &str) -> Result<Self> {
        let url = Request::parse(url)?.url;
        self.request.url = url.clone();
        self.response.url = url;
        Ok(self)
    }

    /// Changes the request, such as its callback: `.with_request(|request| request.callback("book"))`.
    pub fn with_request(mut self, change: impl FnOnce(Request) -> Request) -> Self {
        self.request = change(self.request);
        self
    }

    /// Sets the settings that a callback reads, such as the arguments of the spider (`spider_args`).
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// The page as a callback gets it.
    pub fn page(&self) -> Page {
        Page::new(self.request.clone(), self.response.clone())
    }

    /// Calls the callback of a spider. There is no engine: no middleware sees the page, nothing is fetched, and nothing that is given is filtered.
    pub fn parse<S: Spider>(&self, spider: &S) -> Given<S::Item> {
        let mut out = Output::new(Context::detached(self.settings.clone()));
        let error = spider.parse(&self.page(), &mut out).err();
        let (items, requests) = out.into_parts();
        Given { items, requests, error }
    }
}

impl<I> Given<I> {
    /// The same if the callback succeeded.
    ///
    /// # Errors
    /// The error of the callback.
    pub fn ok(self) -> Result<Self> {
        match self.error {
            None => Ok(self),
            Some(error) => Err(error),
        }
    }
}

impl<I: Serialize> Given<I> {
    /// What was given in the form of an expectation.
    ///
    /// # Errors
    /// An item has no form in JSON.
    pub fn to_expectation(&self) -> Result<Expectation> {
        let items: Result<Vec<_>, _> = self.items.iter().map(serde_json::to_value).collect();
        Ok(Expectation {
            items: items.map_err(|error| Error::from(error).context("an item has no form in JSON"))?,
            requests: self.requests.iter().map(ExpectedRequest::of).collect(),
            error: self.error.as_ref().map(ToString::to_string),
            contract: None,
        })
    }
}

#[cfg(test)]
mod tests;
