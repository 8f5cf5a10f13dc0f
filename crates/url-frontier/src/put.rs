//! Storing URLs in the server, until it has acknowledged each of them.

use std::time::Duration;

use tonic::{Code, Status as Failure};

use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::link::Link;
use crate::message::{DiscoveredBatch, DiscoveredUrlItem, Item, KnownUrlItem, Status, UrlInfo, UrlItem};

/// URLs and bytes of one call. A server reads messages of 4 MiB at most, unless it is told otherwise.
const CALL: (usize, usize) = (500, 2 << 20);
/// The pause before URLs are sent again that the server has failed to store.
const PAUSE: Duration = Duration::from_millis(200);
/// How often URLs are sent that the server fails to store.
const ATTEMPTS: u32 = 10;
/// What the server says of a `PutDiscovered` that is not in the form of this protocol.
const OTHER_FORM: &str = "its reply to a batch has another form";

impl Link {
    /// Stores URLs that were found. Returns of each, in order, whether it is new. One that is not is known, or something about it is wrong.
    pub(crate) async fn put_found(&self, urls: Vec<UrlInfo>) -> Result<Vec<bool>, Error> {
        let found = |info| Item::Discovered(DiscoveredUrlItem { info: Some(info) });
        self.put(urls.into_iter().map(found).collect()).await
    }

    /// Tells what became of URLs that were served.
    pub(crate) async fn put_known(&self, urls: Vec<KnownUrlItem>) -> Result<(), Error> {
        self.put(urls.into_iter().map(Item::Known).collect()).await.map(drop)
    }

    async fn put(&self, items: Vec<Item>) -> Result<Vec<bool>, Error> {
        let mut are_taken = Vec::with_capacity(items.len());
        for part in parts(items, Item::encoded_len) {
            are_taken.extend(self.put_part(part).await?);
        }
        Ok(are_taken)
    }

    /// Sends items until the server has stored all of them. Returns of each whether it was taken and not skipped.
    async fn put_part(&self, mut items: Vec<Item>) -> Result<Vec<bool>, Error> {
        let mut are_taken = vec![false; items.len()];
        let mut places: Vec<usize> = (0..items.len()).collect();
        for _ in 0..ATTEMPTS {
            let statuses = self.put_once(&items).await?;
            let (mut failed, mut failed_places) = (Vec::new(), Vec::new());
            for ((item, place), status) in items.into_iter().zip(places).zip(statuses) {
                match status {
                    Status::Ok => are_taken[place] = true,
                    Status::Skipped => {}
                    Status::Fail => {
                        failed.push(item);
                        failed_places.push(place);
                    }
                }
            }
            if failed.is_empty() {
                return Ok(are_taken);
            }
            (items, places) = (failed, failed_places);
            tokio::time::sleep(PAUSE).await;
        }
        let count = items.len();
        let message =
            format!("the server failed to store {count} URLs {ATTEMPTS} times; its log may say why");
        Err(Error::new(ErrorKind::Refused, message))
    }

    /// Sends items in one call: URLs that were found as a batch, if the server knows such a call.
    async fn put_once(&self, items: &[Item]) -> Result<Vec<Status>, Error> {
        let found: Option<Vec<UrlInfo>> = items.iter().map(found_url).collect();
        if let Some(items) = found.filter(|_| self.takes_batches()) {
            let batch = DiscoveredBatch { id: "1".to_owned(), items };
            match self.call(|client| put_batch(client, batch.clone())).await? {
                Some(statuses) => return Ok(statuses),
                None => self.stop_batches(),
            }
        }
        let items = items.iter().enumerate();
        let items: Vec<UrlItem> =
            items.map(|(n, item)| UrlItem { item: Some(item.clone()), id: n.to_string() }).collect();
        self.call(|client| put_items(client, items.clone())).await
    }
}

/// The URL of an item that was found.
fn found_url(item: &Item) -> Option<UrlInfo> {
    match item {
        Item::Discovered(found) => found.info.clone(),
        Item::Known(_) => None,
    }
}

/// The statuses of items, in their order.
async fn put_items(mut client: Client, items: Vec<UrlItem>) -> Result<Vec<Status>, Failure> {
    let mut statuses = vec![None; items.len()];
    // Acknowledgements come in any order.
    for ack in client.put_urls(items).await? {
        if let Some(status) = ack.id.parse().ok().and_then(|n: usize| statuses.get_mut(n)) {
            *status = Some(ack.status());
        }
    }
    let statuses = statuses.into_iter().collect::<Option<_>>();
    statuses.ok_or_else(|| Failure::unavailable("some URLs were not acknowledged"))
}

/// The statuses of a batch; `None` if the server does not know the call, as versions before 2.6.
async fn put_batch(mut client: Client, batch: DiscoveredBatch) -> Result<Option<Vec<Status>>, Failure> {
    let count = batch.items.len();
    match client.put_discovered(batch).await {
        Ok(acks) => match acks.first() {
            Some(ack) if ack.statuses.len() == count => Ok(Some(ack.statuses().collect())),
            Some(_) => {
                tracing::warn!("the URLFrontier server takes URLs one by one: {OTHER_FORM}");
                Ok(None)
            }
            None => Err(Failure::unavailable("a batch was not acknowledged")),
        },
        Err(failure) if failure.code() == Code::Unimplemented => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Splits what is sent into calls.
fn parts<T>(all: Vec<T>, size: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let mut parts: Vec<Vec<T>> = Vec::new();
    let mut bytes = 0;
    for one in all {
        let size = size(&one);
        match parts.last_mut() {
            Some(part) if part.len() < CALL.0 && bytes + size <= CALL.1 => {
                bytes += size;
                part.push(one);
            }
            _ => {
                bytes = size;
                parts.push(vec![one]);
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_bounded_in_number_and_bytes_and_keep_the_order() {
        let lengths = |all: Vec<usize>| {
            let parts = parts(all.clone(), |size| *size);
            assert_eq!(parts.concat(), all);
            parts.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(lengths(Vec::new()), [0; 0]);
        assert_eq!(lengths(vec![1; 1_001]), [500, 500, 1]);
        assert_eq!(lengths(vec![CALL.1, 1, CALL.1 - 1, 1]), [1, 2, 1]);
    }
}
