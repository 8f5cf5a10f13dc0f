//! HttpAuth: credentials and secret headers, each sent only to the origin it is bound to.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::{HeaderName, HeaderValue, header};
use huntsman_crawler::{
    Component, Context, DownloaderMiddleware, Error, Hooks, OnRequest, Request, Result, Settings, log, meta,
    settings,
};
use url::Url;

use crate::origin::{self, Origin};
use crate::{added, chain};

settings! {
    /// Settings of [`HttpAuth`].
    pub struct HttpAuthSettings {
        /// Credentials for single origins: `https://host[:port]=user:password`.
        http_auth: Vec<String> = Vec::new(), secret;
        /// Headers for single origins: `https://host[:port]=Name: value`.
        secret_headers: Vec<String> = Vec::new(), secret;
        /// User for Basic authentication.
        httpauth_user: String = String::new();
        /// Password for Basic authentication.
        httpauth_pass: String = String::new(), secret;
        /// Domain to which, with its subdomains, user and password are sent. It must be set if a user is set, and ""
        /// means every host.
        httpauth_domain: Option<String> = None;
    }
}

/// Adds `Authorization` and secret headers to requests for the origins that they are bound to, and to no others.
///
/// The first source that fits is used: an `Authorization` set by hand; the request's meta `http_user`, `http_pass`,
/// `http_auth_domain` (without a domain: the origin at which its redirect chain began); the settings `http_auth` and
/// `secret_headers` (exact origins); the settings `httpauth_user`, `httpauth_pass`, `httpauth_domain` (the domain and
/// its subdomains, but not over http after a redirect from https). If `download_verify_certificates` is not true
/// nothing is sent, because the identity of the server is unknown.
#[derive(Debug)]
pub struct HttpAuth {
    bound: Vec<(Origin, HeaderName, HeaderValue)>,
    domain: Option<(String, HeaderValue)>,
    verified: bool,
}

impl HttpAuth {
    /// Creates the component from the settings; never `None`, because requests may have credentials in their meta.
    ///
    /// # Errors
    /// `httpauth_user` without `httpauth_domain`, an origin with a path, or a header that HTTP does not allow.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: HttpAuthSettings = settings.of()?;
        let mut bound = Vec::new();
        for entry in &own.http_auth {
            let (origin, credentials) = Origin::split_setting("http_auth", entry)?;
            let (user, password) = credentials.split_once(':').ok_or_else(|| {
                Error::usage(format!("setting http_auth: expected {origin:?}=user:password, found no colon"))
            })?;
            bound.push((origin, header::AUTHORIZATION, basic(user, password)));
        }
        for entry in &own.secret_headers {
            let (origin, line) = Origin::split_setting("secret_headers", entry)?;
            let wrong = || Error::usage(format!("setting secret_headers: expected {origin:?}=Name: value"));
            let (name, value) = line.split_once(':').ok_or_else(wrong)?;
            let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| wrong())?;
            let mut value = HeaderValue::from_str(value.trim()).map_err(|_| wrong())?;
            value.set_sensitive(true);
            bound.push((origin, name, value));
        }
        let domain = if own.httpauth_user.is_empty() && own.httpauth_pass.is_empty() {
            None
        } else {
            let domain = own.httpauth_domain.as_ref().ok_or_else(|| {
                Error::usage("setting httpauth_domain: must be set with httpauth_user; \"\" sends the password everywhere")
            })?;
            Some((normal_domain(domain), basic(&own.httpauth_user, &own.httpauth_pass)))
        };
        let verified = settings.download_verify_certificates.proves_identity();
        if !verified && (!bound.is_empty() || domain.is_some()) {
            log::warn!("certificates are not verified: credentials of the settings are withheld");
        }
        Ok(Some(Self { bound, domain, verified }))
    }

    /// The `Authorization` header that the request's own meta defines.
    fn own(request: &Request) -> Option<HeaderValue> {
        let user = request.meta_text(meta::HTTP_USER).unwrap_or("");
        let password = request.meta_text(meta::HTTP_PASS).unwrap_or("");
        if user.is_empty() && password.is_empty() {
            return None;
        }
        let bound = match request.meta_text(meta::HTTP_AUTH_DOMAIN) {
            Some(domain) => in_domain(request, &normal_domain(domain)),
            None => original_url(request).is_none_or(|first| origin::same_origin(&first, &request.url)),
        };
        bound.then(|| basic(user, password))
    }
}

/// The URL at which the chain of redirects began, if there is one.
fn original_url(request: &Request) -> Option<Url> {
    chain::urls(request).next().and_then(|first| Url::parse(first).ok())
}

/// Whether the request is within a domain and was not redirected from https to http.
fn in_domain(request: &Request, domain: &str) -> bool {
    let fits = domain.is_empty() || origin::is_within(origin::host(&request.url), domain);
    let downgraded =
        || request.url.scheme() != "https" && chain::urls(request).any(|url| url.starts_with("https:"));
    fits && !downgraded()
}

fn normal_domain(domain: &str) -> String {
    domain.trim().trim_matches('.').to_ascii_lowercase()
}

fn basic(user: &str, password: &str) -> HeaderValue {
    let value = format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")));
    let mut value = HeaderValue::from_str(&value).expect("base64 is visible ASCII");
    value.set_sensitive(true);
    value
}

