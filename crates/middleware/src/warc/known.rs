//! The bodies that the files have already.

use std::collections::{HashMap, VecDeque};
use std::fs::File;

use huntsman_crawler::{Change, Result};
use huntsman_warc::{Digest, WarcReader};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

/// Number of bodies that are kept in memory; older ones are written again.
const MOST: usize = 1_000_000;

/// A record to which later ones may refer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Original {
    pub(super) digest: String,
    pub(super) url: String,
    pub(super) date: String,
    pub(super) id: String,
    pub(super) answers_get: bool,
}

/// Originals by the digest of their body, and the last one of each URL.
#[derive(Debug, Default)]
pub(super) struct Known {
    originals: HashMap<u128, Original>,
    /// Digest by URL.
    urls: HashMap<u128, u128>,
    /// In the order in which they came.
    order: VecDeque<u128>,
    /// What the job has not got yet; `None` without a job.
    changes: Option<Vec<Change>>,
}

impl Known {
    /// From now on there is a job, which takes the changes.
    pub(super) fn keep_changes(&mut self) {
        self.changes.get_or_insert_default();
    }

    /// The first record with this body.
    pub(super) fn of_digest(&self, digest: &Digest) -> Option<&Original> {
        self.originals.get(&hash(&digest.to_string()))
    }

    /// The last body that a URL had.
    pub(super) fn of_url(&self, url: &str) -> Option<&Original> {
        self.originals.get(self.urls.get(&hash(url))?).filter(|original| original.url == url)
    }

    /// Adds a record that was written.
    pub(super) fn add(&mut self, original: Original) {
        let (key, added) = (hash(&original.digest), self.changes.is_some().then(|| original.clone()));
        let dropped = self.insert(original);
        if let (Some(changes), Some(added)) = (&mut self.changes, added) {
            changes.extend(dropped.map(|dropped| (dropped.to_be_bytes().to_vec(), None)));
            let value = serde_json::to_vec(&added).expect("texts are JSON");
            changes.push((key.to_be_bytes().to_vec(), Some(value)));
        }
    }

    /// Inserts a record; returns the key of the one that had to make room.
    fn insert(&mut self, original: Original) -> Option<u128> {
        let key = hash(&original.digest);
        if original.answers_get {
            self.urls.insert(hash(&original.url), key);
        }
        if self.originals.insert(key, original).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() <= MOST {
            return None;
        }
        let oldest = self.order.pop_front()?;
        if let Some(dropped) = self.originals.remove(&oldest) {
            self.urls.remove(&hash(&dropped.url));
        }
        Some(oldest)
    }

    /// Loads an entry of the job.
    pub(super) fn load(&mut self, value: &[u8]) -> Result<()> {
        self.insert(serde_json::from_slice(value)?);
        Ok(())
    }

    /// The entries that are new since the last call.
    pub(super) fn changes(&mut self) -> Result<Vec<Change>> {
        Ok(self.changes.as_mut().map(std::mem::take).unwrap_or_default())
    }

    /// Reads the records of a file that an earlier crawl wrote. What is damaged is not referred to.
    pub(super) fn read(&mut self, reader: &mut WarcReader<File>) {
        loop {
            let head = match reader.next_head() {
                Ok(Some(head)) => head,
                Ok(None) => return,
                Err(_) => continue,
            };
            let is_whole = head.kind() == "response" && head.get("WARC-Truncated").is_none();
            let (Some(digest), Some(url), Some(date), Some(id)) =
                (head.get("WARC-Payload-Digest"), head.target(), head.date(), head.id())
            else {
                continue;
            };
            // The digest of nothing is not worth a reference.
            if is_whole
                && let Some(digest) = Digest::parse(digest).filter(|digest| *digest != digest.kind().of(b""))
            {
                let (url, date, id) = (url.to_owned(), date.to_owned(), id.to_owned());
                self.add(Original { digest: digest.to_string(), url, date, id, answers_get: true });
            }
        }
    }
}

fn hash(text: &str) -> u128 {
    xxh3_128(text.as_bytes())
}
