//! A page: one response, decoded once, scanned once, shared by middlewares, detectors and the spider.

use std::cell::OnceCell;

use http::Extensions;
use serde::de::DeserializeOwned;
use url::Url;

use crate::error::{Error, Result};
use crate::request::Request;
use crate::response::Response;

/// What a spider sees. Lives on one worker thread; what is expensive is computed at first use and kept.
pub struct Page {
    request: Request,
    response: Response,
    text: OnceCell<String>,
    /// What plugins found, for the spider and for other plugins.
    pub extensions: Extensions,
}

impl Page {
    /// A page of a request and its response, with decoded body.
    pub fn new(request: Request, response: Response) -> Self {
        Self { request, response, text: OnceCell::new(), extensions: Extensions::new() }
    }

    /// The URL that answered.
    pub fn url(&self) -> &Url {
        &self.response.url
    }

    /// Label of the callback.
    pub fn callback(&self) -> &str {
        &self.request.callback
    }

    /// The request.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The response.
    pub fn response(&self) -> &Response {
        &self.response
    }

    /// The body as a document: decoded to text.
    pub fn html(&self) -> &str {
        self.text.get_or_init(|| String::from_utf8_lossy(&self.response.body).into_owned())
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// The body is not JSON of that shape.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(self.html())
            .map_err(|cause| Error::from(cause).context(format!("reading {} as JSON", self.url())))
    }
}

impl std::fmt::Debug for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Page").field("url", &self.url().as_str()).finish_non_exhaustive()
    }
}
