//! Decides which sitemaps of a host are requested, by a budget per host that no document can extend.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use url::Url;
use xxhash_rust::xxh3::xxh3_64;

use super::spider::LABEL;
use crate::error::Result;
use crate::host::{HostKey, SlotBy};
use crate::job::{Change, Persist};
use crate::meta;
use crate::request::{FoundBy, Request};
use crate::settings::Settings;

/// Number of hosts whose sitemaps are counted; sitemaps of further hosts are refused. A host takes some 100 bytes,
/// and 16 per file.
const MAX_HOSTS: usize = 100_000;

/// The requested sitemaps by host: at most `sitemap_max_files` of each. Clones share them.
///
/// If it is passed to [`CrawlerBuilder::persist`](crate::CrawlerBuilder::persist), a job remembers them.
#[derive(Clone, Debug, Default)]
pub struct SitemapFiles(Arc<Mutex<RequestedFiles>>);

#[derive(Debug, Default)]
struct RequestedFiles {
    /// Hashes of URLs.
    hosts: HashMap<HostKey, HashSet<u64>>,
    /// Hosts with files that are not stored in the job yet; `None` without a job.
    unsaved: Option<HashSet<HostKey>>,
}

impl SitemapFiles {
    /// A request for a sitemap that a document names; `depth` is the number of indexes between a start URL and it.
    /// `None` if the budget of the host is used up. The same URL counts once.
    ///
    /// [`Sitemaps`](crate::Sitemaps) reads the response, which may be as large as `sitemap_max_bytes`. The request
    /// has depth 0, so that the pages in the sitemap have the same depth as the links of a start page.
    pub fn request(&self, url: Url, depth: u64, settings: &Settings) -> Option<Request> {
        self.take(&url, settings.sitemap_max_files).then(|| request(url, depth, settings.sitemap_max_bytes))
    }

    fn take(&self, url: &Url, most: usize) -> bool {
        let mut requested = self.lock();
        let host = HostKey::of(url, SlotBy::Host);
        if requested.hosts.len() >= MAX_HOSTS && !requested.hosts.contains_key(&host) {
            return false;
        }
        let files = requested.hosts.entry(host.clone()).or_default();
        let hash = xxh3_64(url.as_str().as_bytes());
        if files.contains(&hash) {
            return true;
        }
        let is_taken = files.len() < most && files.insert(hash);
        if let (true, Some(unsaved)) = (is_taken, &mut requested.unsaved) {
            unsaved.insert(host);
        }
        is_taken
    }

    fn lock(&self) -> MutexGuard<'_, RequestedFiles> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request for a sitemap.
pub(super) fn request(mut url: Url, depth: u64, max_bytes: u64) -> Request {
    url.set_fragment(None);
    let mut request = Request::get(url);
    request.found_by = FoundBy::Sitemap;
    request
        .callback(LABEL)
        .with_meta(meta::SITEMAP_DEPTH, depth)
        .with_meta(meta::DEPTH_RESET, true)
        .with_meta(meta::DOWNLOAD_MAXSIZE, max_bytes)
        .with_meta(meta::DOWNLOAD_TRUNCATE, true)
        .with_meta(meta::DOWNLOAD_BINARY, true)
}

impl Persist for SitemapFiles {
    fn name(&self) -> String {
        "sitemaps".to_owned()
    }

    fn load(&self, _: Option<&[u8]>) -> Result<()> {
        self.lock().unsaved = Some(HashSet::new());
        Ok(())
    }

    fn load_entry(&self, host: &[u8], files: &[u8]) -> Result<()> {
        let hash = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        let files = files.as_chunks().0.iter().map(hash).collect();
        self.lock().hosts.insert(HostKey::new(&String::from_utf8_lossy(host)), files);
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn save_entries(&self) -> Result<Vec<Change>> {
        let mut requested = self.lock();
        let unsaved = requested.unsaved.as_mut().map(std::mem::take).unwrap_or_default();
        let entry = |host: HostKey| {
            let files = requested.hosts.get(&host)?.iter().flat_map(|hash| hash.to_le_bytes()).collect();
            Some((host.as_str().as_bytes().to_vec(), Some(files)))
        };
        Ok(unsaved.into_iter().filter_map(entry).collect())
    }
}
