//! Only: restricts a crawl to a given list of URLs.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use huntsman_crawler::{
    Context, CrawlerBuilder, DownloaderMiddleware, DropReason, Error, OnFollow, OnRequest, Page, Plugin,
    Request, Result, Spider, SpiderMiddleware, meta,
};
use huntsman_text::urlparts::canonical_into;
use url::Url;
use xxhash_rust::xxh3::xxh3_128;

/// Fetches only URLs of a list, compared in canonical form; others are dropped with reason `not_listed`.
///
/// As a plugin, it judges seeds and links, and redirect targets and pushed requests before they are sent. A request
/// with meta `allow_offsite` (robots.txt) passes. It takes about 20 bytes per URL.
#[derive(Clone, Debug)]
pub struct OnlyUrls(Arc<HashSet<u128, BuildHasherDefault<IdentityHasher>>>);

impl OnlyUrls {
    /// Name of the component in settings and records.
    pub const NAME: &'static str = "only";
    /// Position in both chains.
    pub const ORDER: i32 = 55;

    /// Creates the list from URLs.
    pub fn new(urls: impl IntoIterator<Item = Url>) -> Self {
        let mut buffer = String::new();
        Self(Arc::new(urls.into_iter().map(|url| key(&url, &mut buffer)).collect()))
    }

    /// Reads the list from a file with one URL per line; empty lines and lines that begin with `#` are ignored.
    ///
    /// # Errors
    /// The file cannot be read, or a line is not an absolute URL; the error names it.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let read =
            |cause: std::io::Error| Error::usage(format!("reading the list {}: {cause}", path.display()));
        let file = std::fs::File::open(path).map_err(read)?;
        let mut set = HashSet::default();
        let mut buffer = String::new();
        for (index, line) in std::io::BufReader::new(file).lines().enumerate() {
            let line = line.map_err(read)?;
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let request = Request::parse(line)
                .map_err(|error| error.context(format!("line {} of {}", index + 1, path.display())))?;
            set.insert(key(&request.url, &mut buffer));
        }
        Ok(Self(Arc::new(set)))
    }

    /// The number of URLs in the list.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the list is empty: then nothing is fetched.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a URL is in the list.
    pub fn contains(&self, url: &Url) -> bool {
        self.0.contains(&key(url, &mut String::new()))
    }

    fn refusal(&self, request: &Request, cx: &Context) -> Option<DropReason> {
        if request.meta_flag(meta::ALLOW_OFFSITE) || self.contains(&request.url) {
            return None;
        }
        cx.stats().inc("only/filtered");
        Some(DropReason::skipped("not_listed"))
    }
}

fn key(url: &Url, buffer: &mut String) -> u128 {
    buffer.clear();
    canonical_into(url, buffer);
    xxh3_128(buffer.as_bytes())
}

/// A hasher that returns its input, because the keys are hashes already.
#[derive(Debug, Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 ^= u64::from_le_bytes(word);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Plugin for OnlyUrls {
    fn install<S: Spider>(self, builder: CrawlerBuilder<S>) -> CrawlerBuilder<S> {
        builder.middleware(self.clone()).spider_middleware(self)
    }
}

impl SpiderMiddleware for OnlyUrls {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn order(&self) -> i32 {
        Self::ORDER
    }

    fn process_start(&self, request: &mut Request, cx: &Context) -> Result<OnFollow> {
        Ok(self.refusal(request, cx).map_or(OnFollow::Keep, OnFollow::Drop))
    }

    fn process_follow(&self, _: &Page, request: &mut Request, cx: &Context) -> Result<OnFollow> {
        Ok(self.refusal(request, cx).map_or(OnFollow::Keep, OnFollow::Drop))
    }
}

impl DownloaderMiddleware for OnlyUrls {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn order(&self) -> i32 {
        Self::ORDER
    }

    async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
        Ok(self.refusal(request, cx).map_or(OnRequest::Continue, OnRequest::Drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use huntsman_crawler::Settings;

    #[tokio::test]
    async fn addresses_are_compared_in_canonical_form() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "# list\n\n http://H/a?b=2&a=1#x \nhttp://h/caf%c3%a9\n").unwrap();
        let only = OnlyUrls::from_file(file.path()).unwrap();
        assert_eq!(only.len(), 2);
        let cx = Context::detached(Settings::default());
        for (url, listed) in [
            ("http://h/a?a=1&b=2", true),
            ("http://h:80/café", true),
            ("http://h/a", false),
            ("https://h/caf%C3%A9", false),
        ] {
            let mut request = Request::parse(url).unwrap();
            let started = only.process_start(&mut request, &cx).unwrap();
            assert_eq!(matches!(started, OnFollow::Keep), listed, "{url}");
            let sent = DownloaderMiddleware::process_request(&only, &mut request, &cx).await.unwrap();
            match sent {
                OnRequest::Continue => assert!(listed, "{url}"),
                OnRequest::Drop(reason) => {
                    assert_eq!((listed, reason.reason.as_ref()), (false, "not_listed"))
                }
                other => panic!("{other:?}"),
            }
        }
        let mut robots = Request::parse("http://h/robots.txt").unwrap().with_meta(meta::ALLOW_OFFSITE, true);
        assert!(matches!(only.process_start(&mut robots, &cx).unwrap(), OnFollow::Keep));
    }

    #[test]
    fn a_line_that_is_no_address_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "http://h/\nnot an address\n").unwrap();
        let error = OnlyUrls::from_file(file.path()).unwrap_err().to_string();
        assert!(error.contains("line 2 of ") && error.contains("not an address"), "{error}");
        assert!(
            OnlyUrls::from_file("/nonexistent/list").unwrap_err().to_string().contains("/nonexistent/list")
        );
    }
}
