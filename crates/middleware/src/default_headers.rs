//! DefaultHeaders: headers that every request has unless it says otherwise.

use http::{HeaderName, HeaderValue};
use huntsman_crawler::{Context, DownloaderMiddleware, Error, OnRequest, Request, Result, Settings};

use crate::added;

/// Sets the `default_request_headers` that a request does not have.
#[derive(Debug)]
pub struct DefaultHeaders {
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl DefaultHeaders {
    /// The name in settings and records.
    pub const NAME: &'static str = "default_headers";
    /// The place in the chain.
    pub const ORDER: i32 = 400;

    /// Not configured if there are no such headers.
    ///
    /// # Errors
    /// A name or a value is not allowed in HTTP.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let mut headers = Vec::with_capacity(settings.default_request_headers.len());
        for (name, value) in &settings.default_request_headers {
            let wrong = |what: &str| {
                Error::usage(format!(
                    "setting default_request_headers: {what} of \"{}\" is not allowed in HTTP",
                    name.escape_debug()
                ))
            };
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("the name"))?;
            let value = HeaderValue::from_str(value).map_err(|_| wrong("the value"))?;
            headers.push((key, value));
        }
        Ok((!headers.is_empty()).then_some(Self { headers }))
    }
}

impl DownloaderMiddleware for DefaultHeaders {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn order(&self) -> i32 {
        Self::ORDER
    }

    async fn process_request(&self, request: &mut Request, _: &Context) -> Result<OnRequest> {
        for (name, value) in &self.headers {
            added::set_if_absent(request, name.clone(), value.clone());
        }
        Ok(OnRequest::Continue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_header_of_the_request_is_kept() {
        let settings = Settings::default();
        let defaults = DefaultHeaders::from_settings(&settings).unwrap().unwrap();
        let mut request = Request::parse("http://h/").unwrap().header("accept-language", "de").unwrap();
        defaults.process_request(&mut request, &Context::detached(settings)).await.unwrap();
        assert_eq!(request.headers["accept-language"], "de");
        assert!(request.headers["accept"].to_str().unwrap().starts_with("text/html"));
    }

    #[test]
    fn a_header_that_http_does_not_allow_is_named() {
        let mut settings = Settings::default();
        settings.default_request_headers.insert("X-A".to_owned(), "a\r\nX-B: c".to_owned());
        let error = DefaultHeaders::from_settings(&settings).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("X-A"), "{error}");
    }
}
