//! DefaultHeaders: headers that every request gets unless it sets them itself.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use huntsman_crawler::{
    Component, Context, DownloaderMiddleware, Error, Hooks, OnRequest, Request, Result, Settings,
    is_secret_name, settings,
};

use crate::added;

settings! {
    /// Settings of [`DefaultHeaders`].
    pub struct DefaultHeadersSettings {
        /// Headers that are added to every request that does not have them, whatever the host; the case of names does
        /// not matter. Credentials are refused here: see http_auth and secret_headers.
        default_request_headers: BTreeMap<String, String> = BTreeMap::from([
            ("Accept".to_owned(), "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8".to_owned()),
            ("Accept-Language".to_owned(), "en".to_owned()),
        ]), headers;
    }
}

/// Sets the `default_request_headers` that a request does not have. They are sent to every host, so credentials are
/// refused: those belong in `http_auth` and `secret_headers`, each with its origin.
#[derive(Debug)]
pub struct DefaultHeaders {
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl DefaultHeaders {
    /// Creates the component from the settings; `None` if the setting is empty.
    ///
    /// # Errors
    /// A name or a value is not allowed in HTTP, a name is given twice, or a header carries credentials.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: DefaultHeadersSettings = settings.of()?;
        let mut headers: Vec<(HeaderName, HeaderValue)> =
            Vec::with_capacity(own.default_request_headers.len());
        for (name, value) in &own.default_request_headers {
            let wrong = |what: &str| {
                Error::usage(format!(
                    "setting default_request_headers: {what} of \"{}\" is not allowed in HTTP",
                    name.escape_debug()
                ))
            };
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("the name"))?;
            let value = HeaderValue::from_str(value).map_err(|_| wrong("the value"))?;
            if is_secret_name(&key) {
                return Err(Error::usage(secret(name, &key)));
            }
            if headers.iter().any(|(known, _)| *known == key) {
                return Err(Error::usage(format!(
                    "setting default_request_headers: {key} is given twice, in different case"
                )));
            }
            headers.push((key, value));
        }
        Ok((!headers.is_empty()).then_some(Self { headers }))
    }
}

/// The error message for a header with credentials: why it is refused, and what to use. The message does not repeat the
/// value.
fn secret(name: &str, key: &HeaderName) -> String {
    let instead = match key.as_str() {
        "cookie" => {
            "give cookies with the start requests (Request::cookie) or as a jar (--cookies), which know their hosts"
        }
        "proxy-authorization" => "put user and password into the proxy's URL (--proxy)",
        _ => {
            "bind it to its origin: --auth https://HOST=USER:PASSWORD (http_auth), or \
             --secret-header \"https://HOST=Name: value\" (secret_headers)"
        }
    };
    format!("setting default_request_headers: {name} would go to every host; {instead}")
}

impl Component for DefaultHeaders {
    const NAME: &'static str = "default_headers";
    type Settings = DefaultHeadersSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.downloader(400)
    }
}

impl DownloaderMiddleware for DefaultHeaders {
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
    use crate::Defaults;
    use huntsman_crawler::{Layer, Layers};
    use serde_json::json;

    #[tokio::test]
    async fn a_header_of_the_request_is_kept() {
        let settings = Settings::default();
        let defaults = DefaultHeaders::from_settings(&settings).unwrap().unwrap();
        let mut request = Request::parse("http://h/").unwrap().header("accept-language", "de").unwrap();
        defaults.process_request(&mut request, &Context::detached(settings)).await.unwrap();
        assert_eq!(request.headers["accept-language"], "de");
        let accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        assert_eq!(request.headers["accept"], accept, "as Scrapy sends");
    }

    #[test]
    fn headers_of_a_file_replace_default_ones_whatever_the_case_of_their_names() {
        let mut layers = Layers::default();
        layers.set(
            Layer::Project,
            "default_request_headers",
            json!({"accept": "a/a", "X-Api-Key": "SECRET"}),
        );
        let table = Defaults::settings_table();
        let own: DefaultHeadersSettings = layers.resolve(&table).unwrap().of().unwrap();
        let expected = [("Accept-Language", "en"), ("X-Api-Key", "SECRET"), ("accept", "a/a")];
        assert_eq!(
            own.default_request_headers,
            expected.map(|(name, value)| (name.into(), value.into())).into()
        );
        let shown = table.shown("default_request_headers", json!({"X-Api-Key": "SECRET"}));
        assert_eq!(shown, json!({"X-Api-Key": "***"}));
    }

    #[test]
    fn credentials_for_every_host_are_refused_with_what_to_use() {
        for (name, instead) in [
            ("Authorization", "--auth"),
            ("AUTHORIZATION", "secret_headers"),
            ("X-Api-Key", "--secret-header"),
            ("cookie", "Request::cookie"),
            ("Proxy-Authorization", "--proxy"),
        ] {
            let mut settings = Settings::default();
            settings.change(|own: &mut DefaultHeadersSettings| {
                drop(own.default_request_headers.insert(name.to_owned(), "SECRET".to_owned()));
            });
            let error = DefaultHeaders::from_settings(&settings).unwrap_err();
            let text = error.to_string();
            assert!(error.is_usage() && text.contains(name) && text.contains(instead), "{text}");
            assert!(!text.contains("SECRET"), "{text}");
        }
    }

    #[test]
    fn a_header_that_is_given_twice_is_named() {
        let mut settings = Settings::default();
        settings.change(|own: &mut DefaultHeadersSettings| {
            drop(own.default_request_headers.insert("accept".to_owned(), "a/a".to_owned()));
        });
        let error = DefaultHeaders::from_settings(&settings).unwrap_err().to_string();
        assert!(error.contains("accept is given twice"), "{error}");
    }

    #[test]
    fn a_header_that_http_does_not_allow_is_named() {
        let mut settings = Settings::default();
        settings.change(|own: &mut DefaultHeadersSettings| {
            drop(own.default_request_headers.insert("X-A".to_owned(), "a\r\nX-B: c".to_owned()));
        });
        let error = DefaultHeaders::from_settings(&settings).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("X-A"), "{error}");
    }
}
