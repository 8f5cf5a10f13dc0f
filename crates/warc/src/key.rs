//! The keys by which captures are found: of a URL, and of a request that has a body.

use url::{Position, Url};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// The key of a request, made of its method, its URL without user and fragment, and its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CaptureKey(u128);

impl CaptureKey {
    /// The key of a GET request; `None` if the text is no URL.
    ///
    /// ```
    /// use huntsman_warc::CaptureKey;
    ///
    /// let key = CaptureKey::of("http://user:secret@Site.example:80/a/../b?c#d");
    /// assert_eq!(key, CaptureKey::of("http://site.example/b?c"));
    /// assert_ne!(key, CaptureKey::of("https://site.example/b?c"));
    /// ```
    pub fn of(url: &str) -> Option<Self> {
        Some(Self::of_url(&Url::parse(url).ok()?))
    }

    /// The key of a GET request.
    pub fn of_url(url: &Url) -> Self {
        if url.username().is_empty() && url.password().is_none() {
            return Self(xxh3_128(url[..Position::AfterQuery].as_bytes()));
        }
        let before = url[..Position::BeforeUsername].as_bytes();
        let after = url[Position::BeforeHost..Position::AfterQuery].as_bytes();
        Self(xxh3_128(&[before, after].concat()))
    }

    /// The key of a request with another method.
    pub fn with(self, method: &str, body: &[u8]) -> Self {
        if method.eq_ignore_ascii_case("GET") {
            return self;
        }
        let mut hasher = Xxh3::new();
        hasher.update(&self.0.to_le_bytes());
        hasher.update(method.to_ascii_uppercase().as_bytes());
        hasher.update(b"\n");
        hasher.update(body);
        Self(hasher.digest128())
    }
}