impl Component for HttpAuth {
    const NAME: &'static str = "http_auth";
    type Settings = HttpAuthSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.downloader(300)
    }
}

impl DownloaderMiddleware for HttpAuth {
    async fn process_request(&self, request: &mut Request, _: &Context) -> Result<OnRequest> {
        // If a spider sets a header of the same name by hand, its value is a secret too, for whichever host.
        for (_, name, _) in &self.bound {
            if let Some(value) = request.headers.get_mut(name) {
                value.set_sensitive(true);
            }
        }
        if !self.verified {
            return Ok(OnRequest::Continue);
        }
        if let Some(value) = Self::own(request) {
            added::set_if_absent(request, header::AUTHORIZATION, value);
        }
        if !self.bound.is_empty()
            && let Some(origin) = Origin::of(&request.url)
        {
            for (_, name, value) in self.bound.iter().filter(|(bound, ..)| *bound == origin) {
                added::set_if_absent(request, name.clone(), value.clone());
            }
        }
        if let Some((domain, value)) = &self.domain
            && in_domain(request, domain)
        {
            added::set_if_absent(request, header::AUTHORIZATION, value.clone());
        }
        Ok(OnRequest::Continue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    async fn sent(settings: &Settings, mut request: Request) -> Request {
        let auth = HttpAuth::from_settings(settings).unwrap().unwrap();
        auth.process_request(&mut request, &Context::detached(settings.clone())).await.unwrap();
        request
    }

    fn request(url: &str) -> Request {
        Request::parse(url).unwrap()
    }

    fn authorization(request: &Request) -> Option<&str> {
        request.headers.get("authorization").map(|value| value.to_str().unwrap())
    }

    #[tokio::test]
    async fn bound_credentials_go_to_their_exact_origin() {
        let mut settings = Settings::default();
        settings.change(|own: &mut HttpAuthSettings| {
            own.http_auth = vec!["https://h=Aladdin:open sesame".to_owned()]
        });
        settings
            .change(|own: &mut HttpAuthSettings| own.secret_headers = vec!["https://h=X-Key: k1".to_owned()]);
        let at_home = sent(&settings, request("https://h/a")).await;
        assert_eq!(authorization(&at_home), Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), "RFC 7617");
        assert_eq!(at_home.headers["x-key"], "k1");
        assert!(at_home.headers["x-key"].is_sensitive());
        for elsewhere in ["http://h/", "https://h:444/", "https://a.h/", "https://hh/"] {
            let request = sent(&settings, request(elsewhere)).await;
            assert!(request.headers.is_empty(), "{elsewhere}");
        }
    }

    #[tokio::test]
    async fn a_domain_is_needed_and_covers_its_subdomains() {
        let mut settings = Settings::default();
        settings.change(|own: &mut HttpAuthSettings| own.httpauth_user = "u".to_owned());
        assert!(HttpAuth::from_settings(&settings).unwrap_err().is_usage());
        settings.change(|own: &mut HttpAuthSettings| own.httpauth_domain = Some("Example.org".to_owned()));
        for (url, expected) in [
            ("https://example.org/", true),
            ("http://a.example.org/", true),
            ("http://badexample.org/", false),
            ("http://other/", false),
        ] {
            assert_eq!(authorization(&sent(&settings, request(url)).await).is_some(), expected, "{url}");
        }
        let downgraded =
            request("http://example.org/b").meta("redirect_urls", json!(["https://example.org/a"]));
        assert_eq!(authorization(&sent(&settings, downgraded).await), None);
        settings.change(|own: &mut HttpAuthSettings| own.httpauth_domain = Some(String::new()));
        assert!(authorization(&sent(&settings, request("http://other/")).await).is_some());
    }

    #[tokio::test]
    async fn credentials_of_a_request_stay_with_the_origin_it_began_at() {
        let own = |url: &str| request(url).meta("http_user", "u").meta("http_pass", "p");
        let settings = Settings::default();
        assert_eq!(authorization(&sent(&settings, own("http://h/")).await), Some("Basic dTpw"));
        let redirected = own("http://other/").meta("redirect_urls", json!(["http://h/"]));
        assert_eq!(authorization(&sent(&settings, redirected).await), None);
        let within =
            own("http://a.h/").meta("http_auth_domain", "h").meta("redirect_urls", json!(["http://h/"]));
        assert!(authorization(&sent(&settings, within).await).is_some());
    }

    #[tokio::test]
    async fn a_header_set_by_hand_wins() {
        let mut settings = Settings::default();
        settings.change(|own: &mut HttpAuthSettings| own.http_auth = vec!["http://h=u:p".to_owned()]);
        let by_hand = request("http://h/").header("Authorization", "Bearer x").unwrap();
        assert_eq!(authorization(&sent(&settings, by_hand).await), Some("Bearer x"));
    }

    #[tokio::test]
    async fn without_verified_certificates_nothing_is_sent() {
        let mut settings = Settings::default();
        settings.change(|own: &mut HttpAuthSettings| own.http_auth = vec!["https://h=u:p".to_owned()]);
        settings.download_verify_certificates = false.into();
        assert!(sent(&settings, request("https://h/")).await.headers.is_empty());
    }
}
