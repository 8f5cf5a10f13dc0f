//! The state that components of a crawl store in its job.

use std::sync::Arc;

use huntsman::middleware::Defaults;
use huntsman::store::{Batch, Durability, MemoryStore, Store};
use huntsman::{
    CrawlerBuilder, Downloader, FetchError, FetchErrorKind, Job, Output, Page, Request, Response, spider_fn,
};

/// A downloader without a network: every fetch fails.
struct Nowhere;

impl Downloader for Nowhere {
    async fn fetch(&self, _: &Request) -> Result<Response, FetchError> {
        Err(FetchError::new(FetchErrorKind::Connect, "there is no network"))
    }
}

/// The components that store state, by the names of their rows.
const PARTS: [&str; 11] = [
    "stats",
    "hosts",
    "spider",
    "robots_txt",
    "avoid_dup",
    "cookies",
    "scope",
    "incremental",
    "near_dup",
    "sitemaps",
    "file/pages.jsonl",
];

/// Rows of a store with component, key and value: the crawl must be built or refused.
pub(crate) fn job(data: &[u8]) {
    let mut batch = Batch::new();
    let mut rest = data;
    while let [of, key, high, low, tail @ ..] = rest {
        let (key, tail) = tail.split_at(usize::from(*key).min(tail.len()));
        let (value, tail) = tail.split_at(usize::from(u16::from_be_bytes([*high, *low])).min(tail.len()));
        let part = PARTS[usize::from(*of) % PARTS.len()].as_bytes();
        let name = match key {
            [] => [b"p/", part].concat(),
            key => [b"e/", part, b"\0", key].concat(),
        };
        batch.put(name, value);
        rest = tail;
    }
    let store = Arc::new(MemoryStore::new());
    store.write(&batch, Durability::Process).expect("memory takes it");
    let spider = spider_fn(["http://h.example/"], |_: &Page, _: &mut Output<()>| Ok(()));
    let built = CrawlerBuilder::new(spider)
        .plugin(Defaults)
        .downloader(Nowhere)
        .set("avoid_dup_content_enabled", true)
        .set("near_dup_enabled", true)
        .job(Job::on(store).expect("memory can be read"))
        .build();
    if let Err(error) = built {
        assert!(error.to_string().contains("resuming"), "the message says what failed: {error}");
    }
}
