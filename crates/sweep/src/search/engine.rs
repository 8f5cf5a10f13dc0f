//! The engines, with their URLs and keys.

use std::fmt;
use std::time::Duration;

use http::HeaderMap;
use huntsman_crawler::{Request, Response};
use url::Url;

use super::{Refusal, brave, google, searxng};
use crate::candidates::CandidateError;

/// A search engine with its key. The key appears in no message and not in `Debug`.
#[derive(Clone)]
pub struct Engine {
    protocol: Protocol,
    base: Url,
    /// Whether the user set another base URL than the default.
    is_named: bool,
}

#[derive(Clone)]
enum Protocol {
    Searxng,
    Brave { key: String },
    Google { key: String, engine: String },
}

/// Environment variables with the keys.
const BRAVE_KEY: &str = "BRAVE_API_KEY";
const GOOGLE_KEY: &str = "GOOGLE_API_KEY";
const GOOGLE_ENGINE: &str = "GOOGLE_CX";

impl Engine {
    /// An instance of SearXNG by its URL, such as `https://search.example.org/`. `json` must be among `search.formats`
    /// in its `settings.yml`. User and password in the URL are sent by Basic authentication.
    ///
    /// # Errors
    /// The text is not an http or https URL.
    pub fn searxng(address: &str) -> Result<Self, CandidateError> {
        Ok(Self { protocol: Protocol::Searxng, base: base("SearXNG", address)?, is_named: true })
    }

    /// Brave Search, by its web search API.
    pub fn brave(key: impl Into<String>) -> Self {
        Self {
            protocol: Protocol::Brave { key: key.into() },
            base: default_base(brave::BASE),
            is_named: false,
        }
    }

    /// Brave Search with the key in the environment variable `BRAVE_API_KEY`.
    ///
    /// # Errors
    /// [`NoKey`](CandidateError::NoKey): there is none.
    pub fn brave_from_env() -> Result<Self, CandidateError> {
        Ok(Self::brave(variable(brave::NAME, BRAVE_KEY)?))
    }

    /// Google, by its Custom Search JSON API: a key, and the id of a Programmable Search Engine (`cx`).
    pub fn google(key: impl Into<String>, engine: impl Into<String>) -> Self {
        let protocol = Protocol::Google { key: key.into(), engine: engine.into() };
        Self { protocol, base: default_base(google::BASE), is_named: false }
    }

    /// Google with key and engine in the environment variables `GOOGLE_API_KEY` and `GOOGLE_CX`.
    ///
    /// # Errors
    /// [`NoKey`](CandidateError::NoKey): one of them is missing.
    pub fn google_from_env() -> Result<Self, CandidateError> {
        Ok(Self::google(variable(google::NAME, GOOGLE_KEY)?, variable(google::NAME, GOOGLE_ENGINE)?))
    }

    /// Uses another base URL than the default: a proxy of the API, a server for tests.
    ///
    /// # Errors
    /// The text is not an http or https URL.
    pub fn at(mut self, address: &str) -> Result<Self, CandidateError> {
        self.base = base(self.name(), address)?;
        self.is_named = true;
        Ok(self)
    }

    pub(super) fn name(&self) -> &'static str {
        match &self.protocol {
            Protocol::Searxng => searxng::NAME,
            Protocol::Brave { .. } => brave::NAME,
            Protocol::Google { .. } => google::NAME,
        }
    }

    pub(super) fn base(&self) -> &Url {
        &self.base
    }

    /// Host and port, for messages.
    pub(super) fn place(&self) -> String {
        let host = self.base.host_str().unwrap_or_default();
        self.base.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Host and port for the address guard, if the user set the URL.
    pub(super) fn named_address(&self) -> Option<String> {
        let (host, port) = (self.base.host_str()?, self.base.port_or_known_default()?);
        self.is_named.then(|| format!("{host}:{port}"))
    }

    pub(super) fn request(&self, phrase: &str, results: usize) -> Result<Request, CandidateError> {
        let phrase = format!("\"{phrase}\"");
        match &self.protocol {
            Protocol::Searxng => Ok(searxng::request(&self.base, &phrase)),
            Protocol::Brave { key } => brave::request(&self.base, key, &phrase, results).ok_or_else(|| {
                CandidateError::Failed(format!(
                    "{}: the key in {BRAVE_KEY} has characters that no key has",
                    brave::NAME
                ))
            }),
            Protocol::Google { key, engine } => {
                Ok(google::request(&self.base, key, engine, &phrase, results))
            }
        }
    }

    /// The URLs in a response.
    pub(super) fn read(&self, answer: &Response) -> Result<Vec<String>, Refusal> {
        match &self.protocol {
            Protocol::Searxng => searxng::read(answer),
            Protocol::Brave { .. } => brave::read(answer, BRAVE_KEY),
            Protocol::Google { .. } => google::read(answer, GOOGLE_KEY, GOOGLE_ENGINE),
        }
    }

    /// How long the engine asks to wait, by headers that only this engine has.
    pub(super) fn backoff(&self, headers: &HeaderMap) -> Option<Duration> {
        match &self.protocol {
            Protocol::Brave { .. } => brave::backoff(headers),
            Protocol::Searxng | Protocol::Google { .. } => None,
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("name", &self.name())
            .field("at", &self.place())
            .finish_non_exhaustive()
    }
}

fn default_base(base: &str) -> Url {
    Url::parse(base).expect("the address of an API is a URL")
}

fn base(name: &str, address: &str) -> Result<Url, CandidateError> {
    match Url::parse(address) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
        // The address may have a password.
        _ => Err(CandidateError::Failed(format!("{name}: its address must begin with http:// or https://"))),
    }
}

fn variable(engine: &'static str, variable: &'static str) -> Result<String, CandidateError> {
    let value = std::env::var(variable).ok().map(|value| value.trim().to_owned());
    value.filter(|value| !value.is_empty()).ok_or(CandidateError::NoKey { engine, variable })
}
